// Conversations, forms of answers, and the sessions that generate both, for fovea_host.h.
#include <memory>

#include "bindings/c/handles.h"
#include "fovea/checksum.h"
#include "fovea/host/arena.h"
#include "host/base/clock.h"
#include "host/model/context.h"
#include "host/model/draft_vectors.h"
#include "host/text/session_file.h"

using namespace fovea;
using namespace fovea::host_c;

struct fovea_host_form {
    const fovea_host_model* model;
    std::shared_ptr<const host::Form> form;
};

struct fovea_host_session {
    const fovea_host_model* model = nullptr;
    fovea_limits limits{};
    std::string isa;  // that they name
    Arena session_arena, generator_arena, draft_arena;
    fovea_session* session = nullptr;
    fovea_generator* generator = nullptr;
    std::vector<float> scales;  // of the model's adapters
    fovea_session* draft = nullptr;
    std::vector<float> draft_vectors;
    std::uint32_t n_proposed = 0;  // by the draft
};

namespace {

ChatText chat_text(const char* messages, const fovea_host_chat_options& options) {
    return {.messages = need(messages, "messages"),
            .tools = or_empty(options.tools),
            .extra = or_empty(options.extra),
            .add_generation_prompt = !options.no_answer};
}

[[nodiscard]] Arena taken(std::uint64_t n_bytes) {
    Arena arena(n_bytes);
    if (arena.size() != n_bytes) throw std::bad_alloc();
    return arena;
}

/// A session's limits and generator, and the exact memory of both.
struct SessionPlan {
    fovea_limits limits;
    fovea_generator_limits generator_limits{};
    fovea_plan session{};
    fovea_generator_plan generator{};

    SessionPlan(const fovea_host_model& model, const fovea_limits* given, std::uint32_t n_proposed = 0)
        : limits(read_struct(given)) {
        const host::Opened& opened = model.opened;
        opened.need_logits();
        limits.struct_size = sizeof limits;
        limits.max_positions = checked_context(opened.name, opened.model, limits.max_positions, kDefaultContext);
        if (!limits.n_threads) limits.n_threads = fovea_default_threads();
        limits.max_adapters = static_cast<std::uint32_t>(model.adapters.size());
        for (const EngineModel& adapter : model.adapters)
            limits.max_adapter_rank = std::max(limits.max_adapter_rank, fovea_adapter_rank(adapter.model));
        session.struct_size = sizeof session;
        check(fovea_plan_session(model.engine.model, &limits, &session), opened.name);
        generator_limits.struct_size = sizeof generator_limits;
        generator_limits.max_tokens = session.max_positions;
        generator_limits.max_proposed = n_proposed;
        generator.struct_size = sizeof generator;
        check(fovea_plan_generator(model.engine.model, &generator_limits, &generator), opened.name);
    }
};

[[nodiscard]] std::vector<float> scales_of(const fovea_host_model& model) {
    std::vector<float> scales;
    for (const host::OpenedAdapter& adapter : model.opened.adapters) scales.push_back(adapter.scale);
    return scales;
}

/// Adapters with a scale of 0 cost nothing.
void use_adapters(const fovea_host_model& model, fovea_session* session, const float* scales) {
    std::vector<fovea_adapter> used;
    for (std::size_t i = 0; i < model.adapters.size(); ++i)
        if (scales[i] != 0) used.push_back({model.adapters[i].model, scales[i]});
    check(fovea_set_session_adapters(session, used.data(), used.size()), model.opened.name);
}

[[nodiscard]] fovea_session* session_in(const fovea_host_model& model, const SessionPlan& plan, Arena& arena) {
    fovea_session* session = nullptr;
    arena = taken(plan.session.arena_bytes);
    check(fovea_make_session_of(model.engine.model, &plan.limits, arena.bytes().data(), arena.size(), &session),
          model.opened.name);
    use_adapters(model, session, scales_of(model).data());
    return session;
}

[[nodiscard]] fovea_generator* generator_in(const fovea_host_session& session, const SessionPlan& plan, Arena& arena) {
    fovea_generator* generator = nullptr;
    const fovea_cache cache = fovea_session_cache(session.session);
    arena = taken(plan.generator.arena_bytes);
    check(fovea_make_generator(session.model->engine.model, &cache, &plan.generator_limits, arena.bytes().data(),
                               arena.size(), &generator),
          session.model->opened.name);
    return generator;
}

/// The tokens that the cache holds.
[[nodiscard]] std::span<const Token> cached_tokens(const fovea_host_session& session) {
    size_t n = 0;
    const uint32_t* const tokens = fovea_generator_tokens(session.generator, &n);
    return {tokens, std::min<std::size_t>(n, fovea_kv_len(session.session))};
}

void forget(fovea_host_session& session) {
    check(fovea_rewind(session.session, 0, nullptr), session.model->opened.name);
    check(fovea_resume(session.generator, nullptr, 0), session.model->opened.name);
}

/// Opened::adapters_checksum with the session's scales.
[[nodiscard]] std::uint32_t adapters_checksum(const fovea_host_session& session) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < session.scales.size(); ++i) {
        const std::uint32_t fingerprint = session.model->opened.adapters[i].model.fingerprint();
        sum = crc32c(std::as_bytes(std::span(&session.scales[i], 1)),
                     crc32c(std::as_bytes(std::span(&fingerprint, 1)), sum));
    }
    return sum;
}

void restore(fovea_host_session& session, std::span<const std::byte> saved) {
    const SavedText text = host::split_session_file(saved, "saved", adapters_checksum(session));
    const fovea_cache cache = fovea_session_cache(session.session);
    check(fovea_restore_cache(&cache, text.session.data(), text.session.size()), "saved");
    try {
        const std::uint32_t kv_len = fovea_kv_len(session.session);
        if (text.tokens.size() != kv_len)
            throw host::Error("saved: expected " + std::to_string(kv_len) + " tokens, got " +
                              std::to_string(text.tokens.size()));
        check(fovea_resume(session.generator, text.tokens.data(), text.tokens.size()), "saved");
    } catch (const host::Error&) {  // somebody joined two files
        forget(session);
        throw;
    }
}

void propose_by(fovea_host_session& session, const fovea_host_model& draft, std::uint32_t n_proposed) {
    constexpr std::uint32_t kUsual = 8;
    const fovea_host_model& model = *session.model;
    if (!n_proposed) n_proposed = kUsual;
    draft.opened.need_logits();
    model.opened.check_same_tokens(draft.opened);
    const SessionPlan plan(model, &session.limits, n_proposed);
    fovea_limits limits = plan.limits;
    limits.max_adapter_rank = 0, limits.kv_type = 0;
    const std::uint32_t most = draft.opened.config().decoder.max_positions;
    limits.max_positions = most ? std::min(plan.session.max_positions, most) : plan.session.max_positions;
    const SessionPlan of_draft(draft, &limits);
    // All that can fail comes before the session is another.
    Arena draft_arena, generator_arena;
    fovea_session* const draft_session = session_in(draft, of_draft, draft_arena);
    std::vector<float> vectors(host::n_draft_vectors(draft.opened, of_draft.session.max_positions, n_proposed));
    fovea_generator* const generator = generator_in(session, plan, generator_arena);
    size_t n_tokens = 0;
    const std::uint32_t* const tokens = fovea_generator_tokens(session.generator, &n_tokens);
    check(fovea_resume(generator, tokens, std::min<std::size_t>(n_tokens, fovea_kv_len(session.session))),
          model.opened.name);
    session.draft_arena = std::move(draft_arena), session.generator_arena = std::move(generator_arena);
    session.draft = draft_session, session.generator = generator;
    session.draft_vectors = std::move(vectors), session.n_proposed = n_proposed;
}

/// The session's draft, as what a text's options say of speculation.
[[nodiscard]] fovea_speculation speculation_of(fovea_host_session& session, const fovea_speculation* given) {
    fovea_speculation own = read_struct(given);
    own.struct_size = sizeof own;
    if (own.draft) throw host::ArgumentError("speculation.draft: expected none beside the session's, got one");
    if (!own.n_proposed) own.n_proposed = session.n_proposed;
    if (!own.clock) own.clock = host::ticks_now;
    own.draft = fovea_session_workspace(session.draft);
    own.draft_cache = fovea_session_cache(session.draft);
    own.draft_vectors = session.draft_vectors.data(), own.n_draft_vectors = session.draft_vectors.size();
    return own;
}

const TokenFilter& filter_in(void* context) { return *static_cast<const TokenFilter*>(context); }

/// The same filter, which must outlive it, for the engine's C functions.
fovea_token_filter filter_of(TokenFilter& own) {
    fovea_token_filter filter{};
    filter.struct_size = sizeof filter;
    filter.context = &own;
    filter.allow = [](void* own_filter, const uint32_t* text, size_t n_text, uint32_t* mask, size_t n_mask) {
        filter_in(own_filter).allow(filter_in(own_filter).context, {text, n_text}, {mask, n_mask});
    };
    filter.accept = [](void* own_filter, uint32_t token) {
        filter_in(own_filter).accept(filter_in(own_filter).context, token);
    };
    filter.forced = [](void* own_filter, uint32_t* tokens, size_t capacity) {
        return filter_in(own_filter).forced(filter_in(own_filter).context, {tokens, capacity});
    };
    return filter;
}

void generate(fovea_host_session& session, std::span<const Token> tokens, fovea_generate_options options,
              const fovea_host_form* form, fovea_host_on_text on_text, void* context) {
    const std::string& name = session.model->opened.name;
    std::optional<host::FormPlace> place;
    TokenFilter own_filter;
    fovea_token_filter filter;
    if (form) {
        if (options.filter) throw host::ArgumentError("options.filter: expected none beside a form, got one");
        if (form->model != session.model)
            throw host::ArgumentError("form: expected one of the session's model, got another's");
        own_filter = place.emplace(form->form).start();
        filter = filter_of(own_filter);
        options.filter = &filter;
    }
    fovea_speculation speculation;
    if (session.draft) {
        speculation = speculation_of(session, options.speculation);
        options.speculation = &speculation;
    }
    options.struct_size = sizeof options;
    check(fovea_start(session.generator, tokens.data(), tokens.size(), &options), name);
    fovea_piece piece{};
    piece.struct_size = sizeof piece;
    for (std::string text; piece.finish == FOVEA_FINISH_NONE;) {
        check(fovea_generate(session.generator, fovea_session_workspace(session.session), &piece), name);
        text.assign(piece.text.bytes, piece.text.n_bytes);
        if (!text.empty() && on_text && on_text(context, text.c_str())) throw Cancelled{};
    }
}

}  // namespace

extern "C" {

int fovea_host_render_chat(const fovea_host_model* model, const char* messages, const fovea_host_chat_options* options,
                           char** prompt) {
    return run([&] {
        need(prompt, "prompt");
        *prompt = copy_of(need(model, "model")->chat().prompt(chat_text(messages, read_struct(options))));
    });
}

int fovea_host_compile_form(const fovea_host_model* model, uint32_t kind, const char* text, fovea_host_form** form) {
    return run([&] {
        need(form, "form");
        if (kind > FOVEA_HOST_REGEX)
            throw host::ArgumentError("kind: expected a JSON schema (0), GBNF (1) or a regular expression (2), got " +
                                      std::to_string(kind));
        const auto compiled =
            need(model, "model")->forms.compile(static_cast<host::FormKind>(kind), need(text, "text"));
        *form = new fovea_host_form{model, compiled};
    });
}

void fovea_host_free_form(fovea_host_form* form) { delete form; }

int fovea_host_form_bytes(const fovea_host_form* form, const void** bytes, size_t* n_bytes, const void** index,
                          size_t* n_index) {
    return run([&] {
        const host::Form& made = *need(form, "form")->form;
        *need(bytes, "bytes") = made.bytes.data(), *need(n_bytes, "n_bytes") = made.bytes.size();
        *need(index, "index") = made.index->data(), *need(n_index, "n_index") = made.index->size();
    });
}

int fovea_host_session_bytes(const fovea_host_model* model, const fovea_limits* limits, uint64_t* n_bytes) {
    return run([&] {
        need(n_bytes, "n_bytes");
        const SessionPlan plan(*need(model, "model"), limits);
        *n_bytes = plan.session.arena_bytes + plan.generator.arena_bytes;
    });
}

int fovea_host_start(const fovea_host_model* model, const fovea_limits* limits, fovea_host_session** session) {
    return run([&] {
        need(session, "session");
        const SessionPlan plan(*need(model, "model"), limits);
        auto made = std::make_unique<fovea_host_session>();
        made->model = model;
        made->limits = plan.limits;
        if (plan.limits.isa) made->limits.isa = (made->isa = plan.limits.isa).c_str();
        made->scales = scales_of(*model);
        made->session = session_in(*model, plan, made->session_arena);
        made->generator = generator_in(*made, plan, made->generator_arena);
        *session = made.release();
    });
}

int fovea_host_scale_adapters(fovea_host_session* session, const float* scales) {
    return run([&] {
        need(session, "session"), need(scales, "scales");
        forget(*session);
        use_adapters(*session->model, session->session, scales);
        session->scales.assign(scales, scales + session->scales.size());
    });
}

int fovea_host_save(const fovea_host_session* session, void** saved, size_t* n_bytes) {
    return run([&] {
        need(session, "session"), need(saved, "saved"), need(n_bytes, "n_bytes");
        const fovea_cache cache = fovea_session_cache(session->session);
        const std::vector<std::byte> behind = bytes_behind(cached_tokens(*session), adapters_checksum(*session));
        const auto n_cached = static_cast<std::size_t>(fovea_cache_bytes(&cache));
        std::unique_ptr<void, void (*)(void*)> memory(take_memory(n_cached + behind.size()), fovea_host_free);
        size_t written = 0;
        check(fovea_save_cache(&cache, memory.get(), n_cached, &written), session->model->opened.name);
        std::memcpy(static_cast<std::byte*>(memory.get()) + written, behind.data(), behind.size());
        *saved = memory.release(), *n_bytes = written + behind.size();
    });
}

int fovea_host_restore(fovea_host_session* session, const void* saved, size_t n_bytes) {
    return run([&] {
        need(session, "session");
        restore(*session, need_array(static_cast<const std::byte*>(saved), n_bytes, "saved"));
    });
}

int fovea_host_propose_by(fovea_host_session* session, const fovea_host_model* draft, uint32_t n_proposed) {
    return run([&] { propose_by(*need(session, "session"), *need(draft, "draft"), n_proposed); });
}

void fovea_host_end(fovea_host_session* session) { delete session; }

const fovea_generator* fovea_host_generator(const fovea_host_session* session) {
    return session ? session->generator : nullptr;
}

int fovea_host_generate(fovea_host_session* session, const uint32_t* tokens, size_t n_tokens,
                        const fovea_generate_options* options, const fovea_host_form* form, fovea_host_on_text on_text,
                        void* context) {
    return run([&] {
        generate(*need(session, "session"), need_array(tokens, n_tokens, "tokens"), read_struct(options), form, on_text,
                 context);
    });
}

int fovea_host_chat(fovea_host_session* session, const char* messages, const fovea_host_chat_options* how,
                    const fovea_generate_options* options, const fovea_host_form* form, fovea_host_on_text on_text,
                    void* context) {
    return run([&] {
        const fovea_host_model& model = *need(session, "session")->model;
        const std::vector<Token> tokens = model.chat().tokens(chat_text(messages, read_struct(how)));
        fovea_generate_options given = read_struct(options);
        if (!given.end_tokens) {
            given.end_tokens = model.chat().end_tokens().data();
            given.n_end_tokens = model.chat().end_tokens().size();
        }
        std::vector<fovea_text> stops;
        for (const std::string& stop : model.chat().stops()) stops.push_back({stop.data(), stop.size()});
        if (!given.stop && !stops.empty()) {
            given.stop = stops.data();
            given.n_stop = stops.size();
        }
        generate(*session, tokens, given, form, on_text, context);
    });
}
}
