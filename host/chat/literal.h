// Values as models write them: JSON, Python's literals, and objects whose keys stand bare. What they share is read alike.
#pragma once
#include <string>
#include <string_view>

#include "host/base/json.h"

namespace fovea {

/// Whether a byte may stand in a name: ASCII letters and digits, '_', '-', '.', and every character beyond ASCII.
[[nodiscard]] bool is_name_byte(char c);

/// Where a text is not what was expected. `is_cut`: it ends too early.
struct Unread {
    bool is_cut = false;
};

/// A place in a text. All throw Unread.
class Literals {
public:
    /// quote: what texts may stand between beside " and '; empty: nothing.
    explicit Literals(std::string_view text, std::string_view quote = {}) : text_(text), quote_(quote) {}

    [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
    [[nodiscard]] std::size_t at() const { return at_; }
    void skip_space();
    [[nodiscard]] bool is(std::string_view mark) const { return rest().starts_with(mark); }
    /// Takes it, behind space, if it stands here.
    bool take(std::string_view mark);
    void need(std::string_view mark);
    /// The text before `mark`, which stays; and the same with the mark taken.
    [[nodiscard]] std::string_view before(std::string_view mark);
    [[nodiscard]] std::string_view until(std::string_view mark);
    [[nodiscard]] std::string_view name();
    [[nodiscard]] Json value();

private:
    void write_value(std::string& json, int depth);
    void write_members(std::string& json, int depth);
    void write_items(std::string& json, std::string_view end, int depth);
    void write_text(std::string& json);
    bool write_word(std::string& json);
    void write_number(std::string& json);
    [[nodiscard]] bool ends() const { return at_ == text_.size(); }

    std::string_view text_, quote_;
    std::size_t at_ = 0;
};

}  // namespace fovea
