/* The C interface as a C11 program has it, over a model that `fovea embed` made part of the program. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "fovea/fovea.h"

extern const unsigned char fovea_model[], fovea_model_end[];

enum { kArena = 4 << 20, kTokens = 256, kGuard = 64 };
static const char kPrompt[] = "turn on the garden dehumidifier\n";
static const char kAnswer[] = "{\"do\":\"on\",\"device\":\"dehumidifier\",\"room\":\"garden\"}";

static _Alignas(64) unsigned char arena[kArena];
static int n_failed;

static void check(int good, const char* what, int line) {
    if (good) return;
    printf("%s:%d: %s\n", __FILE__, line, what);
    ++n_failed;
}
#define CHECK(condition) check(condition, #condition, __LINE__)

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

static size_t test_encode(fovea_session* session, const fovea_plan* plan, uint32_t* tokens) {
    size_t n = 0, none = 1;
    CHECK(fovea_encode(session, kPrompt, strlen(kPrompt), 0, tokens, 2, &none).code == FOVEA_BUFFER_TOO_SMALL);
    CHECK(none == 0);
    CHECK(fovea_encode(session, kPrompt, strlen(kPrompt), 0, tokens, kTokens, &n).code == FOVEA_OK);
    CHECK(n > 2 && n <= plan->max_tokens);
    /* Text that goes on has no start token; its spelling of special tokens is read where that is asked for. */
    static uint32_t more[kTokens];
    size_t n_more = 0;
    CHECK(fovea_encode(session, kPrompt, strlen(kPrompt), FOVEA_NO_SPECIAL, more, kTokens, &n_more).code == FOVEA_OK);
    CHECK(n_more == n - 1 && memcmp(more, tokens + 1, n_more * sizeof *more) == 0);
    CHECK(fovea_encode(session, "<|endoftext|>", 13, FOVEA_NO_SPECIAL | FOVEA_READ_SPECIAL, more, kTokens, &n_more)
              .code == FOVEA_OK);
    CHECK(n_more == 1);
    CHECK(fovea_encode(session, kPrompt, strlen(kPrompt), 4, more, kTokens, &n_more).code == FOVEA_BAD_ARGUMENT);
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
    CHECK(fovea_rewind(session, (uint32_t)n + 1).code == FOVEA_BAD_ARGUMENT);
    CHECK(fovea_rewind(session, 0).code == FOVEA_OK);
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

static void test_text(fovea_session* session, const uint32_t* tokens, size_t n) {
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
        CHECK(fovea_rewind(session, 0).code == FOVEA_OK);
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

int main(int argc, char** argv) {
    uint32_t tokens[kTokens];
    fovea_plan plan = {.struct_size = sizeof plan};
    CHECK(argc == 2);
    CHECK(fovea_api_version() == FOVEA_API_VERSION);
    CHECK((size_t)fovea_model % 64 == 0);
    test_plan(&plan);
    test_struct_sizes(&plan);
    fovea_session* session = test_session(&plan);
    if (n_failed) return 1;
    const size_t n = test_encode(session, &plan, tokens);
    test_forward(session, &plan, tokens, n, argv[1]);
    test_text(session, tokens, n);
    test_decode(session);
    test_guard(&plan);
    return n_failed != 0;
}
