#include "host/show/svg.h"

#include <cstdio>

namespace fovea {
namespace {

constexpr std::string_view kStyle =
    "<style>.p{fill:#ffffff}.w{fill:#0a4fa3}.f{fill:none;stroke:#c8c8cc}"
    "text{fill:#1c1c1e;font-family:ui-monospace,monospace;font-size:11px;white-space:pre}.t{font-weight:bold}"
    "@media (prefers-color-scheme:dark){.p{fill:#16181c}.w{fill:#7db8ff}.f{stroke:#44474e}text{fill:#e6e6ea}}"
    "</style>\n";

std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) switch (c) {
            case '&': result += "&amp;"; break;
            case '<': result += "&lt;"; break;
            case '>': result += "&gt;"; break;
            case '"': result += "&quot;"; break;
            default: result += c;
        }
    return result;
}

}  // namespace

std::string number(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", x);
    return text;
}

std::string text_at(double x, double y, std::string_view attributes, std::string_view text) {
    return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" " + std::string(attributes) + ">" + escaped(text) +
           "</text>\n";
}

std::string rectangle(double x, double y, double width, double height, std::string_view attributes) {
    return "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) + "\" height=\"" +
           number(height) + "\" " + std::string(attributes) + "/>\n";
}

std::string svg_of(double width, double height, std::string_view elements) {
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width) + " " + number(height) +
           "\" width=\"" + number(width) + "\" height=\"" + number(height) + "\">\n" + std::string(kStyle) +
           rectangle(0, 0, width, height, "class=\"p\"") + std::string(elements) + "</svg>\n";
}

}  // namespace fovea
