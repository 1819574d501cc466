#include "host/chat/literal.h"

#include <array>
#include <cctype>
#include <cstdio>
#include <utility>

#include "host/chat/dialect.h"

namespace fovea {
namespace {

constexpr int kMostLiteralDepth = 100;

}  // namespace

bool is_name_byte(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isalnum(byte) || c == '_' || c == '-' || c == '.';
}

void Literals::skip_space() {
    while (!ends() && kMarkSpace.find(text_[at_]) != kMarkSpace.npos) ++at_;
}

bool Literals::take(std::string_view mark) {
    const std::size_t before = at_;
    if (!is(mark)) skip_space();
    if (!mark.empty() && !is(mark)) {
        at_ = before;
        return false;
    }
    at_ += mark.size();
    return true;
}

void Literals::need(std::string_view mark) {
    if (take(mark)) return;
    skip_space();
    throw Unread{mark.starts_with(rest())};
}

std::string_view Literals::before(std::string_view mark) {
    const std::size_t end = text_.find(mark, at_);
    if (end == text_.npos) throw Unread{true};
    const std::string_view found = text_.substr(at_, end - at_);
    at_ = end;
    return found;
}

std::string_view Literals::until(std::string_view mark) {
    const std::string_view found = before(mark);
    at_ += mark.size();
    return found;
}

std::string_view Literals::name() {
    skip_space();
    const std::size_t begin = at_;
    while (!ends() && is_name_byte(text_[at_])) ++at_;
    if (at_ == begin) throw Unread{ends()};
    return text_.substr(begin, at_ - begin);
}

Json Literals::value() {
    std::string json;
    write_value(json, 0);
    Json read = read_json(json);
    if (read.is_discarded()) throw Unread{};
    return read;
}

void Literals::write_value(std::string& json, int depth) {
    skip_space();
    if (ends()) throw Unread{true};
    if (depth > kMostLiteralDepth) throw Unread{};
    const char c = text_[at_];
    if (take("{")) return write_members(json, depth);
    if (take("[")) return write_items(json, "]", depth);
    if (take("(")) return write_items(json, ")", depth);
    if (c == '"' || c == '\'' || (!quote_.empty() && is(quote_.substr(0, 1)))) return write_text(json);
    if (!write_word(json)) write_number(json);
}

void Literals::write_members(std::string& json, int depth) {
    json += '{';
    for (bool is_first = true; !take("}"); is_first = false) {
        if (!is_first) {
            need(",");
            if (take("}")) break;
            json += ',';
        }
        skip_space();
        if (ends()) throw Unread{true};
        const char c = text_[at_];
        if (!quote_.empty() && c != '"' && c != '\'' && !is(quote_.substr(0, 1))) {
            const std::string_view key = before(":");
            json += json_text(Json(std::string(key.substr(0, key.find_last_not_of(kMarkSpace) + 1))));
        } else if (is_name_byte(c))
            json += json_text(Json(std::string(name())));
        else
            write_text(json);
        need(":");
        json += ':';
        write_value(json, depth + 1);
    }
    json += '}';
}

void Literals::write_items(std::string& json, std::string_view end, int depth) {
    json += '[';
    for (bool is_first = true; !take(end); is_first = false) {
        if (!is_first) {
            need(",");
            if (take(end)) break;
            json += ',';
        }
        write_value(json, depth + 1);
    }
    json += ']';
}

/// A text between quotes: Python's escapes that JSON lacks are written as JSON has them. Between the dialect's own quotes
/// nothing is escaped.
void Literals::write_text(std::string& json) {
    if (!quote_.empty() && take(quote_)) {
        json += json_text(Json(std::string(until(quote_))));
        return;
    }
    const char quote = ends() ? '\0' : text_[at_];
    if (quote != '"' && quote != '\'') throw Unread{ends() || (!quote_.empty() && quote_.starts_with(rest()))};
    ++at_;
    json += '"';
    for (;; ++at_) {
        if (ends()) throw Unread{true};
        const char c = text_[at_];
        if (c == quote) break;
        if (c != '\\') {
            char escaped[8];
            const bool is_plain = static_cast<unsigned char>(c) >= 0x20 && c != '"';
            std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
            json += is_plain ? std::string(1, c) : escaped;
            continue;
        }
        if (++at_ == text_.size()) throw Unread{true};
        const char next = text_[at_];
        if (next == '\'')
            json += '\'';
        else if (next == 'x')
            json += "\\u00";
        else if (std::string_view("\"\\/bfnrtu").find(next) != std::string_view::npos)
            json += {'\\', next};
        else
            json += {'\\', '\\', next};
    }
    ++at_;
    json += '"';
}

bool Literals::write_word(std::string& json) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kWords{{{"true", "true"},
                                                                                   {"false", "false"},
                                                                                   {"null", "null"},
                                                                                   {"True", "true"},
                                                                                   {"False", "false"},
                                                                                   {"None", "null"}}};
    for (const auto& [word, as] : kWords) {
        if (rest().size() < word.size() && word.starts_with(rest())) throw Unread{true};
        if (!is(word)) continue;
        at_ += word.size();
        json += as;
        return true;
    }
    return false;
}

void Literals::write_number(std::string& json) {
    const std::size_t begin = at_;
    while (!ends() && (std::isdigit(static_cast<unsigned char>(text_[at_])) ||
                       std::string_view("+-.eE").find(text_[at_]) != std::string_view::npos))
        ++at_;
    if (at_ == begin) throw Unread{};
    json += text_.substr(begin, at_ - begin);
}

}  // namespace fovea
