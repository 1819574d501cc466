#include "convert/unicode/unicode_data.h"

#include <numeric>

namespace fovea {

std::span<const std::uint32_t> unicode_table(UnicodeTable table) {
    const auto number = static_cast<std::size_t>(table);
    return {unicode_words + std::accumulate(unicode_words, unicode_words + number, kUnicodeTables),
            unicode_words[number]};
}

}  // namespace fovea
