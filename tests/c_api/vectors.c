/* Encoders, decoders that read a memory, attention alone, and attention weights. */
#include <math.h>

#include "tests/c_api/check.h"

enum { kWidth = 40 };

static void fill(float* x, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; ++i) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) * 0x1p-23f - 1;
    }
}

/* Logits token by token beside a memory are those of all rows at once. */
void test_kept_memory(void) {
    enum { kVocab = 71, kRows = 9, kTokens = 4 };
    const struct fovea_model* model = open_test_model(reader_file());
    const fovea_limits limits = {
        .struct_size = sizeof limits, .max_positions = 20, .max_batch = 20, .max_sequences = 2};
    fovea_workspace* workspace = make_test_workspace(model, &limits);
    fovea_pool* pools[2];
    for (uint32_t memory = 0; memory < 2; ++memory) {
        const fovea_pool_limits of = {.struct_size = sizeof of, .max_positions = 20, .memory = memory};
        fovea_pool_plan plan = {.struct_size = sizeof plan};
        GIVES(FOVEA_OK, fovea_plan_pool(model, &of, &plan));
        GIVES(FOVEA_OK, fovea_make_pool(model, &of, take(plan.arena_bytes), (size_t)plan.arena_bytes, &pools[memory]));
    }
    const fovea_pool_limits of_memory = {.struct_size = sizeof of_memory, .memory = 1};
    fovea_pool_plan none = {.struct_size = sizeof none};
    GIVES(FOVEA_UNSUPPORTED, fovea_plan_pool(open_test_model(decoder_file()), &of_memory, &none));

    float vectors[kRows * kWidth];
    fill(vectors, kRows * kWidth, 5);
    const uint32_t ids[kTokens] = {3, 70, 9, 26}, n_rows = kRows, n_tokens = kTokens;
    const fovea_sequences source = {.struct_size = sizeof source,
                                    .vectors = vectors,
                                    .n_vectors = kRows * kWidth,
                                    .lengths = &n_rows,
                                    .n_lengths = 1};
    const fovea_sequences target = {
        .struct_size = sizeof target, .ids = ids, .n_ids = kTokens, .lengths = &n_tokens, .n_lengths = 1};
    fovea_encode_input input = {.struct_size = sizeof input, .source = &source, .target = &target};
    float *expected = take_floats(kTokens * kVocab), *logits = take_floats(kVocab);
    GIVES(FOVEA_OK, fovea_encode(workspace, &input, expected, kTokens * kVocab));

    fovea_cache text = {0}, memory = {0};
    GIVES(FOVEA_OK, fovea_make_cache(pools[0], &text));
    GIVES(FOVEA_OK, fovea_make_cache(pools[1], &memory));
    GIVES(FOVEA_BAD_SHAPE, fovea_cache_memory(workspace, &input, &memory, 1));
    input.target = NULL;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_cache_memory(NULL, &input, &memory, 1));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_cache_memory(workspace, NULL, &memory, 1));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_cache_memory(workspace, &input, &text, 1));
    GIVES(FOVEA_BAD_SHAPE, fovea_cache_memory(workspace, &input, &memory, 3));
    GIVES(FOVEA_OK, fovea_cache_memory(workspace, &input, &memory, 1));
    CHECK(fovea_cache_kv_len(&memory) == kRows);
    for (uint32_t i = 0; i < kTokens; ++i) {
        fovea_step step = {.struct_size = sizeof step,
                           .cache = text,
                           .tokens = ids + i,
                           .n_tokens = 1,
                           .logits = logits,
                           .n_logits = kVocab};
        GIVES(FOVEA_BAD_ARGUMENT, fovea_forward_steps(workspace, &step, 1));
        step.memory = memory;
        GIVES(FOVEA_OK, fovea_forward_steps(workspace, &step, 1));
        CHECK(same_floats(expected + i * kVocab, logits, kVocab));
    }
}

void test_encode(void) {
    const struct fovea_model* model = open_test_model(encoder_file());
    fovea_limits limits = {.struct_size = sizeof limits, .max_batch = 64, .max_sequences = 2};
    fovea_workspace* workspace = make_test_workspace(model, &limits);
    fovea_plan plan = {.struct_size = sizeof plan};
    GIVES(FOVEA_OK, fovea_plan_workspace(model, &limits, &plan));
    CHECK(plan.max_key_rows == 64 && plan.max_sequences == 2);
    uint32_t ids[12], types[12];
    for (uint32_t i = 0; i < 12; ++i) {
        ids[i] = i * 7 % 60;
        types[i] = i & 1;
    }
    const uint32_t lengths[2] = {7, 5};
    const uint8_t hidden[14] = {0, 0, 1, 0, 0, 0, 1, 0, 1};
    const fovea_mask padding = {.struct_size = sizeof padding, .n_keys = 7, .hidden = hidden, .sequence_stride = 7};
    fovea_sequences source = {.struct_size = sizeof source,
                              .ids = ids,
                              .n_ids = 12,
                              .types = types,
                              .n_types = 12,
                              .lengths = lengths,
                              .n_lengths = 2,
                              .padding_mask = &padding};
    fovea_encode_input input = {.struct_size = sizeof input, .source = &source};
    float *expected = take_floats(12 * kWidth), *out = take_floats(12 * kWidth);
    cpp_encode(ids, types, lengths, hidden, 7, expected);
    GIVES(FOVEA_OK, fovea_encode(workspace, &input, out, 12 * kWidth));
    CHECK(same_floats(expected, out, 12 * kWidth));
    source.padding_mask = NULL;
    GIVES(FOVEA_OK, fovea_encode(workspace, &input, out, 12 * kWidth));
    CHECK(!same_floats(expected, out, 12 * kWidth));

    memset(out, 0, 12 * kWidth * sizeof *out);
    GIVES(FOVEA_BAD_ARGUMENT, fovea_encode(NULL, &input, out, 12 * kWidth));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_encode(workspace, NULL, out, 12 * kWidth));
    GIVES(FOVEA_BAD_SHAPE, fovea_encode(workspace, &input, out, 12 * kWidth - 1));
    ids[3] = 60;
    GIVES(FOVEA_TOKEN_OUT_OF_RANGE, fovea_encode(workspace, &input, out, 12 * kWidth));
    ids[3] = 1;
    source.n_lengths = 1;
    GIVES(FOVEA_BAD_SHAPE, fovea_encode(workspace, &input, out, 12 * kWidth));
    source.n_lengths = 2;
    source.struct_size = 2;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_encode(workspace, &input, out, 12 * kWidth));
    source.struct_size = sizeof source;
    const fovea_mask odd = {.struct_size = 3};
    source.mask = &odd;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_encode(workspace, &input, out, 12 * kWidth));
    input.source = NULL;
    GIVES(FOVEA_BAD_SHAPE, fovea_encode(workspace, &input, out, 12 * kWidth));
    for (int i = 0; i < 12 * kWidth; ++i) CHECK(out[i] == 0);
    const fovea_limits none = {.struct_size = sizeof none};
    GIVES(FOVEA_UNSUPPORTED,
          fovea_encode(make_test_workspace(open_test_model(decoder_file()), &none), &input, out, kWidth));
    const fovea_attend_input heads = {.struct_size = sizeof heads};
    GIVES(FOVEA_UNSUPPORTED, fovea_attend(workspace, &heads, out, kWidth));
}

/* An encoder's vectors as a decoder's memory, with a mask that is added to the scores. */
void test_memory(void) {
    enum { kSource = 9, kTarget = 6 };
    const struct fovea_model* model = open_test_model(both_file());
    const fovea_limits limits = {.struct_size = sizeof limits, .max_batch = 64, .cancellable = 1};
    fovea_workspace* workspace = make_test_workspace(model, &limits);
    float source[kSource * kWidth], target[kTarget * kWidth], added[kTarget * kSource];
    fill(source, kSource * kWidth, 1);
    fill(target, kTarget * kWidth, 2);
    fill(added, kTarget * kSource, 3);
    added[4] = -INFINITY;
    const uint32_t n_source = kSource, n_target = kTarget;
    const fovea_sequences from = {.struct_size = sizeof from,
                                  .vectors = source,
                                  .n_vectors = kSource * kWidth,
                                  .lengths = &n_source,
                                  .n_lengths = 1};
    const fovea_sequences to = {.struct_size = sizeof to,
                                .causal = 1,
                                .vectors = target,
                                .n_vectors = kTarget * kWidth,
                                .lengths = &n_target,
                                .n_lengths = 1};
    const fovea_mask mask = {.struct_size = sizeof mask, .n_keys = kSource, .added = added, .query_stride = kSource};
    const fovea_encode_input input = {
        .struct_size = sizeof input, .source = &from, .target = &to, .memory_mask = &mask};
    float *expected = take_floats(kTarget * kWidth), *out = take_floats(kTarget * kWidth);
    cpp_both(source, kSource, target, kTarget, added, expected);
    GIVES(FOVEA_OK, fovea_encode(workspace, &input, out, kTarget * kWidth));
    CHECK(same_floats(expected, out, kTarget * kWidth));
    GIVES(FOVEA_OK, fovea_cancel(workspace, 1));
    GIVES(FOVEA_CANCELLED, fovea_encode(workspace, &input, out, kTarget * kWidth));
    GIVES(FOVEA_OK, fovea_cancel(workspace, 0));

    /* Weights of a head of the target's attention to the memory: what the mask hides is 0. */
    float* weights = take_floats(5 * kTarget * kSource);
    fovea_attention attention = {.struct_size = sizeof attention,
                                 .layer = 1,
                                 .cross = 1,
                                 .per_head = 1,
                                 .n_queries = kTarget,
                                 .n_keys = kSource,
                                 .out = weights,
                                 .n_out = 5 * kTarget * kSource};
    GIVES(FOVEA_OK, fovea_capture_attention(workspace, &attention));
    GIVES(FOVEA_OK, fovea_encode(workspace, &input, out, kTarget * kWidth));
    CHECK(same_floats(expected, out, kTarget * kWidth));
    for (int row = 0; row < 5 * kTarget; ++row) {
        float sum = 0;
        for (int i = 0; i < kSource; ++i) sum += weights[row * kSource + i];
        CHECK(fabsf(sum - 1) < 1e-5f && (row % kTarget || weights[row * kSource + 4] == 0));
    }
    attention.in_encoder = 1;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_capture_attention(workspace, &attention)); /* no memory there */
}

void test_attend(void) {
    enum { kQueries = 5, kKeys = 11, kPast = 4 };
    fovea_attention_shape shape = {.struct_size = sizeof shape, .n_heads = 4, .n_kv_heads = 2, .head_dim = 16};
    unsigned char* memory = take(FOVEA_MODEL_BYTES);
    struct fovea_model* model = NULL;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_attention_model(NULL, memory, FOVEA_MODEL_BYTES, &model));
    GIVES(FOVEA_ARENA_TOO_SMALL, fovea_attention_model(&shape, memory, FOVEA_MODEL_BYTES - 1, &model));
    shape.n_kv_heads = 3;
    GIVES(FOVEA_CONFIG_INVALID, fovea_attention_model(&shape, memory, FOVEA_MODEL_BYTES, &model));
    shape.n_kv_heads = 2;
    CHECK(!model && memory[0] == 0);
    GIVES(FOVEA_OK, fovea_attention_model(&shape, memory, FOVEA_MODEL_BYTES, &model));
    fovea_info info = {.struct_size = sizeof info};
    fovea_layer layer = {.struct_size = sizeof layer};
    GIVES(FOVEA_OK, fovea_model_info(model, &info));
    GIVES(FOVEA_OK, fovea_model_layer(model, 0, 0, &layer));
    CHECK(info.kind == FOVEA_ATTENTION && info.n_heads == 4 && info.value_head_dim == 16 && !info.file_bytes);
    CHECK(layer.no_projections && layer.query_width == 64 && layer.key_width == 32 && layer.output_width == 64);
    GIVES(FOVEA_OK, fovea_verify_model(model));

    const fovea_limits limits = {.struct_size = sizeof limits, .max_batch = 64, .max_key_rows = 64};
    fovea_workspace* workspace = make_test_workspace(model, &limits);
    float query[kQueries * 64], key[kKeys * 32], value[kKeys * 32];
    fill(query, kQueries * 64, 4);
    fill(key, kKeys * 32, 5);
    fill(value, kKeys * 32, 6);
    const fovea_heads few = {.row_stride = 32, .head_stride = 16};
    fovea_attend_input input = {.struct_size = sizeof input,
                                .n_queries = kQueries,
                                .n_keys = kKeys - kPast,
                                .n_past = kPast,
                                .causal = 1,
                                .query = {query, kQueries * 64, 0, 64, 16},
                                .key = few,
                                .value = few,
                                .past_key = few,
                                .past_value = few,
                                .out_row_stride = 64,
                                .out_head_stride = 16};
    input.key.data = key + kPast * 32;
    input.value.data = value + kPast * 32;
    input.past_key.data = key;
    input.past_value.data = value;
    input.key.n = input.value.n = (kKeys - kPast) * 32;
    input.past_key.n = input.past_value.n = kPast * 32;
    float *expected = take_floats(kQueries * 64), *out = take_floats(kQueries * 64);
    cpp_attend(query, kQueries, key, value, kKeys, kPast, expected);
    GIVES(FOVEA_OK, fovea_attend(workspace, &input, out, kQueries * 64));
    CHECK(same_floats(expected, out, kQueries * 64));

    /* Every key but the last hidden: its value comes out. */
    uint8_t hidden[kKeys] = {0};
    memset(hidden, 1, kKeys - 1);
    const fovea_mask mask = {.struct_size = sizeof mask, .n_keys = kKeys, .hidden = hidden};
    const uint32_t length = kKeys;
    input.causal = 0;
    input.mask = &mask;
    input.kv_lengths = &length;
    input.n_kv_lengths = 1;
    GIVES(FOVEA_OK, fovea_attend(workspace, &input, out, kQueries * 64));
    for (int i = 0; i < 16; ++i) CHECK(out[i] == value[(kKeys - 1) * 32 + i]);

    memset(out, 0, kQueries * 64 * sizeof *out);
    input.n_kv_lengths = 2;
    GIVES(FOVEA_BAD_SHAPE, fovea_attend(workspace, &input, out, kQueries * 64));
    input.n_kv_lengths = 1;
    GIVES(FOVEA_BAD_SHAPE, fovea_attend(workspace, &input, out, kQueries * 64 - 1));
    input.query.n -= 1;
    GIVES(FOVEA_BAD_SHAPE, fovea_attend(workspace, &input, out, kQueries * 64));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_attend(workspace, NULL, out, kQueries * 64));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_attend(NULL, &input, out, kQueries * 64));
    GIVES(FOVEA_UNSUPPORTED, fovea_encode(workspace, &(fovea_encode_input){.struct_size = 4}, out, 1));
    for (int i = 0; i < kQueries * 64; ++i) CHECK(out[i] == 0);
}

void test_attention(void) {
    enum { kN = 7, kHeads = 6, kVocab = 71 };
    const uint32_t tokens[kN] = {5, 4, 3, 2, 1, 6, 7};
    const struct fovea_model* model = open_test_model(decoder_file());
    const fovea_limits limits = {.struct_size = sizeof limits, .max_positions = 16};
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_session* session = NULL;
    GIVES(FOVEA_OK, fovea_plan_session(model, &limits, &plan));
    GIVES(FOVEA_OK, fovea_make_session_of(model, &limits, take(plan.arena_bytes), (size_t)plan.arena_bytes, &session));
    fovea_workspace* workspace = fovea_session_workspace(session);
    float *expected = take_floats(kHeads * kN * kN), *out = take_floats(kHeads * kN * kN);
    fovea_attention attention = {.struct_size = sizeof attention,
                                 .layer = 1,
                                 .per_head = 1,
                                 .n_queries = kN,
                                 .n_keys = kN,
                                 .out = out,
                                 .n_out = kHeads * kN * kN};
    GIVES(FOVEA_OK, fovea_capture_attention(workspace, &attention));
    GIVES(FOVEA_OK, fovea_forward(session, tokens, kN));
    cpp_attention(tokens, kN, expected);
    CHECK(same_floats(expected, out, kHeads * kN * kN));
    GIVES(FOVEA_BAD_SHAPE, fovea_forward(session, tokens, 1)); /* an eighth query has no row */
    GIVES(FOVEA_OK, fovea_capture_attention(workspace, NULL));
    GIVES(FOVEA_OK, fovea_forward(session, tokens, 1));
    attention.layer = 2;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_capture_attention(workspace, &attention));
    GIVES(FOVEA_BAD_ARGUMENT, fovea_capture_attention(NULL, &attention));
    attention.struct_size = 0;
    GIVES(FOVEA_BAD_ARGUMENT, fovea_capture_attention(workspace, &attention));
}
