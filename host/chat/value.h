// Values of a template: Python's, as far as templates have them. They are immutable and shared, so copies are cheap and
// no value can contain itself.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "host/chat/chat_template.h"
#include "host/chat/tainted_text.h"

namespace fovea::chat {

struct List;
struct Dict;
struct Callable;
struct Namespace;  // interpreter.h; owned by the rendering, as loops are
struct Loop;

struct Undefined {
    std::shared_ptr<const std::string> name;  ///< for the message; may be null
};
struct None {};
using Text = std::shared_ptr<const TaintedText>;
using ListPointer = std::shared_ptr<const List>;
using DictPointer = std::shared_ptr<const Dict>;
using CallablePointer = std::shared_ptr<const Callable>;

using Value = std::variant<Undefined, None, bool, std::int64_t, double, Text, ListPointer, DictPointer, Namespace*,
                           Loop*, CallablePointer>;

/// Lists within lists are bounded, for printing and freeing them recurses.
inline constexpr std::uint32_t kMostNesting = 200;

struct List {
    std::vector<Value> items;
    bool is_tuple = false;
    std::uint32_t depth = 1;
};

/// In order of insertion.
struct Dict {
    std::vector<std::pair<Value, Value>> entries;
    std::uint32_t depth = 1;
};

struct Builtin;  // interpreter.h
struct Macro;
struct Callable {
    const Builtin* builtin = nullptr;
    const Macro* macro = nullptr;  ///< instead
    Value self = None{};           ///< of a method
    std::uint32_t depth = 0;       ///< that of self
};

/// A rendering's use of its limits so far.
class Budget {
public:
    explicit Budget(const ChatTemplateLimits& limits) : limits_(limits) {}
    /// The cost of looking for a text of m bytes in one of n: up to n·m comparisons.
    void search(std::uint64_t n, std::uint64_t m) { steps(n / 16 + n * (m / 64)); }
    void steps(std::uint64_t n) {
        if (n > limits_.n_steps - n_steps_) refuse_steps();
        n_steps_ += n;
    }
    /// Before they are made.
    void bytes(std::uint64_t n) {
        if (n > limits_.n_bytes - n_bytes_) refuse_bytes();
        n_bytes_ += n;
    }
    [[nodiscard]] std::uint32_t depth() const { return limits_.depth; }

private:
    [[noreturn]] void refuse_steps() const;
    [[noreturn]] void refuse_bytes() const;
    ChatTemplateLimits limits_;
    std::uint64_t n_steps_ = 0, n_bytes_ = 0;
};

[[noreturn]] void fail(const std::string& line);

template<class T>
[[nodiscard]] bool is(const Value& value) {
    return std::holds_alternative<T>(value);
}
[[nodiscard]] inline bool is_undefined(const Value& value) { return is<Undefined>(value); }
[[nodiscard]] inline bool is_text(const Value& value) { return is<Text>(value); }
[[nodiscard]] inline const TaintedText& tainted_of(const Value& value) { return *std::get<Text>(value); }
[[nodiscard]] inline const std::string& text_of(const Value& value) { return tainted_of(value).text(); }
[[nodiscard]] inline bool is_integer(const Value& value) { return is<bool>(value) || is<std::int64_t>(value); }
[[nodiscard]] inline bool is_number(const Value& value) { return is_integer(value) || is<double>(value); }

[[nodiscard]] Value make_text(Budget& budget, TaintedText text);
[[nodiscard]] Value make_list(Budget& budget, std::vector<Value> items, bool is_tuple = false);
[[nodiscard]] Value make_dict(Budget& budget, std::vector<std::pair<Value, Value>> entries);
/// What a conversation gave: texts are data, but a role and a variable of its own that are one word. Texts need not be valid
/// UTF-8; numbers beyond 64 bits are refused.
[[nodiscard]] Value from_json(Budget& budget, const Json& json, std::uint32_t depth = 0);

/// Nesting depth: a list's or an object's is one more than the deepest of its items; a method's is that of its object.
[[nodiscard]] std::uint32_t depth_of(const Value& value);
/// The value's kind, as messages name it: "a list".
[[nodiscard]] std::string kind_of(const Value& value);
[[nodiscard]] bool truthy(const Value& value);
[[nodiscard]] bool equal(Budget& budget, const Value& a, const Value& b);
/// a < b as Python orders numbers, texts and lists. Fails on others.
[[nodiscard]] bool less(Budget& budget, const Value& a, const Value& b);
/// `item in container`.
[[nodiscard]] bool contains(Budget& budget, const Value& container, const Value& item);
/// Null if there is no such key.
[[nodiscard]] const Value* find(Budget& budget, const Dict& dict, const Value& key);
[[nodiscard]] const Value* find(Budget& budget, const Dict& dict, std::string_view key);
/// In characters, items or entries. Fails on what has none.
[[nodiscard]] std::int64_t length(Budget& budget, const Value& value);
/// The items that `for` goes through: items, keys, characters; none of an undefined value. Fails on others.
[[nodiscard]] std::vector<Value> elements(Budget& budget, const Value& value);

[[nodiscard]] std::int64_t integer_of(const Value& value);  ///< of an integer or a bool; fails on others
[[nodiscard]] double real_of(const Value& value);           ///< of a number

/// str(value), repr(value). All of a printed list or object is data if some of it is.
[[nodiscard]] TaintedText to_text(Budget& budget, const Value& value);
[[nodiscard]] TaintedText to_repr(Budget& budget, const Value& value);

struct JsonStyle {
    int indent = -1;  ///< spaces for each level; -1: one line
    bool sort_keys = false;
    bool ensure_ascii = false;
    std::string item_separator = ", ", key_separator = ": ";
};
/// json.dumps(value).
[[nodiscard]] TaintedText to_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace fovea::chat
