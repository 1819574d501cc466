// fovea transcribe: what is said in recordings, as text, lines with times, subtitles or JSON.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "fovea/host/sound_file.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/output_file.h"
#include "host/base/words.h"
#include "host/speech/speech_engine.h"
#include "host/speech/transcript_text.h"
#include "tools/options/opened.h"
#include "tools/options/options.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/verbs.h"

namespace fovea {
namespace {

struct TranscribeOptions {
    CommonOptions common;
    std::string model, language, prompt, task = "transcribe";
    std::vector<std::string> files;
    bool timestamps = false, srt = false, vtt = false, no_timestamps = false, no_previous = false,
         one_temperature = false, words = false;
    float temperature = 0;
    std::uint32_t seed = 0;
    Type kv_type = Type::f32;
};

/// What is known of a recording beside its text.
struct RecordingFigures {
    double seconds = 0;
    std::uint64_t arena_bytes = 0;  ///< its own memory, too
};

Json to_json(const std::string& file, const Transcript& transcript, const RecordingFigures& figures, bool words) {
    Json object;
    object["file"] = file;
    object["seconds"] = figures.seconds;
    object["language"] = transcript.language;
    if (transcript.language_probability) object["language_probability"] = *transcript.language_probability;
    object["text"] = transcript.text;
    object["segments"] = Json::array();
    for (const SpeechSegment& s : transcript.segments) object["segments"].push_back(segment_json(s, words));
    object["arena_bytes"] = figures.arena_bytes;
    return object;
}

/// Prints segments as they come.
class TranscriptPrinter {
public:
    explicit TranscriptPrinter(const TranscribeOptions& options) : options_(options) {
        if (options.vtt) std::fputs(std::string(kVttHead).c_str(), stdout);
    }

    void begin(const std::string& file) {
        first_ = true;
        if (is_plain() && options_.files.size() > 1)
            std::printf("%s%s:\n", n_files_++ ? "\n" : "", one_line(file).c_str());
    }
    void print(const SpeechSegment& segment) {
        if (!options_.words || options_.common.json) return print_one(segment);
        for (const SpeechWord& word : segment.words) print_one(as_segment(word));
    }
    void end(const std::string& file, const Transcript& transcript, const RecordingFigures& figures) const {
        if (options_.common.json)
            std::printf("%s\n", json_text(to_json(file, transcript, figures, options_.words)).c_str());
        else if (is_plain() && !options_.timestamps)
            std::putchar('\n');
        flush_output();
    }

private:
    void print_one(const SpeechSegment& s) {
        if (options_.srt)
            std::fputs(srt_cue(s, ++number_).c_str(), stdout);
        else if (options_.vtt)
            std::fputs(vtt_cue(s).c_str(), stdout);
        else if (options_.timestamps)
            std::printf("[%s --> %s] %s\n", clock_time(s.start).c_str(), clock_time(s.end).c_str(), line_of(s).c_str());
        else if (!options_.common.json)
            std::fputs(one_line(first_ && s.text.starts_with(' ') ? s.text.substr(1) : s.text).c_str(), stdout);
        first_ = false;
        std::fflush(stdout);
    }
    [[nodiscard]] bool is_plain() const { return !options_.common.json && !options_.srt && !options_.vtt; }

    const TranscribeOptions& options_;
    bool first_ = true;
    std::size_t number_ = 0;
    unsigned n_files_ = 0;
};

void check_options(const TranscribeOptions& options) {
    if (options.files.empty()) throw UsageError("FILE: expected a recording, or - for standard input, got none");
    const int n_forms = options.timestamps + options.srt + options.vtt + options.common.json;
    if (options.words && n_forms == 0)
        throw UsageError("--words: expected --timestamps, --srt, --vtt or --json beside it, got none");
    if (n_forms > 1) throw UsageError("--timestamps, --srt, --vtt, --json: expected one of them, got several");
    if (options.no_timestamps && (options.timestamps || options.srt || options.vtt))
        throw UsageError("--no-timestamps: expected none of --timestamps, --srt and --vtt beside it, got one");
    if ((options.srt || options.vtt) && options.files.size() > 1)
        throw UsageError("--srt, --vtt: expected one recording, got " + std::to_string(options.files.size()));
}

SpeechOptions speech_options(const TranscribeOptions& options) {
    SpeechOptions speech;
    speech.language = options.language == "auto" ? "" : options.language;
    speech.task = options.task;
    speech.timestamps = !options.no_timestamps;
    speech.previous_text = !options.no_previous;
    speech.seed = options.seed;
    speech.words = options.words;
    if (options.one_temperature) speech.temperatures = {options.temperature};
    return speech;
}

void transcribe_files(TranscribeOptions& options) {
    need_model(options.model);
    check_options(options);
    settle(options.common);
    const host::Opened opened = open_path(options.model, options.common.opening());
    SpeechEngine engine(opened, {.n_threads = options.common.n_threads,
                                 .isa = options.common.isa_or_best(),
                                 .kv_type = options.kv_type,
                                 .words = options.words});
    SpeechOptions speech = speech_options(options);
    speech.before = tokens_before(opened.tokenizer, options.prompt);
    check_speech(engine.tokens(), speech.language, speech.task);  // before a recording is read
    for (const std::string& file : options.files)
        if (std::error_code ignored; file != "-" && !std::filesystem::exists(file, ignored))
            throw host::Error(file + ": no such file");
    TranscriptPrinter printer(options);
    for (const std::string& file : options.files) {
        const std::uint32_t rate = opened.model.config().encoder.sound.sample_rate;
        std::string note;
        const std::vector<float> samples = read_sound(file, rate, &note);
        if (!note.empty()) std::fprintf(stderr, "note: %s\n", one_line(note).c_str());
        const RecordingFigures figures{
            .seconds = static_cast<double>(samples.size()) / rate,
            .arena_bytes = engine.n_bytes() + recording_bytes(opened.model, samples.size(), file).all()};
        const RecordingFrames frames = recording_frames(opened.model, samples, file);
        SpeechCalls calls;
        const Progress progress = isatty(STDOUT_FILENO) ? Progress() : progress_line(file);
        calls.detected = [](const std::string& language, double probability) {
            std::fprintf(stderr, "language: %s (%.0f %%)\n", one_line(language).c_str(), 100 * probability);
        };
        calls.segment = [&](const SpeechSegment& segment) { printer.print(segment); };
        calls.progress = [&](double done, double all) {
            if (progress) progress(static_cast<std::uint64_t>(done * 100), static_cast<std::uint64_t>(all * 100));
        };
        printer.begin(file);
        const Transcript transcript = transcribe(engine, engine.tokens(), frames.view(), speech, calls);
        printer.end(file, transcript, figures);
    }
}

}  // namespace

void add_transcribe(CLI::App& app) {
    auto options = std::make_shared<TranscribeOptions>();
    CLI::App& verb = add_verb(app, "transcribe", "What is said in recordings: text, times, subtitles");
    add_model(verb, options->model);
    add_arguments(verb, "FILE", options->files, "recordings; - is a WAV file on standard input");
    add_text(verb, "--language", options->language,
             "what is spoken, en for English (default: auto, heard at the start)");
    add_text(verb, "--task", options->task, "transcribe, or translate into English (default: transcribe)");
    add_text(verb, "--prompt", options->prompt,
             "a text that comes before the recording's own: names and words as they are spelled, style");
    add_flag(verb, "--timestamps", options->timestamps, "a line for each stretch: [00:00.000 --> 00:04.200] text");
    add_flag(verb, "--srt", options->srt, "subtitles as SubRip has them");
    add_flag(verb, "--vtt", options->vtt, "subtitles as WebVTT has them");
    add_flag(verb, "--words", options->words, "each word with its time: a line, a subtitle, or \"words\" of --json");
    add_flag(verb, "--no-timestamps", options->no_timestamps,
             "the model writes no times; a recording is then cut every 30 seconds, words or not");
    add_flag(verb, "--no-previous-text", options->no_previous,
             "each window of 30 seconds is read without the text before it");
    const Option temperature = add_real(verb, "--temp", options->temperature, 0, 100,
                                        "this temperature alone (default: 0, and up to 1 in steps of 0.2 while the "
                                        "text repeats itself or is unlikely)");
    add_count(verb, "--seed", options->seed, 0, 0xffffffffu, "of what temperatures above 0 choose (default: 0)");
    add_kv(verb, options->kv_type);
    add_verify(verb, options->common);
    add_common(verb, options->common);
    set_action(verb, [options, temperature] {
        options->one_temperature = temperature.count() > 0;
        transcribe_files(*options);
    });
}

}  // namespace fovea
