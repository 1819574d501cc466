#include "host/speech/window_words.h"

#include <algorithm>
#include <cmath>

#include "host/speech/word_times.h"

namespace fovea {

std::optional<double> WordFinder::find(std::span<WindowSegment> segments, const HeardWindow& window) {
    std::vector<std::size_t> ends;
    std::vector<SpeechWord> words = align(segments, window, ends);
    if (words.empty()) return std::nullopt;
    const double median = median_duration(words);
    cut_pauses(words, 2 * median);
    std::vector<SpeechWord*> all;
    for (std::size_t i = 0, begin = 0; i < segments.size(); begin = ends[i++]) {
        SpeechSegment& segment = segments[i].segment;
        segment.words.assign(words.begin() + static_cast<std::ptrdiff_t>(begin),
                             words.begin() + static_cast<std::ptrdiff_t>(ends[i]));
        join_marks(segment.words);
        speech_end_ = settle_borders(segment, median, speech_end_);
        cut_long(segment.words, 2 * median, window);
        for (SpeechWord& word : segment.words) all.push_back(&word);
    }
    const auto seconds = [&](std::uint32_t frame) { return frame * model_.frame_seconds; };
    put_in_order(all, seconds(window.first), seconds(window.first + window.size));
    for (WindowSegment& one : segments)
        if (SpeechSegment& s = one.segment; !s.words.empty())
            s.start = s.words.front().start, s.end = s.words.back().end;
    return speech_end_ = all.back()->end;
}

std::vector<SpeechWord> WordFinder::align(std::span<const WindowSegment> segments, const HeardWindow& window,
                                          std::vector<std::size_t>& ends) {
    std::vector<Token> read = speech_prompt(tokens_, window.language, options_.task, false);
    const std::size_t n_prompt = read.size();
    std::vector<double> probabilities;
    std::vector<std::size_t> firsts;  // of each segment, among the texts
    for (const WindowSegment& one : segments) {
        firsts.push_back(probabilities.size());
        for (std::size_t i = 0; i < one.segment.tokens.size(); ++i)
            if (tokens_.is_text(one.segment.tokens[i])) {
                read.push_back(one.segment.tokens[i]);
                probabilities.push_back(one.probabilities[i]);
            }
    }
    firsts.push_back(probabilities.size());
    if (probabilities.empty() || read.size() >= model_.max_tokens) return {};
    const std::vector<Token> texts(read.begin() + static_cast<std::ptrdiff_t>(n_prompt), read.end());
    read.push_back(tokens_.end);
    Alignment alignment(read.size(), std::max(window.size / 2, 1u));
    model_.attend(read, [&](std::span<const float> weights, std::size_t stride) { alignment.add(weights, stride); });
    // A token is chosen by the row before it; the last text's row chooses the end.
    const std::vector<std::uint32_t> begins = alignment.begins(n_prompt - 1, texts.size() + 1);
    const auto time = [&](std::size_t token) { return (window.first + 2 * begins[token]) * model_.frame_seconds; };
    const auto bytes_of = [&](std::span<const Token> some) { return model_.text_of(some); };
    std::vector<SpeechWord> words;
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const auto own = std::span(texts).subspan(firsts[i], firsts[i + 1] - firsts[i]);
        for (const WordTokens& word : split_words(own, window.language, bytes_of)) {
            const std::size_t first = firsts[i] + word.first;
            double sum = 0;
            for (std::size_t k = 0; k < word.n; ++k) sum += probabilities[first + k];
            words.push_back({word.text, time(first), time(first + word.n), sum / static_cast<double>(word.n), word.n});
        }
        ends.push_back(words.size());
    }
    return words;
}

/// A word that is still too long for one has a pause in it: its louder end, `most` seconds, is the word.
void WordFinder::cut_long(std::vector<SpeechWord>& words, double most, const HeardWindow& window) const {
    constexpr double kMostWord = 3;  // seconds
    const auto loudness = [&](double start, double end) {
        const auto row = [&](double time) {
            const long long frame = std::llround(time / model_.frame_seconds) - window.first;
            return std::min(static_cast<std::size_t>(std::max(frame, 0LL)) * model_.n_mels, window.frames.size());
        };
        double sum = 0;
        for (std::size_t i = row(start); i < row(end); ++i) sum += static_cast<double>(window.frames[i]);
        return sum;
    };
    for (SpeechWord& word : words) {
        if (word.end - word.start <= kMostWord) continue;
        if (loudness(word.start, word.start + most) < loudness(word.end - most, word.end))
            word.start = word.end - most;
        else
            word.end = word.start + most;
    }
}

}  // namespace fovea
