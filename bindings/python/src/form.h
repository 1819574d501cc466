// Forms of answers, compiled for a model's vocabulary, and how a model talks.
#pragma once
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bindings/python/src/errors.h"
#include "bindings/python/src/opened.h"
#include "fovea/constraint.h"
#include "fovea/host/chat.h"
#include "host/chat/answer_reader.h"
#include "host/chat/tainted_text.h"

namespace fovea::python {

/// A form with the model whose vocabulary it is for. Any number of answers share it.
struct CompiledForm {
    SharedModel opened;
    std::vector<std::byte> bytes;
    Constraint constraint;
};

/// A compiled form as Python has it.
class PyForm {
public:
    /// kind: "schema", "grammar", "regex", or "call", of which `text` is JSON: the dialect, whether the prompt begins the
    /// call, the tools, and the name of the one to call, if it is one. ValueError says what of `text` was expected, and its place.
    PyForm(const ModelHandle& model, const std::string& kind, nb::handle text, bool compact);
    [[nodiscard]] const std::shared_ptr<const CompiledForm>& compiled() const { return compiled_; }

private:
    std::shared_ptr<const CompiledForm> compiled_;
};

/// One answer's place in a form; none is valid too, and lets any text be.
class AnswerPlace {
public:
    /// At the start of `form`, or of none.
    void start(std::shared_ptr<const CompiledForm> form);
    [[nodiscard]] TokenFilter filter() const { return form_ ? filter_of(state_) : TokenFilter{}; }

private:
    std::shared_ptr<const CompiledForm> form_;
    std::vector<std::uint64_t> memory_;
    ConstraintState state_;
};

struct ModelTalk {
    SharedModel opened;
    ModelChat chat;
};

/// A model's chat template as Python has it.
class PyChat {
public:
    /// The model's own template, or `given`.
    PyChat(const ModelHandle& model, const nb::object& given);
    /// The ids of a conversation. `messages`, `tools` and `extra` are JSON; ValueError where the template refuses them.
    [[nodiscard]] nb::list prompt(const std::string& messages, const std::string& tools, const std::string& extra);
    /// The same, and what reads the answer. call: JSON of a form of kind "call"; empty: any text.
    [[nodiscard]] nb::tuple begin(const std::string& messages, const std::string& tools, const std::string& extra,
                                  const std::string& call, bool has_form);
    [[nodiscard]] const std::shared_ptr<const ModelTalk>& talk() const { return talk_; }

private:
    [[nodiscard]] TaintedText render(const std::string& messages, const std::string& tools,
                                     const std::string& extra) const;

    std::shared_ptr<const ModelTalk> talk_;
};

/// Reads an answer while it comes, as Python has it.
class PyAnswerReader {
public:
    explicit PyAnswerReader(AnswerReading how) : reader_(std::move(how)) {}
    /// What is said and what is thought of it.
    [[nodiscard]] nb::tuple add(const std::string& text);
    /// The same of what has waited: no more comes.
    [[nodiscard]] nb::tuple finish();
    /// Each call's name, and its arguments as JSON.
    [[nodiscard]] nb::list calls() const;

private:
    AnswerReader reader_;
};

void bind_form(nb::module_& module);

}  // namespace fovea::python
