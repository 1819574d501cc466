// The format: NumPy enhancement proposal 1. A magic number, a version, the length of a header, the header (a Python
// dictionary as text, padded so that the data starts at a multiple of 64 bytes), the elements.
#include "host/base/npy.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {
namespace {

constexpr char kNpyMagic[] = "\x93NUMPY";
constexpr std::size_t kMagicBytes = 6;
constexpr std::size_t kMaxDims = 32;

/// Reads the dictionary's values; each function takes the text from behind the key on.
class Header {
public:
    Header(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

    [[nodiscard]] std::string type() const {
        const std::string value = after("'descr'");
        const std::size_t end = value.size() > 1 ? value.find('\'', 1) : std::string::npos;
        if (value.empty() || value[0] != '\'' || end == std::string::npos) refuse("a 'descr' of one type");
        const std::string type = value.substr(1, end - 1);
        if (type.size() < 3 || (type[0] != '<' && type[0] != '|')) refuse("little-endian numbers");
        return type.substr(1);
    }

    [[nodiscard]] bool is_row_major() const {
        const std::string order = after("'fortran_order'");
        if (!order.starts_with("False") && !order.starts_with("True")) refuse("a 'fortran_order' of True or False");
        return order.starts_with("False");
    }

    [[nodiscard]] std::vector<std::uint64_t> shape() const {
        const std::string value = after("'shape'");
        const std::size_t end = value.find(')');
        if (value.empty() || value[0] != '(' || end == std::string::npos) refuse("a 'shape'");
        std::vector<std::uint64_t> shape;
        bool in_number = false;
        for (const char c : value.substr(1, end - 1)) {
            if (c == ' ' || c == ',') {
                in_number = false;
                continue;
            }
            if (c < '0' || c > '9') refuse("a 'shape' of whole numbers");
            if (!in_number) shape.push_back(0);
            in_number = true;
            if (shape.size() > kMaxDims || shape.back() > (std::uint64_t{1} << 50)) refuse("a smaller 'shape'");
            shape.back() = shape.back() * 10 + static_cast<std::uint64_t>(c - '0');
        }
        return shape;
    }

    [[noreturn]] void refuse(const char* wanted) const {
        throw host::Error(path_ + ": .npy header: expected " + wanted + ", got " + one_line(text_.substr(0, 100)));
    }

private:
    [[nodiscard]] std::string after(const char* key) const {
        const std::size_t at = text_.find(key);
        if (at == std::string::npos) return {};
        const std::size_t value = text_.find_first_not_of(": ", at + std::strlen(key));
        return value == std::string::npos ? std::string{} : text_.substr(value);
    }

    std::string path_, text_;
};

std::uint64_t element_bytes(const std::string& type) {
    for (const char* known : {"b1", "i1", "u1", "i2", "u2", "f2", "i4", "u4", "f4", "i8", "u8", "f8"})
        if (type == known) return static_cast<std::uint64_t>(known[1] - '0');
    return 0;
}

template<class Number>
std::vector<Token> ids_of(const NpyArray& array) {
    std::vector<Token> ids;
    for (const Number value : numbers_of<Number>(array)) {
        const bool fits = value >= 0 && static_cast<double>(value) <= 4294967295.0;  // before the cast: NaN does not
        ids.push_back(fits ? static_cast<Token>(value) : 0);
        if (!fits || static_cast<Number>(ids.back()) != value)
            throw host::Error(array.path + ": token ids: expected whole numbers from 0 to 4294967295, got " +
                              std::to_string(value));
    }
    return ids;
}

/// Elements whose first index is the fastest (Fortran's order), in the order whose last one is.
std::vector<std::byte> row_major(std::span<const std::byte> data, std::span<const std::uint64_t> shape,
                                 std::uint64_t element) {
    std::vector<std::byte> turned(data.size());
    std::vector<std::uint64_t> index(shape.size());
    for (std::size_t to = 0; to < turned.size(); to += static_cast<std::size_t>(element)) {
        std::uint64_t from = 0;
        for (std::size_t d = shape.size(); d-- > 0;) from = from * shape[d] + index[d];
        std::memcpy(turned.data() + to, data.data() + from * element, static_cast<std::size_t>(element));
        for (std::size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
    }
    return turned;
}

}  // namespace

NpyArray read_npy(const std::string& path) {
    NpyArray array;
    array.path = path;
    require(map_file(path.c_str(), array.mapping), path);
    const std::span<const std::byte> bytes = array.mapping.bytes();
    if (bytes.size() < 12 || std::memcmp(bytes.data(), kNpyMagic, kMagicBytes) != 0)
        throw host::Error(path + ": expected an .npy file, got another kind");
    const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
    const bool is_first_version = byte(6) == 1;
    const std::size_t length_bytes = is_first_version ? 2 : 4;
    std::size_t header_bytes = byte(8) | byte(9) << 8;
    if (!is_first_version) header_bytes |= byte(10) << 16 | byte(11) << 24;
    const std::size_t data_begin = 8 + length_bytes + header_bytes;
    if (data_begin > bytes.size())
        throw host::Error(path + ": bytes: expected " + std::to_string(data_begin) + ", got " +
                          std::to_string(bytes.size()));

    const char* text = reinterpret_cast<const char*>(bytes.data()) + 8 + length_bytes;
    const Header header(path, std::string(text, header_bytes));
    array.type = header.type();
    array.shape = header.shape();
    std::uint64_t wanted = element_bytes(array.type);
    if (!wanted) header.refuse("integers, floats or booleans");
    const std::uint64_t had = bytes.size() - data_begin;
    if (std::count(array.shape.begin(), array.shape.end(), 0u)) wanted = 0;
    for (const std::uint64_t n : array.shape) {
        if (n && wanted > had / n) header.refuse("no more elements than the file holds");
        wanted *= n;
    }
    if (wanted != had)
        throw host::Error(path + ": data bytes: expected " + std::to_string(wanted) + ", got " + std::to_string(had));
    array.data = bytes.subspan(data_begin);
    if (!header.is_row_major() && array.shape.size() > 1) {
        array.turned = row_major(array.data, array.shape, element_bytes(array.type));
        array.data = array.turned;
    }
    return array;
}

std::vector<Token> read_ids(const NpyArray& array) {
    if (array.type == "i8") return ids_of<std::int64_t>(array);
    if (array.type == "u8") return ids_of<std::uint64_t>(array);
    if (array.type == "i4") return ids_of<std::int32_t>(array);
    if (array.type == "u4") return ids_of<std::uint32_t>(array);
    if (array.type == "i2") return ids_of<std::int16_t>(array);
    if (array.type == "u2") return ids_of<std::uint16_t>(array);
    if (array.type == "u1") return ids_of<std::uint8_t>(array);
    if (array.type == "f4") return ids_of<float>(array);
    if (array.type == "f8") return ids_of<double>(array);
    throw host::Error(array.path + ": token ids: expected whole numbers, got " + array.type);
}

NpyWriter::NpyWriter(const std::string& path, std::span<const std::uint64_t> shape) : file_(path) {
    std::string sizes;
    for (const std::uint64_t n : shape) sizes += std::to_string(n) + ", ";
    if (shape.size() > 1) sizes.resize(sizes.size() - 2);  // "(3,)" but "(3, 4)"
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + sizes + "), }";
    header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
    header += '\n';
    const char front[] = {1, 0, static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
    file_.stream().write(kNpyMagic, kMagicBytes).write(front, sizeof front) << header;
}

void NpyWriter::append(std::span<const float> values) {
    file_.stream().write(reinterpret_cast<const char*>(values.data()),
                         static_cast<std::streamsize>(values.size_bytes()));
}

}  // namespace fovea
