// Transcripts as text: times with and without hours, subtitles, and segments whose text is no line.
#include "host/speech/transcript_text.h"

#include <doctest/doctest.h>

using namespace fovea;

namespace {

TEST_CASE("transcript text: times are rounded to milliseconds, and have hours where there are some or all have them") {
    CHECK(clock_time(0) == "00:00.000");
    CHECK(clock_time(64.2) == "01:04.200");
    CHECK(clock_time(59.9996) == "01:00.000");
    CHECK(clock_time(3661.0405) == "01:01:01.041");
    CHECK(clock_time(359999.999, ',') == "99:59:59,999");
    CHECK(clock_time(1.5, ',', true) == "00:00:01,500");
}

TEST_CASE("transcript text: a subtitle is a number, times and one line, which no text breaks") {
    SpeechSegment segment;
    segment.start = 1, segment.end = 2.25, segment.text = "  so\nit is\t ";
    CHECK(line_of(segment) == "so?it is?");
    CHECK(srt_cue(cues_of(segment).front(), 12) == "12\n00:00:01,000 --> 00:00:02,250\nso?it is?\n\n");
    CHECK(vtt_cue(cues_of(segment).front()) == "00:00:01.000 --> 00:00:02.250\nso?it is?\n\n");
    segment.text = "   ";
    CHECK(line_of(segment).empty());
    segment.text = std::string(5000, 'x');  // of any length
    CHECK(line_of(segment) == segment.text);
}

TEST_CASE("transcript text: lines are broken before words, subtitles at the times of words") {
    SpeechSegment segment;
    segment.start = 1, segment.end = 4, segment.text = " one two three four";
    const auto texts = [&](const LineLimits& limits) {
        std::vector<std::string> all;
        for (const Cue& cue : cues_of(segment, limits)) all.push_back(cue.text);
        return all;
    };
    using Texts = std::vector<std::string>;
    CHECK(texts({}) == Texts{"one two three four"});
    CHECK(texts({.max_width = 7}) == Texts{"one two\nthree\nfour"});
    CHECK(texts({.max_width = 7, .max_lines = 1}) == Texts{"one two\nthree\nfour"});  // no times to part them at
    double at = 1;
    for (const char* word : {" one", " two", " three", " four"}) {
        segment.words.push_back({word, at, at + 0.5, 1, 1});
        at += 0.7;
    }
    CHECK(texts({.max_width = 7}) == Texts{"one two\nthree\nfour"});
    CHECK(texts({.max_width = 7, .max_lines = 2}) == Texts{"one two\nthree", "four"});
    CHECK(texts({.max_width = 3, .max_lines = 1}) == Texts{"one", "two", "three", "four"});
    const std::vector<Cue> cues = cues_of(segment, {.max_width = 7, .max_lines = 2});
    CHECK(cues[0].start == 1.0);
    CHECK(cues[0].end == doctest::Approx(2.9));
    CHECK(cues[1].start == doctest::Approx(3.1));
    segment.words.assign({{" äöü", 0, 1, 1, 1}, {" éè", 1, 2, 1, 1}});
    CHECK(texts({.max_width = 6}) == Texts{"äöü éè"});
    CHECK(texts({.max_width = 5}) == Texts{"äöü\néè"});
}

TEST_CASE("transcript text: tables have milliseconds and a text without tabs") {
    SpeechSegment segment;
    segment.start = 1, segment.end = 2.2504, segment.text = " so\tit";
    CHECK(tsv_row(segment) == "1000\t2250\tso?it\n");
}

}  // namespace
