// Sets of Unicode's code points, and the sets that patterns and normalizers name.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/format/format.h"

namespace fovea {

inline constexpr std::uint32_t kCodeEnd = 0x110000;

/// Disjoint stretches [first, end), ascending.
class CodeSet {
public:
    CodeSet() = default;
    CodeSet(std::uint32_t first, std::uint32_t last) : stretches_{{first, last + 1}} {}

    [[nodiscard]] bool has(std::uint32_t code) const;
    [[nodiscard]] bool empty() const { return stretches_.empty(); }
    [[nodiscard]] CodeSet inverse() const;
    CodeSet& operator|=(const CodeSet& other);
    [[nodiscard]] CodeSet operator&(const CodeSet& other) const;
    bool operator==(const CodeSet&) const = default;

    [[nodiscard]] const std::vector<std::pair<std::uint32_t, std::uint32_t>>& stretches() const { return stretches_; }

    /// Where a table of runs, first code point << 8 | value, has a value that `wanted` is true of.
    template<class Runs, class Wanted>
    static CodeSet of_runs(const Runs& runs, Wanted wanted) {
        CodeSet set;
        std::uint32_t first = 0;
        bool open = wanted(std::uint8_t{0});
        for (const std::uint32_t run : runs) {
            const bool next = wanted(static_cast<std::uint8_t>(run));
            if (open && !next) set.stretches_.emplace_back(first, run >> 8);
            if (!open && next) first = run >> 8;
            open = next;
        }
        if (open) set.stretches_.emplace_back(first, kCodeEnd);
        return set;
    }

private:
    std::vector<std::pair<std::uint32_t, std::uint32_t>> stretches_;
};

/// The characters that \p{name} matches in patterns of the `tokenizers` package: a general category such as Lu, all
/// categories of one letter, or Han. Nothing if the name is not known.
[[nodiscard]] std::optional<CodeSet> property_set(std::string_view name);

/// The code points with a bit of UnicodeClass or CharacterBit.
[[nodiscard]] CodeSet class_set(UnicodeClass bit);
[[nodiscard]] CodeSet character_set(CharacterBit bit);
/// The characters that StripAccents removes.
[[nodiscard]] CodeSet accent_set();

}  // namespace fovea
