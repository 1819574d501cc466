#include "host/chat/parser.h"

#include <algorithm>
#include <initializer_list>

#include "host/chat/expression_parser.h"

namespace fovea::chat {
namespace {

constexpr std::uint32_t kMostBlocks = 50;  // within each other

class Parser {
public:
    explicit Parser(std::string_view text) : tokens_(read_tokens(text)), expressions_(tokens_) {}

    Block run() { return parse_until({}); }

private:
    using Made = std::unique_ptr<Statement>;

    static Made make(StatementKind kind, std::uint32_t line) {
        auto made = std::make_unique<Statement>();
        made->kind = kind;
        made->line = line;
        return made;
    }

    /// Statements up to a block that begins with one of `ends`, whose name is read; none: up to the template's end.
    Block parse_until(std::initializer_list<std::string_view> ends, std::string* end = nullptr) {
        if (++depth_ > kMostBlocks)
            tokens_.refuse("at most " + std::to_string(kMostBlocks) + " blocks within each other");
        Block block;
        while (!tokens_.is(TokenKind::end)) {
            const Token token = tokens_.take();
            if (token.kind == TokenKind::data) {
                Made data = make(StatementKind::data, token.line);
                data->text = token.text;
                block.statements.push_back(std::move(data));
            } else if (token.kind == TokenKind::print_begin) {
                Made print = make(StatementKind::print, token.line);
                print->expressions.push_back(expressions_.parse_tuple());
                tokens_.need(TokenKind::print_end, "}}");
                block.statements.push_back(std::move(print));
            } else if (tokens_.is_one_of(ends)) {
                const std::string name = tokens_.take().text;
                if (end) *end = name;
                --depth_;
                return block;
            } else {
                block.statements.push_back(parse_statement());
            }
        }
        if (ends.size()) tokens_.refuse(std::string(*ends.begin()));
        --depth_;
        return block;
    }

    /// Parses a statement's body, and goes behind its end block.
    Made with_body(Made made, std::string_view end) {
        need_block_end();
        made->bodies.push_back(parse_until({end}));
        need_block_end();
        return made;
    }
    /// The same of a body that is run by calls, for which loops around it are none.
    Made with_called_body(Made made, std::string_view end) {
        const std::uint32_t loops = std::exchange(loops_, 0);
        made = with_body(std::move(made), end);
        loops_ = loops;
        return made;
    }

    void need_block_end() { tokens_.need(TokenKind::block_end, "%}"); }

    Made parse_statement() {
        const std::uint32_t line = tokens_.peek().line;
        const std::string name = tokens_.is(TokenKind::name) ? tokens_.peek().text : "";
        using Read = Made (Parser::*)(std::uint32_t);
        static constexpr std::pair<std::string_view, Read> kStatements[] = {
            {"if", &Parser::parse_if},
            {"for", &Parser::parse_for},
            {"set", &Parser::parse_set},
            {"macro", &Parser::parse_macro},
            {"call", &Parser::parse_call},
            {"filter", &Parser::parse_filter},
            {"with", &Parser::parse_with},
            {"break", &Parser::leave_loop<StatementKind::break_loop>},
            {"continue", &Parser::leave_loop<StatementKind::continue_loop>},
            {"generation", &Parser::parse_generation}};
        for (const auto& [statement, read] : kStatements)
            if (name == statement) {
                tokens_.take();
                return (this->*read)(line);
            }
        tokens_.refuse("if, for, set, macro, call, filter, with, break, continue, raw or generation, or their ends");
    }

    Made parse_if(std::uint32_t line) {
        Made made = make(StatementKind::choice, line);
        std::string end = "if";
        while (end != "endif") {
            if (end != "else") made->expressions.push_back(expressions_.parse_tuple(false));
            need_block_end();
            const bool last = end == "else";
            made->bodies.push_back(last ? parse_until({"endif"}, &end) : parse_until({"endif", "elif", "else"}, &end));
        }
        need_block_end();
        return made;
    }

    void parse_target(Statement& statement) {
        const bool bracketed = tokens_.take_sign("(");
        do {
            if (tokens_.is_name("in")) break;  // after a last comma
            statement.targets.push_back(tokens_.need_any_name("a name"));
        } while (tokens_.take_sign(","));
        if (bracketed) tokens_.need_sign(")");
    }

    Made parse_for(std::uint32_t line) {
        Made made = make(StatementKind::loop, line);
        parse_target(*made);
        if (!tokens_.take_name("in")) tokens_.refuse("in");
        made->expressions.push_back(expressions_.parse_tuple(false));
        made->expressions.push_back(tokens_.take_name("if") ? expressions_.parse() : nullptr);
        made->recursive = tokens_.take_name("recursive");
        need_block_end();
        std::string end;
        ++loops_;
        made->bodies.push_back(parse_until({"endfor", "else"}, &end));
        --loops_;
        made->bodies.emplace_back();
        if (end == "else") {
            need_block_end();
            made->bodies.back() = parse_until({"endfor"});
        }
        need_block_end();
        return made;
    }

    Made parse_set(std::uint32_t line) {
        Made made = make(StatementKind::set, line);
        made->targets.push_back(tokens_.need_any_name("a name after set"));
        if (tokens_.take_sign(".")) {
            made->sets_attribute = true;
            made->targets.push_back(tokens_.need_any_name("a name after ."));
        } else {
            while (tokens_.take_sign(",")) made->targets.push_back(tokens_.need_any_name("a name"));
        }
        if (tokens_.take_sign("=")) {
            made->expressions.push_back(expressions_.parse_tuple());
            need_block_end();
            return made;
        }
        made->kind = StatementKind::set_body;
        if (tokens_.take_sign("|")) made->expressions.push_back(expressions_.parse_block_filters());
        if (!tokens_.is(TokenKind::block_end)) tokens_.refuse("= or %}");
        return with_body(std::move(made), "endset");
    }

    void parse_parameters(Statement& statement) {
        tokens_.need_sign("(");
        while (!tokens_.take_sign(")")) {
            if (!statement.parameters.empty()) tokens_.need_sign(",");
            std::string name = tokens_.need_any_name("a parameter's name");
            ExpressionPointer value = tokens_.take_sign("=") ? expressions_.parse() : nullptr;
            statement.parameters.emplace_back(std::move(name), std::move(value));
        }
    }

    Made parse_macro(std::uint32_t line) {
        Made made = make(StatementKind::macro, line);
        made->text = tokens_.need_any_name("a macro's name");
        parse_parameters(*made);
        return with_called_body(std::move(made), "endmacro");
    }

    Made parse_call(std::uint32_t line) {
        Made made = make(StatementKind::call_body, line);
        made->text = "caller";
        if (tokens_.is_sign("(")) parse_parameters(*made);
        made->expressions.push_back(expressions_.parse());
        if (made->expressions.back()->kind != ExpressionKind::call) tokens_.refuse("a call");
        return with_called_body(std::move(made), "endcall");
    }

    Made parse_filter(std::uint32_t line) {
        Made made = make(StatementKind::filter_body, line);
        made->expressions.push_back(expressions_.parse_block_filters());
        return with_body(std::move(made), "endfilter");
    }

    Made parse_with(std::uint32_t line) {
        Made made = make(StatementKind::with, line);
        while (!tokens_.is(TokenKind::block_end)) {
            if (!made->parameters.empty()) tokens_.need_sign(",");
            std::string name = tokens_.need_any_name("a name");
            tokens_.need_sign("=");
            made->parameters.emplace_back(std::move(name), expressions_.parse());
        }
        return with_body(std::move(made), "endwith");
    }

    Made parse_generation(std::uint32_t line) { return with_body(make(StatementKind::scope, line), "endgeneration"); }

    template<StatementKind kind>
    Made leave_loop(std::uint32_t line) {
        if (!loops_) tokens_.refuse("break and continue within a loop");
        need_block_end();
        return make(kind, line);
    }

    TokenReader tokens_;
    ExpressionParser expressions_;
    std::uint32_t depth_ = 0, loops_ = 0;
};

}  // namespace

Block parse_block(std::string_view text) {
    if (text.size() > ChatTemplate::kMostBytes)
        fail("expected at most " + std::to_string(ChatTemplate::kMostBytes) + " bytes, got " +
             std::to_string(text.size()));
    return Parser(text).run();
}

}  // namespace fovea::chat
