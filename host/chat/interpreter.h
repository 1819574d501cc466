// Runs a template: one rendering's variables, loops and text.
#pragma once
#include <array>
#include <ctime>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/chat/syntax.h"

namespace fovea::chat {

class Interpreter;

/// Values by name, in the order in which they were first set.
using NamedValues = std::vector<std::pair<std::string, Value>>;
/// The one with this name, or null.
[[nodiscard]] const Value* find(Budget& budget, const NamedValues& among, std::string_view name);
/// Sets the one with this name, or adds it.
void set(Budget& budget, NamedValues& among, const std::string& name, Value value);

/// The arguments of a call.
struct Arguments {
    std::vector<Value> positional;
    NamedValues named;
};

/// A call of what is built in.
struct Call {
    static constexpr std::size_t kMost = 4;  ///< parameters
    Interpreter& run;
    Budget& budget;
    const Value& self;                      ///< a method's object; what a filter or a test is applied to
    std::array<const Value*, kMost> bound;  ///< arguments in the order of the parameters, null if not given
    const Arguments& all;

    /// An argument that is neither left out nor none, or null.
    [[nodiscard]] const Value* given(std::size_t i) const;
    /// A required argument, or an optional one and its default. Refusals name `who`.
    [[nodiscard]] const Value& needed(std::size_t i, const char* who) const;
    [[nodiscard]] const std::string& text_needed(std::size_t i, const char* who) const;
    [[nodiscard]] TaintedText text_or(std::size_t i, const char* fallback) const {
        return bound[i] ? to_text(budget, *bound[i]) : TaintedText(fallback);
    }
    [[nodiscard]] std::int64_t integer_or(std::size_t i, std::int64_t fallback) const {
        return given(i) ? integer_of(*bound[i]) : fallback;
    }
    [[nodiscard]] bool flag(std::size_t i) const { return bound[i] && truthy(*bound[i]); }

    /// str(self), and what `for` goes through.
    [[nodiscard]] TaintedText words() const { return to_text(budget, self); }
    [[nodiscard]] std::vector<Value> items() const { return elements(budget, self); }
    [[nodiscard]] Value text(TaintedText text) const { return make_text(budget, std::move(text)); }
    /// A part of self, which is a text.
    [[nodiscard]] Value part(std::string_view view) const { return make_text(budget, tainted_of(self).part(view)); }
    [[nodiscard]] Value list(std::vector<Value> items) const { return make_list(budget, std::move(items)); }
};

/// A function, filter, test or method that is built in. The one parameter "*" takes any arguments.
struct Builtin {
    std::string_view name;
    Value (*call)(const Call& call);
    std::array<std::string_view, Call::kMost> parameters{};
};

/// The one with this name, or null.
[[nodiscard]] const Builtin* find_builtin(std::span<const Builtin> among, std::string_view name);
[[nodiscard]] std::span<const Builtin> functions();
[[nodiscard]] std::span<const Builtin> filters();
[[nodiscard]] std::span<const Builtin> tests();
/// A value's own: text.strip, dict.items. Null if its kind has none of this name.
[[nodiscard]] const Builtin* find_method(const Value& of, std::string_view name);

struct Scope;
struct Macro {
    const Statement* statement;
    std::shared_ptr<Scope> scope;  ///< where it was made
};

/// Variables of a block. Its `outer` scopes are those of the blocks around it, so chains are no longer than blocks are
/// deep.
struct Scope {
    std::shared_ptr<Scope> outer;
    NamedValues variables;
};

struct Namespace {
    NamedValues attributes;
};

struct Loop {
    const Statement* statement = nullptr;
    std::shared_ptr<Scope> scope;  ///< around it
    std::vector<Value> items;      ///< while it runs
    std::size_t index = 0, n_items = 0;
    std::uint32_t depth = 0;
    std::optional<std::string> seen;  ///< what changed() was called with
};

class Interpreter {
public:
    /// `messages` in place of the input's.
    Interpreter(const ChatInput& input, const Json& messages);
    Interpreter(const Interpreter&) = delete;
    Interpreter& operator=(const Interpreter&) = delete;

    TaintedText run(const Block& body);

    [[nodiscard]] Budget& budget() { return budget_; }
    [[nodiscard]] std::time_t now() const { return now_; }
    Value apply_filter(std::string_view name, const Value& to, const Arguments& arguments);
    bool apply_test(std::string_view name, const Value& to, const Arguments& arguments);
    Value call(const Value& callee, const Arguments& arguments);
    /// x.name and x[key].
    Value attribute_of(const Value& of, std::string_view name);
    Value item_of(const Value& of, const Value& key);
    Value make_namespace(const Arguments& attributes);

private:
    enum class Flow : std::uint8_t { on, break_loop, continue_loop };
    struct Deeper;
    class Inside;

    Flow execute(const Block& block);
    Flow execute_statement(const Statement& statement);
    Flow execute_choice(const Statement& statement);
    void execute_set(const Statement& statement);
    Flow execute_with(const Statement& statement);
    void execute_call(const Statement& statement);
    Flow run_loop(const Statement& statement, std::vector<Value> items, std::uint32_t depth);
    std::vector<Value> filter_items(const Statement& statement, std::vector<Value> items);
    /// The text that a block writes, in a scope of its own inside `outer`.
    TaintedText capture(const Block& block);
    /// The text that `write_all` writes.
    TaintedText captured(const auto& write_all);
    void write(const TaintedText& text);

    Value evaluate(const Expression& expression);
    Value evaluate_plain(const Expression& expression);
    Value evaluate_name(const Expression& expression);
    Value evaluate_list(const Expression& expression);
    Value evaluate_dict(const Expression& expression);
    Value evaluate_slice(const Expression& expression);
    Value evaluate_call(const Expression& expression);
    Value evaluate_logic(const Expression& expression);
    Value evaluate_concat(const Expression& expression);
    Value evaluate_compare(const Expression& expression);
    Value evaluate_condition(const Expression& expression);
    Value evaluate_filter(const Expression& expression, const Value* block_text);
    Arguments arguments_of(const Expression& expression);

    Value call_macro(const Macro& macro, const Arguments& arguments);
    Value call_loop(Loop& loop, const Arguments& arguments);
    Value loop_attribute(Loop& loop, std::string_view name);
    Value bound(const Builtin& method, const Value& self);
    [[nodiscard]] const Value* find_variable(std::string_view name);
    void assign(const std::string& name, Value value);
    void assign_all(const std::vector<std::string>& targets, const Value& value);
    Value make_macro(const Statement& statement);

    Budget budget_;
    std::time_t now_;
    std::deque<Macro> macros_;  // values point to these: they stay until the text is made
    std::deque<Loop> loops_;
    std::deque<Namespace> namespaces_;
    std::shared_ptr<Scope> scope_;
    TaintedText* out_ = nullptr;
    std::uint32_t depth_ = 0, line_ = 0;
};

/// a `sign` b, as Python computes it; fails if it cannot, and beyond 64 bits.
[[nodiscard]] Value compute(Budget& budget, std::string_view sign, const Value& a, const Value& b);
/// a `sign` b, one of == != < <= > >= in, and "not in".
[[nodiscard]] bool compare(Budget& budget, std::string_view sign, const Value& a, const Value& b);
/// value[start:stop:step]; none: left out.
[[nodiscard]] Value slice(Budget& budget, const Value& value, const Value& start, const Value& stop, const Value& step);
/// The attribute of `value` by a dotted name, as map(attribute="a.b") asks.
[[nodiscard]] Value path_of(Interpreter& run, const Value& value, const Value& path);

}  // namespace fovea::chat
