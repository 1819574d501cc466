// Arrays of the caller's, read and written where they are: whatever has the buffer protocol or DLPack.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bindings/python/src/errors.h"
#include "fovea/config.h"
#include "fovea/encode.h"
#include "host/base/arrays.h"

namespace fovea::python {

namespace nb = nanobind;
using Shape = std::vector<std::uint64_t>;

/// The name of an object's class.
[[nodiscard]] std::string type_of(nb::handle object);

/// An array of float32 in this machine's memory. Keeps the object it belongs to; destroyed with the GIL.
template<class Array, typename Float>
struct FloatArray {
    Array array;
    Float* data = nullptr;
    Shape shape;
    std::vector<std::int64_t> strides;  ///< in elements

    /// From the first element to the last.
    [[nodiscard]] std::span<Float> span() const {
        std::uint64_t n = data != nullptr;
        for (std::size_t i = 0; i < shape.size(); ++i) n += static_cast<std::uint64_t>(strides[i]) * (shape[i] - 1);
        return {data, static_cast<std::size_t>(n)};
    }
    [[nodiscard]] bool packed() const;  ///< rows one after the other
};
/// What is read, and what results are written to.
using Floats = FloatArray<nb::ndarray<nb::ro>, const float>;
using Output = FloatArray<nb::ndarray<>, float>;

/// TypeError where `object` is no array of float32, ValueError where it is empty, misaligned or has a negative stride.
/// `what` names the parameter. None gives an array without data.
[[nodiscard]] Floats read_floats(nb::handle object, const char* what);
/// The same of rows that lie one after the other, in `n_dims` dimensions.
[[nodiscard]] Floats read_packed(nb::handle object, const char* what, std::size_t n_dims);

/// A writable array of exactly that shape, packed unless `strided`, whose elements do not overlap. None: an empty span.
[[nodiscard]] Output read_output(nb::handle object, const char* what, const Shape& shape, bool strided = false);

/// Token ids, copied: what is checked is what is computed, whatever other threads write. A list, an array of one dimension
/// or whatever gives whole numbers one by one, each in [0, 2^32).
[[nodiscard]] std::vector<Token> read_ids(nb::handle object, const char* what);
[[nodiscard]] nb::list ids_list(std::span<const Token> ids);

/// A mask and the array it reads.
struct MaskArray {
    nb::ndarray<nb::ro> array;
    Mask mask;
};
/// Booleans hide where they are true, float32 is added. [query, key], [n_sequences or n_heads·n_sequences, query, key] or
/// [sequence, head, query, key], where any dimension but the last may be 1. None: no mask.
[[nodiscard]] MaskArray read_mask(nb::handle object, const char* what, const AttentionSize& size);
/// [sequence, key] or [key].
[[nodiscard]] MaskArray read_padding(nb::handle object, const char* what, const AttentionSize& size);

}  // namespace fovea::python
