#include "bindings/python/src/form.h"

#include <nanobind/stl/vector.h>

#include <span>
#include <utility>

#include "bindings/python/src/arrays.h"
#include "bindings/python/src/gil.h"
#include "host/chat/chat_template.h"
#include "host/grammar/grammar.h"
#include "host/text/forced_call.h"

namespace fovea::python {
namespace {

constexpr std::size_t kMostFormBytes = 1 << 20;  // of a schema, grammar or expression

Json read_json(const std::string& text, const char* what) {
    Json json = fovea::read_json(text);
    if (json.is_discarded()) refuse_value(what, "text of Unicode characters", "other");
    return json;
}

/// {"dialect": ..., "in_prompt": ..., "tools": [...], "name": ...}
ForcedCall read_call(const std::string& text) {
    const Json call = read_json(text, "call");
    const Dialect* dialect = find_dialect(call.at("dialect").get_ref<const std::string&>());
    return {*dialect, call.at("tools"), call.at("name").get_ref<const std::string&>(), call.at("in_prompt") == true};
}

grammar::Grammar read_form(const std::string& kind, const std::string& text, bool compact) {
    if (kind == "grammar") return grammar::read_gbnf(text);
    if (kind == "regex") return grammar::read_regex(text);
    if (kind == "call") return read_call(text).form({.compact = compact});
    return grammar::read_json_schema(text, {.compact = compact});
}

void need_text(const OpenedModel& opened) {
    if (opened.kind() != host::Kind::text || !opened.tokenizer.valid())
        refuse_value(opened.name + ": model", "one for logits with a tokenizer", "another");
}

}  // namespace

PyForm::PyForm(const ModelHandle& model, const std::string& kind, nb::handle object, bool compact) {
    const std::string text(utf8_of(object, kind.c_str()));
    auto made = std::make_shared<CompiledForm>();
    made->opened = model.get();
    const OpenedModel& opened = *made->opened;
    need_text(opened);
    if (text.size() > kMostFormBytes)
        refuse_value(kind, "at most " + std::to_string(kMostFormBytes) + " bytes", std::to_string(text.size()));
    const WithoutGil released;
    try {
        const std::span<const std::byte> index = opened.vocabulary_index();
        made->bytes = grammar::compile(read_form(kind, text, compact), opened.tokenizer, index);
        require(open_constraint(opened.tokenizer, made->bytes, index, made->constraint), kind);
    } catch (const grammar::GrammarError& error) {
        const std::string words = error.what();  // mostly with a place in the form, which begins with its kind
        throw ValueRefused(words.starts_with(kind) ? words : kind + ": " + words);
    }
    compiled_ = std::move(made);
}

void AnswerPlace::start(std::shared_ptr<const CompiledForm> form) {
    form_ = std::move(form);
    if (!form_) return;
    memory_.resize((constraint_state_bytes(form_->constraint) + 7) / 8);
    require(make_constraint_state(form_->constraint, std::as_writable_bytes(std::span(memory_)), state_), "form");
}

PyChat::PyChat(const ModelHandle& model, const nb::object& given) {
    const SharedModel opened = model.get();
    need_text(*opened);
    const std::string text = given.is_none() ? "" : std::string(utf8_of(given, "chat_template"));
    const bool own = given.is_none();
    const WithoutGil released;
    try {
        talk_ = std::make_shared<const ModelTalk>(
            ModelTalk{opened, own ? ModelChat::of(opened->model, opened->tokenizer)
                                  : ModelChat::with(opened->model, opened->tokenizer, text)});
    } catch (const ChatTemplateError& error) {
        throw ValueRefused(std::string("chat template: ") + error.what());
    }
}

TaintedText PyChat::render(const std::string& messages, const std::string& tools, const std::string& extra) const {
    ChatInput input;
    input.messages = read_json(messages, "messages");
    input.tools = read_json(tools, "tools");
    input.extra = read_json(extra, "template_arguments");
    try {
        return talk_->chat.render(std::move(input));
    } catch (const ChatTemplateError& error) {
        throw ValueRefused(std::string("messages: the model's chat template: ") + error.what());
    }
}

nb::list PyChat::prompt(const std::string& messages, const std::string& tools, const std::string& extra) {
    std::vector<Token> ids;
    {
        const WithoutGil released;
        ids = talk_->chat.read(render(messages, tools, extra));
    }
    return ids_list(ids);
}

nb::tuple PyChat::begin(const std::string& messages, const std::string& tools, const std::string& extra,
                        const std::string& call, bool has_form) {
    std::vector<Token> ids;
    AnswerReading how{.dialect = talk_->chat.dialect()};
    {
        const WithoutGil released;
        const std::optional<ForcedCall> forced = call.empty() ? std::nullopt : std::optional(read_call(call));
        BegunAnswer answer = begin_answer(how.dialect, render(messages, tools, extra), forced ? &*forced : nullptr,
                                          has_form ? FormPlace::at_once : FormPlace::none);
        how.begun = std::move(answer.begun);
        const Json known = read_json(tools, "tools");
        how.tools = known;
        how.reads_calls = !known.is_null();
        ids = talk_->chat.read(answer.prompt);
    }
    return nb::make_tuple(ids_list(ids), PyAnswerReader(std::move(how)));
}

namespace {

/// What a reader hands out, said and thought.
template<class Hand>
nb::tuple parts_of(const Hand& hand) {
    std::string said, thought;
    hand([&](std::string_view text, bool is_thought) { (is_thought ? thought : said) += text; });
    return nb::make_tuple(nb::str(said.data(), said.size()), nb::str(thought.data(), thought.size()));
}

/// A reader for a model without a template.
PyAnswerReader plain_reader(const std::string& tools, const std::string& call) {
    const Json known = read_json(tools, "tools");
    return PyAnswerReader(
        {.begun = call.empty() ? "" : read_call(call).begun().text(), .reads_calls = !known.is_null(), .tools = known});
}

}  // namespace

nb::tuple PyAnswerReader::add(const std::string& text) {
    return parts_of([&](const AnswerReader::OnText& on_text) { reader_.add(text, on_text); });
}

nb::tuple PyAnswerReader::finish() {
    return parts_of([&](const AnswerReader::OnText& on_text) { reader_.finish(on_text); });
}

nb::list PyAnswerReader::calls() const {
    nb::list calls;
    for (const ToolCall& call : reader_.calls()) {
        const std::string arguments = json_text(call.arguments);
        calls.append(
            nb::make_tuple(nb::str(call.name.data(), call.name.size()), nb::str(arguments.data(), arguments.size())));
    }
    return calls;
}

void bind_form(nb::module_& module) {
    nb::class_<PyForm>(module, "Form", "A form of answers, compiled for a model's vocabulary.")
        .def(nb::init<const ModelHandle&, const std::string&, nb::handle, bool>(), nb::arg("model"), nb::arg("kind"),
             nb::arg("text"), nb::arg("compact") = false);
    nb::class_<PyAnswerReader>(module, "AnswerReader", "Parts an answer into reasoning, text and calls while it comes.")
        .def_static("plain", plain_reader, nb::arg("tools"), nb::arg("call"))
        .def("add", &PyAnswerReader::add, nb::arg("text"))
        .def("finish", &PyAnswerReader::finish)
        .def_prop_ro("calls", &PyAnswerReader::calls);
    nb::class_<PyChat>(module, "Chat", "A model's chat template.")
        .def(nb::init<const ModelHandle&, const nb::object&>(), nb::arg("model"), nb::arg("chat_template").none())
        .def("prompt", &PyChat::prompt, nb::arg("messages"), nb::arg("tools"), nb::arg("extra"))
        .def("begin", &PyChat::begin, nb::arg("messages"), nb::arg("tools"), nb::arg("extra"), nb::arg("call"),
             nb::arg("has_form"))
        .def_prop_ro("dialect", [](const PyChat& self) { return std::string(self.talk()->chat.dialect().calls->name); })
        .def_prop_ro("note", [](const PyChat& self) { return self.talk()->chat.note(); })
        .def_prop_ro("stops", [](const PyChat& self) { return self.talk()->chat.stops(); });
}

}  // namespace fovea::python
