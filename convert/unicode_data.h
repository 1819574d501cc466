// What the `tokenizers` package knows of Unicode, as the tables a tokenizer section holds (engine/model/format.h).
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

}  // namespace fovea
