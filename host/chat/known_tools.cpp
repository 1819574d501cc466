#include "host/chat/known_tools.h"

#include <algorithm>

namespace fovea {
namespace {

/// An object's member; null: it is no object, or has none of this name.
const Json* member(const Json* object, const char* name) {
    if (!object || !object->is_object()) return nullptr;
    const auto found = object->find(name);
    return found == object->end() ? nullptr : &*found;
}

}  // namespace

bool is_of_text(const Json& schema) {
    if (const Json* type = member(&schema, "type")) return *type == "string";
    if (const Json* values = member(&schema, "enum"); values && values->is_array())
        return std::all_of(values->begin(), values->end(), [](const Json& one) { return one.is_string(); });
    const Json* value = member(&schema, "const");
    return value && value->is_string();
}

KnownTools::KnownTools(const Json& tools) {
    if (!tools.is_array()) return;
    auto known = std::make_shared<std::vector<Tool>>();
    for (const Json& tool : tools) {
        const Json* function = member(&tool, "function");
        const Json* name = member(function, "name");
        if (!name || !name->is_string()) continue;
        Tool& made = known->emplace_back(Tool{name->get<std::string>(), {}});
        const Json* arguments = member(member(function, "parameters"), "properties");
        if (!arguments || !arguments->is_object()) continue;
        for (const auto& [argument, schema] : arguments->items())
            if (is_of_text(schema)) made.texts.push_back(argument);
        made.texts.shrink_to_fit();
        std::sort(made.texts.begin(), made.texts.end());
    }
    tools_ = std::move(known);
}

const KnownTools::Tool* KnownTools::find(std::string_view function) const {
    if (!tools_) return nullptr;
    const auto found =
        std::find_if(tools_->begin(), tools_->end(), [&](const Tool& tool) { return tool.name == function; });
    return found == tools_->end() ? nullptr : &*found;
}

bool KnownTools::is_text(std::string_view function, const std::string& argument) const {
    const Tool* tool = find(function);
    return tool && std::binary_search(tool->texts.begin(), tool->texts.end(), argument);
}

std::size_t KnownTools::n_bytes() const {
    std::size_t n = 0;
    if (!tools_) return n;
    for (const Tool& tool : *tools_) {
        n += sizeof tool + tool.name.capacity();
        for (const std::string& text : tool.texts) n += sizeof text + text.capacity();
    }
    return n;
}

}  // namespace fovea
