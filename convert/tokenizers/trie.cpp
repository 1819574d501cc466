#include "convert/tokenizers/trie.h"

#include <algorithm>

#include "host/base/error.h"

namespace fovea {
namespace {

constexpr std::uint32_t kBlock = 256, kLeaf = 1u << 31, kHasLeaf = 1u << 8, kWide = 1u << 9, kMostNear = 1u << 21;
constexpr std::size_t kMostTries = 64;  // for a node's place before it gets a fresh block
constexpr std::uint32_t kNone = 0xffffffffu;

using Entries = std::vector<std::pair<std::string, std::uint32_t>>;

class Builder {
public:
    explicit Builder(const Entries& entries) : entries_(entries) {
        grow();
        take(0);
    }

    std::vector<std::uint32_t> run() {
        if (entries_.empty()) return {};
        struct Node {
            std::size_t begin, end, depth;
            std::uint32_t at;
        };
        std::vector<Node> open = {{0, entries_.size(), 0, 0}};
        std::vector<std::size_t> starts;
        std::vector<std::uint8_t> labels;
        while (!open.empty()) {
            const Node node = open.back();
            open.pop_back();
            labels.clear();
            starts.clear();
            std::size_t i = node.begin;
            const bool leaf = entries_[i].first.size() == node.depth;
            if (leaf) labels.push_back(0), starts.push_back(i++);
            while (i < node.end) {
                const auto label = static_cast<std::uint8_t>(entries_[i].first[node.depth]);
                labels.push_back(label);
                starts.push_back(i);
                while (i < node.end && static_cast<std::uint8_t>(entries_[i].first[node.depth]) == label) ++i;
            }
            starts.push_back(node.end);
            const std::uint32_t base = place(labels, node.at);
            used_base_[base] = true;
            const std::uint32_t offset = node.at ^ base;
            units_[node.at] |= (offset < kMostNear ? offset << 10 : offset >> 8 << 10 | kWide) | (leaf ? kHasLeaf : 0);
            for (std::size_t k = 0; k < labels.size(); ++k) take(base ^ labels[k]);
            if (leaf) units_[base] = kLeaf | entries_[node.begin].second;
            for (std::size_t k = labels.size(); k-- > (leaf ? 1 : 0);) {
                units_[base ^ labels[k]] = labels[k];
                open.push_back({starts[k], starts[k + 1], node.depth + 1, base ^ labels[k]});
            }
        }
        return std::move(units_);
    }

private:
    /// A base that no other node has, with the places of all labels free.
    std::uint32_t place(const std::vector<std::uint8_t>& labels, std::uint32_t at) {
        std::size_t n_tries = 0;
        for (std::uint32_t free = first_free_; free != kNone && n_tries < kMostTries; free = next_[free], ++n_tries)
            if (const std::uint32_t base = free ^ labels[0]; fits(base, labels, at)) return base;
        const auto block = static_cast<std::uint32_t>(units_.size());
        grow();
        return block | (at & (kBlock - 1));  // which a wide offset reaches from anywhere
    }
    [[nodiscard]] bool fits(std::uint32_t base, const std::vector<std::uint8_t>& labels, std::uint32_t at) const {
        const std::uint32_t offset = at ^ base;
        if (used_base_[base] || (offset >= kMostNear && offset % kBlock)) return false;
        return std::all_of(labels.begin(), labels.end(), [&](std::uint8_t label) { return is_free_[base ^ label]; });
    }

    void grow() {
        const auto begin = static_cast<std::uint32_t>(units_.size());
        if (begin >= 1u << 29) throw host::Error("tokenizer: expected fewer tokens than a trie holds, got more");
        units_.resize(begin + kBlock, 0);
        is_free_.resize(begin + kBlock, true);
        used_base_.resize(begin + kBlock, false);
        for (std::uint32_t i = begin; i < begin + kBlock; ++i) {
            previous_.push_back(last_free_);
            next_.push_back(kNone);
            (last_free_ == kNone ? first_free_ : next_[last_free_]) = i;
            last_free_ = i;
        }
        n_blocks_ += 1;
        // The oldest places, tried long enough, are left as they are.
        if (n_blocks_ > kOpenBlocks)
            while (first_free_ != kNone && first_free_ < begin - (kOpenBlocks - 1) * kBlock) take(first_free_);
    }
    void take(std::uint32_t unit) {
        if (!is_free_[unit]) return;
        is_free_[unit] = false;
        const std::uint32_t before = previous_[unit], after = next_[unit];
        (before == kNone ? first_free_ : next_[before]) = after;
        (after == kNone ? last_free_ : previous_[after]) = before;
    }

    static constexpr std::uint32_t kOpenBlocks = 64;
    const Entries& entries_;
    std::vector<std::uint32_t> units_, previous_, next_;
    std::vector<bool> is_free_, used_base_;
    std::uint32_t first_free_ = kNone, last_free_ = kNone, n_blocks_ = 0;
};

}  // namespace

std::vector<std::uint32_t> make_trie(Entries entries) {
    std::erase_if(entries, [](const auto& e) { return e.first.empty() || e.first.find('\xff') != std::string::npos; });
    for (auto& [key, value] : entries) std::replace(key.begin(), key.end(), '\0', '\xff');
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    Entries unique;
    for (auto& entry : entries) {
        if (!unique.empty() && unique.back().first == entry.first)
            unique.back().second = entry.second;
        else
            unique.push_back(std::move(entry));
    }
    return Builder(unique).run();
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> trie_values(std::span<const std::uint32_t> units) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> values;
    std::vector<bool> seen(units.size());
    std::vector<std::uint32_t> level = {0}, next_level;
    for (std::uint32_t depth = 0; !level.empty() && !units.empty(); ++depth, level.swap(next_level)) {
        next_level.clear();
        for (const std::uint32_t at : level) {
            const std::uint32_t unit = units[at];
            const std::uint32_t base = at ^ ((unit >> 10) << ((unit & kWide) >> 6));
            if ((unit & kHasLeaf) && base < units.size() && depth > 0) values.emplace_back(units[base] & ~kLeaf, depth);
            for (std::uint32_t label = 1; label < 256; ++label) {
                const std::uint32_t next = base ^ label;
                if (next >= units.size() || (units[next] & (kLeaf | 0xff)) != label || seen[next]) continue;
                seen[next] = true;
                next_level.push_back(next);
            }
        }
    }
    return values;
}

}  // namespace fovea
