// Products and heads shared by ranks, and what they make gathered: see fovea/ranks.h.
#include "engine/pass/ranks.h"

#include <algorithm>
#include <cstring>

namespace fovea {
namespace {

/// What ranks tell each other of a pass: a hash of what they were asked for, and their caller's flag.
struct RankWord {
    std::uint32_t hash = 0, cancel = 0;
};

/// FNV-1a over words (Fowler, Noll and Vo 1991).
struct Hash {
    std::uint32_t value = 0x811c9dc5u;
    void add(std::uint32_t word) noexcept { value = (value ^ word) * 0x01000193u; }
};

[[nodiscard]] std::uint32_t hash_of(const PassInput& input) noexcept {
    Hash hash;
    for (const std::uint32_t n : {static_cast<std::uint32_t>(input.index), input.seq_len, input.n_logits, input.pos,
                                  std::uint32_t{input.fills_memory}})
        hash.add(n);
    for (const Token token : input.tokens) hash.add(token);
    for (const Sequence& s : input.self) {
        hash.add(s.pos);
        hash.add(s.n_rows);
    }
    return hash.value;
}

[[nodiscard]] std::uint32_t flag_of(const WorkspaceState& w) noexcept {
    return w.cancel && w.cancel->load(std::memory_order_relaxed) ? 1 : 0;
}

/// A word of each of n ranks, gathered. False: they cannot be reached.
[[nodiscard]] bool gather_words(const WorkspaceState& w, std::uint8_t first, std::uint32_t n, RankWord mine,
                                RankWord (&all)[kMaxRanks]) noexcept {
    std::uint64_t ends[kMaxRanks];
    for (std::uint32_t r = 0; r < n; ++r) ends[r] = (r + 1) * sizeof(RankWord);
    all[w.limits.rank - first] = mine;
    return w.ranks->gather(w.ranks->context, {.first = first}, reinterpret_cast<std::byte*>(all), {ends, n});
}

/// Columns that a product's first n_panels panels have in the rows of its outputs.
[[nodiscard]] std::uint32_t columns_of(const Linear& p, std::uint32_t n_panels) noexcept {
    return std::min(n_panels / (p.epilogue == Epilogue::gate ? 2 : 1) * kLanes, p.n_stored);
}

/// A product's pairs of panels that a rank computes.
[[nodiscard]] UnitShare pairs_of(const Linear& p, RankOf rank) noexcept { return rank.of(n_pairs(p.matrix)); }

[[nodiscard]] Status not_followed(const WorkspaceState& w, const char* what) noexcept {
    return {Code::unsupported, what, 1, w.limits.n_ranks};
}

[[nodiscard]] Status handed_over(const WorkspaceState& w, bool reached) noexcept {
    return reached ? Status{} : Status{Code::io_error, "ranks", w.limits.n_ranks, 0};
}

/// Whether ranks that follow take it: sequences of tokens, with at most a mask of padding.
[[nodiscard]] bool of_tokens(const EncodeInput& input) noexcept {
    const Sequences& s = input.source;
    const Mask& mask = s.masks.attention;
    return !s.lengths.empty() && s.vectors.empty() && input.target.lengths.empty() && input.rows.empty() &&
           !mask.hidden && !mask.added && !s.masks.padding.added;
}

}  // namespace

Status lead_ranks(const WorkspaceState& w, const StepList& steps) noexcept {
    if (steps.read) return not_followed(w, "steps of the C interface with ranks that follow");
    const std::span<const Step> all{static_cast<const Step*>(steps.steps), steps.n};
    for (const Step& step : all) {
        if (!step.rows.empty() || !step.spans.empty() || !step.positions.empty())
            return not_followed(w, "rows or positions with ranks that follow");
        if (step.memory.valid() && !w.ranks->lead_memory) return not_followed(w, "a memory with ranks that follow");
        if (!step.vectors.empty() && StageOf(w.limits).several())
            return not_followed(w, "vectors of ranks in stages that follow");
        if (CacheAccess::pool(step.cache) != CacheAccess::pool(all[0].cache) ||
            CacheAccess::pool(step.memory) != CacheAccess::pool(all[0].memory))
            return not_followed(w, "caches of several pools with ranks that follow");
    }
    return handed_over(w, w.ranks->lead(w.ranks->context, all));
}

Status lead_ranks(const WorkspaceState& w, const EncodeInput& input, std::size_t n_out) noexcept {
    if (!of_tokens(input) || !w.ranks->lead_encode)
        return not_followed(w, "encode of more than tokens with ranks that follow");
    return handed_over(w, w.ranks->lead_encode(w.ranks->context, input, n_out));
}

Status lead_ranks(const WorkspaceState& w, const EncodeInput& input, std::span<const Cache> memories) noexcept {
    if (!of_tokens(input) || !w.ranks->lead_memory)
        return not_followed(w, "a memory of more than tokens with ranks that follow");
    for (const Cache& memory : memories)
        if (CacheAccess::pool(memory) != CacheAccess::pool(memories[0]))
            return not_followed(w, "memories of several pools with ranks that follow");
    return handed_over(w, w.ranks->lead_memory(w.ranks->context, input, memories));
}

Status start_ranks(WorkspaceState& w, const PassInput& input) noexcept {
    w.ranks_end = RanksEnd::none;
    if (input.goes_on && StageOf(w.limits).several()) return {};  // stages are at different passes
    RankWord all[kMaxRanks];
    const RankWord mine{hash_of(input), flag_of(w)};
    if (!gather_words(w, 0, w.limits.n_ranks, mine, all)) w.ranks_end = RanksEnd::lost;
    bool cancel = false;
    for (std::uint32_t r = 0; r < w.limits.n_ranks && w.ranks_end != RanksEnd::lost; ++r) {
        if (all[r].hash != all[0].hash) w.ranks_end = RanksEnd::differ;
        cancel |= all[r].cancel != 0;
    }
    if (w.ranks_end != RanksEnd::none) return end_of_ranks(w);
    return cancel ? Status{Code::cancelled, "", 0, 0} : Status{};
}

Status end_of_ranks(const WorkspaceState& w) noexcept {
    if (w.ranks_end == RanksEnd::differ)
        return {Code::session_mismatch, "ranks: expected the same pass of all, got others", w.limits.n_ranks, 0};
    return {Code::io_error, "ranks", w.limits.n_ranks, 0};
}

void Pass::stop(RanksEnd end) noexcept {
    if (end != RanksEnd::none) workspace.ranks_end = end;
    workspace.cancelled[n_met % 2] = true;  // all members see it as they meet
}

bool Pass::exchange(RankGroup among, std::byte* data, std::span<const std::uint64_t> ends) noexcept {
    if (workspace.ranks->gather(workspace.ranks->context, among, data, ends)) return true;
    stop(RanksEnd::lost);
    return false;
}

bool Pass::exchange(std::byte* data, std::span<const std::uint64_t> ends) noexcept {
    return exchange({.first = stage().first_rank()}, data, ends);
}

/// Few rows take no time worth ending sooner.
void Pass::agree() noexcept {
    const StageOf its = stage();
    if (stopped || seq_len <= kFewRows || !its.is_first() || (its.several() && fills_memory)) return;
    if (member == 0) {
        RankWord all[kMaxRanks];
        if (!gather_words(workspace, its.first_rank(), its.n_ranks, {0, flag_of(workspace)}, all)) stop(RanksEnd::lost);
        for (std::uint32_t r = 0; r < its.n_ranks && workspace.ranks_end == RanksEnd::none; ++r)
            if (all[r].cancel) stop();
    }
    meet("", {});
}

void Pass::pass_rows(std::uint8_t before) noexcept {
    const RankGroup two{before, stage().n_ranks};
    RankWord word{hash_of(*this), stopped};
    const std::uint64_t of_word[] = {sizeof word, sizeof word};
    if (!exchange(two, reinterpret_cast<std::byte*>(&word), of_word)) return;
    if (word.cancel) return stop();
    if (word.hash != hash_of(*this)) return stop(RanksEnd::differ);
    const std::uint64_t bytes = seq_len * hidden().stride * sizeof(float), of_rows[] = {bytes, bytes};
    exchange(two, reinterpret_cast<std::byte*>(hidden().data), of_rows);
}

void Pass::take_rows() noexcept {
    if (stage().is_first() || stopped) return;
    if (member == 0) pass_rows(static_cast<std::uint8_t>(workspace.limits.rank - stage().n_ranks));
    meet("", {});
}

UnitShare Pass::rows_wanted() const noexcept {
    bool all = out.data || (n_logits && logit_rows.each);
    for (std::size_t i = 0; i < self.size() && !all; ++i) all = !step_of(self[i]).step.vectors.empty();
    return {all ? 0 : seq_len - n_logits, seq_len};
}

void Pass::hand_on_rows() noexcept {
    const StageOf its = stage();
    layer = stack().n_layers;
    const std::uint8_t rank = workspace.limits.rank;
    const auto lost = [&] { return workspace.ranks_end == RanksEnd::lost; };
    if (member == 0 && !its.is_last() && !lost()) pass_rows(rank);
    const UnitShare wanted = rows_wanted();
    if (stopped || !wanted.size()) return;
    if (member == 0 && !lost()) {
        std::uint64_t ends[kMaxRanks] = {};
        ends[its.n - 1] = wanted.size() * hidden().stride * sizeof(float);  // the last stage's
        exchange({static_cast<std::uint8_t>(rank - its.first_rank()), its.n_ranks},
                 reinterpret_cast<std::byte*>(hidden()[wanted.begin]), {ends, its.n});
    }
    meet("", {});
}

void Pass::gather(const char* name, const Output& output, const Rows& rows, std::uint32_t n_rows,
                  const RankEnds& ends) noexcept {
    if (!by_ranks() || stopped) return;
    const std::uint32_t n = rank().n, width = ends[n - 1];
    const auto begin_of = [&](std::uint32_t r) { return r ? ends[r - 1] : 0; };
    std::uint64_t bytes[kMaxRanks];
    const auto in_bytes = [&](std::uint32_t rows_each) {
        for (std::uint32_t r = 0; r < n; ++r) bytes[r] = std::uint64_t{ends[r]} * rows_each * sizeof(float);
        return std::span<const std::uint64_t>{bytes, n};
    };
    // Each rank's columns of several rows are brought together where the operand was, [rank][row][column]: as many rows
    // at a time as have room. One row, or rows too wide for that, are gathered where they lie.
    const std::uint64_t room = (workspace.map.rotations - workspace.map.operand) / sizeof(float) / width;
    if (n_rows == 1 || room < 2) {
        if (member == 0)
            for (std::uint32_t row = 0; row < n_rows; ++row)
                exchange(reinterpret_cast<std::byte*>(rows[row]), in_bytes(1));
        return meet(name, output);
    }
    float* together = workspace.floats(workspace.map.operand);
    for (std::uint32_t first = 0; first < n_rows && !stopped;) {
        const std::uint32_t n_now = n_rows - first < room ? n_rows - first : static_cast<std::uint32_t>(room);
        const auto place = [&](std::uint32_t r, std::uint32_t row) {
            return together + std::uint64_t{begin_of(r)} * n_now + std::uint64_t{row} * (ends[r] - begin_of(r));
        };
        const auto columns = [&](std::uint32_t r) { return (ends[r] - begin_of(r)) * sizeof(float); };
        const std::uint32_t own = rank().rank;
        phase(name, {}, in_parts(n_now), [&](Share mine) {
            for (std::uint32_t row = mine.begin; row < mine.end; ++row)
                std::memcpy(place(own, row), rows[first + row] + begin_of(own), columns(own));
        });
        if (member == 0 && !stopped) exchange(reinterpret_cast<std::byte*>(together), in_bytes(n_now));
        meet(name, {});
        const bool is_last = first + n_now == n_rows;
        phase(name, is_last ? output : Output{}, in_parts(n_now), [&](Share mine) {
            for (std::uint32_t row = mine.begin; row < mine.end; ++row)
                for (std::uint32_t r = 0; r < n; ++r)
                    if (r != own) std::memcpy(rows[first + row] + begin_of(r), place(r, row), columns(r));
        });
        first += n_now;
    }
}

void Pass::gather_rows(const Rows& rows, const RankEnds& ends) noexcept {
    if (!by_ranks() || stopped) return;
    std::uint64_t bytes[kMaxRanks];
    for (std::uint32_t r = 0; r < rank().n; ++r) bytes[r] = ends[r] * rows.stride * sizeof(float);
    if (member == 0) exchange(reinterpret_cast<std::byte*>(rows.data), {bytes, rank().n});
    meet("", {});
}

void Pass::gather_heads(const char* name, const Output& output, const Rows& rows, const AttentionShape& shape,
                        std::uint32_t width) noexcept {
    if (!by_ranks()) return;
    RankEnds ends;
    for (std::uint32_t r = 0; r < rank().n; ++r) ends[r] = RankHeads(shape, rank().other(r)).end() * width;
    gather(name, output, rows, seq_len, ends);
}

void Pass::multiply_here(const char* name, std::span<const Linear> products, const void* operand,
                         std::uint32_t n_rows) noexcept {
    std::uint32_t total = 0;
    for (const Linear& p : products) total += n_pairs(p.matrix);
    phase(name, {}, pairs(total, n_rows), [&](Share mine) { multiply(products, operand, n_rows, mine); });
}

void Pass::multiply_by_ranks(const char* name, const Output& output, std::span<const Linear> products,
                             const void* operand, std::uint32_t n_rows) noexcept {
    std::uint32_t total = 0;
    for (const Linear& p : products) total += pairs_of(p, rank()).size();
    phase(name, {}, pairs(total, n_rows), [&](Share mine) {
        std::uint32_t first = 0;
        for (const Linear& p : products) {
            const UnitShare own = pairs_of(p, rank());
            const Share its = mine.within(first, own.size());
            first += own.size();
            if (its.begin != its.end)
                multiply({&p, 1}, operand, n_rows, Share{own.begin + its.begin, own.begin + its.end});
        }
    });
    for (const Linear& p : products) {
        RankEnds ends;
        for (std::uint32_t r = 0; r < rank().n; ++r) {
            const std::uint32_t end = pairs_of(p, rank().other(r)).end * kPair;
            ends[r] = columns_of(p, std::min(end, p.matrix.n_panels()));
        }
        gather(name, {}, p.out, n_rows, ends);
    }
    show(name, output);
}

}  // namespace fovea
