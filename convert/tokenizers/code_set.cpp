#include "convert/tokenizers/code_set.h"

#include <algorithm>
#include <iterator>

#include "convert/unicode/unicode_data.h"

namespace fovea {
namespace {

// In the order of make_unicode_data.py's CATEGORIES: a value of UnicodeTable::categories below kIsHan is an index here.
constexpr std::string_view kCategories[] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                            "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                            "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"};
constexpr std::uint8_t kIsHan = 32, kIsAccent = 64, kCategoryMask = 31;

}  // namespace

bool CodeSet::has(std::uint32_t code) const {
    const auto after = std::upper_bound(stretches_.begin(), stretches_.end(), code,
                                        [](std::uint32_t c, const auto& stretch) { return c < stretch.first; });
    return after != stretches_.begin() && code < std::prev(after)->second;
}

CodeSet CodeSet::inverse() const {
    CodeSet result;
    std::uint32_t first = 0;
    for (const auto& [begin, end] : stretches_) {
        if (begin > first) result.stretches_.emplace_back(first, begin);
        first = end;
    }
    if (first < kCodeEnd) result.stretches_.emplace_back(first, kCodeEnd);
    return result;
}

CodeSet& CodeSet::operator|=(const CodeSet& other) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> all, joined;
    std::merge(stretches_.begin(), stretches_.end(), other.stretches_.begin(), other.stretches_.end(),
               std::back_inserter(all));
    for (const auto& stretch : all) {
        if (!joined.empty() && stretch.first <= joined.back().second)
            joined.back().second = std::max(joined.back().second, stretch.second);
        else
            joined.push_back(stretch);
    }
    stretches_ = std::move(joined);
    return *this;
}

CodeSet CodeSet::operator&(const CodeSet& other) const {
    CodeSet either = inverse();
    either |= other.inverse();
    return either.inverse();
}

std::optional<CodeSet> property_set(std::string_view name) {
    if (name == "Han")
        return CodeSet::of_runs(unicode_table(UnicodeTable::categories),
                                [](std::uint8_t v) { return (v & kIsHan) != 0; });
    const bool known = !name.empty() && name.size() <= 2 &&
                       std::any_of(std::begin(kCategories), std::end(kCategories),
                                   [&](std::string_view category) { return category.starts_with(name); });
    if (!known) return std::nullopt;
    return CodeSet::of_runs(unicode_table(UnicodeTable::categories), [&](std::uint8_t v) {
        const std::size_t category = v & kCategoryMask;
        return category < std::size(kCategories) && kCategories[category].starts_with(name);
    });
}

CodeSet class_set(UnicodeClass bit) {
    return CodeSet::of_runs(unicode_table(UnicodeTable::classes), [&](std::uint8_t v) { return (v & bit) != 0; });
}

CodeSet character_set(CharacterBit bit) {
    return CodeSet::of_runs(unicode_table(UnicodeTable::characters), [&](std::uint8_t v) { return (v & bit) != 0; });
}

CodeSet accent_set() {
    return CodeSet::of_runs(unicode_table(UnicodeTable::categories),
                            [](std::uint8_t v) { return (v & kIsAccent) != 0; });
}

}  // namespace fovea
