// The tests, which stand after `is`.
#include <algorithm>

#include "host/base/ascii.h"
#include "host/chat/interpreter.h"
#include "host/chat/text.h"

namespace fovea::chat {
namespace {

template<class T>
Value holds(const Call& c) {
    return is<T>(c.self);
}

template<bool (*check)(const Value&)>
Value passes(const Call& c) {
    return check(c.self);
}

bool is_defined(const Value& value) { return !is_undefined(value); }
bool is_true(const Value& value) { return is<bool>(value) && truthy(value); }
bool is_false(const Value& value) { return is<bool>(value) && !truthy(value); }
bool is_callable(const Value& value) { return is<CallablePointer>(value) || is<Loop*>(value); }
bool is_sequence(const Value& value) {
    return is_text(value) || is<ListPointer>(value) || is<DictPointer>(value) || is_undefined(value);
}
/// What is undefined can be gone through, and has no items.
bool is_iterable(const Value& value) { return is_sequence(value) || is<Loop*>(value); }

/// Whether a text has letters, all of one case.
template<bool (*right)(char), bool (*wrong)(char)>
Value is_cased(const Call& c) {
    const std::string text = c.words().text();
    return std::any_of(text.begin(), text.end(), right) && std::none_of(text.begin(), text.end(), wrong);
}

/// Values that are one object in Python: the same, or plain and equal.
Value is_same(const Call& c) {
    const Value& other = c.needed(0, "sameas");
    if (c.self.index() != other.index()) return false;
    if (const auto* list = std::get_if<ListPointer>(&c.self)) return *list == std::get<ListPointer>(other);
    if (const auto* dict = std::get_if<DictPointer>(&c.self)) return *dict == std::get<DictPointer>(other);
    return equal(c.budget, c.self, other);
}

constexpr std::string_view kSigns[] = {"==", "!=", "<", "<=", ">", ">="};

template<int sign>
Value compares(const Call& c) {
    return compare(c.budget, kSigns[sign], c.self, c.needed(0, "comparison"));
}

bool leaves(const Call& c, const Value& divisor, std::int64_t rest) {
    return equal(c.budget, compute(c.budget, "%", c.self, divisor), rest);
}

template<std::span<const Builtin> (*all)()>
Value is_known(const Call& c) {
    return is_text(c.self) && find_builtin(all(), text_of(c.self));
}

constexpr Builtin kTests[] = {
    {"defined", passes<is_defined>},
    {"undefined", holds<Undefined>},
    {"none", holds<None>},
    {"boolean", holds<bool>},
    {"integer", holds<std::int64_t>},
    {"float", holds<double>},
    {"string", holds<Text>},
    {"mapping", holds<DictPointer>},
    {"true", passes<is_true>},
    {"false", passes<is_false>},
    {"number", passes<is_number>},
    {"iterable", passes<is_iterable>},
    {"sequence", passes<is_sequence>},
    {"callable", passes<is_callable>},
    {"lower", is_cased<is_lower, is_upper>},
    {"upper", is_cased<is_upper, is_lower>},
    {"sameas", is_same, {"other"}},
    {"in", [](const Call& c) -> Value { return contains(c.budget, c.needed(0, "in"), c.self); }, {"seq"}},
    {"eq", compares<0>, {"other"}},
    {"equalto", compares<0>, {"other"}},
    {"==", compares<0>, {"other"}},
    {"ne", compares<1>, {"other"}},
    {"!=", compares<1>, {"other"}},
    {"lt", compares<2>, {"other"}},
    {"lessthan", compares<2>, {"other"}},
    {"<", compares<2>, {"other"}},
    {"le", compares<3>, {"other"}},
    {"<=", compares<3>, {"other"}},
    {"gt", compares<4>, {"other"}},
    {"greaterthan", compares<4>, {"other"}},
    {">", compares<4>, {"other"}},
    {"ge", compares<5>, {"other"}},
    {">=", compares<5>, {"other"}},
    {"odd", [](const Call& c) -> Value { return leaves(c, std::int64_t{2}, 1); }},
    {"even", [](const Call& c) -> Value { return leaves(c, std::int64_t{2}, 0); }},
    {"divisibleby", [](const Call& c) -> Value { return leaves(c, c.needed(0, "divisibleby"), 0); }, {"num"}},
    {"filter", is_known<filters>},
    {"test", is_known<tests>},
};

}  // namespace

std::span<const Builtin> tests() { return kTests; }

const Builtin* find_builtin(std::span<const Builtin> among, std::string_view name) {
    const auto at = std::find_if(among.begin(), among.end(), [&](const Builtin& one) { return one.name == name; });
    return at == among.end() ? nullptr : &*at;
}

}  // namespace fovea::chat
