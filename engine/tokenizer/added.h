// Tokens that are found in the text itself, before it is cut into words: "<|name|>" and the like.
#pragma once
#include <cstdint>
#include <string_view>

#include "engine/tokenizer/tables.h"
#include "engine/tokenizer/words.h"

namespace fovea {

class AddedTokens {
public:
    AddedTokens(const Tables& tables, const Classes& classes, bool parse_special) noexcept;

    struct Match {
        const AddedToken* token = nullptr;  ///< null: there is none
        bool taken = false;                 ///< it counts; else its characters are plain text
        std::size_t begin = 0, end = 0;     ///< what it takes out, the space it asks for included
        std::size_t resume = 0;             ///< where to look for the next one
    };
    /// The leftmost added token from `pos` on, the longest where several start together, of those that are matched in
    /// the normalized text or of those in the text as given. `taken` bounds the space that may go with it on the left.
    [[nodiscard]] Match next(std::string_view text, std::size_t pos, std::size_t taken, bool normalized) const noexcept;

private:
    [[nodiscard]] const AddedToken* longest(std::string_view text, bool normalized) const noexcept;
    [[nodiscard]] bool counts(const AddedToken& token, std::string_view text, std::size_t begin,
                              std::size_t end) const noexcept;

    const Tables& tables_;
    const Classes& classes_;
    bool parse_special_;
    std::uint32_t starts_[8] = {};  // the set of first bytes
};

}  // namespace fovea
