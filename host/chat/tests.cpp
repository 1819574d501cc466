// The tests, which stand after `is`.
#include <algorithm>

#include "host/chat/interpreter.h"
#include "host/chat/text.h"

namespace fovea::chat {
namespace {

using Bound = Builtin::Bound;

template<class T>
Value holds(Interpreter&, const Value& self, const Bound&, const Arguments&) {
    return is<T>(self);
}

template<bool (*check)(const Value&)>
Value passes(Interpreter&, const Value& self, const Bound&, const Arguments&) {
    return check(self);
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

Value is_within(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    return contains(run.budget(), needed(a, 0, "in"), self);
}

bool has_letter(const std::string& text, char first, char last) {
    return std::any_of(text.begin(), text.end(), [&](char c) { return c >= first && c <= last; });
}

Value is_lower(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    const std::string text = to_text(run.budget(), self);
    return has_letter(text, 'a', 'z') && !has_letter(text, 'A', 'Z');
}

Value is_upper(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    const std::string text = to_text(run.budget(), self);
    return has_letter(text, 'A', 'Z') && !has_letter(text, 'a', 'z');
}

/// Values that are one object in Python: the same, or plain and equal.
Value is_same(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const Value& other = needed(a, 0, "sameas");
    if (self.index() != other.index()) return false;
    if (const auto* list = std::get_if<ListPointer>(&self)) return *list == std::get<ListPointer>(other);
    if (const auto* dict = std::get_if<DictPointer>(&self)) return *dict == std::get<DictPointer>(other);
    return equal(run.budget(), self, other);
}

template<int kind>  // 0: ==, 1: !=, 2: <, 3: <=, 4: >, 5: >=
Value compares(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    const Value& other = needed(a, 0, "comparison");
    Budget& budget = run.budget();
    if constexpr (kind == 0) return equal(budget, self, other);
    if constexpr (kind == 1) return !equal(budget, self, other);
    if constexpr (kind == 2) return less(budget, self, other);
    if constexpr (kind == 3) return less(budget, self, other) || equal(budget, self, other);
    if constexpr (kind == 4) return less(budget, other, self);
    return less(budget, other, self) || equal(budget, self, other);
}

Value is_divisible(Interpreter& run, const Value& self, const Bound& a, const Arguments&) {
    return equal(run.budget(), compute(run.budget(), "%", self, needed(a, 0, "divisibleby")), std::int64_t{0});
}

template<int remainder>
Value is_parity(Interpreter& run, const Value& self, const Bound&, const Arguments&) {
    return equal(run.budget(), compute(run.budget(), "%", self, std::int64_t{2}), std::int64_t{remainder});
}

template<bool filter>
Value is_known(Interpreter&, const Value& self, const Bound&, const Arguments&) {
    return is_text(self) && find_builtin(filter ? filters() : tests(), text_of(self));
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
    {"lower", is_lower},
    {"upper", is_upper},
    {"sameas", is_same, {"other"}},
    {"in", is_within, {"seq"}},
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
    {"odd", is_parity<1>},
    {"even", is_parity<0>},
    {"divisibleby", is_divisible, {"num"}},
    {"filter", is_known<true>},
    {"test", is_known<false>},
};

}  // namespace

std::span<const Builtin> tests() { return kTests; }

const Builtin* find_builtin(std::span<const Builtin> among, std::string_view name) {
    const auto at = std::find_if(among.begin(), among.end(), [&](const Builtin& one) { return one.name == name; });
    return at == among.end() ? nullptr : &*at;
}

}  // namespace fovea::chat
