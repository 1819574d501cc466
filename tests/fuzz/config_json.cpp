// config.json, beside the weights of a small model of its kind: a Refusal, or a model that can be written.
#include "fuzz.h"

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
    fuzz::read_and_write({.source = std::string(FOVEA_GOLDEN_DIR "/../fuzz/small/safetensors/") + kind + ".safetensors",
                          .config = scratch.holding(data, size)});
    return 0;
}
