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

/// Finds the decoder stack's tensors, which open_model has established are there.
struct Finder {
    const Model& model;

    [[nodiscard]] const TensorRecord* find(std::uint32_t layer, Role role) const noexcept {
        return ModelAccess::find(model, StackIndex::decoder, layer, role);
    }
    [[nodiscard]] VectorOffset vector(std::uint32_t layer, Role role) const noexcept {
        const TensorRecord* t = find(layer, role);
        return t ? ModelAccess::offset(model, *t) : 0;
    }
    [[nodiscard]] Matrix matrix(std::uint32_t layer, Role role) const noexcept {
        const TensorRecord* t = find(layer, role);
        if (!t) return {};
        return {ModelAccess::offset(model, *t), t->panel_stride, t->n_rows, t->n_cols, static_cast<Type>(t->type)};
    }
};

[[nodiscard]] Layer find_layer(const Model& model, std::uint32_t i) noexcept {
    const Finder find{model};
    Layer layer;
    layer.block = model.config().decoder.layer_blocks.empty() ? 0 : model.config().decoder.layer_blocks[i];
    layer.query = find.matrix(i, Role::query);
    layer.key = find.matrix(i, Role::key);
    layer.value = find.matrix(i, Role::value);
    layer.output = find.matrix(i, Role::attention_output);
    layer.up = find.matrix(i, Role::up);
    layer.down = find.matrix(i, Role::down);
    layer.query_bias = find.vector(i, Role::query_bias);
    layer.key_bias = find.vector(i, Role::key_bias);
    layer.value_bias = find.vector(i, Role::value_bias);
    layer.output_bias = find.vector(i, Role::attention_output_bias);
    layer.up_bias = find.vector(i, Role::up_bias);
    layer.down_bias = find.vector(i, Role::down_bias);
    layer.attention_norm = find.vector(i, Role::attention_norm);
    layer.attention_norm_bias = find.vector(i, Role::attention_norm_bias);
    layer.feed_forward_norm = find.vector(i, Role::feed_forward_norm);
    layer.feed_forward_norm_bias = find.vector(i, Role::feed_forward_norm_bias);
    layer.query_norm = find.vector(i, Role::query_norm);
    layer.query_norm_bias = find.vector(i, Role::query_norm_bias);
    layer.key_norm = find.vector(i, Role::key_norm);
    layer.key_norm_bias = find.vector(i, Role::key_norm_bias);
    return layer;
}

/// The state's pointers into the model, and its layers.
void resolve(SessionState& s) noexcept {
    const Stack& stack = s.model.config().decoder;
    const Finder find{s.model};
    s.token_embedding = find.find(0, Role::token_embedding);
    s.position_embedding = find.find(0, Role::position_embedding);
    s.output = find.matrix(0, stack.tied_output ? Role::token_embedding : Role::output);
    s.output_bias = find.vector(0, Role::output_bias);
    s.embedding_norm = find.vector(0, Role::embedding_norm);
    s.embedding_norm_bias = find.vector(0, Role::embedding_norm_bias);
    s.final_norm = find.vector(0, Role::final_norm);
    s.final_norm_bias = find.vector(0, Role::final_norm_bias);
    for (std::uint32_t i = 0; i < stack.n_blocks; ++i) s.rope_frequencies[i] = find.vector(i, Role::rope_frequencies);

    std::uint64_t keys = s.map.keys.offset, values = s.map.values.offset;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        Layer& layer = *new (&s.layer(i)) Layer(find_layer(s.model, i));
        layer.keys = keys;
        layer.values = values;
        keys += key_cache_bytes(stack.block(i), s.map, s.limits.kv_type);
        values += value_cache_bytes(stack.block(i), s.map, s.limits.kv_type);
        for (const Matrix* m : {&layer.query, &layer.key, &layer.value, &layer.output, &layer.up, &layer.down})
            s.macs_per_token += std::uint64_t{m->n_rows} * m->n_cols;
    }
}

/// Queries, keys and values share an operand, so that their types must too, but for q8 and q4.
[[nodiscard]] Status check_types(const Model& model) noexcept {
    for (std::uint32_t i = 0; i < model.config().decoder.n_layers; ++i) {
        const Layer layer = find_layer(model, i);
        for (const Type type : {layer.key.type, layer.value.type})
            if (is_quantized(type) != is_quantized(layer.query.type))
                return {Code::unsupported, "as the type of keys and values beside such queries",
                        static_cast<std::uint64_t>(layer.query.type), static_cast<std::uint64_t>(type)};
    }
    return {};
}

struct Work {
    SessionState* session;
    std::span<const Token> tokens;
    std::span<float> logits;
    bool serial;
};

void work(void* context, std::uint32_t member) noexcept {
    const Work& w = *static_cast<const Work*>(context);
    // Not limits.n_threads: within the host's own parallel region OpenMP may give fewer.
    const std::uint32_t n_members = w.serial ? 1 : team_size(*w.session->team);
    Pass pass{.session = *w.session,
              .tokens = w.tokens,
              .logits = w.logits,
              .pos = w.session->kv_len,
              .seq_len = static_cast<std::uint32_t>(w.tokens.size()),
              .member = member,
              .n_members = n_members};
    run_pass(pass);
}

/// At most max_batch tokens through all layers.
void forward_piece(SessionState& s, std::span<const Token> tokens, std::span<float> logits) noexcept {
    const bool serial = s.limits.n_threads == 1 || s.macs_per_token * tokens.size() < kSerialMacs;
    Work w{&s, tokens, logits, serial};
    if (serial)
        work(&w, 0);
    else
        run_team(*s.team, work, &w);
    s.kv_len += static_cast<std::uint32_t>(tokens.size());
}

}  // namespace

Status make_session(const Model& model, const Limits& limits, std::span<std::byte> arena, Session& session,
                    const char* isa) noexcept {
    Limits complete = limits;
    ArenaMap map;
    if (Status status = lay_out(model.config(), complete, map); !status.ok()) return status;
    const Kernels* kernels = find_kernels(isa);
    if (!kernels) return {Code::isa_unavailable, "instruction set of that name", 1, 0};
    if (Status status = check_types(model); !status.ok()) return status;
    if (arena.size() < map.total) return {Code::arena_too_small, "arena bytes", map.total, arena.size()};
    const std::uint64_t past = reinterpret_cast<std::uintptr_t>(arena.data()) % kArenaAlignment;
    if (past) return {Code::misaligned, "as remainder of the arena's address by 64", 0, past};

    // Padding of rows and caches is zero from here on: kernels write only what is real.
    std::memset(arena.data(), 0, static_cast<std::size_t>(map.keys.offset));
    auto* state = new (arena.data()) SessionState;
    state->model = model;
    state->limits = complete;
    state->map = map;
    state->arena = arena.data();
    state->kernels = kernels;
    resolve(*state);
    state->team = start_team(arena.data() + map.team.offset, complete.n_threads);
    if (!state->team) return {Code::threads_unavailable, "threads", complete.n_threads, 1};
    SessionAccess::set(session, state);
    return {};
}

Status forward(Session& session, std::span<const Token> tokens, std::span<float> logits) noexcept {
    SessionState& s = *SessionAccess::state(session);
    const std::uint64_t vocab_size = s.model.config().decoder.vocab_size;
    if (tokens.empty()) return {Code::bad_shape, "tokens at least", 1, 0};
    if (tokens.size() > s.limits.max_kv_len - s.kv_len)
        return {Code::context_full, "positions", s.kv_len + std::uint64_t{tokens.size()}, s.limits.max_kv_len};
    const bool all = logits.size() == tokens.size() * vocab_size;
    if (!logits.empty() && logits.size() != vocab_size && !all)
        return {Code::bad_shape, "logits", vocab_size, logits.size()};
    for (const Token token : tokens)
        if (token >= vocab_size) return {Code::token_out_of_range, "as the largest token", vocab_size - 1, token};

    const FloatEnv env;
    while (!tokens.empty()) {
        const std::size_t n = tokens.size() < s.limits.max_batch ? tokens.size() : s.limits.max_batch;
        const bool last = n == tokens.size();
        std::span<float> out;
        if (all)
            out = logits.first(n * static_cast<std::size_t>(vocab_size));
        else if (last)
            out = logits;
        forward_piece(s, tokens.first(n), out);
        tokens = tokens.subspan(n);
        if (all) logits = logits.subspan(n * static_cast<std::size_t>(vocab_size));
    }
    return {};
}

Status rewind(Session& session, std::uint32_t kv_len) noexcept {
    SessionState& s = *SessionAccess::state(session);
    if (kv_len > s.kv_len) return {Code::bad_argument, "positions at most", s.kv_len, kv_len};
    s.kv_len = kv_len;
    return {};
}

void set_trace(Session& session, const Trace& trace) noexcept { SessionAccess::state(session)->trace = trace; }

std::uint32_t Session::kv_len() const noexcept { return state_->kv_len; }
std::uint32_t Session::max_kv_len() const noexcept { return state_->limits.max_kv_len; }
const char* Session::isa() const noexcept { return state_->kernels->isa; }
const Model& Session::model() const noexcept { return state_->model; }
const Limits& Session::limits() const noexcept { return state_->limits; }

}  // namespace fovea
