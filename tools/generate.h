// Text from a session, token by token, without allocating: what `run` and the tests of the demo model share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/sampler.h"
#include "opened.h"

namespace fovea {

struct GenerateOptions {
    std::uint32_t n_new = 128;  ///< new tokens at most; fewer where the model ends its text
    SamplerOptions sampler{};
    bool show_special = false;
};

struct Generated {
    std::uint32_t n_prompt_tokens = 0;
    std::uint32_t n_kept = 0;    ///< of those, in the cache already
    std::uint32_t n_tokens = 0;  ///< new ones, without the token that ended the text
    double prefill_seconds = 0;
    double decode_seconds = 0;
    std::uint32_t n_decoded = 0;  ///< forward passes in decode_seconds

    [[nodiscard]] double tokens_per_second() const { return decode_seconds > 0 ? n_decoded / decode_seconds : 0; }
    [[nodiscard]] double prefill_tokens_per_second() const {
        return prefill_seconds > 0 ? (n_prompt_tokens - n_kept) / prefill_seconds : 0;
    }
};

/// Takes every buffer when it is made; generate allocates nothing. One per session.
class Generator {
public:
    Generator(const OpenedModel& opened, Session& session);

    /// The session's cache is that of `tokens`: the next prompt is computed from the first token on that differs.
    void resume(std::span<const Token> tokens);

    /// Continues `prompt` from position 0 on and hands each new piece of text to `on_text` as it is made. The session
    /// must have room for the prompt and all new tokens but the last.
    [[nodiscard]] Generated generate(std::span<const Token> prompt, const GenerateOptions& options,
                                     const std::function<void(std::string_view)>& on_text);

    /// What the session holds: the prompt and the new tokens but the last.
    [[nodiscard]] std::span<const Token> tokens() const { return std::span(history_).first(session_.kv_len()); }

private:
    const OpenedModel& opened_;
    Session& session_;
    std::vector<float> logits_;
    std::vector<Candidate> candidates_;
    std::vector<Token> history_;  // prompt and new tokens: what a repetition is measured against
    std::vector<char> piece_;
    std::size_t n_resumed_ = 0;  // tokens in history_ that the session holds
};

}  // namespace fovea
