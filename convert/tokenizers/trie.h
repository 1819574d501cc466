// Keys become the double array that a section holds (engine/tokenizer/automaton.h).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fovea {

/// The units for `entries`, keys with their values below 2^31: sorted by keys; the last of equal keys counts. Keys that
/// are empty or hold the byte 0xff are left out. The same entries give the same units.
[[nodiscard]] std::vector<std::uint32_t> make_trie(std::vector<std::pair<std::string, std::uint32_t>> entries);

/// Every value of a trie's units, which may come from a file, with the length in bytes of the shortest key that leads
/// to it. Time and memory: units × labels, circles or not.
[[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> trie_values(std::span<const std::uint32_t> units);

}  // namespace fovea
