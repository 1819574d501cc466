#include "host/chat/answer_reader.h"

#include <algorithm>
#include <utility>

namespace fovea {
namespace {

constexpr std::uint32_t kMostInside = 64;  // marks in a call's arguments: each costs another reading

/// Where a text has the first of some marks, and which; else where the text may begin one.
struct FoundMark {
    std::size_t at = 0;
    std::string_view mark = {};  ///< empty: none
};
FoundMark find_mark(std::string_view text, std::span<const std::string_view> marks) {
    FoundMark found{text.size(), {}};
    for (const std::string_view mark : marks)
        if (const std::size_t at = text.find(mark); at < found.at) found = {at, mark};
    if (!found.mark.empty()) return found;
    for (const std::string_view mark : marks) {
        std::size_t n = std::min(text.size(), mark.size() - 1);
        while (n && !text.ends_with(mark.substr(0, n))) --n;
        found.at = std::min(found.at, text.size() - n);
    }
    return found;
}

bool may_begin(std::string_view text, std::string_view mark) {
    return text.size() < mark.size() && mark.starts_with(text);
}

}  // namespace

AnswerReader::AnswerReader(AnswerReading how) : how_(std::move(how)) {
    const Dialect& calls = *how_.dialect.calls;
    if (in_channels()) {
        text_marks_.assign(std::begin(kHeaderBegins), std::end(kHeaderBegins));
        text_marks_.insert(text_marks_.end(), std::begin(kMessageEnds), std::end(kMessageEnds));
        thought_marks_ = message_marks_ = text_marks_;
    } else {
        thought_marks_ = {how_.dialect.reasoning->close};
        if (how_.reads_calls && !calls.open.empty()) text_marks_ = {calls.open};
    }
    if (in_channels() || !how_.parts_thought) place_ = Place::said;
    add(how_.begun, [](std::string_view, bool) {});
    n_begun_ = held_.size();
    n_said_ = 0;
    calls_.clear();
    pieces_.clear();
}

void AnswerReader::add(std::string_view piece, const OnText& on_text) {
    held_ += piece;
    while (!held_.empty() && move(on_text, false)) {
    }
}

void AnswerReader::finish(const OnText& on_text) {
    while (!held_.empty() && move(on_text, true)) {
    }
}

bool AnswerReader::move(const OnText& on_text, bool is_end) {
    switch (place_) {
        case Place::start: return start(is_end);
        case Place::after_thought: return skip_space(is_end);
        case Place::thought:
        case Place::said: return read_text(on_text, is_end);
        case Place::call: return read_call(on_text, is_end);
        case Place::header: return read_header(is_end);
        case Place::message_call: return read_message_call(on_text, is_end);
    }
    return false;
}

bool AnswerReader::start(bool is_end) {
    const std::size_t first = held_.find_first_not_of(kMarkSpace);
    const std::string_view text = std::string_view(held_).substr(std::min(first, held_.size()));
    const std::string_view open = how_.dialect.reasoning->open;
    if (text.starts_with(open)) {
        drop(first + open.size());
        place_ = Place::thought;
        return true;
    }
    if (may_begin(text, open) && !is_end) return false;
    return begin_text(is_end);
}

/// Behind reasoning, where it is left out, or behind a call.
bool AnswerReader::skip_space(bool is_end) {
    if (calls_.empty()) drop(std::min(held_.find_first_not_of(kMarkSpace), held_.size()));
    return held_.empty() || begin_text(is_end);
}

/// Space, and what is said or a call, before which it is left out.
bool AnswerReader::begin_text(bool is_end) {
    const std::size_t first = std::min(held_.find_first_not_of(kMarkSpace), held_.size());
    const std::string_view text = std::string_view(held_).substr(first), bare = how_.dialect.calls->bare;
    const auto begins = [&](std::string_view mark) { return text.starts_with(mark); };
    const auto may = [&](std::string_view mark) { return may_begin(text, mark); };
    if (!is_end && (text.empty() || std::any_of(text_marks_.begin(), text_marks_.end(), may))) return false;
    is_bare_ = how_.reads_calls && !bare.empty() && calls_.empty() && begins(bare);
    const bool is_call = is_bare_ || std::any_of(text_marks_.begin(), text_marks_.end(), begins);
    if (is_call || (text.empty() && !calls_.empty())) drop(first);
    place_ = is_bare_ ? Place::call : Place::said;
    stream_ = CallStream(*how_.dialect.calls, {});
    searched_ = 0;
    return true;
}

/// What is thought or said, up to a mark.
bool AnswerReader::read_text(const OnText& on_text, bool is_end) {
    const bool is_thought = place_ == Place::thought;
    const FoundMark found = find_mark(held_, is_thought ? thought_marks_ : text_marks_);
    say(found.mark.empty() && is_end ? held_.size() : found.at, is_thought, on_text);
    if (found.mark.empty()) return false;
    if (in_channels()) {
        drop(found.mark.size());
        const bool begins =
            std::find(std::begin(kHeaderBegins), std::end(kHeaderBegins), found.mark) != std::end(kHeaderBegins);
        place_ = begins ? Place::header : Place::said;
    } else if (is_thought) {
        drop(found.mark.size());
        place_ = Place::after_thought;
    } else {
        place_ = Place::call;
        is_bare_ = false;
        searched_ = found.mark.size();
        n_inside_ = 0;
        stream_ = CallStream(*how_.dialect.calls, {});
    }
    return true;
}

bool AnswerReader::read_call(const OnText& on_text, bool is_end) {
    const Dialect& dialect = *how_.dialect.calls;
    const std::size_t begin = is_bare_ ? 0 : dialect.open.size();
    read_pieces(std::string_view(held_).substr(begin));
    const bool has_end = !is_bare_ && !dialect.close.empty();
    const std::size_t at = has_end ? held_.find(dialect.close, searched_) : held_.npos;
    const bool is_last = at == held_.npos;
    if (is_last && !is_end) {
        searched_ = std::max(begin, held_.size() - std::min(held_.size(), dialect.close.size()));
        return false;
    }
    const std::size_t end = is_last ? held_.size() : at + dialect.close.size();
    ReadCalls read = read_calls(dialect, how_.tools, std::string_view(held_).substr(begin, end - begin));
    const auto is_known = [&](const ToolCall& call) { return how_.tools.has(call.name); };
    const bool is_sound =
        is_bare_ ? std::all_of(read.calls.begin(), read.calls.end(), is_known) : is_last || read.n_bytes == end - begin;
    if (!read.calls.empty() && is_sound) {
        take_calls(std::move(read.calls), begin + read.n_bytes);
    } else if (read.is_cut && !is_last && n_inside_ < kMostInside) {  // the mark stands in an argument
        searched_ = end;
        ++n_inside_;
    } else {
        give_up(is_last && !stream_.n_begun() ? std::max<std::size_t>(begin, 1) : end, on_text);
    }
    return true;
}

void AnswerReader::read_pieces(std::string_view text) {
    if (!how_.streams_calls) return;
    stream_.read(
        text, [&](const std::string& name) { return how_.tools.has(name); },
        [&](std::size_t call, const std::string& name, std::string_view arguments) {
            if (!how_.calls_once || calls_.size() + call == 0)
                pieces_.push_back({calls_.size() + call, name, std::string(arguments), n_said_});
        });
}

void AnswerReader::give_up(std::size_t n, const OnText& on_text) {
    if (stream_.n_begun())
        drop(n);
    else
        say(n, false, on_text);
    place_ = Place::said;
}

bool AnswerReader::read_header(bool is_end) {
    const std::size_t end = held_.find(kHeaderEnd);
    if (end == held_.npos) {
        if (is_end) drop(held_.size());
        return false;
    }
    const std::string_view header = std::string_view(held_).substr(0, end);
    constexpr std::string_view kTo = "to=", kFunctions = "functions.";
    tool_.clear();
    if (const std::size_t to = header.find(kTo); to != header.npos && how_.reads_calls) {
        const std::string_view rest = header.substr(to + kTo.size());
        tool_ = rest.substr(0, rest.find_first_of(" <\n"));
        if (tool_.starts_with(kFunctions)) tool_.erase(0, kFunctions.size());
    }
    const bool is_thought = header.find("analysis") != header.npos && how_.parts_thought;
    stream_ = CallStream(*how_.dialect.calls, tool_);
    place_ = !tool_.empty() ? Place::message_call : is_thought ? Place::thought : Place::said;
    drop(end + kHeaderEnd.size());
    return true;
}

bool AnswerReader::read_message_call(const OnText& on_text, bool is_end) {
    const FoundMark found = find_mark(held_, message_marks_);
    read_pieces(std::string_view(held_).substr(0, found.at));
    if (found.mark.empty() && !is_end) return false;
    const std::size_t end = found.mark.empty() ? held_.size() : found.at;
    ReadCalls read = fovea::read_message_call(tool_, std::string_view(held_).substr(0, end));
    if (read.calls.empty())
        give_up(end, on_text);
    else
        take_calls(std::move(read.calls), end);
    place_ = Place::said;
    return true;
}

void AnswerReader::take_calls(std::vector<ToolCall> calls, std::size_t n_bytes) {
    for (std::size_t i = 0; i < calls.size() && !(how_.calls_once && !calls_.empty()); ++i) {
        calls[i].at = n_said_;
        if (i >= stream_.n_begun())
            pieces_.push_back({calls_.size(), calls[i].name, json_text(calls[i].arguments), n_said_});
        calls_.push_back(std::move(calls[i]));
    }
    drop(n_bytes);
    place_ = Place::after_thought;
}

void AnswerReader::say(std::size_t n, bool is_thought, const OnText& on_text) {
    const std::size_t n_begun = std::min(n, n_begun_);
    if (n > n_begun) on_text(std::string_view(held_).substr(n_begun, n - n_begun), is_thought);
    if (!is_thought) n_said_ += n - n_begun;
    drop(n);
}

void AnswerReader::drop(std::size_t n) {
    held_.erase(0, n);
    n_begun_ -= std::min(n, n_begun_);
}

}  // namespace fovea
