// Identifiers and anchors (JSON Schema 2020-12, section 8.2; RFC 3986, section 5) as JSON pointers.
#include <map>

#include "host/grammar/json_references.h"

namespace fovea::grammar {
namespace {

constexpr const char* kSchemaIn[] = {"items",
                                     "additionalItems",
                                     "additionalProperties",
                                     "not",
                                     "if",
                                     "then",
                                     "else",
                                     "contains",
                                     "propertyNames",
                                     "prefixItems",
                                     "unevaluatedProperties",
                                     "unevaluatedItems",
                                     "allOf",
                                     "anyOf",
                                     "oneOf"};
constexpr const char* kNamedIn[] = {"properties",  "patternProperties", "$defs",
                                    "definitions", "dependentSchemas",  "dependencies"};

[[nodiscard]] bool has_scheme(const std::string& text) {
    const std::size_t colon = text.find(':');
    return colon != text.npos && colon > 0 && text.find_first_of("/?#") > colon;
}

/// What a reference means in a schema whose identifier is `base`.
[[nodiscard]] std::string resolved(const std::string& base, const std::string& reference) {
    if (has_scheme(reference)) return reference;
    if (reference.empty() || reference[0] == '#') return base + reference;
    const std::size_t authority = base.find("://");
    const std::size_t path = authority == base.npos ? 0 : std::min(base.find('/', authority + 3), base.size());
    if (reference[0] == '/') return base.substr(0, path) + reference;
    const std::size_t slash = base.rfind('/');
    return slash == base.npos || slash < path ? base.substr(0, path) + (path ? "/" : "") + reference
                                              : base.substr(0, slash + 1) + reference;
}

class Identifiers {
public:
    explicit Identifiers(Json& root) {
        const Json dialect = root.is_object() ? root.value("$schema", Json()) : Json();
        if (dialect.is_string() && dialect.get<std::string>().find("draft-04") != std::string::npos) id_ = "id";
        resources_[""] = "";
        walk(root, "", "", 0,
             [&](Json& schema, std::string& base, const std::string& at) { collect(schema, base, at); });
        walk(root, "", "", 0, [&](Json& schema, std::string& base, const std::string&) {
            rewrite(schema, base);
            drop_words(schema);
        });
    }

private:
    /// Visits each schema with the identifier that holds around it, and its JSON pointer.
    template<class Visit>
    void walk(Json& schema, std::string base, const std::string& at, int depth, const Visit& visit) {
        constexpr int kMostDepth = 400;
        if (depth > kMostDepth) return;
        if (schema.is_array())
            for (std::size_t i = 0; i < schema.size(); ++i)
                walk(schema[i], base, within(at, std::to_string(i)), depth + 1, visit);
        if (!schema.is_object()) return;
        visit(schema, base, at);
        for (const char* key : kSchemaIn)
            if (schema.contains(key)) walk(schema[key], base, within(at, key), depth + 1, visit);
        for (const char* key : kNamedIn) {
            if (!schema.contains(key) || !schema[key].is_object()) continue;
            for (auto& [name, one] : schema[key].items())
                walk(one, base, within(within(at, key), name), depth + 1, visit);
        }
    }

    [[nodiscard]] static std::string text_of(const Json& schema, const char* key) {
        const auto found = schema.find(key);
        return found == schema.end() || !found->is_string() ? std::string() : found->get<std::string>();
    }

    /// The identifier of what is within a schema.
    void enter(const Json& schema, std::string& base) const {
        const std::string id = text_of(schema, id_);
        if (id.empty() || id[0] == '#') return;
        base = resolved(base, id);
        base.resize(std::min(base.find('#'), base.size()));
    }

    void collect(const Json& schema, std::string& base, const std::string& at) {
        enter(schema, base);
        const std::string id = text_of(schema, id_);
        if (!id.empty()) (id[0] == '#' ? anchors_[base + id] : resources_[base]) = at;
        for (const char* key : {"$anchor", "$dynamicAnchor"})
            if (const std::string name = text_of(schema, key); !name.empty()) anchors_[base + "#" + name] = at;
        if (const std::string name = text_of(schema, "$dynamicAnchor"); !name.empty()) ++n_dynamic_[name];
    }

    void rewrite(Json& schema, std::string& base) const {
        enter(schema, base);
        for (const char* key : {"$ref", "$dynamicRef", "$recursiveRef"}) {
            const std::string given = text_of(schema, key);
            if (given.empty() || (std::string_view(key) != "$ref" && schema.contains("$ref"))) continue;
            // A dynamic one leads where a plain one does if there is but one place for it to lead to.
            const auto dynamic = n_dynamic_.find(given.substr(std::min(given.find('#') + 1, given.size())));
            if (key[1] == 'd' && dynamic != n_dynamic_.end() && dynamic->second > 1) continue;
            if (key[1] == 'r' && key[3] == 'c' && resources_.size() > 2) continue;
            const std::string plain = plain_of(resolved(base, given));
            if (plain.empty()) continue;
            if (std::string_view(key) != "$ref") schema.erase(key);
            schema["$ref"] = plain;
        }
    }

    /// Drops what only readers of a schema see, for schemas are copied where they hold together. What may hold a schema that a
    /// reference leads to stays.
    static void drop_words(Json& schema) {
        const auto is_word = [](const std::string& key, const Json& value) {
            return is_annotation(key) && !value.is_structured() && !value.is_boolean();
        };
        auto& members = schema.get_ref<Json::object_t&>();
        if (std::none_of(members.begin(), members.end(), [&](auto& one) { return is_word(one.first, one.second); }))
            return;
        Json::object_t kept;
        for (auto& [key, value] : members)
            if (!is_word(key, value)) kept.push_back({key, std::move(value)});
        members = std::move(kept);
    }

    /// A reference within the whole schema; empty if it leads out of it.
    [[nodiscard]] std::string plain_of(const std::string& uri) const {
        const std::size_t hash = std::min(uri.find('#'), uri.size());
        const std::string fragment = uri.substr(std::min(hash + 1, uri.size()));
        const bool is_pointer = fragment.empty() || fragment[0] == '/';
        const auto& known = is_pointer ? resources_ : anchors_;
        const auto found = known.find(is_pointer ? uri.substr(0, hash) : uri);
        if (found == known.end()) return {};
        std::string out = "#";
        for (const char c : found->second) out += c == '%' ? "%25" : std::string(1, c);
        return is_pointer ? out + fragment : out;
    }

    const char* id_ = "$id";
    std::map<std::string, std::string> resources_, anchors_;  // where they are
    std::map<std::string, int> n_dynamic_;
};

}  // namespace

Json with_plain_references(Json root) {
    const Identifiers identifiers(root);
    return root;
}

}  // namespace fovea::grammar
