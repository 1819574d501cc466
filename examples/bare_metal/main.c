// A model in flash, a prompt, an answer: Fovea with no operating system, by its C interface alone. The model is a file
// that `fovea embed` turned into a section; its weights are read where they lie. Prints the answer, the logits' hash
// (as `fovea certify -p` prints it on a desktop: the same bits) and what memory it took.
#include <string.h>

#include "fovea/fovea.h"
#include "start.h"

extern const unsigned char fovea_model[], fovea_model_end[];

enum { kPositions = 128, kBatch = 16, kMostSuffix = 8, kArenaBytes = 440 * 1024 };  // `fovea plan` tells these before there is a board
static const char kPrompt[] = "turn on the garden dehumidifier";

__attribute__((section(".arena"), aligned(64))) static unsigned char arena[kArenaBytes];
__attribute__((aligned(64))) static unsigned char model_memory[FOVEA_MODEL_BYTES];
static uint32_t tokens[kPositions];

static void print(const char* text) { board_write(text, strlen(text)); }

static void print_line(const char* name, uint64_t number, unsigned base) {
    char digits[21];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do {
        digits[--at] = "0123456789abcdef"[number % base];
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
    print_line("logits ", hash, 16);
    if (each) print_line("ns per token ", each, 10);
    return 0;
}

/// The answer, by a generator in what the session left of the arena. It reads the prompt all together: the same logits
/// as one token at a time, in less time.
static int print_answer(const struct fovea_model* model, fovea_session* session, size_t n_tokens, uint64_t* used) {
    const fovea_cache cache = fovea_session_cache(session);
    const fovea_generator_limits limits = {.struct_size = sizeof limits, .max_tokens = kPositions};
    fovea_generator_plan plan = {.struct_size = sizeof plan};
    fovea_generator* generator = NULL;
    if (failed(fovea_rewind(session, 0)) || failed(fovea_plan_generator(model, &limits, &plan))) return 1;
    if (failed(fovea_make_generator(model, &cache, &limits, arena + *used, sizeof arena - *used, &generator))) return 1;
    *used += plan.arena_bytes;

    fovea_piece piece = {.struct_size = sizeof piece};
    const fovea_generate_options options = {.struct_size = sizeof options};
    if (failed(fovea_start(generator, tokens, n_tokens, &options))) return 1;
    while (piece.finish == FOVEA_FINISH_NONE) {
        if (failed(fovea_generate(generator, fovea_session_workspace(session), &piece))) return 1;
        board_write(piece.text.bytes, piece.text.n_bytes);
    }
    print("\n");
    return 0;
}

/// The prompt, with what closes one before the model answers.
static int read_prompt(fovea_session* session, const fovea_plan* plan, size_t* n_tokens) {
    char text[sizeof kPrompt + kMostSuffix];
    const size_t n = sizeof kPrompt - 1, n_suffix = plan->prompt_suffix_bytes;
    if (n_suffix > kMostSuffix) return print("the prompt's suffix: expected less\n"), 1;
    memcpy(text, kPrompt, n);
    if (n_suffix) memcpy(text + n, plan->prompt_suffix, n_suffix);
    return failed(fovea_tokenize(session, text, n + n_suffix, 0, tokens, kPositions, n_tokens));
}

int main(void) {
    const size_t file_bytes = (size_t)(fovea_model_end - fovea_model);
    const fovea_limits limits = {.struct_size = sizeof limits,
                                 .max_positions = kPositions,
                                 .max_batch = kBatch,
                                 .max_text_bytes = sizeof kPrompt + kMostSuffix};
    struct fovea_model* model = NULL;
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_session* session = NULL;
    size_t n_tokens = 0;
    if (failed(fovea_open_model(fovea_model, file_bytes, FOVEA_VERIFY, model_memory, sizeof model_memory, &model)) ||
        failed(fovea_plan_session(model, &limits, &plan)) ||
        failed(fovea_make_session_of(model, &limits, arena, sizeof arena, &session)))
        return 1;
    uint64_t used = plan.arena_bytes;
    if (read_prompt(session, &plan, &n_tokens) || print_hash(session, &plan, n_tokens) ||
        print_answer(model, session, n_tokens, &used))
        return 1;
    print_line("model bytes ", file_bytes, 10);
    print_line("arena bytes ", used, 10);
    print_line("stack bytes ", board_stack_used(), 10);
    return 0;
}
