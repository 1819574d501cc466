// Files that a conversion reads, each refusal naming the file.
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "fovea/mapping.h"
#include "host/base/json.h"

namespace fovea {

/// Maps a regular file. Throws host::Error where that fails.
[[nodiscard]] Mapping map_source(const std::filesystem::path& path);
/// The same for one that is read whole; it has at most `most_bytes`.
[[nodiscard]] Mapping map_source(const std::filesystem::path& path, std::size_t most_bytes);

/// Refuses JSON with more than 64 levels, before a tree is made of it: what copies or prints a tree calls itself for each.
void check_json_depth(std::span<const char> text, const std::string& file_name);

/// The JSON object that is one small file (4 MB where nothing else is said) or part of one, and how its fields are read. A field that is
/// null counts as not there. Throws host::Error: "FILE: FIELD: expected …, got …".
class Fields {
public:
    static Fields read(const std::filesystem::path& path, std::size_t most_bytes = 4u << 20);
    /// An object that is there already. `place` is what a refusal begins with.
    Fields(SortedJson json, std::string place) : json_(std::move(json)), place_(std::move(place)) {}

    [[nodiscard]] bool has(const char* name) const;
    /// A whole number in [least, most].
    [[nodiscard]] std::uint32_t count(const char* name, std::uint32_t least = 1,
                                      std::uint32_t most = std::numeric_limits<std::uint32_t>::max()) const;
    [[nodiscard]] std::uint32_t count_or(const char* name, std::uint32_t otherwise) const;
    /// A finite number in [least, most].
    [[nodiscard]] double number(const char* name, double least, double most) const;
    [[nodiscard]] double number_or(const char* name, double least, double most, double otherwise) const;
    [[nodiscard]] bool flag_or(const char* name, bool otherwise) const;
    [[nodiscard]] std::string text(const char* name) const;
    [[nodiscard]] std::string text_or(const char* name, const std::string& otherwise) const;
    [[nodiscard]] std::vector<std::string> texts(const char* name) const;
    /// These, and the fields of `more` that are not among them.
    [[nodiscard]] Fields or_else(const SortedJson& more) const;
    /// These, with that value of one of them.
    [[nodiscard]] Fields with(const char* name, const SortedJson& value) const;
    /// A field that is an object itself.
    [[nodiscard]] Fields object(const char* name) const;

    [[nodiscard]] const SortedJson& json() const { return json_; }
    /// What a refusal begins with: the file and, for an object within, its name.
    [[nodiscard]] const std::string& place() const { return place_; }
    [[noreturn]] void refuse(const std::string& name, const std::string& wanted) const;
    /// The same for a value within a field.
    [[noreturn]] void refuse(const std::string& name, const std::string& wanted, const SortedJson& got) const;

private:
    /// A field for which `fits` holds.
    [[nodiscard]] const SortedJson& checked(const char* name, const std::string& wanted, const auto& fits) const;

    SortedJson json_;
    std::string place_;  // the file and, for an object within, its name
};

}  // namespace fovea
