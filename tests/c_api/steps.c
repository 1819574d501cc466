/* Workspaces, pools, caches and steps: the bits of each sequence alone, and every refusal. */
#include <pthread.h>

#include "tests/c_api/check.h"

enum { kVocab = 71 };

static const uint32_t kTokens[12] = {3, 14, 15, 9, 26, 53, 58, 9, 7, 9, 32, 38};

static fovea_pool* make_test_pool(const struct fovea_model* model, uint32_t n_sequences, uint32_t n_pages,
                                  uint32_t type) {
    const fovea_pool_limits limits = {
        .struct_size = sizeof limits, .max_sequences = n_sequences, .n_pages = n_pages, .kv_type = type};
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

static fovea_step step_of(fovea_cache cache, const uint32_t* tokens, size_t n, float* logits, size_t n_rows) {
    return (fovea_step){.struct_size = sizeof(fovea_step),
                        .cache = cache,
                        .tokens = tokens,
                        .n_tokens = n,
                        .logits = logits,
                        .n_logits = n_rows * kVocab};
}

static const fovea_limits kEight = {.struct_size = sizeof(fovea_limits), .max_batch = 8, .max_sequences = 4};

void test_pools(void) {
    const struct fovea_model* model = open_test_model(decoder_file());
    fovea_pool_limits limits = {.struct_size = sizeof limits, .max_sequences = 2, .n_pages = 3};
    fovea_pool_plan plan = {.struct_size = sizeof plan};
    GIVES(FOVEA_BAD_ARGUMENT, fovea_plan_pool(NULL, &limits, &plan));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_plan_pool(model, NULL, &plan));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_plan_pool(model, &limits, NULL));
    limits.page_len = 65;
    GIVES(FOVEA_BAD_LIMITS, fovea_plan_pool(model, &limits, &plan));
    limits.page_len = 0;
    limits.kv_type = 9;
    GIVES(FOVEA_BAD_LIMITS, fovea_plan_pool(model, &limits, &plan));
    limits.kv_type = FOVEA_F32;
    CHECK(plan.arena_bytes == 0);
    GIVES(FOVEA_UNSUPPORTED, fovea_plan_pool(open_test_model(encoder_file()), &limits, &plan));
    GIVES(FOVEA_OK, fovea_plan_pool(model, &limits, &plan));
    CHECK(plan.max_positions == 160 && plan.page_len == 64 && plan.n_pages == 3 && plan.max_sequences == 2);

    const size_t n = (size_t)plan.arena_bytes;
    unsigned char* arena = take(n + 64);
    fovea_pool* pool = NULL;
    GIVES(FOVEA_ARENA_TOO_SMALL, fovea_make_pool(model, &limits, arena, n - 1, &pool));
    GIVES(FOVEA_MISALIGNED, fovea_make_pool(model, &limits, arena + 8, n, &pool));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_make_pool(NULL, &limits, arena, n, &pool));
    CHECK(!pool && arena[0] == 0);
    GIVES(FOVEA_OK, fovea_make_pool(model, &limits, arena, n, &pool));
    for (int i = 0; i < 64; ++i) CHECK(arena[n + (size_t)i] == 0);

    fovea_cache a = new_cache(pool), b = new_cache(pool), c = {0};
    CHECK(fovea_free_pages(pool) == 3 && fovea_free_sequences(pool) == 0);
    GIVES(FOVEA_POOL_FULL, fovea_make_cache(pool, &c));
    GIVES(FOVEA_POOL_FULL, fovea_fork_cache(&a, &c));
    CHECK(!c.pool);
    GIVES(FOVEA_BAD_ARGUMENT, fovea_rewind_cache(&a, 1, NULL));
    GIVES(FOVEA_OK, fovea_end_cache(&b));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_end_cache(&b));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_fork_cache(&b, &c));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_rewind_cache(&b, 0, NULL));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_mark_cache(&b));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_unmark_cache(NULL, 0));
    CHECK(fovea_cache_reach(&b, 3) == 0 && fovea_free_states(NULL) == 0);
    CHECK(fovea_cache_max_kv_len(&a) == 160 && fovea_cache_max_kv_len(&b) == 0 && fovea_cache_bytes(&b) == 0);
    /* Neither a pool nor a cache. */
    GIVES(FOVEA_BAD_ARGUMENT, fovea_make_cache(NULL, &c));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_fork_cache(NULL, &c));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_end_cache(NULL));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_end_cache(&c));
    CHECK(fovea_free_pages(NULL) == 0 && fovea_free_sequences(NULL) == 0 && fovea_cache_kv_len(NULL) == 0);
    CHECK(fovea_cache_pages(NULL) == 0);
}

/* Three sequences in one pass, a fork, and each alone by the C++ interface. */
static void test_together(fovea_workspace* workspace, fovea_pool* pool) {
    float *alone = take_floats(12 * kVocab), *each = take_floats(12 * kVocab), *last = take_floats(kVocab);
    fovea_cache a = new_cache(pool), b = new_cache(pool), c = new_cache(pool), fork = {0};
    const fovea_step steps[3] = {step_of(a, kTokens, 10, each, 10), step_of(b, kTokens + 5, 4, last, 1),
                                 step_of(c, kTokens, 3, NULL, 0)};
    GIVES(FOVEA_OK, fovea_forward_steps(workspace, steps, 3));
    CHECK(fovea_cache_kv_len(&a) == 10 && fovea_cache_kv_len(&b) == 4 && fovea_cache_pages(&c) == 1);
    cpp_forward(kTokens, 10, alone);
    CHECK(same_floats(each, alone, 10 * kVocab));
    cpp_forward(kTokens + 5, 4, alone);
    CHECK(same_floats(last, alone + 3 * kVocab, kVocab));

    /* c's three tokens go on in two ways. */
    const uint32_t n_free = fovea_free_pages(pool);
    GIVES(FOVEA_OK, fovea_fork_cache(&c, &fork));
    CHECK(fovea_free_pages(pool) == n_free && fovea_cache_kv_len(&fork) == 3);
    const fovea_step ways[2] = {step_of(fork, kTokens + 3, 1, last, 1), step_of(c, kTokens + 8, 1, each, 1)};
    GIVES(FOVEA_OK, fovea_forward_steps(workspace, ways, 2));
    CHECK(fovea_free_pages(pool) == n_free - 1);
    cpp_forward(kTokens, 4, alone);
    CHECK(same_floats(last, alone + 3 * kVocab, kVocab));
    const uint32_t other[4] = {kTokens[0], kTokens[1], kTokens[2], kTokens[8]};
    cpp_forward(other, 4, alone);
    CHECK(same_floats(each, alone + 3 * kVocab, kVocab));

    /* With keys and values alone rewind reaches every length, and a mark keeps nothing. */
    uint32_t reached = 99;
    GIVES(FOVEA_OK, fovea_mark_cache(&c));
    CHECK(fovea_cache_reach(&c, 3) == 3 && fovea_cache_reach(&c, 9) == 4 && fovea_free_states(pool) == 0);
    GIVES(FOVEA_OK, fovea_rewind_cache(&c, 3, &reached));
    CHECK(reached == 3);
    GIVES(FOVEA_OK, fovea_unmark_cache(&c, 4));
    const fovea_step again = step_of(c, kTokens + 3, 1, each, 1);
    GIVES(FOVEA_OK, fovea_forward_steps(workspace, &again, 1));
    CHECK(same_floats(each, last, kVocab));
    fovea_cache* all[4] = {&a, &b, &c, &fork};
    for (int i = 0; i < 4; ++i) GIVES(FOVEA_OK, fovea_end_cache(all[i]));
    CHECK(fovea_free_sequences(pool) == 5);
}

static void test_refused(fovea_workspace* workspace, const struct fovea_model* model) {
    fovea_pool* pool = make_test_pool(model, 6, 2, FOVEA_F32);
    fovea_cache a = new_cache(pool), b = new_cache(pool), c = new_cache(pool), ended = new_cache(pool);
    GIVES(FOVEA_OK, fovea_end_cache(&ended));
    float* logits = take_floats(2 * kVocab);
    const uint32_t beyond = kVocab;
    static uint32_t many[161];
    const fovea_step good = step_of(a, kTokens, 2, logits, 1);
    const fovea_step twice[2] = {good, step_of(a, kTokens, 1, NULL, 0)};
    const fovea_step gone[2] = {good, step_of(ended, kTokens, 1, NULL, 0)};
    const fovea_step bad_token[2] = {good, step_of(b, &beyond, 1, NULL, 0)};
    const fovea_step none[2] = {good, step_of(b, kTokens, 0, NULL, 0)};
    const fovea_step too_long[2] = {good, step_of(b, many, 161, NULL, 0)};
    const fovea_step full[3] = {good, step_of(b, kTokens, 1, NULL, 0), step_of(c, kTokens, 1, NULL, 0)};
    fovea_step odd[2] = {good, step_of(b, kTokens, 2, logits, 2)};
    odd[1].n_logits = kVocab - 1;
    const fovea_step five[5] = {good, good, good, good, good};
    GIVES(FOVEA_BAD_ARGUMENT, fovea_forward_steps(NULL, &good, 1));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_forward_steps(workspace, NULL, 1));
    GIVES(FOVEA_BAD_SHAPE, fovea_forward_steps(workspace, NULL, 0));
    GIVES(FOVEA_BAD_SHAPE, fovea_forward_steps(workspace, five, 5));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_forward_steps(workspace, twice, 2));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_forward_steps(workspace, gone, 2));
    GIVES(FOVEA_TOKEN_OUT_OF_RANGE, fovea_forward_steps(workspace, bad_token, 2));
    GIVES(FOVEA_BAD_SHAPE, fovea_forward_steps(workspace, none, 2));
    GIVES(FOVEA_BAD_SHAPE, fovea_forward_steps(workspace, odd, 2));
    GIVES(FOVEA_CONTEXT_FULL, fovea_forward_steps(workspace, too_long, 2));
    GIVES(FOVEA_POOL_FULL, fovea_forward_steps(workspace, full, 3));
    CHECK(fovea_cache_kv_len(&a) == 0 && fovea_cache_kv_len(&b) == 0 && fovea_free_pages(pool) == 2);
    GIVES(FOVEA_OK, fovea_forward_steps(workspace, full, 2));
    CHECK(fovea_free_pages(pool) == 0);
    GIVES(FOVEA_BAD_ARGUMENT, fovea_cancel(workspace, 1));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_cancel(NULL, 1));

    /* A cache of another model, and models that give no logits. */
    fovea_pool* same = make_test_pool(open_test_model(decoder_file()), 1, 0, FOVEA_F16);
    const fovea_step other = step_of(new_cache(same), kTokens, 1, NULL, 0);
    GIVES(FOVEA_OK, fovea_forward_steps(workspace, &other, 1)); /* the same file, opened twice */
    const struct fovea_model* encoder = open_test_model(encoder_file());
    const fovea_limits none_asked = {.struct_size = sizeof none_asked};
    fovea_plan plan = {.struct_size = sizeof plan};
    GIVES(FOVEA_UNSUPPORTED, fovea_forward_steps(make_test_workspace(encoder, &none_asked), &good, 1));
    GIVES(FOVEA_UNSUPPORTED, fovea_plan_session(encoder, &none_asked, &plan));
    CHECK(plan.arena_bytes == 0);
}

void test_steps(void) {
    const struct fovea_model* model = open_test_model(decoder_file());
    fovea_plan plan = {.struct_size = sizeof plan};
    GIVES(FOVEA_OK, fovea_plan_workspace(model, &kEight, &plan));
    CHECK(plan.vocab_size == kVocab && plan.max_batch == 8 && plan.max_sequences == 4);
    const size_t n = (size_t)plan.arena_bytes;
    unsigned char* arena = take(n + 64);
    fovea_workspace* workspace = NULL;
    fovea_limits limits = kEight;
    GIVES(FOVEA_ARENA_TOO_SMALL, fovea_make_workspace(model, &limits, arena, n - 1, &workspace));
    GIVES(FOVEA_MISALIGNED, fovea_make_workspace(model, &limits, arena + 8, n, &workspace));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_make_workspace(NULL, &limits, arena, n, &workspace));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_make_workspace(model, NULL, arena, n, &workspace));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_plan_workspace(model, &limits, NULL));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_plan_workspace(NULL, &limits, &plan));
    limits.isa = "abacus";
    GIVES(FOVEA_ISA_UNAVAILABLE, fovea_make_workspace(model, &limits, arena, n, &workspace));
    CHECK(!workspace && arena[0] == 0);
    CHECK(strcmp(fovea_isa(NULL), "") == 0);
    for (size_t i = 0; fovea_isa_name(i); ++i) {
        limits.isa = fovea_isa_name(i);
        GIVES(FOVEA_OK, fovea_make_workspace(model, &limits, arena, n, &workspace));
        CHECK(strcmp(fovea_isa(workspace), limits.isa) == 0);
        test_together(workspace, make_test_pool(model, 5, 0, FOVEA_F32));
    }
    for (size_t i = 0; i < 64; ++i) CHECK(arena[n + i] == 0);
    test_refused(workspace, model);
}

/* Steps of callers that know fewer fields, or more. */
void test_step_structs(void) {
    typedef struct {
        fovea_step known;
        uint64_t later;
    } later_step;
    const struct fovea_model* model = open_test_model(decoder_file());
    fovea_workspace* workspace = make_test_workspace(model, &kEight);
    fovea_pool* pool = make_test_pool(model, 4, 0, FOVEA_F32);
    fovea_cache a = new_cache(pool), b = new_cache(pool);
    float *first = take_floats(kVocab), *second = take_floats(kVocab), *alone = take_floats(3 * kVocab);
    later_step more[2] = {{step_of(a, kTokens, 3, first, 1), 0}, {step_of(b, kTokens, 2, second, 1), 0}};
    more[0].known.struct_size = sizeof more[0];
    GIVES(FOVEA_BAD_ARGUMENT, fovea_forward_steps(workspace, &more[0].known, 2)); /* the second has another size */
    more[1].known.struct_size = sizeof more[1];
    more[1].later = 1;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_forward_steps(workspace, &more[0].known, 2));
    CHECK(fovea_cache_kv_len(&a) == 0);
    more[1].later = 0;
    GIVES(FOVEA_OK, fovea_forward_steps(workspace, &more[0].known, 2));
    cpp_forward(kTokens, 3, alone);
    CHECK(same_floats(first, alone + 2 * kVocab, kVocab) && same_floats(second, alone + kVocab, kVocab));
    /* No field for logits: none are computed. */
    fovea_step less = step_of(b, kTokens + 2, 1, second, 1);
    less.struct_size = offsetof(fovea_step, logits);
    memset(second, 0, kVocab * sizeof *second);
    GIVES(FOVEA_OK, fovea_forward_steps(workspace, &less, 1));
    CHECK(fovea_cache_kv_len(&b) == 3 && second[0] == 0);
}

/* Rows in the place of tokens, at once and in two steps; a span changes what they say. */
void test_row_steps(void) {
    enum { kWidth = 48, kRows = 5 };
    const struct fovea_model* model = open_test_model(decoder_file());
    fovea_workspace* workspace = make_test_workspace(model, &kEight);
    fovea_pool* pool = make_test_pool(model, 4, 0, FOVEA_F32);
    float *rows = take_floats(kRows * kWidth), *logits[3];
    for (int i = 0; i < kRows * kWidth; ++i) rows[i] = (float)(i * 7 % 31 - 15) / 100;
    for (int i = 0; i < 3; ++i) logits[i] = take_floats(kRows * kVocab);
    fovea_step step = step_of(new_cache(pool), NULL, 0, logits[0], kRows);
    step.rows = rows;
    step.n_row_elements = kRows * kWidth;
    GIVES(FOVEA_OK, fovea_forward_steps(workspace, &step, 1));
    const fovea_span span = {1, 4};
    fovea_step together = step;
    together.cache = new_cache(pool), together.logits = logits[1];
    together.spans = &span, together.n_spans = 1;
    fovea_step part = step;
    part.cache = new_cache(pool), part.logits = logits[2];
    part.n_row_elements = 2 * kWidth, part.n_logits = 2 * kVocab;
    const fovea_step both[2] = {together, part};
    GIVES(FOVEA_OK, fovea_forward_steps(workspace, both, 2));
    part.rows += 2 * kWidth, part.logits += 2 * kVocab;
    part.n_row_elements = 3 * kWidth, part.n_logits = 3 * kVocab;
    GIVES(FOVEA_OK, fovea_forward_steps(workspace, &part, 1));
    CHECK(same_floats(logits[0], logits[2], kRows * kVocab));
    CHECK(same_floats(logits[0], logits[1], kVocab) && !same_floats(logits[0] + kVocab, logits[1] + kVocab, kVocab));
    uint32_t keys[2][kRows];
    GIVES(FOVEA_OK, fovea_row_keys(&step, keys[0], kRows));
    GIVES(FOVEA_OK, fovea_row_keys(&together, keys[1], kRows));
    CHECK(keys[0][0] >> 31 == 1 && keys[0][0] != keys[1][0] && keys[0][0] != keys[0][1]);
    GIVES(FOVEA_BAD_ARGUMENT, fovea_row_keys(NULL, keys[0], kRows));
    step.tokens = kTokens, step.n_tokens = 1;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_forward_steps(workspace, &step, 1));
}

static void test_saved_of(uint32_t type) {
    const struct fovea_model* model = open_test_model(decoder_file());
    fovea_workspace* workspace = make_test_workspace(model, &kEight);
    fovea_pool *pool = make_test_pool(model, 4, 0, type), *other = make_test_pool(model, 2, 0, type);
    fovea_cache a = new_cache(pool), b = new_cache(pool), c = new_cache(other);
    float *first = take_floats(kVocab), *second = take_floats(kVocab);
    const fovea_step prompt = step_of(a, kTokens, 6, NULL, 0);
    GIVES(FOVEA_OK, fovea_forward_steps(workspace, &prompt, 1));
    const size_t n = (size_t)fovea_cache_bytes(&a);
    unsigned char* saved = take(n);
    size_t written = 7;
    GIVES(FOVEA_BUFFER_TOO_SMALL, fovea_save_cache(&a, saved, n - 1, &written));
    CHECK(written == 7);
    GIVES(FOVEA_OK, fovea_save_cache(&a, saved, n, &written));
    CHECK(written == n);
    GIVES(FOVEA_BAD_ARGUMENT, fovea_save_cache(NULL, saved, n, &written));
    saved[n - 9] ^= 4;
    GIVES(FOVEA_CHECKSUM_MISMATCH, fovea_restore_cache(&b, saved, n));
    saved[n - 9] ^= 4;
    GIVES(FOVEA_TRUNCATED, fovea_restore_cache(&b, saved, n - 1));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_restore_cache(NULL, saved, n));
    CHECK(fovea_cache_kv_len(&b) == 0);
    GIVES(FOVEA_OK, fovea_restore_cache(&b, saved, n));
    GIVES(FOVEA_OK, fovea_copy_cache(&a, &c));
    CHECK(fovea_cache_kv_len(&b) == 6 && fovea_cache_kv_len(&c) == 6);
    GIVES(FOVEA_BAD_ARGUMENT, fovea_copy_cache(&a, NULL));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_copy_cache(NULL, &c));
    fovea_cache of_f32 = new_cache(make_test_pool(model, 1, 0, FOVEA_F32));
    GIVES(FOVEA_SESSION_MISMATCH, fovea_copy_cache(&a, &of_f32));
    GIVES(FOVEA_SESSION_MISMATCH, fovea_restore_cache(&of_f32, saved, n));

    const fovea_step next = step_of(a, kTokens + 6, 1, first, 1);
    GIVES(FOVEA_OK, fovea_forward_steps(workspace, &next, 1));
    const fovea_cache restored[2] = {b, c};
    for (int i = 0; i < 2; ++i) {
        const fovea_step same = step_of(restored[i], kTokens + 6, 1, second, 1);
        GIVES(FOVEA_OK, fovea_forward_steps(workspace, &same, 1));
        CHECK(same_floats(first, second, kVocab));
    }
    /* A session goes on with what a cache of a pool has saved. */
    const fovea_limits limits = {.struct_size = sizeof limits, .max_positions = 20, .kv_type = type};
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_session* session = NULL;
    GIVES(FOVEA_OK, fovea_plan_session(model, &limits, &plan));
    GIVES(FOVEA_OK, fovea_make_session_of(model, &limits, take(plan.arena_bytes), (size_t)plan.arena_bytes, &session));
    const fovea_cache own = fovea_session_cache(session);
    GIVES(FOVEA_OK, fovea_restore_cache(&own, saved, n));
    CHECK(fovea_kv_len(session) == 6);
    GIVES(FOVEA_OK, fovea_forward(session, kTokens + 6, 1));
    CHECK(same_floats(first, fovea_logits(session), kVocab));
}

void test_saved(void) {
    test_saved_of(FOVEA_F16);
    test_saved_of(FOVEA_Q4);
}

/* ---- other threads ---- */

/* A session of the demo model: work enough for a pass to be shared. */
static fovea_session* make_demo_session(const struct fovea_model* demo, fovea_limits limits) {
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_session* session = NULL;
    limits.struct_size = sizeof limits;
    limits.max_positions = 64;
    GIVES(FOVEA_OK, fovea_plan_session(demo, &limits, &plan));
    GIVES(FOVEA_OK, fovea_make_session_of(demo, &limits, take(plan.arena_bytes), (size_t)plan.arena_bytes, &session));
    return session;
}

static void* cancel(void* workspace) {
    GIVES(FOVEA_OK, fovea_cancel(workspace, 1));
    return NULL;
}

void test_cancel(const struct fovea_model* demo) {
    fovea_session* session = make_demo_session(demo, (fovea_limits){.cancellable = 1});
    fovea_workspace* workspace = fovea_session_workspace(session);
    GIVES(FOVEA_OK, fovea_forward(session, kTokens, 4));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, cancel, workspace) == 0 && pthread_join(thread, NULL) == 0);
    GIVES(FOVEA_CANCELLED, fovea_forward(session, kTokens + 4, 4));
    CHECK(fovea_kv_len(session) == 4);
    GIVES(FOVEA_OK, fovea_cancel(workspace, 0));
    GIVES(FOVEA_OK, fovea_forward(session, kTokens + 4, 4));
    CHECK(fovea_kv_len(session) == 8);
}

/* A host's threads: one more than the caller. */
typedef struct {
    void (*work)(void* argument, uint32_t member);
    void* argument;
    int n_runs;
    fovea_workspace* cancelled; /* while it runs, unless NULL */
} host;

static void* run_member_1(void* context) {
    host* h = context;
    h->work(h->argument, 1);
    return NULL;
}

static void run_by_host(void* context, uint32_t n_members, void (*work)(void* argument, uint32_t member),
                        void* argument) {
    host* h = context;
    pthread_t thread;
    ++h->n_runs;
    h->work = work;
    h->argument = argument;
    CHECK(n_members == 2);
    if (h->cancelled) GIVES(FOVEA_OK, fovea_cancel(h->cancelled, 1));
    CHECK(pthread_create(&thread, NULL, run_member_1, h) == 0);
    work(argument, 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

void test_executor(const struct fovea_model* demo) {
    host h = {.n_runs = 0};
    const fovea_limits limits = {.n_threads = 2, .run = run_by_host, .run_context = &h, .cancellable = 1};
    fovea_session *session = make_demo_session(demo, limits), *alone = make_demo_session(demo, (fovea_limits){0});
    fovea_info info = {.struct_size = sizeof info};
    GIVES(FOVEA_OK, fovea_model_info(demo, &info));
    GIVES(FOVEA_OK, fovea_forward(session, kTokens, 12));
    GIVES(FOVEA_OK, fovea_forward(alone, kTokens, 12));
    CHECK(h.n_runs > 0 && same_floats(fovea_logits(session), fovea_logits(alone), info.vocab_size));
    h.cancelled = fovea_session_workspace(session);
    GIVES(FOVEA_CANCELLED, fovea_forward(session, kTokens, 12));
    CHECK(fovea_kv_len(session) == 12);
    if (fovea_openmp() == NULL) return;
    fovea_session* openmp = make_demo_session(demo, (fovea_limits){.n_threads = 2, .run = fovea_openmp()});
    GIVES(FOVEA_OK, fovea_forward(openmp, kTokens, 12));
    CHECK(same_floats(fovea_logits(openmp), fovea_logits(alone), info.vocab_size));
}
