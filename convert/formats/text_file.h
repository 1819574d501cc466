// Small files beside weights: whether they are there, their text, and words for what is in them.
#pragma once
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/mapping.h"

namespace fovea {

[[nodiscard]] inline bool is_there(const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::exists(path, error);
}

/// Valid as long as the mapping.
[[nodiscard]] inline std::string_view text_of(const Mapping& mapping) {
    return {reinterpret_cast<const char*>(mapping.bytes().data()), mapping.bytes().size()};
}

/// Takes the first line off a text that is not empty, and returns it without its end, "\n" or "\r\n".
[[nodiscard]] inline std::string_view take_line(std::string_view& text) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

/// The first few of many names: "a, b, c, d and 5 more".
[[nodiscard]] inline std::string few_of(const std::vector<std::string>& names) {
    constexpr std::size_t kMost = 4;
    std::string words;
    for (std::size_t i = 0; i < names.size() && i < kMost; ++i) words += (i ? ", " : "") + names[i];
    return names.size() > kMost ? words + " and " + std::to_string(names.size() - kMost) + " more" : words;
}

}  // namespace fovea
