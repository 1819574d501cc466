// Fields of a JSON object with their types and bounds: what is wrong is said in one line, by the field's name.
#pragma once
#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>
#include <type_traits>
#include <variant>

#include "serve/api/request.h"

namespace fovea::serve {

/// A view of an object. A field that is absent or null has its default.
class Fields {
public:
    explicit Fields(const Json& object, std::string place = {}) : object_(object), place_(std::move(place)) {
        if (!object.is_object()) refuse("", "an object", object);
    }

    [[nodiscard]] const Json& object() const { return object_; }
    [[nodiscard]] const Json* find(const char* name) const {
        const auto found = object_.find(name);
        return found == object_.end() || found->is_null() ? nullptr : &*found;
    }
    [[nodiscard]] const Json& need(const char* name, const char* what) const {
        if (const Json* value = find(name)) return *value;
        serve::refuse(path(name), what, "none");
    }
    [[nodiscard]] std::string text(const char* name, const std::string& otherwise = {}) const {
        const Json* value = find(name);
        if (!value) return otherwise;
        if (!value->is_string()) refuse(name, "a string", *value);
        return value->get<std::string>();
    }
    /// One of these words; the first where it is absent.
    [[nodiscard]] std::string one_of(const char* name, std::initializer_list<const char*> words) const {
        const std::string given = text(name, *words.begin());
        std::string all;
        for (const char* const* word = words.begin(); word != words.end(); ++word) {
            if (given == *word) return given;
            all += (word == words.begin() ? "" : word + 1 == words.end() ? " or " : ", ") + std::string(*word);
        }
        serve::refuse(path(name), all, given.substr(0, 40));
    }
    [[nodiscard]] bool flag(const char* name, bool otherwise) const {
        const Json* value = find(name);
        if (!value) return otherwise;
        if (!value->is_boolean()) refuse(name, "true or false", *value);
        return value->get<bool>();
    }
    [[nodiscard]] double real(const char* name, double otherwise, double least, double most) const {
        const Json* value = find(name);
        if (!value) return otherwise;
        if (!value->is_number()) refuse(name, "a number", *value);
        const double number = value->get<double>();
        if (!(number >= least && number <= most)) refuse_range(name, least, most, *value);
        return number;
    }
    [[nodiscard]] std::int64_t whole(const char* name, std::int64_t otherwise, std::int64_t least,
                                     std::int64_t most) const {
        const Json* value = find(name);
        if (!value) return otherwise;
        const double number = value->is_number() ? value->get<double>() : 0.5;
        if (!(std::floor(number) == number)) refuse(name, "a whole number", *value);
        // Beyond 2^53 only integers are exact; they are compared as such.
        const bool beyond = value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t(INT64_MAX);
        if (beyond || !(number >= -9.3e18 && number <= 9.3e18)) refuse_range(name, double(least), double(most), *value);
        const std::int64_t exact = value->is_number_float() ? in_range(number) : value->get<std::int64_t>();
        if (exact < least || exact > most) refuse_range(name, double(least), double(most), *value);
        return exact;
    }
    /// A setting that would change the answer and that there is not: only its neutral value passes.
    void only(const char* name, const Json& neutral) const {
        const Json* value = find(name);
        if (value && *value != neutral)
            serve::refuse(path(name), "none, for it is not supported", shown(*value), "unsupported_parameter");
    }
    [[noreturn]] void refuse(const char* name, const std::string& expected, const Json& got) const {
        serve::refuse(path(name), expected, shown(got));
    }
    [[nodiscard]] std::string path(const char* name) const {
        return place_.empty() ? *name ? name : "body" : *name ? place_ + "." + name : place_;
    }

private:
    [[nodiscard]] static std::int64_t in_range(double number) {
        return number >= 9.2e18 ? INT64_MAX : number <= -9.2e18 ? INT64_MIN : static_cast<std::int64_t>(number);
    }
    [[noreturn]] void refuse_range(const char* name, double least, double most, const Json& got) const {
        const auto bound = [](double number) {
            return number == std::floor(number) && std::fabs(number) < 1e15
                       ? std::to_string(static_cast<std::int64_t>(number))
                       : Json(number).dump();
        };
        refuse(name, bound(least) + " to " + bound(most), got);
    }
    /// A value in a message: short, and only its kind where it is long.
    [[nodiscard]] static std::string shown(const Json& value) {
        if (value.is_object()) return "an object";
        if (value.is_array()) return "an array of " + std::to_string(value.size());
        std::string text = json_text(value, true);
        return text.size() > 60 ? text.substr(0, 60) + "..." : text;
    }

    const Json& object_;
    std::string place_;
};

/// A field that a request may have: its name, its kind with a range, and its place in the request. Where the field is absent
/// the place keeps what it has.
template<class R>
struct FieldRow {
    /// Reads a value of a kind of its own.
    using Read = void (*)(const Fields& fields, const char* name, const Json& value, R& request);
    /// Any other value is not supported.
    struct Only {
        explicit Only(Json only_value) : value(std::move(only_value)) {}
        Json value;
    };
    /// No value of it changes an answer.
    struct Ignored {};

    const char* name;
    unsigned of;     ///< the objects that have it, as bits
    const char* as;  ///< what a document says of it, where it is obeyed
    std::variant<std::string& (*)(R&), bool& (*)(R&), std::uint32_t& (*)(R&), float& (*)(R&), Read, Only, Ignored> to;
    double least = 0, most = 0;                                   ///< of a number
    double otherwise = std::numeric_limits<double>::quiet_NaN();  ///< a float that is absent; NaN: what its place has
};

/// Reads the fields of one kind of object.
template<class R>
void read_rows(const Fields& fields, std::span<const FieldRow<R>> rows, unsigned of, R& request) {
    const auto read = [&](const FieldRow<R>& row, const auto& to, const Json* value) {
        using To = std::decay_t<decltype(to)>;
        if constexpr (std::is_same_v<To, typename FieldRow<R>::Read>)
            to(fields, row.name, *value, request);
        else if constexpr (std::is_same_v<To, typename FieldRow<R>::Only>)
            fields.only(row.name, to.value);
        else if constexpr (std::is_same_v<To, typename FieldRow<R>::Ignored>)
            return;
        else if constexpr (std::is_same_v<To, std::string& (*)(R&)>)
            to(request) = fields.text(row.name);
        else if constexpr (std::is_same_v<To, bool& (*)(R&)>)
            to(request) = fields.flag(row.name, false);
        else if constexpr (std::is_same_v<To, float& (*)(R&)>)
            to(request) = static_cast<float>(fields.real(row.name, row.otherwise, row.least, row.most));
        else
            to(request) = static_cast<std::uint32_t>(
                fields.whole(row.name, 0, static_cast<std::int64_t>(row.least), static_cast<std::int64_t>(row.most)));
    };
    for (const FieldRow<R>& row : rows) {
        const Json* value = row.of & of ? fields.find(row.name) : nullptr;
        if (value || (row.of & of && !std::isnan(row.otherwise)))
            std::visit([&](const auto& to) { read(row, to, value); }, row.to);
    }
}

inline constexpr std::size_t kMostMessages = 4096;
inline constexpr std::uint32_t kMostNew = 1u << 30;  // tokens of an answer

/// "name[i]".
[[nodiscard]] inline std::string at(const std::string& name, std::size_t i) {
    return name + '[' + std::to_string(i) + ']';
}
/// Message contents are strings, or arrays of parts of which we take text.
[[nodiscard]] Json read_messages(const Json& messages);
[[nodiscard]] std::string read_content(const Json& content, const std::string& place);
/// A call's arguments, JSON in a string, as templates want them: an object. What models write need not be JSON: then it
/// stays a text, and none at all is an object without members.
[[nodiscard]] Json read_arguments(const std::string& text);
[[nodiscard]] std::vector<Token> read_token_ids(const Json& list, const char* name);
/// A text, an array of texts, an array of token ids, or an array of such arrays.
[[nodiscard]] std::vector<Prompt> read_prompts(const Json& value, const char* name, std::size_t most);
/// What embeddings have in both APIs: prompt_name, dimensions, truncate.
void read_vector_options(const Fields& fields, VectorRequest& request, bool cuts);

/// The body of a request to each endpoint that computes. Any JSON gives a request within the bounds of request.h, or
/// RequestError.
[[nodiscard]] Request read_chat(const Fields& fields);
[[nodiscard]] Request read_completion(const Fields& fields);
[[nodiscard]] Request read_response(const Fields& fields);
[[nodiscard]] Request read_message_request(const Fields& fields);
[[nodiscard]] Request read_ollama_chat(const Fields& fields);
[[nodiscard]] Request read_ollama_generate(const Fields& fields);
[[nodiscard]] VectorRequest read_embeddings(const Fields& fields);
[[nodiscard]] VectorRequest read_ollama_embed(const Fields& fields);

}  // namespace fovea::serve
