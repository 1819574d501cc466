// Safetensors files, beside a configuration of a small Llama: a Refusal, or a model that can be written.
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fovea;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    fuzz::read_and_write({.source = fuzz::scratch().file("model.safetensors", bytes),
                          .config = FOVEA_GOLDEN_DIR "/models/llama_tied/config.json"});
    return 0;
}
