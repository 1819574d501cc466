#include "engine/tokenizer/added.h"

namespace fovea {

AddedTokens::AddedTokens(const Tables& tables, const Classes& classes, bool parse_special) noexcept
    : tables_(tables), classes_(classes), parse_special_(parse_special) {
    for (const AddedToken& token : tables.added_tokens) {
        const std::string_view spelling = tables.spelling(token);
        if (spelling.empty()) continue;
        const auto first = static_cast<std::uint8_t>(spelling[0]);
        starts_[first / 32] |= 1u << first % 32;
    }
}

AddedTokens::Match AddedTokens::next(std::string_view text, std::size_t pos, std::size_t taken,
                                     bool normalized) const noexcept {
    for (; pos < text.size(); ++pos) {
        const auto first = static_cast<std::uint8_t>(text[pos]);
        if (!(starts_[first / 32] >> first % 32 & 1)) continue;
        const AddedToken* token = longest(tail(text, pos), normalized);
        if (!token) continue;
        Match match{token, false, pos, pos + token->bytes, pos + token->bytes};
        if (!counts(*token, text, match.begin, match.end)) return match;
        match.taken = true;
        while ((token->flags & kAddedTakesLeft) && match.begin > taken) {
            const Character c = last_character({text.data() + taken, match.begin - taken});
            if (!(classes_.of(c) & kSpace)) break;
            match.begin -= c.bytes;
        }
        if (token->flags & kAddedTakesRight) match.end = classes_.run_end(text, match.end, kSpace);
        return match;
    }
    return {};
}

/// Narrows the sorted tokens down byte by byte. Those that end there come first: two at most, one of each kind.
const AddedToken* AddedTokens::longest(std::string_view text, bool normalized) const noexcept {
    const std::span<const AddedToken> all = tables_.added_tokens;
    const AddedToken* found = nullptr;
    // The byte at `depth` as a key that puts the end of a spelling before every byte.
    std::size_t low = 0, high = all.size(), depth = 0;
    const auto key = [&](std::size_t i) -> std::uint32_t {
        const std::string_view spelling = tables_.spelling(all[low + i]);
        return depth < spelling.size() ? static_cast<std::uint8_t>(spelling[depth]) + 1u : 0;
    };
    for (; low < high && depth < kMaxAddedBytes && depth < text.size(); ++depth) {
        const std::uint32_t wanted = static_cast<std::uint8_t>(text[depth]) + 1u;
        low += first_place(high - low, wanted, key);
        high = low + first_place(high - low, wanted + 1, key);
        for (std::size_t i = low; i < high && i < low + 2 && all[i].bytes == depth + 1; ++i)
            if (((all[i].flags & kAddedNormalized) != 0) == normalized) found = &all[i];
    }
    return found;
}

bool AddedTokens::counts(const AddedToken& token, std::string_view text, std::size_t begin,
                         std::size_t end) const noexcept {
    if ((token.flags & kAddedSpecial) && !parse_special_) return false;
    if (!(token.flags & kAddedWord)) return true;
    const bool word_before = begin > 0 && (classes_.of(last_character({text.data(), begin})) & kWord);
    return !word_before && !(classes_.at(text, end).bits & kWord);
}

}  // namespace fovea
