/* The C interface as a C11 program has it, over a model that `fovea embed` made part of the program: a session's calls. */
#include <stdlib.h>

#include "tests/c_api/check.h"

/* Symbols of the file that `fovea embed` made. */
extern const unsigned char fovea_model[], fovea_model_end[];

enum { kArena = 4 << 20, kTokens = 256, kGuard = 64 };
static const char kPrompt[] = "turn on the garden dehumidifier\n";
static const char kAnswer[] = "{\"do\":\"on\",\"device\":\"dehumidifier\",\"room\":\"garden\"}";

static _Alignas(64) unsigned char arena[kArena];
int n_failed;

void check(int good, const char* what, const char* file, int line) {
    if (good) return;
    printf("%s:%d: %s\n", file, line, what);
    ++n_failed;
}

void check_code(fovea_status status, uint32_t code, const char* what, const char* file, int line) {
    char text[160];
    if (status.code == code) return;
    fovea_describe(status, text, sizeof text);
    printf("%s:%d: %s: expected %s, got %s\n", file, line, what, fovea_code_name(code), text);
    ++n_failed;
}

/* ---- memory between guards ---- */

enum { kMostTaken = 256 };
static struct { unsigned char* end; } taken[kMostTaken];
static int n_taken;

void* take(uint64_t n_bytes) {
    const size_t whole = (size_t)(n_bytes + kGuard + 63) / 64 * 64;
    unsigned char* bytes = aligned_alloc(64, whole);
    if (!bytes || n_taken == kMostTaken) exit(3);
    memset(bytes, 0, whole);
    taken[n_taken].end = bytes + n_bytes;
    memset(taken[n_taken++].end, 0xa5, kGuard);
    return bytes;
}

void check_guards(void) {
    for (int i = 0; i < n_taken; ++i)
        for (int j = 0; j < kGuard; ++j) CHECK(taken[i].end[j] == 0xa5);
}

float* take_floats(size_t n) { return take(n * sizeof(float)); }

int same_floats(const float* a, const float* b, size_t n) { return memcmp(a, b, n * sizeof(float)) == 0; }

struct fovea_model* open_test_model(test_file file) {
    struct fovea_model* model = NULL;
    GIVES(FOVEA_OK,
          fovea_open_model(file.bytes, file.n_bytes, FOVEA_VERIFY, take(FOVEA_MODEL_BYTES), FOVEA_MODEL_BYTES, &model));
    if (!model) exit(3);
    return model;
}

fovea_workspace* make_test_workspace(const struct fovea_model* model, const fovea_limits* limits) {
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_workspace* workspace = NULL;
    GIVES(FOVEA_OK, fovea_plan_workspace(model, limits, &plan));
    GIVES(FOVEA_OK, fovea_make_workspace(model, limits, take(plan.arena_bytes), (size_t)plan.arena_bytes, &workspace));
    if (!workspace) exit(3);
    return workspace;
}

static size_t model_bytes(void) { return (size_t)(fovea_model_end - fovea_model); }

static fovea_limits limits_of_test(void) {
    return (fovea_limits){.struct_size = sizeof(fovea_limits), .max_positions = 128, .max_text_bytes = 256};
}

/* FNV-1a over words, as `fovea certify` has it. */
static uint64_t hash_logits(uint64_t hash, const float* logits, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t word;
        memcpy(&word, logits + i, sizeof word);
        hash = (hash ^ word) * 0x100000001b3u;
    }
    return hash;
}

/* What a caller has who was compiled with a later header. */
typedef struct {
    fovea_limits known;
    uint64_t later;
} later_limits;
typedef struct {
    fovea_plan known;
    uint64_t later;
} later_plan;

/* Structs of callers that know fewer fields than the library, or more. */
static void test_struct_sizes(const fovea_plan* plan) {
    const void* const file = fovea_model;
    const fovea_limits limits = limits_of_test();
    fovea_plan less = {.struct_size = offsetof(fovea_plan, arena_bytes), .arena_bytes = 7};
    CHECK(fovea_make_plan(file, model_bytes(), &limits, &less).code == FOVEA_OK);
    CHECK(less.struct_size == offsetof(fovea_plan, arena_bytes) && less.vocab_size == plan->vocab_size);
    CHECK(less.arena_bytes == 7 && less.max_tokens == 0);
    less.struct_size = 3;
    less.vocab_size = 0;
    CHECK(fovea_make_plan(file, model_bytes(), &limits, &less).code == FOVEA_BAD_ARGUMENT);
    CHECK(less.vocab_size == 0);
    later_plan more = {{.struct_size = sizeof more}, 9};
    CHECK(fovea_make_plan(file, model_bytes(), &limits, &more.known).code == FOVEA_OK);
    CHECK(more.known.struct_size == sizeof more && more.known.arena_bytes == plan->arena_bytes && more.later == 0);

    /* Without the number of threads, the cache's type and the instruction set, which the caller's memory happens to hold. */
    fovea_limits old = limits;
    old.struct_size = offsetof(fovea_limits, n_threads);
    old.n_threads = 9999;
    old.kv_type = 9;
    fovea_plan other = {.struct_size = sizeof other};
    CHECK(fovea_make_plan(file, model_bytes(), &old, &other).code == FOVEA_OK);
    CHECK(other.arena_bytes == plan->arena_bytes);
    old.struct_size = 0;
    CHECK(fovea_make_plan(file, model_bytes(), &old, &other).code == FOVEA_BAD_ARGUMENT);
    old.struct_size = 0xcccccccc;
    CHECK(fovea_make_plan(file, model_bytes(), &old, &other).code == FOVEA_BAD_ARGUMENT);
    later_limits new = {limits, 0};
    new.known.struct_size = sizeof new;
    CHECK(fovea_make_plan(file, model_bytes(), &new.known, &other).code == FOVEA_OK);
    ((unsigned char*)&new)[sizeof new - 1] = 1;
    const fovea_status status = fovea_make_plan(file, model_bytes(), &new.known, &other);
    CHECK(status.code == FOVEA_BAD_ARGUMENT && status.had == 1);
}

static void test_plan(fovea_plan* plan) {
    const void* const file = fovea_model;
    fovea_limits limits = limits_of_test();
    CHECK(fovea_make_plan(file, model_bytes() - 1, &limits, plan).code == FOVEA_TRUNCATED);
    CHECK(fovea_make_plan(fovea_model + 1, 100, &limits, plan).code == FOVEA_MISALIGNED);
    CHECK(fovea_verify(file, model_bytes()).code == FOVEA_OK);
    limits.max_positions = 100000;
    const fovea_status status = fovea_make_plan(file, model_bytes(), &limits, plan);
    char line[160];
    CHECK(status.code == FOVEA_BAD_LIMITS && status.had == 100000);
    CHECK(fovea_describe(status, line, sizeof line) == strlen(line) && strstr(line, "got 100000"));
    CHECK(fovea_describe(status, line, 4) == 3 && strlen(line) == 3);
    limits = limits_of_test();
    limits.kv_type = 9;
    CHECK(fovea_make_plan(file, model_bytes(), &limits, plan).code == FOVEA_BAD_LIMITS);
    limits = limits_of_test();
    CHECK(fovea_make_plan(file, model_bytes(), &limits, plan).code == FOVEA_OK);
    CHECK(plan->max_positions == 128 && plan->max_batch == 128 && plan->vocab_size > 0);
    CHECK(plan->prompt_suffix_bytes == 1 && plan->prompt_suffix[0] == '\n');
}

/* Exactly the planned bytes do, one fewer does not, and none beyond them is touched. */
static fovea_session* test_session(const fovea_plan* plan) {
    fovea_session* session = NULL;
    fovea_limits limits = limits_of_test();
    const size_t n = (size_t)plan->arena_bytes;
    CHECK(n + kGuard <= sizeof arena);
    memset(arena, 0xa5, sizeof arena);
    CHECK(fovea_make_session(fovea_model, model_bytes(), &limits, arena, n - 1, &session).code ==
          FOVEA_ARENA_TOO_SMALL);
    CHECK(fovea_make_session(fovea_model, model_bytes(), &limits, arena + 1, n, &session).code == FOVEA_MISALIGNED);
    limits.isa = "abacus";
    CHECK(fovea_make_session(fovea_model, model_bytes(), &limits, arena, n, &session).code == FOVEA_ISA_UNAVAILABLE);
    CHECK(session == NULL && arena[0] == 0xa5);
    limits.isa = NULL;
    CHECK(fovea_make_session(fovea_model, model_bytes(), &limits, arena, n, &session).code == FOVEA_OK);
    return session;
}

static void test_guard(const fovea_plan* plan) {
    for (size_t i = 0; i < kGuard; ++i) CHECK(arena[plan->arena_bytes + i] == 0xa5);
}

static size_t test_tokenize(fovea_session* session, const fovea_plan* plan, uint32_t* tokens) {
    size_t n = 0, none = 1;
    CHECK(fovea_tokenize(session, kPrompt, strlen(kPrompt), 0, tokens, 2, &none).code == FOVEA_BUFFER_TOO_SMALL);
    CHECK(none == 0);
    CHECK(fovea_tokenize(session, kPrompt, strlen(kPrompt), 0, tokens, kTokens, &n).code == FOVEA_OK);
    CHECK(n > 2 && n <= plan->max_tokens);
    /* Text that goes on has no start token; its spelling of special tokens is read where that is asked for. */
    static uint32_t more[kTokens];
    size_t n_more = 0;
    CHECK(fovea_tokenize(session, kPrompt, strlen(kPrompt), FOVEA_NO_SPECIAL, more, kTokens, &n_more).code == FOVEA_OK);
    CHECK(n_more == n - 1 && memcmp(more, tokens + 1, n_more * sizeof *more) == 0);
    CHECK(fovea_tokenize(session, "<|endoftext|>", 13, FOVEA_NO_SPECIAL | FOVEA_READ_SPECIAL, more, kTokens, &n_more)
              .code == FOVEA_OK);
    CHECK(n_more == 1);
    CHECK(fovea_tokenize(session, kPrompt, strlen(kPrompt), 4, more, kTokens, &n_more).code == FOVEA_BAD_ARGUMENT);
    CHECK(n_more == 0);
    return n;
}

/* One token at a time and all together: the same bits, and those of `fovea certify`. */
static void test_forward(fovea_session* session, const fovea_plan* plan, const uint32_t* tokens, size_t n,
                         const char* expected) {
    static float logits[1 << 16];
    const uint32_t none = plan->vocab_size;
    char hex[17];
    uint64_t hash = 0xcbf29ce484222325u;
    CHECK(plan->vocab_size * sizeof(float) <= sizeof logits);
    for (size_t i = 0; i < n; ++i) {
        CHECK(fovea_forward(session, tokens + i, 1).code == FOVEA_OK);
        hash = hash_logits(hash, fovea_logits(session), plan->vocab_size);
    }
    memcpy(logits, fovea_logits(session), plan->vocab_size * sizeof(float));
    CHECK(fovea_kv_len(session) == n);
    CHECK(fovea_forward(session, &none, 1).code == FOVEA_TOKEN_OUT_OF_RANGE);
    CHECK(fovea_forward(session, tokens, 0).code == FOVEA_BAD_SHAPE);
    CHECK(fovea_rewind(session, (uint32_t)n + 1, NULL).code == FOVEA_BAD_ARGUMENT);
    CHECK(fovea_rewind(session, 0, NULL).code == FOVEA_OK);
    CHECK(fovea_forward(session, tokens, n).code == FOVEA_OK);
    CHECK(memcmp(logits, fovea_logits(session), plan->vocab_size * sizeof(float)) == 0);
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)hash);
    printf("logits %s\n", hex);
    CHECK(strcmp(hex, expected) == 0);
}

/* What follows the prompt, as text that a zero ends. */
static void generate(fovea_session* session, char* text, size_t capacity) {
    fovea_decoder decoder = {0};
    size_t n = 0;
    uint32_t token = 0;
    for (;;) {
        CHECK(fovea_sample(session, NULL, 0, &token).code == FOVEA_OK);
        if (fovea_ends_text(session, token) || fovea_kv_len(session) == 128) break;
        n += fovea_decode(session, &decoder, token, text + n, capacity - 1 - n);
        CHECK(fovea_forward(session, &token, 1).code == FOVEA_OK);
    }
    n += fovea_decode(session, &decoder, FOVEA_NO_TOKEN, text + n, capacity - 1 - n);
    text[n] = 0;
}

static void test_generation(fovea_session* session, const uint32_t* tokens, size_t n) {
    char first[1024], second[1024];
    generate(session, first, sizeof first);
    CHECK(strcmp(first, kAnswer) == 0);
    fovea_sampler sampler = {.struct_size = sizeof sampler, .temperature = -1};
    CHECK(fovea_set_sampler(session, &sampler).code == FOVEA_BAD_ARGUMENT);
    sampler.struct_size = 2;
    CHECK(fovea_set_sampler(session, &sampler).code == FOVEA_BAD_ARGUMENT);
    sampler.struct_size = offsetof(fovea_sampler, temperature); /* its negative temperature is not looked at */
    CHECK(fovea_set_sampler(session, &sampler).code == FOVEA_OK);
    sampler.struct_size = sizeof sampler;
    sampler.temperature = 3;
    sampler.seed = 7;
    char* texts[] = {first, second};
    for (int i = 0; i < 2; ++i) {
        CHECK(fovea_set_sampler(session, &sampler).code == FOVEA_OK);
        CHECK(fovea_rewind(session, 0, NULL).code == FOVEA_OK);
        CHECK(fovea_forward(session, tokens, n).code == FOVEA_OK);
        generate(session, texts[i], sizeof first);
    }
    CHECK(strcmp(first, second) == 0);
    CHECK(strcmp(first, kAnswer) != 0);
}

/* Half of a two-byte character at the end of a text comes out as U+FFFD. */
static void test_decode(const fovea_session* session) {
    fovea_decoder decoder = {.held = {0xc3}, .n_held = 1, .started = 1};
    char out[8];
    CHECK(fovea_decode(session, &decoder, FOVEA_NO_TOKEN, out, sizeof out) == 3);
    CHECK(memcmp(out, "\xef\xbf\xbd", 3) == 0 && decoder.n_held == 0);
}

/* What a session consists of, and logits in the caller's memory. */
static void test_parts(fovea_session* session, size_t n_tokens) {
    const struct fovea_model* model = fovea_session_model(session);
    fovea_info info = {.struct_size = sizeof info};
    GIVES(FOVEA_OK, fovea_model_info(model, &info));
    uint32_t tokens[3] = {5, 6, 7};
    const size_t n = info.vocab_size;
    float *each = take_floats(3 * n), *last = take_floats(n);
    fovea_cache cache = fovea_session_cache(session);
    GIVES(FOVEA_OK, fovea_rewind_cache(&cache, 0, NULL));
    CHECK(n_tokens > 0 && fovea_kv_len(session) == 0 && fovea_cache_max_kv_len(&cache) == 128);
    GIVES(FOVEA_OK, fovea_forward_into(session, tokens, 3, each, 3 * n));
    GIVES(FOVEA_OK, fovea_rewind(session, 0, NULL));
    GIVES(FOVEA_OK, fovea_forward_into(session, tokens, 2, NULL, 0));
    GIVES(FOVEA_OK, fovea_forward_into(session, tokens + 2, 1, last, n));
    CHECK(same_floats(each + 2 * n, last, n) && !same_floats(each, last, n));
    GIVES(FOVEA_BAD_SHAPE, fovea_forward_into(session, tokens, 3, each, 2 * n));
    CHECK(fovea_kv_len(session) == 3);
    GIVES(FOVEA_OK, fovea_rewind(session, 0, NULL));
    GIVES(FOVEA_OK, fovea_forward(session, tokens, 3));
    CHECK(same_floats(fovea_logits(session), last, n));
    /* Its workspace runs a step with its cache. */
    GIVES(FOVEA_OK, fovea_rewind(session, 0, NULL));
    memset(last, 0, n * sizeof *last);
    const fovea_step step = {
        .struct_size = sizeof step, .cache = cache, .tokens = tokens, .n_tokens = 3, .logits = last, .n_logits = n};
    GIVES(FOVEA_OK, fovea_forward_steps(fovea_session_workspace(session), &step, 1));
    CHECK(same_floats(fovea_logits(session), last, n));
    CHECK(strcmp(fovea_isa(fovea_session_workspace(session)), fovea_isa_name(0)) == 0);
    GIVES(FOVEA_BAD_ARGUMENT, fovea_cancel(fovea_session_workspace(session), 1));

    /* From the handle that lies in the very arena: the same session once more. */
    fovea_limits limits = limits_of_test();
    fovea_plan plan = {.struct_size = sizeof plan};
    GIVES(FOVEA_OK, fovea_plan_session(model, &limits, &plan));
    GIVES(FOVEA_ARENA_TOO_SMALL, fovea_make_session_of(model, &limits, arena, (size_t)plan.arena_bytes - 1, &session));
    GIVES(FOVEA_OK, fovea_make_session_of(model, &limits, arena, (size_t)plan.arena_bytes, &session));
    CHECK(fovea_kv_len(session) == 0);
    GIVES(FOVEA_OK, fovea_forward(session, tokens, 3));
    CHECK(same_floats(fovea_logits(session), last, n));
    size_t n_read = 0;
    uint32_t read[8];
    GIVES(FOVEA_OK, fovea_tokenize(session, "on", 2, 0, read, 8, &n_read));
    CHECK(n_read > 0);
    test_guard(&plan);
}

/* No session: a refusal or nothing, and no crash. */
static void test_null(void) {
    uint32_t token = 0;
    size_t n = 1;
    char out[8];
    fovea_decoder decoder = {.n_held = 0};
    fovea_limits limits = limits_of_test();
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_session* session = NULL;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_plan_session(NULL, &limits, &plan));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_make_session_of(NULL, &limits, arena, sizeof arena, &session));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_make_plan(fovea_model, model_bytes(), NULL, &plan));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_make_plan(fovea_model, model_bytes(), &limits, NULL));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_tokenize(NULL, "a", 1, 0, &token, 1, &n));
    CHECK(n == 0);
    GIVES(FOVEA_BAD_ARGUMENT, fovea_forward(NULL, &token, 1));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_forward_into(NULL, &token, 1, NULL, 0));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_rewind(NULL, 0, NULL));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_set_sampler(NULL, NULL));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_sample(NULL, NULL, 0, &token));
    CHECK(!fovea_logits(NULL) && !fovea_kv_len(NULL) && !fovea_ends_text(NULL, 0));
    CHECK(fovea_decode(NULL, &decoder, 0, out, sizeof out) == 0);
    CHECK(!fovea_session_model(NULL) && !fovea_session_workspace(NULL));
    const fovea_cache none = fovea_session_cache(NULL);
    CHECK(fovea_cache_kv_len(&none) == 0);
}

int main(int argc, char** argv) {
    uint32_t tokens[kTokens];
    fovea_plan plan = {.struct_size = sizeof plan};
    CHECK(argc == 2);
    CHECK(fovea_api_version() == FOVEA_API_VERSION && fovea_api_version() == 2);
    CHECK(fovea_version()[0] && fovea_numerics_version() == 1);
    CHECK((size_t)fovea_model % 64 == 0);
    test_plan(&plan);
    test_struct_sizes(&plan);
    fovea_session* session = test_session(&plan);
    if (n_failed) return 1;
    const size_t n = test_tokenize(session, &plan, tokens);
    test_forward(session, &plan, tokens, n, argv[1]);
    test_generation(session, tokens, n);
    test_decode(session);
    test_guard(&plan);
    test_parts(session, n);
    test_null();

    const struct fovea_model* demo = open_test_model((test_file){fovea_model, model_bytes()});
    test_models();
    test_text(demo);
    test_sampler();
    test_pools();
    test_steps();
    test_step_structs();
    test_row_steps();
    test_saved();
    test_cancel(demo);
    test_executor(demo);
    test_generator_plan();
    test_texts(demo);
    test_tokens();
    test_speculation();
    test_generators();
    test_constraint(demo);
    test_adapters();
    test_encode();
    test_kept_memory();
    test_memory();
    test_attend();
    test_attention();
    check_guards();
    return n_failed != 0;
}
