/* Answers of a form by the C interface alone: the demo model asked for what it would not say by itself. */
#include "tests/c_api/check.h"

static const char kSchema[] =
    "{\"type\":\"object\",\"properties\":{\"status\":{\"enum\":[\"ready\",\"asleep\"]},\"percent\":{\"type\":"
    "\"integer\",\"minimum\":7,"
    "\"maximum\":7}},\"required\":[\"status\",\"percent\"],\"additionalProperties\":false}";
extern const unsigned char fovea_model[], fovea_model_end[];
enum { kMostTokens = 128 };

static size_t tokenize_prompt(const struct fovea_model* demo, uint32_t* tokens) {
    static const char prompt[] = "turn on the garden dehumidifier\n";
    fovea_limits limits = {.struct_size = sizeof limits, .max_positions = 64, .max_text_bytes = 64};
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_session* session = NULL;
    size_t n = 0;
    GIVES(FOVEA_OK, fovea_plan_session(demo, &limits, &plan));
    GIVES(FOVEA_OK, fovea_make_session_of(demo, &limits, take(plan.arena_bytes), (size_t)plan.arena_bytes, &session));
    GIVES(FOVEA_OK, fovea_tokenize(session, prompt, sizeof prompt - 1, 0, tokens, kMostTokens, &n));
    return n;
}

static void answer(const struct fovea_model* demo, fovea_constraint_state* state, uint32_t max_proposed) {
    uint32_t tokens[kMostTokens];
    const size_t n_tokens = tokenize_prompt(demo, tokens);
    const fovea_limits limits = {.struct_size = sizeof limits, .max_positions = kMostTokens, .max_batch = 16};
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_session* session = NULL;
    GIVES(FOVEA_OK, fovea_plan_session(demo, &limits, &plan));
    GIVES(FOVEA_OK, fovea_make_session_of(demo, &limits, take(plan.arena_bytes), (size_t)plan.arena_bytes, &session));
    const fovea_cache cache = fovea_session_cache(session);
    const fovea_generator_limits room = {
        .struct_size = sizeof room, .max_tokens = kMostTokens, .max_proposed = max_proposed};
    fovea_generator_plan wanted = {.struct_size = sizeof wanted};
    fovea_generator* generator = NULL;
    GIVES(FOVEA_OK, fovea_plan_generator(demo, &room, &wanted));
    GIVES(FOVEA_OK,
          fovea_make_generator(demo, &cache, &room, take(wanted.arena_bytes), (size_t)wanted.arena_bytes, &generator));
    fovea_token_filter filter = {.struct_size = sizeof filter};
    GIVES(FOVEA_OK, fovea_constraint_filter(state, &filter));
    const fovea_generate_options options = {.struct_size = sizeof options, .filter = &filter};
    GIVES(FOVEA_OK, fovea_start(generator, tokens, n_tokens, &options));
    char text[256] = {0};
    size_t n = 0;
    fovea_piece piece = {.struct_size = sizeof piece};
    do {
        const fovea_status status = fovea_generate(generator, fovea_session_workspace(session), &piece);
        GIVES(FOVEA_OK, status);
        if (status.code != FOVEA_OK) return;
        CHECK(n + piece.text.n_bytes < sizeof text);
        memcpy(text + n, piece.text.bytes, piece.text.n_bytes);
        n += piece.text.n_bytes;
    } while (piece.finish == FOVEA_FINISH_NONE);
    CHECK(piece.finish == FOVEA_FINISH_END_TOKEN && fovea_constraint_can_end(state) &&
          fovea_constraint_must_end(state));
    CHECK(strcmp(text, "{\"status\":\"ready\",\"percent\":7}") == 0 ||
          strcmp(text, "{\"status\":\"asleep\",\"percent\":7}") == 0);
    fovea_generate_figures figures = {.struct_size = sizeof figures};
    GIVES(FOVEA_OK, fovea_generator_figures(generator, &figures));
    CHECK((figures.n_forced > 0) == (max_proposed > 0));
}

static void refuse(const struct fovea_model* demo, test_file form) {
    void* memory = take(FOVEA_CONSTRAINT_BYTES);
    fovea_constraint* constraint = NULL;
    fovea_constraint_state* state = NULL;
    GIVES(FOVEA_BAD_ARGUMENT,
          fovea_open_constraint(NULL, form.bytes, form.n_bytes, NULL, 0, memory, FOVEA_CONSTRAINT_BYTES, &constraint));
    GIVES(FOVEA_ARENA_TOO_SMALL,
          fovea_open_constraint(demo, form.bytes, form.n_bytes, NULL, 0, memory, 63, &constraint));
    GIVES(FOVEA_TRUNCATED,
          fovea_open_constraint(demo, form.bytes, 40, NULL, 0, memory, FOVEA_CONSTRAINT_BYTES, &constraint));
    GIVES(FOVEA_TRUNCATED,
          fovea_open_constraint(demo, NULL, 100, NULL, 0, memory, FOVEA_CONSTRAINT_BYTES, &constraint));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_make_constraint_state(NULL, memory, FOVEA_CONSTRAINT_BYTES, &state));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_restart_constraint(NULL));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_copy_constraint(NULL, NULL));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_allow_tokens(NULL, NULL, 0));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_constraint_filter(NULL, NULL));
    CHECK(constraint == NULL && state == NULL && fovea_constraint_state_bytes(NULL) == 0 &&
          !fovea_advance_constraint(NULL, 1));
    CHECK(!fovea_constraint_can_end(NULL) && !fovea_constraint_must_end(NULL) &&
          fovea_forced_tokens(NULL, NULL, 0) == 0);
}

void test_constraint(const struct fovea_model* demo) {
    const test_file file = {fovea_model, (size_t)(fovea_model_end - fovea_model)};
    const test_file form = schema_form(file, kSchema);
    refuse(demo, form);
    fovea_constraint* constraint = NULL;
    GIVES(FOVEA_OK, fovea_open_constraint(demo, form.bytes, form.n_bytes, NULL, 0, take(FOVEA_CONSTRAINT_BYTES),
                                          FOVEA_CONSTRAINT_BYTES, &constraint));
    const size_t n_bytes = (size_t)fovea_constraint_state_bytes(constraint);
    fovea_constraint_state *state = NULL, *other = NULL;
    GIVES(FOVEA_ARENA_TOO_SMALL, fovea_make_constraint_state(constraint, take(n_bytes), n_bytes - 1, &state));
    GIVES(FOVEA_OK, fovea_make_constraint_state(constraint, take(n_bytes), n_bytes, &state));
    GIVES(FOVEA_OK, fovea_make_constraint_state(constraint, take(n_bytes), n_bytes, &other));
    answer(demo, state, 0);
    GIVES(FOVEA_OK, fovea_copy_constraint(state, other));
    CHECK(fovea_constraint_must_end(other));
    GIVES(FOVEA_OK, fovea_restart_constraint(state));
    CHECK(!fovea_constraint_can_end(state));
    answer(demo, state, 6);
    /* By hand: the tokens that may come first all start with a brace. */
    GIVES(FOVEA_OK, fovea_restart_constraint(state));
    uint32_t mask[64];
    memset(mask, 0xff, sizeof mask);
    GIVES(FOVEA_OK, fovea_allow_tokens(state, mask, 64));
    uint32_t n_allowed = 0, last = 0;
    for (uint32_t id = 0; id < 64 * 32; ++id)
        if (mask[id / 32] >> id % 32 & 1) {
            ++n_allowed;
            last = id;
        }
    CHECK(n_allowed > 0 && fovea_advance_constraint(state, last) && !fovea_constraint_can_end(state));
}
