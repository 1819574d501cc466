#include "convert/calibrate/calibration_text.h"

#include <algorithm>
#include <span>
#include <string>

#include "convert/calibrate/text_reader.h"
#include "fovea/host/tokens.h"
#include "fovea/sampler.h"
#include "host/base/error.h"

namespace fovea {
namespace {

constexpr std::uint32_t kAtOnce = 32;  // texts that a model writes side by side

/// The first `most` tokens of a text, all of them for 0.
[[nodiscard]] std::vector<Token> tokens_of(const ModelSource& source, std::string_view text, std::uint32_t most) {
    Tokenizer tokenizer;
    if (source.tokenizer.empty()) throw host::Error("--calibrate: expected a model with a tokenizer, got one without");
    const AlignedBytes section(source.tokenizer.begin(), source.tokenizer.end());
    need_calibration(open_tokenizer(section, tokenizer), "tokenizer");
    // Each token takes a byte at least, so this much text gives as many as are wanted, or all there are.
    const std::size_t longest = std::min<std::size_t>(text.size(), most ? std::size_t{most} * 64 : text.size());
    text = text.substr(0, longest);
    std::vector<Token> tokens = host::tokenize(tokenizer, text, {}, "--calibrate: text");
    if (most) tokens.resize(std::min<std::size_t>(tokens.size(), most));
    if (tokens.size() < 2)
        throw host::Error("--calibrate: expected a text of 2 tokens or more, got " + std::to_string(tokens.size()));
    return tokens;
}

/// A decoder that writes texts side by side, a token of each in a pass.
class SelfText {
public:
    SelfText(const ModelSource& source, std::uint32_t n_at_once, std::uint32_t n_threads)
        : in_memory_(source, {}, n_threads),
          tokenizer_(opened().tokenizer),
          workspace_(start_workspace(opened(), {.max_kv_len = window_of(source),
                                                .max_batch = n_at_once,
                                                .n_threads = n_threads,
                                                .max_sequences = n_at_once})),
          pool_(start_pool(opened(), {.max_kv_len = window_of(source), .max_sequences = n_at_once})) {
        for (std::uint32_t i = 0; i < n_at_once; ++i) caches_.push_back(start_cache(opened(), pool_));
        need_calibration(make_sampler({.temperature = 1.0f}, sampler_), "sampler");
        const std::size_t vocab_size = opened().config().decoder.vocab_size;
        logits_.resize(n_at_once * vocab_size);
        candidates_.resize(vocab_size);
        any_.resize(tokenizer_.valid() ? std::min<std::size_t>(vocab_size, tokenizer_.vocab_size()) : vocab_size);
    }

    /// Appends `length` tokens to each of `texts`, which are empty. `first`: tokens that were drawn before; `written` is
    /// called after each of a text's.
    void write(std::span<std::vector<Token>> texts, std::uint32_t first, std::uint32_t length,
               const std::function<void()>& written) {
        for (std::size_t i = 0; i < texts.size(); ++i) need_calibration(rewind(caches_[i], 0), "window");
        for (std::uint32_t pos = 0; pos < length; ++pos) {
            if (pos) step(texts);
            for (std::size_t i = 0; i < texts.size(); ++i) {
                const auto number = static_cast<std::uint32_t>(first + i * length + pos);
                texts[i].push_back(!pos || ended(texts[i].back()) ? start(number) : drawn(number, logits_of(i)));
            }
            written();
        }
    }

private:
    [[nodiscard]] const host::Opened& opened() const noexcept { return in_memory_.opened; }
    [[nodiscard]] std::span<float> logits_of(std::size_t i) {
        return std::span(logits_).subspan(i * candidates_.size(), candidates_.size());
    }

    /// Reads each text's last token.
    void step(std::span<const std::vector<Token>> texts) {
        steps_.clear();
        for (std::size_t i = 0; i < texts.size(); ++i)
            steps_.push_back({caches_[i], std::span(texts[i]).last(1), logits_of(i)});
        need_calibration(forward(*workspace_, steps_), "pass");
    }

    [[nodiscard]] Token drawn(std::uint32_t number, std::span<const float> logits) {
        Token token = 0;
        need_calibration(sample(sampler_, number, logits, {}, std::span(candidates_).first(logits.size()), token),
                         "logits");
        return token;
    }

    /// Whether another text begins behind it. A start token that is the end token too has begun one.
    [[nodiscard]] bool ended(Token last) const noexcept {
        return tokenizer_.valid() && tokenizer_.ends_text(last) && last != tokenizer_.bos();
    }

    /// What a text begins with.
    [[nodiscard]] Token start(std::uint32_t number) {
        const bool has_start = tokenizer_.valid() && tokenizer_.bos() < candidates_.size();
        return has_start ? tokenizer_.bos() : drawn(number, any_);
    }

    ModelInMemory in_memory_;
    Tokenizer tokenizer_;
    host::Runtime<Workspace> workspace_;
    host::Runtime<CachePool> pool_;
    std::vector<Cache> caches_;
    std::vector<Step> steps_;
    Sampler sampler_;
    std::vector<Candidate> candidates_;  // [vocab_size]
    std::vector<float> logits_;          // [n_at_once][vocab_size]
    std::vector<float> any_;             // equal logits of all that the tokenizer knows
};

}  // namespace

std::uint64_t Texts::n_tokens() const noexcept {
    std::uint64_t n = 0;
    for (const std::vector<Token>& text : ids) n += text.size();
    return n;
}

Texts Texts::first(std::uint64_t most) const {
    Texts result;
    for (const std::vector<Token>& text : ids) {
        if (!most) break;
        const auto n = std::min<std::uint64_t>(most, text.size());
        result.ids.emplace_back(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n));
        most -= n;
    }
    return result;
}

StackIndex calibrated_stack(const ModelSource& source) noexcept {
    return source.config.decoder.n_layers ? StackIndex::decoder : StackIndex::encoder;
}

const Stack& calibrated_stack_of(const ModelSource& source) noexcept {
    return calibrated_stack(source) == StackIndex::decoder ? source.config.decoder : source.config.encoder;
}

std::uint32_t window_of(const ModelSource& source) noexcept {
    return std::clamp(calibrated_stack_of(source).max_positions, 1u, kWindowTokens);
}

Texts texts_of(const ModelSource& source, std::string_view text, std::uint32_t most) {
    const std::uint32_t window = window_of(source);
    Texts result;
    if (calibrated_stack(source) == StackIndex::decoder) {
        const std::vector<Token> tokens = tokens_of(source, text, most);
        for (std::size_t at = 0; at < tokens.size(); at += window) {
            const std::span<const Token> cut =
                std::span(tokens).subspan(at, std::min<std::size_t>(window, tokens.size() - at));
            result.ids.emplace_back(cut.begin(), cut.end());
        }
        return result;
    }
    for (std::uint64_t n = 0; !text.empty() && (!most || n < most);) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (line.empty()) continue;
        result.ids.push_back(tokens_of(source, line, std::min(kReadTokens, window)));
        n += result.ids.back().size();
    }
    if (result.ids.empty()) throw host::Error("--calibrate: expected a text of 2 tokens or more, got 0");
    return result;
}

Texts own_texts(const ModelSource& source, std::uint32_t most, std::uint32_t n_threads, const Progress& progress) {
    if (calibrated_stack(source) == StackIndex::encoder)
        throw host::Error(
            "--calibrate self: expected a decoder, which can write a text, got an encoder; give it a text");
    const std::uint32_t window = window_of(source), n_texts = (most + window - 1) / window;
    Texts result;
    result.ids.resize(n_texts);
    SelfText writer(source, std::min(n_texts, kAtOnce), n_threads);
    std::uint64_t done = 0;
    for (std::uint32_t i = 0; i < n_texts; i += kAtOnce) {
        const std::uint32_t n = std::min(kAtOnce, n_texts - i);
        writer.write(std::span(result.ids).subspan(i, n), i * window, window, [&] {
            done += n;
            if (progress) progress(done, std::uint64_t{n_texts} * window);
        });
    }
    return result;
}

}  // namespace fovea
