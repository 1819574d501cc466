// Transcripts as people, players of subtitles and programs read them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "host/base/json.h"
#include "host/speech/transcriber.h"

namespace fovea {

/// "00:04.200", with hours if there are some or `always`; `point` before the milliseconds.
[[nodiscard]] std::string clock_time(double seconds, char point = '.', bool always = false);

/// A segment's text on one line, without spaces around it; other control characters become question marks.
[[nodiscard]] std::string line_of(const SpeechSegment& segment);

/// How a subtitle's text is broken: characters of a line and lines of a subtitle, at most; 0: any number.
struct LineLimits {
    std::uint32_t max_width = 0, max_lines = 0;
};
/// What is on the screen at a time: lines parted by breaks, without one at the end.
struct Cue {
    double start = 0, end = 0;  ///< seconds
    std::string text;
};
/// A segment's subtitles. Lines are broken before words; a longer word has a line of its own. Only a segment with the times of
/// its words becomes several.
[[nodiscard]] std::vector<Cue> cues_of(const SpeechSegment& segment, const LineLimits& limits = {});

/// A subtitle of SubRip, the `number`-th from 1, and of WebVTT, whose files begin with kVttHead.
[[nodiscard]] std::string srt_cue(const Cue& cue, std::size_t number);
[[nodiscard]] std::string vtt_cue(const Cue& cue);
inline constexpr std::string_view kVttHead = "WEBVTT\n\n";

/// A segment as a row of OpenAI's tables, whose files begin with kTsvHead: milliseconds and the text, parted by tabs.
[[nodiscard]] std::string tsv_row(const SpeechSegment& segment);
inline constexpr std::string_view kTsvHead = "start\tend\ttext\n";

/// Every field of a segment but where its window begins; its words, if asked for.
[[nodiscard]] Json segment_json(const SpeechSegment& segment, bool words = false);

/// A word as a line or subtitle of its own.
[[nodiscard]] SpeechSegment as_segment(const SpeechWord& word);

}  // namespace fovea
