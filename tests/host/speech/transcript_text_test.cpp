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
    CHECK(srt_cue(segment, 12) == "12\n00:00:01,000 --> 00:00:02,250\nso?it is?\n\n");
    CHECK(vtt_cue(segment) == "00:00:01.000 --> 00:00:02.250\nso?it is?\n\n");
    segment.text = "   ";
    CHECK(line_of(segment).empty());
    segment.text = std::string(5000, 'x');  // of any length
    CHECK(line_of(segment) == segment.text);
}

}  // namespace
