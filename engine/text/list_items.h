// Lists whose items differ: what their calls read, as hashes. Equal hashes of different texts only forbid one that would fit.
#pragma once
#include <span>

#include "engine/format/constraint_format.h"
#include "engine/format/parts.h"

namespace fovea {

[[nodiscard]] constexpr bool is_item(const CallRecord& call) noexcept {
    return has(Part::known_sets) && (call.loop == kFirstItem || call.loop == kFurtherItem);
}

struct ListItems {
    /// What is known behind some bytes.
    struct Seen {
        std::uint32_t hash = 0;            // of the bytes since an item began
        std::uint32_t last = 0;            // that hash where the item could last end
        std::uint16_t first = 0, end = 0;  // hashes of the items before it
    };
    struct Step {
        std::uint32_t node = 0, hash = 0;
    };

    static constexpr std::uint32_t kHashes = kMostItems + kMostTokenBytes;

    std::uint32_t hashes[kHashes];      // the text's, then those that one token's bytes add
    Seen text, now;                     // behind the text, and where a walk is
    bool asked = false, began = false;  // since the last byte: an item might end or begin; one began
    Seen levels[kMostTokenBytes + 1];   // behind the nodes on the path to the present one
    Step path[kMostTokenBytes + 1];     // nodes on the path to an entry, with hashes behind them

    void go_to(const Seen& seen) noexcept {
        now = seen;
        asked = began = false;
    }
    void read(const Seen& from, std::uint8_t byte) noexcept {
        go_to(from);
        now.hash = (now.hash ^ byte) * 0x01000193u;  // Fowler, Noll and Vo 1991
    }
    /// Reads the bytes before a node, after the text. `depth` is that of path: 0 before the first of several nodes.
    void read_before(std::span<const IndexNode> nodes, std::uint32_t node, std::uint32_t& depth) noexcept;
    /// An item begins; false if there is no room.
    [[nodiscard]] bool begin(bool is_first) noexcept;
    /// Whether the item may end here.
    [[nodiscard]] bool may_end(bool is_first) noexcept;
    /// The text goes on as far as `now`.
    void keep() noexcept;
};

}  // namespace fovea
