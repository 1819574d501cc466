#include "serve/api/transcript.h"

#include "host/speech/transcript_text.h"
#include "serve/api/answer.h"

namespace fovea::serve {
namespace {

/// A segment's text; before the first no space.
std::string text_of(const SpeechSegment& segment, bool is_first) {
    return is_first ? segment.text.substr(std::min(segment.text.find_first_not_of(' '), segment.text.size()))
                    : segment.text;
}

std::string text_of(const Heard& heard) {
    std::string text;
    for (const SpeechSegment& segment : heard.segments) text += text_of(segment, text.empty());
    return text;
}

Json usage_of(const Heard& heard) { return {{"type", "duration"}, {"seconds", heard.seconds}}; }

Json verbose(const Heard& heard) {
    Json segments = Json::array();
    for (const SpeechSegment& segment : heard.segments) {
        Json one = {{"id", segments.size()}, {"seek", segment.window_start}};
        one.update(segment_json(segment));
        segments.push_back(std::move(one));
    }
    Json words = Json::array();
    for (const SpeechSegment& segment : heard.segments)
        for (const SpeechWord& word : segment.words)
            words.push_back({{"word", line_of(as_segment(word))}, {"start", word.start}, {"end", word.end}});
    Json object = {{"task", heard.translated ? "translate" : "transcribe"},
                   {"language", heard.language.empty() ? Json() : Json(heard.language)},
                   {"duration", heard.seconds},
                   {"text", text_of(heard)}};
    if (heard.times.words) object["words"] = std::move(words);
    if (heard.times.segments) object["segments"] = std::move(segments);
    object["usage"] = usage_of(heard);
    return object;
}

}  // namespace

std::string transcript_body(const Heard& heard, TranscriptForm form) {
    std::string body;
    std::size_t number = 0;
    switch (form) {
        case TranscriptForm::json: return written({{"text", text_of(heard)}, {"usage", usage_of(heard)}});
        case TranscriptForm::verbose_json: return written(verbose(heard));
        case TranscriptForm::text: return text_of(heard) + '\n';
        case TranscriptForm::srt:
            for (const SpeechSegment& segment : heard.segments) body += srt_cue(segment, ++number);
            return body;
        case TranscriptForm::vtt: break;
    }
    body = kVttHead;
    for (const SpeechSegment& segment : heard.segments) body += vtt_cue(segment);
    return body;
}

const char* transcript_type(TranscriptForm form) {
    const bool is_json = form == TranscriptForm::json || form == TranscriptForm::verbose_json;
    return is_json                       ? "application/json"
           : form == TranscriptForm::vtt ? "text/vtt; charset=utf-8"
                                         : "text/plain; charset=utf-8";
}

Json transcript_delta(const SpeechSegment& segment, bool is_first) {
    return {{"type", "transcript.text.delta"}, {"delta", text_of(segment, is_first)}};
}

Json transcript_done(const Heard& heard) {
    return {{"type", "transcript.text.done"}, {"text", text_of(heard)}, {"usage", usage_of(heard)}};
}

}  // namespace fovea::serve
