// A model in flash, a prompt, an answer: Fovea with no operating system, by its C interface alone. The model is a file
// that `fovea embed` turned into a section; its weights are read where they lie. Prints the answer, the logits' hash
// (as `fovea certify -p` prints it on a desktop: the same bits) and what memory it took.
#include <string.h>

#include "fovea/fovea.h"
#include "start.h"

extern const unsigned char fovea_model[], fovea_model_end[];

enum { kPositions = 128, kBatch = 16, kArenaBytes = 420 * 1024 };  // `fovea plan` tells these before there is a board
static const char kPrompt[] = "turn on the garden dehumidifier";

__attribute__((section(".arena"), aligned(64))) static unsigned char arena[kArenaBytes];
static uint32_t tokens[kPositions];
static char piece[256];

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

static int answer(fovea_session* session, const fovea_plan* plan) {
    char text[sizeof kPrompt + 8] = {0};
    size_t n_tokens = 0, n = strlen(kPrompt);
    memcpy(text, kPrompt, n);
    if (plan->prompt_suffix_bytes <= 8) memcpy(text + n, plan->prompt_suffix, plan->prompt_suffix_bytes);
    if (failed(fovea_tokenize(session, text, strlen(text), 0, tokens, kPositions, &n_tokens))) return 1;

    uint64_t hash = 0xcbf29ce484222325u;
    const uint64_t start = board_clock_ns();
    for (size_t i = 0; i < n_tokens; ++i) {
        if (failed(fovea_forward(session, tokens + i, 1))) return 1;
        hash = hash_logits(hash, fovea_logits(session), plan->vocab_size);
        board_clock_ns();  // a timer of few bits wants to be looked at
    }
    const uint64_t each = (board_clock_ns() - start) / n_tokens;

    // Again, all together: the same logits, in less time.
    if (failed(fovea_rewind(session, 0)) || failed(fovea_forward(session, tokens, n_tokens))) return 1;
    fovea_decoder decoder = {0};
    uint32_t token = 0;
    while (fovea_kv_len(session) < plan->max_positions) {
        if (failed(fovea_sample(session, NULL, 0, &token))) return 1;
        if (fovea_ends_text(session, token)) break;
        board_write(piece, fovea_decode(session, &decoder, token, piece, sizeof piece));
        if (failed(fovea_forward(session, &token, 1))) return 1;
    }
    print("\n");
    print_line("logits ", hash, 16);
    if (each) print_line("ns per token ", each, 10);
    return 0;
}

int main(void) {
    const size_t file_bytes = (size_t)(fovea_model_end - fovea_model);
    const fovea_limits limits = {.struct_size = sizeof limits,
                                 .max_positions = kPositions,
                                 .max_batch = kBatch,
                                 .max_text_bytes = sizeof kPrompt + 8};
    fovea_plan plan = {.struct_size = sizeof plan};
    fovea_session* session = NULL;
    if (failed(fovea_verify(fovea_model, file_bytes))) return 1;
    if (failed(fovea_make_plan(fovea_model, file_bytes, &limits, &plan))) return 1;
    if (failed(fovea_make_session(fovea_model, file_bytes, &limits, arena, sizeof arena, &session))) return 1;
    if (plan.max_piece_bytes > sizeof piece || answer(session, &plan)) return 1;
    print_line("model bytes ", file_bytes, 10);
    print_line("arena bytes ", plan.arena_bytes, 10);
    print_line("stack bytes ", board_stack_used(), 10);
    return 0;
}
