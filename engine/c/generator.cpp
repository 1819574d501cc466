// The C interface's generators.
#include <cstring>
#include <new>

#include "engine/c/handles.h"
#include "engine/text/generator_state.h"
#include "fovea/generator.h"

using namespace fovea;

struct fovea_generator {
    Generator generator;
    fovea_token_filter filter;  // of the present text
};

namespace {

constexpr std::uint64_t kGeneratorBytes = 64;
static_assert(sizeof(fovea_generator) <= kGeneratorBytes);
static_assert(int(FinishReason::none) == FOVEA_FINISH_NONE && int(FinishReason::end_token) == FOVEA_FINISH_END_TOKEN &&
              int(FinishReason::stop_text) == FOVEA_FINISH_STOP_TEXT &&
              int(FinishReason::length) == FOVEA_FINISH_LENGTH && int(FinishReason::context) == FOVEA_FINISH_CONTEXT);

[[nodiscard]] Status check_null(const fovea_generator* generator) noexcept {
    return generator ? Status{} : is_null("generator: NULL");
}

[[nodiscard]] Status plan_generator(const fovea_model* model, const fovea_generator_limits* given,
                                    GeneratorPlan& plan) noexcept {
    if (!model) return is_null("model: NULL");
    fovea_generator_limits c;
    if (Status s = read_struct(given, c); !s.ok()) return s;
    GeneratorLimits limits{.max_tokens = c.max_tokens, .max_proposed = c.max_proposed};
    if (c.max_stop_bytes) limits.max_stop_bytes = c.max_stop_bytes;
    return make_generator_plan(*model->model, model->tokenizer, limits, plan);
}

// ---- a text's options ----------------------------------------------------------------------------------------------

void allow_by_caller(void* context, std::span<const Token> text, std::span<std::uint32_t> mask) noexcept {
    const fovea_generator& g = *static_cast<const fovea_generator*>(context);
    if (g.filter.allowed) std::memcpy(mask.data(), g.filter.allowed, mask.size_bytes());
    if (g.filter.allow) g.filter.allow(g.filter.context, text.data(), text.size(), mask.data(), mask.size());
}

void accept_by_caller(void* context, Token token) noexcept {
    const fovea_generator& g = *static_cast<const fovea_generator*>(context);
    g.filter.accept(g.filter.context, token);
}

std::size_t force_by_caller(void* context, std::span<Token> tokens) noexcept {
    const fovea_generator& g = *static_cast<const fovea_generator*>(context);
    return g.filter.forced(g.filter.context, tokens.data(), tokens.size());
}

[[nodiscard]] Status read_filter(const fovea_token_filter* given, fovea_generator& g, fovea_token_filter& own,
                                 TokenFilter& out) noexcept {
    own = {};
    if (!given) return {};
    if (Status s = read_struct(given, own); !s.ok()) return s;
    out.context = &g;
    if (own.allowed || own.allow) out.allow = allow_by_caller;
    if (own.accept) out.accept = accept_by_caller;
    if (own.forced) out.forced = force_by_caller;
    return {};
}

[[nodiscard]] Status read_speculation(const fovea_speculation* given, Speculation& out) noexcept {
    if (!given) return {};
    fovea_speculation c;
    if (Status s = read_struct(given, c); !s.ok()) return s;
    out.n_proposed = c.n_proposed;
    out.always = c.always != 0;
    out.clock = c.clock;
    if (c.row_cost != 0.0f) out.row_cost = c.row_cost;
    if (c.draft) out.draft = {c.draft->workspace, from_c(&c.draft_cache), {c.draft_vectors, c.n_draft_vectors}};
    return {};
}

/// Makes views of a caller's strings in the candidates' memory, which is free before a token is chosen.
[[nodiscard]] Status read_stop(const fovea_text* stop, std::size_t n_stop, const GeneratorState& s,
                               std::span<const std::string_view>& out) noexcept {
    constexpr std::size_t kViewBytes = 16;  // whatever a pointer's size
    static_assert(sizeof(std::string_view) <= kViewBytes);
    const std::size_t most = s.candidates.size_bytes() / kViewBytes;
    if (n_stop > most) return {Code::buffer_too_small, "stop strings at most", most, n_stop};
    auto* views = reinterpret_cast<std::string_view*>(s.candidates.data());
    for (std::size_t i = 0; i < n_stop; ++i) new (views + i) std::string_view(stop[i].bytes, stop[i].n_bytes);
    out = {views, n_stop};
    return {};
}

[[nodiscard]] Status start_text(fovea_generator& g, std::span<const Token> prompt,
                                const fovea_generate_options* given) noexcept {
    fovea_generate_options c;
    GenerateOptions options;
    fovea_token_filter filter;
    if (Status s = read_struct(given, c); !s.ok()) return s;
    if (c.sampler)
        if (Status s = read_sampler(c.sampler, options.sampler); !s.ok()) return s;
    if (Status s = read_filter(c.filter, g, filter, options.filter); !s.ok()) return s;
    if (Status s = read_speculation(c.speculation, options.speculation); !s.ok()) return s;
    if (Status s = read_stop(c.stop, c.n_stop, *GeneratorAccess::state(g.generator), options.stop); !s.ok()) return s;
    if (c.n_new) options.n_new = c.n_new;
    if (c.n_recent) options.n_recent = c.n_recent;
    if (has(Part::penalties)) {
        if (c.n_counted) options.n_counted = c.n_counted;
        options.counts_prompt = c.counts_prompt != 0;
    }
    options.show_special = c.show_special != 0;
    options.memory = from_c(c.memory);
    if (!c.end_tokens && c.n_end_tokens) return is_null("end_tokens: NULL");
    options.end_tokens = {c.end_tokens, c.n_end_tokens};
    if (Status s = start(g.generator, prompt, options); !s.ok()) return s;
    g.filter = filter;
    return {};
}

// ---- turns ---------------------------------------------------------------------------------------------------------

void write_piece(const Piece& piece, fovea_piece* out) noexcept {
    const fovea_piece made{.struct_size = sizeof made,
                           .finish = static_cast<std::uint32_t>(piece.finish),
                           .text = {piece.text.data(), piece.text.size()},
                           .tokens = piece.tokens.data(),
                           .n_tokens = piece.tokens.size(),
                           .logits = piece.logits.data(),
                           .n_logits = piece.logits.size()};
    write_struct(&made, sizeof made, out);
}

/// A turn if there is a workspace, else its last part.
[[nodiscard]] Status turn(fovea_generator* generator, fovea_workspace* workspace, fovea_piece* piece) noexcept {
    if (Status s = check_null(generator); !s.ok()) return s;
    if (Status s = check_struct(piece); !s.ok()) return s;
    Piece made;
    if (Status s =
            workspace ? generate(generator->generator, workspace->workspace, made) : take(generator->generator, made);
        !s.ok())
        return s;
    write_piece(made, piece);
    return {};
}

}  // namespace

fovea_status fovea_plan_generator(const fovea_model* model, const fovea_generator_limits* limits,
                                  fovea_generator_plan* plan) {
    if (Status s = check_struct(plan); !s.ok()) return to_c(s);
    GeneratorPlan own;
    if (Status s = plan_generator(model, limits, own); !s.ok()) return to_c(s);
    const fovea_generator_plan made{.struct_size = sizeof made,
                                    .max_tokens = own.limits.max_tokens,
                                    .max_stop_bytes = own.limits.max_stop_bytes,
                                    .max_proposed = own.limits.max_proposed,
                                    .arena_bytes = kGeneratorBytes + own.arena_bytes};
    write_struct(&made, sizeof made, plan);
    return success();
}

fovea_status fovea_make_generator(const fovea_model* model, const fovea_cache* cache,
                                  const fovea_generator_limits* limits, void* arena, size_t arena_bytes,
                                  fovea_generator** generator) {
    GeneratorPlan plan;
    if (Status s = plan_generator(model, limits, plan); !s.ok()) return to_c(s);
    const std::uint64_t wanted = kGeneratorBytes + plan.arena_bytes;
    if (!arena) arena_bytes = 0;
    if (arena_bytes < wanted) return to_c({Code::arena_too_small, "arena bytes at least", wanted, arena_bytes});
    const std::span<std::byte> bytes{static_cast<std::byte*>(arena), arena_bytes};
    Generator made;
    if (Status s = make_generator(*model->model, model->tokenizer, from_c(cache), plan.limits,
                                  bytes.subspan(kGeneratorBytes), made);
        !s.ok())
        return to_c(s);
    *generator = new (arena) fovea_generator{made, {}};
    return success();
}

fovea_status fovea_start(fovea_generator* generator, const uint32_t* tokens, size_t n_tokens,
                         const fovea_generate_options* options) {
    if (Status s = check_null(generator); !s.ok()) return to_c(s);
    return to_c(start_text(*generator, {tokens, n_tokens}, options));
}

fovea_status fovea_resume(fovea_generator* generator, const uint32_t* tokens, size_t n_tokens) {
    if (Status s = check_null(generator); !s.ok()) return to_c(s);
    return to_c(resume(generator->generator, {tokens, n_tokens}));
}

fovea_status fovea_next_step(fovea_generator* generator, fovea_step* step) {
    if (Status s = check_null(generator); !s.ok()) return to_c(s);
    if (Status s = check_struct(step); !s.ok()) return to_c(s);
    constexpr std::uint32_t kNeeded = offsetof(fovea_step, n_logits) + sizeof step->n_logits;
    if (step->struct_size < kNeeded)
        return to_c({Code::bad_argument, "struct_size of a step at least", kNeeded, step->struct_size});
    Step own;
    if (Status s = next_step(generator->generator, own); !s.ok()) return to_c(s);
    const fovea_step made{.struct_size = sizeof made,
                          .reserved = 0,
                          .cache = to_c(own.cache),
                          .tokens = own.tokens.data(),
                          .n_tokens = own.tokens.size(),
                          .logits = own.logits.data(),
                          .n_logits = own.logits.size(),
                          .memory = to_c(own.memory),
                          .rows = nullptr,
                          .n_row_elements = 0,
                          .positions = nullptr,
                          .n_positions = 0,
                          .spans = nullptr,
                          .n_spans = 0,
                          .vectors = own.vectors.data(),
                          .n_vectors = own.vectors.size()};
    write_struct(&made, sizeof made, step);
    return success();
}

fovea_status fovea_take(fovea_generator* generator, fovea_piece* piece) {
    return to_c(turn(generator, nullptr, piece));
}

fovea_status fovea_generate(fovea_generator* generator, fovea_workspace* workspace, fovea_piece* piece) {
    return workspace ? to_c(turn(generator, workspace, piece)) : refuse_null("workspace: NULL");
}

fovea_status fovea_generator_figures(const fovea_generator* generator, fovea_generate_figures* figures) {
    if (Status s = check_null(generator); !s.ok()) return to_c(s);
    if (Status s = check_struct(figures); !s.ok()) return to_c(s);
    const GenerateFigures own = generator->generator.figures();
    const fovea_generate_figures made{.struct_size = sizeof made,
                                      .n_prompt = own.n_prompt,
                                      .n_kept = own.n_kept,
                                      .n_tokens = own.n_tokens,
                                      .n_passes = own.n_passes,
                                      .n_proposed = own.n_proposed,
                                      .n_accepted = own.n_accepted,
                                      .n_draft_passes = own.n_draft_passes,
                                      .n_forced = own.n_forced};
    write_struct(&made, sizeof made, figures);
    return success();
}

const uint32_t* fovea_generator_tokens(const fovea_generator* generator, size_t* n_tokens) {
    const std::span<const Token> tokens = generator ? generator->generator.tokens() : std::span<const Token>{};
    *n_tokens = tokens.size();
    return tokens.data();
}

uint32_t fovea_generator_finish(const fovea_generator* generator) {
    return static_cast<std::uint32_t>(generator ? generator->generator.finish() : FinishReason::none);
}
