// Transcripts as people, players of subtitles and programs read them.
#pragma once
#include <string>
#include <string_view>

#include "host/base/json.h"
#include "host/speech/transcriber.h"

namespace fovea {

/// "00:04.200", with hours if there are some or `always`; `point` before the milliseconds.
[[nodiscard]] std::string clock_time(double seconds, char point = '.', bool always = false);

/// A segment's text on one line, without spaces around it; other control characters become question marks.
[[nodiscard]] std::string line_of(const SpeechSegment& segment);

/// A segment as a subtitle of SubRip, the `number`-th from 1, and of WebVTT, whose files begin with kVttHead.
[[nodiscard]] std::string srt_cue(const SpeechSegment& segment, std::size_t number);
[[nodiscard]] std::string vtt_cue(const SpeechSegment& segment);
inline constexpr std::string_view kVttHead = "WEBVTT\n\n";

/// Every field of a segment but where its window begins; its words, if asked for.
[[nodiscard]] Json segment_json(const SpeechSegment& segment, bool words = false);

/// A word as a line or subtitle of its own.
[[nodiscard]] SpeechSegment as_segment(const SpeechWord& word);

}  // namespace fovea
