#include "host/base/arrays.h"

#include <algorithm>
#include <cstring>

#include "host/base/elements.h"
#include "host/base/error.h"
#include "host/base/npy.h"
#include "host/base/words.h"

namespace fovea {
namespace {

template<class Number>
std::vector<float> widened(const NpyArray& array) {
    const std::vector<Number> numbers = numbers_of<Number>(array);
    return {numbers.begin(), numbers.end()};
}

std::vector<float> floats_of(const NpyArray& array) {
    if (array.type == "f4") return numbers_of<float>(array);
    if (array.type == "f8") return widened<double>(array);
    if (array.type == "i4") return widened<std::int32_t>(array);
    if (array.type == "i8") return widened<std::int64_t>(array);
    if (array.type != "f2")
        throw host::Error(array.path + ": elements: expected f2, f4, f8, i4 or i8, got " + array.type);
    std::vector<float> out;
    for (const std::uint16_t half : numbers_of<std::uint16_t>(array)) out.push_back(from_f16(half));
    return out;
}

NpyArray read_some(const std::string& path) {
    NpyArray array = read_npy(path);
    if (array.data.empty())
        throw host::Error(path + ": elements: expected 1 or more, got shape " + in_words(array.shape));
    return array;
}

/// The elements as bytes that hide where the array holds booleans, else as numbers; laid out for `size`. `wanted` says of which shapes.
MaskArray read_elements(const std::string& path, bool keep, const AttentionSize& size, decltype(lay_out_mask)& lay_out,
                        const std::string& wanted) {
    if (path.empty()) return {};
    const NpyArray array = read_some(path);
    const std::optional<Mask> layout = lay_out(array.shape, size);
    if (!layout) throw host::Error(path + ": " + wanted + ", got " + in_words(array.shape));
    MaskArray mask{.hidden = {}, .added = {}, .mask = *layout};
    if (array.type != "b1") {
        if (!array.type.starts_with('f') || keep)
            throw host::Error(path + ": elements: expected " +
                              (keep ? "booleans to keep by" : "booleans that hide or floats that are added") +
                              ", got " + array.type);
        mask.added = floats_of(array);
        mask.mask.added = mask.added.data();
        return mask;
    }
    for (const std::uint8_t element : numbers_of<std::uint8_t>(array)) mask.hidden.push_back((element != 0) != keep);
    mask.mask.hidden = mask.hidden.data();
    return mask;
}

}  // namespace

std::string in_words(std::span<const std::uint64_t> shape) { return shape_words({shape.begin(), shape.end()}); }

FloatArray read_floats(const std::string& path) {
    if (path.empty()) return {};
    const NpyArray array = read_some(path);
    return {path, array.shape, floats_of(array)};
}

FloatArray swap_first_two(const FloatArray& array) {
    FloatArray swapped{array.path, array.shape, std::vector<float>(array.data.size())};
    std::swap(swapped.shape[0], swapped.shape[1]);
    const std::uint64_t n = array.shape[0], m = array.shape[1], inner = array.data.size() / (n * m);
    for (std::uint64_t i = 0; i < n; ++i)
        for (std::uint64_t j = 0; j < m; ++j)
            std::copy_n(array.data.data() + (i * m + j) * inner, inner, swapped.data.data() + (j * n + i) * inner);
    return swapped;
}

std::vector<std::uint32_t> read_lengths(const std::string& path, std::uint64_t n) {
    if (path.empty()) return {};
    const NpyArray array = read_npy(path);
    std::vector<std::uint32_t> lengths = read_ids(array);
    if (lengths.size() != n)
        throw host::Error(path + ": lengths: expected " + std::to_string(n) + ", got shape " + in_words(array.shape));
    return lengths;
}

std::optional<Mask> lay_out_mask(std::vector<std::uint64_t> shape, const AttentionSize& size) {
    const std::uint64_t merged = size.n_sequences * size.n_heads;
    if (shape.size() == 3 && shape[0] == merged) shape = {size.n_sequences, size.n_heads, shape[1], shape[2]};
    if (shape.size() == 3 && shape[0] == size.n_sequences) shape.insert(shape.begin() + 1, 1);
    while (shape.size() < 4) shape.insert(shape.begin(), 1);
    const std::uint64_t wanted[] = {size.n_sequences, size.n_heads, size.n_queries};
    bool fits = shape.size() == 4 && shape[3] <= size.n_keys;
    for (int i = 0; i < 3; ++i) fits = fits && (shape[i] == 1 || shape[i] == wanted[i]);
    if (!fits) return std::nullopt;
    Mask mask;
    mask.n_keys = static_cast<std::uint32_t>(shape[3]);
    mask.query_stride = shape[2] > 1 ? shape[3] : 0;
    mask.head_stride = shape[1] > 1 ? shape[2] * shape[3] : 0;
    mask.sequence_stride = shape[0] > 1 ? shape[1] * shape[2] * shape[3] : 0;
    return mask;
}

std::optional<Mask> lay_out_padding(std::vector<std::uint64_t> shape, const AttentionSize& size) {
    if (shape.size() == 1) shape.insert(shape.begin(), 1);
    if (shape.size() != 2 || shape[0] != size.n_sequences || shape[1] != size.n_keys) return std::nullopt;
    Mask mask;
    mask.n_keys = static_cast<std::uint32_t>(shape[1]);
    mask.sequence_stride = shape[1];
    return mask;
}

MaskArray read_mask(const std::string& path, bool keep, const AttentionSize& size) {
    return read_elements(path, keep, size, lay_out_mask,
                         "mask: expected at most " +
                             in_words(std::vector{size.n_sequences, size.n_heads, size.n_queries, size.n_keys}) +
                             " or dimensions of 1");
}

MaskArray read_padding(const std::string& path, const AttentionSize& size) {
    return read_elements(path, false, size, lay_out_padding,
                         "padding mask: expected " + in_words(std::vector{size.n_sequences, size.n_keys}));
}

void write_npy(const std::string& path, std::span<const std::uint64_t> shape, std::span<const float> data) {
    NpyWriter file(path, shape);
    file.append(data);
    file.close();
}

}  // namespace fovea
