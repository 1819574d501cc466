// Recordings and transcripts, for fovea_host.h.
#include <cmath>
#include <memory>

#include "bindings/c/handles.h"
#include "fovea/host/sound_file.h"
#include "fovea/host/speech.h"

using namespace fovea;
using namespace fovea::host_c;

struct fovea_host_transcriber {
    host::Transcriber transcriber;
    SpeechOptions options;
};

namespace {

SpeechOptions speech_options(const fovea_host_speech_options& given, const Tokenizer& tokenizer) {
    SpeechOptions options;
    if (given.language) options.language = given.language;
    if (given.task) options.task = given.task;
    options.timestamps = !given.no_timestamps;
    options.before = tokens_before(tokenizer, or_empty(given.prompt));
    options.seed = given.seed;
    options.words = given.words != 0;
    return options;
}

fovea_host_span span_of(const SpeechSegment& segment) {
    return {segment.start, segment.end, segment.text.c_str(), std::exp(segment.avg_logprob)};
}

/// A transcript and all that it points to, in one block of memory.
fovea_host_transcript* copy_of(const Transcript& from) {
    std::size_t n_words = 0, n_text = from.language.size() + from.text.size() + 2;
    for (const SpeechSegment& segment : from.segments) {
        n_words += segment.words.size();
        n_text += segment.text.size() + 1;
        for (const SpeechWord& word : segment.words) n_text += word.text.size() + 1;
    }
    const std::size_t n_spans = from.segments.size() + n_words;
    static_assert(sizeof(fovea_host_transcript) % alignof(fovea_host_span) == 0);
    TextBlock block(sizeof(fovea_host_transcript) + n_spans * sizeof(fovea_host_span), n_text);
    auto* place = static_cast<fovea_host_transcript*>(block.begin());
    auto* segments = reinterpret_cast<fovea_host_span*>(place + 1);
    auto* words = segments + from.segments.size();
    auto* made = new (place) fovea_host_transcript{
        block.add(from.language), block.add(from.text), segments, from.segments.size(), words, n_words};
    for (const SpeechSegment& segment : from.segments) {
        fovea_host_span span = span_of(segment);
        span.text = block.add(segment.text);
        new (segments++) fovea_host_span(span);
        for (const SpeechWord& word : segment.words)
            new (words++) fovea_host_span{word.start, word.end, block.add(word.text), word.probability};
    }
    return made;
}

}  // namespace

extern "C" {

int fovea_host_read_sound(const char* path, uint32_t sample_rate, float** samples, size_t* n_samples) {
    return run([&] {
        need(samples, "samples"), need(n_samples, "n_samples");
        const std::vector<float> read = read_sound(need(path, "path"), sample_rate);
        *samples = copy_of(std::span(read));
        *n_samples = read.size();
    });
}

int fovea_host_speech_frames(const fovea_host_model* model, const float* samples, size_t n_samples, float** frames,
                             size_t* n_frames, size_t* n_mels) {
    return run([&] {
        need(frames, "frames"), need(n_frames, "n_frames"), need(n_mels, "n_mels");
        const host::Opened& opened = need(model, "model")->opened;
        need_speech(opened);
        const RecordingFrames made =
            recording_frames(opened.model, need_array(samples, n_samples, "samples"), "samples");
        *n_mels = opened.config().encoder.sound.n_mels;
        *n_frames = made.numbers.size() / *n_mels;
        *frames = copy_of(std::span<const float>(made.numbers));
    });
}

int fovea_host_make_transcriber(const fovea_host_model* model, const fovea_host_speech_options* options,
                                fovea_host_transcriber** transcriber) {
    return run([&] {
        need(transcriber, "transcriber");
        const auto given = read_struct(options);
        const host::Opened& opened = need(model, "model")->opened;
        std::unique_ptr<fovea_host_transcriber> made(new fovea_host_transcriber{
            host::Transcriber(opened, {.n_threads = given.n_threads, .isa = given.isa, .words = given.words != 0}),
            speech_options(given, opened.tokenizer)});
        made->transcriber.check(made->options);
        *transcriber = made.release();
    });
}

void fovea_host_free_transcriber(fovea_host_transcriber* transcriber) { delete transcriber; }

int fovea_host_transcribe(fovea_host_transcriber* transcriber, const float* samples, size_t n_samples,
                          int (*on_segment)(void* context, const fovea_host_span* segment), void* context,
                          fovea_host_transcript** transcript) {
    return run([&] {
        need(transcriber, "transcriber"), need(transcript, "transcript");
        SpeechCalls calls;
        if (on_segment)
            calls.segment = [&](const SpeechSegment& segment) {
                const fovea_host_span span = span_of(segment);
                if (on_segment(context, &span)) throw Cancelled{};
            };
        *transcript = copy_of(transcriber->transcriber.transcribe(need_array(samples, n_samples, "samples"),
                                                                  transcriber->options, calls));
    });
}
}
