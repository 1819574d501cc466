#include <algorithm>
#include <cmath>
#include <cstdio>

#include "host/base/words.h"
#include "host/show/picture.h"
#include "host/show/svg.h"

namespace fovea {
namespace {

std::string percent(std::uint64_t part, std::uint64_t whole) {
    char text[16];
    const double share = whole ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
    std::snprintf(text, sizeof text, "%5.1f %%", share);
    return text;
}

/// A row for each part: its name, place and size. A part too small to be seen has its row all the same.
std::string arena_svg(const std::string& title, const Plan& plan) {
    constexpr double kLeft = 130, kWidth = 560, kTop = 48, kRow = 18, kRight = 210;
    const double height = kTop + kRow * plan.n_parts;
    std::string svg = text_at(16, 24, "class=\"t\"", title + ", " + with_separators(plan.arena_bytes) + " bytes");
    for (std::uint32_t i = 0; i < plan.n_parts; ++i) {
        const PlanPart& part = plan.parts[i];
        const double y = kTop + kRow * i,
                     scale = kWidth / static_cast<double>(std::max<std::uint64_t>(plan.arena_bytes, 1));
        svg +=
            text_at(kLeft - 8, y + 12, "text-anchor=\"end\"", part.name) +
            rectangle(kLeft + scale * static_cast<double>(part.offset), y + 2,
                      std::max(1.0, scale * static_cast<double>(part.bytes)), kRow - 4, "class=\"w\"") +
            text_at(kLeft + kWidth + kRight - 70, y + 12, "text-anchor=\"end\"", with_separators(part.bytes)) +
            text_at(kLeft + kWidth + kRight - 8, y + 12, "text-anchor=\"end\"", percent(part.bytes, plan.arena_bytes));
    }
    svg += rectangle(kLeft, kTop - 2, kWidth, height - kTop + 4, "class=\"f\"") + text_at(kLeft, height + 18, "", "0") +
           text_at(kLeft + kWidth, height + 18, "text-anchor=\"end\"", with_separators(plan.arena_bytes));
    return svg_of(kLeft + kWidth + kRight, height + 32, svg);
}

std::string arena_text(const std::string& title, const Plan& plan) {
    constexpr std::uint64_t kColumns = 60;
    std::string out = title + ", " + with_separators(plan.arena_bytes) + " bytes\n";
    for (std::uint32_t i = 0; i < plan.n_parts; ++i) {
        const PlanPart& part = plan.parts[i];
        const auto column = [&](std::uint64_t at) {
            return static_cast<std::uint64_t>(
                std::llround(static_cast<double>(at) * kColumns / static_cast<double>(plan.arena_bytes)));
        };
        const std::uint64_t first = std::min(column(part.offset), kColumns - 1);
        const std::uint64_t last = std::max(column(part.offset + part.bytes), first + 1);
        char name[32];
        std::snprintf(name, sizeof name, "  %-12s ", part.name);
        out += name;
        for (std::uint64_t c = 0; c < kColumns; ++c)
            out += c >= first && c < last ? part.bytes * kColumns < plan.arena_bytes ? "▏" : "█" : "·";
        char size[48];
        std::snprintf(size, sizeof size, " %16s  %s\n", with_separators(part.bytes).c_str(),
                      percent(part.bytes, plan.arena_bytes).c_str());
        out += size;
    }
    return out;
}

}  // namespace

std::string draw_arena(const std::string& title, const Plan& plan, PictureKind kind) {
    if (kind == PictureKind::text) return arena_text(title, plan);
    std::string svg = arena_svg(title, plan);
    if (kind == PictureKind::svg) return svg;
    return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Arena</title>\n"
           "<style>body{margin:0;background:#ffffff}@media "
           "(prefers-color-scheme:dark){body{background:#16181c}}</style>"
           "</head><body>\n" +
           svg + "</body></html>\n";
}

}  // namespace fovea
