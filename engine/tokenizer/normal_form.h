// Unicode's normal forms C and D, over the tables of a tokenizer section.
#pragma once
#include <span>
#include <string_view>

#include "engine/tokenizer/tables.h"

namespace fovea {

/// Writes `text` to `out` in normal form C or, with `strip`, in form D without nonspacing marks, and its length to `n`.
/// False where `out` is too short: three times the text always does.
/// Bytes that are no UTF-8 pass through and part what is on their two sides. Linear time.
/// Source: Unicode Standard Annex 15; Unicode Standard, section 3.11 (canonical ordering, composition), 3.12 (Hangul).
[[nodiscard]] bool normalize(const Tables& tables, bool strip, std::string_view text, std::span<char> out,
                             std::size_t& n) noexcept;

}  // namespace fovea
