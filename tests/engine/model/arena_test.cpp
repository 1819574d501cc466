// Memory that a program takes from its heap for arenas.
#include "fovea/host/arena.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "tests/support/small_models.h"

namespace {

using namespace fovea;
using namespace fovea::testing;

TEST_CASE("arena: exactly so many zeroed bytes, aligned, that stay where they are when it moves") {
    for (const std::uint64_t n : {1, 63, 64, 65, 4096, 100'000}) {
        CAPTURE(n);
        Arena arena(n);
        const std::span<std::byte> bytes = arena;
        REQUIRE(bytes.size() == n);
        CHECK(arena.size() == n);
        CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % kArenaAlignment == 0);
        CHECK(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{}; }));
        bytes.back() = std::byte{7};
        Arena moved = std::move(arena), other(8);
        CHECK(moved.bytes().data() == bytes.data());
        other = std::move(moved);
        CHECK(other.bytes().data() == bytes.data());
        CHECK(other.bytes().back() == std::byte{7});
        CHECK(moved.size() == 0);
    }
    CHECK(Arena().size() == 0);
    CHECK(Arena(0).bytes().empty());
}

TEST_CASE("arena: memory that there is not is an empty arena, and then a status") {
    const SmallModel model(llama_config(), Type::f32);
    Plan plan;
    Session session;
    REQUIRE(make_plan(model.model.config(), {}, plan).ok());
    std::vector<std::uint64_t> sizes = {std::numeric_limits<std::uint64_t>::max()};
#if !defined(FOVEA_SANITIZED)  // the address sanitizer ends a program that asks for so much
    sizes.push_back(std::uint64_t{1} << 62);
#endif
    for (const std::uint64_t n : sizes) {
        Arena none(n);
        CHECK(none.size() == 0);
        CHECK(make_session(model.model, {}, none, session).code == Code::arena_too_small);
    }
    Arena arena(plan.arena_bytes);
    CHECK(make_session(model.model, {}, arena, session).ok());
}

}  // namespace
