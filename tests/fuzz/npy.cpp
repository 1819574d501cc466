// .npy files: a Refusal, or an array as long as its shape says.
#include "npy.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fovea;
    static const fuzz::Scratch scratch("array.npy");
    try {
        const NpyArray array = read_npy(scratch.holding(data, size).string());
        fuzz::promise(array.data.size() <= size, "elements lie in the file");
        (void)read_ids(array);
    } catch (const Refusal&) {
    }
    return 0;
}

#ifdef FOVEA_FUZZ
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
    return fovea::fuzz::mutate_front(data, size, max_size, seed, 128);
}
#endif
