// A template that has been read: statements that hold expressions.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/chat/value.h"

namespace fovea::chat {

enum class ExpressionKind : std::uint8_t {
    constant,
    name,
    list,  ///< operands are its items
    tuple,
    dict,        ///< keys and values by turns
    attribute,   ///< x.name
    item,        ///< x[y]
    slice,       ///< x, start, stop, step; null if left out
    call,        ///< function, arguments; named ones apart
    filter,      ///< x, null in a block's; arguments
    test,        ///< x, arguments
    arithmetic,  ///< name is the operator; one operand: a sign
    logic,       ///< and, or, not
    concat,      ///< ~
    compare,     ///< operators between the operands
    condition,   ///< then, if, else; else may be null
};

struct Expression;
using ExpressionPointer = std::unique_ptr<const Expression>;

struct Expression {
    ExpressionKind kind = ExpressionKind::constant;
    std::uint32_t line = 0;
    std::uint32_t height =
        1;  ///< of the expressions within it, and itself; bounded, for evaluating and freeing recurse
    std::string name;
    std::shared_ptr<const std::string> shared_name;  ///< the same, for messages
    Value constant = None{};
    std::vector<ExpressionPointer> operands;
    std::vector<std::pair<std::string, ExpressionPointer>> named;
    std::vector<std::string> operators;
};

enum class StatementKind : std::uint8_t {
    data,
    print,
    choice,       ///< if: a condition for each body, and maybe a last body without
    loop,         ///< for target in expressions[0] if expressions[1], which may be null: bodies[0], else bodies[1]
    set,          ///< targets = expressions[0]
    set_body,     ///< target = bodies[0], through expressions[0] if there are filters
    macro,        ///< name, parameters, bodies[0]
    call_body,    ///< expressions[0], a call, with bodies[0] as caller
    filter_body,  ///< expressions[0], filters, of bodies[0]
    with,         ///< parameters, bodies[0]
    scope,        ///< bodies[0]: {% generation %}
    break_loop,
    continue_loop,
};

struct Statement;
struct Block {
    std::vector<std::unique_ptr<const Statement>> statements;
};

/// A name with its default or value; null: none.
using Parameter = std::pair<std::string, ExpressionPointer>;

struct Statement {
    StatementKind kind = StatementKind::data;
    std::uint32_t line = 0;
    bool recursive = false;  ///< of a loop
    std::string text;        ///< data, or a macro's name
    /// Where a value goes: names, taken apart if there are several; or a namespace's attribute, "space", "name".
    std::vector<std::string> targets;
    bool sets_attribute = false;
    std::vector<ExpressionPointer> expressions;
    std::vector<Parameter> parameters;
    std::vector<Block> bodies;
};

}  // namespace fovea::chat
