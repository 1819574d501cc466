// An automaton with its masks as the bytes of a form.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/format/constraint_format.h"
#include "fovea/checksum.h"
#include "host/grammar/automaton.h"
#include "host/grammar/grammar.h"
#include "host/grammar/masks.h"

namespace fovea::grammar {
namespace {

constexpr std::uint32_t kMostRanges = 5;  // a state with more has a row of its own
constexpr std::uint32_t kSpareDepth = 8;  // beyond what the grammar needs at least
constexpr std::uint32_t kMostFormDepth = 200;

class FormWriter {
public:
    FormWriter(const Automaton& a, const Masks& masks, const std::vector<std::uint32_t>& forced, std::size_t n_mask,
               const std::vector<std::vector<std::string>>& others) {
        for (const std::vector<std::string>& texts : others) add_texts(texts);
        for (std::uint32_t s = 0; s < a.states.size(); ++s) add_state(a.states[s], s, masks, forced[s]);
        for (const Wide& w : masks.wide) add_wide(w);
        merged_ = masks.merged.nodes;
        for (std::uint32_t g = 0; g < masks.merged.ends.size(); ++g) add_group(masks.merged.group(g), n_mask);
    }

    std::vector<std::byte> write(ConstraintHeader header, std::span<const std::byte> own_index) const {
        header.n_states = static_cast<std::uint32_t>(states_.size());
        header.n_calls = static_cast<std::uint32_t>(calls_.size());
        header.n_ranges = static_cast<std::uint32_t>(ranges_.size());
        header.n_rows = static_cast<std::uint32_t>(rows_.size() / 256);
        header.n_wide = static_cast<std::uint32_t>(wide_.size());
        header.n_merged = static_cast<std::uint32_t>(merged_.size());
        header.n_groups = static_cast<std::uint32_t>(groups_.size());
        header.n_words = static_cast<std::uint32_t>(words_.size());
        header.index_bytes = static_cast<std::uint32_t>(own_index.size());
        std::vector<std::byte> out;
        const auto put = [&](const auto& records) {
            const std::span<const std::byte> bytes = std::as_bytes(std::span(records));
            out.insert(out.end(), bytes.begin(), bytes.end());
        };
        out.reserve(sizeof header + states_.size() * sizeof(StateRecord) + words_.size() * 4 + rows_.size() * 2 +
                    ranges_.size() * sizeof(RangeRecord) + own_index.size());
        put(std::span(&header, 1));
        put(states_);
        put(calls_);
        put(ranges_);
        put(rows_);
        put(wide_);
        put(merged_);
        put(groups_);
        put(words_);
        put(own_index);
        return out;
    }

private:
    static std::uint16_t narrow(std::size_t n, const char* what) {
        if (n >= kNoState)
            throw GrammarError("expected a grammar of fewer than " + std::to_string(kNoState) + " " + what +
                               ", got more");
        return static_cast<std::uint16_t>(n);
    }

    void add_state(const State& s, std::uint32_t number, const Masks& masks, std::uint32_t forced) {
        StateRecord record{};
        record.first_call = narrow(calls_.size(), "calls");
        record.n_calls = narrow(s.calls.size(), "calls");
        record.accepts = s.accepts;
        record.height = static_cast<std::uint8_t>(s.height);
        record.forced = forced;
        record.wide = masks.of_state[number];
        for (std::size_t c = 0; c < s.calls.size(); ++c) {
            const Call& call = s.calls[c];
            calls_.push_back({narrow(call.callee, "states"), narrow(call.target, "states"),
                              narrow(call.min, "repetitions"), narrow(call.max, "repetitions"),
                              call.item == Item::none      ? masks.of_call[number][c]
                              : call.item == Item::first   ? kFirstItem
                              : call.item == Item::further ? kFurtherItem
                                                           : kOtherText + texts_[call.list]});
        }
        if (s.ranges.size() > kMostRanges) {
            record.first = static_cast<std::uint32_t>(rows_.size() / 256);
            record.n_ranges = kRowOfBytes;
            rows_.resize(rows_.size() + 256, kNoState);
            for (const ByteRange& r : s.ranges)
                std::fill(rows_.end() - 256 + r.low, rows_.end() - 256 + r.high + 1, narrow(r.target, "states"));
        } else {
            record.first = static_cast<std::uint32_t>(ranges_.size());
            record.n_ranges = static_cast<std::uint16_t>(s.ranges.size());
            for (const ByteRange& r : s.ranges) ranges_.push_back({r.low, r.high, narrow(r.target, "states")});
        }
        states_.push_back(record);
    }

    void add_texts(const std::vector<std::string>& texts) {
        texts_.push_back(static_cast<std::uint32_t>(words_.size()));
        words_.push_back(static_cast<std::uint32_t>(texts.size()));
        for (const std::string& text : texts) {
            std::uint32_t hash = kNoText;
            for (const char byte : text) hash = hash_of(hash, static_cast<std::uint8_t>(byte));
            words_.push_back(hash);
        }
    }

    void add_wide(const Wide& w) {
        WideRecord record{};
        record.mask = static_cast<std::uint32_t>(words_.size());
        words_.insert(words_.end(), w.mask.begin(), w.mask.end());
        record.counts = kNoPlace;
        if (!w.counts.empty()) {
            record.counts = static_cast<std::uint32_t>(words_.size());
            words_.resize(words_.size() + w.counts.size() / 4);
            std::memcpy(words_.data() + record.counts, w.counts.data(), w.counts.size());
        }
        record.entries = static_cast<std::uint32_t>(words_.size());
        record.n_entries = w.skips.empty() ? static_cast<std::uint32_t>(w.entries.size()) : kNoPlace;
        words_.insert(words_.end(), w.skips.begin(), w.skips.end());
        for (const auto& [node, second] : w.entries) {
            words_.push_back(node);
            words_.push_back(second);
        }
        wide_.push_back(record);
    }

    /// As a list of ids, or as a mask if that is no longer than a few lists.
    void add_group(std::span<const std::uint32_t> tokens, std::size_t n_mask) {
        const auto at = static_cast<std::uint32_t>(words_.size()), n = static_cast<std::uint32_t>(tokens.size());
        if (n < n_mask / 4) {
            groups_.push_back({at, n});
            words_.insert(words_.end(), tokens.begin(), tokens.end());
            return;
        }
        groups_.push_back({at, kNoPlace});
        words_.resize(at + n_mask);
        for (const std::uint32_t token : tokens) words_[at + token / 32] |= 1u << token % 32;
    }

    std::vector<StateRecord> states_;
    std::vector<CallRecord> calls_;
    std::vector<RangeRecord> ranges_;
    std::vector<std::uint16_t> rows_;
    std::vector<WideRecord> wide_;
    std::vector<IndexNode> merged_;
    std::vector<GroupRecord> groups_;
    std::vector<std::uint32_t> words_, texts_;  // and where among them each list of hashes starts
};

/// Whether a text can be in many calls that tell it from others, each a way to read it: one automaton follows all of them.
[[nodiscard]] bool tells_many(const Automaton& automaton) {
    constexpr std::ptrdiff_t kMost = 8;
    return std::any_of(automaton.states.begin(), automaton.states.end(), [](const State& s) {
        const auto is_other = [](const Call& call) { return call.item == Item::other; };
        return std::count_if(s.calls.begin(), s.calls.end(), is_other) > kMost;
    });
}

/// Whether the first ways to go on from a state, as many as are followed, lead to others without reading a byte.
[[nodiscard]] bool leads_nowhere(const Automaton& automaton, std::uint32_t state) {
    constexpr std::size_t kMostPlaces = 64;
    std::vector<std::uint32_t> places{state};
    for (std::size_t i = 0; i < places.size(); ++i) {
        const State& s = automaton.states[places[i]];
        if (!s.ranges.empty() || s.accepts) return false;
        for (const Call& call : s.calls)
            if (places.size() < kMostPlaces) places.push_back(call.callee);
    }
    return true;
}

}  // namespace

std::vector<std::byte> compile(const Grammar& grammar, const Tokenizer& tokenizer, std::span<const std::byte> index,
                               const CompileOptions& options) {
    const IndexView view = view_index(tokenizer, index);
    Automaton automaton = build_automaton(grammar, options.max_states, !options.own_index);
    if (tells_many(automaton)) automaton = build_automaton(grammar, options.max_states, false);
    trim(automaton, view.bytes);
    for (std::uint32_t s = 0; s < automaton.states.size(); ++s)
        if (leads_nowhere(automaton, s))
            throw GrammarError(
                "expected a grammar of fewer alternatives within alternatives, got more than are followed");
    for (const State& s : automaton.states)
        if (automaton.units[s.unit].is_item && (s.ranges.empty() || options.own_index))
            throw GrammarError(options.own_index
                                   ? "expected no uniqueItems of strings or objects in a form for a board, got it"
                                   : "expected bytes of items that come once as tokens, got too few");
    ConstraintHeader header{};
    std::memcpy(header.magic, kConstraintMagic, sizeof kConstraintMagic);
    header.version = kConstraintVersion;
    header.vocab_size = view.vocab_size;
    header.index_crc = crc32c(index.first(sizeof(IndexHeader)));
    header.start = automaton.start;
    std::uint32_t needed = 0;
    for (const State& s : automaton.states) needed = std::max(needed, s.height);
    header.max_depth = std::max(std::min(options.max_depth, kMostFormDepth), needed + kSpareDepth);
    if (header.max_depth > kMostFormDepth)
        throw GrammarError("expected rules at most " + std::to_string(kMostFormDepth - kSpareDepth) +
                           " deep within rules, got " + std::to_string(needed));
    Masks masks;
    if (options.known_masks) {
        masks = make_masks(automaton, view, !options.own_index);  // a board's engine walks as it did
    } else {
        masks.of_state.assign(automaton.states.size(), kNoPlace);
        for (const State& s : automaton.states) masks.of_call.emplace_back(s.calls.size(), kNoPlace);
    }
    return FormWriter(automaton, masks, force_tokens(automaton, tokenizer, view), (view.vocab_size + 31) / 32,
                      options.own_index ? std::vector<std::vector<std::string>>() : grammar.others)
        .write(header, options.own_index ? index : std::span<const std::byte>());
}

bool begins_form(std::span<const std::byte> bytes) noexcept {
    return bytes.size() >= sizeof kConstraintMagic &&
           std::memcmp(bytes.data(), kConstraintMagic, sizeof kConstraintMagic) == 0;
}

void check_form_for_board(std::span<const std::byte> form) {
    const auto refuse = [](const char* what, std::uint64_t wanted, std::uint64_t had) {
        throw GrammarError(std::string(what) + ": expected " + std::to_string(wanted) + ", got " + std::to_string(had));
    };
    ConstraintHeader header{};
    if (form.size() < sizeof header) refuse("bytes of a form at least", sizeof header, form.size());
    std::memcpy(&header, form.data(), sizeof header);
    if (header.version != kConstraintVersion) refuse("a form's version", kConstraintVersion, header.version);
    const std::pair<std::uint32_t, std::size_t> parts[] = {{header.n_states, sizeof(StateRecord)},
                                                           {header.n_calls, sizeof(CallRecord)},
                                                           {header.n_ranges, sizeof(RangeRecord)},
                                                           {header.n_rows, 256 * sizeof(std::uint16_t)},
                                                           {header.n_wide, sizeof(WideRecord)},
                                                           {header.n_merged, sizeof(IndexNode)},
                                                           {header.n_groups, sizeof(GroupRecord)},
                                                           {header.n_words, sizeof(std::uint32_t)},
                                                           {header.index_bytes, 1}};
    std::uint64_t wanted = sizeof header;
    for (const auto& [n, bytes_each] : parts) wanted += std::uint64_t{n} * bytes_each;
    if (wanted != form.size()) refuse("bytes of a form", wanted, form.size());
    if (header.index_bytes == 0)
        throw GrammarError("expected a form with an index of its own, as fovea grammar writes it, got one without");
}

}  // namespace fovea::grammar
