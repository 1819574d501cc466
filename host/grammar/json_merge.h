// Schemas that hold at once, as one.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "host/base/json.h"
#include "host/grammar/grammar.h"

namespace fovea::grammar {

/// Why a schema is refused, and a place: that of the keyword, or one that it has in schemas that were made of several.
struct Refusal : GrammarError {
    Refusal(std::string where, std::string why)
        : GrammarError(where + why), place(std::move(where)), words(std::move(why)) {}
    std::string place, words;
};
/// Throws Refusal: "PLACE: expected WANTED, got GOT".
[[noreturn]] void refuse(const std::string& place, const std::string& wanted, const std::string& got);
[[noreturn]] void refuse_value(const std::string& place, const std::string& wanted, const Json& got);
/// Refuses the keywords that a schema has of these, for what it has beside them.
void refuse_any(const Json& schema, std::initializer_list<std::string> keywords, const std::string& place,
                const std::string& beside);

/// What `read` gives, which refuses by the place where the text that it reads stands.
template<class Read>
[[nodiscard]] auto at_place(const std::string& place, Read&& read) {
    try {
        return read();
    } catch (const Refusal&) {
        throw;
    } catch (const GrammarError& error) {
        const std::string why = error.what();
        throw Refusal(place, why.starts_with(',') ? why : ": " + why);
    }
}
/// The place of what a schema has under this name; its parts are those of a JSON pointer.
[[nodiscard]] std::string within(const std::string& place, std::string name);

[[nodiscard]] bool is_true(const Json& schema, const char* keyword);
/// What a schema has under a keyword, or `otherwise`, which must outlive it.
[[nodiscard]] const Json& at_or(const Json& schema, const char* keyword, const Json& otherwise);
/// A list as it is, and another value as the one of a list.
[[nodiscard]] Json list_of(const Json& value);
[[nodiscard]] bool is_among(const auto& list, const auto& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
}
/// The schema of the property of this name, or null.
[[nodiscard]] const Json* property_of(const Json& schema, const std::string& name);
/// The rule for properties that a schema without parts does not name.
[[nodiscard]] Json others_of(const Json& schema);
/// A schema that lacks these keywords.
[[nodiscard]] Json without(const Json& schema, std::initializer_list<std::string> keywords);

/// A schema that a text fits if it fits both. Throws GrammarError, naming the keyword, if no single schema can say
/// that.
[[nodiscard]] Json merge_schemas(Json a, const Json& b, const std::string& place);

/// Moves the rules for what is unevaluated from a schema, whose parts are to be merged with it, to one of their own.
[[nodiscard]] Json take_unevaluated(Json& schema);
/// What came of that schema, with the rules: each of them unless a part has one, by which all is evaluated.
[[nodiscard]] Json covered(Json schema, const Json& rules);

/// Whether a schema has parts that it holds together with, such as allOf, or alternatives.
[[nodiscard]] bool has_parts(const Json& schema);
/// Whether a schema has rules for what its parts leave unevaluated, and parts.
[[nodiscard]] bool covers_parts(const Json& schema);

/// Whether a schema has rules for what is unevaluated.
[[nodiscard]] bool says_unevaluated(const Json& schema);

/// A schema that has no parts, such as allOf or $ref: what it leaves unevaluated is what is additional to its own. Throws
/// GrammarError if contains would have to tell which items are evaluated.
[[nodiscard]] Json closed(Json schema, const std::string& place);

/// A schema that says what all of these do. The first has the others as parts, and its rules for what is unevaluated
/// cover all.
[[nodiscard]] Json held_together(Json all);

/// The schemas of an array's items: one for each of the first, then one for the rest. They lie in the array's.
struct Items {
    const Json &first, &rest;
};
[[nodiscard]] Items items_of(const Json& schema, const std::string& place);

/// The types that a schema names or, if it names none, the types of its keywords; integer counts as number.
[[nodiscard]] std::vector<std::string> types_of(const Json& schema);

/// Keywords that say nothing about which texts fit, unknown ones among them.
[[nodiscard]] bool is_annotation(const std::string& keyword);
/// Whether a schema has a keyword of another kind.
[[nodiscard]] bool has_meaning(const Json& schema);
/// A length or count of a keyword. Throws if it is none.
[[nodiscard]] std::uint32_t read_size(const Json& schema, const char* keyword, std::uint32_t otherwise,
                                      const std::string& place);

/// The least and the most of a length or count.
struct SizeBounds {
    std::uint32_t min = 0, max = kNoLimit;
};
/// The bounds of two keywords. Those at the most are kept to kMostRepeats; throws if a least one is above it.
[[nodiscard]] SizeBounds size_bounds(const Json& schema, const char* least, const char* most, const std::string& place);

/// The values of enum or const, or nothing.
[[nodiscard]] const Json* constants_of(const Json& schema, Json& one);

}  // namespace fovea::grammar
