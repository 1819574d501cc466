#include "host/speech/window_writer.h"

#include <algorithm>
#include <iterator>

#include "host/base/error.h"
#include "host/base/exact_math.h"
#include "host/speech/chances.h"

namespace fovea {

std::string speech_text(SpeechModel& model, const SpeechTokens& known, std::span<const Token> tokens) {
    std::vector<Token> texts;
    std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(texts), [&](Token t) { return known.is_text(t); });
    return texts.empty() ? std::string() : model.text_of(texts);
}

WindowWriter::WindowWriter(SpeechModel& model, const SpeechTokens& tokens, const SpeechOptions& options)
    : model_(model),
      tokens_(tokens),
      options_(options),
      logits_(tokens.vocab_size),
      candidates_(tokens.vocab_size),
      most_(options.max_tokens ? options.max_tokens : std::max(model.max_tokens / 2, 1u)) {}

Written WindowWriter::write(std::span<const Token> prompt, std::size_t n_start, std::uint32_t window) {
    model_.rewind(0);
    std::span<const float> first = model_.read(prompt.first(n_start));
    const ExpSum sum = exp_sum(first);
    const double log_silent = static_cast<double>(first[tokens_.no_speech]) - sum.log();
    const double no_speech = log_silent > -100 ? exact_exp(log_silent) : 0;
    if (prompt.size() > n_start) first = model_.read(prompt.subspan(n_start));
    const std::vector<float> first_logits(first.begin(), first.end());
    Written best;
    for (std::size_t attempt = 0; attempt < options_.temperatures.size(); ++attempt) {
        model_.rewind(prompt.size());
        logits_ = first_logits;
        Written written = attempt_at(window, attempt, prompt.size());
        written.no_speech = no_speech;
        const bool good = is_good(written);
        const bool better = written.ended == best.ended ? written.avg_logprob > best.avg_logprob : written.ended;
        if (good || attempt == 0 || better) best = std::move(written);
        best.last_tried = options_.temperatures[attempt];
        if (good || is_silent(best)) break;
    }
    return best;
}

bool WindowWriter::is_silent(const Written& written) const {
    return options_.no_speech && written.no_speech > *options_.no_speech &&
           !(options_.min_logprob && written.avg_logprob > *options_.min_logprob);
}

Written WindowWriter::attempt_at(std::uint32_t window, std::size_t attempt, std::size_t n_prompt) {
    Written written;
    written.temperature = options_.temperatures[attempt];
    Sampler sampler;
    const std::uint64_t number = std::uint64_t{window} * options_.temperatures.size() + attempt;
    require(make_sampler({.temperature = written.temperature, .seed = options_.seed + number * 0x9e3779b97f4a7c15u},
                         sampler),
            "temperatures");
    double sum = 0;
    for (;;) {
        apply_rules(tokens_, written.tokens, options_.timestamps, logits_);
        Token next = 0;
        require(sample(sampler, static_cast<std::uint32_t>(written.tokens.size()), logits_, {}, candidates_, next),
                "what may be written next");
        const double log_probability = static_cast<double>(logits_[next]) - exp_sum(logits_).log();
        sum += log_probability;
        written.ended = next == tokens_.end;
        if (written.ended) break;
        written.tokens.push_back(next);
        written.probabilities.push_back(log_probability > -100 ? exact_exp(log_probability) : 0);
        if (written.tokens.size() >= most_ || n_prompt + written.tokens.size() >= model_.max_tokens) break;
        const std::span<const float> logits = model_.read({&next, 1});
        logits_.assign(logits.begin(), logits.end());
    }
    written.avg_logprob = sum / static_cast<double>(written.tokens.size() + 1);
    written.text = speech_text(model_, tokens_, written.tokens);
    written.compression = compression_ratio(written.text);
    return written;
}

bool WindowWriter::is_good(const Written& written) const {
    const bool repeats = options_.max_compression && written.compression > *options_.max_compression;
    const bool unlikely = options_.min_logprob && written.avg_logprob < *options_.min_logprob;
    return !repeats && !unlikely;
}

}  // namespace fovea
