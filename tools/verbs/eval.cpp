// fovea eval: perplexity on a text, and the distance from another model's predictions.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/text_file.h"
#include "host/base/words.h"
#include "tools/measure/evaluate.h"
#include "tools/options/opened.h"
#include "tools/options/options.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/verbs.h"

namespace fovea {
namespace {

constexpr std::uint32_t kUnlimited = 0xffffffffu;

struct EvalOptions {
    CommonOptions common;
    std::string model, text, against;
    std::uint32_t context = 0;
    Type kv_type = Type::f32;
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
        std::printf("%s\n", json_text(object).c_str());
        return;
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
    settle(options.common);
    const host::Opened opened = open_path(options.model, options.common.opening());
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
        const Limits limits{.max_kv_len = context, .n_threads = options.common.n_threads, .kv_type = options.kv_type};
        return start_session(of, limits, {.isa = options.common.isa_or_best()});
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
    auto options = std::make_shared<EvalOptions>();
    CLI::App& verb = add_verb(app, "eval", "How well a model predicts a text, beside another model");
    add_model(verb, options->model);
    add_text(verb, "--text", options->text, "the text, cut into sequences of --context tokens").type_name("FILE");
    add_text(verb, "--against", options->against, "a model of the same vocabulary to compare with").type_name("FILE");
    add_count(verb, "--context", options->context, 2, kUnlimited, "tokens of a sequence (default: all the model has)");
    add_kv(verb, options->kv_type);
    add_verify(verb, options->common);
    add_common(verb, options->common);
    set_action(verb, [options] { eval(*options); });
}

}  // namespace fovea
