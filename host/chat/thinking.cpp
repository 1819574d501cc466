#include "host/chat/thinking.h"

#include <algorithm>

namespace fovea {
namespace {

constexpr std::string_view kOpen = "<think>", kClose = "</think>", kSpace = "\n\r \t";

/// Bytes at the text's end that the mark may begin with.
std::size_t begun(std::string_view text, std::string_view mark) {
    std::size_t n = std::min(text.size(), mark.size() - 1);
    while (n && !text.ends_with(mark.substr(0, n))) --n;
    return n;
}

}  // namespace

bool begins_in_thought(std::string_view prompt) {
    return prompt.substr(0, prompt.find_last_not_of(kSpace) + 1).ends_with(kOpen);
}

void ThinkingFilter::add(std::string_view piece, const std::function<void(std::string_view, bool)>& on_text) {
    waiting_ += piece;
    if (at_ == Place::start) {
        const std::size_t first = waiting_.find_first_not_of(kSpace);
        const std::string_view text = std::string_view(waiting_).substr(std::min(first, waiting_.size()));
        if (kOpen.starts_with(text) && text.size() < kOpen.size()) return;
        if (text.starts_with(kOpen)) {
            waiting_.erase(0, first + kOpen.size());
            at_ = Place::thought;
        } else {
            at_ = Place::said;
        }
    }
    if (at_ == Place::thought) {
        const std::size_t end = waiting_.find(kClose);
        const std::size_t n = end == waiting_.npos ? waiting_.size() - begun(waiting_, kClose) : end;
        if (n) on_text(std::string_view(waiting_).substr(0, n), true);
        waiting_.erase(0, end == waiting_.npos ? n : end + kClose.size());
        if (end == waiting_.npos) return;
        at_ = Place::after_thought;
    }
    if (at_ == Place::after_thought) {
        waiting_.erase(0, waiting_.find_first_not_of(kSpace));
        if (waiting_.empty()) return;
        at_ = Place::said;
    }
    if (!waiting_.empty()) on_text(waiting_, false);
    waiting_.clear();
}

void ThinkingFilter::finish(const std::function<void(std::string_view, bool)>& on_text) {
    if (!waiting_.empty()) on_text(waiting_, at_ == Place::thought);
    waiting_.clear();
}

}  // namespace fovea
