// Maps of characters: SentencePiece's own, and Unicode's for compatibility.
#include <cstring>

#include "convert/tokenizers/tokenizer_spelling.h"
#include "convert/tokenizers/tokenizer_steps.h"
#include "convert/tokenizers/trie.h"
#include "convert/unicode/unicode_data.h"
#include "host/base/error.h"

namespace fovea {

// The layout: a number of bytes, a trie of as many bytes, and the texts that its values point into, each with a zero
// byte behind it.
MapSource read_charsmap(std::string_view bytes, const std::string& place) {
    const auto refuse = [&](const std::string& wanted, std::size_t had) {
        throw host::Error(place + ": expected " + wanted + ", got " + std::to_string(had));
    };
    std::uint32_t n = 0;
    if (bytes.size() < sizeof n) refuse("4 bytes or more", bytes.size());
    std::memcpy(&n, bytes.data(), sizeof n);
    bytes.remove_prefix(sizeof n);
    if (n > bytes.size() || n % 4) refuse("whole units of a trie in " + std::to_string(bytes.size()) + " bytes", n);
    std::vector<std::uint32_t> units(n / 4);
    if (n) std::memcpy(units.data(), bytes.data(), n);
    const std::string_view text = bytes.substr(n);
    const auto values = trie_values(units);
    if (values.empty() && n) refuse("a trie with keys", 0);
    for (const auto& [value, depth] : values)
        if (value >= text.size()) refuse("values below " + std::to_string(text.size()), value);
    return {std::move(units), std::string(text)};
}

MapSource compatibility_map() {
    constexpr std::uint32_t kStretch = 1u << 31, kCodeMask = (1u << 21) - 1;
    std::vector<std::pair<std::string, std::uint32_t>> entries;
    std::string text;
    const auto put = [&](std::uint32_t code, const std::string& to) {
        entries.emplace_back(spelled(code), static_cast<std::uint32_t>(text.size()));
        text.append(to).push_back('\0');
    };
    const std::span<const std::uint32_t> numbers = unicode_table(UnicodeTable::compatibility);
    for (std::size_t i = 0; i < numbers.size();) {
        const std::uint32_t code = numbers[i] & kCodeMask, n = (numbers[i] & ~kStretch) >> 21;
        if (numbers[i] & kStretch) {
            for (std::uint32_t k = 0; k < n; ++k) put(code + k, spelled(numbers[i + 1] + k));
            i += 2;
            continue;
        }
        std::string to;
        for (std::uint32_t k = 0; k < n; ++k) to += spelled(numbers[i + 1 + k]);
        put(code, to);
        i += 1 + n;
    }
    return {make_trie(std::move(entries)), std::move(text)};
}

}  // namespace fovea
