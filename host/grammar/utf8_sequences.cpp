#include <algorithm>

#include "engine/format/utf8.h"
#include "host/grammar/automaton.h"

namespace fovea::grammar {
namespace {

/// Splits low to high, of one length in UTF-8, until each byte's range is independent of the bytes before it.
void split(std::uint32_t low, std::uint32_t high, std::vector<ByteSequence>& out) {
    char first[4], last[4];
    const std::uint32_t n = put_character(low, first);
    (void)put_character(high, last);
    for (std::uint32_t i = 1; i < n; ++i) {
        const std::uint32_t below = (1u << 6 * i) - 1;  // what the last i bytes hold
        if ((low & ~below) == (high & ~below)) continue;
        if (low & below) {
            split(low, low | below, out);
            return split((low | below) + 1, high, out);
        }
        if ((high & below) != below) {
            split(low, (high & ~below) - 1, out);
            return split(high & ~below, high, out);
        }
    }
    ByteSequence sequence{.n = n};
    for (std::uint32_t i = 0; i < n; ++i) {
        sequence.low[i] = static_cast<std::uint8_t>(first[i]);
        sequence.high[i] = static_cast<std::uint8_t>(last[i]);
    }
    out.push_back(sequence);
}

}  // namespace

std::vector<ByteSequence> utf8_sequences(const CodeSet& set) {
    constexpr CodeRange kLengths[] = {{0, 0x7f}, {0x80, 0x7ff}, {0x800, 0xffff}, {0x10000, kLastCode}};
    std::vector<ByteSequence> out;
    for (const CodeRange& range : set)
        for (const CodeRange& length : kLengths)
            if (range.low <= length.high && length.low <= range.high)
                split(std::max(range.low, length.low), std::min(range.high, length.high), out);
    return out;
}

}  // namespace fovea::grammar
