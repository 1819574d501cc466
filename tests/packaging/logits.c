/* The hash of a model's logits after every token of a text, or of tokens if the model has no tokenizer: what `fovea certify` prints
 * first. By C alone, for libraries of machines that have no command line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fovea/fovea.h"

enum { kTokens = 80, kAlignment = 64 }; /* certify's, of a model without a tokenizer; what the library wants of addresses */

static void require(fovea_status status, const char* what) {
    char line[160];
    if (status.code == FOVEA_OK) return;
    fovea_describe(status, line, sizeof line);
    fprintf(stderr, "logits: %s: %s\n", what, line);
    exit(1);
}

/* Aligned memory that the program's end releases. */
static void* take(uint64_t n_bytes) {
    char* bytes = malloc((size_t)n_bytes + kAlignment);
    if (!bytes) {
        fprintf(stderr, "logits: expected %" PRIu64 " bytes of memory, got none\n", n_bytes);
        exit(1);
    }
    return bytes + (kAlignment - (uintptr_t)bytes % kAlignment);
}

static void* read_file(const char* path, size_t* n_bytes) {
    FILE* file = fopen(path, "rb");
    void* bytes = NULL;
    *n_bytes = 0;
    if (file && fseek(file, 0, SEEK_END) == 0) {
        const long size = ftell(file);
        rewind(file);
        bytes = take((uint64_t)size);
        *n_bytes = fread(bytes, 1, (size_t)size, file);
    }
    if (file) fclose(file);
    return bytes;
}

int main(int argc, char** argv) {
    size_t file_bytes, n_tokens = 0, i, j;
    struct fovea_model* model;
    fovea_session* session;
    fovea_info info = {0};
    fovea_limits limits = {0};
    fovea_plan plan = {0};
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a, Fowler, Noll and Vo 1991 */
    if (argc < 2) return fprintf(stderr, "usage: logits MODEL [TEXT]\n"), 2;
    const char* text = argc > 2 ? argv[2] : "";
    void* file = read_file(argv[1], &file_bytes);
    void* memory = take(FOVEA_MODEL_BYTES);
    require(fovea_open_model(file, file_bytes, FOVEA_VERIFY, memory, FOVEA_MODEL_BYTES, &model), argv[1]);
    info.struct_size = sizeof info;
    require(fovea_model_info(model, &info), "info");
    limits.struct_size = sizeof limits;
    limits.max_text_bytes = (uint32_t)strlen(text);
    plan.struct_size = sizeof plan;
    require(fovea_plan_session(model, &limits, &plan), "plan");
    void* arena = take(plan.arena_bytes);
    require(fovea_make_session_of(model, &limits, arena, (size_t)plan.arena_bytes, &session), "session");

    uint32_t* tokens = take((plan.max_tokens + kTokens) * sizeof *tokens);
    if (info.has_tokenizer)
        require(fovea_tokenize(session, text, strlen(text), 0, tokens, (size_t)plan.max_tokens, &n_tokens), "text");
    else
        for (; n_tokens < kTokens && n_tokens < info.max_positions; ++n_tokens)
            tokens[n_tokens] = (uint32_t)(n_tokens * 7919 % info.vocab_size);
    for (i = 0; i < n_tokens; ++i) {
        require(fovea_forward(session, tokens + i, 1), "forward");
        const float* logits = fovea_logits(session);
        for (j = 0; j < info.vocab_size; ++j) {
            uint32_t bits;
            memcpy(&bits, logits + j, sizeof bits);
            hash = (hash ^ bits) * 0x100000001b3u;
        }
    }
    if (n_tokens == 0) return fprintf(stderr, "logits: expected a text of 1 token or more, got none\n"), 2;
    printf("%016" PRIx64 "\n", hash);
    return 0;
}
