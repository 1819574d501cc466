#include "host/speech/transcriber.h"

#include <algorithm>
#include <cmath>

#include "host/base/error.h"
#include "host/speech/window_words.h"
#include "host/speech/window_writer.h"

namespace fovea {
namespace {

constexpr float kMostForgiving = 0.5f;  // what was written at a higher temperature is no text to go on from

class Transcriber {
public:
    Transcriber(SpeechModel& model, const SpeechTokens& tokens, const SpeechFrames& frames,
                const SpeechOptions& options, const SpeechCalls& calls)
        : model_(model),
          tokens_(tokens),
          frames_(frames),
          options_(options),
          calls_(calls),
          writer_(model, tokens, options),
          words_(model, tokens, options) {
        window_.resize(std::size_t{model.n_frames} * model.n_mels);
        previous_ = options.before;
    }

    Transcript run() {
        check_speech(tokens_, options_.language, options_.task);
        transcript_.language = tokens_.multilingual ? options_.language : "en";  // Whisper's only others are English
        if (!frames_.n_content) return std::move(transcript_);                   // nothing was said, in no language
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
                              speech_text(model_, tokens_, tokens),
                              {tokens.begin(), tokens.end()},
                              written.avg_logprob,
                              written.no_speech,
                              written.compression,
                              written.temperature,
                              {}};
        const bool blank = segment.text.find_first_not_of(" \t\r\n") == std::string::npos;
        if (blank || start == end) return;
        previous_.insert(previous_.end(), tokens.begin(), tokens.end());
        const auto first = static_cast<std::size_t>(tokens.data() - written.tokens.data());
        of_window_.push_back({std::move(segment), std::span(written.probabilities).subspan(first, tokens.size())});
    }

    /// The window's segments, whose words are looked for together. Returns the end of the last word, if they are asked for.
    std::optional<double> hand_over(std::uint32_t size) {
        std::optional<double> last_word;
        if (options_.words) last_word = words_.find(of_window_, {at_, size, window_, transcript_.language});
        for (WindowSegment& one : of_window_) {
            transcript_.text += one.segment.text;
            transcript_.segments.push_back(std::move(one.segment));
            if (calls_.segment) calls_.segment(transcript_.segments.back());
        }
        of_window_.clear();
        return last_word;
    }

    /// From the window's beginning to the end of its last word. Words that lie at its very beginning, as made-up ones do, may
    /// not have it heard a hundred times.
    [[nodiscard]] std::uint32_t frames_until(double last_word) const {
        constexpr std::int64_t kLeast = 20;
        const std::int64_t n = std::llround(last_word / model_.frame_seconds) - std::int64_t{at_};
        return static_cast<std::uint32_t>(std::max(n, kLeast));
    }

    /// The segments of a window, and how many frames on the next begins: behind all of it or, if the text breaks off
    /// within a stretch, where that stretch begins; with words, where the last of them ends.
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
        const std::optional<double> last_word = hand_over(whole);
        if (!options_.previous_text || written.last_tried > kMostForgiving) previous_.clear();
        return last_word && !ends_alone ? frames_until(*last_word) : size;
    }

    SpeechModel& model_;
    const SpeechTokens& tokens_;
    const SpeechFrames& frames_;
    const SpeechOptions& options_;
    const SpeechCalls& calls_;
    Transcript transcript_;
    WindowWriter writer_;
    WordFinder words_;
    std::vector<float> window_;
    std::vector<Token> previous_;
    std::vector<WindowSegment> of_window_;
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
