/* Models, and what the C++ interface computes with them, for the test in C. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const void* bytes;
    size_t n_bytes;
} test_file;

/* Small models with random weights: a decoder of 71 tokens and 160 positions; an encoder of 60 ids and 2 token types; an
   encoder and a decoder over vectors of 40. */
test_file decoder_file(void);
test_file encoder_file(void);
test_file both_file(void);
test_file reader_file(void);
/* Adapters of the decoder, of ranks 5 and 3. */
test_file adapter_file(void);
test_file second_adapter_file(void);

/* The form of a JSON schema for a model's vocabulary, with its index in it. */
test_file schema_form(test_file model, const char* schema);

/* Logits after each of n tokens, of a session of the decoder. */
void cpp_forward(const uint32_t* tokens, size_t n, float* logits);
/* The same beside both adapters, of these scales. */
void cpp_adapted(const uint32_t* tokens, size_t n, float scale, float second_scale, float* logits);
/* A sampled text of the decoder, n_new tokens; zeros of the sampler's values are the C interface's. */
void cpp_generate(const uint32_t* prompt, size_t n, float temperature, uint32_t top_k, float top_p,
                  float repeat_penalty, float frequency_penalty, uint64_t seed, uint32_t n_recent, uint32_t* tokens,
                  uint32_t n_new);
/* Layer 1's attention weights of every head, [6][n][n]. */
void cpp_attention(const uint32_t* tokens, size_t n, float* out);
/* The encoder's rows for two sequences; `hidden` [2][longest] by key. */
void cpp_encode(const uint32_t* ids, const uint32_t* types, const uint32_t* lengths, const uint8_t* hidden,
                uint32_t longest, float* out);
/* The decoder's rows, `added` [n_target][n_source] to the scores of its attention to the memory. */
void cpp_both(const float* source, uint32_t n_source, const float* target, uint32_t n_target, const float* added,
              float* out);
/* Causal attention of 4 heads and 2 key-value heads of 16 over packed rows, the first n_past keys and values apart. */
void cpp_attend(const float* query, uint32_t n_queries, const float* key, const float* value, uint32_t n_keys,
                uint32_t n_past, float* out);

#ifdef __cplusplus
}
#endif
