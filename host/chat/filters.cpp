// The filters, which stand after "|".
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "host/base/ascii.h"
#include "host/base/decimal.h"
#include "host/chat/interpreter.h"
#include "host/chat/text.h"

namespace fovea::chat {
namespace {

// ---- texts -----------------------------------------------------------------------------------------------------------

template<std::string (*change)(std::string_view)>
Value changed(const Call& c) {
    const TaintedText text = c.words();
    return c.text(text.respelled(change(text.text())));
}

Value as_text(const Call& c) { return is_text(c.self) ? c.self : c.text(c.words()); }

/// A text's own method, applied to any value as text, and to the first arguments as texts.
Value by_method(const Call& c, const char* method, std::size_t n_texts) {
    const Value text = c.text(c.words());
    Arguments given = c.all;
    for (std::size_t i = 0; i < std::min(n_texts, given.positional.size()); ++i)
        given.positional[i] = c.text(to_text(c.budget, given.positional[i]));
    return c.run.call(c.run.attribute_of(text, method), given);
}

/// Words begin after white space, a hyphen or an opening bracket, as Jinja's filter has it and str.title has not.
std::string title_words(std::string_view text) {
    std::string out = lower(text);
    bool begins = true;
    for (char& letter : out) {
        if (begins) letter = to_upper(letter);
        begins = std::string_view("-({[<").find(letter) != text.npos || is_space(static_cast<unsigned char>(letter));
    }
    return out;
}

std::string escape(std::string_view text) {
    std::string out;
    for (const char letter : text) switch (letter) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '\'': out += "&#39;"; break;
            case '"': out += "&#34;"; break;
            default: out += letter;
        }
    return out;
}

Value indent(const Call& c) {
    TaintedText text = c.words();
    text.add("\n");  // a last break begins a line, as Jinja has it
    TaintedText by;
    if (c.bound[0] && is_text(*c.bound[0])) {
        by = tainted_of(*c.bound[0]);
    } else {
        const auto width = static_cast<std::uint64_t>(std::max<std::int64_t>(c.integer_or(0, 4), 0));
        c.budget.bytes(width);
        by = std::string(static_cast<std::size_t>(width), ' ');
    }
    const bool first = c.flag(1), blank = c.flag(2);
    TaintedText out;
    bool begun = false;
    for (const std::string_view line : split_lines(text.text(), false)) {
        c.budget.bytes(by.text().size() + line.size() + sizeof line);
        if (begun) out.add("\n");
        if (std::exchange(begun, true) ? blank || !line.empty() : first) out.add(by);
        out.add(text.part(line));
    }
    return c.text(std::move(out));
}

Value center(const Call& c) {
    const TaintedText text = c.words();
    const std::int64_t width = c.integer_or(0, 80),
                       n = std::max<std::int64_t>(0, width - count_characters(text.text()));
    c.budget.bytes(static_cast<std::uint64_t>(n));
    const std::int64_t left = n / 2 + (n & width & 1);
    TaintedText out(std::string(static_cast<std::size_t>(left), ' '));
    out.add(text);
    out.add(std::string(static_cast<std::size_t>(n - left), ' '));
    return c.text(std::move(out));
}

Value count_words(const Call& c) {
    const std::string text = c.words().text();
    c.budget.bytes(text.size());
    std::int64_t n = 0;
    bool within = false;
    for (const char letter : text)
        n += !std::exchange(within, is_letter_or_digit(letter) || letter == '_' || (letter & 0x80)) && within;
    return n;
}

Value tojson(const Call& c) {
    JsonStyle style;
    style.ensure_ascii = c.flag(0);
    if (const Value* spaces = c.given(1)) {
        style.indent = static_cast<int>(std::clamp<std::int64_t>(integer_of(*spaces), 0, 64));
        style.item_separator = ",";
    }
    if (const Value* separators = c.given(2)) {
        const std::vector<Value> both = elements(c.budget, *separators);
        if (both.size() != 2 || !is_text(both[0]) || !is_text(both[1]))
            fail("tojson: expected two texts as separators, got others");
        style.item_separator = text_of(both[0]);
        style.key_separator = text_of(both[1]);
    }
    style.sort_keys = c.flag(3);
    return c.text(to_json(c.budget, c.self, style));
}

// ---- numbers ---------------------------------------------------------------------------------------------------------

/// The number in a text, as Python's float reads it, white space around it allowed; or false.
bool read_real(const std::string& text, double& number) {
    std::string digits(strip(text, Side::both));
    std::erase(digits, '_');
    return read_decimal(digits, number);
}

Value to_integer(const Call& c) {
    const Value fallback = c.bound[0] ? *c.bound[0] : Value(std::int64_t{0});
    if (is_integer(c.self)) return integer_of(c.self);
    double real = 0;
    if (is<double>(c.self)) {
        real = real_of(c.self);
    } else if (!is_text(c.self)) {
        return fallback;
    } else {
        const std::int64_t base = c.integer_or(1, 10);
        if (base != 0 && (base < 2 || base > 36)) return fallback;
        std::string digits(strip(text_of(c.self), Side::both));
        std::erase(digits, '_');
        char* end = nullptr;
        errno = 0;
        const long long integer = std::strtoll(digits.c_str(), &end, static_cast<int>(base));
        if (!digits.empty() && *end == '\0' && errno == 0) return static_cast<std::int64_t>(integer);
        if (!read_real(digits, real)) return fallback;
    }
    if (!(std::fabs(real) < 9e18)) return fallback;
    return static_cast<std::int64_t>(real);
}

Value to_real(const Call& c) {
    double real = 0;
    if (is_number(c.self)) return real_of(c.self);
    if (is_text(c.self) && read_real(text_of(c.self), real)) return real;
    return c.bound[0] ? *c.bound[0] : Value(0.0);
}

Value absolute(const Call& c) {
    if (is<double>(c.self)) return std::fabs(real_of(c.self));
    return integer_of(c.self) < 0 ? compute(c.budget, "-", std::int64_t{0}, c.self) : Value(integer_of(c.self));
}

Value round_off(const Call& c) {
    const std::int64_t precision = c.integer_or(0, 0);
    const std::string method = c.text_or(1, "common").text();
    if (precision < 0 || precision > 30)
        fail("round: expected a precision from 0 to 30, got " + std::to_string(precision));
    if (method != "common" && method != "ceil" && method != "floor")
        fail("round: expected common, ceil or floor, got " + method);
    if (method == "common" && is_integer(c.self)) return integer_of(c.self);
    const double number = real_of(c.self), scale = std::pow(10.0, static_cast<double>(precision));
    if (method == "ceil") return std::ceil(number * scale) / scale;
    if (method == "floor") return std::floor(number * scale) / scale;
    char digits[400];  // to the nearest decimal, ties to even
    std::snprintf(digits, sizeof digits, "%.*f", static_cast<int>(precision), number);
    return std::strtod(digits, nullptr);
}

// ---- lists -----------------------------------------------------------------------------------------------------------

/// The value that a path leads to from an item; without a path the item itself.
Value at_path(const Call& c, const Value& item, const Value* path) { return path ? path_of(c.run, item, *path) : item; }

Value first_of(const std::vector<Value>& items) { return items.empty() ? Value(Undefined{}) : items.front(); }
Value last_of(const std::vector<Value>& items) { return items.empty() ? Value(Undefined{}) : items.back(); }

Value reversed(const Call& c) {
    std::vector<Value> items = c.items();
    std::reverse(items.begin(), items.end());
    return c.list(std::move(items));
}

Value or_default(const Call& c) {
    if (!is_undefined(c.self) && (!c.flag(1) || truthy(c.self))) return c.self;
    return c.bound[0] ? *c.bound[0] : Value(std::make_shared<const TaintedText>());
}

Value join(const Call& c) {
    const TaintedText by = c.text_or(0, "");
    TaintedText text;
    bool begun = false;
    for (const Value& item : c.items()) {
        if (std::exchange(begun, true)) text.add(by);
        c.budget.bytes(by.text().size());
        text.add(to_text(c.budget, at_path(c, item, c.bound[1])));
    }
    return c.text(std::move(text));
}

/// The key that an item is ordered by: one of its values, or itself; texts regardless of case by default.
Value key_of(const Call& c, const Value& item, const Value* attribute, bool case_sensitive) {
    const Value key = at_path(c, item, attribute);
    return !case_sensitive && is_text(key) ? c.text(lower(text_of(key))) : key;
}

std::vector<Value> sorted(const Call& c, const std::vector<Value>& items, const Value* attribute, bool case_sensitive,
                          bool reverse) {
    std::vector<std::pair<Value, const Value*>> order;
    for (const Value& item : items) order.emplace_back(key_of(c, item, attribute, case_sensitive), &item);
    std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
        return reverse ? less(c.budget, b.first, a.first) : less(c.budget, a.first, b.first);
    });
    std::vector<Value> result;
    for (const auto& one : order) result.push_back(*one.second);
    return result;
}

/// The pairs of an object.
Value pairs_of(const Call& c, const char* who) {
    if (!is<DictPointer>(c.self)) fail(std::string(who) + ": expected an object, got " + kind_of(c.self));
    return c.run.call(c.run.attribute_of(c.self, "items"), {});
}

Value dictsort(const Call& c) {
    const Value pairs = pairs_of(c, "dictsort");
    const std::string by = c.text_or(1, "key").text();
    if (by != "key" && by != "value") fail("dictsort: expected by key or value, got " + by);
    const Value index = std::int64_t{by == "value"};
    return c.list(sorted(c, elements(c.budget, pairs), &index, c.flag(0), c.flag(2)));
}

Value unique(const Call& c) {
    std::vector<Value> kept, keys;
    for (const Value& item : c.items()) {
        Value key = key_of(c, item, c.given(1), c.flag(0));
        const auto same = [&](const Value& one) { return equal(c.budget, one, key); };
        if (std::any_of(keys.begin(), keys.end(), same)) continue;
        keys.push_back(std::move(key));
        kept.push_back(item);
    }
    return c.list(std::move(kept));
}

Value sum(const Call& c) {
    Value total = c.bound[1] ? *c.bound[1] : Value(std::int64_t{0});
    for (const Value& item : c.items()) total = compute(c.budget, "+", total, at_path(c, item, c.given(0)));
    return total;
}

Value batch(const Call& c) {
    const std::int64_t n = integer_of(c.needed(0, "batch"));
    if (n < 1 || n > 100'000) fail("batch: expected 1 to 100000 items, got " + std::to_string(n));
    std::vector<Value> batches, items;
    for (const Value& item : c.items()) {
        if (static_cast<std::int64_t>(items.size()) == n) batches.push_back(c.list(std::exchange(items, {})));
        items.push_back(item);
    }
    while (!items.empty() && c.bound[1] && static_cast<std::int64_t>(items.size()) < n) items.push_back(*c.bound[1]);
    if (!items.empty()) batches.push_back(c.list(std::move(items)));
    return c.list(std::move(batches));
}

/// None for a value that counts as false: a template's tools are none if there are none.
std::vector<Value> items_if_any(const Call& c) { return truthy(c.self) ? c.items() : std::vector<Value>{}; }

Value take_first(Arguments& arguments) {
    Value first = std::move(arguments.positional.front());
    arguments.positional.erase(arguments.positional.begin());
    return first;
}

/// map("filter", ...) and map(attribute=..., default=...).
Value map(const Call& c) {
    const Value *attribute = nullptr, *fallback = nullptr;
    for (const auto& [name, value] : c.all.named) {
        if (name == "attribute") attribute = &value;
        if (name == "default") fallback = &value;
    }
    Arguments rest = c.all;
    if (!attribute && (rest.positional.empty() || !is_text(rest.positional[0])))
        fail("map: expected a filter's name or an attribute, got none");
    const Value filter = attribute ? Value(None{}) : take_first(rest);
    std::vector<Value> made;
    for (const Value& item : items_if_any(c)) {
        Value value = attribute ? path_of(c.run, item, *attribute) : c.run.apply_filter(text_of(filter), item, rest);
        made.push_back(attribute && fallback && is_undefined(value) ? *fallback : std::move(value));
    }
    return c.list(std::move(made));
}

/// Items for which a test holds, or does not: of the item, or of one of its values. Without a test: items that are
/// true.
template<bool keep, bool by_attribute>
Value choose(const Call& c) {
    Arguments rest = c.all;
    if (by_attribute && rest.positional.empty()) fail("selectattr and rejectattr: expected an attribute, got none");
    const Value path = by_attribute ? take_first(rest) : Value(None{});
    const Value test = rest.positional.empty() ? Value(std::make_shared<const TaintedText>()) : take_first(rest);
    if (!is_text(test)) fail("select and reject: expected a test's name, got " + kind_of(test));
    std::vector<Value> kept;
    for (const Value& item : items_if_any(c)) {
        const Value value = by_attribute ? path_of(c.run, item, path) : item;
        const bool holds = text_of(test).empty() ? truthy(value) : c.run.apply_test(text_of(test), value, rest);
        if (holds == keep) kept.push_back(item);
    }
    return c.list(std::move(kept));
}

Value attribute(const Call& c) {
    const std::string& name = c.text_needed(0, "attr");
    if (is<DictPointer>(c.self) && !find_method(c.self, name)) return Undefined{};  // not its items
    return c.run.attribute_of(c.self, name);
}

Value count(const Call& c) { return length(c.budget, c.self); }

constexpr Builtin kFilters[] = {
    {"trim", [](const Call& c) { return by_method(c, "strip", 0); }, {"*"}},
    {"replace", [](const Call& c) { return by_method(c, "replace", 2); }, {"*"}},
    {"upper", changed<upper>},
    {"lower", changed<lower>},
    {"title", changed<title_words>},
    {"capitalize", changed<capitalize>},
    {"string", as_text},
    {"safe", as_text},
    {"escape", changed<escape>},
    {"e", changed<escape>},
    {"forceescape", changed<escape>},
    {"indent", indent, {"width", "first", "blank"}},
    {"center", center, {"width"}},
    {"wordcount", count_words},
    {"tojson", tojson, {"ensure_ascii", "indent", "separators", "sort_keys"}},
    {"int", to_integer, {"default", "base"}},
    {"float", to_real, {"default"}},
    {"abs", absolute},
    {"round", round_off, {"precision", "method"}},
    {"first", [](const Call& c) { return first_of(c.items()); }},
    {"last", [](const Call& c) { return last_of(c.items()); }},
    {"length", count},
    {"count", count},
    {"list", [](const Call& c) { return c.list(c.items()); }},
    {"default", or_default, {"default_value", "boolean"}},
    {"d", or_default, {"default_value", "boolean"}},
    {"join", join, {"d", "attribute"}},
    {"reverse",
     [](const Call& c) {
         return is_text(c.self) ? slice(c.budget, c.self, None{}, None{}, std::int64_t{-1}) : reversed(c);
     }},
    {"sort",
     [](const Call& c) { return c.list(sorted(c, c.items(), c.given(2), c.flag(1), c.flag(0))); },
     {"reverse", "case_sensitive", "attribute"}},
    {"dictsort", dictsort, {"case_sensitive", "by", "reverse"}},
    {"unique", unique, {"case_sensitive", "attribute"}},
    {"min",
     [](const Call& c) { return first_of(sorted(c, c.items(), c.given(1), c.flag(0), false)); },
     {"case_sensitive", "attribute"}},
    {"max",
     [](const Call& c) { return first_of(sorted(c, c.items(), c.given(1), c.flag(0), true)); },
     {"case_sensitive", "attribute"}},
    {"sum", sum, {"attribute", "start"}},
    {"items", [](const Call& c) { return is_undefined(c.self) ? c.list({}) : pairs_of(c, "items"); }},
    {"batch", batch, {"linecount", "fill_with"}},
    {"map", map, {"*"}},
    {"select", choose<true, false>, {"*"}},
    {"reject", choose<false, false>, {"*"}},
    {"selectattr", choose<true, true>, {"*"}},
    {"rejectattr", choose<false, true>, {"*"}},
    {"attr", attribute, {"name"}},
};

}  // namespace

std::span<const Builtin> filters() { return kFilters; }

}  // namespace fovea::chat
