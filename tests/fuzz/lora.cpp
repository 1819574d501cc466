// An adapter's folder, its configuration and its tensors, over a small model: a host::Error, or a model that can be written. A
// configuration goes with tensors that are right, and the reverse. An adapter's GGUF file: a host::Error, or products in it.
#include <cstring>
#include <filesystem>

#include "convert/sources/gguf_lora.h"
#include "convert/sources/lora.h"
#include "tests/fuzz/fuzz.h"

namespace {

/// The first row and the last of each product, which lie in the file.
void read_products(const std::filesystem::path& path) try {
    const fovea::GgufLora lora = fovea::read_gguf_lora(path);
    for (const auto& [name, low] : lora.products)
        for (const std::uint64_t row : {std::uint64_t{0}, low.n_rows - 1}) {
            std::vector<float> out(low.n_cols);
            fovea::add_low_rank(low, row, out.data());
        }
} catch (const fovea::host::Error&) {
}

}  // namespace

FOVEA_FUZZ_TARGET(lora) {
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
    static const fuzz::Scratch gguf("adapter.gguf");
    if (size >= 4 && std::memcmp(data, "GGUF", 4) == 0) {
        read_products(gguf.holding(data, size));
        return 0;
    }
    const bool is_config = size && data[0] == '{';
    const auto file = (is_config ? config : tensors).holding(data, size);
    ConvertOptions options;
    options.source = FOVEA_GOLDEN_DIR "/../fuzz/small/safetensors/llama.safetensors";
    options.config = FOVEA_GOLDEN_DIR "/../fuzz/small/config_json/llama";
    options.loras = {{file.parent_path()}};
    fuzz::read_and_write(options);
    return 0;
}
