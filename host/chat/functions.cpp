// Global functions, and the attributes of texts, lists, objects and loops.
#include <algorithm>
#include <optional>
#include <utility>

#include "engine/format/utf8.h"
#include "host/base/ascii.h"
#include "host/chat/interpreter.h"
#include "host/chat/text.h"

namespace fovea::chat {
namespace {

// ---- functions -------------------------------------------------------------------------------------------------------

constexpr std::int64_t kLongestRange = 100'000;  // as Jinja's sandbox has it

Value range(const Call& c) {
    const std::int64_t first = integer_of(c.needed(0, "range")), step = c.integer_or(2, 1);
    const std::int64_t start = c.bound[1] ? first : 0, stop = c.bound[1] ? integer_of(*c.bound[1]) : first;
    if (step == 0) fail("range: expected a step other than 0, got 0");
    std::vector<Value> items;
    for (std::int64_t at = start; step > 0 ? at < stop : at > stop;) {
        if (static_cast<std::int64_t>(items.size()) == kLongestRange)
            fail("range: expected at most " + std::to_string(kLongestRange) + " numbers, got more");
        items.emplace_back(at);
        if (__builtin_add_overflow(at, step, &at)) break;
    }
    c.budget.steps(items.size());
    return c.list(std::move(items));
}

Value dict(const Call& c) {
    std::vector<std::pair<Value, Value>> entries;
    if (c.all.positional.size() > 1) fail("dict: expected at most 1 argument, got more");
    for (const Value& one : c.all.positional) {
        if (!is<DictPointer>(one)) fail("dict: expected an object, got " + kind_of(one));
        entries = std::get<DictPointer>(one)->entries;
    }
    for (const auto& [name, value] : c.all.named) {
        const auto same = [&, &key = name](const auto& entry) {
            return is_text(entry.first) && text_of(entry.first) == key;
        };
        const auto at = std::find_if(entries.begin(), entries.end(), same);
        if (at != entries.end())
            at->second = value;
        else
            entries.emplace_back(c.text(name), value);
    }
    return make_dict(c.budget, std::move(entries));
}

Value strftime_now(const Call& c) {
    constexpr std::size_t kMostFormat = 256;
    const std::string& format = c.text_needed(0, "strftime_now");
    if (format.size() > kMostFormat)
        fail("strftime_now: expected at most 256 bytes, got " + std::to_string(format.size()));
    std::tm local{};
    const std::time_t now = c.run.now();
    localtime_r(&now, &local);
    std::string text(8192, '\0');
    text.resize(std::strftime(text.data(), text.size(), format.c_str(), &local));
    return c.text({std::move(text), !tainted_of(*c.bound[0]).data().empty()});
}

constexpr Builtin kFunctions[] = {
    {"range", range, {"start", "stop", "step"}},
    {"dict", dict, {"*"}},
    {"namespace", [](const Call& c) { return c.run.make_namespace(c.all); }, {"*"}},
    {"strftime_now", strftime_now, {"format"}},
    {"raise_exception",
     [](const Call& c) -> Value { fail(to_text(c.budget, c.needed(0, "raise_exception")).text()); },
     {"message"}},
};

// ---- texts -----------------------------------------------------------------------------------------------------------

std::string_view own(const Call& c) {
    c.budget.steps(1 + text_of(c.self).size() / 16);
    return text_of(c.self);
}

/// The text and the one that is looked for in it.
std::pair<std::string_view, const std::string&> own_and(const Call& c, const char* who) {
    const std::string_view text = own(c);
    const std::string& part = c.text_needed(0, who);
    c.budget.search(text.size(), part.size());
    return {text, part};
}

template<Side side>
Value strip_text(const Call& c) {
    if (!c.given(0)) return c.part(strip(own(c), side));
    const std::string_view set = c.text_needed(0, "strip");
    c.budget.steps(set.size());
    c.budget.bytes(set.size() * sizeof set);
    return c.part(strip(own(c), side, &set));
}

/// Parts of the call's own text.
Value texts(const Call& c, const std::vector<std::string_view>& parts) {
    std::vector<Value> items;
    for (const std::string_view part : parts) items.push_back(c.part(part));
    return c.list(std::move(items));
}

template<bool from_right>
Value split(const Call& c) {
    const std::string who = from_right ? "rsplit" : "split";
    std::string_view text = own(c);
    c.budget.bytes(text.size());
    const std::int64_t most = c.integer_or(1, -1);
    if (!from_right && !c.given(0)) return texts(c, split_spaces(text, most));
    const std::string& by = c.text_needed(0, who.c_str());
    if (by.empty()) fail(who + ": expected a text to split by, got an empty one");
    c.budget.search(text.size(), by.size());
    std::vector<std::string_view> parts;
    while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
        const std::size_t at = from_right ? text.rfind(by) : text.find(by);
        if (at == text.npos) break;
        const std::string_view before = text.substr(0, at), after = text.substr(at + by.size());
        parts.push_back(from_right ? after : before);
        text = from_right ? before : after;
    }
    parts.push_back(text);
    if (from_right) std::reverse(parts.begin(), parts.end());
    return texts(c, parts);
}

Value replace(const Call& c) {
    const std::string_view text = own(c);
    const TaintedText& whole_text = tainted_of(c.self);
    const std::string& from = c.text_needed(0, "replace");
    (void)c.text_needed(1, "replace");
    const TaintedText& to = tainted_of(*c.bound[1]);
    std::int64_t most = c.integer_or(2, -1);
    c.budget.search(text.size(), from.size());
    TaintedText out;
    std::size_t at = 0;
    while (most != 0) {
        const std::size_t found = text.find(from, at);
        if (found == text.npos) break;
        const std::size_t whole = from.empty() && found < text.size() ? first_character(text.substr(found)).bytes : 0;
        c.budget.bytes(to.text().size() + found - at);
        out.add(whole_text.part(text.substr(at, found - at)));
        out.add(to);
        out.add(whole_text.part(text.substr(found, whole)));
        at = found + from.size() + whole;
        --most;
        if (from.empty() && (whole == 0 || at > text.size())) break;
    }
    if (at < text.size()) out.add(whole_text.part(text.substr(at)));
    return c.text(std::move(out));
}

template<bool at_start>
Value begins(const Call& c) {
    const std::string_view text = own(c);
    const auto fits = [&](const Value& part) {
        if (!is_text(part)) fail("startswith and endswith: expected a text, got " + kind_of(part));
        return at_start ? text.starts_with(text_of(part)) : text.ends_with(text_of(part));
    };
    const Value& parts = c.needed(0, "startswith and endswith");
    if (!is<ListPointer>(parts)) return fits(parts);
    const auto& items = std::get<ListPointer>(parts)->items;
    c.budget.steps(items.size());
    return std::any_of(items.begin(), items.end(), fits);
}

template<bool from_right, bool must>
Value find_text(const Call& c) {
    const auto [text, part] = own_and(c, "find");
    const std::size_t at = from_right ? text.rfind(part) : text.find(part);
    if (at == text.npos && must) fail("index: expected a text that is within the other, got one that is not");
    return at == text.npos ? std::int64_t{-1} : count_characters(text.substr(0, at));
}

Value count_text(const Call& c) {
    const auto [text, part] = own_and(c, "count");
    if (part.empty()) return count_characters(text) + 1;
    std::int64_t n = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++n;
    return n;
}

Value join_texts(const Call& c) {
    TaintedText text;
    bool first = true;
    for (const Value& item : elements(c.budget, c.needed(0, "join"))) {
        if (!is_text(item)) fail("join: expected texts, got " + kind_of(item));
        if (!std::exchange(first, false)) text.add(tainted_of(c.self));
        text.add(tainted_of(item));
        c.budget.bytes(text_of(c.self).size() + text_of(item).size());
    }
    return c.text(std::move(text));
}

template<std::string (*change)(std::string_view)>
Value as_changed(const Call& c) {
    return c.text(tainted_of(c.self).respelled(change(own(c))));
}

/// Whether a text has something, and all of it is of a kind.
template<bool (*is_one)(char)>
Value all_are(const Call& c) {
    const std::string_view text = own(c);
    return !text.empty() && std::all_of(text.begin(), text.end(), is_one);
}

bool is_blank(char c) { return is_space(static_cast<unsigned char>(c)); }

template<bool prefix>
Value without(const Call& c) {
    std::string_view text = own(c);
    const std::string& part = c.text_needed(0, "removeprefix and removesuffix");
    if (prefix && text.starts_with(part)) text.remove_prefix(part.size());
    if (!prefix && text.ends_with(part)) text.remove_suffix(part.size());
    return c.part(text);
}

Value lines(const Call& c) {
    c.budget.bytes(text_of(c.self).size() * sizeof(std::string_view));
    return texts(c, split_lines(own(c), c.flag(0)));
}

template<bool from_right>
Value partition(const Call& c) {
    const std::string_view text = own(c);
    const std::string& by = c.text_needed(0, "partition");
    if (by.empty()) fail("partition: expected a text to part by, got an empty one");
    const std::size_t at = from_right ? text.rfind(by) : text.find(by);
    std::vector<Value> parts(3, c.text({}));
    if (at == text.npos) {
        parts[from_right ? 2 : 0] = c.self;
    } else {
        parts = {c.part(text.substr(0, at)), c.part(text.substr(at, by.size())), c.part(text.substr(at + by.size()))};
    }
    return make_list(c.budget, std::move(parts), true);
}

constexpr Builtin kTextMethods[] = {
    {"strip", strip_text<Side::both>, {"chars"}},
    {"lstrip", strip_text<Side::left>, {"chars"}},
    {"rstrip", strip_text<Side::right>, {"chars"}},
    {"split", split<false>, {"sep", "maxsplit"}},
    {"rsplit", split<true>, {"sep", "maxsplit"}},
    {"splitlines", lines, {"keepends"}},
    {"partition", partition<false>, {"sep"}},
    {"rpartition", partition<true>, {"sep"}},
    {"replace", replace, {"old", "new", "count"}},
    {"startswith", begins<true>, {"prefix"}},
    {"endswith", begins<false>, {"suffix"}},
    {"removeprefix", without<true>, {"prefix"}},
    {"removesuffix", without<false>, {"suffix"}},
    {"find", find_text<false, false>, {"sub"}},
    {"rfind", find_text<true, false>, {"sub"}},
    {"index", find_text<false, true>, {"sub"}},
    {"count", count_text, {"sub"}},
    {"join", join_texts, {"iterable"}},
    {"upper", as_changed<upper>},
    {"lower", as_changed<lower>},
    {"title", as_changed<title>},
    {"capitalize", as_changed<capitalize>},
    {"isdigit", all_are<is_digit>},
    {"isdecimal", all_are<is_digit>},
    {"isnumeric", all_are<is_digit>},
    {"isalpha", all_are<is_letter>},
    {"isalnum", all_are<is_letter_or_digit>},
    {"isspace", all_are<is_blank>},
    {"isupper", [](const Call& c) -> Value { return c.run.apply_test("upper", c.self, {}); }},
    {"islower", [](const Call& c) -> Value { return c.run.apply_test("lower", c.self, {}); }},
};

// ---- lists, objects, loops -------------------------------------------------------------------------------------------

const Dict& own_dict(const Call& c) { return *std::get<DictPointer>(c.self); }

/// One item for each entry of the object.
template<Value (*item_of)(const Call&, const std::pair<Value, Value>&)>
Value each_entry(const Call& c) {
    std::vector<Value> items;
    for (const auto& entry : own_dict(c).entries) items.push_back(item_of(c, entry));
    c.budget.steps(items.size());
    return c.list(std::move(items));
}

Value pair_of(const Call& c, const std::pair<Value, Value>& entry) {
    return make_list(c.budget, {entry.first, entry.second}, true);
}
Value value_of(const Call&, const std::pair<Value, Value>& entry) { return entry.second; }

Value dict_get(const Call& c) {
    const Value* value = find(c.budget, own_dict(c), c.needed(0, "get"));
    return value ? *value : c.bound[1] ? *c.bound[1] : Value(None{});
}

Value itself(const Call& c) { return c.self; }

constexpr Builtin kDictMethods[] = {
    {"get", dict_get, {"key", "default"}},
    {"items", each_entry<pair_of>},
    {"keys", [](const Call& c) { return c.list(c.items()); }},
    {"values", each_entry<value_of>},
    {"copy", itself},
};

Value list_count(const Call& c) {
    const auto& items = std::get<ListPointer>(c.self)->items;
    const Value& wanted = c.needed(0, "count");
    return static_cast<std::int64_t>(
        std::count_if(items.begin(), items.end(), [&](const Value& item) { return equal(c.budget, item, wanted); }));
}

Value list_index(const Call& c) {
    const auto& items = std::get<ListPointer>(c.self)->items;
    const Value& wanted = c.needed(0, "index");
    const auto at =
        std::find_if(items.begin(), items.end(), [&](const Value& item) { return equal(c.budget, item, wanted); });
    if (at == items.end()) fail("index: expected a value that is in the list, got one that is not");
    return static_cast<std::int64_t>(at - items.begin());
}

constexpr Builtin kListMethods[] = {
    {"count", list_count, {"value"}},
    {"index", list_index, {"value"}},
    {"copy", itself},
};

Value loop_cycle(const Call& c) {
    if (c.all.positional.empty()) fail("cycle: expected 1 argument, got none");
    return c.all.positional[std::get<Loop*>(c.self)->index % c.all.positional.size()];
}

Value loop_changed(const Call& c) {
    std::optional<std::string>& seen = std::get<Loop*>(c.self)->seen;
    std::string now = to_repr(c.budget, c.list(c.all.positional)).text();
    if (seen == now) return false;
    seen = std::move(now);
    return true;
}

constexpr Builtin kLoopMethods[] = {
    {"cycle", loop_cycle, {"*"}},
    {"changed", loop_changed, {"*"}},
};

}  // namespace

const Value* Call::given(std::size_t i) const { return bound[i] && !is<None>(*bound[i]) ? bound[i] : nullptr; }

const Value& Call::needed(std::size_t i, const char* who) const {
    if (!bound[i])
        fail(std::string(who) + ": expected " + std::to_string(i + 1) + (i ? " arguments" : " argument") +
             ", got fewer");
    return *bound[i];
}

const std::string& Call::text_needed(std::size_t i, const char* who) const {
    const Value& value = needed(i, who);
    if (!is_text(value)) fail(std::string(who) + ": expected a text, got " + kind_of(value));
    return text_of(value);
}

std::span<const Builtin> functions() { return kFunctions; }

const Builtin* find_method(const Value& of, std::string_view name) {
    if (is_text(of)) return find_builtin(kTextMethods, name);
    if (is<DictPointer>(of)) return find_builtin(kDictMethods, name);
    if (is<ListPointer>(of)) return find_builtin(kListMethods, name);
    return is<Loop*>(of) ? find_builtin(kLoopMethods, name) : nullptr;
}

}  // namespace fovea::chat
