// A source that is longer than a model reads at once, in parts.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

namespace fovea {

/// Parts of a text that each fit, in their order and without the spaces between them: as long as can be, ending where a
/// sentence does; else, where a line or a word ends; else within the word. One part if the text fits. `fits` is asked for
/// beginnings of the text that follows; the empty text is one part.
[[nodiscard]] std::vector<std::string_view> split_source(std::string_view text,
                                                         const std::function<bool(std::string_view)>& fits);

}  // namespace fovea
