// fovea logits: what the model computes for given tokens, as an array, as the likeliest next tokens, or as hashes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "fovea/host/opened.h"
#include "fovea/host/runtime.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/npy.h"
#include "host/base/words.h"
#include "tools/measure/trace_hash.h"
#include "tools/options/adapters.h"
#include "tools/options/opened.h"
#include "tools/options/options.h"
#include "tools/options/workers.h"
#include "tools/show/arrays.h"
#include "tools/show/view.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/verbs.h"

namespace fovea {
namespace {

constexpr std::uint32_t kUnlimited = 0xffffffffu;

struct LogitsOptions {
    std::vector<ScaledPath> loras;
    CommonOptions common;
    ViewOptions view;
    std::string model, tokens, text, output;
    bool has_text = false, has_tokens = false, special = false, trace = false;
    std::uint32_t n_top = 0, context = 0;
    Type kv_type = Type::f32;
};

/// One or several sequences of the same length.
struct LogitsInput {
    std::vector<Token> tokens;         // [n_sequences, seq_len]
    std::vector<std::uint64_t> shape;  // of the ids: one or two dimensions
    [[nodiscard]] std::uint64_t seq_len() const { return shape.back(); }
};

LogitsInput read_input(const LogitsOptions& options, const host::Opened& opened) {
    LogitsInput input;
    if (options.has_text) {
        input.tokens = opened.tokens(options.text, {.parse_special = options.special});
        input.shape = {input.tokens.size()};
    } else if (options.tokens.ends_with(".npy")) {
        const NpyArray array = read_npy(options.tokens);
        if (array.shape.empty() || array.shape.size() > 2)
            throw host::Error(array.path + ": dimensions: expected 1 or 2, got " + std::to_string(array.shape.size()));
        input.tokens = read_ids(array);
        input.shape = array.shape;
    } else {
        input.tokens = read_list("--tokens", options.tokens, kUnlimited);
        input.shape = {input.tokens.size()};
    }
    const std::uint32_t context = options.context ? options.context : opened.model.config().decoder.max_positions;
    if (input.tokens.empty() || input.seq_len() > context)
        throw host::Error("tokens: expected 1 to " + std::to_string(context) + " of them in a sequence, got " +
                          std::to_string(input.tokens.empty() ? 0 : input.seq_len()));
    return input;
}

/// What is made of the logits as they come, a batch of rows at a time.
struct Sink {
    std::optional<NpyWriter> file;
    std::uint64_t hash = kHashSeed;
    std::vector<float> last;  // the last row
    std::uint32_t n_vocab = 0;

    void take(std::span<const float> rows) {
        if (file) file->append(rows);
        hash = hash_bits(rows, hash);
        last.assign(rows.end() - n_vocab, rows.end());
    }
};

/// Rows are computed a batch at a time, so that memory does not grow with the sequence.
void compute(const host::Opened& opened, host::Runtime<Session>& running, const LogitsInput& input, Sink& sink) {
    std::vector<float> rows(std::size_t{running.plan.limits.max_batch} * sink.n_vocab);
    const std::span<const Token> all = input.tokens;
    for (std::size_t begin = 0; begin < all.size(); begin += input.seq_len()) {
        require(rewind(*running, 0), opened.name);
        for (std::size_t done = 0; done < input.seq_len();) {
            const std::size_t n = std::min<std::size_t>(running.plan.limits.max_batch, input.seq_len() - done);
            const std::span<float> out{rows.data(), n * sink.n_vocab};
            require(forward(*running, all.subspan(begin + done, n), out), opened.name);
            sink.take(out);
            done += n;
        }
    }
}

std::vector<Token> likeliest(const std::vector<float>& logits, std::size_t n) {
    std::vector<Token> ids(logits.size());
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<Token>(i);
    n = std::min(n, ids.size());
    // NaN orders as the lowest, for a comparison must be an order.
    const auto rank = [&](Token id) { return logits[id] == logits[id] ? logits[id] : -__builtin_inff(); };
    std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n), ids.end(),
                      [&](Token a, Token b) { return rank(a) != rank(b) ? rank(a) > rank(b) : a < b; });
    ids.resize(n);
    return ids;
}

/// What a logit is as a probability, in double precision: a figure for people.
class Chances {
public:
    explicit Chances(const std::vector<float>& logits) {
        for (const float logit : logits) highest_ = std::max(highest_, static_cast<double>(logit));
        for (const float logit : logits) sum_ += std::exp(logit - highest_);
    }
    [[nodiscard]] double of(float logit) const { return std::exp(logit - highest_) / sum_; }

private:
    double highest_ = -std::numeric_limits<double>::infinity(), sum_ = 0;
};

std::string piece_of(const host::Opened& opened, Token id) {
    return opened.tokenizer.valid() ? std::string(token_bytes(opened.tokenizer, id)) : std::string{};
}

void print_json(const host::Opened& opened, const LogitsOptions& options, const LogitsInput& input, const Sink& sink,
                const Tracer& tracer) {
    Json object{{"n_tokens", input.tokens.size()},
                {"vocab_size", sink.n_vocab},
                {"hash", hex(sink.hash)},
                {"numerics_version", kNumericsVersion},
                {"top", Json::array()}};
    const Chances chances(sink.last);
    for (const Token id : likeliest(sink.last, options.n_top))
        object["top"].push_back({{"id", id},
                                 {"logit", sink.last[id]},
                                 {"probability", chances.of(sink.last[id])},
                                 {"text", piece_of(opened, id)}});
    if (options.trace) object["trace"] = Json::array();
    for (const TracedOperation& o : tracer.operations())
        object["trace"].push_back({{"layer", o.layer}, {"operation", o.operation}, {"hash", hex(o.hash)}});
    std::printf("%s\n", json_text(object).c_str());
}

void print_text(const host::Opened& opened, const LogitsOptions& options, const Sink& sink, const Tracer& tracer) {
    for (const TracedOperation& o : tracer.operations())
        std::printf("%4u  %-12s %s\n", o.layer, o.operation.c_str(), hex(o.hash).c_str());
    const Chances chances(sink.last);
    for (const Token id : likeliest(sink.last, options.n_top))
        std::printf("%8u %14.6f %7.2f %%  %s\n", id, static_cast<double>(sink.last[id]),
                    100 * chances.of(sink.last[id]), one_line(piece_of(opened, id)).c_str());
}

void logits(LogitsOptions& options) {
    need_model(options.model);
    if (options.has_text == options.has_tokens)
        throw UsageError(std::string("--tokens or -p: expected one of them, got ") +
                         (options.has_text ? "both" : "neither"));
    check_output(options.output, options.common.json);
    settle(options.common);
    host::Opened opened = open_path(options.model, options.common.opening());
    opened.need_logits();
    check_layer(options.view, opened.model.config().decoder);
    const LogitsInput input = read_input(options, opened);
    Limits limits;
    limits.max_kv_len = options.context ? options.context : static_cast<std::uint32_t>(input.seq_len());
    limits.n_threads = options.common.n_threads;
    limits.kv_type = options.kv_type;
    open_loras(opened, options.loras, options.common.opening());
    const SharedWork shared(options.common, opened);
    host::Runtime<Session> running =
        start_session(opened, limits, {.isa = options.common.isa_or_best(), .remote = shared.remote()});

    Sink sink;
    sink.n_vocab = opened.model.config().decoder.vocab_size;
    if (!options.output.empty()) {
        std::vector<std::uint64_t> shape = input.shape;
        shape.push_back(sink.n_vocab);
        sink.file.emplace(options.output, shape);
    }
    Tracer tracer;
    if (options.trace) set_trace(*running, tracer.tap());
    compute(opened, running, input, sink);
    if (sink.file) sink.file->close();
    show_attention(options.view, opened, *running, input.tokens, input.seq_len(), input.shape.size() == 2);
    if (options.common.json)
        print_json(opened, options, input, sink, tracer);
    else
        print_text(opened, options, sink, tracer);
}

}  // namespace

void add_logits(CLI::App& app) {
    auto options = std::make_shared<LogitsOptions>();
    CLI::App& verb = add_verb(app, "logits", "The logits after every token, or what comes next");
    add_model(verb, options->model);
    const Option tokens = add_text(verb, "--tokens", options->tokens,
                                   "ids such as 1,2,3, or an .npy file of [seq_len] or [n, seq_len] ids")
                              .type_name("IDS");
    const Option text = add_text(verb, "-p,--prompt", options->text, "instead of ids: a text");
    add_text(verb, "-o,--output", options->output,
             "an .npy file for float32 logits, the ids' shape by vocab_size; - for standard output")
        .type_name("FILE");
    add_view(verb, options->view, true);
    add_loras(verb, options->loras);
    const Option top = add_count(
        verb, "--top", options->n_top, 1, kUnlimited,
        "print the K likeliest next tokens with their probabilities (default 10 where there is no other output)");
    add_flag(verb, "--trace", options->trace, "print a hash for each layer and operation");
    add_flag(verb, "--special", options->special, "read <|name|> in the text as that special token");
    add_count(verb, "--context", options->context, 1, kUnlimited, "positions to hold (default: what the tokens need)");
    add_kv(verb, options->kv_type);
    add_workers(verb, options->common);
    add_verify(verb, options->common);
    add_common(verb, options->common);
    set_action(verb, [options, tokens, text, top] {
        check_view(options->view, options->common);
        options->has_tokens = tokens.count() > 0;
        options->has_text = text.count() > 0;
        if (top.count() == 0 && options->output.empty() && !options->view.wanted() && !options->trace)
            options->n_top = 10;
        logits(*options);
    });
}

}  // namespace fovea
