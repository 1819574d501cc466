// Recordings and transcripts, for fovea_host.h.
#include <cmath>
#include <cstddef>
#include <memory>

#include "bindings/c/handles.h"
#include "host/media/sound_file.h"
#include "host/speech/speech_engine.h"

using namespace fovea;
using namespace fovea::host_c;

struct fovea_host_transcriber {
    const fovea_host_model* model = nullptr;
    std::unique_ptr<SpeechEngine> engine;
    SpeechOptions options;
};

namespace {

SpeechOptions speech_options(const fovea_host_speech_options& given, const Tokenizer& tokenizer) {
    SpeechOptions options;
    if (given.language) options.language = given.language;
    if (given.task) options.task = given.task;
    options.timestamps = !given.no_timestamps;
    options.before = tokens_before(tokenizer, given.prompt ? given.prompt : "");
    options.seed = given.seed;
    options.words = given.words != 0;
    return options;
}

fovea_host_span span_of(const SpeechSegment& segment) {
    return {segment.start, segment.end, segment.text.c_str(), std::exp(segment.avg_logprob)};
}

/// One block of memory with a transcript and all that it points to.
class TranscriptBlock {
public:
    explicit TranscriptBlock(const Transcript& from) {
        std::size_t n_words = 0;
        n_text_ = from.language.size() + from.text.size() + 2;
        for (const SpeechSegment& segment : from.segments) {
            n_words += segment.words.size();
            n_text_ += segment.text.size() + 1;
            for (const SpeechWord& word : segment.words) n_text_ += word.text.size() + 1;
        }
        constexpr std::size_t head = sizeof(fovea_host_transcript);
        static_assert(head % alignof(fovea_host_span) == 0);
        auto* block = static_cast<char*>(
            take_memory(head + (from.segments.size() + n_words) * sizeof(fovea_host_span) + n_text_));
        auto* segments = reinterpret_cast<fovea_host_span*>(block + head);
        auto* words = segments + from.segments.size();
        text_ = reinterpret_cast<char*>(words + n_words);
        made_ = new (block)
            fovea_host_transcript{add(from.language), add(from.text), segments, from.segments.size(), words, n_words};
        for (const SpeechSegment& segment : from.segments) {
            fovea_host_span span = span_of(segment);
            span.text = add(segment.text);
            new (segments++) fovea_host_span(span);
            for (const SpeechWord& word : segment.words)
                new (words++) fovea_host_span{word.start, word.end, add(word.text), word.probability};
        }
    }
    [[nodiscard]] fovea_host_transcript* made() const { return made_; }

private:
    const char* add(const std::string& text) {
        char* begin = text_;
        std::memcpy(begin, text.c_str(), text.size() + 1);
        text_ += text.size() + 1;
        return begin;
    }

    std::size_t n_text_ = 0;
    char* text_ = nullptr;
    fovea_host_transcript* made_ = nullptr;
};

}  // namespace

extern "C" {

int fovea_host_read_sound(const char* path, uint32_t sample_rate, float** samples, size_t* n_samples) {
    return run([&] {
        need(samples, "samples"), need(n_samples, "n_samples");
        const std::vector<float> read = read_sound(need(path, "path"), sample_rate);
        *samples = copy_of(read.data(), read.size());
        *n_samples = read.size();
    });
}

int fovea_host_speech_frames(const fovea_host_model* model, const float* samples, size_t n_samples, float** frames,
                             size_t* n_frames, size_t* n_mels) {
    return run([&] {
        need(frames, "frames"), need(n_frames, "n_frames"), need(n_mels, "n_mels");
        const host::Opened& opened = need(model, "model")->opened;
        need_speech(opened);
        const std::span<const float> given(n_samples ? need(samples, "samples") : samples, n_samples);
        const RecordingFrames made = recording_frames(opened.model, given, "samples");
        *n_mels = opened.config().encoder.sound.n_mels;
        *n_frames = made.numbers.size() / *n_mels;
        *frames = copy_of(made.numbers.data(), made.numbers.size());
    });
}

int fovea_host_make_transcriber(const fovea_host_model* model, const fovea_host_speech_options* options,
                                fovea_host_transcriber** transcriber) {
    return run([&] {
        need(transcriber, "transcriber");
        const auto given = read_struct(options);
        const host::Opened& opened = need(model, "model")->opened;
        auto made = std::make_unique<fovea_host_transcriber>();
        made->model = model;
        made->engine = std::make_unique<SpeechEngine>(
            opened, SpeechEngine::Options{.n_threads = given.n_threads ? given.n_threads : default_threads(),
                                          .isa = given.isa,
                                          .words = given.words != 0});
        made->options = speech_options(given, opened.tokenizer);
        check_speech(made->engine->tokens(), made->options.language, made->options.task);
        *transcriber = made.release();
    });
}

void fovea_host_free_transcriber(fovea_host_transcriber* transcriber) { delete transcriber; }

int fovea_host_transcribe(fovea_host_transcriber* transcriber, const float* samples, size_t n_samples,
                          int (*on_segment)(void* context, const fovea_host_span* segment), void* context,
                          fovea_host_transcript** transcript) {
    return run([&] {
        need(transcriber, "transcriber"), need(transcript, "transcript");
        const std::span<const float> given(n_samples ? need(samples, "samples") : samples, n_samples);
        const RecordingFrames frames = recording_frames(transcriber->model->opened.model, given, "samples");
        SpeechCalls calls;
        if (on_segment)
            calls.segment = [&](const SpeechSegment& segment) {
                const fovea_host_span span = span_of(segment);
                if (on_segment(context, &span)) throw Cancelled{};
            };
        const Transcript said =
            transcribe(*transcriber->engine, transcriber->engine->tokens(), frames.view(), transcriber->options, calls);
        *transcript = TranscriptBlock(said).made();
    });
}
}
