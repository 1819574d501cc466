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
    constexpr int kMostLevels = 64;
    int depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (in_string && text[i] == '\\')
            ++i;
        else if (text[i] == '"')
            in_string = !in_string;
        else if (!in_string && (text[i] == '{' || text[i] == '['))
            ++depth;
        else if (!in_string && (text[i] == '}' || text[i] == ']'))
            --depth;
        if (depth > kMostLevels)
            throw host::Error(file_name + ": expected at most " + std::to_string(kMostLevels) +
                              " levels of JSON, got more");
    }
}

Fields Fields::read(const std::filesystem::path& path, std::size_t most_bytes) {
    const Mapping mapping = map_source(path, most_bytes);
    const auto bytes = mapping.bytes();
    const char* text = reinterpret_cast<const char*>(bytes.data());
    check_json_depth({text, bytes.size()}, path.string());
    try {
        nlohmann::json json = nlohmann::json::parse(text, text + bytes.size());
        if (!json.is_object()) throw host::Error(path.string() + ": expected a JSON object, got " + json.type_name());
        return {std::move(json), path.string()};
    } catch (const nlohmann::json::parse_error& error) {
        throw host::Error(path.string() + ": expected JSON, got something else at byte " + std::to_string(error.byte));
    } catch (const nlohmann::json::out_of_range&) {  // of parsing, a number's alone
        throw host::Error(path.string() + ": expected numbers that a double can hold, got a larger one");
    }
}

void Fields::refuse(const std::string& name, const std::string& wanted) const {
    const auto field = json_.find(name);
    std::string had = "nothing";
    if (field != json_.end()) had = field->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (had.size() > 80) {
        std::size_t end = 80;
        while ((static_cast<unsigned char>(had[end]) & 0xc0) == 0x80) --end;  // within a character
        had = had.substr(0, end) + "...";
    }
    throw host::Error(place_ + ": " + name + ": expected " + wanted + ", got " + had);
}

bool Fields::has(const char* name) const {
    const auto field = json_.find(name);
    return field != json_.end() && !field->is_null();
}

std::uint32_t Fields::count(const char* name, std::uint32_t least, std::uint32_t most) const {
    const auto field = json_.find(name);
    if (field == json_.end() || !field->is_number_unsigned() || field->get<std::uint64_t>() < least ||
        field->get<std::uint64_t>() > most)
        refuse(name, most == std::numeric_limits<std::uint32_t>::max()
                         ? "a whole number of at least " + std::to_string(least)
                         : "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return field->get<std::uint32_t>();
}

std::uint32_t Fields::count_or(const char* name, std::uint32_t otherwise) const {
    return has(name) ? count(name) : otherwise;
}

double Fields::number(const char* name, double least, double most) const {
    const auto field = json_.find(name);
    if (field == json_.end() || !field->is_number() || !(field->get<double>() >= least) ||
        !(field->get<double>() <= most))
        refuse(name, "a number from " + in_words(least) + " to " + in_words(most));
    return field->get<double>();
}

double Fields::number_or(const char* name, double least, double most, double otherwise) const {
    return has(name) ? number(name, least, most) : otherwise;
}

bool Fields::flag_or(const char* name, bool otherwise) const {
    if (!has(name)) return otherwise;
    if (!json_[name].is_boolean()) refuse(name, "true or false");
    return json_[name].get<bool>();
}

std::string Fields::text(const char* name) const {
    const auto field = json_.find(name);
    if (field == json_.end() || !field->is_string()) refuse(name, "a text");
    return field->get<std::string>();
}

std::string Fields::text_or(const char* name, const std::string& otherwise) const {
    return has(name) ? text(name) : otherwise;
}

std::vector<std::string> Fields::texts(const char* name) const {
    const auto field = json_.find(name);
    if (field == json_.end() || !field->is_array()) refuse(name, "a list of texts");
    std::vector<std::string> texts;
    for (const auto& item : *field) {
        if (!item.is_string()) refuse(name, "a list of texts");
        texts.push_back(item.get<std::string>());
    }
    return texts;
}

Fields Fields::or_else(const nlohmann::json& more) const {
    Fields all = *this;
    for (const auto& [name, value] : more.items())
        if (!json_.contains(name)) all.json_[name] = value;
    return all;
}

Fields Fields::with(const char* name, const nlohmann::json& value) const {
    Fields all = *this;
    all.json_[name] = value;
    return all;
}

Fields Fields::object(const char* name) const {
    const auto field = json_.find(name);
    if (field == json_.end() || !field->is_object()) refuse(name, "an object");
    return {*field, place_ + ": " + name};
}

}  // namespace fovea
