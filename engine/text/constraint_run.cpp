// A form's automaton over the bytes of a text, and over the whole vocabulary at once.
//
// The automaton has a stack: a rule that is entered within another one is a frame above it (the recursive transition networks
// of Woods 1970). A text that can be read in several ways is in several places. A token advances them by its bytes, one
// by one. The tree of all tokens' bytes is walked once, and a branch ends where no place is left.
#include <cstring>

#include "engine/text/constraint_run.h"
#include "engine/text/places.h"

namespace fovea {
namespace {

// ---- the text ------------------------------------------------------------------------------------------------------

/// Drops frames that neither the text's places nor `other` need, and gives the rest new numbers, in their order.
void drop_frames(ConstraintRun& run, Places other) noexcept {
    constexpr std::uint16_t kUnused = 0, kUsed = 1;
    std::memset(run.moved.data(), 0, run.n_frames * sizeof run.moved[0]);
    const Places all[] = {{0, run.n_places}, other};
    for (const Places& set : all)
        for (std::uint32_t i = set.first; i < set.first + set.n; ++i) run.moved[run.pool[i].frame] = kUsed;
    for (std::uint32_t i = run.n_frames; i-- > 1;)  // a frame's parent is older
        if (run.moved[i] != kUnused) run.moved[run.frames[i].parent] = kUsed;
    std::uint32_t n = 1;
    run.moved[kRoot] = kRoot;
    for (std::uint32_t i = 1; i < run.n_frames; ++i) {
        if (run.moved[i] == kUnused) continue;
        Frame frame = run.frames[i];
        frame.parent = run.moved[frame.parent];
        run.frames[n] = frame;
        run.moved[i] = static_cast<std::uint16_t>(n++);
    }
    run.n_frames = n;
    for (const Places& set : all)
        for (std::uint32_t i = set.first; i < set.first + set.n; ++i) run.pool[i].frame = run.moved[run.pool[i].frame];
}

// ---- the vocabulary ------------------------------------------------------------------------------------------------

void allow_token(std::span<std::uint32_t> mask, std::uint32_t token) noexcept { mask[token / 32] |= 1u << token % 32; }

[[nodiscard]] bool same_places(const ConstraintRun& run, Places a, Places b) noexcept {
    if (a.n != b.n) return false;
    for (std::uint32_t i = 0; i < a.n; ++i) {
        const Place p = run.pool[a.first + i], q = run.pool[b.first + i];
        if (p.state != q.state || !same_stack(run, p.frame, q.frame)) return false;
    }
    return true;
}

[[nodiscard]] std::uint32_t key_of(const ConstraintRun& run, Places places) noexcept {
    std::uint32_t key = places.n;
    for (const Place& place : run.pool.subspan(places.first, places.n)) {
        const Frame& frame = run.frames[place.frame];
        key = (key ^ place.state ^ std::uint32_t{frame.call} << 16 ^ std::uint32_t{frame.count} << 8) * 0x01000193u;
    }
    return key;
}

/// Makes a set known whose places lie among those of known sets.
std::uint8_t add_set(ConstraintRun& run, Places places, std::uint32_t key) noexcept {
    KnownSets& sets = *run.sets;
    std::memset(sets.next[sets.n], KnownSets::kUnknown, sizeof sets.next[0]);
    sets.of[sets.n] = places;
    sets.key[sets.n] = key;
    sets.n_places = places.first + places.n;
    sets.n_frames = run.n_frames;
    return static_cast<std::uint8_t>(sets.n++);
}

/// The level that walks start from. Sets that were known before are forgotten.
[[nodiscard]] Level first_level(ConstraintRun& run, Places base) noexcept {
    const auto n_frames = static_cast<std::uint16_t>(run.n_frames);
    if (!sets_of(run) || base.n == 0) return {base, n_frames};
    KnownSets& sets = *run.sets;
    sets.n = 0;
    sets.max_places = base.first + base.n + KnownSets::kPlaces;
    sets.max_frames = run.n_frames + KnownSets::kFrames;
    return {base, n_frames, add_set(run, base, key_of(run, base)), true};
}

/// The set of these places, which lie behind those of known sets: one that is known, or a new one where there is room.
[[nodiscard]] std::uint8_t set_of(ConstraintRun& run, Places places) noexcept {
    KnownSets& sets = *run.sets;
    const std::uint32_t key = key_of(run, places);
    for (std::uint32_t i = 0; i < sets.n; ++i)
        if (sets.key[i] == key && same_places(run, sets.of[i], places)) return static_cast<std::uint8_t>(i);
    if (sets.n == KnownSets::kSets || sets.n_places + places.n > sets.max_places || run.n_frames > sets.max_frames)
        return kNoSet;
    const Places own{sets.n_places, places.n};
    for (std::uint32_t i = 0; i < own.n; ++i) run.pool[own.first + i] = run.pool[places.first + i];
    return add_set(run, own, key);
}

/// Where `byte` leads from a level, with new places from `free` on; a level without places: nowhere.
[[nodiscard]] Level next_level(ConstraintRun& run, const Level& from, std::uint8_t byte, std::uint32_t free) noexcept {
    const Form& form = run.form;
    KnownSets* const sets = sets_of(run);
    const ListItems* const items = items_of(run);
    std::uint8_t* known = nullptr;
    if (sets && from.set != kNoSet) {
        known = &sets->next[from.set][sets->class_of[byte]];
        if (*known == KnownSets::kNowhere) return {};
        if (*known != KnownSets::kUnknown) return {sets->of[*known], 0, *known, true};
    }
    run.n_frames = sets && from.is_kept ? sets->n_frames : from.n_frames;
    if (from.places.n == 1 && free < run.pool.size()) {  // the way of nearly all nodes
        const Place place = run.pool[from.places.first];
        const std::uint16_t target = form.next(place.state, byte);
        if (target == kNoState) {
            if (known) *known = KnownSets::kNowhere;
            return {};
        }
        if (form.simple(target) && form.states[target].height <= room(run, place.frame)) {
            run.pool[free] = {target, place.frame};
            const std::uint8_t set =
                known && from.is_kept && sets->n < KnownSets::kSets ? set_of(run, {free, 1}) : kNoSet;
            if (set == kNoSet) return {{free, 1}, static_cast<std::uint16_t>(run.n_frames), kNoSet, from.is_kept};
            *known = set;
            return {sets->of[set], static_cast<std::uint16_t>(run.n_frames), set, true};
        }
    }
    Places places = from.places;
    if (has(Part::known_sets) && (run.n_compared > kMostWork || run.n_entered > kMostWork)) return {};
    if (has(Part::known_sets) && run.n_compared > kMostCompared) places.n = 1;
    const Places to = step(run, places, byte, free);
    const auto n_frames = static_cast<std::uint16_t>(run.n_frames);
    const std::uint8_t set = sets && from.is_kept && to.n ? set_of(run, to) : kNoSet;
    const bool is_sure = !items || !items->n_asked;  // else it depends on the item's text
    if (known && is_sure && (to.n == 0 || set != kNoSet)) *known = to.n ? set : KnownSets::kNowhere;
    return set == kNoSet ? Level{to, n_frames} : Level{sets->of[set], n_frames, set, true};
}

void allow_words(ConstraintRun& run, std::uint32_t at) noexcept {
    for (std::size_t i = 0; i < run.mask.size(); ++i) run.mask[i] |= run.form.words[at + i];
}

void allow_group(ConstraintRun& run, const GroupRecord& group) noexcept {
    if (group.n == kNoPlace) return allow_words(run, group.tokens);
    for (const std::uint32_t id : run.form.words.subspan(group.tokens, group.n)) allow_token(run.mask, id);
}

/// Allows the tokens of the nodes from `first` to `end` whose bytes lead somewhere from `base`, where the text is before the
/// first node's byte. The nodes are the vocabulary's, or those of merged tokens; of these, `skips` has a bit for each whose tokens
/// are allowed already.
template<bool kMerged>
void walk(ConstraintRun& run, std::uint32_t first, std::uint32_t end, const Level& base,
          const std::uint32_t* skips = nullptr) noexcept {
    if (first >= end) return;
    const std::span<const IndexNode> nodes = kMerged ? run.form.merged() : run.form.nodes;
    KnownSets* const sets = sets_of(run);
    ListItems* const items = items_of(run);
    run.levels[nodes[first].depth() - 1] = base;
    if (items) items->levels[nodes[first].depth() - 1] = items->now;
    if (sets) sets->free_at[nodes[first].depth() - 1] = sets->max_places;
    for (std::uint32_t i = first; i < end;) {
        const IndexNode node = nodes[i];
        if (kMerged && skips && skips[i / 32] >> i % 32 & 1) {
            i = node.end();
            continue;
        }
        const std::uint32_t depth = node.depth();
        const Level& from = run.levels[depth - 1];
        const std::uint32_t free = sets ? sets->free_at[depth - 1] : from.places.first + from.places.n;
        if (items) items->read(items->levels[depth - 1], node.byte());
        const Level to = next_level(run, from, node.byte(), free);
        if (to.places.n == 0) {
            i = node.end();
            continue;
        }
        if (node.token() != kNoNodeToken) {
            if constexpr (kMerged)
                allow_group(run, run.form.groups()[node.token()]);
            else
                allow_token(run.mask, node.token());
        }
        run.levels[depth] = to;
        if (items) items->levels[depth] = items->now;
        if (sets) sets->free_at[depth] = to.set == kNoSet ? to.places.first + to.places.n : free;
        ++i;
    }
}

/// Walks the subtrees of entries [first, end) of a WideRecord from where `state` leads without a byte in each of some places' frames,
/// or with `ended` from the state.
void walk_entries(ConstraintRun& run, const std::uint32_t* entries, std::uint32_t first, std::uint32_t end,
                  std::uint16_t state, Places from, bool ended) noexcept {
    ListItems* const items = items_of(run);
    const std::uint32_t n_frames = run.n_frames;
    Level level;
    bool is_known = false, could_end = false;
    std::uint32_t asked = kNoPlace;  // for the one item that may end only after some of the entries' bytes
    for (std::uint32_t e = first; e < end; ++e) {
        const std::uint32_t node = entries[2 * e];
        if (items) items->read_before(run.form.nodes, node, run.tokenizer);
        if (asked != kNoPlace && items->may_end(asked, run.form.words) != could_end) asked = kNoPlace;
        if (!is_known && asked == kNoPlace) {
            if (items) items->n_asked = 0;
            run.n_frames = n_frames;
            Places base{from.first + from.n, 0};
            for (const Place& place : run.pool.subspan(from.first, from.n))
                if (ended)
                    add(run, base, state, place.frame);
                else
                    follow(run, base, {state, place.frame});
            expand(run, base);
            is_known = !items || !items->n_asked;
            asked = items && items->n_asked == 1 ? items->asked : kNoPlace;
            could_end = items && items->could_end;
            level = first_level(run, base);
        }
        if (level.places.n) walk<false>(run, node, run.form.nodes[node].end(), level);
    }
    run.n_frames = n_frames;
}

/// Allows tokens whose count is 1 to most < 127: eight bytes at a time, each below 128, so that no sum carries.
void allow_counts(ConstraintRun& run, std::uint32_t at, std::uint32_t most) noexcept {
    constexpr std::uint64_t kOnes = 0x0101010101010101u, kHighs = 0x8080808080808080u;
    constexpr std::uint64_t kGather = 0x0102040810204080u;  // the lowest bit of each byte, to one byte
    const auto* counts = reinterpret_cast<const std::uint8_t*>(run.form.words.data() + at);
    for (std::size_t word = 0; word < run.mask.size(); ++word)
        for (std::uint32_t part = 0; part < 4; ++part) {
            std::uint64_t eight;
            std::memcpy(&eight, counts + word * 32 + part * 8, sizeof eight);
            eight &= ~kHighs;
            const std::uint64_t some = eight + kOnes * 127, too_many = eight + kOnes * (127 - most);
            const std::uint64_t bits = (some & ~too_many & kHighs) >> 7;
            run.mask[word] |= static_cast<std::uint32_t>(bits * kGather >> 56) << part * 8;
        }
}

/// Allows the tokens after places of one state, whose tokens are precomputed; only tokens that leave its rule are looked at.
void allow_wide(ConstraintRun& run, const WideRecord& wide, Places from) noexcept {
    allow_words(run, wide.mask);
    const std::uint32_t* entries = run.form.words.data() + wide.entries;
    for (std::uint32_t first = 0, end = 0; first < wide.n_entries; first = end) {
        const std::uint32_t state = entries[2 * first + 1];
        while (end < wide.n_entries && entries[2 * end + 1] == state) ++end;
        // What stays within the rule is in the mask.
        walk_entries(run, entries, first, end, static_cast<std::uint16_t>(state), from, false);
    }
}

/// The same at the start of a repetition that may come so many more times.
void allow_loop(ConstraintRun& run, const WideRecord& wide, Place place, std::uint32_t free) noexcept {
    const Frame frame = run.frames[place.frame];
    const CallRecord& call = run.form.calls[frame.call];
    const std::uint32_t most = call.max == 0 ? kMostTokenBytes : call.max - frame.count;
    if (most >= kMostTokenBytes)
        allow_words(run, wide.mask);
    else
        allow_counts(run, wide.counts, most);
    const std::uint32_t* entries = run.form.words.data() + wide.entries;
    std::uint32_t first = 0, end = wide.n_entries;
    while (first < end && entries[2 * first + 1] + frame.count < call.min) ++first;
    while (end > first && entries[2 * end - 1] > most) --end;
    run.pool[free] = {call.target, frame.parent};
    walk_entries(run, entries, first, end, call.target, {free, 1}, true);
}

/// Allows the tokens after the places whose tokens are merged.
void allow_merged(ConstraintRun& run) noexcept {
    Places base{run.n_places, 0};
    const std::uint32_t* skips = nullptr;
    for (std::uint32_t i = 0; i < run.n_places; ++i) {
        const Place place = run.pool[i];
        if (!run.form.is_merged(place.state)) continue;
        run.pool[base.first + base.n++] = place;
        const std::uint32_t wide = run.form.states[place.state].wide;
        if (wide == kMergedTokens) continue;
        allow_words(run, run.form.wide[wide].mask);
        if (!skips) skips = run.form.words.data() + run.form.wide[wide].entries;
    }
    if (base.n) walk<true>(run, 0, static_cast<std::uint32_t>(run.form.merged().size()), first_level(run, base), skips);
}

[[nodiscard]] bool starts_loop(const ConstraintRun& run, Place place) noexcept {
    if (place.frame == kRoot) return false;
    const CallRecord& call = run.form.calls[run.frames[place.frame].call];
    return call.callee == place.state && call.loop != kNoPlace && !is_item(call);
}

/// The text's places of the state of the i-th, at `free`; none if one before that has the state.
[[nodiscard]] Places places_like(ConstraintRun& run, std::uint32_t i, std::uint32_t free) noexcept {
    Places out{free, 0};
    const bool has_sets = has(Part::known_sets);
    for (std::uint32_t j = has_sets ? 0 : i; j < (has_sets ? run.n_places : i + 1); ++j) {
        if (run.pool[j].state != run.pool[i].state || starts_loop(run, run.pool[j])) continue;
        if (j < i) return {};
        run.pool[out.first + out.n++] = run.pool[j];
    }
    return out;
}

}  // namespace

void start_run(ConstraintRun& run) noexcept {
    if (ListItems* const items = items_of(run)) items->go_to({});
    run.frames[kRoot] = {};
    run.n_frames = 1;
    Places all{0, 0};
    add(run, all, static_cast<std::uint16_t>(run.form.header->start), kRoot);
    expand(run, all);
    if (ListItems* const items = items_of(run)) items->keep();
    run.n_places = all.n;
    drop_frames(run, {});
    run.mask_made = false;
}

bool advance_bytes(ConstraintRun& run, std::string_view bytes) noexcept {
    Places now{0, run.n_places};
    std::uint32_t free = kMostPlaces;
    ListItems* const items = items_of(run);
    if (items) items->go_to(items->text);
    for (const char byte : bytes) {
        if (items) items->read(items->now, static_cast<std::uint8_t>(byte));
        now = step(run, now, static_cast<std::uint8_t>(byte), free);
        if (now.n == 0) break;
        free = now.first == kMostPlaces ? 2 * kMostPlaces : kMostPlaces;
        drop_frames(run, now);
    }
    if (bytes.empty()) return false;
    if (now.n == 0) {
        drop_frames(run, {});
        return false;
    }
    for (std::uint32_t i = 0; i < now.n; ++i) run.pool[i] = run.pool[now.first + i];
    run.n_places = now.n;
    if (items) items->keep();
    drop_frames(run, {});
    run.mask_made = false;
    return true;
}

bool ends_here(const ConstraintRun& run) noexcept {
    for (std::uint32_t i = 0; i < run.n_places; ++i)
        if (ends(run, run.pool[i])) return true;
    return false;
}

void make_mask(ConstraintRun& run, bool forcing) noexcept {
    const Form& form = run.form;
    std::memset(run.mask.data(), 0, run.mask.size_bytes());
    run.mask_made = forcing;
    if (has(Part::known_sets)) run.n_compared = run.n_entered = 0;
    if (ends_here(run))
        for (const std::uint32_t id : form.ends) allow_token(run.mask, id);
    else if (forcing && run.n_places == 1 && form.states[run.pool[0].state].forced != kNoPlace)
        return allow_token(run.mask, form.states[run.pool[0].state].forced);
    const std::uint32_t n_frames = run.n_frames;
    Places rest{run.n_places, 0};
    for (std::uint32_t i = 0; i < run.n_places; ++i) {
        const Place place = run.pool[i];
        const std::uint32_t free = rest.first + rest.n, wide = form.states[place.state].wide;
        if (form.is_merged(place.state)) continue;
        if (starts_loop(run, place))
            allow_loop(run, form.wide[form.calls[run.frames[place.frame].call].loop], place, free);
        else if (wide == kNoPlace && reads_bytes(run, place))
            run.pool[rest.first + rest.n++] = place;
        else if (const Places alike = wide == kNoPlace ? Places{} : places_like(run, i, free); alike.n)
            allow_wide(run, form.wide[wide], alike);
        run.n_frames = n_frames;
    }
    if (ListItems* const items = items_of(run)) items->go_to(items->text);
    if (rest.n) walk<false>(run, 0, static_cast<std::uint32_t>(form.nodes.size()), first_level(run, rest));
    run.n_frames = n_frames;
    if (!has(Part::known_sets)) return;
    if (ListItems* const items = items_of(run)) items->go_to(items->text);
    allow_merged(run);
    run.n_frames = n_frames;
}

}  // namespace fovea
