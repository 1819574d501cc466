#include "host/chat/call_stream.h"

#include <algorithm>
#include <utility>

namespace fovea {

CallStream::CallStream(const Dialect& dialect, std::string tool)
    : dialect_(&dialect),
      at_(tool.empty() ? At::name : At::value),
      key_(dialect.arguments_key),
      tool_(std::move(tool)) {}

void CallStream::read(std::string_view text, const IsKnown& is_known, const OnPiece& on_piece) {
    if (at_ == At::name && !find_name(text)) return;
    while (n_read_ < text.size() && at_ != At::lost) {
        const bool was_inside = at_ == At::arguments;
        step(text[n_read_], is_known);
        if (at_ == At::arguments || was_inside) made_ += text[n_read_];
        ++n_read_;
        const bool ends = was_inside && at_ != At::arguments;
        if (made_.empty() || !(ends || n_read_ == text.size())) continue;
        on_piece(n_begun_ - 1, std::exchange(is_begun_, true) ? std::string() : tool_, made_);
        made_.clear();
    }
}

/// JSON may stand in every dialect. Else the name stands before the arguments, or the dialect has no JSON.
bool CallStream::find_name(std::string_view text) {
    const std::size_t first = text.find_first_not_of(kMarkSpace);
    if (first == text.npos) return false;
    is_json_ = text[first] == '{' || text[first] == '[';
    if (is_json_ || dialect_->syntax != CallSyntax::named) {
        at_ = is_json_ ? At::outside : At::lost;
        return true;
    }
    const std::size_t end = text.find(dialect_->name_close);
    if (end == text.npos) return false;
    tool_ = text.substr(0, end);
    if (!dialect_->beside.empty()) tool_.resize(std::min(tool_.find(dialect_->beside), tool_.size()));
    n_read_ = end + dialect_->name_close.size();
    at_ = At::value;
    return true;
}

void CallStream::step(char c, const IsKnown& is_known) {
    const bool is_space = kMarkSpace.find(c) != kMarkSpace.npos;
    switch (at_) {
        case At::outside:
            tool_.clear();
            if (c == '{')
                at_ = At::object;
            else if (!is_space && c != '[' && c != ',')
                at_ = At::lost;
            return;
        case At::object:
            key_.clear();
            at_ = c == '"' ? At::key : c == '}' ? At::outside : is_space || c == ',' ? At::object : At::lost;
            return;
        case At::key:
            if (c == '"')
                at_ = At::colon;
            else
                key_ += c;
            return;
        case At::colon: at_ = c == ':' ? At::value : is_space ? At::colon : At::lost; return;
        case At::value:
            if (!is_space) enter_value(c, is_known);
            return;
        case At::tool:
            if (c == '"')
                at_ = At::object;
            else if (c == '\\')
                at_ = At::lost;
            else
                tool_ += c;
            return;
        case At::arguments:
            follow(c);
            if (depth_ == 0) at_ = is_json_ ? At::object : At::lost;
            return;
        case At::other:
            if (!in_text_ && depth_ == 0 && (c == ',' || c == '}'))
                at_ = c == ',' ? At::object : At::outside;
            else
                follow(c);
            return;
        case At::name:
        case At::lost: return;
    }
}

void CallStream::enter_value(char c, const IsKnown& is_known) {
    const bool is_name = key_ == dialect_->name_key || key_ == "name";
    const bool is_arguments = key_ == dialect_->arguments_key || key_ == "arguments" || key_ == "parameters";
    if (is_name && c == '"') {
        tool_.clear();
        at_ = At::tool;
        return;
    }
    depth_ = 0;
    in_text_ = is_escaped_ = false;
    if (is_arguments && c == '{' && is_known(tool_)) {
        at_ = At::arguments;
        is_begun_ = false;
        ++n_begun_;
    } else {
        at_ = is_arguments ? At::lost : At::other;  // arguments before the name, or as a text
    }
    follow(c);
}

void CallStream::follow(char c) {
    if (c == '"' && !is_escaped_) in_text_ = !in_text_;
    is_escaped_ = in_text_ && c == '\\' && !is_escaped_;
    if (in_text_) return;
    if (c == '{' || c == '[') ++depth_;
    if ((c == '}' || c == ']') && depth_ > 0) --depth_;
}

}  // namespace fovea
