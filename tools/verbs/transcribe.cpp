// fovea transcribe: what is said in recordings, as text, lines with times, subtitles or JSON.
#include <unistd.h>

#include <filesystem>

#include "fovea/host/sound_file.h"
#include "host/base/output_file.h"
#include "host/speech/speech_engine.h"
#include "host/speech/transcript_text.h"
#include "tools/terminal/progress.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

struct TranscribeOptions {
    CommonOptions common;
    std::string model, language, prompt, task = "transcribe";
    std::vector<std::string> files;
    bool timestamps = false, srt = false, vtt = false, no_timestamps = false, no_previous = false, words = false;
    std::optional<float> temperature;
    std::uint32_t seed = 0;
};

/// What is known of a recording.
struct RecordingFigures {
    const std::string& file;
    double seconds;
    std::uint64_t arena_bytes;  ///< its own memory, too
};

Json to_json(const Transcript& transcript, const RecordingFigures& figures, bool words) {
    Json object{{"file", figures.file}, {"seconds", figures.seconds}, {"language", transcript.language}};
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
        if (segment.words.empty()) return print_one(segment);  // a text that is too long for times
        for (const SpeechWord& word : segment.words) print_one(as_segment(word));
    }
    void end(const Transcript& transcript, const RecordingFigures& figures) const {
        if (options_.common.json)
            print_line(to_json(transcript, figures, options_.words));
        else if (is_plain() && !options_.timestamps)
            std::putchar('\n');
        flush_output();
    }

private:
    void print_one(const SpeechSegment& s) {
        if (options_.srt)
            std::fputs(srt_cue(cues_of(s).front(), ++number_).c_str(), stdout);
        else if (options_.vtt)
            std::fputs(vtt_cue(cues_of(s).front()).c_str(), stdout);
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
    if (options.temperature) speech.temperatures = {*options.temperature};
    return speech;
}

void transcribe_files(TranscribeOptions& options) {
    need_model(options.model);
    check_options(options);
    const host::Opened opened = open_model(options.common, options.model);
    SpeechEngine engine(opened, {.n_threads = options.common.n_threads,
                                 .isa = options.common.isa_or_best(),
                                 .kv_type = options.common.kv_type,
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
        const RecordingFigures figures{file, static_cast<double>(samples.size()) / rate,
                                       engine.n_bytes() + recording_bytes(opened.model, samples.size(), file).all()};
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
        printer.end(transcript, figures);
    }
}

}  // namespace

void add_transcribe(CLI::App& app) {
    const auto declare = [](const Verb& verb, TranscribeOptions& o) {
        verb.model(o.model);
        verb.input_arguments("FILE", o.files, "recordings; - is a WAV file on standard input");
        verb.text("--language", o.language, "what is spoken, en for English (default: auto, heard at the start)");
        verb.text("--task", o.task, "transcribe, or translate into English (default: transcribe)");
        verb.text("--prompt", o.prompt,
                  "a text that comes before the recording's own: names and words as they are spelled, style");
        verb.flag("--timestamps", o.timestamps, "a line for each stretch: [00:00.000 --> 00:04.200] text");
        verb.flag("--srt", o.srt, "subtitles as SubRip has them");
        verb.flag("--vtt", o.vtt, "subtitles as WebVTT has them");
        verb.flag("--words", o.words, "each word with its time: a line, a subtitle, or \"words\" of --json");
        verb.flag("--no-timestamps", o.no_timestamps,
                  "the model writes no times; a recording is then cut every 30 seconds, words or not");
        verb.flag("--no-previous-text", o.no_previous, "each window of 30 seconds is read without the text before it");
        verb.real("--temp", o.temperature, 0, 100,
                  "this temperature alone (default: 0, and up to 1 in steps of 0.2 while the text repeats itself or is "
                  "unlikely)");
        verb.count("--seed", o.seed, 0, kAny, "of what temperatures above 0 choose (default: 0)");
        verb.kv(o.common.kv_type);
        verb.opening(o.common);
    };
    add_verb<TranscribeOptions>(app, "transcribe", "What is said in recordings: text, times, subtitles",
                                transcribe_files, declare);
}

}  // namespace fovea
