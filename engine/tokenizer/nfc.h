// Unicode's normal form C, over the tables of a tokenizer section.
#pragma once
#include <span>
#include <string_view>

#include "engine/tokenizer/tables.h"

namespace fovea {

/// Writes NFC(text) to `out` and its length to `n`. False where `out` is too short: three times the text always does.
/// Bytes that are no UTF-8 pass through and part what is on their two sides. Linear time.
/// Source: Unicode Standard Annex 15; Unicode Standard, section 3.11 (canonical ordering, composition) and 3.12 (Hangul).
[[nodiscard]] bool nfc(const Tables& tables, std::string_view text, std::span<char> out, std::size_t& n) noexcept;

}  // namespace fovea
