#include "host/speech/transcriber.h"

#include <algorithm>
#include <cmath>

#include "host/base/error.h"
#include "host/speech/frame_source.h"
#include "host/speech/voice.h"
#include "host/speech/window_words.h"
#include "host/speech/window_writer.h"

namespace fovea {
namespace {

constexpr float kMostForgiving = 0.5f;  // what was written at a higher temperature is no text to go on from

class Transcriber {
public:
    Transcriber(SpeechModel& model, const SpeechTokens& tokens, FrameSource& frames, const SpeechOptions& options,
                const SpeechCalls& calls)
        : model_(model),
          tokens_(tokens),
          frames_(frames),
          options_(options),
          calls_(calls),
          writer_(model, tokens, options),
          words_(model, tokens, options) {
        window_.resize(std::size_t{model.n_frames} * model.n_mels);
        if (!options.carry_before) previous_ = options.before;
    }

    Transcript run() {
        check_speech(tokens_, options_.language, options_.task);
        language_ = tokens_.multilingual ? tokens_.language_named(options_.language) : "en";  // others are English
        transcript_.language = language_;  // of no sound at all, what is said; else that of the first window
        const bool detects = language_.empty();
        while (next_window()) {
            if (detects && (options_.multilingual || n_windows_ == 0)) detect();
            const std::vector<Token> prompt = speech_prompt(tokens_, language_, options_.task, options_.timestamps);
            if (prompt.size() >= model_.max_tokens)
                throw host::Error("tokens of a model: expected more than " + std::to_string(prompt.size()) + ", got " +
                                  std::to_string(model_.max_tokens));
            const std::vector<Token> whole = with_previous(prompt);
            const Written written = writer_.write(whole, whole.size() - prompt.size() + 1, n_windows_++);
            at_ += writer_.is_silent(written) ? size_ : add_segments(written);
            tell_progress();
        }
        const std::size_t begin = transcript_.text.find_first_not_of(' ');
        transcript_.text.erase(0, std::min(begin, transcript_.text.size()));
        return std::move(transcript_);
    }

private:
    [[nodiscard]] double seconds(std::uint32_t frame) const { return frame * model_.frame_seconds; }
    [[nodiscard]] std::uint32_t frame_at(double seconds) const {
        return static_cast<std::uint32_t>(std::min(std::round(seconds / model_.frame_seconds), double{1u << 30}));
    }

    void tell_progress() const {
        const std::optional<std::uint32_t> n = frames_.n_content();
        if (n && calls_.progress) calls_.progress(seconds(std::min(at_, *n)), seconds(*n));
    }

    /// The model hears the next window that is asked for: size_ frames from at_ on, and zeros behind them. False: there is none.
    bool next_window() {
        for (;;) {
            while (clip_ < options_.clips.size() && at_ >= frame_at(options_.clips[clip_].end)) ++clip_;
            if (clip_ == options_.clips.size() && clip_) return false;
            std::uint32_t end = ~std::uint32_t{0};
            if (clip_ < options_.clips.size()) {
                at_ = std::max(at_, frame_at(options_.clips[clip_].begin));
                end = frame_at(options_.clips[clip_].end);
            }
            const std::uint32_t n = frames_.read(at_, window_);
            if (n == 0) return false;
            size_ = std::min(n, end - at_);
            if (options_.voice) {
                const auto voiced =
                    voice_.find(std::span(window_).first(std::size_t{size_} * model_.n_mels), model_.n_mels);
                if (!voiced || voiced->begin > 0) {
                    at_ += voiced ? voiced->begin : size_;
                    continue;
                }
                size_ = voiced->end;
            }
            if (size_ < n)
                std::fill(window_.begin() + static_cast<std::ptrdiff_t>(std::size_t{size_} * model_.n_mels),
                          window_.end(), 0.0f);
            model_.hear(window_);
            return true;
        }
    }

    void detect() {
        const DetectedLanguage found = detect_language(tokens_, model_.read({&tokens_.start, 1}));
        const bool is_new = found.language != language_;
        language_ = found.language;
        if (n_windows_ == 0) {
            transcript_.language = found.language;
            transcript_.language_probability = found.probability;
        }
        if (is_new && calls_.detected) calls_.detected(found.language, found.probability);
    }

    /// Text of the windows before, behind the one that is carried along, as much as leaves room for as much again.
    [[nodiscard]] std::vector<Token> with_previous(const std::vector<Token>& prompt) const {
        std::vector<Token> whole;
        std::size_t room = model_.max_tokens / 2 - std::min(model_.max_tokens / 2, 1u);
        const auto add_end = [&](const std::vector<Token>& tokens) {
            const std::size_t n = std::min(tokens.size(), room);
            if (n && whole.empty()) whole.push_back(tokens_.previous);
            whole.insert(whole.end(), tokens.end() - static_cast<std::ptrdiff_t>(n), tokens.end());
            room -= n;
        };
        if (options_.carry_before) add_end(options_.before);
        add_end(previous_);
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
                              {},
                              options_.multilingual ? language_ : std::string()};
        const bool blank = segment.text.find_first_not_of(" \t\r\n") == std::string::npos;
        if (blank || start == end) return;
        previous_.insert(previous_.end(), tokens.begin(), tokens.end());
        const auto first = static_cast<std::size_t>(tokens.data() - written.tokens.data());
        of_window_.push_back({std::move(segment), std::span(written.probabilities).subspan(first, tokens.size())});
    }

    /// The window's segments, whose words are looked for together. Returns the end of the last word, if they are asked for.
    std::optional<double> hand_over() {
        std::optional<double> last_word;
        if (options_.words) last_word = words_.find(of_window_, {at_, size_, window_, language_});
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
    std::uint32_t add_segments(const Written& written) {
        std::uint32_t n_done = size_;
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
            double end = seconds(at_ + size_);
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
            if (!ends_alone && steps(all[begin - 1])) n_done = 2 * steps(all[begin - 1]);
        }
        const std::optional<double> last_word = hand_over();
        if (!options_.previous_text || written.last_tried > kMostForgiving) previous_.clear();
        return last_word && !ends_alone ? frames_until(*last_word) : n_done;
    }

    SpeechModel& model_;
    const SpeechTokens& tokens_;
    FrameSource& frames_;
    const SpeechOptions& options_;
    const SpeechCalls& calls_;
    Transcript transcript_;
    WindowWriter writer_;
    WordFinder words_;
    std::vector<float> window_;
    std::vector<Token> previous_;
    std::vector<WindowSegment> of_window_;
    VoiceFinder voice_;
    std::string language_;                             // of the window
    std::uint32_t at_ = 0, size_ = 0, n_windows_ = 0;  // the window's first frame, and its frames
    std::size_t clip_ = 0;
};

}  // namespace

void SpeechModel::attend(std::span<const Token>, const EachHead&) {
    throw host::Error("words: expected a model whose attention can be seen, got another");
}

Transcript transcribe(SpeechModel& model, const SpeechTokens& tokens, FrameSource& frames, const SpeechOptions& options,
                      const SpeechCalls& calls) {
    if (options.temperatures.empty()) throw host::ArgumentError("temperatures: expected at least one, got none");
    double last = 0;
    for (const SpeechClip& clip : options.clips) {
        if (!(clip.begin >= last && clip.begin < clip.end))
            throw host::ArgumentError("clips: expected times that grow, each end behind its beginning, got others");
        last = clip.end;
    }
    return Transcriber(model, tokens, frames, options, calls).run();
}

Transcript transcribe(SpeechModel& model, const SpeechTokens& tokens, const SpeechFrames& frames,
                      const SpeechOptions& options, const SpeechCalls& calls) {
    MadeFrames made(frames, model.n_mels);
    return transcribe(model, tokens, made, options, calls);
}

}  // namespace fovea
