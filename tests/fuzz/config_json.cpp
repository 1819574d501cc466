// config.json, beside the weights of a small model of its kind: a Refusal, or a model that can be written.
#include <filesystem>

#include "fuzz.h"

namespace {

/// A golden model of the family whose type is in the bytes; "" where none is.
std::string family_weights(const std::uint8_t* data, std::size_t size) {
    static const std::vector<std::filesystem::path> families = [] {
        std::vector<std::filesystem::path> all;
        for (const auto& entry : std::filesystem::directory_iterator(FOVEA_GOLDEN_DIR "/families"))
            all.push_back(entry);
        return all;
    }();
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (text.find("\"whisper\"") != text.npos) return FOVEA_GOLDEN_DIR "/speech/whisper_bare/model.safetensors";
    for (const std::filesystem::path& family : families)
        if (text.find('"' + family.filename().string() + '"') != text.npos)
            return (family / "model.safetensors").string();
    return "";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
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
