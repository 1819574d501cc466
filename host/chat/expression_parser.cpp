#include "host/chat/expression_parser.h"

#include <algorithm>
#include <charconv>

#include "host/base/decimal.h"
#include "host/chat/parser.h"

namespace fovea::chat {
namespace {

ExpressionPointer constant(std::uint32_t line, Value value) {
    auto made = std::make_unique<Expression>();
    made->line = line;
    made->constant = std::move(value);
    return made;
}

}  // namespace

void TokenReader::refuse(const std::string& wanted) const {
    static constexpr const char* kKinds[] = {"text outside tags", "{{", "}}", "{%", "%}", "", "a text", "", "", "",
                                             "the template's end"};
    const Token& token = peek();
    const std::string kind = kKinds[static_cast<std::size_t>(token.kind)];
    throw ChatTemplateError("line " + std::to_string(token.line) + ": expected " + wanted + ", got " +
                            (kind.empty() ? token.text : kind));
}

/// Counts expressions within each other while they are parsed.
struct ExpressionParser::Deeper {
    explicit Deeper(ExpressionParser& parser) : depth(parser.depth_) {
        if (++depth > kMostHeight) {
            --depth;
            parser.tokens_.refuse("at most " + std::to_string(kMostHeight) + " expressions within each other");
        }
    }
    ~Deeper() { --depth; }
    std::uint32_t& depth;
};

ExpressionParser::Made ExpressionParser::make(ExpressionKind kind, std::uint32_t line, ExpressionPointer first,
                                              std::string name) const {
    auto made = std::make_unique<Expression>();
    made->kind = kind;
    made->line = line;
    made->name = std::move(name);
    if (first) made->operands.push_back(std::move(first));
    return made;
}

ExpressionPointer ExpressionParser::finish(Made made) const {
    std::uint32_t height = 0;
    for (const auto& operand : made->operands)
        if (operand) height = std::max(height, operand->height);
    for (const auto& named : made->named) height = std::max(height, named.second->height);
    made->height = height + 1;
    if (made->height > kMostHeight)
        tokens_.refuse("at most " + std::to_string(kMostHeight) + " expressions within each other");
    if (!made->name.empty()) made->shared_name = std::make_shared<const std::string>(made->name);
    return made;
}

ExpressionPointer ExpressionParser::negated(ExpressionPointer of, std::uint32_t line) const {
    return finish(make(ExpressionKind::logic, line, std::move(of), "not"));
}

ExpressionPointer ExpressionParser::parse_left(std::initializer_list<std::string_view> names, ExpressionKind kind,
                                               Parse tighter) {
    ExpressionPointer left = (this->*tighter)();
    while (tokens_.is_one_of(names)) {
        const std::uint32_t line = left->line;
        Made made = make(kind, line, std::move(left), tokens_.take().text);
        made->operands.push_back((this->*tighter)());
        left = finish(std::move(made));
    }
    return left;
}

ExpressionPointer ExpressionParser::parse(bool with_condition) {
    const Deeper deeper(*this);
    ExpressionPointer value = parse_or();
    while (with_condition && tokens_.take_name("if")) {
        const std::uint32_t line = value->line;
        Made made = make(ExpressionKind::condition, line, std::move(value));
        made->operands.push_back(parse_or());
        made->operands.push_back(tokens_.take_name("else") ? parse() : nullptr);
        value = finish(std::move(made));
    }
    return value;
}

ExpressionPointer ExpressionParser::parse_tuple(bool with_condition) {
    ExpressionPointer first = parse(with_condition);
    if (!tokens_.is_sign(",")) return first;
    const std::uint32_t line = first->line;
    Made made = make(ExpressionKind::tuple, line, std::move(first));
    while (tokens_.take_sign(",")) {
        if (tokens_.is_sign(")") || tokens_.is(TokenKind::block_end) || tokens_.is(TokenKind::print_end)) break;
        made->operands.push_back(parse(with_condition));
    }
    return finish(std::move(made));
}

ExpressionPointer ExpressionParser::parse_or() {
    return parse_left({"or"}, ExpressionKind::logic, &ExpressionParser::parse_and);
}

ExpressionPointer ExpressionParser::parse_and() {
    return parse_left({"and"}, ExpressionKind::logic, &ExpressionParser::parse_not);
}

ExpressionPointer ExpressionParser::parse_not() {
    if (!tokens_.is_name("not")) return parse_compare();
    const Deeper deeper(*this);
    const std::uint32_t line = tokens_.take().line;
    return negated(parse_not(), line);
}

ExpressionPointer ExpressionParser::parse_compare() {
    ExpressionPointer first = parse_sum();
    const std::uint32_t line = first->line;
    Made made = make(ExpressionKind::compare, line, std::move(first));
    for (;;) {
        if (tokens_.is_one_of({"==", "!=", "<", "<=", ">", ">=", "in"})) {
            made->operators.push_back(tokens_.take().text);
        } else if (tokens_.is_name("not") && tokens_.is_next(TokenKind::name, "in")) {
            tokens_.take();
            tokens_.take();
            made->operators.emplace_back("not in");
        } else {
            break;
        }
        made->operands.push_back(parse_sum());
    }
    if (made->operators.empty()) return std::move(made->operands.front());
    return finish(std::move(made));
}

ExpressionPointer ExpressionParser::parse_sum() {
    return parse_left({"+", "-"}, ExpressionKind::arithmetic, &ExpressionParser::parse_concat);
}

ExpressionPointer ExpressionParser::parse_concat() {
    ExpressionPointer first = parse_product();
    if (!tokens_.is_sign("~")) return first;
    const std::uint32_t line = first->line;
    Made made = make(ExpressionKind::concat, line, std::move(first));
    while (tokens_.take_sign("~")) made->operands.push_back(parse_product());
    return finish(std::move(made));
}

ExpressionPointer ExpressionParser::parse_product() {
    return parse_left({"*", "/", "//", "%"}, ExpressionKind::arithmetic, &ExpressionParser::parse_power);
}

ExpressionPointer ExpressionParser::parse_power() {
    return parse_left({"**"}, ExpressionKind::arithmetic, &ExpressionParser::parse_operand);
}

ExpressionPointer ExpressionParser::parse_operand() { return parse_filters(parse_unary()); }

ExpressionPointer ExpressionParser::parse_unary() {
    if (!tokens_.is_sign("-") && !tokens_.is_sign("+")) return parse_postfix(parse_primary());
    const Deeper deeper(*this);
    const Token sign = tokens_.take();
    return finish(make(ExpressionKind::arithmetic, sign.line, parse_unary(), sign.text));
}

ExpressionPointer ExpressionParser::parse_primary() {
    const std::uint32_t line = tokens_.peek().line;
    if (tokens_.is(TokenKind::name)) return parse_name();
    if (tokens_.is(TokenKind::text)) {
        std::string text;  // neighbours join
        while (tokens_.is(TokenKind::text)) text += tokens_.take().text;
        return constant(line, std::make_shared<const TaintedText>(std::move(text)));
    }
    if (tokens_.is(TokenKind::integer) || tokens_.is(TokenKind::real)) return parse_number();
    if (tokens_.is_sign("[")) return parse_items(ExpressionKind::list, "]");
    if (tokens_.is_sign("{")) return parse_items(ExpressionKind::dict, "}");
    if (!tokens_.take_sign("(")) tokens_.refuse("an expression");
    if (tokens_.take_sign(")")) return finish(make(ExpressionKind::tuple, line));
    ExpressionPointer inner = parse_tuple();
    tokens_.need_sign(")");
    return inner;
}

ExpressionPointer ExpressionParser::parse_name() {
    Token token = tokens_.take();
    if (token.text == "true" || token.text == "True") return constant(token.line, true);
    if (token.text == "false" || token.text == "False") return constant(token.line, false);
    if (token.text == "none" || token.text == "None") return constant(token.line, None{});
    return finish(make(ExpressionKind::name, token.line, nullptr, std::move(token.text)));
}

ExpressionPointer ExpressionParser::parse_number() {
    const std::string& text = tokens_.peek().text;
    std::int64_t integer = 0;
    double real = 0;
    const bool is_integer = tokens_.is(TokenKind::integer);
    if (is_integer ? std::from_chars(text.data(), text.data() + text.size(), integer).ec != std::errc{}
                   : !read_decimal(text, real))
        tokens_.refuse("a number of 64 bits");
    const std::uint32_t line = tokens_.take().line;
    return is_integer ? constant(line, integer) : constant(line, real);
}

ExpressionPointer ExpressionParser::parse_items(ExpressionKind kind, std::string_view close) {
    Made made = make(kind, tokens_.take().line);
    while (!tokens_.take_sign(close)) {
        if (!made->operands.empty()) {
            tokens_.need_sign(",");
            if (tokens_.take_sign(close)) break;
        }
        made->operands.push_back(parse());
        if (kind != ExpressionKind::dict) continue;
        tokens_.need_sign(":");
        made->operands.push_back(parse());
    }
    return finish(std::move(made));
}

ExpressionPointer ExpressionParser::parse_postfix(ExpressionPointer of) {
    for (;;) {
        const std::uint32_t line = tokens_.peek().line;
        if (tokens_.take_sign(".")) {
            const bool is_item = tokens_.is(TokenKind::integer);
            Made made = make(is_item ? ExpressionKind::item : ExpressionKind::attribute, line, std::move(of));
            if (is_item)
                made->operands.push_back(parse_number());
            else
                made->name = tokens_.need_any_name("a name after .");
            of = finish(std::move(made));
        } else if (tokens_.is_sign("[")) {
            of = parse_subscript(std::move(of));
        } else if (tokens_.is_sign("(")) {
            Made made = make(ExpressionKind::call, line, std::move(of));
            parse_arguments(*made);
            of = finish(std::move(made));
        } else {
            return of;
        }
    }
}

ExpressionPointer ExpressionParser::parse_subscript(ExpressionPointer of) {
    const std::uint32_t line = tokens_.take().line;
    ExpressionPointer parts[3];
    std::size_t n = 0;
    bool is_slice = false;
    while (!tokens_.is_sign("]")) {
        if (tokens_.take_sign(":")) {
            is_slice = true;
            if (++n > 2) tokens_.refuse("]");
        } else {
            if (parts[n]) tokens_.refuse("]");
            parts[n] = is_slice ? parse() : parse_tuple();
        }
    }
    if (!is_slice && !parts[0]) tokens_.refuse("an expression");
    tokens_.take();
    Made made = make(is_slice ? ExpressionKind::slice : ExpressionKind::item, line, std::move(of));
    for (std::size_t i = 0; i < (is_slice ? 3u : 1u); ++i) made->operands.push_back(std::move(parts[i]));
    return finish(std::move(made));
}

ExpressionPointer ExpressionParser::parse_filters(ExpressionPointer of) {
    for (;;) {
        if (tokens_.take_sign("|")) {
            of = parse_filter(std::move(of));
        } else if (tokens_.is_name("is")) {
            of = parse_test(std::move(of));
        } else if (tokens_.is_sign("(")) {
            of = parse_postfix(std::move(of));
        } else {
            return of;
        }
    }
}

ExpressionPointer ExpressionParser::parse_filter(ExpressionPointer of) {
    Made made = make(ExpressionKind::filter, tokens_.peek().line);
    made->name = tokens_.need_any_name("a filter's name");
    made->operands.push_back(std::move(of));
    if (tokens_.is_sign("(")) parse_arguments(*made);
    return finish(std::move(made));
}

ExpressionPointer ExpressionParser::parse_block_filters() {
    ExpressionPointer filters = parse_filter(nullptr);
    while (tokens_.take_sign("|")) filters = parse_filter(std::move(filters));
    return filters;
}

ExpressionPointer ExpressionParser::parse_test(ExpressionPointer of) {
    Made made = make(ExpressionKind::test, tokens_.take().line);
    const bool is_not = tokens_.take_name("not");
    made->name = tokens_.need_any_name("a test's name");
    made->operands.push_back(std::move(of));
    const auto begins_argument = [&] {
        if (tokens_.is(TokenKind::name))
            return !tokens_.is_one_of({"else", "or", "and", "is", "if", "in", "not", "recursive"});
        return tokens_.is(TokenKind::text) || tokens_.is(TokenKind::integer) || tokens_.is(TokenKind::real) ||
               tokens_.is_one_of({"[", "{"});
    };
    if (tokens_.is_sign("(")) {
        parse_arguments(*made);
    } else if (begins_argument()) {
        const Deeper deeper(*this);
        made->operands.push_back(parse_postfix(parse_primary()));
    }
    const std::uint32_t line = made->line;
    ExpressionPointer test = finish(std::move(made));
    return is_not ? negated(std::move(test), line) : std::move(test);
}

void ExpressionParser::parse_arguments(Expression& call) {
    tokens_.need_sign("(");
    for (bool first = true; !tokens_.take_sign(")"); first = false) {
        if (!first) {
            tokens_.need_sign(",");
            if (tokens_.take_sign(")")) return;
        }
        if (tokens_.is_one_of({"*", "**"})) tokens_.refuse("arguments one by one");
        if (tokens_.is(TokenKind::name) && tokens_.is_next(TokenKind::sign, "=")) {
            std::string name = tokens_.take().text;
            tokens_.take();
            call.named.emplace_back(std::move(name), parse());
        } else {
            if (!call.named.empty()) tokens_.refuse("a named argument after a named one");
            call.operands.push_back(parse());
        }
    }
}

}  // namespace fovea::chat
