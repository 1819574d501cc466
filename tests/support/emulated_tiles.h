// Which instruction sets are the CPU's own if tests emulate one: see emulated_tiles.cpp.
#pragma once
#include <span>

namespace fovea::testing {

/// Whether amx, if a table has it, is emulated. Not every build of the suite has emulated_tiles.cpp.
[[gnu::weak]] bool emulates_tiles();

/// isa_names() without the emulated one, as programs other than these tests have them.
[[nodiscard]] std::span<const char* const> isas_of_cpu();

/// The instruction sets for a model that gains nothing by tiles, and for one that does.
[[nodiscard]] const char* best_without_tiles();
[[nodiscard]] const char* best_with_tiles();

/// While one exists, sessions may use emulated tiles, which are far too slow for every test.
class EmulatedTiles {
public:
    EmulatedTiles();
    ~EmulatedTiles();
    EmulatedTiles(const EmulatedTiles&) = delete;
    EmulatedTiles& operator=(const EmulatedTiles&) = delete;
};

/// Whether this thread released its emulated tiles, as it should.
[[nodiscard]] bool tiles_are_released();

}  // namespace fovea::testing
