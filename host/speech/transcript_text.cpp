#include "host/speech/transcript_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "host/base/words.h"

namespace fovea {

std::string clock_time(double seconds, char point, bool always) {
    const auto all = static_cast<std::uint64_t>(std::llround(seconds * 1000));
    const std::uint64_t hours = all / 3600000, minutes = all / 60000 % 60, whole = all / 1000 % 60;
    char text[48];
    int n = 0;
    if (hours || always) n = std::snprintf(text, sizeof text, "%02d:", static_cast<int>(hours));
    std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), "%02d:%02d%c%03d", static_cast<int>(minutes),
                  static_cast<int>(whole), point, static_cast<int>(all % 1000));
    return text;
}

std::string line_of(const SpeechSegment& segment) { return printable(trimmed(segment.text)); }

namespace {

std::string timed(const Cue& cue, char point) {
    return clock_time(cue.start, point, true) + " --> " + clock_time(cue.end, point, true) + '\n' + cue.text + "\n\n";
}

std::size_t n_characters(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// A text's words with the space before them, all at the segment's time.
std::vector<SpeechWord> words_of(const SpeechSegment& segment) {
    std::vector<SpeechWord> words;
    const std::string_view text = segment.text;
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
        end = std::min(text.find(' ', text.find_first_not_of(' ', begin)), text.size());
        words.push_back({std::string(text.substr(begin, end - begin)), segment.start, segment.end, 0, 0});
    }
    return words;
}

}  // namespace

std::vector<Cue> cues_of(const SpeechSegment& segment, const LineLimits& limits) {
    if (!limits.max_width) return {{segment.start, segment.end, line_of(segment)}};
    const bool timed_words = !segment.words.empty();
    std::vector<Cue> cues;
    std::size_t width = 0, n_lines = 0;
    for (const SpeechWord& word : timed_words ? segment.words : words_of(segment)) {
        const std::string text = printable(word.text);
        const std::size_t n = n_characters(text);
        const bool breaks = width && width + n > limits.max_width;
        if (cues.empty() || (breaks && timed_words && n_lines == limits.max_lines)) {
            cues.push_back({word.start, word.end, {}});
            width = 0, n_lines = 1;
        } else if (breaks) {
            cues.back().text += '\n';
            width = 0, ++n_lines;
        }
        const std::string_view shown = width ? std::string_view(text) : trimmed(text);
        cues.back().text += shown;
        cues.back().end = word.end;
        width += n_characters(shown);
    }
    return cues;
}

std::string srt_cue(const Cue& cue, std::size_t number) { return std::to_string(number) + '\n' + timed(cue, ','); }

std::string vtt_cue(const Cue& cue) { return timed(cue, '.'); }

std::string tsv_row(const SpeechSegment& segment) {
    const auto milliseconds = [](double seconds) { return std::to_string(std::llround(seconds * 1000)); };
    return milliseconds(segment.start) + '\t' + milliseconds(segment.end) + '\t' + line_of(segment) + '\n';
}

Json segment_json(const SpeechSegment& segment, bool words) {
    Json object = {{"start", segment.start},
                   {"end", segment.end},
                   {"text", segment.text},
                   {"tokens", segment.tokens},
                   {"avg_logprob", segment.avg_logprob},
                   {"no_speech_prob", segment.no_speech_prob},
                   {"compression_ratio", segment.compression_ratio},
                   {"temperature", segment.temperature}};
    if (!segment.language.empty()) object["language"] = segment.language;
    if (words) {
        object["words"] = Json::array();
        for (const SpeechWord& word : segment.words)
            object["words"].push_back(
                {{"word", word.text}, {"start", word.start}, {"end", word.end}, {"probability", word.probability}});
    }
    return object;
}

SpeechSegment as_segment(const SpeechWord& word) {
    SpeechSegment segment;
    segment.start = word.start, segment.end = word.end, segment.text = word.text;
    return segment;
}

}  // namespace fovea
