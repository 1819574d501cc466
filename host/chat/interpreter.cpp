#include "host/chat/interpreter.h"

#include <algorithm>

namespace fovea::chat {

/// Counts the nesting depth of evaluation.
struct Interpreter::Deeper {
    explicit Deeper(Interpreter& run) : depth(run.depth_) {
        if (depth >= run.budget_.depth())
            fail("expected at most " + std::to_string(run.budget_.depth()) +
                 " calls and expressions within each other, got more");
        ++depth;
    }
    ~Deeper() { --depth; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    std::uint32_t& depth;
};

/// A scope inside `outer`, until it ends.
class Interpreter::Inside {
public:
    Inside(Interpreter& run, std::shared_ptr<Scope> outer) : run_(run), before_(run.scope_) {
        run.budget_.steps(1);
        run.scope_ = std::make_shared<Scope>();
        run.scope_->outer = std::move(outer);
    }
    ~Inside() { run_.scope_ = std::move(before_); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

private:
    Interpreter& run_;
    std::shared_ptr<Scope> before_;
};

Interpreter::Interpreter(const ChatInput& input, const Json& messages)
    : budget_(input.limits), now_(input.now), scope_(std::make_shared<Scope>()) {
    if (now_ == -1) now_ = std::time(nullptr);
    for (const Builtin& function : functions()) assign(std::string(function.name), bound(function, None{}));
    assign("messages", from_json(budget_, messages));
    assign("tools", from_json(budget_, input.tools));
    assign("documents", from_json(budget_, input.documents));
    assign("add_generation_prompt", input.add_generation_prompt);
    if (!input.bos_token.empty()) assign("bos_token", make_text(budget_, input.bos_token));
    if (!input.eos_token.empty()) assign("eos_token", make_text(budget_, input.eos_token));
    for (const auto& [name, value] : input.extra.items()) assign(name, from_json(budget_, value));
}

TaintedText Interpreter::run(const Block& body) {
    TaintedText text;
    out_ = &text;
    try {
        const Inside inside(*this, scope_);
        (void)execute(body);
    } catch (const ChatTemplateError& error) {
        std::string said = error.what();
        std::replace(said.begin(), said.end(), '\n', ' ');
        throw ChatTemplateError("line " + std::to_string(line_) + ": " + said);
    }
    return text;
}

void Interpreter::write(const TaintedText& text) {
    budget_.bytes(text.text().size());
    out_->add(text);
}

// ---- statements ------------------------------------------------------------------------------------------------------

Interpreter::Flow Interpreter::execute(const Block& block) {
    const Deeper deeper(*this);
    for (const auto& statement : block.statements) {
        budget_.steps(1);
        line_ = statement->line;
        if (const Flow flow = execute_statement(*statement); flow != Flow::on) return flow;
    }
    return Flow::on;
}

Interpreter::Flow Interpreter::execute_statement(const Statement& statement) {
    switch (statement.kind) {
        case StatementKind::data: write(statement.text); break;
        case StatementKind::print: write(to_text(budget_, evaluate(*statement.expressions[0]))); break;
        case StatementKind::choice: return execute_choice(statement);
        case StatementKind::loop: return run_loop(statement, elements(budget_, evaluate(*statement.expressions[0])), 0);
        case StatementKind::set:
        case StatementKind::set_body: execute_set(statement); break;
        case StatementKind::macro: assign(statement.text, make_macro(statement)); break;
        case StatementKind::call_body: execute_call(statement); break;
        case StatementKind::filter_body: {
            const Value text = make_text(budget_, capture(statement.bodies[0]));
            write(to_text(budget_, evaluate_filter(*statement.expressions[0], &text)));
            break;
        }
        case StatementKind::with: return execute_with(statement);
        case StatementKind::scope: {
            const Inside inside(*this, scope_);
            return execute(statement.bodies[0]);
        }
        case StatementKind::break_loop: return Flow::break_loop;
        case StatementKind::continue_loop: return Flow::continue_loop;
    }
    return Flow::on;
}

Interpreter::Flow Interpreter::execute_choice(const Statement& statement) {
    for (std::size_t i = 0; i < statement.bodies.size(); ++i)
        if (i >= statement.expressions.size() || truthy(evaluate(*statement.expressions[i])))
            return execute(statement.bodies[i]);
    return Flow::on;
}

void Interpreter::execute_set(const Statement& statement) {
    Value value;
    if (statement.kind == StatementKind::set) {
        value = evaluate(*statement.expressions[0]);
    } else {
        value = make_text(budget_, capture(statement.bodies[0]));
        if (!statement.expressions.empty()) {
            const Value text = value;
            value = evaluate_filter(*statement.expressions[0], &text);
        }
    }
    if (!statement.sets_attribute) return assign_all(statement.targets, value);
    const std::string &name = statement.targets[0], &attribute = statement.targets[1];
    const Value* variable = find_variable(name);
    const Value space = variable ? *variable : Value(Undefined{});
    if (!is<Namespace*>(space)) fail("set " + name + "." + attribute + ": expected a namespace, got " + kind_of(space));
    set(budget_, std::get<Namespace*>(space)->attributes, attribute, std::move(value));
}

Interpreter::Flow Interpreter::execute_with(const Statement& statement) {
    std::vector<Value> values;
    for (const Parameter& variable : statement.parameters) values.push_back(evaluate(*variable.second));
    const Inside inside(*this, scope_);
    for (std::size_t i = 0; i < values.size(); ++i) assign(statement.parameters[i].first, std::move(values[i]));
    return execute(statement.bodies[0]);
}

void Interpreter::execute_call(const Statement& statement) {
    const Expression& call_expression = *statement.expressions[0];
    const Value callee = evaluate(*call_expression.operands[0]);
    Arguments arguments = arguments_of(call_expression);
    arguments.named.emplace_back("caller", make_macro(statement));
    write(to_text(budget_, call(callee, arguments)));
}

std::vector<Value> Interpreter::filter_items(const Statement& statement, std::vector<Value> items) {
    std::vector<Value> kept;
    for (Value& item : items) {
        const Inside inside(*this, scope_);
        assign_all(statement.targets, item);
        if (truthy(evaluate(*statement.expressions[1]))) kept.push_back(std::move(item));
    }
    return kept;
}

Interpreter::Flow Interpreter::run_loop(const Statement& statement, std::vector<Value> items, std::uint32_t depth) {
    const Deeper deeper(*this);
    if (statement.expressions[1]) items = filter_items(statement, std::move(items));
    if (items.empty()) {
        const Inside inside(*this, scope_);
        return execute(statement.bodies[1]);
    }
    budget_.bytes(sizeof(Loop));
    Loop& loop = loops_.emplace_back();
    loop.statement = &statement;
    loop.scope = scope_;
    loop.items = std::move(items);
    loop.n_items = loop.items.size();
    loop.depth = depth;
    for (loop.index = 0; loop.index < loop.n_items; ++loop.index) {
        const Inside inside(*this, loop.scope);
        assign_all(statement.targets, loop.items[loop.index]);
        assign("loop", &loop);
        if (execute(statement.bodies[0]) == Flow::break_loop) break;
    }
    loop.index = std::min(loop.index, loop.n_items - 1);  // for who has kept it
    loop.items.clear();
    return Flow::on;
}

/// If this throws the rendering ends, and out_ with it.
TaintedText Interpreter::captured(const auto& write_all) {
    TaintedText text;
    TaintedText* const before = std::exchange(out_, &text);
    write_all();
    out_ = before;
    return text;
}

TaintedText Interpreter::capture(const Block& block) {
    const Inside inside(*this, scope_);
    return captured([&] { (void)execute(block); });
}

// ---- variables and calls ---------------------------------------------------------------------------------------------

namespace {

auto place_of(auto& among, std::string_view name) {
    return std::find_if(among.begin(), among.end(), [&](const auto& one) { return one.first == name; });
}

}  // namespace

const Value* find(Budget& budget, const NamedValues& among, std::string_view name) {
    budget.steps(among.size() / 8);
    const auto at = place_of(among, name);
    return at == among.end() ? nullptr : &at->second;
}

void set(Budget& budget, NamedValues& among, const std::string& name, Value value) {
    budget.steps(among.size() / 8);
    if (const auto at = place_of(among, name); at != among.end()) {
        at->second = std::move(value);
    } else {
        budget.bytes(sizeof among[0] + name.size());
        among.emplace_back(name, std::move(value));
    }
}

const Value* Interpreter::find_variable(std::string_view name) {
    for (const Scope* scope = scope_.get(); scope; scope = scope->outer.get())
        if (const Value* value = find(budget_, scope->variables, name)) return value;
    return nullptr;
}

void Interpreter::assign(const std::string& name, Value value) {
    budget_.steps(1);
    set(budget_, scope_->variables, name, std::move(value));
}

void Interpreter::assign_all(const std::vector<std::string>& targets, const Value& value) {
    if (targets.size() == 1) return assign(targets[0], value);
    std::vector<Value> parts = elements(budget_, value);
    if (parts.size() != targets.size())
        fail("names: expected " + std::to_string(targets.size()) + " values for them, got " +
             std::to_string(parts.size()));
    for (std::size_t i = 0; i < parts.size(); ++i) assign(targets[i], std::move(parts[i]));
}

Value Interpreter::make_macro(const Statement& statement) {
    budget_.bytes(sizeof(Macro) + sizeof(Callable));
    const Macro& macro = macros_.emplace_back(Macro{&statement, scope_});
    auto callable = std::make_shared<Callable>();
    callable->macro = &macro;
    return CallablePointer(std::move(callable));
}

Value Interpreter::bound(const Builtin& method, const Value& self) {
    budget_.bytes(sizeof(Callable));
    auto callable = std::make_shared<Callable>();
    callable->builtin = &method;
    callable->self = self;
    callable->depth = depth_of(self);
    return CallablePointer(std::move(callable));
}

Value Interpreter::make_namespace(const Arguments& given) {
    budget_.bytes(sizeof(Namespace));
    Namespace& space = namespaces_.emplace_back();
    for (const Value& one : given.positional) {
        if (!is<DictPointer>(one)) fail("namespace: expected an object, got " + kind_of(one));
        for (const auto& [key, value] : std::get<DictPointer>(one)->entries)
            if (is_text(key)) space.attributes.emplace_back(text_of(key), value);
    }
    for (const auto& [name, value] : given.named) space.attributes.emplace_back(name, value);
    budget_.bytes(space.attributes.size() * sizeof space.attributes[0]);
    return &space;
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
    const Deeper deeper(*this);
    if (const auto* loop = std::get_if<Loop*>(&callee)) return call_loop(**loop, arguments);
    if (!is<CallablePointer>(callee)) fail("call: expected a function, got " + kind_of(callee));
    const Callable& callable = *std::get<CallablePointer>(callee);
    if (callable.macro) return call_macro(*callable.macro, arguments);
    const Builtin& builtin = *callable.builtin;
    std::array<const Value*, Call::kMost> given{};
    const std::string name(builtin.name);
    if (builtin.parameters[0] != "*") {
        const auto begin = builtin.parameters.begin(),
                   end = std::find(begin, builtin.parameters.end(), std::string_view());
        const auto most = static_cast<std::size_t>(end - begin);
        if (arguments.positional.size() > most)
            fail(name + ": expected at most " + std::to_string(most) + " arguments, got " +
                 std::to_string(arguments.positional.size()));
        for (std::size_t i = 0; i < arguments.positional.size(); ++i) given[i] = &arguments.positional[i];
        for (const auto& [parameter, value] : arguments.named) {
            const auto at = std::find(begin, end, parameter);
            if (at == end) fail(name + ": expected no argument of the name " + parameter + ", got one");
            if (given[static_cast<std::size_t>(at - begin)])
                fail(name + ": expected " + parameter + " once, got it twice");
            given[static_cast<std::size_t>(at - begin)] = &value;
        }
    }
    return builtin.call({*this, budget_, callable.self, given, arguments});
}

Value Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
    const Statement& statement = *macro.statement;
    if (arguments.positional.size() > statement.parameters.size())
        fail(statement.text + ": expected at most " + std::to_string(statement.parameters.size()) + " arguments, got " +
             std::to_string(arguments.positional.size()));
    const Inside inside(*this, macro.scope);
    for (const auto& [name, value] : arguments.named) {
        const auto same = [&, &called = name](const Parameter& one) { return one.first == called; };
        if (name != "caller" && std::none_of(statement.parameters.begin(), statement.parameters.end(), same))
            fail(statement.text + ": expected no argument of the name " + name + ", got one");
        assign(name, value);
    }
    for (std::size_t i = 0; i < statement.parameters.size(); ++i) {
        const auto& [name, fallback] = statement.parameters[i];
        if (i < arguments.positional.size())
            assign(name, arguments.positional[i]);
        else if (!find(budget_, arguments.named, name))
            assign(name, fallback ? evaluate(*fallback) : Value(Undefined{std::make_shared<const std::string>(name)}));
    }
    return make_text(budget_, capture(statement.bodies[0]));
}

Value Interpreter::call_loop(Loop& loop, const Arguments& arguments) {
    if (!loop.statement->recursive) fail("loop: expected a loop that is recursive to call it, got another");
    if (arguments.positional.size() != 1 || !arguments.named.empty())
        fail("loop: expected 1 argument, got another number");
    const std::shared_ptr<Scope> scope = std::exchange(scope_, loop.scope);
    TaintedText text =
        captured([&] { (void)run_loop(*loop.statement, elements(budget_, arguments.positional[0]), loop.depth + 1); });
    scope_ = scope;
    return make_text(budget_, std::move(text));
}

Value Interpreter::apply_filter(std::string_view name, const Value& to, const Arguments& arguments) {
    const Builtin* filter = find_builtin(filters(), name);
    if (!filter) fail("filter: expected one that is known, got " + std::string(name));
    return call(bound(*filter, to), arguments);
}

bool Interpreter::apply_test(std::string_view name, const Value& to, const Arguments& arguments) {
    const Builtin* test = find_builtin(tests(), name);
    if (!test) fail("test: expected one that is known, got " + std::string(name));
    return truthy(call(bound(*test, to), arguments));
}

}  // namespace fovea::chat
