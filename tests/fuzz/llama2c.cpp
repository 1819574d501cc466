// llama2.c checkpoints: a host::Error, or a model that can be written.
#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(llama2c) {
    using namespace fovea;
    static const fuzz::Scratch scratch("source.bin");
    fuzz::read_and_write({.source = scratch.holding(data, size)});
    return 0;
}

#ifdef FOVEA_FUZZ
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
    return fovea::fuzz::mutate_front(data, size, max_size, seed, 64);
}
#endif
