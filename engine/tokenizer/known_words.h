// Words of the text that were tokenized before, with their ids.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "engine/format/parts.h"
#include "engine/tokenizer/subwords.h"

namespace fovea {

/// A table of short words in scratch. A word has one place, which the last word with that place holds.
class KnownWords {
public:
    /// Bytes of the table for a text, 0 for a short one: at most one place for each eight bytes, and a size for which
    /// second-level caches have room.
    [[nodiscard]] static constexpr std::uint64_t bytes_for(std::uint64_t text_bytes) noexcept {
        if (text_bytes < kLeastText) return 0;
        std::uint64_t places = kLeastText / 8;
        while (places < kMostPlaces && places * 2 <= text_bytes / 8) places *= 2;
        return (places + 1) * sizeof(Place);  // one more, for the alignment
    }

    /// Takes bytes_for(text_bytes) at the end of the scratch, and clears them.
    KnownWords(std::span<std::byte> scratch, std::uint64_t text_bytes) noexcept {
        const auto n_bytes = static_cast<std::size_t>(bytes_for(text_bytes));
        n_before_ = scratch.size() - n_bytes;
        if (n_bytes == 0) return;
        std::byte* first = scratch.data() + n_before_;
        places_ =
            reinterpret_cast<Place*>(first + (sizeof(Place) - reinterpret_cast<std::uintptr_t>(first) % sizeof(Place)));
        n_ = n_bytes / sizeof(Place) - 1;
        forget();
    }
    /// Bytes of the scratch before the table.
    [[nodiscard]] std::size_t n_before() const noexcept { return n_before_; }
    void forget() noexcept {
        for (std::size_t i = 0; i < n_; ++i) places_[i].n_bytes = 0;
    }

    /// Puts the ids of `word` if they are known.
    [[nodiscard]] bool put(std::string_view word, TokenSink& sink) noexcept {
        if (n_ == 0 || word.empty() || word.size() > kMostBytes) return false;
        wanted_ = key_of(word);
        const Place& place = place_of(wanted_, word.size());
        if (place.n_bytes != word.size() || !(place.key == wanted_)) return false;
        for (std::uint32_t i = 0; i < place.n_ids; ++i) sink.put(place.ids[i]);
        return true;
    }
    /// Keeps the ids of the word that the last put was asked for and did not find.
    void keep(std::string_view word, std::span<const Token> ids) noexcept {
        if (n_ == 0 || word.empty() || word.size() > kMostBytes || ids.empty() || ids.size() > kMostIds) return;
        Place& place = place_of(wanted_, word.size());
        place.key = wanted_;
        place.n_bytes = static_cast<std::uint16_t>(word.size());
        place.n_ids = static_cast<std::uint16_t>(ids.size());
        for (std::size_t i = 0; i < ids.size(); ++i) place.ids[i] = ids[i];
    }

private:
    static constexpr std::uint64_t kLeastText = 128, kMostPlaces = 4096;
    static constexpr std::size_t kMostBytes = 32, kMostIds = 7;

    /// The bytes of a word of known length: its first and its last ones, which overlap.
    struct Key {
        std::uint64_t parts[4];
        [[nodiscard]] bool operator==(const Key&) const noexcept = default;
    };
    struct alignas(64) Place {
        Key key;
        Token ids[kMostIds];
        std::uint16_t n_bytes, n_ids;  // n_bytes 0: no word
    };
    static_assert(sizeof(Place) == 64);

    template<class Part>
    static std::uint64_t part_at(const char* bytes) noexcept {
        Part part;
        std::memcpy(&part, bytes, sizeof part);
        return part;
    }
    static Key key_of(std::string_view word) noexcept {
        const char* first = word.data();
        const char* end = first + word.size();
        if (word.size() >= 16)
            return {{part_at<std::uint64_t>(first), part_at<std::uint64_t>(first + 8), part_at<std::uint64_t>(end - 16),
                     part_at<std::uint64_t>(end - 8)}};
        if (word.size() >= 8) return {{part_at<std::uint64_t>(first), part_at<std::uint64_t>(end - 8), 0, 0}};
        if (word.size() >= 4) return {{part_at<std::uint32_t>(first), part_at<std::uint32_t>(end - 4), 0, 0}};
        return {{part_at<std::uint8_t>(first), part_at<std::uint8_t>(end - 1),
                 part_at<std::uint8_t>(first + word.size() / 2), 0}};
    }
    [[nodiscard]] Place& place_of(const Key& key, std::size_t n_bytes) const noexcept {
        constexpr std::uint64_t kStir = 0x9e3779b97f4a7c15u;
        std::uint64_t hash = n_bytes;
        for (const std::uint64_t part : key.parts) hash = (hash ^ part) * kStir, hash ^= hash >> 32;
        return places_[hash & (n_ - 1)];
    }

    Place* places_ = nullptr;
    std::size_t n_ = 0;  // 0, or a power of two
    std::size_t n_before_ = 0;
    Key wanted_{};
};

/// In its place, in builds without it.
struct NoKnownWords {
    [[nodiscard]] static constexpr std::uint64_t bytes_for(std::uint64_t) noexcept { return 0; }
    NoKnownWords(std::span<std::byte>, std::uint64_t) noexcept {}
    [[nodiscard]] static std::size_t n_before() noexcept { return 0; }
    static void forget() noexcept {}
    [[nodiscard]] static bool put(std::string_view, TokenSink&) noexcept { return false; }
    static void keep(std::string_view, std::span<const Token>) noexcept {}
};
using KnownWordsOrNone = std::conditional_t<has(Part::known_sets), KnownWords, NoKnownWords>;

}  // namespace fovea
