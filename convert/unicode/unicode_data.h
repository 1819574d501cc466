// What the `tokenizers` package knows of Unicode, as the tables a tokenizer section holds (engine/format/format.h).
// make_unicode_data.py writes them to unicode.bin, of which CMake makes unicode_words.
#pragma once
#include <cstdint>
#include <span>

namespace fovea {

/// In the order of unicode.bin. The first six are the section's tables of those names; of elements of 64 bits the lower half is first.
enum class UnicodeTable {
    classes,
    characters,
    lower_case,
    combining,
    decompositions,
    clusters,
    categories,  ///< first code point << 8 | number of its general category | 32: Han | 64: an accent (code_set.cpp)
    /// What form KC or KD makes of characters beside C or D: number of characters << 21 | code point, and those; or
    /// 1 << 31 | length << 21 | first code point, first character, for a stretch of which each becomes the one after the
    /// last one's.
    compatibility,
};
inline constexpr std::size_t kUnicodeTables = 8;

/// The words of a table.
[[nodiscard]] std::span<const std::uint32_t> unicode_table(UnicodeTable table);

/// Each table's number of words, then the tables.
extern const std::uint32_t unicode_words[];

}  // namespace fovea
