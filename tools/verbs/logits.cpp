// fovea logits: what the model computes for given tokens, as an array, as the likeliest next tokens, or as hashes.
#include <cmath>
#include <limits>

#include "fovea/host/runtime.h"
#include "host/base/npy.h"
#include "host/base/output_file.h"
#include "tools/measure/trace_hash.h"
#include "tools/options/adapters.h"
#include "tools/options/ranks.h"
#include "tools/show/arrays.h"
#include "tools/show/view.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

struct LogitsOptions {
    std::vector<ScaledPath> loras;
    CommonOptions common;
    ViewOptions view;
    std::string model, output;
    std::optional<std::string> tokens, text;
    bool special = false, trace = false;
    std::optional<std::uint32_t> top;
    std::uint32_t context = 0;
};

/// One or several sequences of the same length.
struct LogitsInput {
    std::vector<Token> tokens;         // [n_sequences, seq_len]
    std::vector<std::uint64_t> shape;  // of the ids: one or two dimensions
    [[nodiscard]] std::uint64_t seq_len() const { return shape.back(); }
};

LogitsInput read_input(const LogitsOptions& options, const host::Opened& opened) {
    LogitsInput input;
    if (options.text) {
        input.tokens = opened.tokens(*options.text, {.parse_special = options.special});
        input.shape = {input.tokens.size()};
    } else if (options.tokens->ends_with(".npy")) {
        const NpyArray array = read_npy(*options.tokens);
        if (array.shape.empty() || array.shape.size() > 2)
            throw host::Error(array.path + ": dimensions: expected 1 or 2, got " + std::to_string(array.shape.size()));
        input.tokens = read_ids(array);
        input.shape = array.shape;
    } else {
        input.tokens = read_list("--tokens", *options.tokens, kAny);
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

struct LikelyToken {
    Token id;
    float logit;
    double probability;  ///< in double precision: a figure for people
};

std::vector<LikelyToken> likeliest(const std::vector<float>& logits, std::size_t n) {
    double highest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (const float logit : logits) highest = std::max(highest, static_cast<double>(logit));
    for (const float logit : logits) sum += std::exp(logit - highest);
    std::vector<LikelyToken> all;
    for (const float logit : logits)
        all.push_back({static_cast<Token>(all.size()), logit, std::exp(logit - highest) / sum});
    n = std::min(n, all.size());
    // NaN orders as the lowest, for a comparison must be an order.
    const auto rank = [](const LikelyToken& t) { return t.logit == t.logit ? t.logit : -__builtin_inff(); };
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n), all.end(),
                      [&](const LikelyToken& a, const LikelyToken& b) {
                          return rank(a) != rank(b) ? rank(a) > rank(b) : a.id < b.id;
                      });
    all.resize(n);
    return all;
}

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
    for (const LikelyToken& t : likeliest(sink.last, *options.top))
        object["top"].push_back(
            {{"id", t.id}, {"logit", t.logit}, {"probability", t.probability}, {"text", piece_of(opened, t.id)}});
    if (options.trace) object["trace"] = Json::array();
    for (const TracedOperation& o : tracer.operations())
        object["trace"].push_back({{"layer", o.layer}, {"operation", o.operation}, {"hash", hex(o.hash)}});
    print_line(object);
}

void print_text(const host::Opened& opened, const LogitsOptions& options, const Sink& sink, const Tracer& tracer) {
    for (const TracedOperation& o : tracer.operations())
        std::printf("%4u  %-12s %s\n", o.layer, o.operation.c_str(), hex(o.hash).c_str());
    for (const LikelyToken& t : likeliest(sink.last, *options.top))
        std::printf("%8u %14.6f %7.2f %%  %s\n", t.id, static_cast<double>(t.logit), 100 * t.probability,
                    one_line(piece_of(opened, t.id)).c_str());
}

void logits(LogitsOptions& options) {
    check_view(options.view, options.common);
    const bool prints_other = !options.output.empty() || options.view.wanted() || options.trace;
    if (!options.top) options.top = prints_other ? 0 : 10;
    if (const char* other =
            first_given({{options.trace, "--trace"}, {options.view.wanted(), "--weights or --picture"}}))
        refuse_by_ranks(other);
    need_model(options.model);
    if (options.text.has_value() == options.tokens.has_value())
        throw UsageError(std::string("--tokens or -p: expected one of them, got ") +
                         (options.text ? "both" : "neither"));
    if (options.tokens) keep_from_writing(*options.tokens);
    check_output(options.output, options.common.json);
    host::Opened opened = open_model(options.common, options.model);
    opened.need_logits();
    check_layer(options.view, opened.model.config().decoder);
    const LogitsInput input = read_input(options, opened);
    open_loras(opened, options.loras, options.common.opening());
    const std::uint32_t max_kv_len = options.context ? options.context : static_cast<std::uint32_t>(input.seq_len());
    host::Runtime<Session> running = start_session(opened, options.common.limits(max_kv_len), options.common.session());

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
    const auto declare = [](const Verb& verb, LogitsOptions& o) {
        verb.model(o.model);
        verb.text("--tokens", o.tokens, "ids such as 1,2,3, or an .npy file of [seq_len] or [n, seq_len] ids", "IDS");
        verb.text("-p,--prompt", o.text, "instead of ids: a text");
        verb.output("-o,--output", o.output,
                    "an .npy file for float32 logits, the ids' shape by vocab_size; - for standard output");
        add_view(verb, o.view, true);
        add_loras(verb, o.loras);
        verb.count(
            "--top", o.top, 1, kAny,
            "print the K likeliest next tokens with their probabilities (default 10 where there is no other output)");
        verb.flag("--trace", o.trace, "print a hash for each layer and operation");
        verb.flag("--special", o.special, "read <|name|> in the text as that special token");
        verb.count("--context", o.context, 1, kAny, "positions to hold (default: what the tokens need)");
        verb.kv(o.common.kv_type);
        verb.opening(o.common);
    };
    add_verb<LogitsOptions>(app, "logits", "The logits after every token, or what comes next", logits, declare);
}

}  // namespace fovea
