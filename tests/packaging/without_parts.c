/* A library without its parts: answers with the demo model (argv[1]), refuses the other files, and what no file asks for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fovea/fovea.h"

static int shown(fovea_status status) {
    char line[160];
    if (status.code == FOVEA_OK) return 0;
    fovea_describe(status, line, sizeof line);
    puts(line);
    return 1;
}

static struct fovea_model* open_file(const char* path) {
    FILE* file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) exit(2);
    const long size = ftell(file);
    rewind(file);
    void* bytes = aligned_alloc(64, ((size_t)size + 63) / 64 * 64);
    if (fread(bytes, 1, (size_t)size, file) != (size_t)size) exit(2);
    fclose(file);
    struct fovea_model* model = NULL;
    return shown(fovea_open_model(bytes, (size_t)size, FOVEA_VERIFY, malloc(FOVEA_MODEL_BYTES), FOVEA_MODEL_BYTES,
                                  &model))
               ? NULL
               : model;
}

int main(int argc, char** argv) {
    for (int i = 2; i < argc; ++i) {  // refused when opened, or when planned
        const struct fovea_model* model = open_file(argv[i]);
        const fovea_limits limits = {.struct_size = sizeof limits};
        fovea_plan plan = {.struct_size = sizeof plan};
        if (model && !shown(fovea_plan_workspace(model, &limits, &plan))) return 1;
    }

    const struct fovea_model* demo = argc > 1 ? open_file(argv[1]) : NULL;
    if (!demo) return 1;
    const fovea_limits limits = {.struct_size = sizeof limits, .max_positions = 96, .max_text_bytes = 64};
    fovea_limits two = limits;
    two.n_threads = 2;
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_session* session = NULL;
    if (!shown(fovea_plan_session(demo, &two, &plan)) || shown(fovea_plan_session(demo, &limits, &plan))) return 1;
    void* arena = aligned_alloc(64, plan.arena_bytes);
    if (shown(fovea_make_session_of(demo, &limits, arena, plan.arena_bytes, &session))) return 1;
    float weights[4];
    const fovea_attention capture = {
        .struct_size = sizeof capture, .n_queries = 2, .n_keys = 2, .out = weights, .n_out = 4};
    if (!shown(fovea_capture_attention(fovea_session_workspace(session), &capture))) return 1;

    const fovea_cache cache = fovea_session_cache(session);
    const fovea_generator_limits proposing = {.struct_size = sizeof proposing, .max_proposed = 4};
    const fovea_generator_limits most = {.struct_size = sizeof most};
    fovea_generator_plan texts = {.struct_size = sizeof texts};
    fovea_generator* generator = NULL;
    if (!shown(fovea_plan_generator(demo, &proposing, &texts)) || shown(fovea_plan_generator(demo, &most, &texts)))
        return 1;
    void* more = aligned_alloc(64, texts.arena_bytes);
    if (shown(fovea_make_generator(demo, &cache, &most, more, texts.arena_bytes, &generator))) return 1;

    const float logits[2] = {1, 2};
    const fovea_sampler penalizing = {.struct_size = sizeof penalizing, .presence_penalty = 1};
    uint64_t scratch[2];
    uint32_t tokens[96];
    if (!shown(fovea_sample_logits(&penalizing, 0, logits, 2, NULL, 0, NULL, scratch, sizeof scratch, tokens)))
        return 1;
    size_t n_tokens = 0;
    static const char kPrompt[] = "turn on the garden dehumidifier\n";
    const fovea_generate_options options = {.struct_size = sizeof options};
    fovea_piece piece = {.struct_size = sizeof piece};
    if (shown(fovea_tokenize(session, kPrompt, strlen(kPrompt), 0, tokens, 96, &n_tokens)) ||
        shown(fovea_start(generator, tokens, n_tokens, &options)))
        return 1;
    fputs("answer: ", stdout);
    while (piece.finish == FOVEA_FINISH_NONE) {
        if (shown(fovea_generate(generator, fovea_session_workspace(session), &piece))) return 1;
        fwrite(piece.text.bytes, 1, piece.text.n_bytes, stdout);
    }
    putchar('\n');
    return 0;
}
