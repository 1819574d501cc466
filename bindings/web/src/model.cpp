#include "bindings/web/src/model.h"

#include <algorithm>
#include <chrono>

namespace fovea::node {
namespace {

void check(const fovea_status& status) {
    if (status.code == FOVEA_OK) return;
    char line[256];
    fovea_describe(status, line, sizeof line);
    throw Refusal(line);
}
void check(int result) {
    if (result != FOVEA_HOST_OK) throw Refusal(fovea_host_error());
}

[[nodiscard]] Arena taken(std::uint64_t n_bytes) {
    Arena arena(n_bytes, Pages::at_use);
    if (arena.size() != n_bytes)
        throw Refusal("memory: expected " + std::to_string(n_bytes) + " bytes for the model's arena, got less");
    return arena;
}

[[nodiscard]] fovea_text view_of(const std::string& text) { return {text.data(), text.size()}; }

[[nodiscard]] const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

void Model::open(const LoadOptions& options) {
    auto how = sized<fovea_host_open_options>();
    how.verify = options.verify;
    how.context = this;
    how.progress = [](void* self, uint64_t, uint64_t) -> int { return static_cast<Model*>(self)->cancelled_; };
    check(fovea_host_open(options.path.c_str(), &how, &host_));
    engine_ = fovea_host_engine_model(host_);
    check(fovea_model_info(engine_, &info_));
    auto limits = sized<fovea_limits>();
    limits.max_positions = options.max_positions;
    limits.max_batch = options.max_batch;
    limits.kv_type = options.kv_type;
    limits.n_threads = options.n_threads ? options.n_threads : fovea_default_threads();
    limits.isa = or_null(options.isa);
    limits.cancellable = 1;
    if (info_.kind != FOVEA_LOGITS) {
        fovea_workspace* workspace = nullptr;
        check(fovea_plan_workspace(engine_, &limits, &plan_));
        arena_ = taken(plan_.arena_bytes);
        check(fovea_make_workspace(engine_, &limits, arena_.bytes().data(), arena_.size(), &workspace));
        workspace_ = workspace;
        return;
    }
    check(fovea_plan_session(engine_, &limits, &plan_));
    arena_ = taken(plan_.arena_bytes);
    check(fovea_make_session_of(engine_, &limits, arena_.bytes().data(), arena_.size(), &session_));
    auto texts = sized<fovea_generator_limits>();
    texts.max_tokens = plan_.max_positions;
    auto texts_plan = sized<fovea_generator_plan>();
    const fovea_cache cache = fovea_session_cache(session_);
    check(fovea_plan_generator(engine_, &texts, &texts_plan));
    generator_arena_ = taken(texts_plan.arena_bytes);
    check(fovea_make_generator(engine_, &cache, &texts, generator_arena_.bytes().data(), generator_arena_.size(),
                               &generator_));
    workspace_ = fovea_session_workspace(session_);
}

Model::~Model() {
    fovea_host_free_form(form_);
    fovea_host_close(host_);
}

void Model::cancel(bool cancelled) {
    cancelled_ = cancelled;
    if (fovea_workspace* const workspace = workspace_) static_cast<void>(fovea_cancel(workspace, cancelled));
}

std::vector<std::uint32_t> Model::tokenize(const std::string& text, int how) const {
    std::vector<std::uint32_t> scratch(fovea_scratch_bytes(engine_, text.size()) / 4 + 1);
    std::vector<std::uint32_t> tokens(fovea_max_tokens(engine_, text.size()));
    size_t n = 0;
    check(fovea_model_tokenize(engine_, text.data(), text.size(), how, scratch.data(), 4 * scratch.size(),
                               tokens.data(), tokens.size(), &n));
    tokens.resize(n);
    return tokens;
}

std::string Model::decode(const std::vector<std::uint32_t>& tokens) const {
    fovea_decoder decoder{};
    std::string text, piece(std::max<std::uint64_t>(info_.max_piece_bytes, 8), 0);
    const auto add = [&](std::uint32_t token) {
        text.append(piece, 0, fovea_model_decode(engine_, &decoder, token, piece.data(), piece.size()));
    };
    for (const std::uint32_t token : tokens) add(token);
    add(FOVEA_NO_TOKEN);
    return text;
}

std::string Model::render(const std::string& messages, const std::string& tools, const std::string& extra) const {
    auto how = sized<fovea_host_chat_options>();
    how.tools = or_null(tools);
    how.extra = or_null(extra);
    char* prompt = nullptr;
    check(fovea_host_render_chat(host_, messages.c_str(), &how, &prompt));
    const std::unique_ptr<char, void (*)(void*)> memory(prompt, fovea_host_free);
    return prompt;
}

/// A schema is compiled once for texts that follow each other.
fovea_constraint_state* Model::take_form(const TextOptions& options) {
    const void *form = options.form.data(), *index = nullptr;
    size_t n_form = options.form.size(), n_index = 0;
    if (!options.schema.empty()) {
        if (options.schema != schema_) {
            fovea_host_form* made = nullptr;
            check(fovea_host_compile_form(host_, FOVEA_HOST_JSON_SCHEMA, options.schema.c_str(), &made));
            fovea_host_free_form(std::exchange(form_, made));
            schema_ = options.schema;
        }
        check(fovea_host_form_bytes(form_, &form, &n_form, &index, &n_index));
    }
    fovea_constraint* constraint = nullptr;
    check(fovea_open_constraint(engine_, form, n_form, index, n_index, constraint_, sizeof constraint_, &constraint));
    const std::uint64_t n_state = fovea_constraint_state_bytes(constraint);
    state_.assign((n_state + 7) / 8, 0);
    fovea_constraint_state* state = nullptr;
    check(fovea_make_constraint_state(constraint, state_.data(), n_state, &state));
    return state;
}

void Model::start(TextOptions given) {
    options_ = std::move(given);
    options_.sampler.more = &options_.more;
    auto filter = sized<fovea_token_filter>();
    const bool has_form = !options_.schema.empty() || !options_.form.empty();
    if (has_form) check(fovea_constraint_filter(take_form(options_), &filter));
    std::vector<fovea_text> stops;
    for (const std::string& stop : options_.stops) stops.push_back(view_of(stop));
    auto options = sized<fovea_generate_options>();
    options.n_new = options_.max_tokens;
    options.sampler = &options_.sampler;
    options.filter = has_form ? &filter : nullptr;
    options.stop = stops.data();
    options.n_stop = stops.size();
    options.show_special = options_.show_special;
    check(fovea_start(generator_, options_.tokens.data(), options_.tokens.size(), &options));
}

std::vector<Piece> Model::advance() {
    constexpr std::chrono::milliseconds kMoment{4};
    const auto until = std::chrono::steady_clock::now() + kMoment;
    std::vector<Piece> pieces;
    do {
        auto piece = sized<fovea_piece>();
        check(fovea_generate(generator_, workspace_, &piece));
        pieces.push_back(
            {{piece.text.bytes, piece.text.n_bytes}, {piece.tokens, piece.tokens + piece.n_tokens}, piece.finish});
    } while (pieces.back().finish == FOVEA_FINISH_NONE && std::chrono::steady_clock::now() < until);
    return pieces;
}

std::vector<float> Model::embed(const std::vector<std::uint32_t>& tokens) {
    std::vector<float> out(std::uint64_t{info_.result_width} * (info_.pools ? 1 : tokens.size()));
    const auto length = static_cast<std::uint32_t>(tokens.size());
    auto source = sized<fovea_sequences>();
    source.ids = tokens.data();
    source.n_ids = tokens.size();
    source.lengths = &length;
    source.n_lengths = 1;
    auto input = sized<fovea_encode_input>();
    input.source = &source;
    check(fovea_encode(workspace_, &input, out.data(), out.size()));
    return out;
}

std::vector<float> Model::logits(const std::vector<std::uint32_t>& tokens, std::uint32_t n_together) {
    std::vector<float> out(tokens.size() * info_.vocab_size);
    check(fovea_rewind(session_, 0, nullptr));
    for (std::size_t done = 0, n; done < tokens.size(); done += n) {
        n = std::min<std::size_t>(n_together, tokens.size() - done);
        check(fovea_forward_into(session_, tokens.data() + done, n, out.data() + done * info_.vocab_size,
                                 n * info_.vocab_size));
    }
    check(fovea_rewind(session_, 0, nullptr));
    return out;
}

Attention Model::attention(const std::vector<std::uint32_t>& tokens, std::uint32_t layer, bool per_head) {
    auto facts = sized<fovea_layer>();
    const bool is_there = fovea_model_layer(engine_, info_.kind == FOVEA_VECTORS, layer, &facts).code == FOVEA_OK;
    if (!is_there || facts.n_heads == 0)
        throw Refusal("layer: expected one with attention, got " + std::to_string(layer));
    Attention made{per_head ? facts.n_heads : 1, {}};
    made.weights.resize(made.n_heads * tokens.size() * tokens.size());
    auto capture = sized<fovea_attention>();
    capture.layer = layer;
    capture.per_head = per_head;
    capture.n_queries = capture.n_keys = static_cast<std::uint32_t>(tokens.size());
    capture.out = made.weights.data();
    capture.n_out = made.weights.size();
    check(fovea_capture_attention(workspace_, &capture));
    const std::unique_ptr<fovea_workspace, void (*)(fovea_workspace*)> ends(
        workspace_, [](fovea_workspace* workspace) { static_cast<void>(fovea_capture_attention(workspace, nullptr)); });
    if (info_.kind == FOVEA_LOGITS)
        static_cast<void>(logits(tokens, static_cast<std::uint32_t>(tokens.size())));
    else
        static_cast<void>(embed(tokens));
    return made;
}

}  // namespace fovea::node
