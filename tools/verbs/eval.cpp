// fovea eval: perplexity on a text, and the distance from another model's predictions.
#include "host/base/text_file.h"
#include "tools/measure/evaluate.h"
#include "tools/terminal/progress.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

struct EvalOptions {
    CommonOptions common;
    std::string model, text, against;
    std::uint32_t context = 0;
};

void print(const EvalOptions& options, const host::Opened& opened, const Evaluation& e) {
    const bool compared = !options.against.empty();
    if (options.common.json) {
        Json object{{"model", opened.name}, {"n_predicted", e.n_predicted}, {"perplexity", e.perplexity()}};
        if (compared)
            object["against"] = {{"model", options.against},
                                 {"perplexity", e.against_perplexity()},
                                 {"kl_divergence", e.mean_divergence()},
                                 {"same_top", e.same_top()}};
        return print_line(object);
    }
    std::printf("%s: perplexity %.4f over %s tokens\n", one_line(opened.name).c_str(), e.perplexity(),
                with_separators(e.n_predicted).c_str());
    if (compared)
        std::printf(
            "against %s: perplexity %.4f (%+.3f %%), KL divergence %.6f nats a token, same likeliest token %.2f %%\n",
            one_line(options.against).c_str(), e.against_perplexity(),
            100 * (e.perplexity() / e.against_perplexity() - 1), e.mean_divergence(), 100 * e.same_top());
}

void eval(EvalOptions& options) {
    need_model(options.model);
    if (options.text.empty()) throw UsageError("--text: expected a file, got none");
    const host::Opened opened = open_model(options.common, options.model);
    opened.need_logits();
    const std::vector<Token> tokens = opened.tokens(read_text_file(options.text));
    if (tokens.size() < 2)
        throw host::Error(options.text + ": tokens: expected at least 2, got " + std::to_string(tokens.size()));
    const Stack& stack = opened.model.config().decoder;
    for (const Token id : tokens)
        if (id >= stack.vocab_size)
            throw host::Error(opened.name + ": tokens: expected ids below its vocab_size " +
                              std::to_string(stack.vocab_size) + ", got " + std::to_string(id));
    const auto start = [&](const host::Opened& of, std::uint32_t context) {
        return start_session(of, options.common.limits(context), options.common.session());
    };
    std::uint32_t context = options.context ? options.context : stack.max_positions;
    std::optional<host::Opened> against;
    std::optional<host::Runtime<Session>> against_running;
    if (!options.against.empty()) {
        against = open_path(options.against, options.common.opening());
        against->need_logits();
        opened.check_same_tokens(*against);
        const Stack& other = against->model.config().decoder;
        if (!options.context) context = std::min(context, other.max_positions);
        against_running = start(*against, context);
    }
    if (context < 2) throw host::Error(opened.name + ": positions: expected 2 or more, got " + std::to_string(context));
    host::Runtime<Session> running = start(opened, context);
    Evaluation sum;
    const std::uint64_t n_predicted = tokens.size() - (tokens.size() + context - 1) / context;  // but each one's first
    const Progress progress = progress_line(options.text);
    for (std::size_t begin = 0; begin < tokens.size(); begin += context) {
        const std::size_t n = std::min<std::size_t>(context, tokens.size() - begin);
        evaluate(opened, running, against ? &*against_running : nullptr, std::span(tokens).subspan(begin, n), sum, [&] {
            if (progress) progress(sum.n_predicted, n_predicted);
        });
    }
    print(options, opened, sum);
}

}  // namespace

void add_eval(CLI::App& app) {
    const auto declare = [](const Verb& verb, EvalOptions& o) {
        verb.model(o.model);
        verb.input("--text", o.text, "the text, cut into sequences of --context tokens");
        verb.input("--against", o.against, "a model of the same vocabulary to compare with");
        verb.count("--context", o.context, 2, kAny, "tokens of a sequence (default: all the model has)");
        verb.kv(o.common.kv_type);
        verb.opening(o.common);
    };
    add_verb<EvalOptions>(app, "eval", "How well a model predicts a text, beside another model", eval, declare);
}

}  // namespace fovea
