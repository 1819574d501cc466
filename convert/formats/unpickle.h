// The part of Python's pickle that a dictionary of tensors is made of.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fovea {

/// A tensor as a pickle speaks of it. Nothing has been compared with the storage yet.
struct PickledTensor {
    std::string name;
    std::string storage;       ///< which one: the name of its entry
    std::string storage_type;  ///< "FloatStorage"
    std::uint64_t storage_elements = 0;
    std::uint64_t offset = 0;  ///< elements
    std::vector<std::uint64_t> shape, strides;
};

/// Carries out a pickle of protocol 2 to 5 whose result is a dictionary from names to tensors. Time and memory are linear
/// in its bytes. Throws host::Error, beginning with `file`, at the first instruction, name or value that is another.
[[nodiscard]] std::vector<PickledTensor> unpickle_tensors(std::span<const std::byte> pickle, const std::string& file);

}  // namespace fovea
