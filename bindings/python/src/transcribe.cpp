#include "bindings/python/src/transcribe.h"

#include <nanobind/stl/vector.h>

#include <cmath>
#include <vector>

#include "bindings/python/src/arrays.h"
#include "fovea/host/sound_file.h"
#include "fovea/workspace.h"

namespace fovea::python {
namespace {

nb::object str_of(const std::string& text) {
    return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

nb::object number_or_none(const std::optional<double>& number) {
    return number ? nb::object(nb::float_(*number)) : nb::none();
}

std::optional<double> number_in(const nb::dict& options, const char* name) {
    const nb::object value = options[name];
    return value.is_none() ? std::nullopt : std::optional(nb::cast<double>(value));
}

SpeechOptions read_options(const nb::dict& options) {
    SpeechOptions read;
    read.language = nb::cast<std::string>(options["language"]);
    read.task = nb::cast<std::string>(options["task"]);
    read.timestamps = nb::cast<bool>(options["timestamps"]);
    read.previous_text = nb::cast<bool>(options["previous_text"]);
    read.temperatures = nb::cast<std::vector<float>>(options["temperatures"]);
    read.max_compression = number_in(options, "max_compression");
    read.min_logprob = number_in(options, "min_logprob");
    read.no_speech = number_in(options, "no_speech");
    read.max_tokens = nb::cast<std::uint32_t>(options["max_new_tokens"]);
    read.seed = nb::cast<std::uint64_t>(options["seed"]);
    read.words = nb::cast<bool>(options["words"]);
    return read;
}

nb::dict dict_of(const Transcript& transcript) {
    nb::list segments;
    for (const SpeechSegment& s : transcript.segments) {
        nb::list tokens;
        for (const Token token : s.tokens) tokens.append(nb::int_(token));
        nb::dict segment;
        segment["start"] = s.start, segment["end"] = s.end;
        segment["text"] = str_of(s.text);
        segment["tokens"] = nb::tuple(tokens);
        segment["avg_logprob"] = s.avg_logprob, segment["no_speech_prob"] = s.no_speech_prob;
        segment["compression_ratio"] = s.compression_ratio, segment["temperature"] = s.temperature;
        nb::list words;
        for (const SpeechWord& w : s.words) {
            nb::dict word;
            word["word"] = str_of(w.text);
            word["start"] = w.start, word["end"] = w.end, word["probability"] = w.probability;
            words.append(word);
        }
        segment["words"] = words;
        segments.append(segment);
    }
    nb::dict result;
    result["text"] = str_of(transcript.text);
    result["language"] = transcript.language.empty() ? nb::none() : str_of(transcript.language);
    result["language_probability"] = number_or_none(transcript.language_probability);
    result["segments"] = segments;
    return result;
}

}  // namespace

PyTranscriber::PyTranscriber(const ModelHandle& model, std::uint32_t n_threads, const std::string& isa, bool words)
    : opened_(model.get()), words_(words) {
    const WithoutGil released;
    engine_ = std::make_unique<SpeechEngine>(
        *opened_, SpeechEngine::Options{.n_threads = n_threads ? n_threads : default_threads(),
                                        .isa = isa.empty() ? nullptr : isa.c_str(),
                                        .cancel = gate_.flag(),
                                        .words = words});
}

nb::dict PyTranscriber::run(const nb::object& path, const nb::object& samples_object, std::uint32_t rate,
                            const nb::dict& options_dict) {
    const SpeechOptions options = read_options(options_dict);
    const std::uint32_t own_rate = opened_->model.config().encoder.sound.sample_rate;
    const std::string file = path.is_none() ? "" : std::string(utf8_of(path, "sound"));
    Floats given;
    if (path.is_none()) given = read_packed(samples_object, "sound", 1);
    RecordingFrames frames;
    {
        const WithoutGil released;
        check_speech(engine_->tokens(), options.language, options.task);
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
    return dict_of(transcript);
}

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
