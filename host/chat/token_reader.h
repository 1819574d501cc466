// The tokens that both parsers of a template read, and how they refuse them.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "host/chat/lexer.h"

namespace fovea::chat {

class TokenReader {
public:
    explicit TokenReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

    [[nodiscard]] const Token& peek() const { return tokens_[at_]; }
    Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }

    [[nodiscard]] bool is(TokenKind kind) const { return peek().kind == kind; }
    [[nodiscard]] bool is_sign(std::string_view sign) const { return is(TokenKind::sign) && peek().text == sign; }
    [[nodiscard]] bool is_name(std::string_view name) const { return is(TokenKind::name) && peek().text == name; }
    /// Whether a name or a sign stands here that is one of these.
    [[nodiscard]] bool is_one_of(std::initializer_list<std::string_view> names) const {
        return (is(TokenKind::name) || is(TokenKind::sign)) &&
               std::find(names.begin(), names.end(), peek().text) != names.end();
    }
    /// Whether this comes behind what stands here.
    [[nodiscard]] bool is_next(TokenKind kind, std::string_view text) const {
        const Token& next = tokens_[std::min(at_ + 1, tokens_.size() - 1)];
        return next.kind == kind && next.text == text;
    }
    bool take_sign(std::string_view sign) { return is_sign(sign) && (take(), true); }
    bool take_name(std::string_view name) { return is_name(name) && (take(), true); }

    void need_sign(std::string_view sign) {
        if (!take_sign(sign)) refuse(std::string(sign));
    }
    void need(TokenKind kind, const std::string& what) {
        if (!is(kind)) refuse(what);
        take();
    }
    std::string need_any_name(const std::string& what) {
        if (!is(TokenKind::name)) refuse(what);
        return take().text;
    }

    [[noreturn]] void refuse(const std::string& wanted) const;

private:
    std::vector<Token> tokens_;
    std::size_t at_ = 0;
};

}  // namespace fovea::chat
