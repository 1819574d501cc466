// Safetensors files, and indices of such files, beside a configuration that goes with one of their names: a host::Error, or
// a model that can be written.
#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(safetensors) {
    using namespace fovea;
    static const fuzz::Scratch one("one.safetensors"), index("model.safetensors.index.json");
    static const bool has_shard = std::filesystem::copy_file(
        FOVEA_GOLDEN_DIR "/../fuzz/small/safetensors/llama.safetensors", index.folder() / "llama.safetensors");
    fuzz::promise(has_shard, "there is a file for the index to name");
    const bool is_index = size && data[0] == '{';
    const std::string kind = fuzz::kind_of(data, size,
                                           {{"wte", "gpt2"},
                                            {"LayerNorm", "bert"},
                                            {"q_norm", "qwen3"},
                                            {"linear1", "transformer"},
                                            {"in_proj", "multihead"},
                                            {"q_proj.bias", "qwen2"},
                                            {"layers", "llama"},
                                            {"q_proj", "attention"}});
    const std::filesystem::path file = (is_index ? index : one).holding(data, size);
    fuzz::read_and_write({.source = is_index ? index.folder() : file,
                          .config = std::string(FOVEA_GOLDEN_DIR "/../fuzz/small/config_json/") + kind});
    return 0;
}

#ifdef FOVEA_FUZZ
/// Half of the changes to a file are to the header's JSON; the length before it then stays right.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
    if (size && data[0] == '{') return fovea::fuzz::LLVMFuzzerMutate(data, size, max_size);
    std::uint64_t n = 0;
    if (size >= sizeof n) std::memcpy(&n, data, sizeof n);
    const bool has_header = size >= sizeof n && n <= size - sizeof n;
    if (seed & 1 || !has_header || (!n && size == max_size))  // no room for a header is none to change
        return fovea::fuzz::mutate_front(data, size, max_size, seed, 64);
    std::vector<std::uint8_t> header(data + sizeof n, data + sizeof n + n), rest(data + sizeof n + n, data + size);
    header.resize(max_size - sizeof n - rest.size());
    n = fovea::fuzz::LLVMFuzzerMutate(header.data(), static_cast<std::size_t>(n), header.size());
    std::memcpy(data, &n, sizeof n);
    const auto end = std::copy_n(header.begin(), n, data + sizeof n);  // unlike memcpy, from an empty vector too
    std::ranges::copy(rest, end);
    return sizeof n + n + rest.size();
}
#endif
