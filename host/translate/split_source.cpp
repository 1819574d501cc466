#include "host/translate/split_source.h"

#include <algorithm>

#include "host/base/words.h"

namespace fovea {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

bool is_within_character(std::string_view text, std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
}

/// Bytes of the longest beginning that fits, of whole characters and at least one.
std::size_t longest_that_fits(std::string_view text, const std::function<bool(std::string_view)>& fits) {
    const auto whole = [&](std::size_t n) {
        while (is_within_character(text, n)) ++n;
        return std::min(n, text.size());
    };
    std::size_t good = whole(1), bad = good;
    while (bad < text.size() && fits(text.substr(0, bad))) good = bad, bad = whole(2 * bad);
    if (bad == text.size() && fits(text)) return bad;
    while (true) {
        const std::size_t middle = whole(good + (bad - good) / 2);
        if (middle == good || middle >= bad) return good;
        (fits(text.substr(0, middle)) ? good : bad) = middle;
    }
}

/// Where the last sentence of a text's first `n` bytes ends; 0: in none of them. A full stop ends one before a space, an
/// ideographic one anywhere.
std::size_t last_sentence(std::string_view text, std::size_t n) {
    constexpr std::string_view kEnds[] = {".", "!", "?", "…", "。", "！", "？", "।", "؟"},
                               kClosing[] = {"\"", "'", ")", "]", "”", "’", "」", "»"};
    std::size_t last = 0;
    for (std::size_t at = 0; at < n;) {
        const auto end = std::find_if(std::begin(kEnds), std::end(kEnds),
                                      [&](std::string_view mark) { return text.substr(at).starts_with(mark); });
        if (end == std::end(kEnds)) {
            ++at;
            continue;
        }
        at += end->size();
        for (bool more = true; more;) {
            more = false;
            for (const std::string_view mark : kClosing)
                if (text.substr(at).starts_with(mark)) at += mark.size(), more = true;
        }
        const bool is_wide = end->starts_with("\xe3") || end->starts_with("\xef");
        if (at <= n && (is_wide || at == text.size() || kBlanks.find(text[at]) != kBlanks.npos)) last = at;
    }
    return last;
}

/// Where the last word of the first n bytes ends; 0: in none of them.
std::size_t last_word(std::string_view text, std::size_t n) {
    const std::size_t line = text.substr(0, n).rfind('\n'), space = text.substr(0, n + 1).find_last_of(kBlanks);
    return line != text.npos && line > 0 ? line : space != text.npos ? space : 0;
}

}  // namespace

std::vector<std::string_view> split_source(std::string_view text, const std::function<bool(std::string_view)>& fits) {
    if (fits(text)) return {text};
    std::vector<std::string_view> parts;
    for (text = trimmed(text, kBlanks); !text.empty(); text = trimmed(text, kBlanks)) {
        std::size_t n = longest_that_fits(text, fits);
        if (n < text.size())
            for (const std::size_t end : {last_word(text, n), last_sentence(text, n)})
                if (end) n = end;
        parts.push_back(trimmed(text.substr(0, n), kBlanks));
        text.remove_prefix(n);
    }
    return parts;
}

}  // namespace fovea
