// Safetensors files, beside a configuration of a small Llama: a Refusal, or a model that can be written.
#include <cstring>
#include <vector>

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fovea;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    fuzz::read_and_write({.source = fuzz::scratch().file("model.safetensors", bytes),
                          .config = FOVEA_GOLDEN_DIR "/models/llama_tied/config.json"});
    return 0;
}

#ifdef FOVEA_FUZZ
/// Half of the changes are to the header's JSON; the length before it then stays right.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
    std::uint64_t n = 0;
    if (size >= sizeof n) std::memcpy(&n, data, sizeof n);
    if (seed & 1 || size < sizeof n || n > size - sizeof n)
        return fovea::fuzz::mutate_front(data, size, max_size, seed, 64);
    std::vector<std::uint8_t> header(data + sizeof n, data + sizeof n + n), rest(data + sizeof n + n, data + size);
    header.resize(max_size - sizeof n - rest.size());
    n = fovea::fuzz::LLVMFuzzerMutate(header.data(), static_cast<std::size_t>(n), header.size());
    std::memcpy(data, &n, sizeof n);
    std::memcpy(data + sizeof n, header.data(), n);
    std::memcpy(data + sizeof n + n, rest.data(), rest.size());
    return sizeof n + n + rest.size();
}
#endif
