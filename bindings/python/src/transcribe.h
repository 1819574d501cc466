// What is said in recordings: one model's memory for it, one call at a time.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "bindings/python/src/interrupt.h"
#include "bindings/python/src/opened.h"
#include "host/speech/speech_engine.h"

namespace fovea::python {

class PyTranscriber {
public:
    PyTranscriber(const ModelHandle& model, std::uint32_t n_threads, const std::string& isa, bool words);

    /// `path` of a file, or else `samples`, float32 [n_samples], of `rate` a second. `options` by the names of SpeechOptions.
    [[nodiscard]] nb::dict run(const nb::object& path, const nb::object& samples, std::uint32_t rate,
                               const nb::dict& options);
    [[nodiscard]] std::uint64_t arena_bytes() const { return engine_->n_bytes(); }
    /// Whether it has room for what the times of words need.
    [[nodiscard]] bool words() const { return words_; }

private:
    SharedModel opened_;
    PassGate gate_;
    bool words_;
    std::unique_ptr<SpeechEngine> engine_;
};

void bind_transcribe(nb::module_& module);

}  // namespace fovea::python
