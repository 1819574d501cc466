#include "host/chat/tainted_text.h"

#include <algorithm>
#include <utility>

namespace fovea {

TaintedText::TaintedText(std::string text, bool is_data) : text_(std::move(text)) {
    if (is_data) add_range(0, text_.size());
}

void TaintedText::add(const TaintedText& other) {
    const std::size_t before = text_.size();
    text_ += other.text_;
    for (const TextRange& range : other.data_) add_range(before + range.first, before + range.last);
}

TaintedText TaintedText::part(std::string_view view) const {
    TaintedText made{std::string(view)};
    if (data_.empty()) return made;
    const auto first = static_cast<std::size_t>(view.data() - text_.data()), last = first + view.size();
    auto range = std::upper_bound(data_.begin(), data_.end(), first,
                                  [](std::size_t at, const TextRange& one) { return at < one.last; });
    for (; range != data_.end() && range->first < last; ++range)
        made.add_range(std::max(range->first, first) - first, std::min(range->last, last) - first);
    return made;
}

TaintedText TaintedText::respelled(std::string text) const {
    TaintedText made(std::move(text), !data_.empty());
    if (made.text_.size() == text_.size()) made.data_ = data_;
    return made;
}

/// Ranges come in order.
void TaintedText::add_range(std::size_t first, std::size_t last) {
    if (first == last) return;
    if (!data_.empty() && data_.back().last == first)
        data_.back().last = last;
    else
        data_.push_back({first, last});
}

}  // namespace fovea
