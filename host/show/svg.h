// Parts of SVGs. One style, light or dark as the viewer is, makes all pictures look alike.
#pragma once
#include <string>
#include <string_view>

namespace fovea {

/// Units of a label in the style's font: its height, and the width of a terminal's column.
inline constexpr double kFont = 11, kColumn = 6.7;

/// A coordinate.
[[nodiscard]] std::string number(double x);
[[nodiscard]] std::string text_at(double x, double y, std::string_view attributes, std::string_view text);
[[nodiscard]] std::string rectangle(double x, double y, double width, double height, std::string_view attributes);
/// A whole picture of these elements.
[[nodiscard]] std::string svg_of(double width, double height, std::string_view elements);

}  // namespace fovea
