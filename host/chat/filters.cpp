// The filters, which stand after "|".
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "host/chat/interpreter.h"
#include "host/chat/text.h"

namespace fovea::chat {
namespace {

using Bound = Builtin::Bound;

std::string text_or(Interpreter& run, const Bound& arguments, std::size_t i, const char* fallback) {
    return arguments[i] ? to_text(run.budget(), *arguments[i]) : fallback;
}

// ---- texts -----------------------------------------------------------------------------------------------------------

template<std::string (*change)(std::string_view)>
Value changed(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    return make_text(run.budget(), change(to_text(run.budget(), self)));
}

Value as_text(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    return is_text(self) ? self : make_text(run.budget(), to_text(run.budget(), self));
}

/// A text's own method, applied to any value.
template<int which>  // 0: strip, 1: replace
Value by_method(Interpreter& run, const Value& self, const Bound&, const Arguments& all) {
    const Value text = make_text(run.budget(), to_text(run.budget(), self));
    Arguments given = all;
    if (which == 1)
        for (std::size_t i = 0; i < std::min<std::size_t>(2, given.positional.size()); ++i)
            given.positional[i] = make_text(run.budget(), to_text(run.budget(), given.positional[i]));
    return run.call(run.attribute_of(text, which ? "replace" : "strip"), given);
}

/// Words begin after white space, a hyphen or an opening bracket, as Jinja's filter has it and str.title has not.
Value title_words(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    std::string text = lower(to_text(run.budget(), self));
    bool begins = true;
    for (char& c : text) {
        if (begins) c = upper({&c, 1})[0];
        begins = c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(static_cast<unsigned char>(c));
    }
    return make_text(run.budget(), std::move(text));
}

Value escape(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    std::string out;
    for (const char c : to_text(run.budget(), self)) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '\'': out += "&#39;"; break;
            case '"': out += "&#34;"; break;
            default: out += c;
        }
    }
    return make_text(run.budget(), std::move(out));
}

Value indent(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const std::string text = to_text(run.budget(), self) + "\n";  // a last break begins a line, as Jinja has it
    std::string by;
    if (a[0] && is_text(*a[0])) {
        by = text_of(*a[0]);
    } else {
        const std::int64_t width = integer_or(a, 0, 4);
        run.budget().bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(width, 0)));
        by.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
    }
    const bool first = flag_or(a, 1, false), blank = flag_or(a, 2, false);
    const std::vector<std::string_view> lines = split_lines(text, false);
    std::string out;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        run.budget().bytes(by.size() + lines[i].size() + sizeof lines[i]);
        if (i) out += '\n';
        if (i ? blank || !lines[i].empty() : first) out += by;
        out += lines[i];
    }
    return make_text(run.budget(), std::move(out));
}

Value center(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const std::string text = to_text(run.budget(), self);
    const std::int64_t width = integer_or(a, 0, 80), n = std::max<std::int64_t>(0, width - count_characters(text));
    run.budget().bytes(static_cast<std::uint64_t>(n));
    const std::int64_t left = n / 2 + (n & width & 1);
    return make_text(run.budget(), std::string(static_cast<std::size_t>(left), ' ') + text +
                                       std::string(static_cast<std::size_t>(n - left), ' '));
}

Value count_words(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    const std::string text = to_text(run.budget(), self);
    run.budget().bytes(text.size());
    std::int64_t n = 0;
    bool within = false;
    for (const char c : text) {
        const bool in_word =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
        n += in_word && !within;
        within = in_word;
    }
    return n;
}

Value tojson(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    JsonStyle style;
    style.ensure_ascii = flag_or(a, 0, false);
    if (a[1] && !is<None>(*a[1])) {
        style.indent = static_cast<int>(std::clamp<std::int64_t>(integer_of(*a[1]), 0, 64));
        style.item_separator = ",";
    }
    if (a[2] && !is<None>(*a[2])) {
        const std::vector<Value> both = elements(run.budget(), *a[2]);
        if (both.size() != 2 || !is_text(both[0]) || !is_text(both[1]))
            fail("tojson: expected two texts as separators, got others");
        style.item_separator = text_of(both[0]);
        style.key_separator = text_of(both[1]);
    }
    style.sort_keys = flag_or(a, 3, false);
    return make_text(run.budget(), to_json(run.budget(), self, style));
}

// ---- numbers ---------------------------------------------------------------------------------------------------------

/// The number in a text, as Python's float reads it, white space around it allowed; or false.
bool read_real(const std::string& text, double& number) {
    std::string digits(strip(text, Side::both));
    std::erase(digits, '_');
    if (digits.empty() || digits.find_first_not_of("0123456789.eE+-") != digits.npos) return false;
    char* end = nullptr;
    number = std::strtod(digits.c_str(), &end);
    return *end == '\0';
}

Value to_integer(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const Value fallback = a[0] ? *a[0] : Value(std::int64_t{0});
    if (is_integer(self)) return integer_of(self);
    double real = 0;
    if (is<double>(self)) {
        real = real_of(self);
    } else if (!is_text(self)) {
        return fallback;
    } else {
        const std::int64_t base = integer_or(a, 1, 10);
        if (base != 0 && (base < 2 || base > 36)) return fallback;
        std::string digits(strip(to_text(run.budget(), self), Side::both));
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

Value to_real(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    double real = 0;
    if (is_number(self)) return real_of(self);
    if (is_text(self) && read_real(to_text(run.budget(), self), real)) return real;
    return a[0] ? *a[0] : Value(0.0);
}

Value absolute(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    if (is<double>(self)) return std::fabs(real_of(self));
    return integer_of(self) < 0 ? compute(run.budget(), "-", std::int64_t{0}, self) : Value(integer_of(self));
}

Value round_off(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const std::int64_t precision = integer_or(a, 0, 0);
    const std::string method = text_or(run, a, 1, "common");
    if (precision < 0 || precision > 30)
        fail("round: expected a precision from 0 to 30, got " + std::to_string(precision));
    if (method != "common" && method != "ceil" && method != "floor")
        fail("round: expected common, ceil or floor, got " + method);
    if (method == "common" && is_integer(self)) return integer_of(self);
    const double number = real_of(self), scale = std::pow(10.0, static_cast<double>(precision));
    if (method == "ceil") return std::ceil(number * scale) / scale;
    if (method == "floor") return std::floor(number * scale) / scale;
    char digits[400];  // to the nearest decimal, ties to even
    std::snprintf(digits, sizeof digits, "%.*f", static_cast<int>(precision), number);
    return std::strtod(digits, nullptr);
}

// ---- lists -----------------------------------------------------------------------------------------------------------

Value first(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    const std::vector<Value> items = elements(run.budget(), self);
    return items.empty() ? Value(Undefined{}) : items.front();
}

Value last(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    const std::vector<Value> items = elements(run.budget(), self);
    return items.empty() ? Value(Undefined{}) : items.back();
}

Value count(Interpreter& run, const Value& self, const Bound&, const Arguments&) { return length(run.budget(), self); }

Value as_list(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    return make_list(run.budget(), elements(run.budget(), self));
}

Value or_default(Interpreter&, const Value& self, const Bound& a, const Arguments&) {
    if (!is_undefined(self) && (!flag_or(a, 1, false) || truthy(self))) return self;
    return a[0] ? *a[0] : Value(std::make_shared<const std::string>());
}

Value join(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const std::string by = text_or(run, a, 0, "");
    std::string text;
    bool begun = false;
    for (const Value& item : elements(run.budget(), self)) {
        if (std::exchange(begun, true)) text += by;
        run.budget().bytes(by.size());
        text += to_text(run.budget(), a[1] ? path_of(run, item, *a[1]) : item);
    }
    return make_text(run.budget(), std::move(text));
}

Value reverse(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    if (is_text(self)) return slice(run.budget(), self, None{}, None{}, std::int64_t{-1});
    std::vector<Value> items = elements(run.budget(), self);
    std::reverse(items.begin(), items.end());
    return make_list(run.budget(), std::move(items));
}

/// The key that an item is ordered by: one of its values, or itself; texts regardless of case by default.
Value key_of(Interpreter& run, const Value& item, const Value* attribute, bool case_sensitive) {
    const Value key = attribute && !is<None>(*attribute) ? path_of(run, item, *attribute) : item;
    return !case_sensitive && is_text(key) ? make_text(run.budget(), lower(text_of(key))) : key;
}

std::vector<Value> sorted(Interpreter& run, const std::vector<Value>& items, const Value* attribute,
                          bool case_sensitive, bool reverse) {
    std::vector<std::pair<Value, const Value*>> order;
    for (const Value& item : items) order.emplace_back(key_of(run, item, attribute, case_sensitive), &item);
    std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
        return reverse ? less(run.budget(), b.first, a.first) : less(run.budget(), a.first, b.first);
    });
    std::vector<Value> result;
    for (const auto& one : order) result.push_back(*one.second);
    return result;
}

Value sort(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const std::vector<Value> items = elements(run.budget(), self);
    return make_list(run.budget(), sorted(run, items, a[2], flag_or(a, 1, false), flag_or(a, 0, false)));
}

Value dictsort(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    if (!is<DictPointer>(self)) fail("dictsort: expected an object, got " + kind_of(self));
    const Value pairs = run.call(run.attribute_of(self, "items"), {});
    const std::string by = text_or(run, a, 1, "key");
    if (by != "key" && by != "value") fail("dictsort: expected by key or value, got " + by);
    const Value index = std::int64_t{by == "value"};
    return make_list(run.budget(),
                     sorted(run, elements(run.budget(), pairs), &index, flag_or(a, 0, false), flag_or(a, 2, false)));
}

Value unique(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    std::vector<Value> kept, keys;
    for (const Value& item : elements(run.budget(), self)) {
        Value key = key_of(run, item, a[1], flag_or(a, 0, false));
        const auto same = [&](const Value& one) { return equal(run.budget(), one, key); };
        if (std::any_of(keys.begin(), keys.end(), same)) continue;
        keys.push_back(std::move(key));
        kept.push_back(item);
    }
    return make_list(run.budget(), std::move(kept));
}

template<bool largest>
Value extreme(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const std::vector<Value> items = sorted(run, elements(run.budget(), self), a[1], flag_or(a, 0, false), largest);
    return items.empty() ? Value(Undefined{}) : items.front();
}

Value sum(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    Value total = a[1] ? *a[1] : Value(std::int64_t{0});
    for (const Value& item : elements(run.budget(), self))
        total = compute(run.budget(), "+", total, a[0] && !is<None>(*a[0]) ? path_of(run, item, *a[0]) : item);
    return total;
}

Value items_of(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    if (is_undefined(self)) return make_list(run.budget(), {});
    if (!is<DictPointer>(self)) fail("items: expected an object, got " + kind_of(self));
    return run.call(run.attribute_of(self, "items"), {});
}

Value batch(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const std::int64_t n = integer_of(needed(a, 0, "batch"));
    if (n < 1 || n > 100'000) fail("batch: expected 1 to 100000 items, got " + std::to_string(n));
    std::vector<Value> batches, items;
    for (const Value& item : elements(run.budget(), self)) {
        if (static_cast<std::int64_t>(items.size()) == n)
            batches.push_back(make_list(run.budget(), std::exchange(items, {})));
        items.push_back(item);
    }
    while (!items.empty() && a[1] && static_cast<std::int64_t>(items.size()) < n) items.push_back(*a[1]);
    if (!items.empty()) batches.push_back(make_list(run.budget(), std::move(items)));
    return make_list(run.budget(), std::move(batches));
}

/// None for a value that counts as false: a template's tools are none if there are none.
std::vector<Value> elements_if_any(Interpreter& run, const Value& self) {
    return truthy(self) ? elements(run.budget(), self) : std::vector<Value>{};
}

/// map("filter", ...) and map(attribute=..., default=...).
Value map(Interpreter& run, const Value& self, const Bound&, const Arguments& all) {
    const Value *attribute = nullptr, *fallback = nullptr;
    for (const auto& [name, value] : all.named) {
        if (name == "attribute") attribute = &value;
        if (name == "default") fallback = &value;
    }
    Arguments rest = all;
    std::string filter;
    if (!attribute) {
        if (all.positional.empty() || !is_text(all.positional[0]))
            fail("map: expected a filter's name or an attribute, got none");
        filter = text_of(all.positional[0]);
        rest.positional.erase(rest.positional.begin());
    }
    std::vector<Value> made;
    for (const Value& item : elements_if_any(run, self)) {
        Value value = attribute ? path_of(run, item, *attribute) : run.apply_filter(filter, item, rest);
        made.push_back(attribute && fallback && is_undefined(value) ? *fallback : std::move(value));
    }
    return make_list(run.budget(), std::move(made));
}

/// Items for which a test holds, or does not: of the item, or of one of its values. Without a test: items that are
/// true.
template<bool keep, bool by_attribute>
Value choose(Interpreter& run, const Value& self, const Bound&, const Arguments& all) {
    Arguments rest = all;
    Value path;
    if (by_attribute) {
        if (rest.positional.empty()) fail("selectattr and rejectattr: expected an attribute, got none");
        path = rest.positional[0];
        rest.positional.erase(rest.positional.begin());
    }
    std::string test;
    if (!rest.positional.empty()) {
        if (!is_text(rest.positional[0]))
            fail("select and reject: expected a test's name, got " + kind_of(rest.positional[0]));
        test = text_of(rest.positional[0]);
        rest.positional.erase(rest.positional.begin());
    }
    std::vector<Value> kept;
    for (const Value& item : elements_if_any(run, self)) {
        const Value value = by_attribute ? path_of(run, item, path) : item;
        const bool holds = test.empty() ? truthy(value) : run.apply_test(test, value, rest);
        if (holds == keep) kept.push_back(item);
    }
    return make_list(run.budget(), std::move(kept));
}

Value attribute(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const std::string& name = text_needed(a, 0, "attr");
    if (is<DictPointer>(self) && !find_method(self, name)) return Undefined{};  // not its items
    return run.attribute_of(self, name);
}

constexpr Builtin kFilters[] = {
    {"trim", by_method<0>, {"*"}},
    {"replace", by_method<1>, {"*"}},
    {"upper", changed<upper>},
    {"lower", changed<lower>},
    {"title", title_words},
    {"capitalize", changed<capitalize>},
    {"string", as_text},
    {"safe", as_text},
    {"escape", escape},
    {"e", escape},
    {"forceescape", escape},
    {"indent", indent, {"width", "first", "blank"}},
    {"center", center, {"width"}},
    {"wordcount", count_words},
    {"tojson", tojson, {"ensure_ascii", "indent", "separators", "sort_keys"}},
    {"int", to_integer, {"default", "base"}},
    {"float", to_real, {"default"}},
    {"abs", absolute},
    {"round", round_off, {"precision", "method"}},
    {"first", first},
    {"last", last},
    {"length", count},
    {"count", count},
    {"list", as_list},
    {"default", or_default, {"default_value", "boolean"}},
    {"d", or_default, {"default_value", "boolean"}},
    {"join", join, {"d", "attribute"}},
    {"reverse", reverse},
    {"sort", sort, {"reverse", "case_sensitive", "attribute"}},
    {"dictsort", dictsort, {"case_sensitive", "by", "reverse"}},
    {"unique", unique, {"case_sensitive", "attribute"}},
    {"min", extreme<false>, {"case_sensitive", "attribute"}},
    {"max", extreme<true>, {"case_sensitive", "attribute"}},
    {"sum", sum, {"attribute", "start"}},
    {"items", items_of},
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
