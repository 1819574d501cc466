#include "host/show/picture.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/format/utf8.h"
#include "host/base/error.h"
#include "host/base/output_file.h"
#include "host/show/svg.h"

namespace fovea {
namespace {

struct ValueRange {
    std::uint32_t first, last;
};

/// East Asian Wide and Fullwidth (Unicode Standard Annex 11), in blocks.
constexpr ValueRange kWide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},  {0x3041, 0x4dbf},   {0x4e00, 0xa4cf},
                                {0xa960, 0xa97c},   {0xac00, 0xd7a3},  {0xf900, 0xfaff},   {0xfe30, 0xfe6b},
                                {0xff01, 0xff60},   {0xffe0, 0xffe6},  {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
                                {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
/// Blocks of characters that join the character before them.
constexpr ValueRange kCombining[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x64b, 0x65f},
                                     {0x200b, 0x200f}, {0x20d0, 0x20f0}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},
                                     {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};

constexpr std::string_view kEllipsis = "\xe2\x80\xa6";

template<std::size_t n>
bool is_in(const ValueRange (&ranges)[n], std::uint32_t code) {
    return std::any_of(ranges, ranges + n, [&](const ValueRange& r) { return code >= r.first && code <= r.last; });
}

/// Labels of at most kLongestLabel columns; what is longer ends in "…".
std::vector<std::string> labels_of(const std::vector<std::string>& tokens) {
    constexpr std::size_t kLongestLabel = 20;
    std::vector<std::string> labels;
    for (const std::string& token : tokens) {
        std::string label = token_label(token);
        for (bool cut = false; text_columns(label) > kLongestLabel; cut = true) {
            std::size_t end = label.size() - (cut ? kEllipsis.size() : 0);
            do --end;
            while (end && (static_cast<unsigned char>(label[end]) & 0xc0) == 0x80);  // within a character
            label = label.substr(0, end) + std::string(kEllipsis);
        }
        labels.push_back(label);
    }
    return labels;
}

std::size_t widest(const std::vector<std::string>& labels) {
    std::size_t columns = 1;
    for (const std::string& label : labels) columns = std::max(columns, text_columns(label));
    return columns;
}

/// Sizes of an SVG in its own units.
constexpr double kGap = 24, kTitle = 22, kBar = 160;

struct PicturePanel {
    double cell, left, top, width, height;  // left and top: room for labels
    std::size_t step;                       // every how many tokens there is a label
};

PicturePanel panel_of(const std::vector<std::string>& queries, const std::vector<std::string>& keys) {
    const double n = static_cast<double>(std::max<std::size_t>({queries.size(), keys.size(), 1}));
    PicturePanel p{};
    p.cell = std::clamp(600 / n, 4.0, 26.0);
    p.step = static_cast<std::size_t>(std::ceil((kFont + 1) / p.cell));
    p.left = kColumn * static_cast<double>(widest(queries)) + 8;
    p.top = kColumn * static_cast<double>(widest(keys)) + 8 + kTitle;
    p.width = p.left + std::max(p.cell * static_cast<double>(keys.size()), kColumn * 8) + kGap;
    p.height = p.top + p.cell * static_cast<double>(queries.size()) + kGap;
    return p;
}

/// A head's cells as one path for each of 32 shades: small files, whatever the length.
std::string cells(const float* weights, std::size_t n_queries, std::size_t n_keys, double cell) {
    constexpr int kShades = 32;
    std::vector<std::string> paths(kShades + 1);
    for (std::size_t q = 0; q < n_queries; ++q)
        for (std::size_t k = 0; k < n_keys;) {
            const auto shade = [&](std::size_t key) {
                const float w = weights[q * n_keys + key];
                return w > 0 ? static_cast<int>(std::lround(std::min(w, 1.0f) * kShades)) : 0;  // NaN: none
            };
            const std::size_t first = k;
            const int s = shade(k);
            while (k < n_keys && shade(k) == s) ++k;
            if (s == 0) continue;
            const double width = cell * static_cast<double>(k - first);
            char path[96];
            std::snprintf(path, sizeof path, "M%.6g %.6gh%.6gv%.6gh-%.6gz", cell * static_cast<double>(first),
                          cell * static_cast<double>(q), width, cell, width);
            paths[s] += path;
        }
    std::string result;
    for (int s = 1; s <= kShades; ++s)
        if (!paths[s].empty())
            result +=
                "<path class=\"w\" fill-opacity=\"" + number(s / double{kShades}) + "\" d=\"" + paths[s] + "\"/>\n";
    return result;
}

std::string pattern_text(const AttentionPattern& pattern) {
    static constexpr const char* kShades[] = {" ", "\xe2\x96\x91", "\xe2\x96\x92", "\xe2\x96\x93", "\xe2\x96\x88"};
    static constexpr float kFrom[] = {0.05f, 0.2f, 0.4f, 0.7f};
    const std::vector<std::string> queries = labels_of(pattern.queries), keys = labels_of(pattern.keys);
    const std::size_t n_columns = widest(queries), cell = keys.size() > 50 ? 1 : 2;
    const auto padded = [&](const std::string& label) {
        return std::string(n_columns - text_columns(label), ' ') + label + " ";
    };
    std::string out = pattern.title + "\n";
    for (std::size_t head = 0; head < pattern.n_heads; ++head) {
        out += "head " + std::to_string(head) + "\n" + padded("");
        for (std::size_t k = 0; k < keys.size(); ++k) out += std::to_string(k % 10) + std::string(cell - 1, ' ');
        out += "\n";
        for (std::size_t q = 0; q < queries.size(); ++q) {
            out += padded(queries[q]);
            for (std::size_t k = 0; k < keys.size(); ++k) {
                const float w = pattern.weights[(head * queries.size() + q) * keys.size() + k];
                const auto shade = std::count_if(std::begin(kFrom), std::end(kFrom), [&](float f) { return w >= f; });
                for (std::size_t i = 0; i < cell; ++i) out += kShades[shade];
            }
            out += "\n";
        }
    }
    out += "keys:";
    for (std::size_t k = 0; k < keys.size(); ++k) out.append(" ").append(std::to_string(k)).append("=").append(keys[k]);
    return out + "\n";
}

/// A head's panel, its cells' corner at the origin.
std::string head_panel(const AttentionPattern& pattern, std::size_t head, const PicturePanel& p,
                       const std::vector<std::string>& queries, const std::vector<std::string>& keys) {
    const std::size_t n_queries = queries.size(), n_keys = keys.size();
    std::string svg =
        text_at(0, 8 - p.top + kTitle / 2, "class=\"t\"", "head " + std::to_string(head)) +
        cells(pattern.weights.data() + head * n_queries * n_keys, n_queries, n_keys, p.cell) +
        rectangle(0, 0, p.cell * static_cast<double>(n_keys), p.cell * static_cast<double>(n_queries), "class=\"f\"");
    const auto middle = [&](std::size_t i) { return p.cell * (static_cast<double>(i) + 0.5) + 4; };
    for (std::size_t i = 0; i < n_queries; i += p.step)
        svg += text_at(-4, middle(i), "text-anchor=\"end\"", queries[i]);
    for (std::size_t i = 0; i < n_keys; i += p.step)
        svg += text_at(middle(i), -4, "transform=\"rotate(-90 " + number(middle(i)) + " -4)\"", keys[i]);
    return svg;
}

std::string legend(double y) {
    std::string svg;
    for (int i = 1; i <= 8; ++i)
        svg += rectangle(kGap + 20 + i * 12, y - 10, 12, 12, "class=\"w\" fill-opacity=\"" + number(i / 8.0) + "\"");
    return svg + text_at(kGap + 20, y, "", "0") + text_at(kGap + 134, y, "", "1 of a query's attention");
}

}  // namespace

PictureKind picture_kind(const std::string& path) {
    if (path == "-") return PictureKind::text;
    if (path.ends_with(".svg")) return PictureKind::svg;
    if (path.ends_with(".html")) return PictureKind::html;
    throw host::ArgumentError("--picture: expected a name that ends in .svg or .html, or - for the terminal, got " +
                              path);
}

void write_picture(const std::string& path, std::string_view picture) {
    if (path == "-") {
        std::fwrite(picture.data(), 1, picture.size(), stdout);  // whether all was written main asks
        return;
    }
    OutputFile file(path);
    file.stream().write(picture.data(), static_cast<std::streamsize>(picture.size()));
    file.close();
}

std::string token_label(std::string_view bytes) {
    std::string label;
    while (!bytes.empty()) {
        const Character c = first_character(bytes);
        if (c.code == ' ') {
            label += "\xe2\x90\xa3";  // ␣
        } else if (c.code == kNotACharacter || c.code < 0x20 || (c.code >= 0x7f && c.code < 0xa0)) {
            for (std::uint32_t i = 0; i < c.bytes; ++i) {
                char hex[8];
                std::snprintf(hex, sizeof hex, "<%02X>", static_cast<unsigned>(static_cast<std::uint8_t>(bytes[i])));
                label += hex;
            }
        } else {
            label += bytes.substr(0, c.bytes);
        }
        bytes.remove_prefix(c.bytes);
    }
    return label;
}

std::size_t text_columns(std::string_view text) {
    std::size_t columns = 0;
    while (!text.empty()) {
        const Character c = first_character(text);
        columns += is_in(kCombining, c.code) ? 0 : is_in(kWide, c.code) ? 2 : 1;
        text.remove_prefix(c.bytes);
    }
    return columns;
}

std::string draw_svg(std::span<const AttentionPattern> patterns) {
    double width = 2 * kBar, y = 0;
    std::string svg;
    for (const AttentionPattern& pattern : patterns) {
        const std::vector<std::string> queries = labels_of(pattern.queries), keys = labels_of(pattern.keys);
        const PicturePanel p = panel_of(queries, keys);
        const auto n_across = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(pattern.n_heads))));
        const std::size_t n_down = n_across ? (pattern.n_heads + n_across - 1) / n_across : 0;
        y += kGap;
        svg += text_at(kGap, y, "class=\"t\"", pattern.title);
        for (std::size_t head = 0; head < pattern.n_heads; ++head) {
            const std::size_t row = head / n_across, column = head % n_across;
            svg += "<g transform=\"translate(" + number(kGap + p.width * static_cast<double>(column) + p.left) + " " +
                   number(y + p.height * static_cast<double>(row) + p.top) + ")\">\n" +
                   head_panel(pattern, head, p, queries, keys) + "</g>\n";
        }
        y += p.height * static_cast<double>(n_down);
        width = std::max(width, kGap + p.width * static_cast<double>(n_across));
    }
    return svg_of(width, y + 2 * kGap, svg + legend(y + kGap));
}

std::string draw_text(std::span<const AttentionPattern> patterns) {
    std::string out;
    for (const AttentionPattern& pattern : patterns) out += pattern_text(pattern);
    return out + "\xe2\x96\x91 from 0.05, \xe2\x96\x92 0.2, \xe2\x96\x93 0.4, \xe2\x96\x88 0.7\n";
}

}  // namespace fovea
