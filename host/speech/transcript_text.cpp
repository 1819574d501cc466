#include "host/speech/transcript_text.h"

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

std::string cue(const SpeechSegment& segment, char point) {
    return clock_time(segment.start, point, true) + " --> " + clock_time(segment.end, point, true) + '\n' +
           line_of(segment) + "\n\n";
}

}  // namespace

std::string srt_cue(const SpeechSegment& segment, std::size_t number) {
    return std::to_string(number) + '\n' + cue(segment, ',');
}

std::string vtt_cue(const SpeechSegment& segment) { return cue(segment, '.'); }

Json segment_json(const SpeechSegment& segment, bool words) {
    Json object = {{"start", segment.start},
                   {"end", segment.end},
                   {"text", segment.text},
                   {"tokens", segment.tokens},
                   {"avg_logprob", segment.avg_logprob},
                   {"no_speech_prob", segment.no_speech_prob},
                   {"compression_ratio", segment.compression_ratio},
                   {"temperature", segment.temperature}};
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
