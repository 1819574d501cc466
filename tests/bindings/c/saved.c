/* Saved sessions by fovea_host.h: what another session goes on with, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bindings/c/check.h"

static fovea_host_session* start(const fovea_host_model* model, uint32_t max_positions) {
    const fovea_limits limits = {.struct_size = sizeof limits, .max_positions = max_positions, .n_threads = 1};
    fovea_host_session* session = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_start(model, &limits, &session));
    if (!session) exit(1);
    return session;
}

static fovea_generate_figures figures_of(const fovea_host_session* session) {
    fovea_generate_figures figures = {.struct_size = sizeof figures};
    CHECK(fovea_generator_figures(fovea_host_generator(session), &figures).code == FOVEA_OK);
    return figures;
}

static void* save(const fovea_host_session* session, size_t* n_bytes) {
    void* saved = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_save(session, &saved, n_bytes));
    if (!saved) exit(1);
    return saved;
}

void test_saved(const fovea_host_model* model, const fovea_host_model* other) {
    uint32_t first[kNew] = {0}, again[kNew] = {0};
    size_t n_bytes = 0, n_empty = 0, n_again = 0;
    fovea_host_session *session = start(model, 48), *longer = start(model, 0), *stranger = start(other, 48);
    char* empty = save(session, &n_empty);
    write_tokens(session, first);
    char* saved = save(session, &n_bytes);
    CHECK(n_bytes > n_empty);
    GIVES(FOVEA_HOST_OK, fovea_host_restore(longer, saved, n_bytes));
    char* same = save(longer, &n_again);
    CHECK(n_again == n_bytes && memcmp(saved, same, n_bytes) == 0);
    write_tokens(longer, again);
    CHECK(memcmp(first, again, sizeof first) == 0);
    const fovea_generate_figures figures = figures_of(longer);
    CHECK(figures.n_kept == figures.n_prompt - 1); /* the last is computed again, for its logits */

    char* damaged = malloc(n_bytes);
    if (!damaged) exit(1);
    for (size_t at = 0; at < n_bytes; at += 1 + n_bytes / 97) {
        memcpy(damaged, saved, n_bytes);
        damaged[at] ^= 4;
        GIVES(FOVEA_HOST_FAILED, fovea_host_restore(longer, damaged, n_bytes));
        GIVES(FOVEA_HOST_FAILED, fovea_host_restore(longer, saved, at));
    }
    GIVES(FOVEA_HOST_FAILED, fovea_host_restore(stranger, saved, n_bytes));
    CHECK(strncmp(fovea_host_error(), "saved: ", 7) == 0);
    write_tokens(longer, again); /* the session is as it was */
    CHECK(memcmp(first, again, sizeof first) == 0 && figures_of(longer).n_kept == figures.n_kept);

    /* The cache of one, the tokens of none. */
    char* joined = malloc(n_bytes);
    if (!joined) exit(1);
    const size_t n_tokens = figures.n_prompt + kNew - 1, n_cache = n_bytes - 8 - n_tokens * sizeof *first;
    memcpy(joined, saved, n_cache), memcpy(joined + n_cache, empty + n_empty - 8, 8);
    GIVES(FOVEA_HOST_FAILED, fovea_host_restore(longer, joined, n_cache + 8));
    write_tokens(longer, again); /* it is empty */
    CHECK(memcmp(first, again, sizeof first) == 0 && figures_of(longer).n_kept == 0);

    GIVES(FOVEA_HOST_OK, fovea_host_restore(longer, empty, n_empty));
    GIVES(FOVEA_HOST_FAILED, fovea_host_restore(longer, NULL, 0));
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_restore(longer, NULL, 8));
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_restore(NULL, saved, n_bytes));
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_save(session, NULL, &n_bytes));
    free(damaged), free(joined), fovea_host_free(saved), fovea_host_free(same), fovea_host_free(empty);
    fovea_host_end(session), fovea_host_end(longer), fovea_host_end(stranger);
}

void test_session_file(const char* demo_path, const char* path) {
    enum { kMost = 1 << 20 };
    fovea_host_model* demo = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_open(demo_path, NULL, &demo));
    fovea_host_session* session = start(demo, 0);
    char* bytes = malloc(kMost);
    FILE* file = fopen(path, "rb");
    if (!bytes || !file) exit(1);
    const size_t n_bytes = fread(bytes, 1, kMost, file);
    fclose(file), remove(path); /* or the next run would go on with it */
    size_t n_again = 0;
    GIVES(FOVEA_HOST_OK, fovea_host_restore(session, bytes, n_bytes));
    char* again = save(session, &n_again);
    CHECK(n_bytes > 1000 && n_again == n_bytes && memcmp(bytes, again, n_bytes) == 0);
    free(bytes), fovea_host_free(again), fovea_host_end(session), fovea_host_close(demo);
}
