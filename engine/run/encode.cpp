// The entry points for vectors, and what they check.
#include "fovea/encode.h"

#include <algorithm>

#include "engine/model/model.h"
#include "engine/pass/ranks.h"
#include "engine/run/rows.h"
#include "platform/float_env.h"

namespace fovea {
namespace {

Status bad_shape(const char* what, std::uint64_t wanted, std::uint64_t had) noexcept {
    return {Code::bad_shape, what, wanted, had};
}

[[nodiscard]] Status check_workspace(const Workspace& workspace) noexcept {
    if (!workspace.valid()) return {Code::bad_argument, "workspace: not made", 0, 0};
    return {};
}
/// The same for a call that ranks do not follow.
[[nodiscard]] Status check_unled(const Workspace& workspace) noexcept {
    if (Status status = check_workspace(workspace); !status.ok()) return status;
    const WorkspaceState& w = *WorkspaceAccess::state(workspace);
    if (!leads(w)) return {};
    return {Code::unsupported, "calls beside forward, encode and cache_memory with ranks that follow", 1,
            w.limits.n_ranks};
}

struct Total {
    std::uint64_t rows = 0, longest = 0, given = 0;
};
[[nodiscard]] Status count_rows(const Lengths& lengths, std::uint64_t most, Total& total) noexcept {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        const std::uint32_t n = lengths[i];
        if (n == 0) return bad_shape("rows of every sequence at least", 1, 0);
        total.rows += n;
        total.longest = total.longest < n ? n : total.longest;
        total.given += lengths.given[i];
    }
    return total.rows > most ? bad_shape("rows at most", most, total.rows) : Status{};
}

[[nodiscard]] Status check_ids(std::span<const Token> ids, std::uint64_t n) noexcept {
    for (const Token id : ids)
        if (id >= n) return {Code::token_out_of_range, "token or type at most", n - 1, id};
    return {};
}

/// A side's rows are there, in the form its stack reads.
[[nodiscard]] Status check_sequences(const WorkspaceState& w, const Stack& stack, const Sequences& in,
                                     std::size_t n_sequences, Total& total) noexcept {
    if (in.lengths.size() != n_sequences || !n_sequences)
        return bad_shape("sequences of each side", n_sequences, in.lengths.size());
    if (n_sequences > w.limits.max_sequences)
        return bad_shape("sequences at most", w.limits.max_sequences, n_sequences);
    const Lengths lengths(in.lengths, stack.sound.is_speech());
    if (Status status = count_rows(lengths, w.limits.max_batch, total); !status.ok()) return status;
    const std::uint64_t n_ids = stack.vocab_size ? total.rows : 0;
    const std::uint64_t width = stack.sound.is_speech() ? stack.sound.n_mels : stack.d_model;
    const std::uint64_t n_floats = stack.vocab_size ? 0 : total.given * width;
    if (in.ids.size() != n_ids) return bad_shape("ids", n_ids, in.ids.size());
    if (in.vectors.size() != n_floats) return bad_shape("vectors' elements", n_floats, in.vectors.size());
    if (!in.types.empty() && (in.types.size() != total.rows || !stack.n_token_types))
        return bad_shape("token types", stack.n_token_types ? total.rows : 0, in.types.size());
    if (stack.max_positions && total.longest > stack.max_positions)
        return bad_shape("positions at most", stack.max_positions, total.longest);
    if (Status status = check_ids(in.ids, stack.vocab_size); !status.ok()) return status;
    return check_ids(in.types, stack.n_token_types);
}

/// Rows of the last stack whose results are asked for.
[[nodiscard]] Status check_chosen(const WorkspaceState& w, Pooling pooling, std::span<const std::uint32_t> chosen,
                                  std::uint64_t n_rows) noexcept {
    if (chosen.empty()) return {};
    if (pooling != Pooling::none) return bad_shape("chosen rows of a stack that pools", 0, chosen.size());
    if (chosen.size() > w.limits.max_batch) return bad_shape("chosen rows at most", w.limits.max_batch, chosen.size());
    for (const std::uint32_t row : chosen)
        if (row >= n_rows) return bad_shape("number of a chosen row at most", n_rows - 1, row);
    return {};
}

/// Every sequence keeps a row.
[[nodiscard]] Status check_unpooled(std::span<const std::uint32_t> n_unpooled,
                                    std::span<const std::uint32_t> lengths) noexcept {
    for (std::size_t i = 0; i < n_unpooled.size(); ++i) {
        const std::uint32_t n_rows = i < lengths.size() ? lengths[i] : 1;
        if (n_unpooled[i] >= n_rows) return bad_shape("rows left out at most", n_rows - 1, n_unpooled[i]);
    }
    return {};
}

[[nodiscard]] Status check_memory(const WorkspaceState& w, const EncodeInput& in, std::size_t n_sequences,
                                  Total& total) noexcept {
    const Config& config = w.model.config();
    const Lengths lengths = lengths_of_memory(config, in);
    if (lengths.size() != n_sequences) return bad_shape("sequences of the memory", n_sequences, lengths.size());
    if (Status status = count_rows(lengths, w.limits.max_key_rows, total); !status.ok()) return status;
    const std::uint64_t wanted = config.encoder.n_layers ? 0 : total.rows * config.decoder.d_model;
    return in.memory.size() == wanted ? Status{} : bad_shape("memory elements", wanted, in.memory.size());
}

/// What cache_memory is given, with the rows of both sides.
[[nodiscard]] Status check_memories(const WorkspaceState& w, const EncodeInput& in, std::span<const Cache> memories,
                                    Total& source, Total& memory) noexcept {
    const Config& config = w.model.config();
    const std::size_t n = memories.size();
    if (!n) return bad_shape("memories at least", 1, 0);
    if (n > w.limits.max_sequences) return bad_shape("sequences at most", w.limits.max_sequences, n);
    if (!in.target.lengths.empty()) return bad_shape("sequences of the target", 0, in.target.lengths.size());
    if (config.encoder.n_layers)
        if (Status status = check_sequences(w, config.encoder, in.source, n, source); !status.ok()) return status;
    if (Status status = check_memory(w, in, n, memory); !status.ok()) return status;
    const Lengths lengths = lengths_of_memory(config, in);
    for (std::size_t i = 0; i < n; ++i) {
        if (Status status = check_cache(w, memories[i], true); !status.ok()) return status;
        if (const std::uint32_t had = memories[i].kv_len())
            return {Code::bad_argument, "positions of a memory before it is filled", 0, had};
        if (lengths[i] > memories[i].max_kv_len())
            return {Code::context_full, "room for positions at least", lengths[i], memories[i].max_kv_len()};
    }
    const bool captures = weights_stack(w) == StackIndex::encoder;
    return captures ? check_weights(w, n, source.longest, source.longest) : Status{};
}

/// Whether the heads of an attention without projections lie within their span.
[[nodiscard]] Status check_heads(const char* what, const Heads& heads, std::uint64_t n_sequences, std::uint64_t n_rows,
                                 std::uint64_t n_heads, std::uint64_t dim) noexcept {
    if (!n_rows) return {};
    const Strides& strides = heads.strides;
    const std::uint64_t counts[] = {n_sequences, n_rows, n_heads},
                        steps[] = {strides.sequence, strides.row, strides.head};
    std::uint64_t wanted = dim, size = heads.data.size();
    for (int i = 0; i < 3; ++i) {
        if (counts[i] > 1 && steps[i] > size) return bad_shape(what, steps[i], size);  // nor does the sum overflow
        wanted += (counts[i] - 1) * steps[i];
    }
    if (n_sequences > 1 && !strides.sequence) return bad_shape("a sequence stride at least", 1, 0);
    return size < wanted ? bad_shape(what, wanted, size) : Status{};
}

/// Whether heads that lie within their span never meet, for members of the team write them: each stride, from the least
/// on, leaves room for all that the lesser ones reach.
[[nodiscard]] Status check_apart(const Strides& strides, std::uint64_t n_sequences, std::uint64_t n_rows,
                                 std::uint64_t n_heads, std::uint64_t dim) noexcept {
    struct Axis {
        std::uint64_t stride, count;
    } axes[] = {{strides.sequence, n_sequences}, {strides.row, n_rows}, {strides.head, n_heads}};
    std::sort(std::begin(axes), std::end(axes), [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
    std::uint64_t reach = dim;
    for (const Axis& axis : axes) {
        if (axis.count <= 1) continue;
        if (axis.stride < reach)
            return bad_shape("stride between rows that must not overlap at least", reach, axis.stride);
        reach += (axis.count - 1) * axis.stride;
    }
    return {};
}

[[nodiscard]] Status check_inputs(const Stack& stack, const AttendInput& in, std::span<float> out) noexcept {
    const Block& b = stack.blocks[0];
    const std::uint64_t n = in.n_sequences;
    if (!b.attention.no_projections) {
        if (in.n_past) return bad_shape("past keys of a module", 0, in.n_past);
        const std::uint64_t merged = std::uint64_t{b.attention.n_heads} * b.attention.value_head_dim;
        const std::uint64_t width =
            b.attention.has_output_map ? or_else(b.attention.output_width, stack.d_model) : merged;
        const Status sizes[] = {
            bad_shape("query elements", n * in.n_queries * or_else(b.attention.query_width, stack.d_model),
                      in.query.data.size()),
            bad_shape("key elements", n * in.n_keys * or_else(b.attention.key_width, stack.d_model),
                      in.key.data.size()),
            bad_shape("value elements", n * in.n_keys * or_else(b.attention.value_width, stack.d_model),
                      in.value.data.size()),
            bad_shape("output elements", n * in.n_queries * width, out.size())};
        for (const Status& size : sizes)
            if (size.had != size.wanted) return size;
        return {};
    }
    const Status checks[] = {
        check_heads("query elements", in.query, n, in.n_queries, b.attention.n_heads, b.attention.head_dim),
        check_heads("key elements", in.key, n, in.n_keys, b.attention.n_kv_heads, b.attention.head_dim),
        check_heads("value elements", in.value, n, in.n_keys, b.attention.n_kv_heads, b.attention.value_head_dim),
        check_heads("past key elements", in.past_key, n, in.n_past, b.attention.n_kv_heads, b.attention.head_dim),
        check_heads("past value elements", in.past_value, n, in.n_past, b.attention.n_kv_heads,
                    b.attention.value_head_dim),
        check_heads("output elements", {out, in.out_strides}, n, in.n_queries, b.attention.n_heads,
                    b.attention.value_head_dim),
        check_apart(in.out_strides, n, in.n_queries, b.attention.n_heads, b.attention.value_head_dim)};
    for (const Status& status : checks)
        if (!status.ok()) return status;
    return {};
}

}  // namespace

Status encode(Workspace& workspace, const EncodeInput& input, std::span<float> out) noexcept {
    if (Status status = check_workspace(workspace); !status.ok()) return status;
    WorkspaceState& w = *WorkspaceAccess::state(workspace);
    const Config& config = w.model.config();
    if (kind_of(config) != Kind::encode) return {Code::unsupported, "vectors of this model", 0, 0};
    const bool encodes = config.encoder.n_layers != 0, decodes = config.decoder.n_layers != 0;
    const bool reads_memory = fovea::reads_memory(config);
    const std::size_t n = (encodes ? input.source : input.target).lengths.size();
    Total source, target, memory;
    if (encodes)
        if (Status status = check_sequences(w, config.encoder, input.source, n, source); !status.ok()) return status;
    if (decodes)
        if (Status status = check_sequences(w, config.decoder, input.target, n, target); !status.ok()) return status;
    const Lengths memory_lengths = lengths_of_memory(config, input);
    if (reads_memory)
        if (Status status = check_memory(w, input, n, memory); !status.ok()) return status;
    const Stack& last = stack_of(config, last_stack(config));
    const Total& rows = decodes ? target : source;
    const Pooling pooling = input.pooling ? *input.pooling : last.pooling;
    if (Status status = check_chosen(w, pooling, input.rows, rows.rows); !status.ok()) return status;
    const Sequences& side = decodes ? input.target : input.source;
    if (Status status = check_unpooled(input.n_unpooled, side.lengths); !status.ok()) return status;
    const std::uint64_t n_rows = input.rows.empty() ? rows.rows : input.rows.size();
    const std::uint64_t width = input.before_head ? last.d_model : last.result_width(),
                        n_out = (pooling != Pooling::none ? n : n_rows) * width;
    if (out.size() != n_out) return bad_shape("output elements", n_out, out.size());
    const Total& queries = weights_stack(w) == StackIndex::encoder ? source : target;
    const Total& keys = w.attention_capture.cross ? memory : queries;
    if (Status status = check_weights(w, n, queries.longest, keys.longest); !status.ok()) return status;
    if (leads(w))
        if (Status status = lead_ranks(w, input, out.size()); !status.ok()) return status;

    const FloatEnv env;
    const OwnPage own(w);
    PassInput pass;
    pass.kv = {&own.pages, 1};
    pass.out = {out.data(), width};
    if (!decodes) pass.chosen = input.rows, pass.pooling = pooling, pass.n_unpooled = input.n_unpooled;
    pass.before_head = input.before_head;
    if (encodes)
        if (Status status = run_encoder(w, pass, input.source); !status.ok()) return status;
    if (!decodes) return {};
    take_memory(w, pass, input, memory.rows);
    pass.out = {out.data(), width};
    pass.chosen = input.rows, pass.pooling = pooling, pass.n_unpooled = input.n_unpooled;
    pass.cross = place(w, true, input.target.lengths, reads_memory ? memory_lengths : Lengths(input.target.lengths));
    pass.cross_masks = &input.memory_masks;
    return run_stack(w, pass, input.target);
}

Status cache_memory(Workspace& workspace, const EncodeInput& input, std::span<const Cache> memories) noexcept {
    if (Status status = check_workspace(workspace); !status.ok()) return status;
    WorkspaceState& w = *WorkspaceAccess::state(workspace);
    const Config& config = w.model.config();
    if (!steps_with_memory(config)) return {Code::unsupported, "a memory for steps of this model", 0, 0};
    if (!w.limits.max_kv_len) return {Code::unsupported, "steps: planned with max_kv_len at least", 1, 0};
    Total source, memory;
    if (Status status = check_memories(w, input, memories, source, memory); !status.ok()) return status;
    if (leads(w))
        if (Status status = lead_ranks(w, input, memories); !status.ok()) return status;
    const Lengths lengths = lengths_of_memory(config, input);
    const auto cache = [&](std::size_t i) -> const Cache& { return memories[i]; };
    const auto length = [&](std::size_t i) { return lengths[i]; };
    if (Status status = take_all_pages(memories.size(), cache, length); !status.ok()) return status;

    const FloatEnv env;
    const OwnPage own(w);
    PassInput pass;
    pass.kv = {&own.pages, 1};
    Status status = config.encoder.n_layers ? run_encoder(w, pass, input.source) : Status{};
    if (status.ok()) {
        KvPages one;
        take_memory(w, pass, input, memory.rows);
        place_memories(w, pass, lengths, memories, one);
        status = run(w, pass, w.stacks[static_cast<int>(pass.index)].macs_per_row * memory.rows);
    }
    for (std::size_t i = 0; i < memories.size(); ++i) {
        if (status.ok())
            CacheAccess::state(memories[i]).kv_len = lengths[i];
        else
            shorten(*CacheAccess::pool(memories[i]), CacheAccess::slot(memories[i]), 0);
    }
    return status;
}

Status attend(Workspace& workspace, const AttendInput& input, std::span<float> out) noexcept {
    if (Status status = check_unled(workspace); !status.ok()) return status;
    WorkspaceState& w = *WorkspaceAccess::state(workspace);
    const Config& config = w.model.config();
    if (kind_of(config) != Kind::attend) return {Code::unsupported, "attention alone of this model", 0, 0};
    const Stack& stack = stack_of(config, last_stack(config));
    const Block& b = stack.blocks[0];
    const std::uint64_t n = input.n_sequences, n_given = std::uint64_t{input.n_past} + input.n_keys;
    if (!n || !input.n_queries) return bad_shape("sequences and queries at least", 1, 0);
    if (n > w.limits.max_sequences) return bad_shape("sequences at most", w.limits.max_sequences, n);
    if (n * input.n_queries > w.limits.max_batch)
        return bad_shape("queries at most", w.limits.max_batch, n * input.n_queries);
    if (n * n_given > w.limits.max_key_rows) return bad_shape("keys at most", w.limits.max_key_rows, n * n_given);
    if (Status status = check_inputs(stack, input, out); !status.ok()) return status;
    if (!input.kv_lengths.empty() && input.kv_lengths.size() != n)
        return bad_shape("key lengths", n, input.kv_lengths.size());
    for (const std::uint32_t length : input.kv_lengths)
        if (length > n_given) return bad_shape("key length at most", n_given, length);
    const std::uint32_t n_appended = b.attention.bias_kv + b.attention.zero_attn;
    if (Status status = check_weights(w, n, input.n_queries, n_given + n_appended); !status.ok()) return status;

    const FloatEnv env;
    const OwnPage own(w);
    Sequence* sequences = w.sequences();
    const auto start_step = static_cast<std::uint32_t>(round_up(n_given + n_appended, kLanes));
    for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t n_keys =
            input.kv_lengths.empty() ? static_cast<std::uint32_t>(n_given) : input.kv_lengths[i];
        sequences[i] = {.row = i * input.n_queries,
                        .n_rows = input.n_queries,
                        .kv_row = i * input.n_keys,
                        .n_new = input.n_keys,
                        .pos = input.n_past,
                        .n_keys = n_keys,
                        .cache_start = i * start_step,
                        .causal_offset = static_cast<std::int32_t>(
                            input.kv_lengths.empty() ? input.n_past : n_keys - input.n_queries)};
    }
    const std::uint64_t merged = std::uint64_t{b.attention.n_heads} * b.attention.value_head_dim;
    const PassInput pass{
        .index = last_stack(config),
        .out = {out.data(), b.attention.has_output_map ? or_else(b.attention.output_width, stack.d_model) : merged},
        .seq_len = static_cast<std::uint32_t>(n * input.n_queries),
        .self = {sequences, static_cast<std::size_t>(n)},
        .kv = {&own.pages, 1},
        .self_masks = &input.masks,
        .heads = &input};
    const StackTensors& t = w.stacks[static_cast<int>(pass.index)];
    return run(w, pass, t.macs_per_row * pass.seq_len + attention_macs(b, pass.self));
}

Status encode(Session& session, const EncodeInput& input, std::span<float> out) noexcept {
    Workspace workspace = session.workspace();
    return encode(workspace, input, out);
}

Status attend(Session& session, const AttendInput& input, std::span<float> out) noexcept {
    Workspace workspace = session.workspace();
    return attend(workspace, input, out);
}

Status attention_model(const AttentionShape& attention, Model& model) noexcept {
    Model made;  // in place: two of these structures would be half of a small board's stack
    Config& config = ModelAccess::config(made);
    Stack& stack = config.encoder;
    stack.n_layers = stack.n_blocks = 1;
    stack.d_model = attention.head_dim;
    stack.blocks[0].attention = attention;
    stack.blocks[0].attention.no_projections = true;
    if (attention.bias_kv || attention.query_key_norm != Norm::none || attention.position != Position::none)
        return {Code::config_invalid, "heads and widths alone", 0, 1};
    if (Status status = check(config); !status.ok()) return status;
    model = made;
    return {};
}

}  // namespace fovea
