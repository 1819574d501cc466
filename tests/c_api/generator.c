/* Generators: texts of the demo model and tokens of a small one, held against the C++ interface and against themselves. */
#include "tests/c_api/check.h"

enum { kVocab = 71, kContext = 96, kMost = 256 };

static const char kPrompt[] = "turn on the garden dehumidifier\n";
static const char kAnswer[] = "{\"do\":\"on\",\"device\":\"dehumidifier\",\"room\":\"garden\"}";
static const uint32_t kTokens[10] = {3, 14, 15, 9, 26, 53, 58, 9, 7, 9};
static const fovea_limits kFour = {.struct_size = sizeof(fovea_limits), .max_batch = 16, .max_sequences = 4};

/* What a text came to. */
typedef struct {
    char text[1024];
    size_t n_bytes, n_tokens, n_logits;
    uint32_t tokens[kMost], finish;
    fovea_generate_figures figures;
} written;

static void add_piece(written* w, const fovea_piece* piece) {
    CHECK(w->n_bytes + piece->text.n_bytes < sizeof w->text && w->n_tokens + piece->n_tokens <= kMost);
    memcpy(w->text + w->n_bytes, piece->text.bytes, piece->text.n_bytes);
    w->text[w->n_bytes += piece->text.n_bytes] = 0;
    if (piece->n_tokens) memcpy(w->tokens + w->n_tokens, piece->tokens, piece->n_tokens * sizeof *w->tokens);
    w->n_tokens += piece->n_tokens;
    w->n_logits += piece->n_logits;
    w->finish = piece->finish;
}

static written finish_text(fovea_generator* generator, fovea_workspace* workspace) {
    written w = {.n_bytes = 0};
    fovea_piece piece = {.struct_size = sizeof piece};
    fovea_status status;
    do {
        status = fovea_generate(generator, workspace, &piece);
        GIVES(FOVEA_OK, status);
        if (status.code == FOVEA_OK) add_piece(&w, &piece);
    } while (status.code == FOVEA_OK && piece.finish == FOVEA_FINISH_NONE);
    w.figures.struct_size = sizeof w.figures;
    GIVES(FOVEA_OK, fovea_generator_figures(generator, &w.figures));
    CHECK(w.figures.n_tokens == w.n_tokens && fovea_generator_finish(generator) == w.finish);
    size_t n = 0;
    const uint32_t* tokens = fovea_generator_tokens(generator, &n);
    CHECK(n == w.figures.n_prompt + w.n_tokens);
    CHECK(memcmp(tokens + w.figures.n_prompt, w.tokens, w.n_tokens * sizeof *tokens) == 0);
    return w;
}

static fovea_generator* make_test_generator(const struct fovea_model* model, fovea_cache cache, uint32_t max_proposed) {
    const fovea_generator_limits limits = {.struct_size = sizeof limits, .max_proposed = max_proposed};
    fovea_generator_plan plan = {.struct_size = sizeof plan};
    fovea_generator* generator = NULL;
    GIVES(FOVEA_OK, fovea_plan_generator(model, &limits, &plan));
    GIVES(FOVEA_OK,
          fovea_make_generator(model, &cache, &limits, take(plan.arena_bytes), (size_t)plan.arena_bytes, &generator));
    return generator;
}

static fovea_session* make_test_session(const struct fovea_model* model) {
    const fovea_limits limits = {.struct_size = sizeof limits, .max_positions = kContext, .max_text_bytes = 64};
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_session* session = NULL;
    GIVES(FOVEA_OK, fovea_plan_session(model, &limits, &plan));
    GIVES(FOVEA_OK, fovea_make_session_of(model, &limits, take(plan.arena_bytes), (size_t)plan.arena_bytes, &session));
    return session;
}

static fovea_pool* make_test_pool(const struct fovea_model* model, uint32_t n_sequences) {
    const fovea_pool_limits limits = {.struct_size = sizeof limits, .max_sequences = n_sequences};
    fovea_pool_plan plan = {.struct_size = sizeof plan};
    fovea_pool* pool = NULL;
    GIVES(FOVEA_OK, fovea_plan_pool(model, &limits, &plan));
    GIVES(FOVEA_OK, fovea_make_pool(model, &limits, take(plan.arena_bytes), (size_t)plan.arena_bytes, &pool));
    return pool;
}

static fovea_cache new_cache(fovea_pool* pool) {
    fovea_cache cache = {0};
    GIVES(FOVEA_OK, fovea_make_cache(pool, &cache));
    return cache;
}

/* Exactly the planned bytes do, one fewer does not; what is missing or wrong is refused and changes nothing. */
void test_generator_plan(void) {
    const struct fovea_model* model = open_test_model(decoder_file());
    fovea_pool* pool = make_test_pool(model, 2);
    fovea_cache cache = new_cache(pool);
    fovea_generator_limits limits = {.struct_size = sizeof limits, .max_proposed = 3};
    fovea_generator_plan plan = {.struct_size = sizeof plan}, other = plan;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_plan_generator(NULL, &limits, &plan));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_plan_generator(model, NULL, &plan));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_plan_generator(model, &limits, NULL));
    limits.max_tokens = 161;
    GIVES(FOVEA_BAD_LIMITS, fovea_plan_generator(model, &limits, &plan));
    limits.max_tokens = 0;
    GIVES(FOVEA_UNSUPPORTED, fovea_plan_generator(open_test_model(encoder_file()), &limits, &plan));
    CHECK(plan.arena_bytes == 0);
    GIVES(FOVEA_OK, fovea_plan_generator(model, &limits, &plan));
    CHECK(plan.max_tokens == 160 && plan.max_stop_bytes == 256 && plan.max_proposed == 3);
    limits.struct_size = offsetof(fovea_generator_limits, max_proposed); /* a caller who knows no speculation */
    GIVES(FOVEA_OK, fovea_plan_generator(model, &limits, &other));
    CHECK(other.max_proposed == 0 && other.arena_bytes < plan.arena_bytes);
    limits.struct_size = sizeof limits;

    const size_t n = (size_t)plan.arena_bytes;
    unsigned char* arena = take(n);
    fovea_generator* generator = NULL;
    fovea_cache none = {0};
    GIVES(FOVEA_ARENA_TOO_SMALL, fovea_make_generator(model, &cache, &limits, arena, n - 1, &generator));
    GIVES(FOVEA_MISALIGNED, fovea_make_generator(model, &cache, &limits, arena + 8, n, &generator));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_make_generator(model, NULL, &limits, arena, n, &generator));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_make_generator(model, &none, &limits, arena, n, &generator));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_make_generator(NULL, &cache, &limits, arena, n, &generator));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_make_generator(model, &cache, NULL, arena, n, &generator));
    CHECK(!generator && arena[0] == 0);
    GIVES(FOVEA_OK, fovea_make_generator(model, &cache, &limits, arena, n, &generator));

    fovea_generate_options options = {.struct_size = sizeof options};
    fovea_step step = {.struct_size = sizeof step};
    fovea_piece piece = {.struct_size = sizeof piece};
    fovea_generate_figures figures = {.struct_size = sizeof figures};
    size_t n_tokens = 1;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_start(NULL, kTokens, 1, &options));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_resume(NULL, kTokens, 1));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_next_step(NULL, &step));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_take(NULL, &piece));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_generate(NULL, make_test_workspace(model, &kFour), &piece));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_generator_figures(NULL, &figures));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_generator_figures(generator, NULL));
    CHECK(!fovea_generator_tokens(NULL, &n_tokens) && n_tokens == 0);
    CHECK(fovea_generator_finish(NULL) == FOVEA_FINISH_NONE);
    /* There is no text yet. */
    GIVES(FOVEA_BAD_ARGUMENT, fovea_next_step(generator, &step));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_take(generator, &piece));
}

static void test_refused(fovea_generator* generator, const uint32_t* prompt, size_t n, fovea_workspace* workspace) {
    const uint32_t beyond = 0xffffffffu;
    const fovea_text empty = {"", 0}, half = {"\xc3", 1}, good = {"x", 1};
    fovea_text many[300];
    for (int i = 0; i < 300; ++i) many[i] = good;
    fovea_sampler sampler = {.struct_size = sizeof sampler, .temperature = -1};
    fovea_speculation speculation = {.struct_size = sizeof speculation, .n_proposed = 1};
    fovea_token_filter filter = {.struct_size = 3};
    fovea_generate_options options = {.struct_size = sizeof options}, bad[7];
    for (int i = 0; i < 7; ++i) bad[i] = options;
    bad[0].sampler = &sampler;
    bad[1].speculation = &speculation; /* more than the generator's none */
    bad[2].filter = &filter;
    bad[3].struct_size = 2;
    bad[4].stop = &empty, bad[4].n_stop = 1;
    bad[5].stop = &half, bad[5].n_stop = 1;
    bad[6].stop = many, bad[6].n_stop = 300; /* more than its 256 bytes */
    for (int i = 0; i < 6; ++i) GIVES(FOVEA_BAD_ARGUMENT, fovea_start(generator, prompt, n, bad + i));
    GIVES(FOVEA_BUFFER_TOO_SMALL, fovea_start(generator, prompt, n, bad + 6));
    bad[6].n_stop = (size_t)1 << 40;
    GIVES(FOVEA_BUFFER_TOO_SMALL, fovea_start(generator, prompt, n, bad + 6));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_start(generator, prompt, n, NULL));
    GIVES(FOVEA_BAD_SHAPE, fovea_start(generator, prompt, 0, &options));
    GIVES(FOVEA_TOKEN_OUT_OF_RANGE, fovea_start(generator, &beyond, 1, &options));
    GIVES(FOVEA_BAD_SHAPE, fovea_resume(generator, prompt, n));
    /* Turns: without a workspace, a step, a piece, or before the step was computed. */
    fovea_piece piece = {.struct_size = sizeof piece};
    fovea_step step = {.struct_size = offsetof(fovea_step, logits)};
    GIVES(FOVEA_OK, fovea_start(generator, prompt, n, &options));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_generate(generator, NULL, &piece));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_generate(generator, workspace, NULL));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_next_step(generator, NULL));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_next_step(generator, &step)); /* would forget where logits go */
    step.struct_size = sizeof step;
    GIVES(FOVEA_OK, fovea_next_step(generator, &step));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_take(generator, &piece));
    CHECK(step.n_tokens == 1 && step.tokens[0] == prompt[n - 1] && piece.n_tokens == 0); /* the rest is cached */
}

/* The demo's answer: whole, cut by a stop string, by a length, by the context. */
void test_texts(const struct fovea_model* demo) {
    fovea_session* session = make_test_session(demo);
    fovea_workspace* workspace = fovea_session_workspace(session);
    uint32_t prompt[64];
    size_t n = 0;
    GIVES(FOVEA_OK, fovea_tokenize(session, kPrompt, strlen(kPrompt), 0, prompt, 64, &n));
    fovea_generator* generator = make_test_generator(demo, fovea_session_cache(session), 0);
    fovea_generate_options options = {.struct_size = sizeof options};
    fovea_info info = {.struct_size = sizeof info};
    GIVES(FOVEA_OK, fovea_model_info(demo, &info));
    GIVES(FOVEA_OK, fovea_start(generator, prompt, n, &options));
    const written whole = finish_text(generator, workspace);
    CHECK(strcmp(whole.text, kAnswer) == 0 && whole.finish == FOVEA_FINISH_END_TOKEN);
    CHECK(whole.n_logits == whole.n_tokens * info.vocab_size && whole.figures.n_prompt == n);
    CHECK(whole.figures.n_kept == 0 && whole.figures.n_passes == whole.n_tokens);

    /* A string that begins and ends within tokens, beside one that never comes. */
    const fovea_text stop[2] = {{"never", 5}, {"\"dehum", 6}};
    options.stop = stop;
    options.n_stop = 2;
    GIVES(FOVEA_OK, fovea_start(generator, prompt, n, &options));
    const written cut = finish_text(generator, workspace);
    const size_t before = (size_t)(strstr(kAnswer, "\"dehum") - kAnswer);
    CHECK(cut.n_bytes == before && memcmp(cut.text, kAnswer, before) == 0 && cut.finish == FOVEA_FINISH_STOP_TEXT);
    CHECK(cut.n_tokens < whole.n_tokens && cut.figures.n_kept == n - 1);

    options.n_stop = 0;
    options.n_new = 5;
    GIVES(FOVEA_OK, fovea_start(generator, prompt, n, &options));
    const written five = finish_text(generator, workspace);
    CHECK(five.n_tokens == 5 && five.finish == FOVEA_FINISH_LENGTH);
    CHECK(memcmp(five.tokens, whole.tokens, 5 * sizeof *five.tokens) == 0);
    test_refused(generator, prompt, n, workspace);

    /* A seed has one text, and another than the most likely tokens'. */
    const fovea_sampler sampler = {.struct_size = sizeof sampler, .temperature = 3, .seed = 7};
    options.n_new = 0;
    options.sampler = &sampler;
    written sampled[2];
    for (int i = 0; i < 2; ++i) {
        GIVES(FOVEA_OK, fovea_start(generator, prompt, n, &options));
        sampled[i] = finish_text(generator, workspace);
    }
    CHECK(strcmp(sampled[0].text, sampled[1].text) == 0 && strcmp(sampled[0].text, kAnswer) != 0);
}

/* Forbids every token but one more than the text's last, and counts what it is told. */
typedef struct {
    size_t n_allowed, n_accepted;
    uint32_t last;
} ladder;

static void allow_next(void* context, const uint32_t* text, size_t n_text, uint32_t* mask, size_t n_mask) {
    ladder* l = context;
    CHECK(n_mask == (kVocab + 31) / 32 && n_text == 10 + l->n_accepted);
    const uint32_t next = (text[n_text - 1] + 1) % kVocab, bit = mask[next / 32] & 1u << next % 32;
    for (size_t i = 0; i < n_mask; ++i) mask[i] = 0;
    mask[next / 32] = bit;
    ++l->n_allowed;
}

static void accept_next(void* context, uint32_t token) {
    ladder* l = context;
    CHECK(l->n_allowed == ++l->n_accepted);
    l->last = token;
}

static void test_filter(fovea_generator* generator, fovea_workspace* workspace) {
    ladder l = {.n_allowed = 0};
    uint32_t allowed[(kVocab + 31) / 32] = {~0u, ~0u, ~0u};
    fovea_token_filter filter = {
        .struct_size = sizeof filter, .allow = allow_next, .accept = accept_next, .context = &l};
    const fovea_generate_options options = {.struct_size = sizeof options, .n_new = 6, .filter = &filter};
    GIVES(FOVEA_OK, fovea_start(generator, kTokens, 10, &options));
    written w = finish_text(generator, workspace);
    for (uint32_t i = 0; i < 6; ++i) CHECK(w.tokens[i] == kTokens[9] + 1 + i);
    CHECK(l.n_accepted == 6 && l.last == kTokens[9] + 6);

    /* Beside a list that ends the ladder at its third step: no token is left. */
    l = (ladder){.n_allowed = 0};
    allowed[0] = ~(1u << (kTokens[9] + 3));
    filter.allowed = allowed;
    fovea_piece piece = {.struct_size = sizeof piece};
    GIVES(FOVEA_OK, fovea_start(generator, kTokens, 10, &options));
    for (int i = 0; i < 2; ++i) GIVES(FOVEA_OK, fovea_generate(generator, workspace, &piece));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_generate(generator, workspace, &piece));
    CHECK(l.n_accepted == 2 && fovea_generator_finish(generator) == FOVEA_FINISH_NONE);

    /* The list alone. */
    filter.allow = NULL;
    filter.accept = NULL;
    memset(allowed, 0, sizeof allowed);
    allowed[1] = 1u << 8;
    GIVES(FOVEA_OK, fovea_start(generator, kTokens, 10, &options));
    w = finish_text(generator, workspace);
    for (int i = 0; i < 6; ++i) CHECK(w.tokens[i] == 40);

    /* Tokens that end the text, which is empty then. */
    const uint32_t ends[2] = {7, 40};
    fovea_generate_options ended = options;
    ended.n_end_tokens = 2;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_start(generator, kTokens, 10, &ended));
    ended.end_tokens = ends;
    GIVES(FOVEA_OK, fovea_start(generator, kTokens, 10, &ended));
    w = finish_text(generator, workspace);
    CHECK(w.n_tokens == 0 && w.finish == FOVEA_FINISH_END_TOKEN);
}

/* The small model's tokens: those of the C++ interface, with each option; until the context is full. */
void test_tokens(void) {
    const struct fovea_model* model = open_test_model(decoder_file());
    fovea_workspace* workspace = make_test_workspace(model, &kFour);
    fovea_cache cache = fovea_session_cache(make_test_session(model));
    fovea_generator* generator = make_test_generator(model, cache, 0);
    uint32_t expected[kMost];
    const fovea_sampler samplers[4] = {
        {.struct_size = sizeof(fovea_sampler)},
        {.struct_size = sizeof(fovea_sampler), .temperature = 0.8f, .top_k = 20, .seed = 5},
        {.struct_size = sizeof(fovea_sampler), .temperature = 1, .top_p = 0.9f, .repeat_penalty = 1.3f, .seed = 6},
        {.struct_size = sizeof(fovea_sampler), .frequency_penalty = 0.9f}};
    for (int i = 0; i < 4; ++i) {
        const fovea_generate_options options = {.struct_size = sizeof options,
                                                .n_new = 30,
                                                .sampler = samplers + i,
                                                .n_recent = 9,
                                                .n_counted = 9,
                                                .counts_prompt = 1};
        GIVES(FOVEA_OK, fovea_start(generator, kTokens, 10, &options));
        const written w = finish_text(generator, workspace);
        CHECK(w.n_tokens == 30 && w.finish == FOVEA_FINISH_LENGTH && w.n_bytes == 0);
        cpp_generate(kTokens, 10, samplers[i].temperature, samplers[i].top_k, samplers[i].top_p,
                     samplers[i].repeat_penalty, samplers[i].frequency_penalty, samplers[i].seed, 9, expected, 30);
        CHECK(memcmp(expected, w.tokens, 30 * sizeof *expected) == 0);
    }
    const fovea_generate_options all = {.struct_size = sizeof all};
    GIVES(FOVEA_OK, fovea_start(generator, kTokens, 10, &all));
    const written w = finish_text(generator, workspace);
    CHECK(w.n_tokens == kContext - 10 && w.finish == FOVEA_FINISH_CONTEXT);
    const fovea_text stop = {"x", 1};
    const fovea_generate_options stopped = {.struct_size = sizeof stopped, .stop = &stop, .n_stop = 1};
    GIVES(FOVEA_SECTION_MISSING, fovea_start(generator, kTokens, 10, &stopped)); /* there is no tokenizer */
    test_filter(generator, workspace);
}

static uint64_t tick(void) {
    static uint64_t now;
    return ++now;
}

/* Proposals out of the text and by a draft: the same tokens in fewer passes. */
void test_speculation(void) {
    const struct fovea_model* model = open_test_model(decoder_file());
    fovea_workspace* workspace = make_test_workspace(model, &kFour);
    fovea_pool* pool = make_test_pool(model, 2);
    fovea_cache cache = new_cache(pool), draft_cache = new_cache(pool);
    fovea_generator* generator = make_test_generator(model, cache, 4);
    const uint32_t repeated[12] = {3, 14, 15, 9, 3, 14, 15, 9, 3, 14, 15, 9};
    fovea_generate_options options = {.struct_size = sizeof options, .n_new = 60};
    GIVES(FOVEA_OK, fovea_start(generator, repeated, 12, &options));
    const written plain = finish_text(generator, workspace);
    CHECK(plain.n_tokens == 60 && plain.figures.n_passes == 59 && plain.figures.n_proposed == 0);

    fovea_speculation speculation = {.struct_size = sizeof speculation, .n_proposed = 4, .always = 1, .clock = tick};
    options.speculation = &speculation;
    for (int drafted = 0; drafted < 2; ++drafted) {
        if (drafted) {
            speculation.draft = make_test_workspace(model, &kFour);
            speculation.draft_cache = cache;
            GIVES(FOVEA_BAD_ARGUMENT, fovea_start(generator, repeated, 12, &options)); /* the generator's own cache */
            speculation.draft_cache = draft_cache;
        }
        GIVES(FOVEA_OK, fovea_start(generator, repeated, 12, &options));
        const written w = finish_text(generator, workspace);
        CHECK(w.n_tokens == 60 && memcmp(w.tokens, plain.tokens, 60 * sizeof *w.tokens) == 0);
        CHECK(w.n_logits == plain.n_logits && w.figures.n_proposed > 0);
        CHECK(w.figures.n_accepted + w.figures.n_passes >= 59 && (w.figures.n_draft_passes > 0) == drafted);
        /* The model drafts what it will choose: five tokens a pass. */
        if (drafted) CHECK(w.figures.n_accepted == w.figures.n_proposed && w.figures.n_passes <= 15);
    }
    speculation.row_cost = -1;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_start(generator, repeated, 12, &options));
    speculation.row_cost = 0;
    speculation.n_proposed = 5;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_start(generator, repeated, 12, &options));
}

/* Three texts of different prompts and samplers in one pass after another, each as it is alone; one goes on from a copy. */
void test_generators(void) {
    enum { kN = 3 };
    const struct fovea_model* model = open_test_model(decoder_file());
    fovea_workspace* workspace = make_test_workspace(model, &kFour);
    fovea_pool* pool = make_test_pool(model, kN + 1);
    fovea_cache caches[kN], copy = {0};
    fovea_generator* generators[kN];
    written alone[kN], together[kN];
    fovea_step steps[kN];
    fovea_piece piece = {.struct_size = sizeof piece};
    for (uint32_t i = 0; i < kN; ++i) {
        const fovea_sampler sampler = {.struct_size = sizeof sampler, .temperature = 1, .seed = i};
        const fovea_generate_options options = {.struct_size = sizeof options, .n_new = 20, .sampler = &sampler};
        caches[i] = new_cache(pool);
        generators[i] = make_test_generator(model, caches[i], 0);
        GIVES(FOVEA_OK, fovea_start(generators[i], kTokens + i, 4, &options));
        alone[i] = finish_text(generators[i], workspace);
        GIVES(FOVEA_OK, fovea_rewind_cache(caches + i, 0, NULL));
        GIVES(FOVEA_OK, fovea_resume(generators[i], NULL, 0));
        GIVES(FOVEA_OK, fovea_start(generators[i], kTokens + i, 4, &options));
        together[i] = (written){.n_bytes = 0};
        steps[i] = (fovea_step){.struct_size = sizeof(fovea_step)};
    }
    for (int turn = 0; turn < 20; ++turn) {
        for (int i = 0; i < kN; ++i) GIVES(FOVEA_OK, fovea_next_step(generators[i], steps + i));
        GIVES(FOVEA_OK, fovea_forward_steps(workspace, steps, kN));
        for (int i = 0; i < kN; ++i) {
            GIVES(FOVEA_OK, fovea_take(generators[i], &piece));
            add_piece(together + i, &piece);
        }
    }
    for (int i = 0; i < kN; ++i) {
        CHECK(together[i].finish == FOVEA_FINISH_LENGTH && together[i].n_tokens == 20);
        CHECK(memcmp(together[i].tokens, alone[i].tokens, 20 * sizeof *alone[i].tokens) == 0);
    }

    /* A fork of the first text's cache holds its tokens but the last: what is the same is not computed again. */
    GIVES(FOVEA_OK, fovea_fork_cache(caches, &copy));
    fovea_generator* fork = make_test_generator(model, copy, 0);
    size_t n = 0;
    const uint32_t* tokens = fovea_generator_tokens(generators[0], &n);
    GIVES(FOVEA_BAD_SHAPE, fovea_resume(fork, tokens, n));
    GIVES(FOVEA_OK, fovea_resume(fork, tokens, n - 1));
    const fovea_generate_options options = {.struct_size = sizeof options, .n_new = 3};
    GIVES(FOVEA_OK, fovea_start(fork, tokens, n, &options));
    const written w = finish_text(fork, workspace);
    CHECK(w.figures.n_kept == n - 1 && w.n_tokens == 3);
}
