// Expressions.
#include <algorithm>
#include <string_view>

#include "host/chat/interpreter.h"

namespace fovea::chat {

Value Interpreter::evaluate(const Expression& expression) {
    if (depth_ >= budget_.depth())
        fail("expected at most " + std::to_string(budget_.depth()) +
             " calls and expressions within each other, got more");
    ++depth_;
    line_ = expression.line ? expression.line : line_;
    budget_.steps(1);
    // If this throws the rendering ends, and depth_ with it.
    Value value = evaluate_plain(expression);
    --depth_;
    return value;
}

Value Interpreter::evaluate_plain(const Expression& e) {
    switch (e.kind) {
        case ExpressionKind::constant: return e.constant;
        case ExpressionKind::name: return evaluate_name(e);
        case ExpressionKind::list:
        case ExpressionKind::tuple: return evaluate_list(e);
        case ExpressionKind::dict: return evaluate_dict(e);
        case ExpressionKind::attribute: return attribute_of(evaluate(*e.operands[0]), e.name);
        case ExpressionKind::item: {
            const Value of = evaluate(*e.operands[0]);
            return item_of(of, evaluate(*e.operands[1]));
        }
        case ExpressionKind::slice: return evaluate_slice(e);
        case ExpressionKind::call: return evaluate_call(e);
        case ExpressionKind::filter: return evaluate_filter(e, nullptr);
        case ExpressionKind::test: {
            const Value of = evaluate(*e.operands[0]);
            return apply_test(e.name, of, arguments_of(e));
        }
        case ExpressionKind::arithmetic: {
            const Value a = evaluate(*e.operands[0]);
            if (e.operands.size() == 1) {
                if (const double* real = std::get_if<double>(&a); real && e.name == "-") return -*real;
                return compute(budget_, e.name, std::int64_t{0}, a);
            }
            return compute(budget_, e.name, a, evaluate(*e.operands[1]));
        }
        case ExpressionKind::logic: return evaluate_logic(e);
        case ExpressionKind::concat: return evaluate_concat(e);
        case ExpressionKind::compare: return evaluate_compare(e);
        case ExpressionKind::condition: return evaluate_condition(e);
    }
    return Undefined{};
}

Value Interpreter::evaluate_name(const Expression& e) {
    const Value* value = find_variable(e.name);
    return value ? *value : Value(Undefined{e.shared_name});
}

Value Interpreter::evaluate_list(const Expression& e) {
    std::vector<Value> items;
    for (const auto& operand : e.operands) items.push_back(evaluate(*operand));
    return make_list(budget_, std::move(items), e.kind == ExpressionKind::tuple);
}

Value Interpreter::evaluate_dict(const Expression& e) {
    std::vector<std::pair<Value, Value>> entries;
    for (std::size_t i = 0; i < e.operands.size(); i += 2) {
        Value key = evaluate(*e.operands[i]), value = evaluate(*e.operands[i + 1]);
        budget_.steps(entries.size() / 8);
        const auto at = std::find_if(entries.begin(), entries.end(),
                                     [&](const auto& one) { return equal(budget_, one.first, key); });
        if (at != entries.end()) {
            at->second = std::move(value);
        } else {
            entries.emplace_back(std::move(key), std::move(value));
        }
    }
    return make_dict(budget_, std::move(entries));
}

Value Interpreter::evaluate_slice(const Expression& e) {
    const Value of = evaluate(*e.operands[0]);
    Value bounds[3] = {None{}, None{}, None{}};
    for (std::size_t i = 0; i < 3; ++i)
        if (e.operands[i + 1]) bounds[i] = evaluate(*e.operands[i + 1]);
    return slice(budget_, of, bounds[0], bounds[1], bounds[2]);
}

Arguments Interpreter::arguments_of(const Expression& e) {
    Arguments arguments;
    for (std::size_t i = 1; i < e.operands.size(); ++i) arguments.positional.push_back(evaluate(*e.operands[i]));
    for (const auto& [name, operand] : e.named) arguments.named.emplace_back(name, evaluate(*operand));
    return arguments;
}

Value Interpreter::evaluate_call(const Expression& e) {
    const Value callee = evaluate(*e.operands[0]);
    if (is_undefined(callee)) fail("call: expected a function, got " + kind_of(callee));
    return call(callee, arguments_of(e));
}

Value Interpreter::evaluate_filter(const Expression& e, const Value* block_text) {
    Value of;
    if (!e.operands[0]) {
        of = *block_text;
    } else if (block_text && e.operands[0]->kind == ExpressionKind::filter) {
        of = evaluate_filter(*e.operands[0], block_text);
    } else {
        of = evaluate(*e.operands[0]);
    }
    return apply_filter(e.name, of, arguments_of(e));
}

Value Interpreter::evaluate_logic(const Expression& e) {
    Value first = evaluate(*e.operands[0]);
    if (e.name == "not") return !truthy(first);
    if (truthy(first) == (e.name == "or")) return first;
    return evaluate(*e.operands[1]);
}

Value Interpreter::evaluate_concat(const Expression& e) {
    TaintedText text;
    for (const auto& operand : e.operands) text.add(to_text(budget_, evaluate(*operand)));
    return make_text(budget_, std::move(text));
}

Value Interpreter::evaluate_compare(const Expression& e) {
    Value left = evaluate(*e.operands[0]);
    for (std::size_t i = 0; i < e.operators.size(); ++i) {
        Value right = evaluate(*e.operands[i + 1]);
        if (!compare(budget_, e.operators[i], left, right)) return false;
        left = std::move(right);
    }
    return true;
}

Value Interpreter::evaluate_condition(const Expression& e) {
    if (truthy(evaluate(*e.operands[1]))) return evaluate(*e.operands[0]);
    return e.operands[2] ? evaluate(*e.operands[2]) : Value(Undefined{});
}

// ---- what values have inside -----------------------------------------------------------------------------------------

Value Interpreter::attribute_of(const Value& of, std::string_view name) {
    const auto nothing = [&]() -> Value { return Undefined{std::make_shared<const std::string>(name)}; };
    if (is_undefined(of)) fail("." + std::string(name) + ": expected a value that has it, got " + kind_of(of));
    if (const auto* loop = std::get_if<Loop*>(&of)) return loop_attribute(**loop, name);
    if (const auto* space = std::get_if<Namespace*>(&of)) {
        const Value* value = find(budget_, (*space)->attributes, name);
        return value ? *value : nothing();
    }
    if (const Builtin* method = find_method(of, name)) return bound(*method, of);
    if (const auto* dict = std::get_if<DictPointer>(&of))
        if (const Value* value = find(budget_, **dict, name)) return *value;
    return nothing();
}

Value Interpreter::item_of(const Value& of, const Value& key) {
    if (is_undefined(of)) fail("[]: expected a value that has items, got " + kind_of(of));
    if (const auto* dict = std::get_if<DictPointer>(&of))
        if (const Value* value = find(budget_, **dict, key)) return *value;
    if (is_integer(key) && (is_text(of) || is<ListPointer>(of))) {
        const std::int64_t n = length(budget_, of), asked = integer_of(key), at = asked < 0 ? asked + n : asked;
        if (at < 0 || at >= n) return Undefined{};
        if (const auto* list = std::get_if<ListPointer>(&of)) return (*list)->items[static_cast<std::size_t>(at)];
        return slice(budget_, of, at, at + 1, None{});
    }
    return is_text(key) ? attribute_of(of, text_of(key)) : Value(Undefined{});
}

Value Interpreter::loop_attribute(Loop& loop, std::string_view name) {
    const auto number = [](std::size_t n) -> Value { return static_cast<std::int64_t>(n); };
    if (name == "index") return number(loop.index + 1);
    if (name == "index0") return number(loop.index);
    if (name == "revindex") return number(loop.n_items - loop.index);
    if (name == "revindex0") return number(loop.n_items - loop.index - 1);
    if (name == "first") return loop.index == 0;
    if (name == "last") return loop.index + 1 == loop.n_items;
    if (name == "length") return number(loop.n_items);
    if (name == "depth") return static_cast<std::int64_t>(loop.depth) + 1;
    if (name == "depth0") return static_cast<std::int64_t>(loop.depth);
    if (name == "previtem" && loop.index > 0 && loop.index <= loop.items.size()) return loop.items[loop.index - 1];
    if (name == "nextitem" && loop.index + 1 < loop.items.size()) return loop.items[loop.index + 1];
    if (const Builtin* method = find_method(&loop, name)) return bound(*method, &loop);
    return Undefined{std::make_shared<const std::string>(name)};
}

}  // namespace fovea::chat
