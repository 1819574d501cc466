// What is said in recordings: one model's memory for it, one call at a time.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "bindings/python/src/arrays.h"
#include "bindings/python/src/interrupt.h"
#include "bindings/python/src/module.h"
#include "bindings/python/src/opened.h"
#include "fovea/host/sound_file.h"
#include "fovea/workspace.h"
#include "host/speech/speech_engine.h"

namespace fovea::python {
namespace {

SpeechOptions read_options(const nb::dict& options) {
    SpeechOptions read;
    read.language = nb::cast<std::string>(options["language"]);
    read.task = nb::cast<std::string>(options["task"]);
    read.timestamps = nb::cast<bool>(options["timestamps"]);
    read.previous_text = nb::cast<bool>(options["previous_text"]);
    read.temperatures = nb::cast<std::vector<float>>(options["temperatures"]);
    read.max_compression = nb::cast<std::optional<double>>(options["max_compression"]);
    read.min_logprob = nb::cast<std::optional<double>>(options["min_logprob"]);
    read.no_speech = nb::cast<std::optional<double>>(options["no_speech"]);
    read.max_tokens = nb::cast<std::uint32_t>(options["max_new_tokens"]);
    read.seed = nb::cast<std::uint64_t>(options["seed"]);
    read.words = nb::cast<bool>(options["words"]);
    read.multilingual = nb::cast<bool>(options["multilingual"]);
    read.carry_before = nb::cast<bool>(options["carry_prompt"]);
    read.voice = nb::cast<bool>(options["voice"]);
    for (const auto& [begin, end] : nb::cast<std::vector<std::pair<double, double>>>(options["clips"]))
        read.clips.push_back({begin, end});
    return read;
}

/// Fields as Transcript, SpeechSegment and SpeechWord have them.
nb::tuple tuple_of(const Transcript& transcript) {
    nb::list segments;
    for (const SpeechSegment& s : transcript.segments) {
        nb::list words;
        for (const SpeechWord& w : s.words) words.append(nb::make_tuple(str_of(w.text), w.start, w.end, w.probability));
        segments.append(nb::make_tuple(s.start, s.end, str_of(s.text), nb::tuple(ids_list(s.tokens)), s.avg_logprob,
                                       s.no_speech_prob, s.compression_ratio, s.temperature, words,
                                       s.language.empty() ? nb::none() : str_of(s.language)));
    }
    return nb::make_tuple(str_of(transcript.text),
                          transcript.language.empty() ? nb::none() : str_of(transcript.language),
                          transcript.language_probability, segments);
}

class PyTranscriber {
public:
    PyTranscriber(const ModelHandle& model, std::uint32_t n_threads, const std::string& isa, bool words)
        : opened_(model.get()), words_(words) {
        const WithoutGil released;
        engine_ = std::make_unique<SpeechEngine>(
            *opened_, SpeechEngine::Options{.n_threads = n_threads ? n_threads : default_threads(),
                                            .isa = isa.empty() ? nullptr : isa.c_str(),
                                            .cancel = gate_.flag(),
                                            .words = words});
    }

    /// `path` of a file, or else `samples`, float32 [n_samples], of `rate` a second. `options` by the names of SpeechOptions.
    [[nodiscard]] nb::tuple run(const nb::object& path, const nb::object& samples_object, std::uint32_t rate,
                                const nb::dict& options_dict) {
        SpeechOptions options = read_options(options_dict);
        const std::string prompt(utf8_of(options_dict["prompt"], "prompt"));
        const std::uint32_t own_rate = opened_->model.config().encoder.sound.sample_rate;
        const std::string file = path.is_none() ? "" : std::string(utf8_of(path, "sound"));
        Floats given;
        if (path.is_none()) given = read_packed(samples_object, "sound", 1);
        RecordingFrames frames;
        {
            const WithoutGil released;
            check_speech(engine_->tokens(), options.language, options.task);
            options.before = tokens_before(opened_->tokenizer, prompt);
            const std::vector<float> samples =
                path.is_none() ? resample(given.span(), rate ? rate : own_rate, own_rate, "sampling_rate")
                               : read_sound(file, own_rate);
            frames = recording_frames(opened_->model, samples, path.is_none() ? "sound" : file);
        }
        Transcript transcript;
        require(gate_.run([&] {
            try {
                transcript = transcribe(*engine_, engine_->tokens(), frames.view(), options);
            } catch (const SpeechCancelled&) {
                return Status{Code::cancelled, "transcribe", 0, 0};
            }
            return Status{};
        }));
        return tuple_of(transcript);
    }
    [[nodiscard]] std::uint64_t arena_bytes() const { return engine_->n_bytes(); }
    /// Whether it has room for what the times of words need.
    [[nodiscard]] bool words() const { return words_; }

private:
    SharedModel opened_;
    PassGate gate_;
    bool words_;
    std::unique_ptr<SpeechEngine> engine_;
};

}  // namespace

void bind_transcribe(nb::module_& module) {
    nb::class_<PyTranscriber>(module, "Transcriber", "Memory for transcribing with a model.")
        .def(nb::init<const ModelHandle&, std::uint32_t, const std::string&, bool>(), nb::arg("model"),
             nb::arg("n_threads") = 0, nb::arg("isa") = "", nb::arg("words") = false)
        .def_prop_ro("words", &PyTranscriber::words)
        .def("run", &PyTranscriber::run, nb::arg("path").none(), nb::arg("samples").none(), nb::arg("rate"),
             nb::arg("options"))
        .def_prop_ro("arena_bytes", &PyTranscriber::arena_bytes);
}

}  // namespace fovea::python
