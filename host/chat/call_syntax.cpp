#include "host/chat/call_syntax.h"

#include <algorithm>
#include <utility>

#include "host/base/words.h"
#include "host/chat/literal.h"

namespace fovea {
namespace {

/// The member of the first of these names; null: it has none.
const Json* member(const Json& object, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (const auto found = object.find(name); found != object.end()) return &*found;
    return nullptr;
}

/// Arguments as an object, or as JSON of one.
Json arguments_of(const Json* given) {
    if (!given || given->is_null()) return Json::object();
    Json read = given->is_string() ? read_json(given->get_ref<const std::string&>()) : *given;
    if (given->is_string() && trimmed(given->get_ref<const std::string&>(), kMarkSpace).empty()) read = Json::object();
    if (!read.is_object()) throw Unread{};
    return read;
}

/// A call as an object has it: {"name": ..., "arguments": ...} by any of the names that models use, alone or in OpenAI's shape.
ToolCall call_of(const Json& object) {
    if (!object.is_object()) throw Unread{};
    const Json* name = member(object, {"name", "tool_name", "function"});
    if (name && name->is_object()) return call_of(*name);
    if (!name || !name->is_string()) throw Unread{};
    return {.name = name->get<std::string>(),
            .arguments = arguments_of(member(object, {"arguments", "parameters", "args"}))};
}

class CallReader {
public:
    CallReader(const Dialect& dialect, const KnownTools& tools, std::string_view text)
        : dialect_(dialect), tools_(tools), at_(text, dialect.quote) {}

    ReadCalls read() try {
        if (is_json())
            read_json_calls();
        else if (dialect_.syntax == CallSyntax::python)
            read_python();
        else
            read_all();
        if (!dialect_.close.empty()) (void)at_.take(dialect_.close);
        return {std::move(calls_), at_.at(), false};
    } catch (const Unread& unread) {
        return {.is_cut = unread.is_cut};
    }

private:
    /// The calls end here: at their mark, or at the text's end.
    bool ends() {
        at_.skip_space();
        return at_.rest().empty() || (!dialect_.close.empty() && at_.is(dialect_.close));
    }
    /// Whether they are objects of JSON, in whatever dialect.
    bool is_json() {
        if (dialect_.syntax == CallSyntax::json) return true;
        at_.skip_space();
        Literals ahead(at_.rest());
        if (!ahead.take("{") && !(ahead.take("[") && ahead.take("{"))) return false;
        return ahead.take("\"");
    }
    void add(ToolCall call) {
        if (call.name.empty()) throw Unread{};
        calls_.push_back(std::move(call));
    }

    void read_json_calls() {
        do {
            const Json value = at_.value();
            if (value.is_array() && value.empty()) throw Unread{};
            for (const Json& one : value.is_array() ? value : Json::array({value})) add(call_of(one));
        } while (at_.take(";") || at_.take(",") || (!ends() && at_.is("{")));
    }

    void read_all() {
        const std::string_view begin = dialect_.syntax == CallSyntax::members ? kMembersCall : dialect_.call_open;
        do {
            if (!begin.empty()) at_.need(begin);
            add(dialect_.syntax == CallSyntax::named    ? read_named()
                : dialect_.syntax == CallSyntax::tagged ? read_tagged()
                                                        : read_members());
        } while (!begin.empty() && !ends() && at_.is(begin));
    }

    /// A header, in which the name is, and an object.
    ToolCall read_named() {
        std::string_view header = at_.before("{");
        if (const std::size_t begin = header.find(dialect_.name_open); begin != header.npos)
            header.remove_prefix(begin + dialect_.name_open.size());
        ToolCall call{.name =
                          std::string(trimmed(header.substr(0, header.find(dialect_.name_close.front())), kMarkSpace))};
        call.arguments = at_.value();
        if (!ends()) at_.need(trimmed(dialect_.call_close, kMarkSpace));
        return call;
    }

    /// A name, then arguments between tags.
    ToolCall read_tagged() {
        ToolCall call;
        call.name = dialect_.name_close.empty() ? at_.name() : trimmed(at_.until(dialect_.name_close), kMarkSpace);
        while (at_.take(dialect_.key_open)) {
            const std::string key(trimmed(at_.until(dialect_.key_close), kMarkSpace));
            const std::string_view kind = trimmed(at_.until(dialect_.value_open), kMarkSpace);
            call.arguments[key] = argument(call.name, key, kind, at_.until(dialect_.value_close));
        }
        at_.need(dialect_.call_close);
        return call;
    }

    /// kind: "true" for a text and "false" for JSON where the dialect says so; else the schema does.
    Json argument(std::string_view function, const std::string& key, std::string_view kind,
                  std::string_view text) const {
        if (dialect_.has_lines && text.starts_with('\n')) text.remove_prefix(1);
        if (dialect_.has_lines && text.ends_with('\n')) text.remove_suffix(1);
        if (kind == "true" || (kind != "false" && tools_.is_text(function, key))) return std::string(text);
        try {
            Literals literals(text);
            Json value = literals.value();
            literals.skip_space();
            if (literals.rest().empty()) return value;
        } catch (const Unread&) {  // a text without quotes
        }
        return std::string(text);
    }

    /// call:f{a:1}
    ToolCall read_members() {
        ToolCall call{.name = std::string(at_.name())};
        call.arguments = at_.value();
        if (!call.arguments.is_object()) throw Unread{};
        return call;
    }

    /// [f(a=1), g()], or one without brackets, or one a line.
    void read_python() {
        const bool in_list = at_.take("[");
        do {
            ToolCall call{.name = std::string(at_.name())};
            at_.need("(");
            for (bool is_first = true; !at_.take(")"); is_first = false) {
                if (!is_first) {
                    at_.need(",");
                    if (at_.take(")")) break;
                }
                const std::string key(at_.name());
                at_.need("=");
                call.arguments[key] = at_.value();
            }
            add(std::move(call));
        } while (at_.take(",") || at_.take(";") || (!in_list && !dialect_.close.empty() && !ends()));
        if (in_list) at_.need("]");
    }

    const Dialect& dialect_;
    const KnownTools& tools_;
    Literals at_;
    std::vector<ToolCall> calls_;
};

}  // namespace

ReadCalls read_calls(const Dialect& dialect, const KnownTools& tools, std::string_view text) {
    return CallReader(dialect, tools, text).read();
}

ReadCalls read_message_call(std::string_view name, std::string_view text) try {
    const Json given = std::string(text);
    return {{{.name = std::string(name), .arguments = arguments_of(&given)}}, text.size(), false};
} catch (const Unread& unread) {
    return {.is_cut = unread.is_cut};
}

}  // namespace fovea
