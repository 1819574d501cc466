// Arithmetic and slices as Python has them, within 64 bits.
#include <algorithm>
#include <cmath>

#include "host/chat/interpreter.h"
#include "host/chat/text.h"

namespace fovea::chat {
namespace {

[[noreturn]] void fail_kinds(std::string_view sign, const Value& a, const Value& b) {
    fail(std::string(sign) + ": expected values it can take, got " + kind_of(a) + " and " + kind_of(b));
}

/// Rounds down, as Python divides; what remains has the divisor's sign.
std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

std::int64_t power(std::int64_t base, std::int64_t exponent, bool& overflow) {
    std::int64_t result = 1;
    if (base == 0 || base == 1) return exponent ? base : 1;
    if (base == -1) return exponent % 2 ? -1 : 1;
    for (; exponent > 0 && !overflow; --exponent) overflow = __builtin_mul_overflow(result, base, &result);
    return result;
}

Value compute_integers(std::string_view sign, std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    bool overflow = false;
    if (sign == "+") overflow = __builtin_add_overflow(a, b, &result);
    if (sign == "-") overflow = __builtin_sub_overflow(a, b, &result);
    if (sign == "*") overflow = __builtin_mul_overflow(a, b, &result);
    if (sign == "/" || sign == "//" || sign == "%") {
        if (b == 0) fail(std::string(sign) + ": expected a divisor other than 0, got 0");
        if (sign == "/") return static_cast<double>(a) / static_cast<double>(b);
        overflow = a == INT64_MIN && b == -1;
        if (!overflow) result = sign == "//" ? floor_divide(a, b) : a - floor_divide(a, b) * b;
    }
    if (sign == "**") {
        if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
        result = power(a, b, overflow);
    }
    if (overflow) fail(std::string(sign) + ": expected a result of 64 bits, got a larger one");
    return result;
}

Value compute_reals(std::string_view sign, double a, double b) {
    if (sign == "+") return a + b;
    if (sign == "-") return a - b;
    if (sign == "*") return a * b;
    if (sign == "**") return std::pow(a, b);
    if (b == 0) fail(std::string(sign) + ": expected a divisor other than 0, got 0");
    if (sign == "/") return a / b;
    if (sign == "//") return std::floor(a / b);
    return a - std::floor(a / b) * b;
}

Value repeat(Budget& budget, const Value& what, std::int64_t n) {
    const auto times = static_cast<std::uint64_t>(std::max<std::int64_t>(n, 0));
    const std::uint64_t size =
        is_text(what) ? text_of(what).size() : std::get<ListPointer>(what)->items.size() * sizeof(Value);
    std::uint64_t bytes = 0;
    budget.bytes(__builtin_mul_overflow(times, size, &bytes) ? UINT64_MAX : bytes);
    if (!size) return what;
    if (is_text(what)) {
        TaintedText text;
        for (std::uint64_t i = 0; i < times; ++i) text.add(tainted_of(what));
        return make_text(budget, std::move(text));
    }
    std::vector<Value> items;
    const List& list = *std::get<ListPointer>(what);
    for (std::uint64_t i = 0; i < times; ++i) items.insert(items.end(), list.items.begin(), list.items.end());
    return make_list(budget, std::move(items), list.is_tuple);
}

bool is_row(const Value& value) { return is_text(value) || is<ListPointer>(value); }

/// A bound of a slice: from the end if negative, and within [low, high].
std::int64_t clamp(const Value& bound, std::int64_t n, std::int64_t low, std::int64_t high, std::int64_t left_out) {
    if (is<None>(bound)) return left_out;
    const std::int64_t asked = integer_of(bound);
    return std::clamp(asked < 0 ? std::max(asked, -n - 1) + n : asked, low, high);
}

}  // namespace

Value compute(Budget& budget, std::string_view sign, const Value& a, const Value& b) {
    if (is_integer(a) && is_integer(b)) return compute_integers(sign, integer_of(a), integer_of(b));
    if (is_number(a) && is_number(b)) return compute_reals(sign, real_of(a), real_of(b));
    if (sign == "+" && is_text(a) && is_text(b)) {
        budget.bytes(text_of(a).size() + text_of(b).size());
        TaintedText text = tainted_of(a);
        text.add(tainted_of(b));
        return make_text(budget, std::move(text));
    }
    if (sign == "+" && is<ListPointer>(a) && is<ListPointer>(b)) {
        std::vector<Value> items = elements(budget, a);
        const List& more = *std::get<ListPointer>(b);
        budget.bytes(more.items.size() * sizeof(Value));
        items.insert(items.end(), more.items.begin(), more.items.end());
        return make_list(budget, std::move(items), std::get<ListPointer>(a)->is_tuple);
    }
    if (sign == "*" && is_row(a) && is_integer(b)) return repeat(budget, a, integer_of(b));
    if (sign == "*" && is_row(b) && is_integer(a)) return repeat(budget, b, integer_of(a));
    fail_kinds(sign, a, b);
}

bool compare(Budget& budget, std::string_view sign, const Value& a, const Value& b) {
    if (sign == "==" || sign == "!=") return equal(budget, a, b) == (sign == "==");
    if (sign == "in" || sign == "not in") return contains(budget, b, a) == (sign == "in");
    const bool is_turned = sign.starts_with('>');
    return less(budget, is_turned ? b : a, is_turned ? a : b) || (sign.size() == 2 && equal(budget, a, b));
}

Value slice(Budget& budget, const Value& value, const Value& start, const Value& stop, const Value& step) {
    if (!is_row(value)) fail("[:]: expected a text or a list, got " + kind_of(value));
    const std::int64_t by = is<None>(step) ? 1 : integer_of(step);
    if (by == 0) fail("[:]: expected a step other than 0, got 0");
    const std::int64_t n = length(budget, value), low = by > 0 ? 0 : -1, high = by > 0 ? n : n - 1;
    const std::int64_t from = clamp(start, n, low, high, by > 0 ? 0 : n - 1),
                       to = clamp(stop, n, low, high, by > 0 ? n : -1);
    const std::int64_t span = by > 0 ? to - from : from - to;
    const std::int64_t stride = by > 0 ? by : by == INT64_MIN ? INT64_MAX : -by;
    const std::int64_t count = span <= 0 ? 0 : (span - 1) / stride + 1;
    const auto index = [&](std::int64_t i) {
        return static_cast<std::size_t>(by > 0 ? from + i * stride : from - i * stride);
    };
    if (const auto* list = std::get_if<ListPointer>(&value)) {
        std::vector<Value> items;
        budget.bytes(static_cast<std::uint64_t>(count) * sizeof(Value));
        for (std::int64_t i = 0; i < count; ++i) items.push_back((*list)->items[index(i)]);
        return make_list(budget, std::move(items), (*list)->is_tuple);
    }
    const std::string_view text = text_of(value);
    TaintedText taken;
    if (static_cast<std::size_t>(n) == text.size()) {  // a byte each
        if (by == 1 && count > 0)
            return make_text(budget, tainted_of(value).part(text.substr(index(0), index(count) - index(0))));
        for (std::int64_t i = 0; i < count; ++i) taken.add(tainted_of(value).part(text.substr(index(i), 1)));
    } else {
        budget.steps(text.size());
        budget.bytes(text.size() * sizeof(std::string_view));
        const std::vector<std::string_view> all = characters(text);
        for (std::int64_t i = 0; i < count; ++i) taken.add(tainted_of(value).part(all[index(i)]));
    }
    return make_text(budget, std::move(taken));
}

Value path_of(Interpreter& run, const Value& value, const Value& path) {
    if (!is_text(path)) return run.item_of(value, path);
    Value at = value;
    std::string_view rest = text_of(path);
    for (bool more = true; more;) {
        const std::size_t dot = rest.find('.');
        const std::string_view part = rest.substr(0, dot);
        const bool is_index = !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
        run.budget().bytes(part.size());
        at = run.item_of(at, is_index ? Value(static_cast<std::int64_t>(std::stoll(std::string(part))))
                                      : Value(std::make_shared<const TaintedText>(std::string(part))));
        more = dot != rest.npos;
        if (more) rest.remove_prefix(dot + 1);
    }
    return at;
}

}  // namespace fovea::chat
