/* Adapters by the C interface: the bits of the C++ one, exact plans, refusals that change nothing. */
#include <math.h>
#include <stddef.h>

#include "tests/c_api/check.h"

enum { kVocab = 71, kTokens = 9 };
static const uint32_t kPrompt[kTokens] = {3, 14, 15, 9, 26, 5, 35, 8, 70};

static fovea_session* make_session(const struct fovea_model* model, const fovea_limits* limits) {
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_session* session = NULL;
    GIVES(FOVEA_OK, fovea_plan_session(model, limits, &plan));
    void* arena = take(plan.arena_bytes);
    GIVES(FOVEA_ARENA_TOO_SMALL, fovea_make_session_of(model, limits, arena, (size_t)plan.arena_bytes - 1, &session));
    GIVES(FOVEA_OK, fovea_make_session_of(model, limits, arena, (size_t)plan.arena_bytes, &session));
    return session;
}

static int computes(fovea_session* session, const float* want) {
    float* got = take_floats(kTokens * kVocab);
    GIVES(FOVEA_OK, fovea_rewind(session, 0, NULL));
    GIVES(FOVEA_OK, fovea_forward_into(session, kPrompt, kTokens, got, kTokens * kVocab));
    return same_floats(got, want, kTokens * kVocab);
}

static void test_refusals(fovea_session* session, const struct fovea_model* model, const struct fovea_model* adapter) {
    const fovea_adapter good = {adapter, 0.5f}, of_model = {model, 1.0f}, none = {NULL, 1.0f};
    const fovea_adapter endless = {adapter, INFINITY};
    const fovea_adapter three[3] = {good, good, good};
    fovea_adapter many[65];
    for (int i = 0; i < 65; ++i) many[i] = good;
    GIVES(FOVEA_OK, fovea_rewind(session, 0, NULL));
    GIVES(FOVEA_BAD_LIMITS, fovea_set_session_adapters(session, three, 3));
    GIVES(FOVEA_BAD_LIMITS, fovea_set_session_adapters(session, many, 65));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_set_session_adapters(session, &of_model, 1));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_set_session_adapters(session, &none, 1));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_set_session_adapters(session, &endless, 1));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_set_session_adapters(session, NULL, 1));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_set_session_adapters(NULL, &good, 1));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_set_adapters(NULL, &good, 1));
    const struct fovea_model* encoder = open_test_model(encoder_file());
    CHECK(fovea_adapter_rank(model) == 0 && fovea_adapter_rank(encoder) == 0 && fovea_adapter_rank(NULL) == 0);
}

/* Limits of a caller that was compiled before there were adapters. */
static void test_older(const struct fovea_model* model, const struct fovea_model* adapter, const float* plain) {
    fovea_limits limits = {.struct_size = (uint32_t)offsetof(fovea_limits, max_adapters), .max_positions = 32};
    limits.max_adapters = 2;
    limits.max_adapter_rank = 5;
    fovea_plan older = {.struct_size = sizeof older}, newer = {.struct_size = sizeof newer};
    GIVES(FOVEA_OK, fovea_plan_session(model, &limits, &older));
    fovea_session* session = make_session(model, &limits);
    const fovea_adapter use = {adapter, 1.0f};
    GIVES(FOVEA_BAD_LIMITS, fovea_set_session_adapters(session, &use, 1));
    CHECK(computes(session, plain));
    limits.struct_size = sizeof limits;
    GIVES(FOVEA_OK, fovea_plan_session(model, &limits, &newer));
    CHECK(newer.arena_bytes > older.arena_bytes);
    limits.max_adapter_rank = 0;
    GIVES(FOVEA_BAD_LIMITS, fovea_plan_session(model, &limits, &newer));
}

/* Two sequences of one pass, of a workspace with adapters. */
static void test_workspace(const struct fovea_model* model, const fovea_adapter* both, const float* want) {
    const fovea_limits limits = {.struct_size = sizeof limits,
                                 .max_positions = 32,
                                 .max_sequences = 2,
                                 .max_adapters = 2,
                                 .max_adapter_rank = 5};
    fovea_workspace* workspace = make_test_workspace(model, &limits);
    const fovea_pool_limits room = {.struct_size = sizeof room, .max_positions = 32, .max_sequences = 2};
    fovea_pool_plan plan = {.struct_size = sizeof plan};
    fovea_pool* pool = NULL;
    fovea_cache a, b;
    GIVES(FOVEA_OK, fovea_plan_pool(model, &room, &plan));
    GIVES(FOVEA_OK, fovea_make_pool(model, &room, take(plan.arena_bytes), (size_t)plan.arena_bytes, &pool));
    GIVES(FOVEA_OK, fovea_make_cache(pool, &a));
    GIVES(FOVEA_OK, fovea_make_cache(pool, &b));
    GIVES(FOVEA_OK, fovea_set_adapters(workspace, both, 2));
    float *of_a = take_floats(kTokens * kVocab), *of_b = take_floats(4 * kVocab);
    const fovea_step steps[2] = {{.struct_size = sizeof *steps,
                                  .cache = a,
                                  .tokens = kPrompt,
                                  .n_tokens = kTokens,
                                  .logits = of_a,
                                  .n_logits = kTokens * kVocab},
                                 {.struct_size = sizeof *steps,
                                  .cache = b,
                                  .tokens = kPrompt,
                                  .n_tokens = 4,
                                  .logits = of_b,
                                  .n_logits = 4 * kVocab}};
    GIVES(FOVEA_OK, fovea_forward_steps(workspace, steps, 2));
    CHECK(same_floats(of_a, want, kTokens * kVocab) && same_floats(of_b, want, 4 * kVocab));
}

void test_adapters(void) {
    const struct fovea_model* model = open_test_model(decoder_file());
    const struct fovea_model* first = open_test_model(adapter_file());
    const struct fovea_model* second = open_test_model(second_adapter_file());
    CHECK(fovea_adapter_rank(first) == 5 && fovea_adapter_rank(second) == 3);
    float *plain = take_floats(kTokens * kVocab), *want = take_floats(kTokens * kVocab);
    cpp_forward(kPrompt, kTokens, plain);
    cpp_adapted(kPrompt, kTokens, 0.5f, -1.25f, want);
    CHECK(!same_floats(plain, want, kTokens * kVocab));

    const fovea_limits limits = {
        .struct_size = sizeof limits, .max_positions = 32, .max_adapters = 2, .max_adapter_rank = 5};
    fovea_session* session = make_session(model, &limits);
    fovea_adapter both[2] = {{first, 0.5f}, {second, -1.25f}};
    GIVES(FOVEA_OK, fovea_set_session_adapters(session, both, 2));
    CHECK(computes(session, want));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_set_session_adapters(session, NULL, 0)); /* it has positions */
    test_refusals(session, model, first);
    CHECK(computes(session, want));
    GIVES(FOVEA_OK, fovea_rewind(session, 0, NULL));
    GIVES(FOVEA_OK, fovea_set_session_adapters(session, NULL, 0));
    CHECK(computes(session, plain));
    test_older(model, first, plain);
    test_workspace(model, both, want);
}
