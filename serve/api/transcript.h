// Transcripts as OpenAI's clients read them: whole in five forms, or as a stream of events.
#pragma once
#include <string>
#include <vector>

#include "host/speech/transcriber.h"
#include "serve/api/request.h"

namespace fovea::serve {

/// How a transcript is written.
enum class TranscriptForm { json, text, srt, verbose_json, vtt };

/// What a verbose transcript gives the times of.
struct TimesOf {
    bool segments = true, words = false;
};

/// What is known of a recording once it has been read.
struct Heard {
    bool translated = false;
    std::string language = {};
    double seconds = 0;
    std::vector<SpeechSegment> segments = {};
    TimesOf times = {};
};

/// The whole body, and what its bytes are.
[[nodiscard]] std::string transcript_body(const Heard& heard, TranscriptForm form);
[[nodiscard]] const char* transcript_type(TranscriptForm form);
/// Events of a stream: what a segment adds, the `is_first` or a later one, and what comes at the end.
[[nodiscard]] Json transcript_delta(const SpeechSegment& segment, bool is_first);
[[nodiscard]] Json transcript_done(const Heard& heard);

}  // namespace fovea::serve
