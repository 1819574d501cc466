// Checkpoints of torch.save, and pickles alone: a host::Error, or tensors that lie within the file.
#include "convert/formats/torch_pickle.h"
#include "convert/formats/unpickle.h"
#include "host/base/error.h"
#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(torch_file) {
    using namespace fovea;
    static const fuzz::Scratch file("weights.bin");
    constexpr std::uint8_t kProtocol = 0x80;  // a pickle's first byte
    try {
        if (size && data[0] == kProtocol) {
            (void)unpickle(std::as_bytes(std::span(data, size)), "a pickle");
            return 0;
        }
        const Safetensors tensors = read_torch_file(file.holding(data, size));
        for (const auto& [name, tensor] : tensors.tensors) {
            const auto bytes = tensors.mappings[tensor.file].bytes();
            fuzz::promise(tensor.data >= bytes.data() && tensor.bytes <= bytes.size() &&
                              tensor.data + tensor.bytes <= bytes.data() + bytes.size(),
                          "a tensor lies within its file");
        }
    } catch (const host::Error&) {
    }
    return 0;
}
