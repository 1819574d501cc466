// Expressions of templates, in Jinja's order of precedence.
#pragma once
#include <initializer_list>

#include "host/chat/syntax.h"
#include "host/chat/token_reader.h"

namespace fovea::chat {

class ExpressionParser {
public:
    explicit ExpressionParser(TokenReader& tokens) : tokens_(tokens) {}

    /// One expression; `a if b else c` among them unless told otherwise.
    ExpressionPointer parse(bool with_condition = true);
    /// One, or with commas a tuple.
    ExpressionPointer parse_tuple(bool with_condition = true);
    /// `|filter|filter` behind `operand`, which is null if a block's text comes there; at least one name was read.
    ExpressionPointer parse_block_filters();

private:
    struct Deeper;
    using Made = std::unique_ptr<Expression>;
    using Parse = ExpressionPointer (ExpressionParser::*)();
    /// An expression of which `first`, if it is not null, is the first operand; finish() checks it when it is whole.
    [[nodiscard]] Made make(ExpressionKind kind, std::uint32_t line, ExpressionPointer first = nullptr,
                            std::string name = {}) const;
    ExpressionPointer finish(Made made) const;
    ExpressionPointer negated(ExpressionPointer of, std::uint32_t line) const;
    /// Operators of one precedence, which bind from the left; `tighter` parses their operands.
    ExpressionPointer parse_left(std::initializer_list<std::string_view> names, ExpressionKind kind, Parse tighter);

    ExpressionPointer parse_or();
    ExpressionPointer parse_and();
    ExpressionPointer parse_not();
    ExpressionPointer parse_compare();
    ExpressionPointer parse_sum();
    ExpressionPointer parse_concat();
    ExpressionPointer parse_product();
    ExpressionPointer parse_power();
    ExpressionPointer parse_operand();
    ExpressionPointer parse_unary();
    ExpressionPointer parse_primary();
    ExpressionPointer parse_name();
    ExpressionPointer parse_number();
    ExpressionPointer parse_items(ExpressionKind kind, std::string_view close);
    ExpressionPointer parse_postfix(ExpressionPointer of);
    ExpressionPointer parse_subscript(ExpressionPointer of);
    ExpressionPointer parse_filters(ExpressionPointer of);
    ExpressionPointer parse_filter(ExpressionPointer of);
    ExpressionPointer parse_test(ExpressionPointer of);
    void parse_arguments(Expression& call);

    TokenReader& tokens_;
    std::uint32_t depth_ = 0;
};

}  // namespace fovea::chat
