// Quantized folders, their configuration and their tensors: a host::Error, or a model that can be written, in the types that its
// matrices have by themselves and in float16. Either goes with one of the other that is right.
#include <filesystem>
#include <string_view>

#include "tests/fuzz/fuzz.h"

namespace {

using namespace fovea;

void read_and_write_both(const ConvertOptions& options) {
    try {
        const ModelSource source = read_source(options);
        if (count_parameters(source.config).total >= fuzz::kMostWritten) return;
        (void)write_bytes(source, write_options(options, source));
        (void)write_bytes(source, {.type = Type::f16});
    } catch (const host::Error&) {  // what a hostile folder should get
    }
}

}  // namespace

FOVEA_FUZZ_TARGET(packed) {
    static const std::string small = FOVEA_GOLDEN_DIR "/../fuzz/small/packed/";
    static const fuzz::Scratch config("config.json"), tensors("model.safetensors");
    const bool is_config = size && data[0] == '{';
    const std::string kind = is_config ? fuzz::kind_of(data, size,
                                                       {{"gptq", "gptq"},
                                                        {"awq", "awq"},
                                                        {"pack-", "words"},
                                                        {"int-", "bytes"},
                                                        {"float-", "floats"},
                                                        {"fp8", "fp8"},
                                                        {"", "bitnet"}})
                                       : fuzz::kind_of(data, size,
                                                       {{"weight_packed", "words"},
                                                        {"g_idx", "gptq"},
                                                        {"qweight", "awq"},
                                                        {"\"I8\"", "bytes"},
                                                        {"scale_inv", "fp8"},
                                                        {"F8", "floats"},
                                                        {"", "bitnet"}});
    const auto file = (is_config ? config : tensors).holding(data, size);
    ConvertOptions options;
    options.source = is_config ? std::filesystem::path(small + kind + ".safetensors") : file;
    options.config = is_config ? file : std::filesystem::path(small + kind + ".json");
    read_and_write_both(options);
    return 0;
}
