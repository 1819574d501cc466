#include "generate.h"

#include <algorithm>
#include <chrono>

#include "report.h"

namespace fovea {
namespace {

constexpr std::size_t kRecent = 64;  // tokens that --repeat-penalty looks back

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Generator::Generator(const OpenedModel& opened, Session& session)
    : opened_(opened),
      session_(session),
      logits_(opened.model.config().decoder.vocab_size),
      candidates_(logits_.size()),
      history_(session.max_kv_len() + 1),
      piece_(max_piece_bytes(need_tokenizer(opened))) {}

void Generator::resume(std::span<const Token> tokens) {
    std::copy(tokens.begin(), tokens.end(), history_.begin());
    n_resumed_ = tokens.size();
}

Generated Generator::generate(std::span<const Token> prompt, const GenerateOptions& options,
                              const std::function<void(std::string_view)>& on_text) {
    const Tokenizer& tokenizer = opened_.tokenizer;
    Generated made;
    made.n_prompt_tokens = static_cast<std::uint32_t>(prompt.size());
    Sampler sampler;
    require(make_sampler(options.sampler, sampler));
    // The prompt's last token is always computed: logits follow it.
    const auto known = std::span(history_).first(std::min(n_resumed_, prompt.size() - 1));
    made.n_kept =
        static_cast<std::uint32_t>(std::mismatch(known.begin(), known.end(), prompt.begin()).first - known.begin());
    n_resumed_ = 0;
    require(rewind(session_, made.n_kept));

    double started = seconds_now();
    require(
        forward(session_, prompt.subspan(made.n_kept), options.n_new ? std::span<float>(logits_) : std::span<float>{}),
        opened_.name);
    made.prefill_seconds = seconds_now() - started;

    // The decoder goes over the prompt too: whether a space is dropped depends on what came before.
    Decoder decoder;
    for (const Token token : prompt) (void)decode(tokenizer, decoder, token, options.show_special, piece_);
    std::copy(prompt.begin(), prompt.end(), history_.begin());
    std::size_t n_history = prompt.size();

    started = seconds_now();
    while (made.n_tokens < options.n_new) {
        const std::size_t n_recent = std::min(kRecent, n_history);
        const std::span<const Token> recent{history_.data() + n_history - n_recent, n_recent};
        Token token = 0;
        require(sample(sampler, logits_, recent, candidates_, token), opened_.name);
        if (tokenizer.ends_text(token)) break;
        ++made.n_tokens;
        history_[n_history++] = token;
        on_text(decode(tokenizer, decoder, token, options.show_special, piece_));
        if (made.n_tokens == options.n_new) break;
        require(forward(session_, {&token, 1}, logits_), opened_.name);
        ++made.n_decoded;
    }
    made.decode_seconds = seconds_now() - started;
    on_text(finish(decoder, piece_));
    return made;
}

}  // namespace fovea
