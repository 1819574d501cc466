// Lists whose items differ, and texts that are none of some: what calls read, as hashes. Equal hashes of different texts only
// forbid one that would fit.
#pragma once
#include <span>

#include "engine/format/constraint_format.h"
#include "engine/format/parts.h"
#include "fovea/tokenizer.h"

namespace fovea {

[[nodiscard]] constexpr bool is_item(const CallRecord& call) noexcept {
    return has(Part::known_sets) && call.loop >= kOtherText && call.loop != kNoPlace;
}

struct ListItems {
    /// What is known behind some bytes.
    struct Seen {
        std::uint32_t hash = 0;            // of the bytes since an item began
        std::uint32_t last = 0;            // that hash where the item could last end
        std::uint16_t first = 0, end = 0;  // hashes of the items before it
    };

    static constexpr std::uint32_t kHashes = kMostItems + kMostTokenBytes;

    std::uint32_t hashes[kHashes];          // the text's, then those that one token's bytes add
    Seen text, now;                         // behind the text, and where a walk is
    bool began = false, could_end = false;  // since the last byte: an item began; what may_end said last
    std::uint32_t n_asked = 0;              // and how often it was asked, or an item began
    std::uint32_t asked = 0;                // for what call's `loop` last
    Seen levels[kMostTokenBytes + 1];       // behind the nodes on the path to the present one

    void go_to(const Seen& seen) noexcept {
        now = seen;
        began = false;
        n_asked = 0;
    }
    void read(const Seen& from, std::uint8_t byte) noexcept {
        go_to(from);
        now.hash = hash_of(now.hash, byte);
    }
    /// Reads the bytes before a node of the vocabulary, after the text.
    void read_before(std::span<const IndexNode> nodes, std::uint32_t node, const Tokenizer& tokenizer) noexcept;
    /// An item begins; false if there is no room.
    [[nodiscard]] bool begin(const CallRecord& call) noexcept;
    /// Whether the item of a call with this `loop` may end here. `words` are the form's.
    [[nodiscard]] bool may_end(std::uint32_t loop, std::span<const std::uint32_t> words) noexcept;
    /// The text goes on as far as `now`.
    void keep() noexcept;
};

}  // namespace fovea
