// config.json, beside the weights of a small model of its kind: a host::Error, or a model that can be written.
#include <filesystem>
#include <map>

#include "tests/fuzz/fuzz.h"

namespace {

/// The weights of a golden model of the family that the first such word between quotes names; "" where none does.
std::string family_weights(const std::uint8_t* data, std::size_t size) {
    static const std::map<std::string, std::string, std::less<>> weights = [] {
        std::map<std::string, std::string, std::less<>> all;
        for (const char* folder : {FOVEA_GOLDEN_DIR "/families", FOVEA_GOLDEN_DIR "/pairs"})
            for (const auto& entry : std::filesystem::directory_iterator(folder))
                all[entry.path().filename().string()] = (entry.path() / "model.safetensors").string();
        all["whisper"] = FOVEA_GOLDEN_DIR "/speech/whisper_bare/model.safetensors";
        return all;
    }();
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    std::size_t begin = text.find('"'), end = 0;
    for (; begin != text.npos && (end = text.find('"', begin + 1)) != text.npos; begin = end)
        if (const auto found = weights.find(text.substr(begin + 1, end - begin - 1)); found != weights.end())
            return found->second;
    return "";
}

}  // namespace

FOVEA_FUZZ_TARGET(config_json) {
    using namespace fovea;
    static const fuzz::Scratch scratch("config.json");
    const std::string kind = fuzz::kind_of(data, size,
                                           {{"gpt2", "gpt2"},
                                            {"bert", "bert"},
                                            {"qwen2", "qwen2"},
                                            {"qwen3", "qwen3"},
                                            {"Multihead", "multihead"},
                                            {"attention\"", "attention"},
                                            {"torch", "transformer"}});
    const std::string small = FOVEA_GOLDEN_DIR "/../fuzz/small/safetensors/" + kind + ".safetensors";
    const std::string family = family_weights(data, size);
    // "llama" has both; the smaller is the faster.
    fuzz::read_and_write({.source = family.empty() || family.find("/llama/") != family.npos ? small : family,
                          .config = scratch.holding(data, size)});
    return 0;
}
