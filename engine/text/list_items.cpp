#include "engine/text/list_items.h"

#include <cstring>
#include <utility>

#include "engine/text/constraint_run.h"

namespace fovea {

void ListItems::read_before(std::span<const IndexNode> nodes, std::uint32_t node, const Tokenizer& tokenizer) noexcept {
    go_to(text);
    const std::uint32_t n_before = nodes[node].depth() - 1, end = nodes[node].end();
    while (node < end && nodes[node].token() == kNoNodeToken) ++node;  // a token that starts with the bytes
    if (node == end) return;
    const std::string_view bytes = token_text(tokenizer, nodes[node].token());
    for (std::uint32_t i = 0; i < n_before && i < bytes.size(); ++i)
        now.hash = hash_of(now.hash, static_cast<std::uint8_t>(bytes[i]));
}

bool ListItems::begin(const CallRecord& call) noexcept {
    n_asked += 2;                                 // the item that begins is no item that ends
    if (std::exchange(began, true)) return true;  // in another way to read the text
    now.hash = kNoText;
    if (call.loop == kFirstItem) now.first = now.end;
    if (call.loop != kFurtherItem) return true;
    if (now.end - now.first >= static_cast<int>(kMostItems) || now.end == kHashes) return false;
    hashes[now.end++] = now.last;
    return true;
}

bool ListItems::may_end(std::uint32_t loop, std::span<const std::uint32_t> words) noexcept {
    ++n_asked;
    asked = loop;
    could_end = true;
    std::span<const std::uint32_t> others = {hashes + now.first, std::size_t{now.end} - now.first};
    if (loop < kFurtherItem) {
        const std::uint32_t at = loop - kOtherText;
        others = words.subspan(at + 1, words[at]);
    } else {
        now.last = now.hash;
    }
    for (const std::uint32_t other : others)
        if (other == now.hash && loop != kFirstItem) could_end = false;
    return could_end;
}

void ListItems::keep() noexcept {
    const std::size_t n = now.end - std::size_t{now.first};
    std::memmove(hashes, hashes + now.first, n * sizeof hashes[0]);
    text = now;
    text.first = 0;
    text.end = static_cast<std::uint16_t>(n);
}

}  // namespace fovea
