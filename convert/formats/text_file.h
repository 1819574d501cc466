// Small files beside weights: whether they are there, and their text.
#pragma once
#include <algorithm>
#include <filesystem>
#include <string_view>

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

}  // namespace fovea
