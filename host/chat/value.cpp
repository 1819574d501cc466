#include "host/chat/value.h"

#include <algorithm>
#include <cmath>

#include "host/base/ascii.h"
#include "host/chat/text.h"

namespace fovea::chat {
namespace {

std::uint32_t deeper(std::uint32_t depth) {
    if (depth >= kMostNesting)
        fail("lists and objects: expected at most " + std::to_string(kMostNesting) + " within each other, got more");
    return depth + 1;
}

[[noreturn]] void fail_order(const Value& a, const Value& b) {
    fail("<: expected two numbers, texts or lists, got " + kind_of(a) + " and " + kind_of(b));
}

/// Letters, digits, '_' and '-': what names a role in a template's own tokens, as <|user|>.
bool is_word(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return is_letter_or_digit(c) || c == '_' || c == '-'; });
}

bool equal_lists(Budget& budget, const List& a, const List& b) {
    if (a.items.size() != b.items.size() || a.is_tuple != b.is_tuple) return false;
    for (std::size_t i = 0; i < a.items.size(); ++i)
        if (!equal(budget, a.items[i], b.items[i])) return false;
    return true;
}

bool equal_dicts(Budget& budget, const Dict& a, const Dict& b) {
    if (a.entries.size() != b.entries.size()) return false;
    for (const auto& [key, value] : a.entries) {
        const Value* other = find(budget, b, key);
        if (!other || !equal(budget, value, *other)) return false;
    }
    return true;
}

/// A number's order beside another, exact if both are integers; NaN is before nothing.
bool less_numbers(const Value& a, const Value& b) {
    if (is_integer(a) && is_integer(b)) return integer_of(a) < integer_of(b);
    return real_of(a) < real_of(b);
}

}  // namespace

std::uint32_t depth_of(const Value& value) {
    if (const auto* list = std::get_if<ListPointer>(&value)) return (*list)->depth;
    if (const auto* dict = std::get_if<DictPointer>(&value)) return (*dict)->depth;
    if (const auto* callable = std::get_if<CallablePointer>(&value)) return (*callable)->depth;
    return 0;
}

void fail(const std::string& line) { throw ChatTemplateError(line); }

void Budget::refuse_steps() const { fail("expected at most " + std::to_string(limits_.n_steps) + " steps, got more"); }

void Budget::refuse_bytes() const {
    fail("expected at most " + std::to_string(limits_.n_bytes) + " bytes of text and lists, got more");
}

Value make_text(Budget& budget, TaintedText text) {
    budget.bytes(sizeof(TaintedText) + 16 + text.text().size() + text.data().size_bytes());
    return std::make_shared<const TaintedText>(std::move(text));
}

Value make_list(Budget& budget, std::vector<Value> items, bool is_tuple) {
    budget.bytes(sizeof(List) + items.size() * sizeof(Value));
    auto list = std::make_shared<List>();
    std::uint32_t depth = 0;
    for (const Value& item : items) depth = std::max(depth, depth_of(item));
    list->depth = deeper(depth);
    list->items = std::move(items);
    list->is_tuple = is_tuple;
    return ListPointer(std::move(list));
}

Value make_dict(Budget& budget, std::vector<std::pair<Value, Value>> entries) {
    budget.bytes(sizeof(Dict) + entries.size() * 2 * sizeof(Value));
    auto dict = std::make_shared<Dict>();
    std::uint32_t depth = 0;
    for (const auto& entry : entries) depth = std::max({depth, depth_of(entry.first), depth_of(entry.second)});
    dict->depth = deeper(depth);
    dict->entries = std::move(entries);
    return DictPointer(std::move(dict));
}

Value from_json(Budget& budget, const Json& json, std::uint32_t depth) {
    using Kind = Json::value_t;
    if (depth >= kMostNesting) depth = deeper(depth);  // refuses
    switch (json.type()) {
        case Kind::boolean: return json.get<bool>();
        case Kind::number_integer: return json.get<std::int64_t>();
        case Kind::number_unsigned:
            if (json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
                fail("number: expected one of 64 bits, got " + json_text(json));
            return json.get<std::int64_t>();
        case Kind::number_float: return json.get<double>();
        case Kind::string: {
            const std::string& text = json.get_ref<const std::string&>();
            return make_text(budget, {text, depth > 0 || !is_word(text)});
        }
        case Kind::array: {
            std::vector<Value> items;
            for (const auto& item : json) items.push_back(from_json(budget, item, depth + 1));
            return make_list(budget, std::move(items));
        }
        case Kind::object: {
            std::vector<std::pair<Value, Value>> entries;
            for (const auto& [key, item] : json.items()) {
                const bool is_role = depth == 1 && key == "role" && item.is_string();
                entries.emplace_back(make_text(budget, {key, true}), from_json(budget, item, is_role ? 0 : depth + 1));
            }
            return make_dict(budget, std::move(entries));
        }
        default: return None{};
    }
}

std::string kind_of(const Value& value) {
    static constexpr const char* kKinds[] = {"an undefined value", "none",   "a boolean", "an integer",
                                             "a number",           "a text", "a list",    "an object",
                                             "a namespace",        "a loop", "a function"};
    if (const auto* undefined = std::get_if<Undefined>(&value); undefined && undefined->name)
        return *undefined->name + ", which is undefined";
    return kKinds[value.index()];
}

bool truthy(const Value& value) {
    if (const auto* flag = std::get_if<bool>(&value)) return *flag;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer != 0;
    if (const auto* real = std::get_if<double>(&value)) return *real != 0;
    if (const auto* text = std::get_if<Text>(&value)) return !(*text)->text().empty();
    if (const auto* list = std::get_if<ListPointer>(&value)) return !(*list)->items.empty();
    if (const auto* dict = std::get_if<DictPointer>(&value)) return !(*dict)->entries.empty();
    return !is_undefined(value) && !is<None>(value);
}

bool equal(Budget& budget, const Value& a, const Value& b) {
    budget.steps(1);
    if (is_integer(a) && is_integer(b)) return integer_of(a) == integer_of(b);
    if (is_number(a) && is_number(b)) return real_of(a) == real_of(b);
    if (a.index() != b.index()) return false;
    if (is_undefined(a) || is<None>(a)) return true;
    if (is_text(a)) {
        budget.steps(text_of(a).size() / 64);
        return text_of(a) == text_of(b);
    }
    if (const auto* list = std::get_if<ListPointer>(&a)) return equal_lists(budget, **list, *std::get<ListPointer>(b));
    if (const auto* dict = std::get_if<DictPointer>(&a)) return equal_dicts(budget, **dict, *std::get<DictPointer>(b));
    if (const auto* space = std::get_if<Namespace*>(&a)) return *space == std::get<Namespace*>(b);
    if (const auto* loop = std::get_if<Loop*>(&a)) return *loop == std::get<Loop*>(b);
    return std::get<CallablePointer>(a) == std::get<CallablePointer>(b);
}

bool less(Budget& budget, const Value& a, const Value& b) {
    budget.steps(1);
    if (is_number(a) && is_number(b)) return less_numbers(a, b);
    if (is_text(a) && is_text(b)) {
        budget.steps(std::min(text_of(a).size(), text_of(b).size()) / 64);
        return text_of(a) < text_of(b);  // UTF-8 sorts as code points do
    }
    if (!is<ListPointer>(a) || !is<ListPointer>(b)) fail_order(a, b);
    const List &first = *std::get<ListPointer>(a), &second = *std::get<ListPointer>(b);
    const std::size_t n = std::min(first.items.size(), second.items.size());
    for (std::size_t i = 0; i < n; ++i)
        if (!equal(budget, first.items[i], second.items[i])) return less(budget, first.items[i], second.items[i]);
    return first.items.size() < second.items.size();
}

bool contains(Budget& budget, const Value& container, const Value& item) {
    if (is_text(container)) {
        if (!is_text(item)) fail("in: expected a text to look for in a text, got " + kind_of(item));
        budget.search(text_of(container).size(), text_of(item).size());
        return text_of(container).find(text_of(item)) != std::string::npos;
    }
    if (const auto* dict = std::get_if<DictPointer>(&container)) return find(budget, **dict, item) != nullptr;
    if (const auto* list = std::get_if<ListPointer>(&container))
        return std::any_of((*list)->items.begin(), (*list)->items.end(),
                           [&](const Value& one) { return equal(budget, one, item); });
    if (is_undefined(container)) return false;
    fail("in: expected a text, a list or an object to look in, got " + kind_of(container));
}

const Value* find(Budget& budget, const Dict& dict, const Value& key) {
    if (is_text(key)) return find(budget, dict, std::string_view(text_of(key)));
    for (const auto& entry : dict.entries)
        if (equal(budget, entry.first, key)) return &entry.second;
    return nullptr;
}

const Value* find(Budget& budget, const Dict& dict, std::string_view key) {
    budget.steps(1 + dict.entries.size() / 8);
    for (const auto& entry : dict.entries)
        if (is_text(entry.first) && text_of(entry.first) == key) return &entry.second;
    return nullptr;
}

std::int64_t length(Budget& budget, const Value& value) {
    if (is_text(value)) {
        budget.steps(text_of(value).size() / 16);
        return count_characters(text_of(value));
    }
    if (const auto* list = std::get_if<ListPointer>(&value)) return static_cast<std::int64_t>((*list)->items.size());
    if (const auto* dict = std::get_if<DictPointer>(&value)) return static_cast<std::int64_t>((*dict)->entries.size());
    if (is_undefined(value)) return 0;
    fail("length: expected a text, a list or an object, got " + kind_of(value));
}

std::vector<Value> elements(Budget& budget, const Value& value) {
    if (const auto* list = std::get_if<ListPointer>(&value)) {
        budget.steps((*list)->items.size());
        budget.bytes((*list)->items.size() * sizeof(Value));
        return (*list)->items;
    }
    std::vector<Value> all;
    if (const auto* dict = std::get_if<DictPointer>(&value)) {
        budget.steps((*dict)->entries.size());
        budget.bytes((*dict)->entries.size() * sizeof(Value));
        for (const auto& entry : (*dict)->entries) all.push_back(entry.first);
    } else if (is_text(value)) {
        budget.steps(text_of(value).size());
        for (const std::string_view one : characters(text_of(value)))
            all.push_back(make_text(budget, tainted_of(value).part(one)));
    } else if (!is_undefined(value)) {
        fail("loop: expected a list, an object or a text, got " + kind_of(value));
    }
    return all;
}

std::int64_t integer_of(const Value& value) {
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
    fail("expected an integer, got " + kind_of(value));
}

double real_of(const Value& value) {
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (!is_integer(value)) fail("expected a number, got " + kind_of(value));
    return static_cast<double>(integer_of(value));
}

}  // namespace fovea::chat
