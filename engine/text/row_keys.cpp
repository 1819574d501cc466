// What tells rows of vectors from others where a text is kept as tokens.
#include <bit>

#include "engine/format/parts.h"
#include "fovea/workspace.h"

namespace fovea {
namespace {

/// Each step can be undone, so that one word that differs always tells.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t hash, std::uint32_t word) noexcept {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

}  // namespace

void row_keys(const Step& step, std::span<Token> keys) noexcept {
    if (!has(Part::rows)) return;
    std::uint64_t hash = 0;
    for (const float x : step.rows) hash = mix(hash, std::bit_cast<std::uint32_t>(x));
    for (const std::uint32_t position : step.positions) hash = mix(hash, position);
    for (const RowSpan& span : step.spans) hash = mix(mix(hash, span.first), span.end);
    for (Token& key : keys) {
        hash = mix(hash, 0);
        key = kFirstRowKey | static_cast<Token>(hash >> 33);
    }
}

}  // namespace fovea
