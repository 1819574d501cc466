#include "convert/formats/gguf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "host/base/error.h"

namespace fovea {
namespace {

constexpr std::uint64_t kMostKeyBytes = 65535, kMostDimensions = 4;
constexpr std::uint64_t kNoSum = std::numeric_limits<std::uint64_t>::max();

/// Bytes of a number; 0 for a text, a list and kinds that are none.
std::uint64_t kind_bytes(GgufKind kind) {
    static constexpr std::uint8_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    const auto i = static_cast<std::size_t>(kind);
    return i < std::size(kBytes) ? kBytes[i] : 0;
}

template<class T>
T load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

/// A number as its sign and magnitude, if it is a whole one.
struct Whole {
    bool is_whole = false, negative = false;
    std::uint64_t magnitude = 0;
};
Whole whole(GgufKind kind, const std::byte* at) {
    const auto of = [](auto value) {
        const bool negative = value < 0;
        const auto wide = static_cast<std::uint64_t>(value);
        return Whole{true, negative, negative ? 0 - wide : wide};
    };
    switch (kind) {
        case GgufKind::u8: return of(load<std::uint8_t>(at));
        case GgufKind::i8: return of(load<std::int8_t>(at));
        case GgufKind::u16: return of(load<std::uint16_t>(at));
        case GgufKind::i16: return of(load<std::int16_t>(at));
        case GgufKind::u32: return of(load<std::uint32_t>(at));
        case GgufKind::i32: return of(load<std::int32_t>(at));
        case GgufKind::u64: return of(load<std::uint64_t>(at));
        case GgufKind::i64: return of(load<std::int64_t>(at));
        default: return {};
    }
}

double as_number(GgufKind kind, const std::byte* at) {
    if (kind == GgufKind::f32) return load<float>(at);
    if (kind == GgufKind::f64) return load<double>(at);
    const Whole number = whole(kind, at);
    if (!number.is_whole) return std::nan("");
    return (number.negative ? -1.0 : 1.0) * static_cast<double>(number.magnitude);
}

std::string in_words(double value) {
    std::string words = std::to_string(value);
    while (words.find('.') != std::string::npos && (words.back() == '0' || words.back() == '.')) {
        const bool point = words.back() == '.';
        words.pop_back();
        if (point) break;
    }
    return words;
}

/// A value as an error shows it.
std::string in_words(const GgufValue& value) {
    const auto* text = reinterpret_cast<const char*>(value.bytes.data());
    constexpr std::size_t kMostShown = 80;
    switch (value.kind) {
        case GgufKind::text:
            return "\"" + std::string(text, std::min(value.bytes.size(), kMostShown)) +
                   (value.bytes.size() > kMostShown ? "...\"" : "\"");
        case GgufKind::list: return "a list of " + std::to_string(value.n);
        case GgufKind::boolean: return value.bytes[0] == std::byte{0} ? "false" : "true";
        case GgufKind::f32:
        case GgufKind::f64: return in_words(as_number(value.kind, value.bytes.data()));
        default: {
            const Whole number = whole(value.kind, value.bytes.data());
            return (number.negative ? "-" : "") + std::to_string(number.magnitude);
        }
    }
}

}  // namespace

/// Goes through the header once. Nothing is sized by a number of the file: entries are added as they are found.
class GgufParser {
public:
    explicit GgufParser(Gguf& file) : file_(file), bytes_(file.mapping_.bytes()) {}

    void parse() {
        read_header();
        for (std::uint64_t i = 0; i < n_values_; ++i) read_value(i);
        if (file_.has("general.alignment")) alignment_ = file_.count("general.alignment", 1, 1u << 20);
        if ((alignment_ & (alignment_ - 1)) != 0 || alignment_ % 8 != 0)
            file_.refuse("general.alignment", "a power of two of at least 8");
        for (std::uint64_t i = 0; i < n_tensors_; ++i) read_tensor(i);
        place_tensors();
    }

private:
    [[noreturn]] void refuse(const std::string& why) const { throw host::Error(file_.path_.string() + ": " + why); }

    std::span<const std::byte> take(std::uint64_t n, const std::string& place) {
        if (n > bytes_.size() - at_)
            refuse(place + ": expected " + std::to_string(n) + " more bytes, got " +
                   std::to_string(bytes_.size() - at_));
        const auto taken = bytes_.subspan(at_, n);
        at_ += n;
        return taken;
    }
    template<class T>
    T take_number(const std::string& place) {
        return load<T>(take(sizeof(T), place).data());
    }
    std::string_view take_text(std::uint64_t most, const std::string& place) {
        const auto n = take_number<std::uint64_t>(place);
        if (n > most) refuse(place + ": expected at most " + std::to_string(most) + " bytes, got " + std::to_string(n));
        const auto text = take(n, place);
        return {reinterpret_cast<const char*>(text.data()), text.size()};
    }

    void read_header() {
        const auto magic = take(4, "header");
        if (std::memcmp(magic.data(), "GGUF", 4) != 0) refuse("expected a GGUF file, got another kind");
        const auto version = take_number<std::uint32_t>("header");
        if (version != 0 && (version & 0xffffu) == 0)
            refuse("expected a little-endian GGUF file, got a big-endian one");
        if (version != 2 && version != 3) refuse("expected GGUF version 2 or 3, got " + std::to_string(version));
        n_tensors_ = take_number<std::uint64_t>("header");
        n_values_ = take_number<std::uint64_t>("header");
    }

    GgufKind take_kind(const std::string& place) {
        const auto number = take_number<std::uint32_t>(place);
        if (number > static_cast<std::uint32_t>(GgufKind::f64))
            refuse(place + ": expected a kind of value from 0 to 12, got " + std::to_string(number));
        return static_cast<GgufKind>(number);
    }

    /// The bytes of n texts or numbers, all of which are there.
    std::span<const std::byte> take_elements(GgufKind kind, std::uint64_t n, const std::string& place) {
        if (const std::uint64_t size = kind_bytes(kind); size != 0) {
            if (n > bytes_.size() / size)
                refuse(place + ": expected " + std::to_string(n) + " numbers, got " +
                       std::to_string(bytes_.size() - at_) + " bytes");
            return take(n * size, place);
        }
        const std::size_t begin = at_;
        for (std::uint64_t i = 0; i < n; ++i) take_text(bytes_.size(), place);
        return bytes_.subspan(begin, at_ - begin);
    }

    void read_value(std::uint64_t index) {
        const std::string number = "value " + std::to_string(index) + " of " + std::to_string(n_values_);
        const std::string_view key = take_text(kMostKeyBytes, number);
        const std::string place = key.empty() ? number : std::string(key);
        GgufValue value;
        value.kind = take_kind(place);
        if (value.kind == GgufKind::list) {
            value.element = take_kind(place);
            if (value.element == GgufKind::list)
                refuse(place + ": expected a list of numbers or texts, got one of lists");
            value.n = take_number<std::uint64_t>(place);
            value.bytes = take_elements(value.element, value.n, place);
        } else if (value.kind == GgufKind::text) {
            const std::string_view text = take_text(bytes_.size(), place);
            value.bytes = std::as_bytes(std::span(text));
        } else {
            value.bytes = take(kind_bytes(value.kind), place);
        }
        if (!file_.values_.emplace(key, value).second) refuse(place + ": expected once, got twice");
    }

    void read_tensor(std::uint64_t index) {
        const std::string number = "tensor " + std::to_string(index) + " of " + std::to_string(n_tensors_);
        const std::string_view name = take_text(kMostKeyBytes, number);
        const std::string place = name.empty() ? number : "tensor " + std::string(name);
        const auto n_dimensions = take_number<std::uint32_t>(place);
        if (n_dimensions < 1 || n_dimensions > kMostDimensions)
            refuse(place + ": expected 1 to 4 dimensions, got " + std::to_string(n_dimensions));
        GgufTensor tensor;
        for (std::uint32_t i = 0; i < n_dimensions; ++i) tensor.shape.push_back(take_number<std::uint64_t>(place));
        std::reverse(tensor.shape.begin(), tensor.shape.end());
        tensor.shape = without_outer_ones(std::move(tensor.shape));
        const auto type = take_number<std::uint32_t>(place);
        tensor.blocks = find_gguf_blocks(type);
        if (tensor.blocks == nullptr)
            refuse(place + ": expected " + known_gguf_blocks() + ", got type " + std::to_string(type));
        const auto offset = take_number<std::uint64_t>(place);
        if (offset % alignment_ != 0)
            refuse(place + ": expected an offset that is a multiple of " + std::to_string(alignment_) + ", got " +
                   std::to_string(offset));
        const std::uint64_t bytes = tensor_bytes(tensor, place);
        if (offset > kNoSum - bytes) refuse(place + ": expected an end below 2^64, got a larger one");
        const auto added = file_.tensors_.emplace(name, std::move(tensor));
        if (!added.second) refuse(place + ": expected once, got twice");
        places_.push_back({offset, offset + bytes, &*added.first});
    }

    std::uint64_t tensor_bytes(const GgufTensor& tensor, const std::string& place) const {
        const std::uint64_t n_cols = tensor.shape.back(), block = tensor.blocks->n_elements;
        if (n_cols % block != 0)
            refuse(place + ": expected rows of whole " + tensor.blocks->name + " blocks of " + std::to_string(block) +
                   ", got " + std::to_string(n_cols) + " columns");
        std::uint64_t bytes = tensor.blocks->n_bytes;
        for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
            const std::uint64_t size = i + 1 < tensor.shape.size() ? tensor.shape[i] : n_cols / block;
            if (size == 0) refuse(place + ": expected sizes of at least 1, got 0");
            if (bytes > kNoSum / size) refuse(place + ": expected a size below 2^64 bytes, got a larger one");
            bytes *= size;
        }
        if (bytes > kNoSum - tensor.blocks->n_scale_bytes)
            refuse(place + ": expected a size below 2^64 bytes, got a larger one");
        return bytes + tensor.blocks->n_scale_bytes;
    }

    void place_tensors() {
        at_ = std::min<std::uint64_t>(bytes_.size(), at_ + (alignment_ - at_ % alignment_) % alignment_);
        const auto data = bytes_.subspan(at_);
        std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
        std::uint64_t end = 0;
        for (const Place& place : places_) {
            const std::string name = "tensor " + place.tensor->first;
            if (place.end > data.size())
                refuse(name + ": expected bytes within the " + std::to_string(data.size()) +
                       " that follow the header, got " + std::to_string(place.begin) + " to " +
                       std::to_string(place.end));
            if (place.begin < end)
                refuse(name + ": expected tensors that do not overlap, got two at byte " + std::to_string(place.begin));
            end = place.end;
            place.tensor->second.data = data.data() + place.begin;
        }
    }

    struct Place {
        std::uint64_t begin, end;
        std::pair<const std::string, GgufTensor>* tensor;
    };
    Gguf& file_;
    std::span<const std::byte> bytes_;
    std::uint64_t at_ = 0, n_tensors_ = 0, n_values_ = 0, alignment_ = 32;
    std::vector<Place> places_;
};

Gguf::Gguf(const std::filesystem::path& path, Mapping mapping) : path_(path), mapping_(std::move(mapping)) {
    GgufParser(*this).parse();
}

std::vector<std::uint64_t> without_outer_ones(std::vector<std::uint64_t> shape) {
    while (shape.size() > 1 && shape.front() == 1) shape.erase(shape.begin());
    return shape;
}

void Gguf::take_tensors(Gguf part) {
    for (const auto& [name, tensor] : part.tensors_)
        if (!tensors_.emplace(name, tensor).second)
            throw host::Error(part.path_.string() + ": tensor " + name + ": expected in one part, got it in two");
    others_.push_back(std::move(part.mapping_));
}

std::vector<Mapping> Gguf::release() {
    std::vector<Mapping> all = std::move(others_);
    all.push_back(std::move(mapping_));
    return all;
}

void Gguf::refuse(std::string_view place, const std::string& wanted) const {
    const auto found = values_.find(place);
    throw host::Error(path_.string() + ": " + std::string(place) + ": expected " + wanted + ", got " +
                      (found == values_.end() ? "nothing" : in_words(found->second)));
}

const GgufValue& Gguf::value(std::string_view key, const std::string& wanted) const {
    const auto found = values_.find(key);
    if (found == values_.end()) refuse(key, wanted);
    return found->second;
}

std::uint32_t Gguf::count(std::string_view key, std::uint32_t least, std::uint32_t most) const {
    const std::string wanted = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    const GgufValue& found = value(key, wanted);
    const bool list = found.kind == GgufKind::list;
    const GgufKind kind = list ? found.element : found.kind;
    if (found.n == 0) refuse(key, wanted);
    const Whole first = whole(kind, found.bytes.data());
    if (!first.is_whole || first.negative || first.magnitude < least || first.magnitude > most) refuse(key, wanted);
    for (std::uint64_t i = 1; i < found.n; ++i)
        if (std::memcmp(found.bytes.data(), found.bytes.data() + i * kind_bytes(kind), kind_bytes(kind)) != 0)
            refuse(key, "the same number for all layers");
    return static_cast<std::uint32_t>(first.magnitude);
}

std::vector<std::uint32_t> Gguf::counts(std::string_view key, std::uint32_t n, std::uint32_t least, std::uint32_t most,
                                        std::uint32_t n_more) const {
    const std::string wanted = "whole numbers from " + std::to_string(least) + " to " + std::to_string(most);
    const GgufValue& found = value(key, wanted);
    if (found.kind != GgufKind::list) return std::vector<std::uint32_t>(n, count(key, least, most));
    if (found.n != n && found.n != std::uint64_t{n} + n_more)
        refuse(key, std::to_string(n) + " numbers, one for each layer");
    std::vector<std::uint32_t> numbers;
    for (std::uint64_t i = 0; i < n; ++i) {
        const Whole number = whole(found.element, found.bytes.data() + i * kind_bytes(found.element));
        if (!number.is_whole || number.negative || number.magnitude < least || number.magnitude > most)
            refuse(key, wanted);
        numbers.push_back(static_cast<std::uint32_t>(number.magnitude));
    }
    return numbers;
}

std::uint32_t Gguf::count_or(std::string_view key, std::uint32_t otherwise) const {
    return has(key) ? count(key, 0) : otherwise;
}

double Gguf::number(std::string_view key, double least, double most) const {
    const std::string wanted = "a number from " + in_words(least) + " to " + in_words(most);
    const GgufValue& found = value(key, wanted);
    const double number = found.kind == GgufKind::list || found.kind == GgufKind::text
                              ? std::nan("")
                              : as_number(found.kind, found.bytes.data());
    if (!(number >= least && number <= most)) refuse(key, wanted);
    return number;
}

double Gguf::number_or(std::string_view key, double least, double most, double otherwise) const {
    return has(key) ? number(key, least, most) : otherwise;
}

bool Gguf::flag_or(std::string_view key, bool otherwise) const {
    if (!has(key)) return otherwise;
    const GgufValue& found = value(key, "true or false");
    if (found.kind != GgufKind::boolean) refuse(key, "true or false");
    return found.bytes[0] != std::byte{0};
}

std::string Gguf::text(std::string_view key) const {
    const GgufValue& found = value(key, "a text");
    if (found.kind != GgufKind::text) refuse(key, "a text");
    return {reinterpret_cast<const char*>(found.bytes.data()), found.bytes.size()};
}

std::string Gguf::text_or(std::string_view key, const std::string& otherwise) const {
    return has(key) ? text(key) : otherwise;
}

bool Gguf::has_list(std::string_view key, GgufKind element) const {
    const auto found = values_.find(key);
    return found != values_.end() && found->second.kind == GgufKind::list && found->second.element == element;
}

std::uint64_t Gguf::list_size(std::string_view key, GgufKind element) const {
    const char* wanted = element == GgufKind::text  ? "a list of texts"
                         : element == GgufKind::f32 ? "a list of float32 numbers"
                                                    : "a list of int32 numbers";
    const GgufValue& found = value(key, wanted);
    if (found.kind != GgufKind::list || found.element != element) refuse(key, wanted);
    return found.n;
}

void Gguf::for_each_text(std::string_view key, const std::function<void(std::string_view)>& take) const {
    const std::uint64_t n = list_size(key, GgufKind::text);
    const std::byte* at = values_.find(key)->second.bytes.data();
    for (std::uint64_t i = 0; i < n; ++i) {  // each was found to be there when parsing
        const auto size = load<std::uint64_t>(at);
        take({reinterpret_cast<const char*>(at) + sizeof size, static_cast<std::size_t>(size)});
        at += sizeof size + size;
    }
}

std::span<const std::byte> Gguf::list_bytes(std::string_view key, GgufKind element) const {
    static_cast<void>(list_size(key, element));
    return values_.find(key)->second.bytes;
}

}  // namespace fovea
