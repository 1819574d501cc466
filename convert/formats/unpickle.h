// The part of Python's pickle that dictionaries of tensors are made of.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
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

/// What a pickle says. What lies in a dictionary within a dictionary is named "outer.inner".
struct Pickled {
    std::vector<PickledTensor> tensors;
    std::map<std::string, std::int64_t> numbers;  ///< whole ones, and booleans
    std::vector<std::string> texts;               ///< of a list of texts, which it may be in place of a dictionary
    bool is_list = false;
    std::size_t n_bytes = 0;  ///< of the pickle, behind which others may follow
};

/// Carries out a pickle of protocol 2 to 5 whose result is a dictionary from names to tensors, numbers and such dictionaries, or a
/// list of texts. Time and memory are linear in its bytes. Throws host::Error, beginning with `file`, at the first instruction,
/// name or value that is another.
[[nodiscard]] Pickled unpickle(std::span<const std::byte> pickle, const std::string& file);

}  // namespace fovea
