// fovea transcribe: what is said in recordings, as text, lines with times, subtitles, tables or JSON.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "fovea/host/sound_file.h"
#include "host/base/input_file.h"
#include "host/base/output_file.h"
#include "host/speech/frame_source.h"
#include "host/speech/speech_engine.h"
#include "host/speech/transcript_text.h"
#include "tools/options/ranks.h"
#include "tools/terminal/progress.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

struct TranscribeOptions {
    CommonOptions common;
    std::string model, language, prompt, task = "transcribe", output, vad;
    std::vector<std::string> files;
    std::optional<RawSound> raw;
    std::vector<SpeechClip> clips;
    LineLimits lines;
    bool timestamps = false, srt = false, vtt = false, tsv = false;
    bool no_timestamps = false, no_previous = false, words = false, carry_prompt = false, multilingual = false;
    std::optional<float> temperature;
    std::uint32_t seed = 0;

    [[nodiscard]] bool has_cues() const { return srt || vtt; }
    [[nodiscard]] bool is_plain() const { return !common.json && !has_cues() && !tsv; }
    /// Times of words are printed, or part subtitles.
    [[nodiscard]] bool needs_words() const { return words || lines.max_lines; }
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
    TranscriptPrinter(const TranscribeOptions& options, std::ostream& out) : options_(options), out_(out) {
        if (options.vtt) out_ << kVttHead;
        if (options.tsv) out_ << kTsvHead;
    }

    void begin(const std::string& file) {
        first_ = true;
        if (options_.is_plain() && options_.files.size() > 1)
            out_ << (n_files_++ ? "\n" : "") << one_line(file) << ":\n";
    }
    void print(const SpeechSegment& segment) {
        if (!options_.words || options_.common.json || segment.words.empty())  // a text that is too long has no words
            print_one(segment);
        else
            for (const SpeechWord& word : segment.words) print_one(as_segment(word));
        out_.flush();
    }
    void end(const Transcript& transcript, const RecordingFigures& figures) {
        if (options_.common.json)
            out_ << json_text(to_json(transcript, figures, options_.words)) << '\n';
        else if (options_.is_plain() && !options_.timestamps)
            out_ << '\n';
        out_.flush();
    }

private:
    void print_one(const SpeechSegment& s) {
        if (options_.has_cues())
            for (const Cue& cue : cues_of(s, options_.lines))
                out_ << (options_.srt ? srt_cue(cue, ++number_) : vtt_cue(cue));
        else if (options_.tsv)
            out_ << tsv_row(s);
        else if (options_.timestamps)
            out_ << '[' << clock_time(s.start) << " --> " << clock_time(s.end) << "] " << line_of(s) << '\n';
        else if (!options_.common.json)
            out_ << one_line(first_ && s.text.starts_with(' ') ? s.text.substr(1) : s.text);
        first_ = false;
    }

    const TranscribeOptions& options_;
    std::ostream& out_;
    bool first_ = true;
    std::size_t number_ = 0;
    unsigned n_files_ = 0;
};

/// "10,25,40": from 10 s to 25 s, and from 40 s on.
std::vector<SpeechClip> read_clips(const std::string& text) {
    const auto refuse = [&] {
        throw UsageError(
            "--clip-timestamps: expected seconds that grow, START,END,START,END with the last END or none, got " +
            text);
    };
    std::vector<double> times;
    for (std::string_view rest = text; times.empty() || !rest.empty();) {
        const std::size_t end = std::min(rest.find(','), rest.size());
        const Json time = read_json(rest.substr(0, end));
        if (!time.is_number() || time < 0 || (!times.empty() && time <= times.back()) || end + 1 == rest.size())
            refuse();
        times.push_back(time);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    std::vector<SpeechClip> clips;
    for (std::size_t i = 0; i < times.size(); i += 2) {
        clips.push_back({.begin = times[i]});
        if (i + 1 < times.size()) clips.back().end = times[i + 1];
    }
    return clips;
}

void check_options(const TranscribeOptions& options) {
    if (options.files.empty()) throw UsageError("FILE: expected a recording, or - for standard input, got none");
    if (std::find(options.files.begin(), options.files.end(), "-") != options.files.end()) refuse_by_ranks("FILE -");
    if (options.needs_words()) refuse_by_ranks("times of words");
    const int n_forms = options.timestamps + options.srt + options.vtt + options.tsv + options.common.json;
    if (options.words && n_forms == 0)
        throw UsageError("--words: expected --timestamps, --srt, --vtt, --tsv or --json beside it, got none");
    if (n_forms > 1) throw UsageError("--timestamps, --srt, --vtt, --tsv, --json: expected one of them, got several");
    if (options.no_timestamps && (options.timestamps || options.has_cues() || options.tsv))
        throw UsageError("--no-timestamps: expected none of --timestamps, --srt, --vtt and --tsv beside it, got one");
    if ((options.has_cues() || options.tsv) && options.files.size() > 1)
        throw UsageError("--srt, --vtt, --tsv: expected one recording, got " + std::to_string(options.files.size()));
    if (options.lines.max_width && (!options.has_cues() || options.words))
        throw UsageError("--max-line-width: expected --srt or --vtt beside it, and no --words, got another form");
    if (options.lines.max_lines && !options.lines.max_width)
        throw UsageError("--max-line-count: expected --max-line-width beside it, got none");
    if (options.carry_prompt && options.prompt.empty())
        throw UsageError("--carry-prompt: expected --prompt beside it, got none");
    if (!options.vad.empty() && options.vad != "energy") throw UsageError("--vad: expected energy, got " + options.vad);
    if (options.multilingual && !(options.language.empty() || options.language == "auto"))
        throw UsageError("--multilingual: expected no --language beside it, got " + options.language);
}

SpeechOptions speech_options(const TranscribeOptions& options) {
    SpeechOptions speech;
    speech.language = options.language == "auto" ? "" : options.language;
    speech.task = options.task;
    speech.timestamps = !options.no_timestamps;
    speech.previous_text = !options.no_previous;
    speech.carry_before = options.carry_prompt;
    speech.multilingual = options.multilingual;
    speech.clips = options.clips;
    speech.voice = !options.vad.empty();
    speech.seed = options.seed;
    speech.words = options.needs_words();
    if (options.temperature) speech.temperatures = {*options.temperature};
    return speech;
}

/// Transcribes one recording after the other.
class FileTranscriber {
public:
    FileTranscriber(const TranscribeOptions& options, const host::Opened& opened, std::ostream& out)
        : options_(options),
          opened_(opened),
          speech_(speech_options(options)),
          engine_(opened, {.n_threads = options.common.n_threads,
                           .isa = options.common.isa_or_best(),
                           .kv_type = options.common.kv_type,
                           .words = options.needs_words()}),
          printer_(options, out) {
        speech_.before = tokens_before(opened.tokenizer, options.prompt);
        check_speech(engine_.tokens(), speech_.language, speech_.task);  // before a recording is read
    }

    void transcribe(const std::string& file) {
        const Progress progress = isatty(STDOUT_FILENO) ? Progress() : progress_line(file);
        SpeechCalls calls;
        calls.detected = [](const std::string& language, double probability) {
            std::fprintf(stderr, "language: %s (%.0f %%)\n", one_line(language).c_str(), 100 * probability);
        };
        calls.segment = [&](const SpeechSegment& segment) { printer_.print(segment); };
        calls.progress = [&](double done, double all) {
            if (progress) progress(static_cast<std::uint64_t>(done * 100), static_cast<std::uint64_t>(all * 100));
        };
        const std::uint32_t rate = opened_.model.config().encoder.sound.sample_rate;
        SoundReader reader(file, rate, options_.raw);
        if (const std::string note = reader.note(); !note.empty())
            std::fprintf(stderr, "note: %s\n", one_line(note).c_str());
        if (reader.is_piped()) {
            LiveFrames frames(opened_.model, reader, input_name(file));
            printer_.begin(file);
            const Transcript transcript = fovea::transcribe(engine_, engine_.tokens(), frames, speech_, calls);
            finish(file, transcript, frames.n_samples());
        } else {
            std::vector<float> samples;
            while (reader.read(samples)) continue;
            const RecordingFrames frames = recording_frames(opened_.model, samples, file);
            printer_.begin(file);
            finish(file, fovea::transcribe(engine_, engine_.tokens(), frames.view(), speech_, calls), samples.size());
        }
    }

private:
    void finish(const std::string& file, const Transcript& transcript, std::size_t n_samples) {
        const double seconds = static_cast<double>(n_samples) / opened_.model.config().encoder.sound.sample_rate;
        printer_.end(transcript,
                     {file, seconds, engine_.n_bytes() + recording_bytes(opened_.model, n_samples, file).all()});
    }

    const TranscribeOptions& options_;
    const host::Opened& opened_;
    SpeechOptions speech_;
    SpeechEngine engine_;
    TranscriptPrinter printer_;
};

void transcribe_files(TranscribeOptions& options) {
    need_model(options.model);
    check_options(options);
    const host::Opened opened = open_model(options.common, options.model);
    std::optional<OutputFile> output;
    if (!options.output.empty()) output.emplace(options.output);
    FileTranscriber transcriber(options, opened, output ? output->stream() : std::cout);
    for (const std::string& file : options.files)
        if (std::error_code ignored; file != "-" && !std::filesystem::exists(file, ignored))
            throw host::Error(file + ": no such file");
    for (const std::string& file : options.files) transcriber.transcribe(file);
    if (output)
        output->close();
    else
        flush_output();
}

}  // namespace

void add_transcribe(CLI::App& app) {
    const auto declare = [](const Verb& verb, TranscribeOptions& o) {
        verb.model(o.model);
        verb.input_arguments("FILE", o.files, "recordings; - is one on standard input, read window by window");
        verb.text("--language", o.language,
                  "what is spoken: en, English or en-US (default: auto, heard in the first window)");
        verb.flag("--multilingual", o.multilingual, "hear the language of each window of 30 seconds");
        verb.text("--task", o.task, "transcribe, or translate into English (default: transcribe)");
        verb.text("--prompt", o.prompt,
                  "a text that comes before the recording's own: names and words as they are spelled, style");
        verb.flag("--carry-prompt", o.carry_prompt, "--prompt comes before every window's text");
        verb.option("--clip-timestamps",
                    "hear these parts alone: START,END,START,END of seconds, without the last END to the end",
                    "SECONDS", [&o](const std::string& text) { o.clips = read_clips(text); });
        verb.text("--vad", o.vad, "energy: pass over stretches without a voice, told by how loud they are");
        verb.option("--raw",
                    "recordings without a header: RATE:FORMAT[:CHANNELS], FORMAT u8, s16, s24, s32, f32 or f64",
                    "16000:s16", [&o](const std::string& text) { o.raw = read_raw_sound(text, "--raw"); });
        verb.flag("--timestamps", o.timestamps, "a line for each stretch: [00:00.000 --> 00:04.200] text");
        verb.flag("--srt", o.srt, "subtitles as SubRip has them");
        verb.flag("--vtt", o.vtt, "subtitles as WebVTT has them");
        verb.flag("--tsv", o.tsv, "a table: start and end in milliseconds, and the text");
        verb.flag("--words", o.words, "each word with its time: a line, a subtitle, or \"words\" of --json");
        verb.count("--max-line-width", o.lines.max_width, 1, kAny, "characters of a subtitle's line at most");
        verb.count("--max-line-count", o.lines.max_lines, 1, kAny,
                   "lines of a subtitle at most; what is longer becomes several");
        verb.output("-o,--output", o.output, "the file to write (default: standard output)");
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
