#include "host/speech/transcriber.h"

#include <algorithm>
#include <iterator>

#include "fovea/sampler.h"
#include "host/base/error.h"
#include "host/base/exact_math.h"
#include "host/speech/chances.h"
#include "host/speech/word_times.h"

namespace fovea {
namespace {

constexpr float kMostForgiving = 0.5f;  // what was written at a higher temperature is no text to go on from

/// The text of one attempt at a window.
struct Written {
    std::vector<Token> tokens;          // without the end
    std::vector<double> probabilities;  // of each
    std::string text;
    double avg_logprob = 0, no_speech = 0, compression = 0;
    float temperature = 0;
};

/// The bytes of those tokens that are text.
std::string text_of(SpeechModel& model, const SpeechTokens& known, std::span<const Token> tokens) {
    std::vector<Token> texts;
    std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(texts), [&](Token t) { return known.is_text(t); });
    return texts.empty() ? std::string() : model.text_of(texts);
}

/// Writes a window's text.
class WindowWriter {
public:
    WindowWriter(SpeechModel& model, const SpeechTokens& tokens, const SpeechOptions& options)
        : model_(model),
          tokens_(tokens),
          options_(options),
          logits_(tokens.vocab_size),
          candidates_(tokens.vocab_size),
          most_(options.max_tokens ? options.max_tokens : std::max(model.max_tokens / 2, 1u)) {}

    /// Attempts until one is good; else the last. `prompt` is read first, whose first n_start tokens end with the start token.
    Written write(std::span<const Token> prompt, std::size_t n_start, std::uint32_t window) {
        model_.rewind(0);
        std::span<const float> first = model_.read(prompt.first(n_start));
        const ExpSum sum = exp_sum(first);
        const double log_silent = static_cast<double>(first[tokens_.no_speech]) - sum.log();
        const double no_speech = log_silent > -100 ? exact_exp(log_silent) : 0;
        if (prompt.size() > n_start) first = model_.read(prompt.subspan(n_start));
        const std::vector<float> first_logits(first.begin(), first.end());
        Written written;
        for (std::size_t attempt = 0; attempt < options_.temperatures.size(); ++attempt) {
            model_.rewind(prompt.size());
            logits_ = first_logits;
            written = attempt_at(window, attempt, prompt.size());
            written.no_speech = no_speech;
            if (is_good(written)) break;
        }
        return written;
    }

    /// Whether the window is passed over.
    [[nodiscard]] bool is_silent(const Written& w) const {
        return options_.no_speech && w.no_speech > *options_.no_speech &&
               !(options_.min_logprob && w.avg_logprob > *options_.min_logprob);
    }

private:
    Written attempt_at(std::uint32_t window, std::size_t attempt, std::size_t n_prompt) {
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
            if (next == tokens_.end) break;
            written.tokens.push_back(next);
            written.probabilities.push_back(log_probability > -100 ? exact_exp(log_probability) : 0);
            if (written.tokens.size() >= most_ || n_prompt + written.tokens.size() >= model_.max_tokens) break;
            const std::span<const float> logits = model_.read({&next, 1});
            logits_.assign(logits.begin(), logits.end());
        }
        written.avg_logprob = sum / static_cast<double>(written.tokens.size() + 1);
        written.text = text_of(model_, tokens_, written.tokens);
        written.compression = compression_ratio(written.text);
        return written;
    }

    [[nodiscard]] bool is_unlikely(const Written& w) const {
        return options_.min_logprob && w.avg_logprob < *options_.min_logprob;
    }
    [[nodiscard]] bool is_good(const Written& w) const {
        const bool silent = options_.no_speech && w.no_speech > *options_.no_speech && is_unlikely(w);
        const bool repeats = options_.max_compression && w.compression > *options_.max_compression;
        return silent || !(repeats || is_unlikely(w));
    }

    SpeechModel& model_;
    const SpeechTokens& tokens_;
    const SpeechOptions& options_;
    std::vector<float> logits_;
    std::vector<Candidate> candidates_;
    const std::uint32_t most_;
};

class Transcriber {
public:
    Transcriber(SpeechModel& model, const SpeechTokens& tokens, const SpeechFrames& frames,
                const SpeechOptions& options, const SpeechCalls& calls)
        : model_(model),
          tokens_(tokens),
          frames_(frames),
          options_(options),
          calls_(calls),
          writer_(model, tokens, options) {
        window_.resize(std::size_t{model.n_frames} * model.n_mels);
        previous_ = options.before;
    }

    Transcript run() {
        check_speech(tokens_, options_.language, options_.task);
        transcript_.language = options_.language;
        if (!frames_.n_content) return std::move(transcript_);  // nothing was said, in no language
        if (tokens_.multilingual && options_.language.empty()) detect();
        const std::vector<Token> prompt =
            speech_prompt(tokens_, transcript_.language, options_.task, options_.timestamps);
        if (prompt.size() >= model_.max_tokens)
            throw host::Error("tokens of a model: expected more than " + std::to_string(prompt.size()) + ", got " +
                              std::to_string(model_.max_tokens));
        while (at_ < frames_.n_content) {
            hear();
            const std::uint32_t size = std::min(model_.n_frames, frames_.n_content - at_);
            const std::vector<Token> whole = with_previous(prompt);
            const Written written = writer_.write(whole, whole.size() - prompt.size() + 1, n_windows_++);
            at_ += writer_.is_silent(written) ? size : add_segments(written, size);
            if (calls_.progress) calls_.progress(seconds(std::min(at_, frames_.n_content)), seconds(frames_.n_content));
        }
        const std::size_t begin = transcript_.text.find_first_not_of(' ');
        transcript_.text.erase(0, std::min(begin, transcript_.text.size()));
        return std::move(transcript_);
    }

private:
    [[nodiscard]] double seconds(std::uint32_t frame) const { return frame * model_.frame_seconds; }

    /// The window at at_, unless it is heard already; zeros behind the frames there are.
    void hear() {
        if (heard_ == at_) return;
        const std::size_t begin = std::min(std::size_t{at_} * model_.n_mels, frames_.numbers.size());
        const std::size_t n = std::min(window_.size(), frames_.numbers.size() - begin);
        const auto from = frames_.numbers.begin() + static_cast<std::ptrdiff_t>(begin);
        std::fill(std::copy(from, from + static_cast<std::ptrdiff_t>(n), window_.begin()), window_.end(), 0.0f);
        model_.hear(window_);
        heard_ = at_;
    }

    void detect() {
        hear();
        const DetectedLanguage found = detect_language(tokens_, model_.read({&tokens_.start, 1}));
        transcript_.language = found.language;
        transcript_.language_probability = found.probability;
        if (calls_.detected) calls_.detected(found.language, found.probability);
    }

    /// Text of the windows before, as much as leaves room for as much again.
    [[nodiscard]] std::vector<Token> with_previous(const std::vector<Token>& prompt) const {
        std::vector<Token> whole;
        const std::size_t room = model_.max_tokens / 2 - std::min(model_.max_tokens / 2, 1u);
        const std::size_t n = std::min(previous_.size(), room);
        if (n) {
            whole.push_back(tokens_.previous);
            whole.insert(whole.end(), previous_.end() - static_cast<std::ptrdiff_t>(n), previous_.end());
        }
        whole.insert(whole.end(), prompt.begin(), prompt.end());
        return whole.size() < model_.max_tokens ? whole : prompt;
    }

    /// A stretch between two timestamps, in steps of two frames from the window's start.
    void add_segment(const Written& written, std::span<const Token> tokens, double start, double end) {
        SpeechSegment segment{start,
                              end,
                              at_,
                              text_of(model_, tokens_, tokens),
                              {tokens.begin(), tokens.end()},
                              written.avg_logprob,
                              written.no_speech,
                              written.compression,
                              written.temperature,
                              {}};
        const bool blank = segment.text.find_first_not_of(" \t\r\n") == std::string::npos;
        if (blank || start == end) return;
        previous_.insert(previous_.end(), tokens.begin(), tokens.end());
        of_window_.push_back({std::move(segment), static_cast<std::size_t>(tokens.data() - written.tokens.data())});
    }

    /// The window's segments, whose words are looked for together.
    void hand_over(const Written& written, std::uint32_t size) {
        if (options_.words) find_words(written, size);
        for (auto& [segment, first] : of_window_) {
            transcript_.text += segment.text;
            transcript_.segments.push_back(std::move(segment));
            if (calls_.segment) calls_.segment(transcript_.segments.back());
        }
        of_window_.clear();
    }

    void find_words(const Written& written, std::uint32_t size) {
        std::vector<Token> read = speech_prompt(tokens_, transcript_.language, options_.task, false);
        const std::size_t n_prompt = read.size();
        std::vector<double> probabilities;
        std::vector<std::size_t> firsts;  // of each segment, among the texts
        for (const auto& [segment, first] : of_window_) {
            firsts.push_back(probabilities.size());
            for (std::size_t i = 0; i < segment.tokens.size(); ++i)
                if (tokens_.is_text(segment.tokens[i])) {
                    read.push_back(segment.tokens[i]);
                    probabilities.push_back(written.probabilities[first + i]);
                }
        }
        firsts.push_back(probabilities.size());
        if (probabilities.empty() || read.size() >= model_.max_tokens)
            return;  // more than can be read at once has no times
        const std::vector<Token> texts(read.begin() + static_cast<std::ptrdiff_t>(n_prompt), read.end());
        read.push_back(tokens_.end);
        Alignment alignment(read.size(), std::max(size / 2, 1u));
        model_.attend(read,
                      [&](std::span<const float> weights, std::size_t stride) { alignment.add(weights, stride); });
        // A token is chosen by the row before it; the last text's row chooses the end.
        const std::vector<std::uint32_t> begins = alignment.begins(n_prompt - 1, texts.size() + 1);
        const auto time = [&](std::size_t token) { return seconds(at_ + 2 * begins[token]); };
        const auto bytes_of = [&](std::span<const Token> some) { return model_.text_of(some); };
        std::vector<SpeechWord> words;
        std::vector<std::size_t> ends;  // of each segment's words
        for (std::size_t i = 0; i + 1 < firsts.size(); ++i) {
            const auto own = std::span(texts).subspan(firsts[i], firsts[i + 1] - firsts[i]);
            for (const WordTokens& word : split_words(own, transcript_.language, bytes_of)) {
                const std::size_t first = firsts[i] + word.first;
                double sum = 0;
                for (std::size_t k = 0; k < word.n; ++k) sum += probabilities[first + k];
                words.push_back(
                    {word.text, time(first), time(first + word.n), sum / static_cast<double>(word.n), word.n});
            }
            ends.push_back(words.size());
        }
        cut_pauses(words);
        for (std::size_t i = 0, begin = 0; i < ends.size(); begin = ends[i++]) {
            SpeechSegment& segment = of_window_[i].first;
            segment.words.assign(words.begin() + static_cast<std::ptrdiff_t>(begin),
                                 words.begin() + static_cast<std::ptrdiff_t>(ends[i]));
            join_marks(segment.words);
            keep_within(segment);
        }
    }

    /// The segments of a window, and how many frames on the next begins: behind all of it or, if the text breaks off
    /// within a stretch, where that stretch begins.
    std::uint32_t add_segments(const Written& written, std::uint32_t size) {
        const std::uint32_t whole = size;
        const std::span<const Token> all = written.tokens;
        const auto is_stamp = [&](std::size_t i) { return tokens_.is_timestamp(all[i]); };
        const auto steps = [&](Token token) { return token - tokens_.first_timestamp(); };
        const auto time = [&](Token token) { return seconds(at_ + 2 * steps(token)); };
        std::vector<std::size_t> cuts;
        for (std::size_t i = 1; i < all.size(); ++i)
            if (is_stamp(i - 1) && is_stamp(i)) cuts.push_back(i);
        const std::size_t n = all.size();
        const bool ends_alone = n >= 2 && !is_stamp(n - 2) && is_stamp(n - 1);
        if (cuts.empty() || !options_.timestamps) {
            double end = seconds(at_ + size);
            const auto last = std::find_if(all.rbegin(), all.rend(), [&](Token t) { return tokens_.is_timestamp(t); });
            if (options_.timestamps && last != all.rend() && steps(*last)) end = time(*last);
            add_segment(written, all, seconds(at_), end);
        } else {
            if (ends_alone) cuts.push_back(n);
            std::size_t begin = 0;
            for (const std::size_t cut : cuts) {
                const std::span<const Token> part = all.subspan(begin, cut - begin);
                const double start = tokens_.is_timestamp(part.front()) ? time(part.front()) : seconds(at_);
                add_segment(written, part, start, time(part.back()));
                begin = cut;
            }
            if (!ends_alone && steps(all[begin - 1])) size = 2 * steps(all[begin - 1]);
        }
        hand_over(written, whole);
        if (!options_.previous_text || written.temperature > kMostForgiving) previous_.clear();
        return size;
    }

    SpeechModel& model_;
    const SpeechTokens& tokens_;
    const SpeechFrames& frames_;
    const SpeechOptions& options_;
    const SpeechCalls& calls_;
    Transcript transcript_;
    WindowWriter writer_;
    std::vector<float> window_;
    std::vector<Token> previous_;
    std::vector<std::pair<SpeechSegment, std::size_t>> of_window_;  // with the number of its first token in the window
    std::uint32_t at_ = 0, n_windows_ = 0;
    std::optional<std::uint32_t> heard_;  // where the window begins that the model has
};

}  // namespace

void SpeechModel::attend(std::span<const Token>, const EachHead&) {
    throw host::Error("words: expected a model whose attention can be seen, got another");
}

Transcript transcribe(SpeechModel& model, const SpeechTokens& tokens, const SpeechFrames& frames,
                      const SpeechOptions& options, const SpeechCalls& calls) {
    if (options.temperatures.empty()) throw host::ArgumentError("temperatures: expected at least one, got none");
    return Transcriber(model, tokens, frames, options, calls).run();
}

}  // namespace fovea
