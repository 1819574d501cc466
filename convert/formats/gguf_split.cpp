#include "convert/formats/gguf_split.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "host/base/error.h"
#include "host/base/source_file.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kMostParts = 4096;

/// The five digits at that place of a name; 0 if there is something else.
std::uint32_t five_digits(const std::string& name, std::size_t at) {
    std::uint32_t number = 0;
    for (std::size_t i = at; i < at + 5; ++i) {
        if (name[i] < '0' || name[i] > '9') return 0;
        number = 10 * number + static_cast<std::uint32_t>(name[i] - '0');
    }
    return number;
}

std::string ending(std::uint32_t part, std::uint32_t n_parts) {
    char text[40];
    std::snprintf(text, sizeof text, "-%05u-of-%05u.gguf", part, n_parts);
    return text;
}

/// The part's number by its name, from 1 on, and the number of parts; 0 and 1 for names of whole models.
std::pair<std::uint32_t, std::uint32_t> numbers_of(const std::string& name) {
    const std::string like = ending(0, 0);
    if (name.size() < like.size()) return {0, 1};
    const std::size_t at = name.size() - like.size();
    const std::uint32_t part = five_digits(name, at + 1), n_parts = five_digits(name, at + 10);
    const bool numbered = part && part <= n_parts && n_parts <= kMostParts && name.substr(at) == ending(part, n_parts);
    return numbered ? std::pair{part, n_parts} : std::pair{0u, 1u};
}

fs::path part_beside(const fs::path& path, std::uint32_t part, std::uint32_t n_parts) {
    const std::string name = path.filename().string();
    return path.parent_path() / (name.substr(0, name.size() - ending(0, 0).size()) + ending(part, n_parts));
}

}  // namespace

std::vector<fs::path> gguf_parts(const fs::path& path) {
    const auto [part, n_parts] = numbers_of(path.filename().string());
    if (!part) return {path};
    std::vector<fs::path> parts;
    for (std::uint32_t i = 1; i <= n_parts; ++i) parts.push_back(part_beside(path, i, n_parts));
    return parts;
}

Gguf read_gguf_parts(const fs::path& path, Mapping mapping) {
    Gguf first(path, std::move(mapping));
    const std::uint32_t n_parts = first.count_or("split.count", 1);
    if (n_parts <= 1) return first;
    if (first.count("split.no", 0) != 0) {
        const auto parts = gguf_parts(path);
        throw host::Error(path.string() + ": split.no: expected 0, a model's first part, got " +
                          std::to_string(first.count("split.no", 0)) +
                          (parts.size() > 1 ? "; give " + parts.front().string() : ""));
    }
    const std::vector<fs::path> parts = gguf_parts(path);
    if (parts.size() != n_parts || parts.front() != path)
        throw host::Error(path.string() + ": expected a name that ends in " + ending(1, n_parts) +
                          ", for split.count is " + std::to_string(n_parts) + ", got another");
    for (std::uint32_t i = 1; i < n_parts; ++i) {
        Gguf part(parts[i], map_source(parts[i]));
        if (part.count("split.no", 0) != i) part.refuse("split.no", std::to_string(i));
        if (part.count("split.count") != n_parts) part.refuse("split.count", std::to_string(n_parts));
        first.take_tensors(std::move(part));
    }
    if (first.has("split.tensors.count") && first.count("split.tensors.count", 0) != first.tensors().size())
        first.refuse("split.tensors.count", std::to_string(first.tensors().size()) + ", as many as the parts have");
    return first;
}

}  // namespace fovea
