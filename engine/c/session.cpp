// The C interface's sessions: one arena, in which the objects that a C++ caller keeps lie before the engine's own.
#include "engine/c/handles.h"

#include <cstring>
#include <new>

#include "engine/format/format.h"
#include "engine/model/kind.h"
#include "fovea/executors.h"

using namespace fovea;

namespace {

constexpr std::size_t kSessionBytes = 256;  // as plans are the same on every machine
static_assert(sizeof(fovea_session) <= kSessionBytes);

/// A model and limits, and what follows from them. The arena: state, logits, memories, scratch, the engine's.
struct PreparedSession {
    RequestedLimits requested;
    Plan plan;
    std::uint32_t n_steps;
    std::uint64_t logits_bytes, of_memories, scratch_bytes, engine_at, arena_bytes;

    [[nodiscard]] Status read(const fovea_model& from, const fovea_limits* given) noexcept {
        if (Status s = requested.read(given); !s.ok()) return s;
        const Model& model = *from.model;
        if (kind_of(model.config()) != Kind::decode) return {Code::unsupported, "logits of this model", 0, 0};
        if (Status s = make_plan(model.config(), requested.limits, plan); !s.ok()) return s;
        const std::uint64_t vocab_size = model.config().decoder.vocab_size;
        // Below 2^41, as growths are bounded (tables.cpp): no sum overflows.
        const std::uint64_t text = tokenize_scratch_bytes(from.tokenizer, requested.c.max_text_bytes);
        const std::uint64_t candidates = vocab_size * sizeof(Candidate);  // text and candidates never meet
        logits_bytes = round_up(vocab_size * sizeof(float), kArenaAlignment);
        n_steps = max_steps(plan.limits);
        of_memories = memories_bytes(n_steps);
        scratch_bytes = round_up(text > candidates ? text : candidates, kArenaAlignment);
        engine_at = kSessionBytes + logits_bytes + of_memories + scratch_bytes;
        arena_bytes = engine_at + plan.arena_bytes;
        return {};
    }
};

/// A call's request of a model and limits: a plan or, if that is null, a session in an arena.
struct Wanted {
    const fovea_limits* limits = nullptr;
    fovea_plan* plan = nullptr;
    std::span<std::byte> arena;
    fovea_session** session = nullptr;
};

[[nodiscard]] Status start(const fovea_model& model, const PreparedSession& p, const Wanted& wanted) noexcept {
    const std::span<std::byte> arena = wanted.arena;
    if (arena.size() < p.arena_bytes)
        return {Code::arena_too_small, "arena bytes at least", p.arena_bytes, arena.size()};
    const auto to_size = [](std::uint64_t n) { return static_cast<std::size_t>(n); };  // all within the arena
    const Tokenizer tokenizer = model.tokenizer;                                       // the handle may lie in it
    Session made;
    if (Status s =
            make_session(*model.model, p.plan.limits, arena.subspan(to_size(p.engine_at)), made, p.requested.options());
        !s.ok())
        return s;
    std::byte* const logits = arena.data() + kSessionBytes;
    std::byte* const memories = logits + to_size(p.logits_bytes);
    std::byte* const scratch = memories + to_size(p.of_memories);
    std::memset(arena.data(), 0, kSessionBytes + to_size(p.logits_bytes));
    auto* out = new (arena.data()) fovea_session;
    out->session = made;
    out->model = {&made.model(), tokenizer};
    out->logits = {reinterpret_cast<float*>(logits), made.model().config().decoder.vocab_size};
    out->scratch = {scratch, to_size(p.scratch_bytes)};
    start_workspace(out->workspace, made.workspace(), p.requested, p.n_steps, memories);
    *wanted.session = out;
    return {};
}

[[nodiscard]] Status answer(const fovea_model* model, const Wanted& wanted) noexcept {
    if (!model) return is_null("model: NULL");
    PreparedSession p;
    if (Status s = p.read(*model, wanted.limits); !s.ok()) return s;
    if (wanted.session) return start(*model, p, wanted);
    return write_plan(*model, p.requested, p.plan, p.arena_bytes, wanted.plan);
}

/// The same for a file that is not open; if nothing is wanted, all of the file is verified.
[[nodiscard]] Status answer(const void* file, std::size_t file_bytes, const Wanted* wanted) noexcept {
    Model model;
    fovea_model handle{&model, {}};
    if (Status s = open_bytes(file, file_bytes, !wanted, model, handle.tokenizer); !s.ok()) return s;
    return wanted ? answer(&handle, *wanted) : Status{};
}

[[nodiscard]] std::span<std::byte> bytes_of(void* arena, std::size_t n) noexcept {
    return {static_cast<std::byte*>(arena), arena ? n : 0};
}

[[nodiscard]] fovea_status no_session() noexcept { return refuse_null("session: NULL"); }

}  // namespace

fovea_status fovea_verify(const void* file, size_t file_bytes) { return to_c(answer(file, file_bytes, nullptr)); }

fovea_status fovea_plan_session(const fovea_model* model, const fovea_limits* limits, fovea_plan* plan) {
    return to_c(answer(model, {limits, plan, {}, nullptr}));
}

fovea_status fovea_make_plan(const void* file, size_t file_bytes, const fovea_limits* limits, fovea_plan* plan) {
    const Wanted wanted{limits, plan, {}, nullptr};
    return to_c(answer(file, file_bytes, &wanted));
}

fovea_status fovea_make_session_of(const fovea_model* model, const fovea_limits* limits, void* arena,
                                   size_t arena_bytes, fovea_session** session) {
    return to_c(answer(model, {limits, nullptr, bytes_of(arena, arena_bytes), session}));
}

fovea_run fovea_openmp(void) { return openmp_executor().run; }

fovea_status fovea_make_session(const void* file, size_t file_bytes, const fovea_limits* limits, void* arena,
                                size_t arena_bytes, fovea_session** session) {
    const Wanted wanted{limits, nullptr, bytes_of(arena, arena_bytes), session};
    return to_c(answer(file, file_bytes, &wanted));
}

fovea_status fovea_tokenize(fovea_session* session, const char* text, size_t text_bytes, int how, uint32_t* tokens,
                            size_t capacity, size_t* n_tokens) {
    *n_tokens = 0;
    if (!session) return no_session();
    return fovea_model_tokenize(&session->model, text, text_bytes, how, session->scratch.data(),
                                session->scratch.size(), tokens, capacity, n_tokens);
}

fovea_status fovea_forward(fovea_session* session, const uint32_t* tokens, size_t n_tokens) {
    if (!session) return no_session();
    return to_c(forward(session->session, {tokens, n_tokens}, session->logits));
}

fovea_status fovea_forward_into(fovea_session* session, const uint32_t* tokens, size_t n_tokens, float* logits,
                                size_t n_logits) {
    if (!session) return no_session();
    return to_c(forward(session->session, {tokens, n_tokens}, {logits, n_logits}));
}

const float* fovea_logits(const fovea_session* session) { return session ? session->logits.data() : nullptr; }

uint32_t fovea_kv_len(const fovea_session* session) { return session ? session->session.kv_len() : 0; }

fovea_status fovea_rewind(fovea_session* session, uint32_t kv_len, uint32_t* reached) {
    if (!session) return no_session();
    return to_c(rewind(session->session, kv_len, reached));
}

fovea_status fovea_set_sampler(fovea_session* session, const fovea_sampler* sampler) {
    if (!session) return no_session();
    SamplerOptions options;
    if (Status s = read_sampler(sampler, options); !s.ok()) return to_c(s);
    return to_c(make_sampler(options, session->sampler));
}

fovea_status fovea_sample(fovea_session* session, const uint32_t* recent, size_t n_recent, uint32_t* token) {
    if (!session) return no_session();
    auto* candidates = reinterpret_cast<Candidate*>(session->scratch.data());
    return to_c(sample(session->sampler, session->session.kv_len(), session->logits, {recent, n_recent},
                       {candidates, session->logits.size()}, *token, {}, {recent, n_recent}));
}

int fovea_ends_text(const fovea_session* session, uint32_t token) {
    return session && session->model.tokenizer.ends_text(token);
}

size_t fovea_decode(const fovea_session* session, fovea_decoder* decoder, uint32_t token, char* out, size_t capacity) {
    return session ? fovea_model_decode(&session->model, decoder, token, out, capacity) : 0;
}

const fovea_model* fovea_session_model(const fovea_session* session) { return session ? &session->model : nullptr; }

fovea_workspace* fovea_session_workspace(fovea_session* session) { return session ? &session->workspace : nullptr; }

fovea_cache fovea_session_cache(const fovea_session* session) {
    return session ? to_c(session->session.cache()) : fovea_cache{};
}
