// Forms and indices of vocabularies as checked views, and the states of texts.
#include "fovea/constraint.h"

#include <cstring>
#include <new>

#include "engine/format/tables.h"
#include "engine/text/constraint_run.h"
#include "fovea/checksum.h"

namespace fovea {
namespace {

// ---- checks --------------------------------------------------------------------------------------------------------

[[nodiscard]] Status wrong(const char* what, std::uint64_t wanted, std::uint64_t had) noexcept {
    return {Code::section_invalid, what, wanted, had};
}

/// The header of bytes that may be a form or an index.
template<class Header>
[[nodiscard]] Status read_header(std::span<const std::byte> bytes, const std::uint8_t (&magic)[8],
                                 const Header*& header) noexcept {
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::uint32_t))
        return {Code::misaligned, "a form's address modulo 4", 0, reinterpret_cast<std::uintptr_t>(bytes.data()) % 4};
    if (bytes.size() < sizeof(Header)) return {Code::truncated, "bytes of a form", sizeof(Header), bytes.size()};
    if (std::memcmp(bytes.data(), magic, sizeof magic) != 0) return {Code::bad_magic, "a form's first bytes", 0, 0};
    header = reinterpret_cast<const Header*>(bytes.data());
    if (header->version != kConstraintVersion)
        return {Code::version_unsupported, "a form's version", kConstraintVersion, header->version};
    return {};
}

/// The parts behind a header, one after the other.
class ConstraintParts {
public:
    ConstraintParts(std::span<const std::byte> bytes, std::size_t at) noexcept : bytes_(bytes), at_(at) {}

    template<class T>
    void take(std::uint64_t n, std::span<const T>& part) noexcept {
        const std::uint64_t wanted = n * sizeof(T);
        if (at_ > bytes_.size() || wanted > bytes_.size() - at_) {
            at_ = bytes_.size() + std::uint64_t{1};
            return;
        }
        part = {reinterpret_cast<const T*>(bytes_.data() + at_), static_cast<std::size_t>(n)};
        at_ += wanted;
    }
    void skip(std::uint64_t n_bytes) noexcept {
        std::span<const std::byte> skipped;
        take(n_bytes, skipped);
    }
    [[nodiscard]] std::uint64_t at() const noexcept { return at_; }  ///< more than there is: truncated

private:
    std::span<const std::byte> bytes_;
    std::uint64_t at_;
};

[[nodiscard]] std::uint64_t read_index(const IndexHeader& header, std::span<const std::byte> bytes,
                                       Form& form) noexcept {
    ConstraintParts parts(bytes, sizeof header);
    parts.take(header.n_nodes, form.nodes);
    parts.take(header.n_ends, form.ends);
    form.max_token_bytes = header.max_depth;
    return parts.at();
}

[[nodiscard]] std::uint64_t read_form(const ConstraintHeader& header, std::span<const std::byte> bytes,
                                      Form& form) noexcept {
    ConstraintParts parts(bytes, sizeof header);
    form.header = &header;
    parts.take(header.n_states, form.states);
    parts.take(header.n_calls, form.calls);
    parts.take(header.n_ranges, form.ranges);
    parts.take(std::uint64_t{header.n_rows} * 256, form.rows);
    // Rows are whole words, so what follows is aligned.
    parts.take(header.n_wide, form.wide);
    if (has(Part::known_sets))
        parts.skip(header.n_merged * std::uint64_t{sizeof(IndexNode)} +
                   header.n_groups * std::uint64_t{sizeof(GroupRecord)});
    parts.take(header.n_words, form.words);
    return parts.at();
}

/// Checks that the nodes are a tree in the order of a walk: subtrees end within their parents', and siblings follow one
/// another.
[[nodiscard]] Status check_nodes(std::uint32_t max_depth, std::uint32_t n_ids,
                                 std::span<const IndexNode> nodes) noexcept {
    std::uint32_t ends[kMostTokenBytes + 1] = {static_cast<std::uint32_t>(nodes.size())};
    std::uint32_t before = 0;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        const IndexNode node = nodes[i];
        const std::uint32_t depth = node.depth();
        if (depth == 0 || depth > before + 1 || depth > max_depth) return wrong("a node's depth", before + 1, depth);
        if (depth <= before && ends[depth] != i) return wrong("a node's place", ends[depth], i);
        if (i >= ends[depth - 1] || node.end() <= i || node.end() > ends[depth - 1])
            return wrong("a subtree's end", ends[depth - 1], node.end());
        if (node.token() != kNoNodeToken && node.token() >= n_ids) return wrong("a node's token", n_ids, node.token());
        ends[depth] = node.end();
        before = depth;
    }
    return {};
}

[[nodiscard]] Status check_index(const Tokenizer& tokenizer, std::span<const std::byte> bytes, Form& form) noexcept {
    const IndexHeader* header = nullptr;
    if (Status s = read_header(bytes, kIndexMagic, header); !s.ok()) return s;
    const Tables tables = TokenizerReader::tables(tokenizer);
    const std::uint32_t crc = crc32c(std::as_bytes(tables.token_text), crc32c(std::as_bytes(tables.token_offsets)));
    if (header->vocab_size != tokenizer.vocab_size() || header->token_crc != crc)
        return {Code::session_mismatch, "a form made for this vocabulary", crc, header->token_crc};
    if (const std::uint64_t wanted = read_index(*header, bytes, form); wanted != bytes.size())
        return {Code::truncated, "bytes of an index", wanted, bytes.size()};
    if (form.ends.empty()) return {Code::unsupported, "end tokens of a vocabulary at least", 1, 0};
    for (const std::uint32_t id : form.ends)
        if (id >= header->vocab_size) return wrong("an end token", header->vocab_size, id);
    if (header->max_depth > kMostTokenBytes) return wrong("longest token's bytes", kMostTokenBytes, header->max_depth);
    if (header->vocab_size > kNoNodeToken) return wrong("an index's tokens", kNoNodeToken, header->vocab_size);
    return check_nodes(header->max_depth, header->vocab_size, form.nodes);
}

[[nodiscard]] Status check_state(const Form& form, const StateRecord& s) noexcept {
    const std::uint64_t first_call = s.first_call, n_states = form.states.size();
    if (first_call + s.n_calls > form.calls.size()) return wrong("a state's calls", form.calls.size(), first_call);
    if (s.accepts > 1) return wrong("whether a state ends", 1, s.accepts);
    if (s.height > form.header->max_depth) return wrong("a state's height", form.header->max_depth, s.height);
    if (s.forced != kNoPlace && s.forced >= form.header->vocab_size)
        return wrong("a forced token", form.header->vocab_size, s.forced);
    const bool is_wide = s.wide != kNoPlace && !(has(Part::known_sets) && s.wide == kMergedTokens);
    if (is_wide && s.wide >= form.wide.size()) return wrong("a state's mask", form.wide.size(), s.wide);
    if (is_wide && form.wide[s.wide].counts != kNoPlace) return wrong("a state's mask", kNoPlace, s.wide);
    if (s.n_ranges == kRowOfBytes)
        return s.first < form.header->n_rows ? Status{} : wrong("a state's row", form.header->n_rows, s.first);
    if (s.first > form.ranges.size() || s.n_ranges > form.ranges.size() - s.first)
        return wrong("a state's ranges", form.ranges.size(), s.first);
    std::uint32_t next = 0;
    for (const RangeRecord& r : form.ranges.subspan(s.first, s.n_ranges)) {
        if (r.low < next || r.high < r.low || r.target >= n_states) return wrong("a range", next, r.low);
        next = r.high + 1u;
    }
    return {};
}

[[nodiscard]] Status check_call(const Form& form, const CallRecord& c) noexcept {
    if (c.callee >= form.states.size() || c.target >= form.states.size())
        return wrong("a call's state", form.states.size(), c.callee);
    if (c.min == 0 || (c.max != 0 && c.max < c.min)) return wrong("a call's repetitions", c.min, c.max);
    if (c.loop == kNoPlace) return {};
    if (is_item(c)) {
        if (c.max != 1) return wrong("repetitions of an item's call", 1, c.max);
        if (c.loop >= kFurtherItem) return {};
        const std::uint32_t at = c.loop - kOtherText;
        const std::uint64_t n_words = form.words.size();
        return at < n_words && form.words[at] < n_words - at ? Status{} : wrong("the place of texts", n_words, at);
    }
    if (c.loop >= form.wide.size()) return wrong("a call's mask", form.wide.size(), c.loop);
    return form.wide[c.loop].counts != kNoPlace ? Status{} : wrong("a loop's counts", 0, kNoPlace);
}

[[nodiscard]] Status check_wide(const Form& form, const WideRecord& w) noexcept {
    const std::uint64_t n_words = form.words.size(), n_mask = (std::uint64_t{form.header->vocab_size} + 31) / 32;
    if (w.mask > n_words || n_mask > n_words - w.mask) return wrong("a mask's place", n_words, w.mask);
    if (w.counts != kNoPlace && (w.counts > n_words || n_mask * 8 > n_words - w.counts))
        return wrong("the place of counts", n_words, w.counts);
    if (has(Part::known_sets) && w.n_entries == kNoPlace && w.counts == kNoPlace) {
        const std::uint64_t n_skips = (form.merged().size() + 31) / 32;
        return n_skips <= n_words && w.entries <= n_words - n_skips ? Status{}
                                                                    : wrong("the place of entries", n_words, w.entries);
    }
    if (w.entries > n_words || std::uint64_t{w.n_entries} * 2 > n_words - w.entries)
        return wrong("the place of entries", n_words, w.entries);
    const bool of_state = w.counts == kNoPlace;
    std::uint32_t before = 0;
    for (std::uint32_t e = 0; e < w.n_entries; ++e) {
        const std::uint32_t node = form.words[w.entries + 2 * e], second = form.words[w.entries + 2 * e + 1];
        if (node >= form.nodes.size()) return wrong("an entry's node", form.nodes.size(), node);
        if (second < before || (of_state && second >= form.states.size())) return wrong("an entry", before, second);
        before = second;
    }
    return {};
}

[[nodiscard]] Status check_merged(const Form& form) noexcept {
    const std::uint64_t n_words = form.words.size(), n_mask = (std::uint64_t{form.header->vocab_size} + 31) / 32;
    std::uint64_t n_all = 0;  // groups share no words, and no node a group, so that time is bounded by the form's bytes
    for (const GroupRecord& g : form.groups()) {
        const std::uint64_t n = g.n == kNoPlace ? n_mask : g.n;
        n_all += n;
        if (n_all > n_words) return wrong("words of all groups", n_words, n_all);
        if (g.tokens > n_words || n > n_words - g.tokens) return wrong("the place of a group", n_words, g.tokens);
        if (g.n == kNoPlace) continue;
        for (const std::uint32_t id : form.words.subspan(g.tokens, g.n))
            if (id >= form.header->vocab_size) return wrong("a group's token", form.header->vocab_size, id);
    }
    std::uint32_t next = 0;
    for (const IndexNode& node : form.merged()) {
        if (node.token() == kNoNodeToken) continue;
        if (node.token() < next) return wrong("a node's group", next, node.token());
        next = node.token() + 1;
    }
    return check_nodes(form.max_token_bytes, static_cast<std::uint32_t>(form.groups().size()), form.merged());
}

[[nodiscard]] Status check_form(const Form& form) noexcept {
    const ConstraintHeader& h = *form.header;
    if (h.n_states == 0 || h.n_states > kNoState) return wrong("a form's states", kNoState, h.n_states);
    if (h.n_calls > kNoState) return wrong("a form's calls", kNoState, h.n_calls);
    if (h.start >= h.n_states) return wrong("a form's start", h.n_states, h.start);
    if (h.max_depth > 255) return wrong("a form's depth", 255, h.max_depth);
    for (const StateRecord& s : form.states)
        if (Status status = check_state(form, s); !status.ok()) return status;
    for (const CallRecord& c : form.calls)
        if (Status status = check_call(form, c); !status.ok()) return status;
    for (const std::uint16_t target : form.rows)
        if (target != kNoState && target >= h.n_states) return wrong("a row's state", h.n_states, target);
    for (const WideRecord& w : form.wide)
        if (Status status = check_wide(form, w); !status.ok()) return status;
    if (has(Part::known_sets)) return check_merged(form);
    return {};
}

// ---- a state's memory ----------------------------------------------------------------------------------------------

struct RunMap {
    std::uint64_t frames, moved, pool, levels, mask, sets, items, bytes;
    std::uint32_t n_frames, n_pool, n_levels, n_mask;
};

constexpr std::uint64_t kRunBytes = 320;  // whatever a pointer's size
static_assert(sizeof(ConstraintRun) <= kRunBytes && sizeof(Frame) == 8 && sizeof(Place) == 4 && sizeof(Level) == 12);

[[nodiscard]] RunMap lay_out_run(const Form& form) noexcept {
    RunMap map{};
    // Room for the text's own places, and for what one token's bytes may add.
    map.n_frames = 4 * form.header->max_depth + kMostPlaces + 8 * form.max_token_bytes;
    map.n_pool = 3 * kMostPlaces + 16 * form.max_token_bytes;
    const bool is_large = has(Part::known_sets) && form.header->vocab_size >= KnownSets::kLeastTokens;
    if (is_large) {
        map.n_frames += KnownSets::kFrames;
        map.n_pool += KnownSets::kPlaces + kMostPlaces * form.max_token_bytes;
    }
    map.n_levels = form.max_token_bytes + 1;
    map.n_mask = static_cast<std::uint32_t>((std::uint64_t{form.header->vocab_size} + 31) / 32);
    const auto take = [&](std::uint64_t n, std::uint64_t each) {
        const std::uint64_t at = map.bytes;
        map.bytes += (n * each + 7) / 8 * 8;
        return at;
    };
    (void)take(1, kRunBytes);
    map.frames = take(map.n_frames, sizeof(Frame));
    map.moved = take(map.n_frames, sizeof(std::uint16_t));
    map.pool = take(map.n_pool, sizeof(Place));
    map.levels = take(map.n_levels, sizeof(Level));
    map.mask = take(map.n_mask, sizeof(std::uint32_t));
    map.sets = is_large ? take(1, sizeof(KnownSets)) : 0;
    for (const CallRecord& call : form.calls)
        if (is_item(call) && !map.items) map.items = take(1, sizeof(ListItems));
    return map;
}

/// Bytes are of one class if each state's ranges and rows lead them to the same place.
void find_classes(const Form& form, std::uint8_t (&class_of)[256]) noexcept {
    bool starts[257] = {};
    for (const RangeRecord& range : form.ranges) starts[range.low] = starts[range.high + 1u] = true;
    for (std::size_t i = 0; i < form.rows.size(); ++i)
        if (i % 256 && form.rows[i] != form.rows[i - 1]) starts[i % 256] = true;
    std::uint8_t n = 0;
    for (std::size_t byte = 0; byte < 256; ++byte)
        class_of[byte] = n = static_cast<std::uint8_t>(n + (byte && starts[byte]));
}

void allow(void* context, std::span<const Token>, std::span<std::uint32_t> mask) noexcept {
    ConstraintState state;
    ConstraintAccess::set(state, static_cast<ConstraintRun*>(context));
    allow_tokens(state, mask);
}

void accept(void* context, Token token) noexcept {
    ConstraintState state;
    ConstraintAccess::set(state, static_cast<ConstraintRun*>(context));
    (void)advance(state, token);
}

std::size_t force(void* context, std::span<Token> tokens) noexcept {
    ConstraintState state;
    ConstraintAccess::set(state, static_cast<ConstraintRun*>(context));
    return forced_tokens(state, tokens);
}

}  // namespace

Form ConstraintAccess::form(const Constraint& constraint) noexcept {
    const auto all = [](const void* at) {  // checked by open_constraint
        return std::span(static_cast<const std::byte*>(at), SIZE_MAX / 2);
    };
    Form form;
    (void)read_form(*constraint.form_, all(constraint.form_), form);
    (void)read_index(*reinterpret_cast<const IndexHeader*>(constraint.index_), all(constraint.index_), form);
    return form;
}

std::string_view token_text(const Tokenizer& tokenizer, Token token) noexcept {
    const Tables tables = TokenizerReader::tables(tokenizer);
    std::string_view text = tables.token(token);
    if (tables.has_bit(token, kSpecialToken)) return {};
    if (tables.has_bit(token, kJoinedToken) && !text.empty() && text[0] == ' ') text.remove_prefix(1);
    return text;
}

Status open_constraint(const Tokenizer& tokenizer, std::span<const std::byte> form, std::span<const std::byte> index,
                       Constraint& constraint) noexcept {
    if (!tokenizer.valid()) return {Code::bad_argument, "tokenizer: not opened", 0, 0};
    const ConstraintHeader* header = nullptr;
    if (Status s = read_header(form, kConstraintMagic, header); !s.ok()) return s;
    Form own;
    const std::uint64_t form_bytes = read_form(*header, form, own), all_bytes = form_bytes + header->index_bytes;
    if (form_bytes > form.size() || all_bytes != form.size())
        return {Code::truncated, "bytes of a form", all_bytes, form.size()};
    if (header->index_bytes) index = form.subspan(static_cast<std::size_t>(form_bytes));
    if (index.empty()) return {Code::section_missing, "the index of a vocabulary", 1, 0};
    if (Status s = check_index(tokenizer, index, own); !s.ok()) return s;
    if (const std::uint32_t crc = crc32c(index.first(sizeof(IndexHeader)));
        header->index_crc != crc || header->vocab_size != tokenizer.vocab_size())
        return {Code::session_mismatch, "a form made with this index", crc, header->index_crc};
    if (Status s = check_form(own); !s.ok()) return s;
    ConstraintAccess::set(constraint, header, index.data(), tokenizer);
    return {};
}

std::uint64_t constraint_state_bytes(const Constraint& constraint) noexcept {
    return constraint.valid() ? lay_out_run(ConstraintAccess::form(constraint)).bytes : 0;
}

Status make_constraint_state(const Constraint& constraint, std::span<std::byte> memory,
                             ConstraintState& state) noexcept {
    if (!constraint.valid()) return {Code::bad_argument, "constraint: not opened", 0, 0};
    const Form form = ConstraintAccess::form(constraint);
    const RunMap map = lay_out_run(form);
    if (memory.size() < map.bytes)
        return {Code::arena_too_small, "bytes of a constraint's state at least", map.bytes, memory.size()};
    if (const std::uint64_t past = reinterpret_cast<std::uintptr_t>(memory.data()) % 8)
        return {Code::misaligned, "the address of a constraint's state modulo 8", 0, past};
    const Tokenizer tokenizer = ConstraintAccess::tokenizer(constraint);
    std::byte* const base = memory.data();
    auto* run = new (base) ConstraintRun;
    run->form = form;
    run->tokenizer = tokenizer;
    run->frames = {reinterpret_cast<Frame*>(base + map.frames), map.n_frames};
    run->moved = {reinterpret_cast<std::uint16_t*>(base + map.moved), map.n_frames};
    run->pool = {reinterpret_cast<Place*>(base + map.pool), map.n_pool};
    run->levels = {reinterpret_cast<Level*>(base + map.levels), map.n_levels};
    run->mask = {reinterpret_cast<std::uint32_t*>(base + map.mask), map.n_mask};
    if (has(Part::known_sets) && map.sets) {
        run->sets = new (base + map.sets) KnownSets;
        find_classes(form, run->sets->class_of);
    }
    if (has(Part::known_sets) && map.items) run->items = new (base + map.items) ListItems;
    start_run(*run);
    ConstraintAccess::set(state, run);
    return {};
}

void restart(ConstraintState& state) noexcept {
    if (state.valid()) start_run(*ConstraintAccess::run(state));
}

Status copy_state(const ConstraintState& from, ConstraintState& to) noexcept {
    if (!from.valid() || !to.valid()) return {Code::bad_argument, "constraint's state: not made", 0, 0};
    const ConstraintRun& a = *ConstraintAccess::run(from);
    ConstraintRun& b = *ConstraintAccess::run(to);
    if (a.form.header != b.form.header || a.form.nodes.data() != b.form.nodes.data())
        return {Code::bad_argument, "states of one constraint", 0, 0};
    std::memmove(b.frames.data(), a.frames.data(), a.n_frames * sizeof(Frame));
    std::memmove(b.pool.data(), a.pool.data(), a.n_places * sizeof(Place));
    std::memmove(b.mask.data(), a.mask.data(), a.mask.size_bytes());
    if (const ListItems* const items = items_of(a)) {
        std::memmove(b.items->hashes, items->hashes, sizeof items->hashes);
        b.items->text = items->text;
    }
    b.n_frames = a.n_frames;
    b.n_places = a.n_places;
    b.mask_made = a.mask_made;
    return {};
}

void allow_tokens(ConstraintState& state, std::span<std::uint32_t> mask) noexcept {
    if (!state.valid()) return;
    ConstraintRun& run = *ConstraintAccess::run(state);
    if (!run.mask_made) {
        make_mask(run, true);
        // A form's own masks are whole words, whatever its bytes say of ids past the vocabulary.
        if (const std::uint32_t n_last = run.form.header->vocab_size % 32) run.mask.back() &= (1u << n_last) - 1;
    }
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] &= i < run.mask.size() ? run.mask[i] : 0;
}

bool advance(ConstraintState& state, Token token) noexcept {
    if (!state.valid()) return false;
    ConstraintRun& run = *ConstraintAccess::run(state);
    if (run.tokenizer.ends_text(token)) return ends_here(run);
    return advance_bytes(run, token_text(run.tokenizer, token));
}

bool can_end(const ConstraintState& state) noexcept {
    return state.valid() && ends_here(*ConstraintAccess::run(state));
}

bool must_end(const ConstraintState& state) noexcept {
    if (!can_end(state)) return false;
    const ConstraintRun& run = *ConstraintAccess::run(state);
    for (std::uint32_t i = 0; i < run.n_places; ++i)
        if (run.form.states[run.pool[i].state].n_ranges) return false;
    return true;
}

std::size_t forced_tokens(const ConstraintState& state, std::span<Token> tokens) noexcept {
    if (!state.valid()) return 0;
    const ConstraintRun& run = *ConstraintAccess::run(state);
    if (run.n_places != 1 || ends_here(run)) return 0;
    std::uint16_t at = run.pool[0].state;
    std::size_t n = 0;
    while (n < tokens.size() && run.form.states[at].forced != kNoPlace) {
        const Token token = run.form.states[at].forced;
        const std::string_view text = token_text(run.tokenizer, token);
        std::uint16_t next = at;
        for (const char byte : text) {
            next = run.form.next(next, static_cast<std::uint8_t>(byte));
            if (next == kNoState || !run.form.simple(next)) return n;  // not one of the compiler's
        }
        if (text.empty()) return n;
        tokens[n++] = token;
        at = next;
    }
    return n;
}

TokenFilter filter_of(const ConstraintState& state) noexcept {
    if (!state.valid()) return {};
    return {.allow = allow, .accept = accept, .context = ConstraintAccess::run(state), .forced = force};
}

}  // namespace fovea
