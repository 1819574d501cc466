#include "convert/formats/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/source_file.h"

namespace fovea {
namespace {

constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the format's own bound
constexpr std::size_t kMostTensorDimensions = 8;

/// Bytes of one element; 0 for types this reader does not know.
std::uint64_t element_bytes(const std::string& dtype) {
    static const std::map<std::string, std::uint64_t> kBytes = {
        {"F64", 8},  {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4}, {"U32", 4},  {"F16", 2},
        {"BF16", 2}, {"I16", 2}, {"U16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1},
    };
    const auto found = kBytes.find(dtype);
    return found == kBytes.end() ? 0 : found->second;
}

/// Reads one file's header into `result`. The header's claims are compared with the file before they are used.
class HeaderReader {
public:
    HeaderReader(Safetensors& result, std::size_t file)
        : result_(result), file_(file), bytes_(result.mappings[file].bytes()) {}

    void read() {
        if (bytes_.size() < 8) refuse("expected at least 8 bytes, got " + std::to_string(bytes_.size()));
        std::uint64_t header_bytes;
        std::memcpy(&header_bytes, bytes_.data(), 8);
        const std::uint64_t most = std::min<std::uint64_t>(kMostHeaderBytes, bytes_.size() - 8);
        if (header_bytes > most)
            refuse("expected a header of at most " + std::to_string(most) + " bytes, got one of " +
                   std::to_string(header_bytes));
        data_ = bytes_.subspan(8 + header_bytes);
        parse(reinterpret_cast<const char*>(bytes_.data()) + 8, header_bytes);
        check_overlaps();
    }

private:
    [[noreturn]] void refuse(const std::string& why) const {
        throw host::Error(result_.files[file_].string() + ": " + why);
    }

    /// Takes each tensor's object as soon as it is complete, and drops it: the header is never held as a tree.
    void parse(const char* text, std::uint64_t n) {
        std::string name;
        const auto take = [&](int depth, SortedJson::parse_event_t event, SortedJson& parsed) {
            // The parser looks through an object whenever one within it ends: the outermost one stays empty.
            const bool is_other = depth == 1 && (event == SortedJson::parse_event_t::value ||
                                                 event == SortedJson::parse_event_t::array_start);
            if (is_other) refuse("header: expected an object of objects");
            const bool is_inner_object = event == SortedJson::parse_event_t::object_start && depth > 1;
            if (depth > 3 || is_inner_object) refuse("header: expected objects of numbers, got deeper nesting");
            if (event == SortedJson::parse_event_t::key && depth == 1) name = parsed.get<std::string>();
            if (event == SortedJson::parse_event_t::object_end && depth == 1) {
                if (name != "__metadata__") add(name, parsed);
                return false;
            }
            return true;
        };
        JsonFault fault;
        const SortedJson rest = read_sorted_json(std::string_view(text, n), &fault, take);
        if (!fault.words.empty())
            refuse(fault.byte ? "header: expected JSON, got something else at byte " + std::to_string(fault.byte)
                              : "header: expected numbers that a double can hold, got a larger one");
        if (!rest.is_object() || !rest.empty()) refuse("header: expected an object of objects");
    }

    void add(const std::string& name, const SortedJson& json) {
        SourceTensor tensor;
        tensor.file = file_;
        const std::string place = "tensor " + name + ": ";
        const auto dtype = json.find("dtype"), shape = json.find("shape"), offsets = json.find("data_offsets");
        if (dtype == json.end() || !dtype->is_string()) refuse(place + "dtype: expected a text");
        if (shape == json.end() || !shape->is_array() || shape->size() > kMostTensorDimensions)
            refuse(place + "shape: expected a list of at most " + std::to_string(kMostTensorDimensions) + " numbers");
        if (offsets == json.end() || !offsets->is_array() || offsets->size() != 2 ||
            !(*offsets)[0].is_number_unsigned() || !(*offsets)[1].is_number_unsigned())
            refuse(place + "data_offsets: expected two numbers");
        tensor.dtype = dtype->get<std::string>();
        const auto begin = (*offsets)[0].get<std::uint64_t>(), end = (*offsets)[1].get<std::uint64_t>();
        if (begin > end || end > data_.size())
            refuse(place + "expected bytes within the " + std::to_string(data_.size()) +
                   " that follow the header, got " + std::to_string(begin) + " to " + std::to_string(end));
        std::uint64_t n = element_bytes(tensor.dtype);
        for (const SortedJson& size : *shape) {
            if (!size.is_number_unsigned()) refuse(place + "shape: expected whole numbers");
            tensor.shape.push_back(size.get<std::uint64_t>());
            if (tensor.shape.back() != 0 && n > std::numeric_limits<std::uint64_t>::max() / tensor.shape.back())
                refuse(place + "shape: expected a size below 2^64 bytes");
            n *= tensor.shape.back();
        }
        tensor.data = data_.data() + begin;
        tensor.bytes = end - begin;
        if (element_bytes(tensor.dtype) != 0 && n != tensor.bytes)
            refuse(place + "expected " + std::to_string(n) + " bytes for its shape, got " +
                   std::to_string(tensor.bytes));
        places_.emplace_back(begin, end);
        if (!result_.tensors.emplace(name, std::move(tensor)).second) refuse(place + "expected once, got twice");
    }

    void check_overlaps() {
        std::sort(places_.begin(), places_.end());
        for (std::size_t i = 1; i < places_.size(); ++i)
            if (places_[i].first < places_[i - 1].second)
                refuse("expected tensors that do not overlap, got two at byte " + std::to_string(places_[i].first));
    }

    Safetensors& result_;
    const std::size_t file_;
    std::span<const std::byte> bytes_, data_;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> places_;
};

void add_safetensors(Safetensors& result, const std::filesystem::path& path) {
    result.mappings.push_back(map_source(path));
    result.files.push_back(path);
    HeaderReader(result, result.files.size() - 1).read();
}

}  // namespace

std::set<std::string> shard_names(const std::filesystem::path& index_path) {
    const Fields index = Fields::read(index_path);
    const Fields weight_map = index.object("weight_map");
    std::set<std::string> names;
    for (const auto& [tensor, file] : weight_map.json().items()) {
        if (!file.is_string()) weight_map.refuse(tensor, "a file's name");
        const auto name = file.get<std::string>();
        if (name.empty() || name.find('/') != std::string::npos || name.find('\\') != std::string::npos ||
            name.find('\0') != std::string::npos || name == "." || name == "..")
            weight_map.refuse(tensor, "the name of a file in this folder");
        names.insert(name);
    }
    if (names.empty()) index.refuse("weight_map", "at least one file");
    return names;
}

Safetensors read_safetensors_file(const std::filesystem::path& path) {
    Safetensors result;
    add_safetensors(result, path);
    return result;
}

Type float_type(const SourceTensor& tensor, const std::string& place) {
    if (tensor.dtype == "F32") return Type::f32;
    if (tensor.dtype == "F16") return Type::f16;
    if (tensor.dtype == "BF16") return Type::bf16;
    throw host::Error(place + ": expected F32, F16 or BF16, got " + tensor.dtype);
}

bool is_saved_buffer(std::string_view name, const SourceTensor& tensor) {
    constexpr std::string_view kMasks[] = {".attn.bias", ".attention.bias", ".masked_bias", ".attn.causal_mask"};
    constexpr std::string_view kOthers[] = {"rotary_emb.inv_freq", "embeddings.position_ids",
                                            "embeddings.token_type_ids", "embed_positions.weight"};
    const auto ends = [&](std::string_view end) { return name.ends_with(end); };
    return (std::any_of(std::begin(kMasks), std::end(kMasks), ends) && tensor.shape.size() != 1) ||
           std::any_of(std::begin(kOthers), std::end(kOthers), ends);
}

Safetensors read_safetensors_folder(const std::filesystem::path& folder) {
    const auto single = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
    std::error_code error;
    if (std::filesystem::exists(single, error)) return read_safetensors_file(single);
    if (!std::filesystem::exists(index, error))
        throw host::Error(folder.string() +
                          ": expected model.safetensors or model.safetensors.index.json, got neither");
    Safetensors result;
    for (const std::string& name : shard_names(index)) add_safetensors(result, folder / name);
    return result;
}

}  // namespace fovea
