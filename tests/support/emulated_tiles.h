// Which instruction sets are the CPU's own where tests emulate one: see emulated_tiles.cpp.
#pragma once
#include <span>

namespace fovea::testing {

/// Whether amx, where a table has it, is emulated. Not every build of the suite has emulated_tiles.cpp.
[[gnu::weak]] bool emulates_tiles();

/// isa_names() without it: those of programs that are not these tests.
[[nodiscard]] std::span<const char* const> isas_of_cpu();

/// What runs a model that gains nothing by tiles, and one that does.
[[nodiscard]] const char* best_without_tiles();
[[nodiscard]] const char* best_with_tiles();

/// While one is there sessions may have emulated tiles, which are far too slow for every test.
class EmulatedTiles {
public:
    EmulatedTiles();
    ~EmulatedTiles();
    EmulatedTiles(const EmulatedTiles&) = delete;
    EmulatedTiles& operator=(const EmulatedTiles&) = delete;
};

/// Whether this thread left its emulated tiles as it should: with nothing to be saved.
[[nodiscard]] bool tiles_are_released();

}  // namespace fovea::testing
