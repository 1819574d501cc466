// Conversations, forms of answers, and the sessions that generate both, for fovea_host.h.
#include <memory>
#include <nlohmann/json.hpp>

#include "bindings/c/handles.h"
#include "fovea/host/arena.h"
#include "host/grammar/grammar.h"
#include "host/model/context.h"

using namespace fovea;
using namespace fovea::host_c;

struct fovea_host_form {
    const fovea_host_model* model = nullptr;
    std::vector<std::byte> bytes;
    fovea_constraint* constraint = nullptr;  // in memory
    alignas(8) std::byte memory[FOVEA_CONSTRAINT_BYTES];
};

struct fovea_host_session {
    const fovea_host_model* model = nullptr;
    Arena session_arena, generator_arena;
    fovea_session* session = nullptr;
    fovea_generator* generator = nullptr;
};

namespace {

using Json = nlohmann::ordered_json;

Json read_json(const char* text, const char* name) {
    Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) throw host::ArgumentError(std::string(name) + ": expected JSON, got other text");
    return json;
}

std::string render(const fovea_host_model& model, const char* messages, const fovea_host_chat_options& options) {
    ChatInput input;
    input.messages = read_json(need(messages, "messages"), "messages");
    if (!input.messages.is_array() || input.messages.empty())
        throw host::ArgumentError("messages: expected an array of 1 message or more, got other JSON");
    if (options.tools) input.tools = read_json(options.tools, "tools");
    if (options.extra) input.extra = read_json(options.extra, "extra");
    input.add_generation_prompt = !options.no_answer;
    try {
        return model.chat().render(input);
    } catch (const ChatTemplateError& error) {
        throw host::Error(std::string("chat template: ") + error.what());
    }
}

void check(const fovea_status& status, const std::string& subject) {
    if (status.code == FOVEA_OK) return;
    char line[256];
    fovea_describe(status, line, sizeof line);
    throw host::Error(subject + ": " + line);
}

/// A session's limits and generator, and the exact memory of both.
struct SessionPlan {
    fovea_limits limits;
    fovea_generator_limits generator_limits{};
    fovea_plan session{};
    fovea_generator_plan generator{};

    SessionPlan(const fovea_host_model& model, const fovea_limits* given) : limits(read_struct(given)) {
        const host::Opened& opened = model.opened;
        opened.need_logits();
        limits.struct_size = sizeof limits;
        limits.max_positions = checked_context(opened.name, opened.model, limits.max_positions, kDefaultContext);
        if (!limits.n_threads) limits.n_threads = fovea_default_threads();
        session.struct_size = sizeof session;
        check(fovea_plan_session(model.engine_model, &limits, &session), opened.name);
        generator_limits.struct_size = sizeof generator_limits;
        generator_limits.max_tokens = session.max_positions;
        generator.struct_size = sizeof generator;
        check(fovea_plan_generator(model.engine_model, &generator_limits, &generator), opened.name);
    }
};

[[nodiscard]] Arena taken(std::uint64_t n_bytes) {
    Arena arena(n_bytes);
    if (arena.size() != n_bytes) throw std::bad_alloc();
    return arena;
}

/// A form's place while one text is generated.
class FormPlace {
public:
    FormPlace(const fovea_host_form& form, const fovea_host_model& model)
        : memory_((fovea_constraint_state_bytes(form.constraint) + 7) / 8) {
        if (form.model != &model) throw host::ArgumentError("form: expected one of the session's model, got another's");
        filter_.struct_size = sizeof filter_;
        check(fovea_make_constraint_state(form.constraint, memory_.data(), memory_.size() * 8, &state_), "form");
        check(fovea_constraint_filter(state_, &filter_), "form");
    }
    [[nodiscard]] const fovea_token_filter* filter() const { return &filter_; }

private:
    std::vector<std::uint64_t> memory_;
    fovea_constraint_state* state_ = nullptr;
    fovea_token_filter filter_{};
};

void generate(fovea_host_session& session, std::span<const Token> tokens, fovea_generate_options options,
              const fovea_host_form* form, fovea_host_on_text on_text, void* context) {
    const std::string& name = session.model->opened.name;
    std::optional<FormPlace> place;
    if (form) {
        if (options.filter) throw host::ArgumentError("options.filter: expected none beside a form, got one");
        options.filter = place.emplace(*form, *session.model).filter();
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

grammar::Grammar read_form(std::uint32_t kind, const char* text) {
    switch (kind) {
        case FOVEA_HOST_JSON_SCHEMA: return grammar::read_json_schema(text);
        case FOVEA_HOST_GBNF: return grammar::read_gbnf(text);
        case FOVEA_HOST_REGEX: return grammar::read_regex(text);
    }
    throw host::ArgumentError("kind: expected a JSON schema (0), GBNF (1) or a regular expression (2), got " +
                              std::to_string(kind));
}

}  // namespace

extern "C" {

int fovea_host_render_chat(const fovea_host_model* model, const char* messages, const fovea_host_chat_options* options,
                           char** prompt) {
    return run([&] {
        need(prompt, "prompt");
        *prompt = copy_of(render(*need(model, "model"), messages, read_struct(options)));
    });
}

int fovea_host_compile_form(const fovea_host_model* model, uint32_t kind, const char* text, fovea_host_form** form) {
    return run([&] {
        need(form, "form");
        const Tokenizer& tokenizer = need(model, "model")->opened.need_tokenizer();
        auto made = std::make_unique<fovea_host_form>();
        made->model = model;
        made->bytes = grammar::compile(read_form(kind, need(text, "text")), tokenizer, model->vocabulary_index());
        const std::vector<std::byte>& index = model->vocabulary_index();
        check(fovea_open_constraint(model->engine_model, made->bytes.data(), made->bytes.size(), index.data(),
                                    index.size(), made->memory, sizeof made->memory, &made->constraint),
              "form");
        *form = made.release();
    });
}

void fovea_host_free_form(fovea_host_form* form) { delete form; }

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
        made->session_arena = taken(plan.session.arena_bytes);
        made->generator_arena = taken(plan.generator.arena_bytes);
        check(fovea_make_session_of(model->engine_model, &plan.limits, made->session_arena.bytes().data(),
                                    made->session_arena.size(), &made->session),
              model->opened.name);
        const fovea_cache cache = fovea_session_cache(made->session);
        check(
            fovea_make_generator(model->engine_model, &cache, &plan.generator_limits,
                                 made->generator_arena.bytes().data(), made->generator_arena.size(), &made->generator),
            model->opened.name);
        *session = made.release();
    });
}

void fovea_host_end(fovea_host_session* session) { delete session; }

const fovea_generator* fovea_host_generator(const fovea_host_session* session) {
    return session ? session->generator : nullptr;
}

int fovea_host_generate(fovea_host_session* session, const uint32_t* tokens, size_t n_tokens,
                        const fovea_generate_options* options, const fovea_host_form* form, fovea_host_on_text on_text,
                        void* context) {
    return run([&] {
        generate(*need(session, "session"), {n_tokens ? need(tokens, "tokens") : tokens, n_tokens},
                 read_struct(options), form, on_text, context);
    });
}

int fovea_host_chat(fovea_host_session* session, const char* messages, const fovea_host_chat_options* how,
                    const fovea_generate_options* options, const fovea_host_form* form, fovea_host_on_text on_text,
                    void* context) {
    return run([&] {
        const fovea_host_model& model = *need(session, "session")->model;
        const std::vector<Token> tokens = model.chat().tokens_of(render(model, messages, read_struct(how)));
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
