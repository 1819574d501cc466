// A text that knows which of its bytes a conversation gave, and not its template.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/tokenize_around.h"

namespace fovea {

class TaintedText {
public:
    TaintedText() = default;
    /// is_data: a conversation gave all of it.
    TaintedText(std::string text, bool is_data = false);

    [[nodiscard]] const std::string& text() const { return text_; }
    /// The ranges that are data: ascending, apart, none empty.
    [[nodiscard]] std::span<const TextRange> data() const { return data_; }
    void add(const std::string& own) { text_ += own; }
    void add(const TaintedText& other);
    /// `view`, which lies within text(). Time O(log of the ranges + those in it).
    [[nodiscard]] TaintedText part(std::string_view view) const;
    /// This text spelled otherwise: its ranges where the length is the same, else all of it is data if some of this is.
    [[nodiscard]] TaintedText respelled(std::string text) const;

private:
    void add_range(std::size_t first, std::size_t last);

    std::string text_;
    std::vector<TextRange> data_;
};

}  // namespace fovea
