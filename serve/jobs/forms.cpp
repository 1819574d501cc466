#include "serve/jobs/forms.h"

#include "fovea/constraint.h"
#include "host/grammar/grammar.h"

namespace fovea::serve {

struct CompiledForm {
    std::shared_ptr<const std::vector<std::byte>> index;
    std::vector<std::byte> form;
    Constraint constraint;
};

namespace {

constexpr std::size_t kMostText = 64 << 10;  // bytes of a schema or grammar
constexpr std::size_t kMostKept = 32;        // forms

/// One answer's place in a form, with the memory it lives in.
class Place final : public Constrained {
public:
    explicit Place(std::shared_ptr<const CompiledForm> form)
        : form_(std::move(form)), memory_((constraint_state_bytes(form_->constraint) + 7) / 8) {
        (void)make_constraint_state(form_->constraint, std::as_writable_bytes(std::span(memory_)), state_);
    }
    [[nodiscard]] TokenFilter filter() override { return filter_of(state_); }

private:
    std::shared_ptr<const CompiledForm> form_;
    std::vector<std::uint64_t> memory_;
    ConstraintState state_;
};

/// Definitions of a tool's parameters, which they refer to from the root, become the root's.
void hoist(Json& parameters, Json& root) {
    for (const char* name : {"$defs", "definitions"}) {
        const auto found = parameters.find(name);
        if (found == parameters.end() || !found->is_object()) continue;
        for (const auto& [key, value] : found->items()) {
            const bool other = root.contains(name) && root[name].contains(key) && root[name][key] != value;
            if (other)
                throw RequestError(400, "tools: expected one definition of each name, got two of " + key.substr(0, 60),
                                   "tools");
            root[name][key] = value;
        }
        parameters.erase(name);
    }
}

grammar::Grammar read(Form form, const std::string& text, bool compact) {
    if (form == Form::grammar) return grammar::read_gbnf(text);
    if (form == Form::regex) return grammar::read_regex(text);
    return grammar::read_json_schema(text, {.compact = compact});
}

/// Whether a function has no parameters: its schema names none, and allows none by another word.
bool names_nothing(const Json& parameters) {
    static constexpr const char* kPlain[] = {"type", "properties", "required", "title", "description", "$schema"};
    for (const auto& [name, value] : parameters.items()) {
        if (std::find(std::begin(kPlain), std::end(kPlain), name) == std::end(kPlain)) return false;
        if (name == "type" && value != "object") return false;
        if ((name == "properties" || name == "required") && !value.empty()) return false;
    }
    return true;
}

}  // namespace

Json schema_of_calls(const Json& tools, const std::string& name) {
    Json root = Json::object(), calls = Json::array();
    for (const Json& tool : tools) {
        const Json& function = tool["function"];
        if (!name.empty() && function["name"] != name) continue;
        Json parameters = function.contains("parameters") && function["parameters"].is_object() ? function["parameters"]
                                                                                                : Json::object();
        hoist(parameters, root);
        if (names_nothing(parameters)) parameters = {{"type", "object"}, {"additionalProperties", false}};
        calls.push_back(
            {{"type", "object"},
             {"properties", {{"name", {{"const", function["name"]}}}, {"arguments", std::move(parameters)}}},
             {"required", {"name", "arguments"}},
             {"additionalProperties", false}});
    }
    if (calls.size() == 1)
        root.update(calls[0]);
    else
        root["anyOf"] = std::move(calls);
    return root;
}

std::shared_ptr<const CompiledForm> Forms::compile(Form form, const std::string& text, bool compact,
                                                   const char* param) {
    if (text.size() > kMostText)
        throw RequestError(400,
                           std::string(param) + ": expected at most " + std::to_string(kMostText) + " bytes, got " +
                               std::to_string(text.size()),
                           param);
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
        if (kept->form != form || kept->compact != compact || kept->text != text) continue;
        kept_.splice(kept_.begin(), kept_, kept);
        return kept_.front().compiled;
    }
    auto made = std::make_shared<CompiledForm>();
    try {
        const grammar::Grammar grammar = read(form, text, compact);
        if (!index_)
            index_ = std::make_shared<const std::vector<std::byte>>(grammar::index_vocabulary(served_.tokenizer));
        made->index = index_;
        made->form = grammar::compile(grammar, served_.tokenizer, *index_);
    } catch (const grammar::GrammarError& error) {
        throw RequestError(400, std::string(param) + ": " + error.what(), param);
    }
    const Status status = open_constraint(served_.tokenizer, made->form, *made->index, made->constraint);
    if (!status.ok()) throw RequestError(400, std::string(param) + ": " + StatusLine(status).c_str(), param);
    kept_.push_front({form, compact, text, made});
    if (kept_.size() > kMostKept) kept_.pop_back();
    return made;
}

std::function<std::unique_ptr<Constrained>()> Forms::find(const Request& request) {
    if (request.form == Form::any) return {};
    const char* param = request.form == Form::tool    ? "tools"
                        : !request.form_field.empty() ? request.form_field.c_str()
                        : is_ollama(request.api)      ? "format"
                                                      : "response_format";
    const bool is_written = request.form == Form::grammar || request.form == Form::regex;
    const std::string text = is_written                     ? request.grammar
                             : request.form == Form::schema ? request.schema.dump()
                             : request.form == Form::tool   ? schema_of_calls(request.tools, request.tool).dump()
                                                            : R"({"type": "object"})";
    const auto form = compile(request.form, text, request.compact, param);
    return [form] { return std::make_unique<Place>(form); };
}

}  // namespace fovea::serve
