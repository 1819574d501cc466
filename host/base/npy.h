// NumPy's .npy files: arrays in and out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "fovea/config.h"
#include "fovea/mapping.h"
#include "host/base/output_file.h"

namespace fovea {

/// An array, row-major, in the mapping or, where the file has it in Fortran's order, turned. `data` holds exactly the elements that `shape` calls for.
struct NpyArray {
    std::string path;
    std::string type;  ///< NumPy's spelling without the byte order: "f4", "i8", "b1"
    std::vector<std::uint64_t> shape;
    std::span<const std::byte> data;
    Mapping mapping;
    std::vector<std::byte> turned;
};

/// Throws host::Error for anything but a little-endian array of numbers or booleans in a whole file.
[[nodiscard]] NpyArray read_npy(const std::string& path);

/// The elements, which are of this type, in memory that is aligned for them.
template<class Number>
[[nodiscard]] std::vector<Number> numbers_of(const NpyArray& array) {
    std::vector<Number> numbers(array.data.size() / sizeof(Number));
    if (!numbers.empty()) std::memcpy(numbers.data(), array.data.data(), numbers.size() * sizeof(Number));
    return numbers;
}

/// The elements as ids. Throws host::Error where one is no whole number, negative, or beyond 32 bits.
[[nodiscard]] std::vector<Token> read_ids(const NpyArray& array);

/// Writes a float32 array row by row, to a file that is there when close returns.
class NpyWriter {
public:
    NpyWriter(const std::string& path, std::span<const std::uint64_t> shape);
    void append(std::span<const float> values);
    void close() { file_.close(); }

private:
    OutputFile file_;
};

}  // namespace fovea
