#include "engine/tokenizer/automaton.h"

#include <cstring>

namespace fovea {
namespace {

template<class T>
std::span<const T> part(std::span<const T> all, std::uint64_t first, std::uint64_t n) noexcept {
    if (first > all.size() || n > all.size() - first) return {};
    return all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(n));
}

}  // namespace

// ---- patterns ------------------------------------------------------------------------------------------------------

Pattern::Pattern(const Tables& tables, std::uint32_t index) noexcept {
    if (index >= tables.patterns.size()) return;
    const TokenizerPattern& p = tables.patterns[index];
    const std::uint64_t n_cells = std::uint64_t{p.n_states} * (std::uint64_t{p.n_classes} + 1);
    runs_ = part(tables.pattern_runs, p.first_run, p.n_runs);
    if (p.n_states > kStateMask || p.n_classes == 0 || p.n_classes > kMaxClasses) return;
    transitions_ = part(tables.transitions, p.first_transition, n_cells);
    if (transitions_.size() == n_cells && p.n_states > kStartState) pattern_ = &p;
}

std::uint32_t Pattern::class_at(std::string_view text, std::size_t& pos) const noexcept {
    if (pos >= text.size()) return pattern_->n_classes;
    const auto byte = static_cast<std::uint8_t>(text[pos]);
    std::uint32_t found = 0;
    if (byte < 128) {
        ++pos;
        found = pattern_->ascii[byte];
    } else if (pattern_->flags & kPatternOfBytes) {
        ++pos;
        found = value_at(runs_, byte);
    } else {
        const Character c = first_character(tail(text, pos));
        pos += c.bytes;
        found = value_at(runs_, c.code == kNotACharacter ? kReplacementCode : c.code);
    }
    return found < pattern_->n_classes ? found : 0;
}

std::size_t Pattern::match_end(std::string_view text, std::size_t pos) noexcept {
    const std::uint32_t n_columns = pattern_->n_classes + 1;
    std::uint32_t state = kStartState, waiting = 0;
    std::size_t end = pos, waits_since = pos;
    for (std::size_t at = pos;;) {
        Idle& known = idle_[state % kIdle];
        if (known.state == state && at >= known.begin && at < known.end) return end;
        if (state != waiting) {
            waiting = state;
            waits_since = at;
        }
        std::size_t next = at;
        const std::uint32_t column = class_at(text, next);
        const std::uint16_t cell = transitions_[std::size_t{state} * n_columns + column];
        if (cell & kMatchBefore) {
            end = at;
            waiting = 0;
        }
        state = cell & kStateMask;
        if (state == 0 || state >= pattern_->n_states || column == pattern_->n_classes) {
            if (waiting) idle_[waiting % kIdle] = {waits_since, at + 1, waiting};
            return end;
        }
        at = next;
    }
}

Pattern::Segment Pattern::segment(std::string_view text, std::size_t pos) noexcept {
    if (!pattern_) return {text.size(), false};
    const std::size_t begin = pos;
    while (pos < text.size()) {
        if (const std::size_t end = match_end(text, pos); end > pos)
            return pos == begin ? Segment{end, true} : Segment{pos, false};
        static_cast<void>(class_at(text, pos));
    }
    return {text.size(), false};
}

bool Pattern::replace(std::string_view text, std::string_view to, TextSink& out) noexcept {
    for (std::size_t pos = 0; pos < text.size();) {
        const Segment s = segment(text, pos);
        if (!out.put(s.is_match ? to : std::string_view{text.data() + pos, s.end - pos})) return false;
        pos = s.end;
    }
    return true;
}

// ---- maps of characters --------------------------------------------------------------------------------------------

namespace {

struct CharacterMap {
    Trie trie;
    std::span<const char> text;

    CharacterMap(const Tables& t, std::uint32_t index) noexcept : trie({}) {
        if (index >= t.maps.size()) return;
        trie = Trie(part(t.map_units, t.maps[index].first_unit, t.maps[index].n_units));
        text = part(t.map_text, t.maps[index].first_byte, t.maps[index].n_bytes);
    }

    /// The replacement of a key that `from` starts with, the longest or the shortest; and the key's length, 0 if there
    /// is none.
    [[nodiscard]] std::size_t find(std::string_view from, bool shortest, std::string_view& to) const noexcept {
        std::uint32_t node = 0, found = kNoId;
        std::size_t n_found = 0;
        for (std::size_t n = 0; n < from.size() && trie.step(node, from[n]);) {
            ++n;
            const std::uint32_t value = trie.value(node);
            if (value >= text.size()) continue;
            found = value;
            n_found = n;
            if (shortest) break;
        }
        if (n_found == 0) return 0;
        std::size_t end = found;
        while (end < text.size() && text[end] != '\0') ++end;
        to = {text.data() + found, end - found};
        return n_found;
    }
};

/// The end of the user-perceived character at `pos`, exact for those of up to kMostClusterBytes.
/// Source: Unicode Standard Annex 29, rules GB3 to GB5 and GB9 to GB9b.
std::size_t cluster_end(const Tables& tables, std::string_view text, std::size_t pos) noexcept {
    const auto look = [&](std::size_t at, Character& c) -> std::uint8_t {
        c = first_character(tail(text, at));
        return value_at(tables.clusters, c.code == kNotACharacter ? kReplacementCode : c.code);
    };
    Character c;
    std::uint8_t bits = look(pos, c);
    std::size_t end = pos + c.bytes;
    if (c.code == '\r' && end < text.size() && text[end] == '\n') return end + 1;
    while (end < text.size() && !(bits & kClusterAlone)) {
        const std::uint8_t next = look(end, c);
        if (!(next & kClusterJoins) && (!(bits & kClusterTakesNext) || (next & kClusterAlone))) break;
        end += c.bytes;
        bits = next & kClusterJoins ? next & ~kClusterTakesNext : next;
    }
    return end;
}

constexpr std::size_t kMostClusterBytes = 5;  // a longer one is mapped character by character

}  // namespace

bool map_characters(const Tables& tables, const TokenizerStep& step, std::string_view text, TextSink& out) noexcept {
    const CharacterMap map(tables, step.limit);
    const bool by_clusters = step.mode & kMapClusters;
    for (std::size_t pos = 0, cluster = 0; pos < text.size();) {
        std::string_view to;
        if (by_clusters && pos >= cluster) {
            cluster = cluster_end(tables, text, pos);
            if (cluster - pos <= kMostClusterBytes && map.find({text.data() + pos, cluster - pos}, true, to)) {
                if (!out.put(to)) return false;
                pos = cluster;
                continue;
            }
        }
        const Character c = first_character(tail(text, pos));
        const std::string_view from{text.data() + pos, by_clusters ? c.bytes : text.size() - pos};
        std::size_t n = map.find(from, by_clusters, to);
        if (n == 0 || by_clusters) n = n == 0 ? 0 : c.bytes;
        if (n == 0) {
            const bool replaces = c.code == kNotACharacter && (step.mode & kMapReplaces);
            to = replaces ? std::string_view("\xef\xbf\xbd") : std::string_view{text.data() + pos, c.bytes};
            n = c.bytes;
        }
        if (!out.put(to)) return false;
        pos += n;
    }
    return true;
}

// ---- the likeliest pieces ------------------------------------------------------------------------------------------

namespace {

class BestPieces {
public:
    BestPieces(const Tables& tables, std::string_view word, std::span<std::byte> scratch) noexcept
        : tables_(tables),
          trie_(tables.pieces),
          word_(word),
          sums_(scratch.data()),
          window_(static_cast<std::size_t>(tables.header->max_token_bytes) + 5),
          lengths_(scratch.data() + window_ * sizeof(double)) {}

    /// How long the last piece is of the best way to each place that one ends at.
    void search() noexcept {
        const bool rounds = tables_.header->flags & kSingleSums;
        std::memset(lengths_, 0, word_.size() * 2);
        for (std::size_t begin = 0; begin < word_.size();) {
            const std::size_t n_character = first_character(tail(word_, begin)).bytes;
            const double before = begin ? sum(begin) : 0;
            const auto offer = [&](std::size_t n, double score) {
                const double exact = score + before;
                const double candidate = rounds ? static_cast<double>(static_cast<float>(exact)) : exact;
                const std::size_t end = begin + n;
                if (length(end) && !(candidate > sum(end))) return;
                set_length(end, n);
                set_sum(end, candidate);
            };
            bool has_single = false;
            std::uint32_t node = 0;
            const std::size_t most = at_most(word_.size() - begin, tables_.header->max_token_bytes);
            for (std::size_t n = 0; n < most && trie_.step(node, word_[begin + n]);) {
                ++n;
                const std::uint32_t id = trie_.value(node);
                if (id >= tables_.scores.size()) continue;
                offer(n, tables_.scores[id]);
                has_single |= n == n_character;
            }
            if (!has_single) offer(n_character, tables_.scores.empty() ? 0 : tables_.scores.back());
            begin += n_character;
        }
    }

    void put(TokenSink& sink) noexcept {
        turn_round();
        const bool fuses = tables_.header->unknown != kNoId;
        for (std::size_t begin = 0; begin < word_.size();) {
            std::size_t end = begin + next_length(begin);
            Token id = find(begin, end);
            if (id != kNoId && id != tables_.header->unknown) {
                sink.put(id);
                begin = end;
                continue;
            }
            bool is_run = false;
            while (fuses && end < word_.size()) {
                const Token other = find(end, end + next_length(end));
                if (other != kNoId && other != tables_.header->unknown) break;
                end += next_length(end);
                is_run = true;
            }
            // A run may be spelled by a piece that scores less than unknown characters do.
            if (is_run) id = tables_.header->flags & kSingleSums ? kNoId : find(begin, end);
            put_unknown({word_.data() + begin, end - begin}, id, sink);
            begin = end;
        }
    }

private:
    static constexpr std::size_t at_most(std::size_t a, std::size_t b) noexcept { return a < b ? a : b; }

    void put_unknown(std::string_view text, Token id, TokenSink& sink) const noexcept {
        bool all = id == kNoId && (tables_.header->flags & kByteFallback) && !tables_.byte_ids.empty();
        const auto byte_id = [&](char c) { return tables_.byte_ids[static_cast<std::uint8_t>(c)]; };
        for (const char c : text) all = all && byte_id(c) != kNoId;
        if (all)
            for (const char c : text) sink.put(byte_id(c));
        else if (const Token one = id == kNoId ? tables_.header->unknown : id; one != kNoId)
            sink.put(one);
    }

    [[nodiscard]] Token find(std::size_t begin, std::size_t end) const noexcept {
        std::uint32_t node = 0;
        for (std::size_t i = begin; i < end; ++i)
            if (!trie_.step(node, word_[i])) return kNoId;
        const std::uint32_t id = trie_.value(node);
        return id < tables_.header->n_tokens ? id : kNoId;
    }

    /// From how far each piece reaches back to how far each reaches on.
    void turn_round() noexcept {
        std::size_t carried = 0;
        for (std::size_t end = word_.size(); end > 0;) {
            const std::size_t n = at_most(length(end) ? length(end) : 1, end);
            set_length(end, carried);
            carried = n;
            end -= n;
        }
        first_ = carried;
    }
    [[nodiscard]] std::size_t next_length(std::size_t begin) const noexcept {
        const std::size_t n = begin ? length(begin) : first_;
        return n ? at_most(n, word_.size() - begin) : word_.size() - begin;
    }

    // The scratch is aligned for nothing wider than a token.
    [[nodiscard]] double sum(std::size_t end) const noexcept {
        double x = 0;
        std::memcpy(&x, sums_ + end % window_ * sizeof x, sizeof x);
        return x;
    }
    void set_sum(std::size_t end, double x) noexcept { std::memcpy(sums_ + end % window_ * sizeof x, &x, sizeof x); }
    [[nodiscard]] std::size_t length(std::size_t end) const noexcept {
        std::uint16_t n = 0;
        std::memcpy(&n, lengths_ + (end - 1) * sizeof n, sizeof n);
        return n;
    }
    void set_length(std::size_t end, std::size_t length) noexcept {
        const auto n = static_cast<std::uint16_t>(length);
        std::memcpy(lengths_ + (end - 1) * sizeof n, &n, sizeof n);
    }

    const Tables& tables_;
    Trie trie_;
    std::string_view word_;
    std::byte* sums_;  // of the best way to a place, for the last window_ places
    std::size_t window_;
    std::byte* lengths_;  // u16 by place, from 1 on
    std::size_t first_ = 0;
};

}  // namespace

bool put_unigram(const Tables& tables, std::string_view word, std::span<std::byte> scratch, TokenSink& sink) noexcept {
    if (!has(Part::unigram)) return false;
    const std::uint64_t window = unigram_window_bytes(tables.header->max_token_bytes);
    if (scratch.size() < window || (scratch.size() - window) / 2 < word.size()) return false;
    if (word.empty()) return true;
    BestPieces pieces(tables, word, scratch);
    pieces.search();
    pieces.put(sink);
    return true;
}

}  // namespace fovea
