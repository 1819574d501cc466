#include "host/chat/expression_parser.h"

#include <algorithm>
#include <charconv>

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

ExpressionParser::Made ExpressionParser::make(ExpressionKind kind, std::uint32_t line) const {
    auto made = std::make_unique<Expression>();
    made->kind = kind;
    made->line = line;
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

ExpressionPointer ExpressionParser::binary(ExpressionKind kind, std::string name, ExpressionPointer a,
                                           ExpressionPointer b) const {
    Made made = make(kind, a->line);
    made->name = std::move(name);
    made->operands.push_back(std::move(a));
    made->operands.push_back(std::move(b));
    return finish(std::move(made));
}

ExpressionPointer ExpressionParser::parse(bool with_condition) {
    const Deeper deeper(*this);
    ExpressionPointer value = parse_or();
    while (with_condition && tokens_.take_name("if")) {
        Made made = make(ExpressionKind::condition, value->line);
        made->operands.push_back(std::move(value));
        made->operands.push_back(parse_or());
        made->operands.push_back(tokens_.take_name("else") ? parse() : nullptr);
        value = finish(std::move(made));
    }
    return value;
}

ExpressionPointer ExpressionParser::parse_tuple(bool with_condition) {
    ExpressionPointer first = parse(with_condition);
    if (!tokens_.is_sign(",")) return first;
    Made made = make(ExpressionKind::tuple, first->line);
    made->operands.push_back(std::move(first));
    while (tokens_.take_sign(",")) {
        if (tokens_.is_sign(")") || tokens_.is(TokenKind::block_end) || tokens_.is(TokenKind::print_end)) break;
        made->operands.push_back(parse(with_condition));
    }
    return finish(std::move(made));
}

ExpressionPointer ExpressionParser::parse_or() {
    ExpressionPointer left = parse_and();
    while (tokens_.take_name("or")) left = binary(ExpressionKind::logic, "or", std::move(left), parse_and());
    return left;
}

ExpressionPointer ExpressionParser::parse_and() {
    ExpressionPointer left = parse_not();
    while (tokens_.take_name("and")) left = binary(ExpressionKind::logic, "and", std::move(left), parse_not());
    return left;
}

ExpressionPointer ExpressionParser::parse_not() {
    if (!tokens_.is_name("not")) return parse_compare();
    const Deeper deeper(*this);
    Made made = make(ExpressionKind::logic, tokens_.take().line);
    made->name = "not";
    made->operands.push_back(parse_not());
    return finish(std::move(made));
}

ExpressionPointer ExpressionParser::parse_compare() {
    ExpressionPointer first = parse_sum();
    Made made = make(ExpressionKind::compare, first->line);
    made->operands.push_back(std::move(first));
    const auto is_operator = [&] {
        static constexpr std::string_view kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
        return tokens_.is(TokenKind::sign) &&
               std::find(std::begin(kOperators), std::end(kOperators), tokens_.peek().text) != std::end(kOperators);
    };
    for (;;) {
        if (is_operator()) {
            made->operators.push_back(tokens_.take().text);
        } else if (tokens_.take_name("in")) {
            made->operators.emplace_back("in");
        } else if (tokens_.is_name("not") && tokens_.peek_next().kind == TokenKind::name &&
                   tokens_.peek_next().text == "in") {
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
    ExpressionPointer left = parse_concat();
    while (tokens_.is_sign("+") || tokens_.is_sign("-")) {
        std::string sign = tokens_.take().text;
        left = binary(ExpressionKind::arithmetic, std::move(sign), std::move(left), parse_concat());
    }
    return left;
}

ExpressionPointer ExpressionParser::parse_concat() {
    ExpressionPointer first = parse_product();
    if (!tokens_.is_sign("~")) return first;
    Made made = make(ExpressionKind::concat, first->line);
    made->operands.push_back(std::move(first));
    while (tokens_.take_sign("~")) made->operands.push_back(parse_product());
    return finish(std::move(made));
}

ExpressionPointer ExpressionParser::parse_product() {
    ExpressionPointer left = parse_power();
    while (tokens_.is_sign("*") || tokens_.is_sign("/") || tokens_.is_sign("//") || tokens_.is_sign("%")) {
        std::string sign = tokens_.take().text;
        left = binary(ExpressionKind::arithmetic, std::move(sign), std::move(left), parse_power());
    }
    return left;
}

ExpressionPointer ExpressionParser::parse_power() {
    ExpressionPointer left = parse_unary();
    while (tokens_.take_sign("**")) left = binary(ExpressionKind::arithmetic, "**", std::move(left), parse_unary());
    return left;
}

ExpressionPointer ExpressionParser::parse_unary(bool with_filters) {
    ExpressionPointer value;
    if (tokens_.is_sign("-") || tokens_.is_sign("+")) {
        const Deeper deeper(*this);
        const Token sign = tokens_.take();
        Made made = make(ExpressionKind::arithmetic, sign.line);
        made->name = sign.text;
        made->operands.push_back(parse_unary(false));
        value = finish(std::move(made));
    } else {
        value = parse_primary();
    }
    value = parse_postfix(std::move(value));
    return with_filters ? parse_filters(std::move(value)) : std::move(value);
}

ExpressionPointer ExpressionParser::parse_primary() {
    const std::uint32_t line = tokens_.peek().line;
    if (tokens_.is(TokenKind::name)) return parse_name();
    if (tokens_.is(TokenKind::text)) {
        std::string text;  // neighbours join
        while (tokens_.is(TokenKind::text)) text += tokens_.take().text;
        return constant(line, std::make_shared<const std::string>(std::move(text)));
    }
    if (tokens_.is(TokenKind::integer) || tokens_.is(TokenKind::real)) return parse_number();
    if (tokens_.is_sign("[")) return parse_list();
    if (tokens_.is_sign("{")) return parse_dict();
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
    Made made = make(ExpressionKind::name, token.line);
    made->name = std::move(token.text);
    return finish(std::move(made));
}

ExpressionPointer ExpressionParser::parse_number() {
    const Token& token = tokens_.peek();
    const char *begin = token.text.data(), *end = begin + token.text.size();
    Value value;
    std::errc error{};
    if (token.kind == TokenKind::integer) {
        std::int64_t integer = 0;
        error = std::from_chars(begin, end, integer).ec;
        value = integer;
    } else {
        double real = 0;
        error = std::from_chars(begin, end, real).ec;
        value = real;
    }
    if (error != std::errc{}) tokens_.refuse("a number of 64 bits");
    return constant(tokens_.take().line, value);
}

ExpressionPointer ExpressionParser::parse_list() {
    Made made = make(ExpressionKind::list, tokens_.take().line);
    while (!tokens_.take_sign("]")) {
        if (!made->operands.empty()) {
            tokens_.need_sign(",");
            if (tokens_.take_sign("]")) break;
        }
        made->operands.push_back(parse());
    }
    return finish(std::move(made));
}

ExpressionPointer ExpressionParser::parse_dict() {
    Made made = make(ExpressionKind::dict, tokens_.take().line);
    while (!tokens_.take_sign("}")) {
        if (!made->operands.empty()) {
            tokens_.need_sign(",");
            if (tokens_.take_sign("}")) break;
        }
        made->operands.push_back(parse());
        tokens_.need_sign(":");
        made->operands.push_back(parse());
    }
    return finish(std::move(made));
}

ExpressionPointer ExpressionParser::parse_postfix(ExpressionPointer of) {
    for (;;) {
        const std::uint32_t line = tokens_.peek().line;
        if (tokens_.take_sign(".")) {
            Made made = make(tokens_.is(TokenKind::integer) ? ExpressionKind::item : ExpressionKind::attribute, line);
            made->operands.push_back(std::move(of));
            if (tokens_.is(TokenKind::integer)) {
                made->operands.push_back(parse_number());
            } else {
                made->name = tokens_.need_any_name("a name after .");
            }
            of = finish(std::move(made));
        } else if (tokens_.is_sign("[")) {
            of = parse_subscript(std::move(of));
        } else if (tokens_.is_sign("(")) {
            Made made = make(ExpressionKind::call, line);
            made->operands.push_back(std::move(of));
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
    Made made = make(is_slice ? ExpressionKind::slice : ExpressionKind::item, line);
    made->operands.push_back(std::move(of));
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
    const bool negated = tokens_.take_name("not");
    made->name = tokens_.need_any_name("a test's name");
    made->operands.push_back(std::move(of));
    const auto begins_argument = [&] {
        if (tokens_.is_name("else") || tokens_.is_name("or") || tokens_.is_name("and") || tokens_.is_name("is"))
            return false;
        if (tokens_.is_name("if") || tokens_.is_name("in") || tokens_.is_name("not") || tokens_.is_name("recursive"))
            return false;
        return tokens_.is(TokenKind::name) || tokens_.is(TokenKind::text) || tokens_.is(TokenKind::integer) ||
               tokens_.is(TokenKind::real) || tokens_.is_sign("[") || tokens_.is_sign("{");
    };
    if (tokens_.is_sign("(")) {
        parse_arguments(*made);
    } else if (begins_argument()) {
        const Deeper deeper(*this);
        made->operands.push_back(parse_postfix(parse_primary()));
    }
    if (!negated) return finish(std::move(made));
    Made inverse = make(ExpressionKind::logic, made->line);
    inverse->name = "not";
    inverse->operands.push_back(finish(std::move(made)));
    return finish(std::move(inverse));
}

void ExpressionParser::parse_arguments(Expression& call) {
    tokens_.need_sign("(");
    for (bool first = true; !tokens_.take_sign(")"); first = false) {
        if (!first) {
            tokens_.need_sign(",");
            if (tokens_.take_sign(")")) return;
        }
        if (tokens_.is_sign("*") || tokens_.is_sign("**")) tokens_.refuse("arguments one by one");
        if (tokens_.is(TokenKind::name) && tokens_.peek_next().kind == TokenKind::sign &&
            tokens_.peek_next().text == "=") {
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
