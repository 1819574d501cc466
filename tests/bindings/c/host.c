/* fovea_host.h from C: models of any source, held against what PyTorch computes of the same weights, and what is refused.
 *
 *     fovea_host_test GOLDEN DEMO.fovea TRANSLATOR [ADAPTER.fovea MODEL.fovea HEAD.fovea SESSION]
 *
 * GOLDEN is tests/golden, DEMO the demo model, TRANSLATOR the folder numbered_pieces/m2m_100 with its SentencePiece model, ADAPTER
 * lora/llama of models/llama_tied, MODEL next_heads/qwen3_5_text and HEAD its next-token head; SESSION DEMO's
 * saved session.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bindings/c/check.h"

static int n_failed;
static const char* golden;

void check(int good, const char* what, int line) {
    if (good) return;
    ++n_failed;
    fprintf(stderr, "line %d: expected %s; the last error: %s\n", line, what, fovea_host_error());
}

static const char* path_of(const char* name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", golden, name);
    return path;
}

static fovea_host_model* open_golden(const char* name) {
    fovea_host_model* model = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_open(path_of(name), NULL, &model));
    if (!model) exit(1);
    return model;
}

/* The float32 numbers of a .npy file of version 1, at most `most`; how many there are. */
static size_t read_npy(const char* name, float* numbers, size_t most) {
    unsigned char head[10];
    FILE* file = fopen(path_of(name), "rb");
    if (!file || fread(head, 1, sizeof head, file) != sizeof head) exit(1);
    if (fseek(file, 10 + head[8] + 256 * head[9], SEEK_SET)) exit(1);
    const size_t n = fread(numbers, sizeof *numbers, most, file);
    fclose(file);
    return n;
}

/* What an expected.json says behind that key, from `from` on. */
static const char* behind(const char* from, const char* key) {
    const char* found = from ? strstr(from, key) : NULL;
    if (!found) exit(1);
    return found + strlen(key);
}

static const char* read_json(const char* name) {
    static char text[16384];
    FILE* file = fopen(path_of(name), "rb");
    if (!file) exit(1);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static int near(double a, double b) { return fabs(a - b) <= 2e-5; }

static void test_vectors(void) {
    static const char* const texts[] = {"The lamp is on.", "Lamps, lamp; L\303\201MPED!", "a"};
    enum { kWidth = 36, kTexts = 3 };
    float wanted[kTexts * kWidth], had[kTexts * kWidth], alone[kWidth];
    size_t n_whole[kTexts];
    fovea_host_model* model = open_golden("encoders/bert_sentence");
    CHECK(fovea_host_kind(model) == FOVEA_HOST_VECTORS && fovea_host_width(model) == kWidth);
    CHECK(read_npy("encoders/bert_sentence/expected_texts.npy", wanted, kTexts * kWidth) == kTexts * kWidth);
    const fovea_host_text_options options = {.struct_size = sizeof options, .n_threads = 2, .n_whole_tokens = n_whole};
    GIVES(FOVEA_HOST_OK, fovea_host_embed(model, texts, kTexts, &options, had));
    for (size_t i = 0; i < kTexts * kWidth; ++i) CHECK(near(wanted[i], had[i]));
    uint32_t* tokens = NULL;
    size_t n_tokens = 0;
    GIVES(FOVEA_HOST_OK, fovea_host_tokenize(model, texts[0], 0, &tokens, &n_tokens));
    CHECK(n_tokens == n_whole[0]);
    fovea_host_free(tokens);
    GIVES(FOVEA_HOST_OK, fovea_host_embed(model, texts + 1, 1, NULL, alone));
    CHECK(memcmp(alone, had + kWidth, sizeof alone) == 0); /* the same bits in any batch */
    const fovea_host_text_options wrong = {.struct_size = sizeof wrong, .prompt = "nobody's"};
    GIVES(FOVEA_HOST_FAILED, fovea_host_embed(model, texts, 1, &wrong, alone));
    GIVES(FOVEA_HOST_FAILED, fovea_host_classify(model, texts, NULL, 1, NULL, alone));
    fovea_host_close(model);
}

static void test_classes(void) {
    static const char* const texts[] = {"m y n b i q p m z j p l s g", "e j e y d t z i r"};
    enum { kLabels = 3 };
    float logits[2 * kLabels], scores[2 * kLabels];
    fovea_host_model* model = open_golden("encoders/distilbert_sequenceclassification");
    CHECK(fovea_host_kind(model) == FOVEA_HOST_CLASSES && fovea_host_width(model) == kLabels);
    CHECK(strcmp(fovea_host_label(model, 2), "LABEL_2") == 0 && !fovea_host_label(model, kLabels));
    CHECK(read_npy("encoders/distilbert_sequenceclassification/expected_0.npy", logits, kLabels) == kLabels);
    CHECK(read_npy("encoders/distilbert_sequenceclassification/expected_1.npy", logits + kLabels, kLabels) == kLabels);
    GIVES(FOVEA_HOST_OK, fovea_host_classify(model, texts, NULL, 2, NULL, scores));
    for (size_t text = 0; text < 2; ++text) {
        double sum = 0;
        for (size_t i = 0; i < kLabels; ++i) sum += exp(logits[text * kLabels + i]);
        for (size_t i = 0; i < kLabels; ++i)
            CHECK(near(scores[text * kLabels + i], exp(logits[text * kLabels + i]) / sum));
    }
    float paired[kLabels];
    GIVES(FOVEA_HOST_OK, fovea_host_classify(model, texts, texts + 1, 1, NULL, paired));
    CHECK(memcmp(paired, scores, sizeof paired) != 0); /* the second text is read */
    GIVES(FOVEA_HOST_FAILED, fovea_host_embed(model, texts, 1, NULL, scores));
    char* task = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_metadata(model, "task", &task));
    CHECK(task && strcmp(task, "text-classification") == 0);
    fovea_host_free(task);
    GIVES(FOVEA_HOST_OK, fovea_host_metadata(model, "no such key", &task));
    CHECK(!task);
    fovea_host_close(model);
}

static void test_reranker(void) {
    const char* json = read_json("rerankers/causal/expected.json");
    char query[100], document[100];
    if (sscanf(behind(json, "\"query\": \""), "%99[^\"]", query) != 1) exit(1);
    if (sscanf(behind(json, "\"document\": \""), "%99[^\"]", document) != 1) exit(1);
    const double logit = strtod(behind(json, "\"logit\": "), NULL);
    const char *texts[] = {query}, *pairs[] = {document};
    float score = 0;
    fovea_host_model* model = open_golden("rerankers/causal");
    CHECK(fovea_host_kind(model) == FOVEA_HOST_CLASSES && fovea_host_width(model) == 1);
    GIVES(FOVEA_HOST_OK, fovea_host_classify(model, texts, pairs, 1, NULL, &score));
    CHECK(near(score, 1 / (1 + exp(-logit))));
    fovea_host_close(model);
}

static void test_sparse(void) {
    const char* json = read_json("sparse/splade/expected.json");
    char text[100];
    if (sscanf(behind(json, "\"text\": \""), "%99[^\"]", text) != 1) exit(1);
    fovea_host_weight* weights = NULL;
    size_t n_weights = 0, n = 0;
    fovea_host_model* model = open_golden("sparse/splade");
    CHECK(fovea_host_kind(model) == FOVEA_HOST_SPARSE);
    GIVES(FOVEA_HOST_OK, fovea_host_embed_sparse(model, text, NULL, &weights, &n_weights));
    for (const char* at = behind(json, "\"weights\": {"); *at == '"'; ++n) {
        char* end = NULL;
        const unsigned long id = strtoul(at + 1, &end, 10);
        const double weight = strtod(end + 3, &end);
        CHECK(n < n_weights && weights[n].id == id && near(weights[n].weight, weight));
        at = *end == ',' ? end + 2 : end;
    }
    CHECK(n > 9 && n == n_weights);
    fovea_host_free(weights), fovea_host_close(model);
    model = open_golden("encoders/bert_sentence");
    GIVES(FOVEA_HOST_FAILED, fovea_host_embed_sparse(model, text, NULL, &weights, &n_weights));
    fovea_host_close(model);
}

static void test_late(void) {
    const char* json = read_json("late/pylate/expected.json");
    const char* const documents[] = {"the lamp , on .", "a b c !"};
    double scores[2] = {0};
    float* rows = NULL;
    size_t n_rows = 0, width = 0;
    fovea_host_model* model = open_golden("late/pylate");
    CHECK(fovea_host_kind(model) == FOVEA_HOST_LATE);
    GIVES(FOVEA_HOST_OK, fovea_host_embed_tokens(model, "a b c", 1, NULL, &rows, &n_rows, &width));
    CHECK(n_rows == 12 && width == 8);
    CHECK(near(rows[0], strtod(behind(json, "\"query_vectors\": [[["), NULL)));
    fovea_host_free(rows);
    GIVES(FOVEA_HOST_OK, fovea_host_embed_tokens(model, documents[0], 0, NULL, &rows, &n_rows, &width));
    CHECK(n_rows == 6);  // two of its tokens are skipped
    fovea_host_free(rows);
    GIVES(FOVEA_HOST_OK, fovea_host_rank(model, "a b c", documents, 2, NULL, scores));
    char* end = NULL;
    CHECK(near(scores[0], strtod(behind(json, "\"scores\": [["), &end)) && near(scores[1], strtod(end + 2, NULL)));
    fovea_host_close(model);
    model = open_golden("rerankers/causal");
    GIVES(FOVEA_HOST_OK, fovea_host_rank(model, "a b c", documents, 2, NULL, scores));
    CHECK(scores[0] > 0 && scores[0] < 1);
    GIVES(FOVEA_HOST_FAILED, fovea_host_embed_tokens(model, "a", 0, NULL, &rows, &n_rows, &width));
    fovea_host_close(model);
}

static void test_findings(void) {
    fovea_host_finding* found = NULL;
    size_t n = 0;
    fovea_host_model* model = open_golden("encoders/albert_tokenclassification");
    CHECK(fovea_host_kind(model) == FOVEA_HOST_FINDINGS && fovea_host_label(model, 0));
    GIVES(FOVEA_HOST_OK, fovea_host_find(model, "a b  c", NULL, NULL, &found, &n));
    CHECK(n == 3 && strcmp(found[2].text, "c") == 0 && strncmp(found[2].label, "LABEL_", 6) == 0);
    fovea_host_free(found);
    float* rows = NULL;
    size_t n_rows = 0, width = 0;
    GIVES(FOVEA_HOST_OK, fovea_host_rows(model, "a b  c", NULL, 1, NULL, &rows, &n_rows, &width));
    CHECK(n_rows == 5 && width == 17 && rows);
    fovea_host_free(rows);
    GIVES(FOVEA_HOST_OK, fovea_host_rows(model, "a b", "c", 0, NULL, &rows, &n_rows, &width));
    CHECK(n_rows == 6 && width == 12);
    fovea_host_free(rows), fovea_host_close(model);

    model = open_golden("encoders/xlm_roberta_questionanswering");
    GIVES(FOVEA_HOST_OK, fovea_host_find(model, "a", "d o g", NULL, &found, &n));
    CHECK(n == 1 && strstr("d o g", found->text) && found->score > 0 && found->score <= 1 && !*found->label);
    fovea_host_free(found);
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_find(model, "a", NULL, NULL, &found, &n));
    CHECK(strstr(fovea_host_error(), "pair: expected the text to find the answer in"));
    fovea_host_close(model);

    model = open_golden("encoders/electra_maskedlm");
    const fovea_host_text_options options = {.struct_size = sizeof options, .n_likeliest = 3};
    GIVES(FOVEA_HOST_OK, fovea_host_find(model, "a [MASK] b [MASK]", NULL, &options, &found, &n));
    CHECK(n == 6 && found[2].mask == 0 && found[3].mask == 1 && found[0].score >= found[1].score);
    fovea_host_free(found), fovea_host_close(model);

    model = open_golden("encoders/bert_sentence");
    GIVES(FOVEA_HOST_FAILED, fovea_host_find(model, "a", NULL, NULL, &found, &n));
    fovea_host_close(model);
}

/* What transformers' generate writes, from the folder's expected.json. */
static void test_translations(const char* folder) {
    fovea_host_model* model = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_open(folder, NULL, &model));
    CHECK(fovea_host_kind(model) == FOVEA_HOST_TRANSLATION);
    const fovea_host_translate_options one_beam = {.struct_size = sizeof one_beam, .n_beams = 1},
                                       too_many = {.struct_size = sizeof too_many, .n_beams = 65};
    fovea_host_translator *by_beams = NULL, *greedy = NULL;
    char* text = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_make_translator(model, NULL, &by_beams));
    GIVES(FOVEA_HOST_OK, fovea_host_make_translator(model, &one_beam, &greedy));
    for (int again = 0; again < 2; ++again) {
        GIVES(FOVEA_HOST_OK, fovea_host_translate(by_beams, "The lamp in the hall is on.", NULL, "de", &text));
        CHECK(text && strstr(text, "vaiaicoai-10],\357\277\275ai laai\357\277\275"));
        fovea_host_free(text);
        GIVES(FOVEA_HOST_OK, fovea_host_translate(greedy, " two  spaces ", "en", "__de__", &text));
        CHECK(text && strstr(text, "fa\303\247ade fa\303\247adeaiaivai\357\277\275aio\357\277\275co"));
        fovea_host_free(text);
    }
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_translate(greedy, "a", NULL, "tlh", &text));
    CHECK(strstr(fovea_host_error(), "to: expected one of the model's"));
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_make_translator(model, &too_many, &greedy));
    fovea_host_free_translator(by_beams), fovea_host_free_translator(greedy), fovea_host_close(model);
}

static int count_segments(void* context, const fovea_host_span* segment) {
    CHECK(segment->end >= segment->start && segment->text);
    ++*(size_t*)context;
    return 0;
}
static int end_at_once(void* context, const fovea_host_span* segment) { return (void)context, (void)segment, 1; }

static void test_speech(void) {
    fovea_host_model* model = open_golden("speech/whisper_talking");
    CHECK(fovea_host_kind(model) == FOVEA_HOST_SPEECH && fovea_host_sample_rate(model) == 16000);
    float *samples = NULL, *frames = NULL;
    size_t n_samples = 0, n_frames = 0, n_mels = 0, n_heard = 0, n_all = 0;
    GIVES(FOVEA_HOST_OK, fovea_host_read_sound(path_of("recordings/one.wav"), 16000, &samples, &n_samples));
    CHECK(n_samples > 1000);
    GIVES(FOVEA_HOST_OK, fovea_host_speech_frames(model, samples, n_samples, &frames, &n_frames, &n_mels));
    CHECK(n_frames > 0 && n_mels > 0 && isfinite(frames[n_frames * n_mels - 1]));
    const fovea_host_speech_options options = {.struct_size = sizeof options, .words = 1, .language = "de"};
    fovea_host_transcriber* transcriber = NULL;
    fovea_host_transcript* said = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_make_transcriber(model, &options, &transcriber));
    GIVES(FOVEA_HOST_OK, fovea_host_transcribe(transcriber, samples, n_samples, count_segments, &n_heard, &said));
    CHECK(said && said->n_segments > 0 && said->n_segments == n_heard && strcmp(said->language, "de") == 0);
    for (size_t i = 0; said && i < said->n_segments; ++i) n_all += strlen(said->segments[i].text);
    CHECK(said && n_all == strlen(said->text));
    for (size_t i = 0; said && i < said->n_words; ++i)
        CHECK(said->words[i].probability > 0 && said->words[i].probability <= 1);
    fovea_host_free(said);
    GIVES(FOVEA_HOST_CANCELLED, fovea_host_transcribe(transcriber, samples, n_samples, end_at_once, NULL, &said));
    fovea_host_free_transcriber(transcriber);
    const fovea_host_speech_options wrong = {.struct_size = sizeof wrong, .language = "klingon"};
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_make_transcriber(model, &wrong, &transcriber));
    fovea_host_free(frames), fovea_host_free(samples);
    fovea_host_close(model);
}

struct text {
    char bytes[1024];
    int most_calls;
};
static int append(void* context, const char* piece) {
    struct text* text = context;
    strncat(text->bytes, piece, sizeof text->bytes - strlen(text->bytes) - 1);
    return text->most_calls && --text->most_calls == 0;
}

static void test_chat(const char* demo) {
    static const char messages[] = "[{\"role\": \"user\", \"content\": \"turn on the kitchen lights\"}]";
    static const char schema[] =
        "{\"type\": \"object\", \"properties\": {\"n\": {\"const\": 7}}, \"required\": [\"n\"],"
        "\"additionalProperties\": false}";
    fovea_host_model* model = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_open(demo, NULL, &model));
    CHECK(fovea_host_kind(model) == FOVEA_HOST_TEXT && fovea_host_engine_model(model));
    fovea_info info = {.struct_size = sizeof info};
    CHECK(fovea_model_info(fovea_host_engine_model(model), &info).code == FOVEA_OK && info.kind == FOVEA_LOGITS);
    const fovea_limits limits = {.struct_size = sizeof limits, .max_positions = 128};
    uint64_t n_bytes = 0;
    GIVES(FOVEA_HOST_OK, fovea_host_session_bytes(model, &limits, &n_bytes));
    CHECK(n_bytes > 0);
    fovea_host_session* session = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_start(model, &limits, &session));
    struct text answer = {"", 0}, cut = {"", 1}, formed = {"", 0};
    GIVES(FOVEA_HOST_OK, fovea_host_chat(session, messages, NULL, NULL, NULL, append, &answer));
    CHECK(strncmp(answer.bytes, "{\"do\":", 6) == 0);
    GIVES(FOVEA_HOST_CANCELLED, fovea_host_chat(session, messages, NULL, NULL, NULL, append, &cut));
    CHECK(strlen(cut.bytes) < strlen(answer.bytes) && strncmp(cut.bytes, answer.bytes, strlen(cut.bytes)) == 0);
    fovea_host_form* form = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_compile_form(model, FOVEA_HOST_JSON_SCHEMA, schema, &form));
    GIVES(FOVEA_HOST_OK, fovea_host_chat(session, messages, NULL, NULL, form, append, &formed));
    CHECK(strstr(formed.bytes, "\"n\"") && strstr(formed.bytes, "7}"));
    CHECK(fovea_generator_finish(fovea_host_generator(session)) == FOVEA_FINISH_END_TOKEN);
    const void *compiled = NULL, *index = NULL;
    size_t n_compiled = 0, n_index = 0;
    GIVES(FOVEA_HOST_OK, fovea_host_form_bytes(form, &compiled, &n_compiled, &index, &n_index));
    _Alignas(8) unsigned char memory[FOVEA_CONSTRAINT_BYTES];
    fovea_constraint* constraint = NULL;
    CHECK(fovea_open_constraint(fovea_host_engine_model(model), compiled, n_compiled, index, n_index, memory,
                                sizeof memory, &constraint)
              .code == FOVEA_OK);
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_form_bytes(form, &compiled, NULL, &index, &n_index));
    char* prompt = NULL;
    uint32_t* tokens = NULL;
    size_t n_tokens = 0;
    GIVES(FOVEA_HOST_OK, fovea_host_render_chat(model, messages, NULL, &prompt));
    CHECK(prompt && strstr(prompt, "turn on the kitchen lights"));
    GIVES(FOVEA_HOST_OK, fovea_host_tokenize(model, prompt, FOVEA_READ_SPECIAL, &tokens, &n_tokens));
    struct text again = {"", 0};
    GIVES(FOVEA_HOST_OK, fovea_host_generate(session, tokens, n_tokens, NULL, NULL, append, &again));
    CHECK(strcmp(again.bytes, answer.bytes) == 0);
    char* text = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_detokenize(model, tokens, n_tokens, 1, &text));
    CHECK(text && strstr(text, "kitchen"));
    fovea_host_free(text), fovea_host_free(tokens), fovea_host_free(prompt);
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_chat(session, "{", NULL, NULL, NULL, append, &again));
    CHECK(strstr(fovea_host_error(), "messages: expected JSON"));
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_compile_form(model, FOVEA_HOST_REGEX, "(", &form));
    const uint32_t beyond = 0xfffffff0u;
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_detokenize(model, &beyond, 1, 0, &text));
    fovea_host_free_form(form), fovea_host_end(session), fovea_host_close(model);
}

void write_tokens(fovea_host_session* session, uint32_t* tokens) {
    static const uint32_t prompt[] = {3, 10, 17, 24};
    const fovea_generate_options options = {.struct_size = sizeof options, .n_new = kNew};
    GIVES(FOVEA_HOST_OK, fovea_host_generate(session, prompt, 4, &options, NULL, NULL, NULL));
    size_t n = 0;
    const uint32_t* all = fovea_generator_tokens(fovea_host_generator(session), &n);
    CHECK(n == 4 + kNew);
    if (n == 4 + kNew) memcpy(tokens, all + 4, kNew * sizeof *tokens);
}

static void test_adapters(const char* path) {
    uint32_t plain[kNew] = {0}, adapted[kNew] = {0}, without[kNew] = {0}, again[kNew] = {0};
    fovea_host_model* model = open_golden("models/llama_tied");
    fovea_host_session* session = NULL;
    GIVES(FOVEA_HOST_OK, fovea_host_start(model, NULL, &session));
    write_tokens(session, plain);
    fovea_host_end(session), fovea_host_close(model);

    const fovea_host_adapter halves[] = {{path, 0.5f}, {path, 0.5f}};
    const fovea_host_open_options options = {.struct_size = sizeof options, .adapters = halves, .n_adapters = 2};
    GIVES(FOVEA_HOST_OK, fovea_host_open(path_of("models/llama_tied"), &options, &model));
    GIVES(FOVEA_HOST_OK, fovea_host_start(model, NULL, &session));
    write_tokens(session, adapted);
    CHECK(memcmp(plain, adapted, sizeof plain) != 0);
    const float none[] = {0, 0}, one[] = {1, 0};
    GIVES(FOVEA_HOST_OK, fovea_host_scale_adapters(session, none));
    write_tokens(session, without);
    CHECK(memcmp(plain, without, sizeof plain) == 0);
    GIVES(FOVEA_HOST_OK, fovea_host_scale_adapters(session, one));
    write_tokens(session, again);
    CHECK(memcmp(adapted, again, sizeof plain) == 0);
    fovea_host_end(session);
    fovea_host_model* bare = open_golden("models/llama_tied");
    test_saved(model, bare), test_saved(bare, model);
    fovea_host_close(bare), fovea_host_close(model);

    GIVES(FOVEA_HOST_FAILED, fovea_host_open(path_of("models/gpt2_tied"), &options, &model)); /* another model's */
}

static void test_refusals(void) {
    fovea_host_model* model = NULL;
    GIVES(FOVEA_HOST_FAILED, fovea_host_open(path_of("no such file"), NULL, &model));
    CHECK(strstr(fovea_host_error(), "no such file") && !strchr(fovea_host_error(), '\n'));
    GIVES(FOVEA_HOST_FAILED, fovea_host_open(path_of("make_math.py"), NULL, &model));
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_open(NULL, NULL, &model));
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_open(path_of("models"), NULL, NULL));
    const fovea_host_open_options no_size = {0};
    GIVES(FOVEA_HOST_ARGUMENT, fovea_host_open(path_of("models"), &no_size, &model));
    CHECK(!model && fovea_host_width(NULL) == 0 && fovea_host_kind(NULL) == FOVEA_HOST_OTHER);
    fovea_host_close(NULL), fovea_host_end(NULL), fovea_host_free_form(NULL), fovea_host_free(NULL);
}

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    golden = argv[1];
    test_vectors();
    test_classes();
    test_reranker();
    test_sparse();
    test_late();
    test_findings();
    test_translations(argv[3]);
    if (argc > 4) test_adapters(argv[4]);
    if (argc > 6) test_drafts(argv[5], argv[6], path_of("models/llama_tied"));
    if (argc > 7) test_session_file(argv[2], argv[7]);
    test_speech();
    test_chat(argv[2]);
    test_refusals();
    if (!n_failed) printf("fovea_host.h: all as expected\n");
    return n_failed != 0;
}
