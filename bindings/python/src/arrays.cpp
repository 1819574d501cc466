#include "bindings/python/src/arrays.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "bindings/python/src/errors.h"

namespace fovea::python {
namespace {

using Code_ = nb::dlpack::dtype_code;

std::string type_in_words(nb::dlpack::dtype type) {
    const auto code = static_cast<Code_>(type.code);
    const char* name = code == Code_::Float    ? "float"
                       : code == Code_::Int    ? "int"
                       : code == Code_::UInt   ? "uint"
                       : code == Code_::Bfloat ? "bfloat"
                       : code == Code_::Bool   ? "bool"
                                               : "type ";
    return code == Code_::Bool ? name : name + std::to_string(type.bits);
}

bool is(nb::dlpack::dtype type, Code_ code, int bits) {
    return type.code == static_cast<std::uint8_t>(code) && type.bits == bits && type.lanes == 1;
}

template<class Array>
void need_cpu(const Array& array, const std::string& what, const char* wanted) {
    if (array.device_type() != nb::device::cpu::value)
        refuse_type(what, std::string(wanted) + " in the CPU's memory", "one elsewhere");
}

/// Any array of the CPU's memory with elements that lie within it.
template<class Array>
Array read_array(nb::handle object, const std::string& what, const char* wanted) {
    Array array;
    if (!nb::try_cast(object, array, false) || !array.is_valid()) refuse_type(what, wanted, type_of(object));
    need_cpu(array, what, wanted);
    return array;
}

template<class Array>
void describe_array(const Array& array, Shape& shape, std::vector<std::int64_t>& strides) {
    for (std::size_t i = 0; i < array.ndim(); ++i) {
        shape.push_back(array.shape(i));
        // Where there is one index, its step means nothing: [::-1] of one row is that row.
        strides.push_back(array.shape(i) == 1 ? std::max(array.stride(i), std::int64_t{0}) : array.stride(i));
    }
}

void check_place(const void* data, const Shape& shape, const std::vector<std::int64_t>& strides, const char* what) {
    for (const std::uint64_t n : shape)
        if (n == 0) refuse_value(what, "1 or more elements", "shape " + in_words(shape));
    for (const std::int64_t stride : strides)
        if (stride < 0) refuse_value(what, "strides of 0 or more", "a negative one");
    if (reinterpret_cast<std::uintptr_t>(data) % alignof(float))
        refuse_value(what, "float32 aligned to 4 bytes", "a misaligned array");
}

bool is_packed(const Shape& shape, const std::vector<std::int64_t>& strides) {
    std::uint64_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0; step *= shape[i])
        if (shape[i] > 1 && static_cast<std::uint64_t>(strides[i]) != step) return false;
    return true;
}

/// Whether no two indices name the same element.
bool is_one_to_one(const Shape& shape, const std::vector<std::int64_t>& strides) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> dims;
    for (std::size_t i = 0; i < shape.size(); ++i)
        if (shape[i] > 1) dims.emplace_back(static_cast<std::uint64_t>(strides[i]), shape[i]);
    std::sort(dims.begin(), dims.end());
    std::uint64_t extent = 1;
    for (const auto& [stride, n] : dims) {
        if (stride < extent) return false;
        extent = stride * (n - 1) + extent;
    }
    return true;
}

Token one_id(nb::handle item, const char* what) {
    if (!PyLong_Check(item.ptr()) && !PyIndex_Check(item.ptr())) refuse_type(what, "whole numbers", type_of(item));
    const nb::object number = nb::steal(PyNumber_Index(item.ptr()));
    if (!number.is_valid()) throw nb::python_error();
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow || value < 0 || value > std::numeric_limits<Token>::max())
        refuse_value(what, "ids from 0 to 4294967295", nb::cast<std::string>(nb::str(number)));
    return static_cast<Token>(value);
}

bool is_text(nb::handle object) {
    return PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr()) || PyByteArray_Check(object.ptr());
}

/// Token ids from an iterable without a buffer, such as a range or a pandas Series. Texts and mappings give no ids.
std::vector<Token> ids_one_by_one(nb::handle object, const char* what, const char* wanted) {
    nb::object iterator;
    if (!is_text(object) && (!nb::hasattr(object, "keys") || nb::hasattr(object, "dtype")))
        iterator = nb::steal(PyObject_GetIter(object.ptr()));
    if (!iterator.is_valid()) {
        PyErr_Clear();
        refuse_type(what, wanted, type_of(object));
    }
    std::vector<Token> ids;
    while (PyObject* item = PyIter_Next(iterator.ptr())) ids.push_back(one_id(nb::steal(item), what));
    if (PyErr_Occurred()) throw nb::python_error();
    return ids;
}

/// False where the array is not of that type.
template<class Number>
bool copy_ids(const nb::ndarray<nb::ro>& array, const char* what, std::vector<Token>& ids) {
    if (array.dtype() != nb::dtype<Number>()) return false;
    const auto* data = static_cast<const std::byte*>(array.data());
    for (std::size_t i = 0; i < ids.size(); ++i) {
        Number value;
        const std::int64_t at =
            static_cast<std::int64_t>(i) * array.stride(0) * static_cast<std::int64_t>(sizeof value);
        std::memcpy(&value, data + at, sizeof value);
        if (std::cmp_less(value, 0) || std::cmp_greater(value, std::numeric_limits<Token>::max()))
            refuse_value(what, "ids from 0 to 4294967295", std::to_string(value));
        ids[i] = static_cast<Token>(value);
    }
    return true;
}

template<class... Numbers>
bool copy_ids_of(const nb::ndarray<nb::ro>& array, const char* what, std::vector<Token>& ids) {
    return (copy_ids<Numbers>(array, what, ids) || ...);
}

/// None gives an array without data.
template<class Made>
Made read_array_of_floats(nb::handle object, const char* what, const char* wanted) {
    Made made;
    if (object.is_none()) return made;
    made.array = read_array<decltype(made.array)>(object, what, wanted);
    if (!is(made.array.dtype(), Code_::Float, 32)) refuse_type(what, wanted, type_in_words(made.array.dtype()));
    made.data = static_cast<decltype(made.data)>(made.array.data());
    describe_array(made.array, made.shape, made.strides);
    check_place(made.data, made.shape, made.strides, what);
    return made;
}

MaskArray read_elements(nb::handle object, const char* what) {
    MaskArray mask;
    constexpr const char* kWanted = "an array of booleans or float32";
    mask.array = read_array<nb::ndarray<nb::ro>>(object, what, kWanted);
    const auto* data = static_cast<const std::byte*>(mask.array.data());
    if (is(mask.array.dtype(), Code_::Bool, 8))
        mask.mask.hidden = reinterpret_cast<const std::uint8_t*>(data);
    else if (is(mask.array.dtype(), Code_::Float, 32))
        mask.mask.added = reinterpret_cast<const float*>(data);
    else
        refuse_type(what, kWanted, type_in_words(mask.array.dtype()));
    Shape shape;
    std::vector<std::int64_t> strides;
    describe_array(mask.array, shape, strides);
    check_place(mask.mask.added, shape, strides, what);
    if (!is_packed(shape, strides)) refuse_value(what, "a C-contiguous array", "other strides");
    return mask;
}

/// Gives the mask's elements that layout. False: there is none.
bool lay_out(std::optional<Mask> layout, Mask& mask) {
    if (!layout) return false;
    layout->hidden = mask.hidden, layout->added = mask.added;
    mask = *layout;
    return true;
}

Shape shape_of(const nb::ndarray<nb::ro>& array) {
    Shape shape;
    for (std::size_t i = 0; i < array.ndim(); ++i) shape.push_back(array.shape(i));
    return shape;
}

}  // namespace

std::string type_of(nb::handle object) {
    return nb::cast<std::string>(nb::borrow<nb::str>(object.type().attr("__name__")));
}

template<class Array, typename Float>
bool FloatArray<Array, Float>::packed() const {
    return is_packed(shape, strides);
}
template struct FloatArray<nb::ndarray<nb::ro>, const float>;
template struct FloatArray<nb::ndarray<>, float>;

Floats read_floats(nb::handle object, const char* what) {
    return read_array_of_floats<Floats>(object, what, "an array of float32");
}

Floats read_packed(nb::handle object, const char* what, std::size_t n_dims) {
    Floats floats = read_floats(object, what);
    if (!floats.data) return floats;
    if (floats.shape.size() != n_dims)
        refuse_value(what, std::to_string(n_dims) + " dimensions", "shape " + in_words(floats.shape));
    if (!floats.packed()) refuse_value(what, "a C-contiguous array", "other strides");
    return floats;
}

Output read_output(nb::handle object, const char* what, const Shape& shape, bool strided) {
    const Output out = read_array_of_floats<Output>(object, what, "a writable array of float32");
    if (!out.data) return out;
    if (out.shape != shape) refuse_value(what, "shape " + in_words(shape), in_words(out.shape));
    if (!strided && !out.packed()) refuse_value(what, "a C-contiguous array", "other strides");
    if (strided && !(is_one_to_one(out.shape, out.strides) && (out.shape.back() == 1 || out.strides.back() == 1)))
        refuse_value(what, "a last dimension without gaps and no two elements in one place", "other strides");
    return out;
}

nb::list ids_list(std::span<const Token> ids) {
    nb::list list;
    for (const Token id : ids) list.append(nb::int_(id));
    return list;
}

std::vector<Token> read_ids(nb::handle object, const char* what) {
    std::vector<Token> ids;
    if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
        for (nb::handle item : nb::borrow(object)) ids.push_back(one_id(item, what));
        return ids;
    }
    constexpr const char* kWanted = "a list or an array of whole numbers";
    nb::ndarray<nb::ro> array;
    if (is_text(object) || !nb::try_cast(object, array, false) || !array.is_valid())
        return ids_one_by_one(object, what, kWanted);
    need_cpu(array, what, kWanted);
    const Shape shape = shape_of(array);
    if (shape.size() != 1) refuse_value(what, "1 dimension", "shape " + in_words(shape));
    ids.resize(shape[0]);
    const bool known = copy_ids_of<std::uint32_t, std::int64_t, std::int32_t, std::uint64_t, std::uint16_t,
                                   std::int16_t, std::uint8_t, std::int8_t>(array, what, ids);
    if (!known) refuse_type(what, kWanted, type_in_words(array.dtype()));
    return ids;
}

MaskArray read_mask(nb::handle object, const char* what, const AttentionSize& size) {
    if (object.is_none()) return {};
    MaskArray result = read_elements(object, what);
    const Shape given = shape_of(result.array);
    if (given.empty()) refuse_value(what, "1 to 4 dimensions, the last of keys", "[]");
    if (given.back() == 1 && size.n_keys > 1)
        refuse_value(what, "a last dimension of " + std::to_string(size.n_keys) + " keys", in_words(given));
    // Three dimensions are of sequences: of heads alone only where there is one sequence.
    const bool by_heads = given.size() == 3 && given[0] != 1 && given[0] != size.n_sequences &&
                          given[0] != size.n_sequences * size.n_heads;
    if (by_heads || !lay_out(lay_out_mask(given, size), result.mask))
        refuse_value(what,
                     "at most " + in_words(Shape{size.n_sequences, size.n_heads, size.n_queries, size.n_keys}) +
                         " or 1 in place of any but the last",
                     in_words(given));
    return result;
}

MaskArray read_padding(nb::handle object, const char* what, const AttentionSize& size) {
    if (object.is_none()) return {};
    MaskArray result = read_elements(object, what);
    const Shape given = shape_of(result.array);
    if (!lay_out(lay_out_padding(given, size), result.mask))
        refuse_value(what, in_words(Shape{size.n_sequences, size.n_keys}), in_words(given));
    return result;
}

}  // namespace fovea::python
