// POST /v1/audio/transcriptions and /v1/audio/translations: what is said in a recording, in its language or in English.
#include "serve/api/recordings.h"

#include "host/base/error.h"
#include "host/speech/speech_engine.h"
#include "host/speech/transcript_text.h"
#include "serve/api/multipart.h"
#include "serve/api/other_fields.h"

namespace fovea::serve {
namespace {

/// Texts of the form as a JSON body has them: numbers and true or false where a field wants them.
Json typed(const std::string& name, std::string_view text) {
    constexpr std::size_t kLongest = 32;
    if (text.size() <= kLongest && (name == "temperature" || name == "seed" || name == "stream")) {
        Json value = read_json(text);
        if (value.is_number() || value.is_boolean()) return value;
    }
    return std::string(text);
}

/// All fields but the file. Those that may be there more than once have "[]" behind their name.
Json object_of(const std::vector<FormPart>& parts, std::string_view body) {
    Json object = Json::object();
    for (const FormPart& part : parts) {
        if (part.name == "file") continue;
        Json value = typed(part.name, part.of(body));
        const bool is_list = part.name.ends_with("[]");
        const std::string name = part.name.substr(0, part.name.size() - (is_list ? 2 : 0));
        if (is_list)
            object[name].push_back(std::move(value));
        else if (!object.emplace(name, std::move(value)).second)
            refuse(name.substr(0, 40), "one", "several");
    }
    return object;
}

TimesOf read_times(const Fields& fields, const std::string& form) {
    const Json* list = fields.find("timestamp_granularities");
    if (!list) return {};
    TimesOf times{.segments = false};
    for (const Json& one : list->is_array() ? *list : Json::array({*list})) {
        if (one != "segment" && one != "word") fields.refuse("timestamp_granularities", "segment or word", one);
        (one == "word" ? times.words : times.segments) = true;
    }
    if (times.words && form != "verbose_json")
        refuse("timestamp_granularities", "response_format verbose_json beside word", "another");
    return times;
}

void read_fields(const Fields& fields, SpeechRequest& request) {
    request.model = fields.text("model");
    request.language = fields.text("language");
    request.said_before = fields.text("prompt");
    request.form = fields.one_of("response_format", {"json", "text", "srt", "verbose_json", "vtt"});
    request.times = read_times(fields, request.form);
    request.temperature = static_cast<float>(fields.real("temperature", 0, 0, 1));
    const std::int64_t seed = fields.whole("seed", 0, -1, INT64_MAX);
    request.says_seed = fields.find("seed") != nullptr;
    request.random_seed = seed == -1;
    request.seed = static_cast<std::uint64_t>(seed);
    request.stream = fields.flag("stream", false);
    if (request.stream && request.form != "json") refuse("response_format", "json beside stream", "another");
    const char* const chunking = "chunking_strategy";
    request.voice = !fields.text(chunking).empty() && fields.one_of(chunking, {"auto"}) == "auto";
    for (const char* name : {"include", "known_speaker_names", "known_speaker_references"}) fields.only(name, "");
}

}  // namespace

SpeechRequest read_upload(std::string_view content_type, std::string_view body) {
    const std::vector<FormPart> parts = read_multipart(content_type, body);
    const FormPart* file = nullptr;
    for (const FormPart& part : parts) {
        if (part.name != "file") continue;
        if (file) refuse("file", "one", "several");
        file = &part;
    }
    const Json object = object_of(parts, body);
    const Fields fields(object);
    SpeechRequest request;
    request.ignored = check_fields(
        fields, {"model", "language", "prompt", "response_format", "temperature", "seed", "timestamp_granularities",
                 "stream", "chunking_strategy", "include", "known_speaker_names", "known_speaker_references"});
    read_fields(fields, request);
    if (!file || file->begin == file->end) refuse("file", "a recording", file ? "an empty file" : "none");
    request.begin = file->begin;
    request.end = file->end;
    return request;
}

void SpeechRequest::take_sound(std::string&& body) {
    body.erase(end);
    body.erase(0, begin);
    sound = std::move(body);
}

namespace {

/// What is known of a recording once it has been read.
struct Heard {
    bool translated = false;
    std::string language = {};
    double seconds = 0;
    std::vector<SpeechSegment> segments = {};
    TimesOf times = {};
};

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
                   {"language", heard.language},
                   {"duration", heard.seconds},
                   {"text", text_of(heard)}};
    if (heard.times.words) object["words"] = std::move(words);
    if (heard.times.segments) object["segments"] = std::move(segments);
    object["usage"] = usage_of(heard);
    return object;
}

class SpeechAnswer final : public Answer {
public:
    SpeechAnswer(const SpeechRequest& request, bool translates)
        : Answer(1), form_(request.form), heard_{.translated = translates, .times = request.times} {}
    [[nodiscard]] std::string end() override {  // else its last event has said that it is
        return failure().status ? openai_failure() : "";
    }
    [[nodiscard]] std::string whole() const override {
        if (form_ == "json") return written({{"text", text_of(heard_)}, {"usage", usage_of(heard_)}});
        if (form_ == "verbose_json") return written(verbose(heard_));
        if (form_ == "text") return text_of(heard_) + '\n';
        std::string body(form_ == "vtt" ? kVttHead : "");
        std::size_t number = 0;
        for (const SpeechSegment& segment : heard_.segments)
            for (const Cue& cue : cues_of(segment)) body += form_ == "vtt" ? vtt_cue(cue) : srt_cue(cue, ++number);
        return body;
    }
    [[nodiscard]] const char* content_type() const override {
        return form_.ends_with("json") ? "application/json"
               : form_ == "vtt"        ? "text/vtt; charset=utf-8"
                                       : "text/plain; charset=utf-8";
    }

private:
    [[nodiscard]] std::string take(const Event& event) override {
        std::string out;
        for (const SpeechSegment& segment : event.segments) {
            out += as_event({{"type", "transcript.text.delta"}, {"delta", text_of(segment, heard_.segments.empty())}});
            heard_.segments.push_back(segment);
        }
        if (!event.ended) return out;
        heard_.language = event.language;
        heard_.seconds = event.seconds;
        return out +
               as_event({{"type", "transcript.text.done"}, {"text", text_of(heard_)}, {"usage", usage_of(heard_)}});
    }

    const std::string form_;
    Heard heard_;
};

JobPtr speech_job(const Call& call, const host::Opened& served, SpeechRequest& request, bool translates) {
    const JobPtr job = job_of(call);
    job->recording = std::make_shared<Recording>();
    SpeechOptions& options = job->recording->options;
    options.language = request.language;
    options.task = translates ? "translate" : "transcribe";
    if (request.temperature > 0) options.temperatures = {request.temperature};
    options.seed = job->sampler.seed = drawn_seed(request.random_seed, request.seed);
    options.words = request.times.words;
    options.voice = request.voice;
    try {
        const auto n_words = served.model.config().decoder.vocab_size;
        check_speech(SpeechTokens::read(find_info(served.model, "speech"), n_words, served.name), options.language,
                     options.task);
    } catch (const host::Error& refusal) {
        throw RequestError(400, refusal.what());
    }
    options.before = tokens_before(served.tokenizer, request.said_before);
    job->recording->bytes = std::move(request.sound);
    job->recording->taken = call.taken;
    return job;
}

Reply hear(Call& call, Service& service, bool translates) {
    SpeechRequest request = read_upload(call.content_type, call.body);
    call.ignored = request.ignored;
    const ModelEntry& entry = service.find(call, request.model, Work::speech);
    request.take_sound(std::move(call.body));
    if (!request.says_seed) request.seed = entry.seed.seed, request.random_seed = entry.seed.is_random;
    const JobPtr job = speech_job(call, entry.served, request, translates);
    Reply reply = reply_of(call, entry, job, std::make_unique<SpeechAnswer>(request, translates), request.stream);
    if (request.random_seed) reply.tell_seed();
    return reply;
}

}  // namespace

Reply endpoints::transcribe(Call& call, Service& service) { return hear(call, service, false); }
Reply endpoints::translate(Call& call, Service& service) { return hear(call, service, true); }

}  // namespace fovea::serve
