// Carves the arena; the public entry points.
#include "session.h"

#include <cstring>
#include <new>

#include "../platform/float_env.h"
#include "model.h"
#include "pass.h"

namespace fovea {
namespace {

/// Below this many multiplications by weights in a pass, waking the team costs more than it saves.
constexpr std::uint64_t kSerialMacs = 2'000'000;

/// Finds the tensors of one layer of a stack; open_model has established that those it calls for are there.
struct Finder {
    const Model& model;
    StackIndex stack;
    std::uint32_t layer = 0;

    void get(Role role, const TensorRecord*& out) const noexcept { out = ModelAccess::find(model, stack, layer, role); }
    void get(Role role, VectorOffset& out) const noexcept {
        const TensorRecord* t = ModelAccess::find(model, stack, layer, role);
        out = t ? ModelAccess::offset(model, *t) : 0;
    }
    void get(Role role, Matrix& out) const noexcept {
        const TensorRecord* t = ModelAccess::find(model, stack, layer, role);
        if (!t) return;
        out = {ModelAccess::offset(model, *t), t->panel_stride, t->n_rows, t->n_cols, static_cast<Type>(t->type)};
    }
    /// The tensors of `role` and the roles that follow it.
    void operator()(Role role, auto&... out) const noexcept { ((get(role, out), role = after(role, 1)), ...); }
};

[[nodiscard]] Layer find_layer(const Finder& find) noexcept {
    Layer layer;
    AttentionTensors &a = layer.self, &c = layer.cross;
    find(Role::attention_norm, a.norm, a.norm_bias);
    find(Role::query, a.query, a.query_bias, a.key, a.key_bias, a.value, a.value_bias, a.query_norm, a.key_norm,
         a.query_norm_bias, a.key_norm_bias, a.output, a.output_bias, a.appended_key, a.appended_value);
    find(Role::cross_norm, c.norm, c.norm_bias);
    find(Role::cross_query, c.query, c.query_bias, c.key, c.key_bias, c.value, c.value_bias, c.output, c.output_bias);
    find(Role::feed_forward_norm, layer.feed_forward_norm, layer.feed_forward_norm_bias);
    find(Role::up, layer.up, layer.up_bias, layer.down, layer.down_bias);
    return layer;
}

/// A stack's offsets into the model, and its layers, from number `first_layer` of the arena's list on.
void resolve(SessionState& s, StackIndex index, std::uint32_t first_layer) noexcept {
    const Stack& stack = stack_of(s.model.config(), index);
    StackTensors& t = s.stacks[static_cast<int>(index)];
    t.first_layer = first_layer;
    const Finder find{s.model, index};
    find(Role::token_embedding, t.token_embedding, t.position_embedding, t.type_embedding, t.embedding_norm,
         t.embedding_norm_bias, t.final_norm, t.final_norm_bias, t.output, t.output_bias);
    if (stack.tied_output) find(Role::token_embedding, t.output);
    for (std::uint32_t i = 0; i < stack.n_blocks; ++i)
        Finder{s.model, index, i}(Role::rope_frequencies, t.rope_frequencies[i]);

    const bool decoding = kind_of(s.model.config()) == Kind::decode;  // else one layer's keys and values at a time
    std::uint64_t keys = s.map.keys, values = s.map.values;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        Layer& layer = *new (&s.layer(first_layer + i)) Layer(find_layer({s.model, index, i}));
        layer.block = stack.layer_blocks.empty() ? 0 : stack.layer_blocks[i];
        layer.keys = keys;
        layer.values = values;
        if (decoding) {
            keys += key_cache_bytes(stack.block(i), s.map, s.limits.kv_type);
            values += value_cache_bytes(stack.block(i), s.map, s.limits.kv_type);
        }
        for (const AttentionTensors* a : {&layer.self, &layer.cross})
            for (const Matrix* m : {&a->query, &a->key, &a->value, &a->output})
                t.macs_per_row += std::uint64_t{m->n_rows} * m->n_cols;
        for (const Matrix* m : {&layer.up, &layer.down}) t.macs_per_row += std::uint64_t{m->n_rows} * m->n_cols;
    }
}

struct Work {
    SessionState& session;
    const PassInput& input;
    bool serial;
};

void work(void* context, std::uint32_t member) noexcept {
    const Work& w = *static_cast<const Work*>(context);
    // Not limits.n_threads: another thread than the session's maker may have fewer.
    Pass pass(w.input, w.session, member, w.serial ? 1 : team_size(*w.session.team));
    run_pass(pass);
}

/// At most max_batch tokens through all layers.
[[nodiscard]] Status forward_piece(SessionState& s, std::span<const Token> tokens, std::span<float> logits) noexcept {
    const auto n = static_cast<std::uint32_t>(tokens.size());
    const Sequence all{.n_rows = n,
                       .n_source = n,
                       .pos = s.kv_len,
                       .n_keys = s.kv_len + n,
                       .diagonal = static_cast<std::int32_t>(s.kv_len)};
    const PassInput input{.tokens = tokens, .logits = logits, .pos = s.kv_len, .seq_len = n, .self = {&all, 1}};
    const Status status = run(s, input, s.stacks[static_cast<int>(StackIndex::decoder)].macs_per_row * n);
    if (status.ok()) s.kv_len += n;
    return status;
}

}  // namespace

std::uint32_t default_threads() noexcept {
    const std::uint32_t n = has_threads() ? fast_cores() : 1;
    return n < 1 ? 1 : n > kMaxThreads ? kMaxThreads : n;
}

Status run(SessionState& session, const PassInput& input, std::uint64_t macs) noexcept {
    session.cancelled = false;
    Work w{session, input, session.limits.n_threads == 1 || macs < kSerialMacs};
    if (w.serial)
        work(&w, 0);
    else
        run_team(*session.team, work, &w);
    return session.cancelled ? Status{Code::cancelled, "", 0, 0} : Status{};
}

Status make_session(const Model& model, const Limits& limits, std::span<std::byte> arena, Session& session,
                    const SessionOptions& options) noexcept {
    ArenaMap map;
    Plan plan;
    if (Status status = lay_out(model.config(), limits, map, plan); !status.ok()) return status;
    const Kernels* kernels = find_kernels(options.isa);
    if (!kernels) return {Code::isa_unavailable, "instruction set of that name", 1, 0};
    if (arena.size() < plan.arena_bytes) return {Code::arena_too_small, "arena bytes", plan.arena_bytes, arena.size()};
    const std::uint64_t past = reinterpret_cast<std::uintptr_t>(arena.data()) % kArenaAlignment;
    if (past) return {Code::misaligned, "as remainder of the arena's address by 64", 0, past};

    // Before the arena is touched: a session that is there already stays whole where this fails.
    if (!options.executor.run && !make_threads(plan.limits.n_threads))
        return {Code::threads_unavailable, "threads", plan.limits.n_threads, 1};
    const Model kept = model;  // which may lie in the arena, as that session's does

    // Padding of rows and caches is zero from here on: kernels write only what is real.
    std::memset(arena.data(), 0, static_cast<std::size_t>(map.keys));
    auto* state = new (arena.data()) SessionState;
    state->model = kept;
    state->limits = plan.limits;
    state->map = map;
    state->arena = arena.data();
    state->kernels = kernels;
    resolve(*state, StackIndex::encoder, 0);
    resolve(*state, StackIndex::decoder, kept.config().encoder.n_layers);
    state->team =
        start_team(arena.data() + map.team, plan.limits.n_threads, options.executor.run, options.executor.context);
    SessionAccess::set(session, state);
    return {};
}

Status forward(Session& session, std::span<const Token> tokens, std::span<float> logits) noexcept {
    SessionState& s = *SessionAccess::state(session);
    if (kind_of(s.model.config()) != Kind::decode) return {Code::unsupported, "logits of this model", 0, 0};
    const std::uint64_t vocab_size = s.model.config().decoder.vocab_size;
    if (tokens.empty()) return {Code::bad_shape, "tokens at least", 1, 0};
    if (tokens.size() > s.limits.max_kv_len - s.kv_len)
        return {Code::context_full, "positions", s.kv_len + std::uint64_t{tokens.size()}, s.limits.max_kv_len};
    const bool all = logits.size() == tokens.size() * vocab_size;
    if (!logits.empty() && logits.size() != vocab_size && !all)
        return {Code::bad_shape, "logits", vocab_size, logits.size()};
    for (const Token token : tokens)
        if (token >= vocab_size) return {Code::token_out_of_range, "as the largest token", vocab_size - 1, token};
    const std::uint64_t n_positions = s.kv_len + std::uint64_t{tokens.size()};
    if (Status status = check_weights(s, 1, n_positions, n_positions); !status.ok()) return status;

    const FloatEnv env;
    const std::uint32_t kv_len = s.kv_len;
    while (!tokens.empty()) {
        const std::size_t n = tokens.size() < s.limits.max_batch ? tokens.size() : s.limits.max_batch;
        const bool last = n == tokens.size();
        const auto n_logits = static_cast<std::size_t>(all ? n * vocab_size : last ? logits.size() : 0);
        if (Status status = forward_piece(s, tokens.first(n), logits.first(n_logits)); !status.ok()) {
            s.kv_len = kv_len;
            return status;
        }
        tokens = tokens.subspan(n);
        logits = logits.subspan(n_logits);
    }
    return {};
}

Status rewind(Session& session, std::uint32_t kv_len) noexcept {
    SessionState& s = *SessionAccess::state(session);
    if (kv_len > s.kv_len) return {Code::bad_argument, "positions at most", s.kv_len, kv_len};
    s.kv_len = kv_len;
    return {};
}

Status set_weights(Session& session, const AttentionWeights& weights) noexcept {
    SessionState& s = *SessionAccess::state(session);
    const AttentionWeights before = s.asked;
    s.asked = weights;
    if (weights.out.empty()) return {};
    const Stack& stack = stack_of(s.model.config(), weights_stack(s));
    const bool has_layer = weights.layer < stack.n_layers;
    const Block& b = stack.block(has_layer ? weights.layer : 0);
    if (has_layer && b.n_heads && (!weights.cross || b.cross_attention)) return {};
    s.asked = before;
    return {Code::bad_argument, "as the last layer, with that attention", stack.n_layers - 1, weights.layer};
}

Status check_weights(const SessionState& s, std::uint64_t n_sequences, std::uint64_t n_queries,
                     std::uint64_t n_keys) noexcept {
    const AttentionWeights& w = s.asked;
    if (w.out.empty()) return {};
    if (w.n_queries < n_queries) return {Code::bad_shape, "queries in the weights", n_queries, w.n_queries};
    if (w.n_keys < n_keys) return {Code::bad_shape, "keys in the weights", n_keys, w.n_keys};
    const std::uint64_t n_heads = stack_of(s.model.config(), weights_stack(s)).block(w.layer).n_heads;
    const std::uint64_t n_matrices = n_sequences * (w.per_head ? n_heads : 1);
    const std::uint64_t size = std::uint64_t{w.n_queries} * w.n_keys;  // below 2^64, as both are below 2^32
    if (size > w.out.size() / n_matrices) return {Code::bad_shape, "weights", n_matrices * size, w.out.size()};
    return {};
}

void set_trace(Session& session, const Trace& trace) noexcept { SessionAccess::state(session)->trace = trace; }

void set_cancel(Session& session, const std::atomic<bool>* flag) noexcept {
    SessionAccess::state(session)->cancel = flag;
}

std::uint32_t Session::kv_len() const noexcept { return state_->kv_len; }
std::uint32_t Session::max_kv_len() const noexcept { return state_->limits.max_kv_len; }
const char* Session::isa() const noexcept { return state_->kernels->isa; }
const Model& Session::model() const noexcept { return state_->model; }
const Limits& Session::limits() const noexcept { return state_->limits; }

}  // namespace fovea
