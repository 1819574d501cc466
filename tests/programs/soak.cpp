// A long run: the generators of many sessions of the built-in model share one thread, a turn of each after the other.
// Memory stays where it is, and each session's text, tokens and logits are those of the same session run alone.
//   fovea_soak [TOKENS [SESSIONS]]     TOKENS: at least so many
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "fovea/checksum.h"
#include "fovea/generator.h"
#include "fovea/host/opened.h"
#include "fovea/host/runtime.h"
#include "host/base/error.h"
#include "tools/options/opened.h"

using namespace fovea;

namespace {

constexpr std::uint32_t kContext = 64, kKept = 5;  // where a session is full it goes back to its first tokens
constexpr std::uint32_t kProposed = 4;
#if defined(FOVEA_EMULATED)
constexpr long long kMayGrow = 1 << 20;  // the system counts the emulator's translations with the program
#else
constexpr long long kMayGrow = 1 << 16;
#endif

/// No text ends before its context is full.
void forbid_ends(void* context, std::span<const Token>, std::span<std::uint32_t> mask) {
    const Tokenizer& tokenizer = *static_cast<const Tokenizer*>(context);
    for (Token token = 0; token < tokenizer.vocab_size(); ++token)
        if (tokenizer.ends_text(token)) mask[token / 32] &= ~(1u << token % 32);
}

/// One session, a generator of texts in it, and a checksum over all its tokens and logits. Every second one speculates.
struct Talker {
    host::Runtime<Session> running;
    host::Runtime<Generator> generator;
    GenerateOptions options;
    Token kept[kKept];
    std::uint32_t crc = 0;
    std::uint64_t n_made = 0, n_accepted = 0;

    Talker(const host::Opened& opened, std::uint32_t number)
        : running(start_session(opened, {.max_kv_len = kContext, .max_batch = 8})),
          generator(start_generator(opened, running->cache(), {.max_proposed = kProposed})) {
        options.sampler = {.temperature = 1.0f, .top_k = 20, .seed = number};
        options.filter = {.allow = forbid_ends, .context = const_cast<Tokenizer*>(&opened.tokenizer)};
        options.speculation = {.n_proposed = number % 2 ? kProposed : 0, .always = true};
        const Token first = number % opened.model.config().decoder.vocab_size;
        require(start(*generator, {&first, 1}, options), "start");
    }
    /// A turn: a token, or those that were right of the proposed ones too. A full text starts again from its first tokens.
    void turn() {
        if (generator->finish() != FinishReason::none) {
            n_accepted += generator->figures().n_accepted;
            std::ranges::copy(generator->tokens().first(kKept), kept);
            options.sampler.seed += 0x9e3779b9u;  // another random number at each position
            require(start(*generator, kept, options), "start");
        }
        Workspace workspace = running->workspace();
        Piece piece;
        require(generate(*generator, workspace, piece), "generate");
        n_made += piece.tokens.size();
        for (const auto bytes :
             {std::as_bytes(piece.logits), std::as_bytes(piece.tokens), std::as_bytes(std::span(piece.text))})
            crc = crc32c(bytes, crc);
    }
};

/// Bytes in use, as the allocator counts them, and as the system does: without the pages of files, of which the system maps
/// as many as it likes when code runs for the first time.
struct Memory {
    std::size_t allocated = mallinfo2().uordblks + mallinfo2().hblkhd;
    std::size_t resident = [] {
        std::size_t total = 0, pages = 0, of_files = 0;
        std::ifstream("/proc/self/statm") >> total >> pages >> of_files;
        return (pages - of_files) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    }();
};

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t n_tokens = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
    const std::uint64_t n_sessions = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100;
    if (!n_tokens || !n_sessions || n_tokens % n_sessions || n_sessions > 10000) {
        std::fprintf(stderr, "fovea_soak: TOKENS and SESSIONS: expected a multiple and up to 10000\n");
        return 2;
    }
    // Every session has filled its context once before memory is counted: by then each path has run.
    const std::uint64_t n_turns = n_tokens / n_sessions,
                        n_settled = std::max<std::uint64_t>(n_turns / 10, kContext) + 1;
    if (n_turns <= n_settled) {
        std::fprintf(stderr, "fovea_soak: expected more than %u tokens a session, got %llu\n", kContext + 1,
                     static_cast<unsigned long long>(n_turns));
        return 2;
    }
    const host::Opened opened = open_path_or_demo("");
    const auto start = std::chrono::steady_clock::now();
    std::vector<Talker> talkers;
    talkers.reserve(n_sessions);
    for (std::uint32_t i = 0; i < n_sessions; ++i) talkers.emplace_back(opened, i);
    Memory settled;
    for (std::uint64_t turn = 0; turn < n_turns; ++turn) {
        if (turn == n_settled) settled = Memory();
        for (Talker& talker : talkers) talker.turn();
    }
    const Memory after;
    std::uint64_t n_made = 0, n_accepted = 0;
    std::uint32_t together = 0, n_different = 0;
    for (std::uint32_t i = 0; i < n_sessions; ++i) {
        Talker alone(opened, i);
        for (std::uint64_t turn = 0; turn < n_turns; ++turn) alone.turn();
        n_different += alone.crc != talkers[i].crc;
        n_made += talkers[i].n_made;
        n_accepted += talkers[i].n_accepted;
        together = crc32c(std::as_bytes(std::span(&talkers[i].crc, 1)), together);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const auto grown = static_cast<long long>(after.resident) - static_cast<long long>(settled.resident);
    std::printf("%llu tokens in %llu sessions and again in as many runs, %.0f s: hash %08x, %u of them different\n",
                static_cast<unsigned long long>(n_made), static_cast<unsigned long long>(n_sessions), seconds.count(),
                together, n_different);
    std::printf("%llu turns, %llu tokens proposed and right\n", static_cast<unsigned long long>(n_tokens),
                static_cast<unsigned long long>(n_accepted));
    std::printf("from turn %llu to the last: allocated %zu and %zu bytes, resident %zu and %zu, %lld more\n",
                static_cast<unsigned long long>(n_settled) * n_sessions, settled.allocated, after.allocated,
                settled.resident, after.resident, grown);
    return n_different || !n_accepted || after.allocated != settled.allocated || grown > kMayGrow ? 1 : 0;
}
