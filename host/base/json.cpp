#include "host/base/json.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "host/base/json_builder.h"

FOVEA_JSON_MEMBERS(, Json)
FOVEA_JSON_MEMBERS(, SortedJson)

namespace fovea {
namespace {

/// A parser's complaint as a line of printable characters, without the library's name and number of it.
std::string words_of(const char* what) {
    std::string words = what;  // "[json.exception.parse_error.101] parse error at line 1, ...: ..."
    words = words.substr(std::min(words.find("] ") + 2, words.size()));
    for (char& c : words)
        if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
    return "expected JSON, got a " + words.substr(0, 200);
}

/// Builds a value from what the parser meets. The library's own builder looks for each name among the members before it, and with
/// bounds of a caller's for each object among its siblings.
class JsonBuilder final : public JsonValues<JsonBuilder> {
public:
    JsonBuilder(const JsonBounds& bounds, JsonFault& fault) : JsonValues(fault), bounds_(bounds) {}

    Json value;

    bool add(Json given) {
        (void)place(std::move(given));
        return true;
    }
    bool key(string_t& name) override {
        auto& members = open_.back()->get_ref<Json::object_t&>();
        if (members.size() == bounds_.members) return refuse(bounds_.members, " keys in an object, got more");
        // As a vector's: the map's own call looks for the name.
        static_cast<Json::object_t::Container&>(members).emplace_back(std::move(name), nullptr);
        return true;
    }
    bool start_object(std::size_t) override { return begin(Json::value_t::object); }
    bool start_array(std::size_t) override { return begin(Json::value_t::array); }
    bool end_object() override {
        join_twins(open_.back()->get_ref<Json::object_t&>());
        return end_array();
    }
    bool end_array() override {
        open_.pop_back();
        return true;
    }

private:
    bool refuse(std::size_t most, const char* of) {
        fault_ = {1, "expected at most " + std::to_string(most) + of};
        return false;
    }
    Json& place(Json given) {
        if (open_.empty()) return value = std::move(given);
        if (open_.back()->is_array()) return open_.back()->get_ref<Json::array_t&>().emplace_back(std::move(given));
        return open_.back()->get_ref<Json::object_t&>().back().second = std::move(given);
    }
    bool begin(Json::value_t type) {
        if (open_.size() == bounds_.depth) return refuse(bounds_.depth, " arrays and objects in each other, got more");
        open_.push_back(&place(type));
        return true;
    }
    /// The first of members of one name keeps its place and takes the last one's value.
    void join_twins(Json::object_t& members) {
        order_.resize(members.size());
        std::iota(order_.begin(), order_.end(), members.begin());
        std::stable_sort(order_.begin(), order_.end(), [](auto a, auto b) { return a->first < b->first; });
        bool twins = false;
        for (std::size_t i = order_.size(); i-- > 1;) {
            if (order_[i - 1]->first != order_[i]->first) continue;
            order_[i - 1]->second = std::move(order_[i]->second);
            order_[i]->second = Json::value_t::discarded;
            twins = true;
        }
        if (!twins) return;
        Json::object_t kept;
        for (auto& [name, given] : members)
            if (!given.is_discarded())
                static_cast<Json::object_t::Container&>(kept).emplace_back(name, std::move(given));
        members = std::move(kept);
    }

    const JsonBounds& bounds_;
    std::vector<Json*> open_;  // from the outermost; only the last one grows, so their places hold
    std::vector<Json::object_t::iterator> order_;
};

}  // namespace

JsonFault fault_of(std::size_t position, const nlohmann::detail::exception& error) {
    constexpr int kOutOfRange = 406;  // a number that no double can hold
    return {error.id == kOutOfRange ? 0 : position, words_of(error.what())};
}

Json read_json(std::string_view text, JsonFault* fault, const JsonBounds& bounds) {
    JsonFault ignored;
    JsonBuilder builder(bounds, fault ? *fault : ignored);
    return Json::sax_parse(text, &builder) ? std::move(builder.value) : Json(Json::value_t::discarded);
}

void follow_json(std::string_view text, nlohmann::json_sax<Json>& reader) { Json::sax_parse(text, &reader); }

SortedJson read_sorted_json(std::string_view text, JsonFault* fault, const SortedJson::parser_callback_t& keep) {
    if (!fault) return SortedJson::parse(text, keep, false);
    try {
        return SortedJson::parse(text, keep);
    } catch (const nlohmann::json::parse_error& error) {
        *fault = {error.byte, words_of(error.what())};
    } catch (const nlohmann::json::out_of_range& error) {  // of parsing, a number's alone
        *fault = {0, words_of(error.what())};
    }
    return SortedJson::value_t::discarded;
}

std::string json_text(const Json& value, bool ascii) {
    return value.dump(-1, ' ', ascii, Json::error_handler_t::replace);
}
std::string json_text(const SortedJson& value, bool ascii) {
    return value.dump(-1, ' ', ascii, SortedJson::error_handler_t::replace);
}

std::size_t json_depth(std::string_view text) {
    std::size_t depth = 0, most = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string && c == '\\')
            ++i;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '['))
            most = std::max(most, ++depth);
        else if (!in_string && (c == '}' || c == ']') && depth)
            --depth;
    }
    return most;
}

}  // namespace fovea
