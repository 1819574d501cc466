#include "serve/api/query.h"

#include <algorithm>
#include <charconv>

#include "serve/api/request.h"

namespace fovea::serve {
namespace {

Json value_of(std::string text) {
    if (text == "true" || text == "false") return text == "true";
    constexpr std::size_t kMostDigits = 18;  // that fit any whole number
    const bool is_number = !text.empty() && text.size() <= kMostDigits &&
                           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    return is_number ? Json(std::stoull(text)) : Json(std::move(text));
}

}  // namespace

std::string unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned code = 0;
        const char* digits = text.data() + i + 1;
        const bool is_escape =
            text[i] == '%' && text.size() - i > 2 && std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2;
        out += is_escape ? static_cast<char>(code) : text[i];
        if (is_escape) i += 2;
    }
    return out;
}

Json read_query(std::string_view query) {
    constexpr std::size_t kMostFields = 64;
    Json fields = Json::object();
    while (!query.empty()) {
        const std::string_view field = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(field.size() + 1, query.size()));
        const std::size_t n_name = std::min(field.find('='), field.size());
        if (!n_name) continue;
        fields[unescaped(field.substr(0, n_name))] =
            value_of(unescaped(field.substr(std::min(n_name + 1, field.size()))));
        if (fields.size() > kMostFields) refuse("query", "at most " + std::to_string(kMostFields) + " fields", "more");
    }
    return fields;
}

}  // namespace fovea::serve
