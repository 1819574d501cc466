// Global functions, and the attributes of texts, lists, objects and loops.
#include <algorithm>

#include "host/chat/interpreter.h"
#include "host/chat/text.h"

namespace fovea::chat {
namespace {

using Bound = Builtin::Bound;

// ---- functions -------------------------------------------------------------------------------------------------------

constexpr std::int64_t kLongestRange = 100'000;  // as Jinja's sandbox has it

Value range(Interpreter& run, const Value&, const Bound& a, const Arguments&) {
    const std::int64_t first = integer_of(needed(a, 0, "range")), step = integer_or(a, 2, 1);
    const std::int64_t start = a[1] ? first : 0, stop = a[1] ? integer_of(*a[1]) : first;
    if (step == 0) fail("range: expected a step other than 0, got 0");
    std::vector<Value> items;
    for (std::int64_t at = start; step > 0 ? at < stop : at > stop;) {
        if (static_cast<std::int64_t>(items.size()) == kLongestRange)
            fail("range: expected at most " + std::to_string(kLongestRange) + " numbers, got more");
        items.emplace_back(at);
        if (__builtin_add_overflow(at, step, &at)) break;
    }
    run.budget().steps(items.size());
    return make_list(run.budget(), std::move(items));
}

Value dict(Interpreter& run, const Value&, const Bound&, const Arguments& all) {
    std::vector<std::pair<Value, Value>> entries;
    if (all.positional.size() > 1) fail("dict: expected at most 1 argument, got more");
    for (const Value& one : all.positional) {
        if (!is<DictPointer>(one)) fail("dict: expected an object, got " + kind_of(one));
        entries = std::get<DictPointer>(one)->entries;
    }
    for (const auto& [name, value] : all.named) {
        const auto same = [&, &key = name](const auto& entry) {
            return is_text(entry.first) && text_of(entry.first) == key;
        };
        const auto at = std::find_if(entries.begin(), entries.end(), same);
        if (at != entries.end()) {
            at->second = value;
        } else {
            entries.emplace_back(make_text(run.budget(), name), value);
        }
    }
    return make_dict(run.budget(), std::move(entries));
}

Value strftime_now(Interpreter& run, const Value&, const Bound& a, const Arguments&) {
    constexpr std::size_t kMostFormat = 256;
    const std::string& format = text_needed(a, 0, "strftime_now");
    if (format.size() > kMostFormat)
        fail("strftime_now: expected at most 256 bytes, got " + std::to_string(format.size()));
    std::tm local{};
    const std::time_t now = run.now();
    localtime_r(&now, &local);
    std::string text(8192, '\0');
    text.resize(std::strftime(text.data(), text.size(), format.c_str(), &local));
    return make_text(run.budget(), std::move(text));
}

constexpr Builtin kFunctions[] = {
    {"range", range, {"start", "stop", "step"}},
    {"dict", dict, {"*"}},
    {"namespace",
     [](Interpreter& run, const Value&, const Bound&, const Arguments& all) { return run.make_namespace(all); },
     {"*"}},
    {"strftime_now", strftime_now, {"format"}},
    {"raise_exception",
     [](Interpreter& run, const Value&, const Bound& a, const Arguments&) -> Value {
         fail(to_text(run.budget(), needed(a, 0, "raise_exception")));
     },
     {"message"}},
};

// ---- texts -----------------------------------------------------------------------------------------------------------

std::string_view own(Interpreter& run, const Value& self) {
    run.budget().steps(1 + text_of(self).size() / 16);
    return text_of(self);
}

template<Side side>
Value strip_text(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    if (!a[0] || is<None>(*a[0])) return make_text(run.budget(), std::string(strip(own(run, self), side)));
    const std::string_view set = text_needed(a, 0, "strip");
    run.budget().steps(set.size());
    run.budget().bytes(set.size() * sizeof set);
    return make_text(run.budget(), std::string(strip(own(run, self), side, &set)));
}

Value texts(Interpreter& run, const std::vector<std::string_view>& parts) {
    std::vector<Value> items;
    for (const std::string_view part : parts) items.push_back(make_text(run.budget(), std::string(part)));
    return make_list(run.budget(), std::move(items));
}

Value split(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    std::string_view text = own(run, self);
    run.budget().bytes(text.size());
    const std::int64_t most = integer_or(a, 1, -1);
    if (!a[0] || is<None>(*a[0])) return texts(run, split_spaces(text, most));
    const std::string& by = text_needed(a, 0, "split");
    if (by.empty()) fail("split: expected a text to split by, got an empty one");
    run.budget().search(text.size(), by.size());
    std::vector<std::string_view> parts;
    for (std::size_t at;
         (most < 0 || static_cast<std::int64_t>(parts.size()) < most) && (at = text.find(by)) != text.npos;) {
        parts.push_back(text.substr(0, at));
        text.remove_prefix(at + by.size());
    }
    parts.push_back(text);
    return texts(run, parts);
}

Value split_from_right(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    std::string_view text = own(run, self);
    run.budget().bytes(text.size());
    const std::int64_t most = integer_or(a, 1, -1);
    const std::string& by = text_needed(a, 0, "rsplit");
    if (by.empty()) fail("rsplit: expected a text to split by, got an empty one");
    run.budget().search(text.size(), by.size());
    std::vector<std::string_view> parts;
    for (std::size_t at;
         (most < 0 || static_cast<std::int64_t>(parts.size()) < most) && (at = text.rfind(by)) != text.npos;) {
        parts.push_back(text.substr(at + by.size()));
        text = text.substr(0, at);
    }
    parts.push_back(text);
    std::reverse(parts.begin(), parts.end());
    return texts(run, parts);
}

Value replace(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const std::string_view text = own(run, self);
    const std::string &from = text_needed(a, 0, "replace"), &to = text_needed(a, 1, "replace");
    std::int64_t most = integer_or(a, 2, -1);
    run.budget().search(text.size(), from.size());
    std::string out;
    std::size_t at = 0;
    while (most != 0) {
        const std::size_t found = text.find(from, at);
        if (found == text.npos) break;
        const std::size_t whole = from.empty() && found < text.size() ? character_bytes(text, found) : 0;
        run.budget().bytes(to.size() + found - at);
        out.append(text.substr(at, found - at)).append(to).append(text.substr(found, whole));
        at = found + from.size() + whole;
        --most;
        if (from.empty() && (whole == 0 || at > text.size())) break;
    }
    if (at < text.size()) out += text.substr(at);
    return make_text(run.budget(), std::move(out));
}

template<bool at_start>
Value begins(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const std::string_view text = own(run, self);
    const auto fits = [&](const Value& part) {
        if (!is_text(part)) fail("startswith and endswith: expected a text, got " + kind_of(part));
        return at_start ? text.starts_with(text_of(part)) : text.ends_with(text_of(part));
    };
    const Value& parts = needed(a, 0, "startswith and endswith");
    if (!is<ListPointer>(parts)) return fits(parts);
    const auto& items = std::get<ListPointer>(parts)->items;
    run.budget().steps(items.size());
    return std::any_of(items.begin(), items.end(), fits);
}

template<bool from_right, bool must>
Value find_text(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const std::string_view text = own(run, self);
    const std::string& part = text_needed(a, 0, "find");
    run.budget().search(text.size(), part.size());
    const std::size_t at = from_right ? text.rfind(part) : text.find(part);
    if (at == text.npos && must) fail("index: expected a text that is within the other, got one that is not");
    return at == text.npos ? std::int64_t{-1} : count_characters(text.substr(0, at));
}

Value count_text(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const std::string_view text = own(run, self);
    const std::string& part = text_needed(a, 0, "count");
    run.budget().search(text.size(), part.size());
    if (part.empty()) return count_characters(text) + 1;
    std::int64_t n = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++n;
    return n;
}

Value join(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    std::string text;
    bool first = true;
    for (const Value& item : elements(run.budget(), needed(a, 0, "join"))) {
        if (!is_text(item)) fail("join: expected texts, got " + kind_of(item));
        if (!std::exchange(first, false)) text += text_of(self);
        text += text_of(item);
        run.budget().bytes(text_of(self).size() + text_of(item).size());
    }
    return make_text(run.budget(), std::move(text));
}

template<std::string (*change)(std::string_view)>
Value changed(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    return make_text(run.budget(), change(own(run, self)));
}

/// Whether a text has something, and all of it is digits, letters, either, or white space.
template<bool digits, bool letters, bool space>
Value all_are(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    const std::string_view text = own(run, self);
    const auto fits = [](char c) {
        const bool digit = c >= '0' && c <= '9', letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        return (digits && digit) || (letters && letter) || (space && is_space(static_cast<unsigned char>(c)));
    };
    return !text.empty() && std::all_of(text.begin(), text.end(), fits);
}

template<bool upper>
Value all_cased(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    return run.apply_test(upper ? "upper" : "lower", self, {});
}

template<bool prefix>
Value without(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    std::string_view text = own(run, self);
    const std::string& part = text_needed(a, 0, "removeprefix and removesuffix");
    if (prefix && text.starts_with(part)) text.remove_prefix(part.size());
    if (!prefix && text.ends_with(part)) text.remove_suffix(part.size());
    return make_text(run.budget(), std::string(text));
}

Value lines(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    run.budget().bytes(text_of(self).size() * sizeof(std::string_view));
    return texts(run, split_lines(own(run, self), a[0] && truthy(*a[0])));
}

template<bool from_right>
Value partition(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const std::string_view text = own(run, self);
    const std::string& by = text_needed(a, 0, "partition");
    if (by.empty()) fail("partition: expected a text to part by, got an empty one");
    const std::size_t at = from_right ? text.rfind(by) : text.find(by);
    std::vector<Value> parts(3, make_text(run.budget(), ""));
    if (at == text.npos) {
        parts[from_right ? 2 : 0] = self;
    } else {
        parts[0] = make_text(run.budget(), std::string(text.substr(0, at)));
        parts[1] = make_text(run.budget(), by);
        parts[2] = make_text(run.budget(), std::string(text.substr(at + by.size())));
    }
    return make_list(run.budget(), std::move(parts), true);
}

constexpr Builtin kTextMethods[] = {
    {"strip", strip_text<Side::both>, {"chars"}},
    {"lstrip", strip_text<Side::left>, {"chars"}},
    {"rstrip", strip_text<Side::right>, {"chars"}},
    {"split", split, {"sep", "maxsplit"}},
    {"rsplit", split_from_right, {"sep", "maxsplit"}},
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
    {"join", join, {"iterable"}},
    {"upper", changed<upper>},
    {"lower", changed<lower>},
    {"title", changed<title>},
    {"capitalize", changed<capitalize>},
    {"isdigit", all_are<true, false, false>},
    {"isdecimal", all_are<true, false, false>},
    {"isnumeric", all_are<true, false, false>},
    {"isalpha", all_are<false, true, false>},
    {"isalnum", all_are<true, true, false>},
    {"isspace", all_are<false, false, true>},
    {"isupper", all_cased<true>},
    {"islower", all_cased<false>},
};

// ---- lists, objects, loops -------------------------------------------------------------------------------------------

Value pairs(Interpreter& run, const Dict& dict) {
    std::vector<Value> items;
    for (const auto& [key, value] : dict.entries) items.push_back(make_list(run.budget(), {key, value}, true));
    run.budget().steps(items.size());
    return make_list(run.budget(), std::move(items));
}

Value dict_values(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    std::vector<Value> items;
    for (const auto& entry : std::get<DictPointer>(self)->entries) items.push_back(entry.second);
    run.budget().steps(items.size());
    return make_list(run.budget(), std::move(items));
}

Value dict_get(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const Value* value = find(run.budget(), *std::get<DictPointer>(self), needed(a, 0, "get"));
    return value ? *value : a[1] ? *a[1] : Value(None{});
}

constexpr Builtin kDictMethods[] = {
    {"get", dict_get, {"key", "default"}},
    {"items", [](Interpreter& run, const Value& self, const Bound&,
                 const Arguments&) { return pairs(run, *std::get<DictPointer>(self)); }},
    {"keys", [](Interpreter& run, const Value& self, const Bound&,
                const Arguments&) { return make_list(run.budget(), elements(run.budget(), self)); }},
    {"values", dict_values},
    {"copy", [](Interpreter&, const Value& self, const Bound&, const Arguments&) { return self; }},
};

Value list_count(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const auto& items = std::get<ListPointer>(self)->items;
    const Value& wanted = needed(a, 0, "count");
    return static_cast<std::int64_t>(std::count_if(
        items.begin(), items.end(), [&](const Value& item) { return equal(run.budget(), item, wanted); }));
}

Value list_index(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const auto& items = std::get<ListPointer>(self)->items;
    const Value& wanted = needed(a, 0, "index");
    const auto at =
        std::find_if(items.begin(), items.end(), [&](const Value& item) { return equal(run.budget(), item, wanted); });
    if (at == items.end()) fail("index: expected a value that is in the list, got one that is not");
    return static_cast<std::int64_t>(at - items.begin());
}

constexpr Builtin kListMethods[] = {
    {"count", list_count, {"value"}},
    {"index", list_index, {"value"}},
    {"copy", [](Interpreter&, const Value& self, const Bound&, const Arguments&) { return self; }},
};

Value loop_cycle(Interpreter&, const Value& self, const Bound&, const Arguments& all) {
    if (all.positional.empty()) fail("cycle: expected 1 argument, got none");
    return all.positional[std::get<Loop*>(self)->index % all.positional.size()];
}

Value loop_changed(Interpreter& run, const Value& self, const Bound&, const Arguments& all) {
    Loop& loop = *std::get<Loop*>(self);
    const std::string now = to_repr(run.budget(), make_list(run.budget(), all.positional));
    if (loop.has_seen && loop.seen == now) return false;
    loop.has_seen = true;
    loop.seen = now;
    return true;
}

constexpr Builtin kLoopMethods[] = {
    {"cycle", loop_cycle, {"*"}},
    {"changed", loop_changed, {"*"}},
};

}  // namespace

const Value& needed(const Builtin::Bound& arguments, std::size_t i, const char* who) {
    if (!arguments[i])
        fail(std::string(who) + ": expected " + std::to_string(i + 1) + (i ? " arguments" : " argument") +
             ", got fewer");
    return *arguments[i];
}

const std::string& text_needed(const Builtin::Bound& arguments, std::size_t i, const char* who) {
    const Value& value = needed(arguments, i, who);
    if (!is_text(value)) fail(std::string(who) + ": expected a text, got " + kind_of(value));
    return text_of(value);
}

std::int64_t integer_or(const Builtin::Bound& arguments, std::size_t i, std::int64_t fallback) {
    return arguments[i] && !is<None>(*arguments[i]) ? integer_of(*arguments[i]) : fallback;
}

bool flag_or(const Builtin::Bound& arguments, std::size_t i, bool fallback) {
    return arguments[i] ? truthy(*arguments[i]) : fallback;
}

std::span<const Builtin> functions() { return kFunctions; }

const Builtin* find_method(const Value& of, std::string_view name) {
    if (is_text(of)) return find_builtin(kTextMethods, name);
    if (is<DictPointer>(of)) return find_builtin(kDictMethods, name);
    if (is<ListPointer>(of)) return find_builtin(kListMethods, name);
    return is<Loop*>(of) ? find_builtin(kLoopMethods, name) : nullptr;
}

}  // namespace fovea::chat
