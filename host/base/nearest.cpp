#include "host/base/nearest.h"

#include <algorithm>

namespace fovea {
namespace {

std::size_t distance(std::string_view a, std::string_view b) {
    // before[j] and row[j] are the distances of a's first i - 1 and i letters from b's first j; the row before them is
    // for letters that changed places.
    std::vector<std::size_t> oldest(b.size() + 1), before(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::swap(oldest, before);
        std::swap(before, row);
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], oldest[j - 2] + 1);
        }
    }
    return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view typed, const std::vector<std::string>& names) {
    constexpr std::size_t kLongest = 64;  // of what can be meant; the cost grows with its square
    std::string best;
    if (typed.size() > kLongest) return best;
    std::size_t least = ~std::size_t{0};
    for (const std::string& name : names) {
        const std::size_t n = distance(typed, name);
        if (n < least && 3 * n <= name.size()) {
            best = name;
            least = n;
        }
    }
    return best;
}

}  // namespace fovea
