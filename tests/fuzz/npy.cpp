// .npy files: a host::Error, or an array as long as its shape says.
#include "host/base/npy.h"

#include <vector>

#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(npy) {
    using namespace fovea;
    static const fuzz::Scratch scratch("array.npy");
    static const bool is_read_again = [] {
        const std::string path = (scratch.folder() / "written.npy").string();
        const std::uint64_t shape[] = {2, 3};
        NpyWriter writer(path, shape);
        const float numbers[] = {0, 1, 2, 3, 4, 5};
        writer.append(numbers);
        writer.close();
        const NpyArray array = read_npy(path);
        return array.shape == std::vector<std::uint64_t>{2, 3} &&
               read_ids(array) == std::vector<Token>{0, 1, 2, 3, 4, 5};
    }();
    fuzz::promise(is_read_again, "what is written is read");
    try {
        const NpyArray array = read_npy(scratch.holding(data, size).string());
        fuzz::promise(array.data.size() <= size, "elements lie in the file");
        (void)read_ids(array);
    } catch (const host::Error&) {
    }
    return 0;
}

#ifdef FOVEA_FUZZ
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
    return fovea::fuzz::mutate_front(data, size, max_size, seed, 128);
}
#endif
