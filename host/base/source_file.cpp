#include "host/base/source_file.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>

#include "host/base/error.h"
#include "host/base/lfs_pointer.h"

namespace fovea {
namespace {

std::string in_words(double value) {
    std::ostringstream words;
    words.imbue(std::locale::classic());
    words << value;
    return words.str();
}

}  // namespace

void refuse_lfs_pointer(std::span<const std::byte> bytes, const std::string& path) {
    constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/";
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kBegin.size()));
    if (text == kBegin)
        throw host::Error(path + ": expected the file itself, got a Git LFS pointer to it: `git lfs pull` fetches it");
}

Mapping map_source(const std::filesystem::path& path) {
    Mapping mapping;
    require(map_file(path.c_str(), mapping), path.string());
    refuse_lfs_pointer(mapping.bytes(), path.string());
    return mapping;
}

Mapping map_source(const std::filesystem::path& path, std::size_t most_bytes) {
    Mapping mapping = map_source(path);
    if (mapping.bytes().size() <= most_bytes) return mapping;
    throw host::Error(path.string() + ": expected at most " + std::to_string(most_bytes) + " bytes, got " +
                      std::to_string(mapping.bytes().size()));
}

void check_json_depth(std::span<const char> text, const std::string& file_name) {
    constexpr std::size_t kMostLevels = 64;
    if (json_depth({text.data(), text.size()}) > kMostLevels)
        throw host::Error(file_name + ": expected at most " + std::to_string(kMostLevels) +
                          " levels of JSON, got more");
}

Fields Fields::read(const std::filesystem::path& path, std::size_t most_bytes) {
    const Mapping mapping = map_source(path, most_bytes);
    const std::string_view text(reinterpret_cast<const char*>(mapping.bytes().data()), mapping.bytes().size());
    const std::string place = path.string();
    check_json_depth(text, place);
    JsonFault fault;
    SortedJson json = read_sorted_json(text, &fault);
    if (json.is_discarded())
        throw host::Error(place + (fault.byte
                                       ? ": expected JSON, got something else at byte " + std::to_string(fault.byte)
                                       : ": expected numbers that a double can hold, got a larger one"));
    if (!json.is_object()) throw host::Error(place + ": expected a JSON object, got " + json.type_name());
    return {std::move(json), place};
}

void Fields::refuse(const std::string& name, const std::string& wanted, const SortedJson& got) const {
    std::string had = json_text(got);
    if (had.size() > 80) {
        std::size_t end = 80;
        while ((static_cast<unsigned char>(had[end]) & 0xc0) == 0x80) --end;  // within a character
        had = had.substr(0, end) + "...";
    }
    throw host::Error(place_ + ": " + name + ": expected " + wanted + ", got " + had);
}

void Fields::refuse(const std::string& name, const std::string& wanted) const {
    if (const auto field = json_.find(name); field != json_.end()) refuse(name, wanted, *field);
    throw host::Error(place_ + ": " + name + ": expected " + wanted + ", got nothing");
}

const SortedJson& Fields::checked(const char* name, const std::string& wanted, const auto& fits) const {
    const auto field = json_.find(name);
    if (field == json_.end() || !fits(*field)) refuse(name, wanted);
    return *field;
}

bool Fields::has(const char* name) const {
    const auto field = json_.find(name);
    return field != json_.end() && !field->is_null();
}

std::uint32_t Fields::count(const char* name, std::uint32_t least, std::uint32_t most) const {
    const bool is_bounded = most != std::numeric_limits<std::uint32_t>::max();
    const std::string wanted = is_bounded ? "from " + std::to_string(least) + " to " + std::to_string(most)
                                          : "of at least " + std::to_string(least);
    return checked(name, "a whole number " + wanted, [&](const SortedJson& field) {
        return field.is_number_unsigned() && field.get<std::uint64_t>() >= least && field.get<std::uint64_t>() <= most;
    });
}

std::uint32_t Fields::count_or(const char* name, std::uint32_t otherwise) const {
    return has(name) ? count(name) : otherwise;
}

double Fields::number(const char* name, double least, double most) const {
    return checked(name, "a number from " + in_words(least) + " to " + in_words(most), [&](const SortedJson& field) {
        return field.is_number() && field.get<double>() >= least && field.get<double>() <= most;
    });
}

double Fields::number_or(const char* name, double least, double most, double otherwise) const {
    return has(name) ? number(name, least, most) : otherwise;
}

bool Fields::flag_or(const char* name, bool otherwise) const {
    if (!has(name)) return otherwise;
    return checked(name, "true or false", [](const SortedJson& field) { return field.is_boolean(); });
}

std::string Fields::text(const char* name) const {
    return checked(name, "a text", [](const SortedJson& field) { return field.is_string(); });
}

std::string Fields::text_or(const char* name, const std::string& otherwise) const {
    return has(name) ? text(name) : otherwise;
}

std::vector<std::string> Fields::texts(const char* name) const {
    const auto is_text = [](const SortedJson& item) { return item.is_string(); };
    return checked(name, "a list of texts", [&](const SortedJson& field) {
        return field.is_array() && std::all_of(field.begin(), field.end(), is_text);
    });
}

Fields Fields::or_else(const SortedJson& more) const {
    Fields all = *this;
    for (const auto& [name, value] : more.items())
        if (!json_.contains(name)) all.json_[name] = value;
    return all;
}

Fields Fields::with(const char* name, const SortedJson& value) const {
    Fields all = *this;
    all.json_[name] = value;
    return all;
}

Fields Fields::object(const char* name) const {
    const auto is_object = [](const SortedJson& field) { return field.is_object(); };
    return {checked(name, "an object", is_object), place_ + ": " + name};
}

}  // namespace fovea
