// An adapter's folder, its configuration and its tensors, over a small model: a host::Error, or a model that can be written. A
// configuration goes with tensors that are right, and the reverse.
#include <filesystem>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fovea;
    static const std::filesystem::path small = FOVEA_GOLDEN_DIR "/../fuzz/small/lora/";
    static const std::filesystem::path own = fuzz::Scratch("none").folder();  // made anew by the two below
    static const bool have_folders =
        std::filesystem::create_directories(own / "config") && std::filesystem::create_directories(own / "tensors");
    static const fuzz::Scratch config("config/adapter_config.json"), tensors("tensors/adapter_model.safetensors");
    static const bool have_others =
        std::filesystem::copy_file(small / "llama.safetensors", own / "config/adapter_model.safetensors") &&
        std::filesystem::copy_file(small / "llama.json", own / "tensors/adapter_config.json");
    fuzz::promise(have_folders && have_others, "both halves are there");
    const bool is_config = size && data[0] == '{';
    const auto file = (is_config ? config : tensors).holding(data, size);
    ConvertOptions options;
    options.source = FOVEA_GOLDEN_DIR "/../fuzz/small/safetensors/llama.safetensors";
    options.config = FOVEA_GOLDEN_DIR "/../fuzz/small/config_json/llama";
    options.loras = {{file.parent_path()}};
    fuzz::read_and_write(options);
    return 0;
}
