// A whole program in C: reads a model's file, asks for the size of what it needs, tokenizes a prompt, and prints what
// follows as it is made.
//
//     fovea_example_complete MODEL PROMPT [TOKENS]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fovea/fovea.h"

#if defined(_WIN32)  // whose C library has other names for memory that is aligned
#include <malloc.h>
#define aligned_alloc(alignment, n_bytes) _aligned_malloc(n_bytes, alignment)
#define free_aligned _aligned_free
#else
#define free_aligned free
#endif

enum { kProposed = 8 };  // tokens looked up in the text so far, which save passes where they are right

static void* aligned(uint64_t n_bytes) { return aligned_alloc(64, (size_t)(n_bytes + 63) / 64 * 64); }

static void* read_file(const char* path, size_t* n_bytes) {
    FILE* file = fopen(path, "rb");
    if (!file) return NULL;
    void* bytes = NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        const long size = ftell(file);
        rewind(file);
        if (size > 0) bytes = aligned((uint64_t)size);  // models are opened at addresses that 64 divides
        *n_bytes = bytes ? fread(bytes, 1, (size_t)size, file) : 0;
    }
    fclose(file);
    return bytes;
}

static int failed(fovea_status status) {
    if (status.code == FOVEA_OK) return 0;
    char line[160];
    fovea_describe(status, line, sizeof line);
    fprintf(stderr, "%s\n", line);
    return 1;
}

/// The prompt as the model wants it: with what closes one before it answers.
static char* make_text(const struct fovea_model* model, const char* prompt, size_t* n_bytes) {
    fovea_info info = {.struct_size = sizeof info};
    if (failed(fovea_model_info(model, &info))) return NULL;
    const size_t n = strlen(prompt), n_suffix = info.prompt_suffix.n_bytes;
    char* text = malloc(n + n_suffix + 1);
    if (!text) return NULL;
    memcpy(text, prompt, n);
    if (n_suffix) memcpy(text + n, info.prompt_suffix.bytes, n_suffix);
    *n_bytes = n + n_suffix;
    return text;
}

/// Prints up to n_new tokens that follow the prompt's, piece by piece.
static int print_text(fovea_generator* generator, fovea_workspace* workspace, const uint32_t* prompt, size_t n_prompt,
                      uint32_t n_new) {
    const fovea_speculation speculation = {.struct_size = sizeof speculation, .n_proposed = kProposed};
    const fovea_generate_options options = {.struct_size = sizeof options, .n_new = n_new, .speculation = &speculation};
    fovea_piece piece = {.struct_size = sizeof piece};
    if (failed(fovea_start(generator, prompt, n_prompt, &options))) return 1;
    while (piece.finish == FOVEA_FINISH_NONE) {
        if (failed(fovea_generate(generator, workspace, &piece))) return 1;
        fwrite(piece.text.bytes, 1, piece.text.n_bytes, stdout);
        fflush(stdout);
    }
    putchar('\n');
    return 0;
}

int main(int argc, char** argv) {
    if (argc < 3) return fprintf(stderr, "usage: %s MODEL PROMPT [TOKENS]\n", argv[0]), 2;
    char* end = NULL;
    const long n_wanted = argc > 3 ? strtol(argv[3], &end, 10) : 64;
    if (n_wanted < 1 || (end && *end)) return fprintf(stderr, "TOKENS: expected a number from 1, got %s\n", argv[3]), 2;
    size_t file_bytes = 0, text_bytes = 0, n_tokens = 0;
    void* file = read_file(argv[1], &file_bytes);
    if (!file) return fprintf(stderr, "%s: cannot be read\n", argv[1]), 1;

    // 1. The model: a view of the file, which stays where it is.
    struct fovea_model* model;
    void* memory = malloc(FOVEA_MODEL_BYTES);
    if (failed(fovea_open_model(file, file_bytes, FOVEA_VERIFY, memory, FOVEA_MODEL_BYTES, &model))) return 1;
    char* text = make_text(model, argv[2], &text_bytes);
    if (!text) return 1;

    // 2. The plan: exact sizes, before any memory is taken.
    const fovea_limits limits = {
        .struct_size = sizeof limits, .max_text_bytes = (uint32_t)text_bytes, .n_threads = fovea_default_threads()};
    fovea_plan plan = {.struct_size = sizeof plan};
    if (failed(fovea_plan_session(model, &limits, &plan))) return 1;

    // 3. The session: all the memory that it will ever use.
    fovea_session* session;
    void* arena = aligned(plan.arena_bytes);
    uint32_t* tokens = malloc((size_t)plan.max_tokens * sizeof *tokens);
    if (!arena || !tokens) return fprintf(stderr, "no memory\n"), 1;
    if (failed(fovea_make_session_of(model, &limits, arena, (size_t)plan.arena_bytes, &session))) return 1;

    // 4. The generator: a text's tokens, their choice and their text, in the session's cache.
    const fovea_cache cache = fovea_session_cache(session);
    const fovea_generator_limits most = {.struct_size = sizeof most, .max_proposed = kProposed};
    fovea_generator_plan texts = {.struct_size = sizeof texts};
    fovea_generator* generator;
    if (failed(fovea_plan_generator(model, &most, &texts))) return 1;
    void* more = aligned(texts.arena_bytes);
    if (!more) return fprintf(stderr, "no memory\n"), 1;
    if (failed(fovea_make_generator(model, &cache, &most, more, (size_t)texts.arena_bytes, &generator))) return 1;

    // 5. Text to tokens, and on from there.
    if (failed(fovea_tokenize(session, text, text_bytes, 0, tokens, (size_t)plan.max_tokens, &n_tokens))) return 1;
    const int bad = print_text(generator, fovea_session_workspace(session), tokens, n_tokens, (uint32_t)n_wanted);

    // Nothing has to be ended: memory is released, and that is all.
    free_aligned(more), free_aligned(arena), free_aligned(file), free(tokens), free(text), free(memory);
    return bad;
}
