#include "engine/run/rows.h"

namespace fovea {

Lengths lengths_of_memory(const Config& config, const EncodeInput& in) noexcept {
    return {config.encoder.n_layers ? in.source.lengths : in.memory_lengths, config.encoder.sound.is_speech()};
}

std::span<const Sequence> place(WorkspaceState& w, bool cross, const Lengths& lengths,
                                const Lengths& sources) noexcept {
    Sequence* out = w.sequences() + (cross ? w.limits.max_sequences : 0);
    Sequence next{};
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        next.n_rows = lengths[i];
        next.n_new = next.n_keys = sources[i];
        out[i] = next;
        next.row += next.n_rows;
        next.kv_row += next.n_new;
        next.cache_start += static_cast<std::uint32_t>(round_up(next.n_new, kLanes));
    }
    return {out, lengths.size()};
}

std::uint64_t attention_macs(const Block& b, std::span<const Sequence> sequences) noexcept {
    std::uint64_t macs = 0;
    for (const Sequence& s : sequences) macs += std::uint64_t{s.n_rows} * s.n_keys;
    return macs * b.attention.n_heads * (b.attention.head_dim + b.attention.value_head_dim);
}

Status run_stack(WorkspaceState& w, PassInput& input, const Sequences& side) noexcept {
    input.tokens = side.ids;
    input.vectors = side.vectors.data();
    input.types = side.types;
    input.self_masks = &side.masks;
    const Stack& stack = stack_of(w.model.config(), input.index);
    const Lengths lengths(side.lengths, stack.sound.is_speech());
    if (stack.sound.is_speech()) input.frame_lengths = side.lengths;
    input.self = place(w, false, lengths, lengths);
    input.seq_len = input.self.back().row + input.self.back().n_rows;
    const std::uint64_t macs = w.stacks[static_cast<int>(input.index)].macs_per_row * input.seq_len;
    return run(w, input, macs + stack.n_layers * attention_macs(stack.blocks[0], input.self));
}

Status run_encoder(WorkspaceState& w, PassInput& pass, const Sequences& source) noexcept {
    pass.index = StackIndex::encoder;
    if (w.model.config().decoder.n_layers) pass.out = {w.floats(w.map.memory), w.map.hidden_stride};
    return run_stack(w, pass, source);
}

void take_memory(const WorkspaceState& w, PassInput& pass, const EncodeInput& in, std::uint64_t n_rows) noexcept {
    const Config& config = w.model.config();
    pass.memory = config.encoder.n_layers ? ConstRows(w.floats(w.map.memory), w.map.hidden_stride)
                                          : ConstRows(in.memory.data(), config.decoder.d_model);
    pass.n_memory = static_cast<std::uint32_t>(n_rows);
    pass.index = StackIndex::decoder;
}

void place_memories(WorkspaceState& w, PassInput& pass, const Lengths& lengths, std::span<const Cache> memories,
                    KvPages& one) noexcept {
    pass.cross = place(w, true, lengths, lengths);
    const StepLists lists(w.map.steps, w.limits, true);
    const bool several = w.limits.max_sequences > 1;
    KvPages* pages = several ? reinterpret_cast<KvPages*>(w.arena + lists.pages) : &one;
    for (std::size_t i = 0; i < memories.size(); ++i) {
        w.sequences()[w.limits.max_sequences + i].cache_start = 0;
        pages[i] = CacheAccess::pool(memories[i])->view(CacheAccess::slot(memories[i]));
    }
    pass.memory_kv = {pages, memories.size()};
    pass.fills_memory = true;
}

}  // namespace fovea
