// Attention patterns and arenas drawn: as an SVG, as a page one can point into, and as shaded blocks for a terminal.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/session.h"

namespace fovea {

enum class PictureKind { svg, html, text };
/// The format that a file's name asks for: .svg, .html, or "-", standard output. Throws host::ArgumentError for others.
[[nodiscard]] PictureKind picture_kind(const std::string& path);
/// Writes a picture there, or to standard output. Throws host::Error if the disk did not take all of it.
void write_picture(const std::string& path, std::string_view picture);

/// The weight that each query of some heads gives to each key; queries go down, keys across.
struct AttentionPattern {
    std::string title;                ///< "layer 0"; a line of UTF-8
    std::vector<float> weights = {};  ///< [n_heads, queries.size(), keys.size()], each in [0, 1]
    std::size_t n_heads = 0;
    std::vector<std::string> queries = {}, keys = {};  ///< the bytes each token stands for, whole characters or not
};

/// A token's bytes as something to read: a space as "␣", other control characters and bytes that are no whole character
/// as "<E4>". Always UTF-8.
[[nodiscard]] std::string token_label(std::string_view bytes);

/// Columns of a terminal that `text`, which is UTF-8, takes: two for wide characters, none for those that combine.
[[nodiscard]] std::size_t text_columns(std::string_view text);

/// The patterns below each other, one panel for each head, light or dark as the viewer is, with a legend. Labels that
/// would overlap are left out evenly; long ones are cut.
[[nodiscard]] std::string draw_svg(std::span<const AttentionPattern> patterns);

/// A page of its own, without references: every head of every pattern side by side, and one of them large, with its
/// tokens; pointing or arrow keys show a cell's weight there. Weights are to about a hundredth. `first` is the pattern
/// it opens with; the heading names `name`.
[[nodiscard]] std::string draw_html(std::span<const AttentionPattern> patterns, std::size_t first = 0,
                                    std::string_view name = {});

/// Lines of shaded blocks, a head after the other.
[[nodiscard]] std::string draw_text(std::span<const AttentionPattern> patterns);

/// Where each part of an arena lies, in bytes and to scale.
[[nodiscard]] std::string draw_arena(const std::string& title, const Plan& plan, PictureKind kind);

}  // namespace fovea
