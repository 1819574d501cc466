/* Models as handles, their text, and the sampler over the caller's logits. */
#include <math.h>
#include <stdlib.h>

#include "tests/c_api/check.h"

static void test_info(const struct fovea_model* model) {
    fovea_info info = {.struct_size = sizeof info};
    GIVES(FOVEA_OK, fovea_model_info(model, &info));
    CHECK(info.kind == FOVEA_LOGITS && info.n_layers == 2 && info.d_model == 48 && info.vocab_size == 71);
    CHECK(info.max_positions == 160 && info.n_heads == 6 && info.n_kv_heads == 2 && info.head_dim == 8);
    CHECK(!info.pools && !info.reads_memory && !info.source_n_layers && !info.has_tokenizer && !info.adds_bos);
    CHECK(info.bos == FOVEA_NO_TOKEN && info.file_bytes == decoder_file().n_bytes && info.fingerprint != 0);
    /* A caller that knows less, and none at all. */
    fovea_info less = {.struct_size = offsetof(fovea_info, d_model), .d_model = 9};
    GIVES(FOVEA_OK, fovea_model_info(model, &less));
    CHECK(less.n_layers == 2 && less.d_model == 9 && less.struct_size == offsetof(fovea_info, d_model));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_model_info(model, NULL));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_model_info(NULL, &info));
    less.struct_size = 1025;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_model_info(model, &less));

    fovea_layer layer = {.struct_size = sizeof layer};
    GIVES(FOVEA_OK, fovea_model_layer(model, 0, 1, &layer));
    CHECK(layer.n_heads == 6 && layer.d_ff == 88 && layer.causal && !layer.no_projections && layer.query_width == 48);
    CHECK(layer.output_width == 48 && !layer.cross_attention && !layer.n_appended && !layer.window);
    GIVES(FOVEA_BAD_ARGUMENT, fovea_model_layer(model, 0, 2, &layer));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_model_layer(NULL, 0, 0, &layer));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_model_layer(model, 0, 0, NULL));

    const struct fovea_model* both = open_test_model(both_file());
    GIVES(FOVEA_OK, fovea_model_info(both, &info));
    CHECK(info.kind == FOVEA_VECTORS && info.n_layers == 3 && info.source_n_layers == 2 && info.reads_memory);
    CHECK(info.source_d_model == 40 && !info.source_vocab && !info.vocab_size);
    GIVES(FOVEA_OK, fovea_model_layer(both, 0, 2, &layer));
    CHECK(layer.cross_attention);
    GIVES(FOVEA_OK, fovea_model_layer(both, 1, 1, &layer));
    CHECK(!layer.cross_attention);
    GIVES(FOVEA_BAD_ARGUMENT, fovea_model_layer(both, 1, 2, &layer));
}

void test_models(void) {
    const test_file file = decoder_file();
    unsigned char *copy = take(file.n_bytes), *memory = take(FOVEA_MODEL_BYTES + 8);
    struct fovea_model* model = NULL;
    memcpy(copy, file.bytes, file.n_bytes);
    GIVES(FOVEA_ARENA_TOO_SMALL, fovea_open_model(copy, file.n_bytes, 0, memory, FOVEA_MODEL_BYTES - 1, &model));
    GIVES(FOVEA_MISALIGNED, fovea_open_model(copy, file.n_bytes, 0, memory + 1, FOVEA_MODEL_BYTES, &model));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_open_model(copy, file.n_bytes, 2, memory, FOVEA_MODEL_BYTES, &model));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_open_model(copy, file.n_bytes, 0, NULL, FOVEA_MODEL_BYTES, &model));
    GIVES(FOVEA_TRUNCATED, fovea_open_model(copy, file.n_bytes - 1, 0, memory, FOVEA_MODEL_BYTES, &model));
    GIVES(FOVEA_TRUNCATED, fovea_open_model(NULL, 0, 0, memory, FOVEA_MODEL_BYTES, &model));
    GIVES(FOVEA_MISALIGNED, fovea_open_model(copy + 1, file.n_bytes - 1, 0, memory, FOVEA_MODEL_BYTES, &model));
    CHECK(!model);
    for (int i = 0; i < FOVEA_MODEL_BYTES; ++i) CHECK(memory[i] == 0);
    copy[file.n_bytes - 1000] ^= 1; /* a weight */
    GIVES(FOVEA_CHECKSUM_MISMATCH,
          fovea_open_model(copy, file.n_bytes, FOVEA_VERIFY, memory, FOVEA_MODEL_BYTES, &model));
    GIVES(FOVEA_CHECKSUM_MISMATCH, fovea_verify(copy, file.n_bytes));
    GIVES(FOVEA_OK, fovea_open_model(copy, file.n_bytes, 0, memory, FOVEA_MODEL_BYTES, &model));
    GIVES(FOVEA_CHECKSUM_MISMATCH, fovea_verify_model(model));
    copy[file.n_bytes - 1000] ^= 1;
    GIVES(FOVEA_OK, fovea_verify_model(model));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_verify_model(NULL));
    test_info(model);

    /* What is made with a handle outlives it. */
    fovea_limits limits = {.struct_size = sizeof limits, .max_positions = 8};
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_session* session = NULL;
    GIVES(FOVEA_OK, fovea_plan_session(model, &limits, &plan));
    CHECK(plan.vocab_size == 71 && plan.max_positions == 8 && !plan.max_tokens && !plan.prompt_suffix_bytes);
    GIVES(FOVEA_OK, fovea_make_session_of(model, &limits, take(plan.arena_bytes), (size_t)plan.arena_bytes, &session));
    memset(memory, 0xff, FOVEA_MODEL_BYTES);
    uint32_t tokens[4] = {1, 70, 3, 4};
    float* logits = take_floats(4 * 71);
    cpp_forward(tokens, 4, logits);
    GIVES(FOVEA_OK, fovea_forward(session, tokens, 4));
    CHECK(same_floats(logits + 3 * 71, fovea_logits(session), 71));
    size_t n = 1;
    GIVES(FOVEA_SECTION_MISSING, fovea_tokenize(session, "a", 1, 0, tokens, 4, &n));
    CHECK(n == 0);

    CHECK(strcmp(fovea_code_name(FOVEA_POOL_FULL), "pool full") == 0 && strcmp(fovea_code_name(FOVEA_OK), "ok") == 0);
    CHECK(strcmp(fovea_code_name(256), "unknown code") == 0);
    size_t n_isas = 0;
    while (fovea_isa_name(n_isas)) ++n_isas;
    CHECK(n_isas > 0 && strcmp(fovea_isa_name(n_isas - 1), "scalar") == 0 && !fovea_isa_name(n_isas + 1));
    CHECK(fovea_default_threads() >= 1);
    fovea_end_threads(); /* there are none */
}

void test_text(const struct fovea_model* demo) {
    static const char text[] = "turn on the garden dehumidifier\n";
    const size_t n_text = sizeof text - 1;
    fovea_info info = {.struct_size = sizeof info};
    GIVES(FOVEA_OK, fovea_model_info(demo, &info));
    CHECK(info.has_tokenizer && info.adds_bos && info.bos < info.vocab_size && info.max_piece_bytes > 0);
    CHECK(info.name.n_bytes > 0 && info.architecture.n_bytes > 0 && info.prompt_suffix.n_bytes == 1);
    const size_t n_scratch = (size_t)fovea_scratch_bytes(demo, n_text);
    const size_t most = (size_t)fovea_max_tokens(demo, n_text);
    unsigned char* scratch = take(n_scratch);
    uint32_t* tokens = take(most * sizeof(uint32_t));
    size_t n = 0;
    GIVES(FOVEA_BUFFER_TOO_SMALL,
          fovea_model_tokenize(demo, text, n_text, 0, scratch, n_scratch - 1, tokens, most, &n));
    GIVES(FOVEA_MISALIGNED, fovea_model_tokenize(demo, text, 1, 0, scratch + 1, n_scratch - 1, tokens, most, &n));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_model_tokenize(demo, text, n_text, 4, scratch, n_scratch, tokens, most, &n));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_model_tokenize(NULL, text, n_text, 0, scratch, n_scratch, tokens, most, &n));
    CHECK(n == 0);
    const fovea_status status = fovea_model_tokenize(demo, text, n_text, 0, scratch, n_scratch, tokens, 1, &n);
    CHECK(status.code == FOVEA_BUFFER_TOO_SMALL && strcmp(status.what, "tokens") == 0 && n == 0);
    GIVES(FOVEA_OK, fovea_model_tokenize(demo, text, n_text, 0, scratch, n_scratch, tokens, most, &n));
    CHECK(n == status.wanted && n <= most && tokens[0] == info.bos);
    CHECK(fovea_token_flags(demo, info.bos) & FOVEA_SPECIAL_TOKEN);
    CHECK(fovea_token_flags(demo, tokens[1]) == 0 && fovea_token_flags(demo, info.vocab_size) == 0);

    /* Decoded and piece by piece, it is the text. */
    char back[128], piece[256];
    size_t n_back = 0, n_pieces = 0;
    fovea_decoder decoder = {.n_held = 0};
    CHECK(info.max_piece_bytes <= sizeof piece);
    for (size_t i = 0; i < n; ++i) {
        const size_t n_piece = fovea_model_decode(demo, &decoder, tokens[i], piece, sizeof piece);
        memcpy(back + n_back, piece, n_piece);
        n_back += n_piece;
        if (i) n_pieces += fovea_token_bytes(demo, tokens[i]).n_bytes;
    }
    CHECK(n_back == n_text && memcmp(back, text, n_text) == 0 && n_pieces == n_text);
    CHECK(fovea_token_bytes(demo, info.vocab_size).n_bytes == 0);
    int n_ends = 0;
    for (uint32_t i = 0; i < info.vocab_size; ++i) n_ends += (fovea_token_flags(demo, i) & FOVEA_END_TOKEN) != 0;
    CHECK(n_ends > 0);

    CHECK(fovea_scratch_bytes(NULL, 8) == 0 && fovea_max_tokens(NULL, 8) == 0 && fovea_token_flags(NULL, 0) == 0);
    CHECK(fovea_token_bytes(NULL, 0).n_bytes == 0 && fovea_model_decode(NULL, &decoder, 0, piece, 1) == 0);
    CHECK(fovea_scratch_bytes(demo, UINT64_MAX) == UINT64_MAX);
    const struct fovea_model* no_text = open_test_model(decoder_file());
    CHECK(fovea_scratch_bytes(no_text, 8) == 0 && fovea_max_tokens(no_text, 8) == 0);
    GIVES(FOVEA_SECTION_MISSING, fovea_model_tokenize(no_text, text, n_text, 0, NULL, 0, tokens, most, &n));
}

void test_sampler(void) {
    const float logits[4] = {1, 3, 2, 2.5f};
    uint64_t scratch[4];
    uint32_t token = 9;
    fovea_sampler sampler = {.struct_size = sizeof sampler};
    GIVES(FOVEA_OK, fovea_sample_logits(&sampler, 0, logits, 4, NULL, 0, NULL, scratch, sizeof scratch, &token));
    CHECK(token == 1);
    const uint32_t recent[1] = {1};
    sampler.repeat_penalty = 4;
    GIVES(FOVEA_OK, fovea_sample_logits(&sampler, 0, logits, 4, recent, 1, NULL, scratch, sizeof scratch, &token));
    CHECK(token == 3);
    sampler.repeat_penalty = 0;
    sampler.frequency_penalty = 0.75f;
    GIVES(FOVEA_OK, fovea_sample_logits(&sampler, 0, logits, 4, recent, 1, NULL, scratch, sizeof scratch, &token));
    CHECK(token == 3);
    sampler.frequency_penalty = 0;
    sampler.presence_penalty = 0.25f;
    GIVES(FOVEA_OK, fovea_sample_logits(&sampler, 0, logits, 4, recent, 1, NULL, scratch, sizeof scratch, &token));
    CHECK(token == 1);
    sampler.presence_penalty = 0;
    const fovea_logit_bias biases[2] = {{0, 2.5f}, {1, -INFINITY}};
    sampler.bias = biases;
    sampler.n_bias = 2;
    GIVES(FOVEA_OK, fovea_sample_logits(&sampler, 0, logits, 4, NULL, 0, NULL, scratch, sizeof scratch, &token));
    CHECK(token == 0);
    sampler.bias = NULL;
    GIVES(FOVEA_BAD_ARGUMENT,
          fovea_sample_logits(&sampler, 0, logits, 4, NULL, 0, NULL, scratch, sizeof scratch, &token));
    sampler.n_bias = 0;
    sampler.presence_penalty = 2000;
    GIVES(FOVEA_BAD_ARGUMENT,
          fovea_sample_logits(&sampler, 0, logits, 4, NULL, 0, NULL, scratch, sizeof scratch, &token));
    sampler.presence_penalty = 0;
    const uint32_t even[1] = {5};
    GIVES(FOVEA_OK, fovea_sample_logits(&sampler, 0, logits, 4, NULL, 0, even, scratch, sizeof scratch, &token));
    CHECK(token == 2);
    sampler.temperature = 2;
    sampler.seed = 5;
    int n_seen[4] = {0};
    for (uint32_t pos = 0; pos < 200; ++pos) {
        uint32_t again = 9;
        GIVES(FOVEA_OK, fovea_sample_logits(&sampler, pos, logits, 4, NULL, 0, NULL, scratch, sizeof scratch, &token));
        GIVES(FOVEA_OK, fovea_sample_logits(&sampler, pos, logits, 4, NULL, 0, NULL, scratch, sizeof scratch, &again));
        CHECK(token < 4 && token == again);
        if (token < 4) ++n_seen[token];
    }
    for (int i = 0; i < 4; ++i) CHECK(n_seen[i] > 10);
    token = 9;
    GIVES(FOVEA_BAD_SHAPE,
          fovea_sample_logits(&sampler, 0, logits, 4, NULL, 0, NULL, scratch, sizeof scratch - 1, &token));
    GIVES(FOVEA_BAD_SHAPE, fovea_sample_logits(&sampler, 0, logits, 0, NULL, 0, NULL, scratch, sizeof scratch, &token));
    GIVES(FOVEA_MISALIGNED,
          fovea_sample_logits(&sampler, 0, logits, 3, NULL, 0, NULL, (char*)scratch + 1, sizeof scratch - 1, &token));
    sampler.top_p = 2;
    GIVES(FOVEA_BAD_ARGUMENT,
          fovea_sample_logits(&sampler, 0, logits, 4, NULL, 0, NULL, scratch, sizeof scratch, &token));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_sample_logits(NULL, 0, logits, 4, NULL, 0, NULL, scratch, sizeof scratch, &token));
    CHECK(token == 9);
}
