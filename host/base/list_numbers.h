// Lists of numbers, each known by one number.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "host/base/hash.h"

namespace fovea {

/// Numbers lists in the order in which they come first. All lie in one array: automata have tens of thousands.
class ListNumbers {
public:
    /// The number of a list, and whether it is new.
    std::pair<std::uint32_t, bool> number_of(std::span<const std::uint32_t> list) {
        if (2 * ends_.size() >= slots_.size()) grow();
        std::uint32_t* const slot = slot_of(list, hash_of(list));
        if (*slot != kNone) return {*slot, false};
        *slot = size();
        words_.insert(words_.end(), list.begin(), list.end());
        ends_.push_back(words_.size());
        return {*slot, true};
    }
    /// Until the next list is added.
    [[nodiscard]] std::span<const std::uint32_t> operator[](std::uint32_t number) const {
        const std::size_t begin = number ? ends_[number - 1] : 0;
        return {words_.data() + begin, ends_[number] - begin};
    }
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()); }
    void clear() {
        words_.clear();
        ends_.clear();
        slots_.assign(kLeastSlots, kNone);
    }

private:
    static constexpr std::uint32_t kNone = 0xffffffffu;
    static constexpr std::size_t kLeastSlots = 64;  // a power of two

    static std::uint64_t hash_of(std::span<const std::uint32_t> list) {
        std::uint64_t h = kHashSeed;
        for (const std::uint32_t word : list) h = hash_word(word, h);
        return h ^ h >> 32;
    }
    std::uint32_t* slot_of(std::span<const std::uint32_t> list, std::uint64_t hash) {
        for (std::size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
            if (slots_[i] == kNone) return &slots_[i];
            const std::span<const std::uint32_t> other = (*this)[slots_[i]];
            if (std::equal(list.begin(), list.end(), other.begin(), other.end())) return &slots_[i];
        }
    }
    void grow() {
        slots_.assign(2 * slots_.size(), kNone);
        for (std::uint32_t i = 0; i < size(); ++i) *slot_of((*this)[i], hash_of((*this)[i])) = i;
    }

    std::vector<std::uint32_t> words_;
    std::vector<std::size_t> ends_;  // of each list, in words_
    std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(kLeastSlots, kNone);
};

}  // namespace fovea
