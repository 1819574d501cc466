// A long run: many sessions of the built-in model share one thread, a token of each in turn. Memory stays where it is,
// and each session's tokens and logits are those of the same session run alone.   fovea_soak [TOKENS [SESSIONS]]
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "fovea/checksum.h"
#include "fovea/sampler.h"
#include "opened.h"
#include "report.h"

using namespace fovea;

namespace {

constexpr std::uint32_t kContext = 64, kKept = 5;  // where a session is full it goes back to its first tokens
#if defined(FOVEA_EMULATED)
constexpr long long kMayGrow = 1 << 20;  // the system counts the emulator's translations with the program
#else
constexpr long long kMayGrow = 1 << 16;
#endif

/// One session, what it samples with, and a checksum over all its tokens and logits.
struct Talker {
    Running running;
    Sampler sampler;
    std::vector<float> logits;
    std::vector<Candidate> candidates;
    Token next;
    std::uint32_t n_made = 0, crc = 0;

    Talker(const OpenedModel& opened, std::uint32_t number)
        : running(start_session(opened, {.max_kv_len = kContext, .max_batch = 8}, nullptr)),
          logits(opened.model.config().decoder.vocab_size),
          candidates(logits.size()),
          next(number % static_cast<std::uint32_t>(logits.size())) {
        require(make_sampler({.temperature = 1.0f, .top_k = 20, .seed = number}, sampler), "sampler");
    }
    void step() {
        Session& session = running.session;
        if (session.kv_len() == session.max_kv_len()) require(rewind(session, kKept), "rewind");
        require(forward(session, {&next, 1}, logits), "forward");
        require(sample(sampler, n_made++, logits, {}, candidates, next), "sample");
        crc = crc32c(std::as_bytes(std::span(&next, 1)), crc32c(std::as_bytes(std::span(logits)), crc));
    }
};

/// Bytes in use, as the allocator counts them, and as the system does.
struct Memory {
    std::size_t allocated = mallinfo2().uordblks + mallinfo2().hblkhd;
    std::size_t resident = [] {
        std::size_t total = 0, pages = 0;
        std::ifstream("/proc/self/statm") >> total >> pages;
        return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
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
    const std::uint64_t n_steps = n_tokens / n_sessions, n_settled = n_steps / 10 + 1;
    const OpenedModel opened = open_path_or_demo("");
    const auto start = std::chrono::steady_clock::now();
    std::vector<Talker> talkers;
    talkers.reserve(n_sessions);
    for (std::uint32_t i = 0; i < n_sessions; ++i) talkers.emplace_back(opened, i);
    Memory settled;
    for (std::uint64_t step = 0; step < n_steps; ++step) {
        if (step == n_settled) settled = Memory();
        for (Talker& talker : talkers) talker.step();
    }
    const Memory after;
    std::uint32_t together = 0, n_different = 0;
    for (std::uint32_t i = 0; i < n_sessions; ++i) {
        Talker alone(opened, i);
        for (std::uint64_t step = 0; step < n_steps; ++step) alone.step();
        n_different += alone.crc != talkers[i].crc;
        together = crc32c(std::as_bytes(std::span(&talkers[i].crc, 1)), together);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const auto grown = static_cast<long long>(after.resident) - static_cast<long long>(settled.resident);
    std::printf("%llu tokens in %llu sessions and again in as many runs, %.0f s: hash %08x, %u of them different\n",
                static_cast<unsigned long long>(n_tokens), static_cast<unsigned long long>(n_sessions), seconds.count(),
                together, n_different);
    std::printf("from token %llu to the last: allocated %zu and %zu bytes, resident %zu and %zu, %lld more\n",
                static_cast<unsigned long long>(n_settled) * n_sessions, settled.allocated, after.allocated,
                settled.resident, after.resident, grown);
    return n_different || after.allocated != settled.allocated || grown > kMayGrow ? 1 : 0;
}
