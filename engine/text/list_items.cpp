#include "engine/text/list_items.h"

#include <cstring>
#include <utility>

namespace fovea {

void ListItems::read_before(std::span<const IndexNode> nodes, std::uint32_t node, std::uint32_t& depth) noexcept {
    if (depth && node <= path[depth].node) depth = 0;
    std::uint32_t i = depth ? path[depth].node + 1 : 0;
    while (depth && nodes[path[depth].node].end() <= node) i = nodes[path[depth--].node].end();
    if (depth == 0) path[0].hash = text.hash;
    for (; depth + 1 < nodes[node].depth(); ++i) {
        while (nodes[i].end() <= node) i = nodes[i].end();
        read({path[depth].hash}, nodes[i].byte());
        path[++depth] = {i, now.hash};
    }
    go_to(text);
    now.hash = path[depth].hash;
}

bool ListItems::begin(bool is_first) noexcept {
    asked = true;
    if (std::exchange(began, true)) return true;  // in another way to read the text
    now.hash = 0x811c9dc5u;
    if (is_first) return now.first = now.end, true;
    if (now.end - now.first >= static_cast<int>(kMostItems) || now.end == kHashes) return false;
    hashes[now.end++] = now.last;
    return true;
}

bool ListItems::may_end(bool is_first) noexcept {
    asked = true;
    now.last = now.hash;
    for (std::uint32_t i = now.first; i < now.end && !is_first; ++i)
        if (hashes[i] == now.hash) return false;
    return true;
}

void ListItems::keep() noexcept {
    const std::size_t n = now.end - std::size_t{now.first};
    std::memmove(hashes, hashes + now.first, n * sizeof hashes[0]);
    text = now;
    text.first = 0;
    text.end = static_cast<std::uint16_t>(n);
}

}  // namespace fovea
