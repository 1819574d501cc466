// What the `tokenizers` package knows of Unicode, as the tables a tokenizer section holds (engine/format/format.h).
// Written by make_unicode_data.py.
#pragma once
#include <cstdint>
#include <span>

namespace fovea {

extern const std::span<const std::uint32_t> unicode_classes;         ///< TokenizerTable::classes
extern const std::span<const std::uint32_t> unicode_characters;      ///< TokenizerTable::characters
extern const std::span<const std::uint64_t> unicode_lower_case;      ///< TokenizerTable::lower_case
extern const std::span<const std::uint32_t> unicode_combining;       ///< TokenizerTable::combining
extern const std::span<const std::uint64_t> unicode_decompositions;  ///< TokenizerTable::decompositions

extern const std::span<const std::uint32_t> unicode_clusters;  ///< TokenizerTable::clusters
/// first code point << 8 | number of its general category | 32: Han | 64: an accent (code_set.cpp)
extern const std::span<const std::uint32_t> unicode_categories;
/// What form KC or KD makes of characters beside C or D: number of characters << 21 | code point, and those; or 1 << 31 |
/// length << 21 | first code point, first character, for a stretch of which each becomes the one after the last one's
extern const std::span<const std::uint32_t> unicode_compatibility;

}  // namespace fovea
