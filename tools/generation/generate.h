// Text from a session, with the time it takes: what `run` and the tests of the demo model share.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "fovea/generator.h"
#include "host/model/runtime.h"

namespace fovea {

struct Generated {
    GenerateFigures figures;
    FinishReason finish = FinishReason::none;
    double prefill_seconds = 0;
    double decode_seconds = 0;
    std::uint64_t n_page_faults = 0;  ///< during the prompt's pass
    std::uint32_t n_decoded = 0;      ///< tokens computed in decode_seconds

    /// Whether the prompt's pass touched most of a file for the first time: its figure is then of reading more than of
    /// computing. The system maps 64 KiB or more at each fault.
    [[nodiscard]] bool is_cold(std::uint64_t file_bytes) const { return n_page_faults * (128 << 10) >= file_bytes; }
    [[nodiscard]] double tokens_per_second() const { return decode_seconds > 0 ? n_decoded / decode_seconds : 0; }
    [[nodiscard]] double prefill_tokens_per_second() const {
        return prefill_seconds > 0 ? (figures.n_prompt - figures.n_kept) / prefill_seconds : 0;
    }
};

/// The name of the reason as --json has it.
[[nodiscard]] const char* name(FinishReason reason);

/// A generator with the memory it lives in, which is taken once, here. One per session, which must outlive it.
class Writer {
public:
    Writer(const host::Opened& opened, Session& session, GeneratorLimits limits = {});

    /// The session's cache is that of `tokens`: the next prompt is computed from the first token on that differs.
    void resume(std::span<const Token> tokens);

    /// Continues `prompt` and hands each new piece of text to `on_text` as it is made.
    [[nodiscard]] Generated generate(std::span<const Token> prompt, const GenerateOptions& options,
                                     const std::function<void(std::string_view)>& on_text);

    /// The same piece by piece, tokens and all, until `on_piece` says false or `*cancel` becomes true: finish is then none,
    /// and the session holds what was computed.
    [[nodiscard]] Generated generate_until(std::span<const Token> prompt, const GenerateOptions& options,
                                           const std::function<bool(const Piece&)>& on_piece,
                                           const std::atomic<bool>* cancel = nullptr);

    /// What the session holds: the prompt and the new tokens but the last.
    [[nodiscard]] std::span<const Token> all_tokens() const { return generator_->tokens(); }  ///< and the last
    [[nodiscard]] std::span<const Token> tokens() const { return generator_->tokens().first(session_.kv_len()); }

private:
    const host::Opened& opened_;
    Session& session_;
    host::Runtime<Generator> generator_;
};

}  // namespace fovea
