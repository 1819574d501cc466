// Text from a session, with the time it takes.
//
//     host::Generation session(opened, {.max_kv_len = 1000, .n_threads = default_threads()});
//     (void)session.generate(opened.tokens("The lamp"), {.n_new = 20}, [](std::string_view text) { std::cout << text; });
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/generator.h"
#include "fovea/host/prompt.h"
#include "fovea/host/runtime.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {
struct SavedText;  // host/model/saved_text.h

namespace host {

/// Tokens of a form that go through one pass at most, beside the one before them: each costs a row of logits.
inline constexpr std::uint32_t kForced = 8;

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

/// The reason's name as --json has it: "none", "end", "stop", "length" or "context".
[[nodiscard]] const char* name_of(FinishReason reason);

/// A session with a generator of texts in it, and the memory of both. The opened model must outlive it. What throws, throws
/// host::Error.
class Generation {
public:
    Generation(const Opened& opened, const Limits& limits, const SessionOptions& how = {},
               GeneratorLimits generator = {});

    /// From here on `draft` proposes tokens, which must mean the same to it: a smaller model, or the model's next-token head. It must
    /// outlive this.
    void propose_by(const Opened& draft, const Limits& limits, const SessionOptions& how);

    /// From here on recurrent layers' state before each answer is kept: a later prompt that goes on otherwise than the answer
    /// did is computed from there, not anew.
    void keep_turns() { keeps_turns_ = true; }

    /// The session becomes the saved one: the next prompt is computed from the first token on that differs. `path` is what
    /// a refusal names.
    void resume(const SavedText& saved, const std::string& path);

    /// Continues `prompt` and hands each new piece of text to `on_text` as it is made.
    [[nodiscard]] Generated generate(const Prompt& prompt, const GenerateOptions& options,
                                     const std::function<void(std::string_view)>& on_text);

    /// The same piece by piece, tokens and all, until `on_piece` says false or `*cancel` becomes true: finish is then none,
    /// and the session holds what was computed.
    [[nodiscard]] Generated generate_until(const Prompt& prompt, const GenerateOptions& options,
                                           const std::function<bool(const Piece&)>& on_piece,
                                           const std::atomic<bool>* cancel = nullptr);

    [[nodiscard]] Session& session() { return *session_; }
    [[nodiscard]] const Session& session() const { return *session_; }
    [[nodiscard]] const Plan& plan() const { return session_.plan; }
    /// What the session holds: the prompt and the new tokens but the last.
    [[nodiscard]] std::span<const Token> tokens() const { return generator_->tokens().first(session_->kv_len()); }
    [[nodiscard]] std::span<const Token> all_tokens() const { return generator_->tokens(); }  ///< and the last

private:
    /// Has the session hold the prompt up to its last row, and to where a later turn goes on from. `n_kept`: what it held
    /// already.
    [[nodiscard]] Status compute_ahead(const Prompt& prompt, std::uint32_t& n_kept);

    const Opened& opened_;
    Runtime<Session> session_, draft_;
    Runtime<Generator> generator_;
    std::vector<float> vectors_;  // a next-token head's DraftModel::vectors
    bool keeps_turns_ = false;
};

}  // namespace host
}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
