#include "host/grammar/json_references.h"

#include "host/grammar/grammar.h"

namespace fovea::grammar {
namespace {

constexpr std::size_t kMostCopied = 20'000'000;  // values of schemas that references and merging lead to

/// Values within a value, itself included.
std::size_t n_values(const Json& value) {
    std::size_t n = 1;
    if (value.is_structured())
        for (const Json& one : value) n += n_values(one);
    return n;
}

}  // namespace

std::string pointer_of(const Json& reference, const std::string& place) {
    const std::string text = reference.is_string() ? reference.get<std::string>() : json_text(reference);
    if (!reference.is_string() || text.empty() || text[0] != '#' || (text.size() > 1 && text[1] != '/'))
        refuse(place + "/$ref", "a place in the schema such as #/$defs/name", text);
    return text.substr(1);
}

const Json& References::target(const std::string& pointer, const std::string& place) const {
    std::string plain;
    for (std::size_t i = 0; i < pointer.size(); ++i) {
        if (pointer[i] == '%' && i + 2 < pointer.size()) {
            plain += static_cast<char>(std::strtoul(pointer.substr(i + 1, 2).c_str(), nullptr, 16));
            i += 2;
        } else {
            plain += pointer[i];
        }
    }
    try {
        return root_.at(Json::json_pointer(plain));
    } catch (const nlohmann::json::exception&) {
        refuse(place + "/$ref", "a place in the schema", "#" + pointer);
    }
}

void References::count_copied(const Json& schema, const std::string& place) {
    n_copied_ += n_values(schema);
    if (n_copied_ > kMostCopied)
        refuse(place, "a smaller schema",
               "one whose references and conditions lead to more than " + std::to_string(kMostCopied) + " values");
}

Json References::expanded(Json given, const std::string& place) {
    for (int i = 0; given.is_object() && given.contains("$ref"); ++i) {
        if (i == 32) refuse(place + "/$ref", "a schema at its end", "ever more references");
        const Json& there = target(pointer_of(given["$ref"], place), place);
        count_copied(there, place);
        given.erase("$ref");
        given = has_meaning(given) ? merge_schemas(as_inner(there, place), given, place) : there;
    }
    return given;
}

}  // namespace fovea::grammar
