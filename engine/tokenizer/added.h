// Tokens that are found in the text itself, before it is cut into words: "<|name|>" and the like.
#pragma once
#include <cstdint>
#include <string_view>

#include "engine/tokenizer/tables.h"
#include "engine/tokenizer/text.h"

namespace fovea {

class AddedTokens {
public:
    AddedTokens(const Tables& tables, const Classes& classes, bool parse_special) noexcept
        : tables_(tables), classes_(classes), parse_special_(parse_special) {
        for (const AddedToken& token : tables.added_tokens)
            if (const std::string_view spelling = tables.spelling(token); !spelling.empty()) {
                const auto first = static_cast<std::uint8_t>(spelling[0]);
                starts_[first / 32] |= 1u << first % 32;
            }
    }

    struct Match {
        const AddedToken* token = nullptr;  ///< null: there is none
        bool taken = false;                 ///< it counts; else its characters are plain text
        std::size_t begin = 0, end = 0;     ///< what it takes out, the space it asks for included
        std::size_t resume = 0;             ///< where to look for the next one
    };
    /// The leftmost added token from `pos` on, the longest where several start together, of those that are matched in
    /// the normalized text or of those in the text as given. `taken` bounds the space that may go with it on the left.
    [[nodiscard]] Match next(std::string_view text, std::size_t pos, std::size_t taken,
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

private:
    /// Narrows the sorted tokens down byte by byte. Those that end there come first: two at most, one of each kind.
    [[nodiscard]] const AddedToken* longest(std::string_view text, bool normalized) const noexcept {
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

    [[nodiscard]] bool counts(const AddedToken& token, std::string_view text, std::size_t begin,
                              std::size_t end) const noexcept {
        if ((token.flags & kAddedSpecial) && !parse_special_) return false;
        if (!(token.flags & kAddedWord)) return true;
        const bool word_before = begin > 0 && (classes_.of(last_character({text.data(), begin})) & kWord);
        return !word_before && !(classes_.at(text, end).bits & kWord);
    }

    const Tables& tables_;
    const Classes& classes_;
    bool parse_special_;
    std::uint32_t starts_[8] = {};  // the set of first bytes
};

}  // namespace fovea
