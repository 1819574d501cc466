#include "tools/generation/generate.h"

#include <sys/resource.h>
#include <algorithm>
#include <chrono>

#include "host/base/error.h"

namespace fovea {
namespace {

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::uint64_t ticks_now() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// Page faults of this process so far, of all its threads.
std::uint64_t page_faults() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_minflt) + static_cast<std::uint64_t>(usage.ru_majflt);
}

}  // namespace

const char* name(FinishReason reason) {
    static constexpr const char* kNames[] = {"none", "end", "stop", "length", "context"};
    return kNames[static_cast<std::size_t>(reason)];
}

Writer::Writer(const host::Opened& opened, Session& session, GeneratorLimits limits)
    : opened_(opened), session_(session) {
    limits.max_tokens = session.max_kv_len();
    generator_ = start_generator(opened, session.cache(), limits);
}

void Writer::resume(std::span<const Token> tokens) { require(fovea::resume(*generator_, tokens), opened_.name); }

Generated Writer::generate(std::span<const Token> prompt, const GenerateOptions& options,
                           const std::function<void(std::string_view)>& on_text) {
    return generate_until(prompt, options, [&](const Piece& piece) {
        on_text(piece.text);
        return true;
    });
}

Generated Writer::generate_until(std::span<const Token> prompt, const GenerateOptions& options,
                                 const std::function<bool(const Piece&)>& on_piece, const std::atomic<bool>* cancel) {
    GenerateOptions timed = options;
    timed.speculation.clock = ticks_now;
    require(start(*generator_, prompt, timed), opened_.name);
    Generated made;
    Workspace workspace = session_.workspace();
    set_cancel(workspace, cancel);
    const std::uint64_t n_faults = page_faults();
    double started = seconds_now();
    for (Piece piece; piece.finish == FinishReason::none;) {
        const bool first = made.prefill_seconds == 0;
        const Status status = fovea::generate(*generator_, workspace, piece);
        if (cancel && status.code == Code::cancelled) break;
        require(status, opened_.name);
        if (first) {
            made.prefill_seconds = seconds_now() - started;
            made.n_page_faults = page_faults() - n_faults;
            started = seconds_now();
        }
        if (!on_piece(piece)) break;
    }
    set_cancel(workspace, nullptr);
    made.decode_seconds = seconds_now() - started;
    made.figures = generator_->figures();
    made.finish = generator_->finish();
    made.n_decoded =
        session_.kv_len() - std::min(session_.kv_len(), made.figures.n_prompt);  // fewer where it was cancelled
    return made;
}

}  // namespace fovea
