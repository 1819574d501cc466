// GGUF files: a host::Error, or a model that can be written; the same of its next-token head.
#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(gguf) {
    using namespace fovea;
    static const fuzz::Scratch scratch("source.gguf");
    const std::filesystem::path source = scratch.holding(data, size);
    fuzz::read_and_write({.source = source});
    fuzz::read_and_write({.source = source, .mtp = true});
    return 0;
}

#ifdef FOVEA_FUZZ
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
    return fovea::fuzz::mutate_front(data, size, max_size, seed, size < 8192 ? size / 2 : seed & 8 ? 1024 : 8192);
}
#endif
