/* Drafts of texts, by fovea_host.h and by the engine's functions. */
#include <stdlib.h>
#include <string.h>

#include "tests/bindings/c/check.h"

/* A model and its next-token head, as `fovea convert` made them: texts are those without the head. */
static void test_host(const char* model_path, const char* head_path, const char* other_path) {
    uint32_t plain[kNew] = {0}, drafted[kNew] = {0};
    fovea_host_model *model = NULL, *head = NULL, *other = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_open(model_path, NULL, &model));
    GIVES(FOVEA_HOST_OK, fovea_host_open(head_path, NULL, &head));
    GIVES(FOVEA_HOST_OK, fovea_host_open(other_path, NULL, &other));
    fovea_host_session* session = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_start(model, NULL, &session));
    write_tokens(session, plain);
    GIVES(FOVEA_HOST_OK, fovea_host_propose_by(session, head, 3));
    write_tokens(session, drafted);
    CHECK(memcmp(plain, drafted, sizeof plain) == 0);
    static const uint32_t prompt[] = {3, 10, 17, 24};
    const fovea_speculation always = {.struct_size = sizeof always, .always = 1};
    const fovea_generate_options options = {.struct_size = sizeof options, .n_new = kNew, .speculation = &always};
    fovea_generate_figures figures = {.struct_size = sizeof figures};
    GIVES(FOVEA_HOST_OK, fovea_host_generate(session, prompt, 4, &options, NULL, NULL, NULL));
    CHECK(fovea_generator_figures(fovea_host_generator(session), &figures).code == FOVEA_OK);
    CHECK(figures.n_proposed > 0 && figures.n_draft_passes > 0);
    size_t n = 0;
    const uint32_t* all = fovea_generator_tokens(fovea_host_generator(session), &n);
    CHECK(n == 4 + kNew && memcmp(all + 4, plain, sizeof plain) == 0);
    const fovea_speculation four = {.struct_size = sizeof four, .n_proposed = 4};
    const fovea_generate_options too_many = {.struct_size = sizeof too_many, .speculation = &four};
    GIVES(FOVEA_HOST_FAILED, fovea_host_generate(session, prompt, 4, &too_many, NULL, NULL, NULL));
    GIVES(FOVEA_HOST_FAILED, fovea_host_propose_by(session, other, 0));
    CHECK(strstr(fovea_host_error(), "vocabulary: expected"));
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_propose_by(session, NULL, 0));
    GIVES(FOVEA_HOST_OK, fovea_host_propose_by(session, model, 0)); /* the model guesses what it says itself */
    GIVES(FOVEA_HOST_OK, fovea_host_generate(session, prompt, 4, &options, NULL, NULL, NULL));
    CHECK(fovea_generator_figures(fovea_host_generator(session), &figures).code == FOVEA_OK);
    CHECK(figures.n_accepted == figures.n_proposed && figures.n_accepted > 0 && figures.n_passes < kNew - 1);
    fovea_host_end(session), fovea_host_close(model), fovea_host_close(head), fovea_host_close(other);
}

static void* arena_of(uint64_t n_bytes) {
    void* arena = aligned_alloc(64, (n_bytes + 63) / 64 * 64);
    if (!arena) exit(1);
    return arena;
}

static fovea_session* session_of(const fovea_host_model* model, void** arena) {
    const fovea_limits limits = {.struct_size = sizeof limits, .max_positions = 64};
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_session* session = NULL;
    const struct fovea_model* engine_model = fovea_host_engine_model(model);
    CHECK(fovea_plan_session(engine_model, &limits, &plan).code == FOVEA_OK);
    *arena = arena_of(plan.arena_bytes);
    CHECK(fovea_make_session_of(engine_model, &limits, *arena, plan.arena_bytes, &session).code == FOVEA_OK);
    return session;
}

/* The same by the engine's functions, step by step: a step leaves its vectors for the head. */
static void test_steps(const char* model_path, const char* head_path) {
    enum { kWidth = 40, kProposed = 3, kPrompt = 4, kText = kPrompt + kNew };
    static const uint32_t prompt[kPrompt] = {3, 10, 17, 24};
    uint32_t plain[kText] = {0};
    float vectors[(kProposed + 2) * kWidth];
    fovea_host_model *model = NULL, *head = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_open(model_path, NULL, &model));
    GIVES(FOVEA_HOST_OK, fovea_host_open(head_path, NULL, &head));
    void *arena, *head_arena;
    fovea_session *session = session_of(model, &arena), *draft = session_of(head, &head_arena);
    const fovea_cache cache = fovea_session_cache(session);
    const fovea_generator_limits limits = {.struct_size = sizeof limits, .max_tokens = 64, .max_proposed = kProposed};
    fovea_generator_plan plan = {.struct_size = sizeof plan};
    fovea_generator* generator = NULL;
    CHECK(fovea_plan_generator(fovea_host_engine_model(model), &limits, &plan).code == FOVEA_OK);
    void* generator_arena = arena_of(plan.arena_bytes);
    CHECK(fovea_make_generator(fovea_host_engine_model(model), &cache, &limits, generator_arena, plan.arena_bytes,
                               &generator)
              .code == FOVEA_OK);
    const fovea_speculation by_head = {.struct_size = sizeof by_head,
                                       .n_proposed = kProposed,
                                       .always = 1,
                                       .draft = fovea_session_workspace(draft),
                                       .draft_cache = fovea_session_cache(draft),
                                       .draft_vectors = vectors,
                                       .n_draft_vectors = sizeof vectors / sizeof *vectors};
    for (int drafts = 0; drafts < 2; ++drafts) {
        const fovea_generate_options options = {
            .struct_size = sizeof options, .n_new = kNew, .speculation = drafts ? &by_head : NULL};
        fovea_generate_figures figures = {.struct_size = sizeof figures};
        CHECK(fovea_start(generator, prompt, kPrompt, &options).code == FOVEA_OK);
        while (fovea_generator_finish(generator) == FOVEA_FINISH_NONE) {
            fovea_step step = {.struct_size = sizeof step};
            fovea_piece piece = {.struct_size = sizeof piece};
            CHECK(fovea_next_step(generator, &step).code == FOVEA_OK);
            CHECK(step.n_vectors == (drafts ? step.n_tokens * kWidth : 0));
            if (fovea_forward_steps(fovea_session_workspace(session), &step, 1).code != FOVEA_OK) exit(1);
            CHECK(fovea_take(generator, &piece).code == FOVEA_OK);
        }
        CHECK(fovea_generator_figures(generator, &figures).code == FOVEA_OK);
        CHECK((figures.n_draft_passes > 0) == drafts);
        size_t n = 0;
        const uint32_t* all = fovea_generator_tokens(generator, &n);
        CHECK(n == kText);
        if (drafts) CHECK(memcmp(all, plain, sizeof plain) == 0);
        if (!drafts && n == kText) memcpy(plain, all, sizeof plain);
    }
    free(generator_arena), free(head_arena), free(arena);
    fovea_host_close(model), fovea_host_close(head);
}

void test_drafts(const char* model_path, const char* head_path, const char* other_path) {
    test_host(model_path, head_path, other_path);
    test_steps(model_path, head_path);
}
