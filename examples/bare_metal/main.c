// A model in flash, prompts, answers: Fovea with no operating system, by its C interface alone. The model is a file
// that `fovea embed` turned into a section; its weights are read where they lie. Linked with form.c its answers are of a
// form, with free.c what the model likes best. Prints the answers, the logits' hash of the first prompt (as
// `fovea certify -p` prints it on a desktop: the same bits) and what memory it took.
#include <string.h>

#include "form.h"
#include "fovea/fovea.h"
#include "start.h"

extern const unsigned char fovea_model[], fovea_model_end[];

#ifndef BOARD_ARENA_BYTES
#define BOARD_ARENA_BYTES (448 * 1024)  // `fovea plan` and `fovea grammar` tell it before there is a board
#define BOARD_POSITIONS 128
#define BOARD_BATCH 16
#define BOARD_ARENA __attribute__((section(".arena"), aligned(64)))
#define BOARD_MAIN main
#endif

enum {
    kPositions = BOARD_POSITIONS,
    kBatch = BOARD_BATCH,
    kMostText = 64,  // bytes of a prompt with its suffix
    kArenaBytes = BOARD_ARENA_BYTES
};
// The model knows nothing of the last two: without a form one answer is of a "towel rinkler", which no house has.
static const char kPrompts[][32] = {"turn on the garden dehumidifier", "open the fridge and play chess",
                                    "write a poem about the sea"};
enum { kPromptCount = sizeof kPrompts / sizeof kPrompts[0] };
static const char kDigits[] = "0123456789abcdef", kLogits[] = "logits ", kTime[] = "ns per token ",
                  kModelBytes[] = "model bytes ", kArena[] = "arena bytes ", kStack[] = "stack bytes ";
static const char kLongPrompt[] = "a prompt with its suffix: expected fewer bytes\n";
static const char kCutAnswer[] = "an answer: expected one of the form, got its beginning\n";

BOARD_ARENA static unsigned char arena[kArenaBytes];
__attribute__((aligned(64))) static unsigned char model_memory[FOVEA_MODEL_BYTES];
static uint32_t tokens[kPositions];

static void print(const char* text) { board_write(text, strlen(text)); }

static void print_line(const char* name, uint64_t number, unsigned base) {
    char digits[21];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do {
        digits[--at] = kDigits[number % base];
        number /= base;
    } while (number || (base == 16 && at > sizeof digits - 17));
    print(name);
    print(digits + at);
    print("\n");
}

static int failed(fovea_status status) {
    if (status.code == FOVEA_OK) return 0;
    char line[160];
    fovea_describe(status, line, sizeof line);
    print(line);
    print("\n");
    return 1;
}

/// FNV-1a over the logits' words.
static uint64_t hash_logits(uint64_t hash, const float* logits, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t word;
        memcpy(&word, logits + i, sizeof word);
        hash = (hash ^ word) * 0x100000001b3u;
    }
    return hash;
}

/// The hash of what follows each token of the prompt, one token at a time.
static int print_hash(fovea_session* session, const fovea_plan* plan, size_t n_tokens) {
    uint64_t hash = 0xcbf29ce484222325u;
    const uint64_t start = board_clock_ns();
    for (size_t i = 0; i < n_tokens; ++i) {
        if (failed(fovea_forward(session, tokens + i, 1))) return 1;
        hash = hash_logits(hash, fovea_logits(session), plan->vocab_size);
        board_clock_ns();  // a timer of few bits wants to be looked at
    }
    const uint64_t each = (board_clock_ns() - start) / n_tokens;
    print_line(kLogits, hash, 16);
    if (each) print_line(kTime, each, 10);
    return 0;
}

/// What makes answers, in what the session left of the arena.
static int make_answers(const struct fovea_model* model, fovea_session* session, uint64_t* used,
                        fovea_generator** generator) {
    const fovea_cache cache = fovea_session_cache(session);
    const fovea_generator_limits limits = {.struct_size = sizeof limits, .max_tokens = kPositions};
    fovea_generator_plan plan = {.struct_size = sizeof plan};
    if (failed(fovea_rewind(session, 0, NULL)) || failed(fovea_plan_generator(model, &limits, &plan)) ||
        failed(fovea_make_generator(model, &cache, &limits, arena + *used, sizeof arena - *used, generator)))
        return 1;
    *used += plan.arena_bytes;
    uint64_t form_bytes = 0;
    if (failed(form_make(model, arena + *used, sizeof arena - *used, &form_bytes))) return 1;
    *used += form_bytes;
    return 0;
}

/// One answer. The prompt is read all together: the same logits as one token at a time, in less time.
static int print_answer(fovea_session* session, fovea_generator* generator, size_t n_tokens) {
    fovea_token_filter filter = {.struct_size = sizeof filter};
    const fovea_generate_options options = {.struct_size = sizeof options, .filter = &filter};
    fovea_piece piece = {.struct_size = sizeof piece};
    if (failed(form_restart(&filter)) || failed(fovea_start(generator, tokens, n_tokens, &options))) return 1;
    while (piece.finish == FOVEA_FINISH_NONE) {
        if (failed(fovea_generate(generator, fovea_session_workspace(session), &piece))) return 1;
        board_write(piece.text.bytes, piece.text.n_bytes);
    }
    print("\n");
    if (form_fits()) return 0;
    return print(kCutAnswer), 1;
}

/// A prompt, with what closes one before the model answers.
static int read_prompt(fovea_session* session, const fovea_plan* plan, const char* prompt, size_t* n_tokens) {
    char text[kMostText];
    const size_t n = strlen(prompt), n_suffix = plan->prompt_suffix_bytes;
    if (n + n_suffix > kMostText) return print(kLongPrompt), 1;
    memcpy(text, prompt, n);
    if (n_suffix) memcpy(text + n, plan->prompt_suffix, n_suffix);
    return failed(fovea_tokenize(session, text, n + n_suffix, 0, tokens, kPositions, n_tokens));
}

int BOARD_MAIN(void) {
    const size_t file_bytes = (size_t)(fovea_model_end - fovea_model);
    const fovea_limits limits = {
        .struct_size = sizeof limits, .max_positions = kPositions, .max_batch = kBatch, .max_text_bytes = kMostText};
    struct fovea_model* model = NULL;
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_session* session = NULL;
    size_t n_tokens = 0;
    if (failed(fovea_open_model(fovea_model, file_bytes, FOVEA_VERIFY, model_memory, sizeof model_memory, &model)) ||
        failed(fovea_plan_session(model, &limits, &plan)) ||
        failed(fovea_make_session_of(model, &limits, arena, sizeof arena, &session)))
        return 1;
    uint64_t used = plan.arena_bytes;
    fovea_generator* generator = NULL;
    if (read_prompt(session, &plan, kPrompts[0], &n_tokens) || print_hash(session, &plan, n_tokens) ||
        make_answers(model, session, &used, &generator))
        return 1;
    for (int i = 0; i < kPromptCount; ++i)
        if (read_prompt(session, &plan, kPrompts[i], &n_tokens) || print_answer(session, generator, n_tokens)) return 1;
    print_line(kModelBytes, file_bytes, 10);
    print_line(kArena, used, 10);
    if (board_stack_used()) print_line(kStack, board_stack_used(), 10);
    return 0;
}
