// Attention patterns drawn: as an SVG, as a page one can point into, and as shaded blocks for a terminal.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

/// What each query of some heads gives to each key; queries go down, keys across.
struct Pattern {
    std::string title;               ///< "layer 0"; text of any kind
    std::span<const float> weights;  ///< [n_heads, queries.size(), keys.size()], each in [0, 1]
    std::size_t n_heads = 0;
    std::vector<std::string> queries, keys;  ///< the bytes each token stands for, whole characters or not
};

/// A token's bytes as something to read: a space as "␣", other control characters and bytes that are no whole character
/// as "<E4>". Always UTF-8.
[[nodiscard]] std::string token_label(std::string_view bytes);

/// Columns of a terminal that `text`, which is UTF-8, takes: two for wide characters, none for those that combine.
[[nodiscard]] std::size_t text_columns(std::string_view text);

/// One panel for each head, light or dark as the viewer is, with a legend. Labels that would overlap are left out
/// evenly.
[[nodiscard]] std::string draw_svg(const Pattern& pattern);

/// A page of its own, without references: one picks a pattern and a head, and points at a token to see what it looks
/// at. All patterns have the same heads and tokens.
[[nodiscard]] std::string draw_html(std::span<const Pattern> patterns);

/// Lines of shaded blocks, a head after the other.
[[nodiscard]] std::string draw_text(const Pattern& pattern);

}  // namespace fovea
