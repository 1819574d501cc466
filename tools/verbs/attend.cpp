// fovea attend: one attention over arrays, with a converted module's projections or with heads as they are.
#include <cmath>
#include <cstring>

#include "fovea/host/runtime.h"
#include "host/model/stacks.h"
#include "tools/show/arrays.h"
#include "tools/show/explain.h"
#include "tools/show/view.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

struct AttendOptions {
    CommonOptions common;
    ViewOptions view;
    std::string model, query, key, value, past_key, past_value, kv_lengths;
    std::string attn_mask, keep_mask, key_padding_mask, output;
    bool causal = false, seq_first = false, explain = false;
    std::uint32_t n_heads = 0, n_kv_heads = 0;
    std::optional<float> scale;
    float softcap = 0;
    std::uint32_t repeat = 1;
};

using Shape = std::vector<std::uint64_t>;

void refuse_shape(const FloatArray& array, const std::string& wanted) {
    throw host::Error(array.path + ": shape: expected " + wanted + ", got " + in_words(array.shape));
}

/// How an array of heads is laid out: [sequence, head, row, dim], [sequence, row, head·dim] or, seq-first,
/// [row, sequence, head·dim], or [row, head·dim] of one sequence.
struct HeadLayout {
    std::uint64_t n_sequences = 1, n_heads = 1, n_rows = 0, dim = 0;
    Strides strides;

    HeadLayout(const FloatArray& array, std::uint64_t heads, bool seq_first) {
        const Shape& s = array.shape;
        if (s.size() < 2 || s.size() > 4)
            refuse_shape(array, "[batch, heads, seq, dim], [batch, seq, heads times dim] or [seq, heads times dim]");
        if (s.size() == 4) {
            n_sequences = s[0], n_heads = s[1], n_rows = s[2], dim = s[3];
            strides = {n_heads * n_rows * dim, dim, n_rows * dim};
            if (heads && heads != n_heads) refuse_shape(array, std::to_string(heads) + " heads");
            return;
        }
        n_heads = heads ? heads : 1;
        const std::uint64_t width = s.back();
        if (width % n_heads) refuse_shape(array, "a last dimension that " + std::to_string(n_heads) + " heads divide");
        dim = width / n_heads;
        seq_first = seq_first && s.size() == 3;
        n_rows = seq_first ? s[0] : s[s.size() - 2];
        if (s.size() == 3) n_sequences = seq_first ? s[1] : s[0];
        strides = seq_first ? Strides{width, n_sequences * width, dim} : Strides{n_rows * width, width, dim};
    }
};

/// Everything an attention reads, and what it makes: arrays, and the engine's view of them.
struct AttendJob {
    FloatArray query, key, value, past_key, past_value;
    std::vector<std::uint32_t> kv_lengths;
    MaskArray mask, padding;
    AttendInput input;
    AttentionSize size;
    Shape out_shape;
    bool batched = true;
};

void read_inputs(const AttendOptions& options, AttendJob& job) {
    job.query = read_floats(options.query);
    job.key = options.key.empty() ? job.query : read_floats(options.key);
    job.value = options.value.empty() ? job.key : read_floats(options.value);
    for (const FloatArray* array : {&job.key, &job.value})
        if (array->shape.size() != job.query.shape.size())
            refuse_shape(*array, std::to_string(job.query.shape.size()) + " dimensions, as the query has");
}

/// Masks and lengths, once the sizes are known.
void read_masks(const AttendOptions& options, AttendJob& job) {
    if (!options.attn_mask.empty() && !options.keep_mask.empty())
        throw UsageError("--attn-mask or --keep-mask: expected one of them, got both");
    const bool keep = !options.keep_mask.empty();
    job.mask = read_mask(keep ? options.keep_mask : options.attn_mask, keep, job.size);
    job.padding = read_padding(options.key_padding_mask, job.size);
    job.kv_lengths = read_lengths(options.kv_lengths, job.size.n_sequences);
    job.input.masks = {job.mask.mask, job.padding.mask, options.causal};
    job.input.kv_lengths = job.kv_lengths;
}

/// Heads as they are: what the options do not say the shapes do.
AttentionShape bare_heads(const AttendOptions& options, AttendJob& job) {
    const HeadLayout query(job.query, options.n_heads, options.seq_first);
    const std::uint64_t kv_heads = options.n_kv_heads          ? options.n_kv_heads
                                   : job.key.shape.size() == 4 ? 0
                                                               : query.n_heads;
    const HeadLayout key(job.key, kv_heads, options.seq_first), value(job.value, key.n_heads, options.seq_first);
    const auto same = [](const FloatArray& array, const char* what, std::uint64_t wanted, std::uint64_t had) {
        if (wanted != had)
            throw host::Error(array.path + ": " + what + ": expected " + std::to_string(wanted) + ", got " +
                              std::to_string(had) + " in shape " + in_words(array.shape));
    };
    const auto matches = [&](const FloatArray& array, const HeadLayout& of, std::uint64_t n_rows, std::uint64_t dim) {
        same(array, "sequences", query.n_sequences, of.n_sequences);
        same(array, "heads", key.n_heads, of.n_heads);
        if (n_rows) same(array, "rows", n_rows, of.n_rows);
        if (dim) same(array, "width of a head", dim, of.dim);
    };
    matches(job.key, key, 0, query.dim);
    matches(job.value, value, key.n_rows, 0);
    AttendInput& in = job.input;
    in.query = {job.query.data, query.strides};
    in.key = {job.key.data, key.strides};
    in.value = {job.value.data, value.strides};
    if (options.past_key.empty() != options.past_value.empty())
        throw UsageError("--past-key and --past-value: expected both, got one of them");
    if (!options.past_key.empty()) {
        job.past_key = read_floats(options.past_key);
        job.past_value = read_floats(options.past_value);
        const HeadLayout past_key(job.past_key, key.n_heads, options.seq_first);
        const HeadLayout past_value(job.past_value, key.n_heads, options.seq_first);
        matches(job.past_key, past_key, 0, query.dim);
        matches(job.past_value, past_value, past_key.n_rows, value.dim);
        in.past_key = {job.past_key.data, past_key.strides};
        in.past_value = {job.past_value.data, past_value.strides};
        in.n_past = static_cast<std::uint32_t>(past_key.n_rows);
    }
    in.n_queries = static_cast<std::uint32_t>(query.n_rows);
    in.n_keys = static_cast<std::uint32_t>(key.n_rows);
    job.size = {query.n_sequences, query.n_heads, query.n_rows, in.n_past + key.n_rows};
    job.out_shape = job.query.shape;
    job.out_shape.back() = job.query.shape.size() == 4 ? value.dim : query.n_heads * value.dim;
    FloatArray out;  // laid out as the query is
    out.shape = job.out_shape;
    in.out_strides = HeadLayout(out, query.n_heads, options.seq_first).strides;
    job.batched = job.query.shape.size() > 2;

    AttentionShape heads;
    heads.n_heads = static_cast<std::uint32_t>(query.n_heads);
    heads.n_kv_heads = static_cast<std::uint32_t>(key.n_heads);
    heads.head_dim = static_cast<std::uint32_t>(query.dim);
    heads.value_head_dim = static_cast<std::uint32_t>(value.dim);
    heads.softmax_scale = options.scale.value_or(0);
    heads.score_softcap = options.softcap;
    return heads;
}

/// Rows for a module's projections, in the order it takes them.
void module_rows(const AttendOptions& options, const host::Opened& opened, AttendJob& job) {
    const Stack& stack = output_stack(opened.model.config());
    const AttentionShape& b = stack.blocks[0].attention;
    const auto width = [&](std::uint32_t w) { return w ? w : stack.d_model; };
    job.batched = job.query.shape.size() == 3;
    settle_rows(job.query, width(b.query_width), options.seq_first);
    settle_rows(job.key, width(b.key_width), options.seq_first);
    settle_rows(job.value, width(b.value_width), options.seq_first);
    const auto rows = [&](const FloatArray& array) { return array.shape[array.shape.size() - 2]; };
    const std::uint64_t n = job.batched ? job.query.shape[0] : 1;
    if (job.batched && (job.key.shape[0] != n || job.value.shape[0] != n))
        refuse_shape(job.key.shape[0] != n ? job.key : job.value, std::to_string(n) + " sequences, as the query has");
    if (rows(job.value) != rows(job.key))
        refuse_shape(job.value, std::to_string(rows(job.key)) + " rows, as the key has");
    AttendInput& in = job.input;
    in.query.data = job.query.data;
    // The same rows are one operand of all three maps, which the engine knows by their place.
    in.key.data = options.key.empty() ? in.query.data : std::span<const float>(job.key.data);
    in.value.data = options.value.empty() ? in.key.data : std::span<const float>(job.value.data);
    in.n_queries = static_cast<std::uint32_t>(rows(job.query));
    in.n_keys = static_cast<std::uint32_t>(rows(job.key));
    job.size = {n, b.n_heads, rows(job.query), rows(job.key)};
    job.out_shape = job.query.shape;
    job.out_shape.back() = b.has_output_map ? width(b.output_width) : std::uint64_t{b.n_heads} * b.value_head_dim;
}

/// Keys that the module appends come last.
Attended attended_of(const host::Opened& opened, const AttendJob& job) {
    Attended attended{.stack = &output_stack(opened.model.config()),
                      .model = opened.name,
                      .title = "attention",
                      .batched = job.batched};
    const Block& b = attended.stack->blocks[0];
    std::vector<std::string> keys = position_labels(job.size.n_keys);
    if (b.attention.bias_kv) keys.emplace_back("bias");
    if (b.attention.zero_attn) keys.emplace_back("zero");
    attended.queries.assign(job.size.n_sequences, position_labels(job.size.n_queries));
    attended.keys.assign(job.size.n_sequences, keys);
    return attended;
}

/// The steps, and how what they end in compares with the fused path's result.
void print_steps(const AttendOptions& options, const Model& model, const AttendJob& job,
                 const std::vector<float>& fused) {
    const Block& block = output_stack(model.config()).blocks[0];
    if (block.attention.window || block.attention.query_key_norm != Norm::none)
        throw host::Error(
            "--explain: expected attention without a window and norms of queries and keys, got one with them");
    const AttentionSize& size = job.size;
    const std::uint64_t most = kMostExplained / (size.n_sequences * size.n_heads);
    if (size.n_keys + 2 > most / std::max<std::uint64_t>(size.n_queries, 1))
        throw host::Error("--explain: expected at most " + std::to_string(kMostExplained) + " scores, got " +
                          std::to_string(size.n_sequences * size.n_heads) + " matrices of " +
                          in_words(std::vector{size.n_queries, size.n_keys}));
    std::vector<float> out;
    std::printf("%s",
                in_words(explain(model, job.input, options.common.kv_type, options.common.isa_or_best(), out)).c_str());
    double most_off = 0;
    for (std::size_t i = 0; i < out.size(); ++i)
        most_off = std::max(most_off, std::abs(static_cast<double>(out[i]) - static_cast<double>(fused[i])));
    if (std::memcmp(out.data(), fused.data(), out.size() * sizeof(float)) == 0)
        std::printf("The fused path, which keeps no scores, gives the same bits.\n");
    else
        std::printf("The fused path, which keeps no scores, differs by at most %.3g.\n", most_off);
}

void attend_arrays(AttendOptions& options) {
    if (options.scale == 0.0f) throw UsageError("--scale: expected a number other than 0, got 0");
    if (options.query.empty()) throw UsageError("--query: expected an .npy file, got none");
    if (options.output.empty() && !options.view.wanted() && !options.explain)
        throw UsageError("-o: expected a file for the result, got none");
    check_output(options.output, options.common.json);
    check_view(options.view, options.common);
    if (options.explain && options.common.json) throw UsageError("--explain or --json: expected one of them, got both");
    settle(options.common);
    AttendJob job;
    host::Opened opened;
    if (options.model.empty()) {
        opened.name = "attend";
        read_inputs(options, job);
        require(attention_model(bare_heads(options, job), opened.model), "heads");
    } else {
        if (const char* bare =
                first_given({{options.n_heads || options.n_kv_heads, "--n-heads or --n-kv-heads"},
                             {options.scale || options.softcap != 0, "--scale or --softcap"},
                             {!options.past_key.empty() || !options.past_value.empty(), "--past-key or --past-value"}}))
            throw UsageError(std::string(bare) + ": expected no MODEL beside it, got one");
        opened = open_path(options.model, options.common.opening());
        read_inputs(options, job);
        module_rows(options, opened, job);
    }
    read_masks(options, job);
    job.input.n_sequences = static_cast<std::uint32_t>(job.size.n_sequences);

    Limits limits = options.common.limits();
    limits.max_batch = fitting_limit(job.size.n_sequences * job.size.n_queries);
    limits.max_sequences = job.input.n_sequences;
    limits.max_key_rows = fitting_limit(job.size.n_sequences * job.size.n_keys);
    host::Runtime<Session> running = start_session(opened, limits, options.common.session());

    FloatArray result{options.output, job.out_shape, {}};
    std::uint64_t n_out = 1;
    for (const std::uint64_t n : job.out_shape) n_out *= n;
    result.data.resize(n_out);
    double seconds = 0;
    const auto pass = [&](const AttentionWeights& asked) {
        require(capture_attention(*running, asked));
        seconds = timed(options.repeat, [&] { require(attend(*running, job.input, result.data), opened.name); });
    };
    const Attended attended = attended_of(opened, job);
    show_attention(options.view, {&attended, 1}, 0, pass);
    if (options.explain) print_steps(options, opened.model, job, result.data);
    finish_arrays(options.output, std::move(result), options.seq_first && job.batched && !options.model.empty(),
                  options.common.json, options.view.weights.empty() ? Shape{} : attended.weights_shape(options.view),
                  running, seconds);
}

}  // namespace

void add_attend(CLI::App& app) {
    const auto declare = [](const Verb& verb, AttendOptions& o) {
        verb.model(o.model, "a converted module (default: none, heads are attended to as they are)");
        verb.input("--query", o.query, "[batch, heads, seq, dim], [batch, seq, width] or [seq, width]");
        verb.input("--key", o.key, "keys' rows or heads (default: the query's)");
        verb.input("--value", o.value, "values' rows or heads (default: the keys')");
        verb.input("--attn-mask", o.attn_mask,
                   "[query, key] or larger: true hides a pair, numbers are added to its score");
        verb.input("--keep-mask", o.keep_mask, "the same where true shows a pair");
        verb.input("--key-padding-mask", o.key_padding_mask, "[batch, key]: true hides a key");
        verb.flag("--causal", o.causal, "a query sees the keys up to its own position");
        verb.flag("--seq-first", o.seq_first, "rows are [seq, batch, width], here and in the result");
        verb.output("-o,--output", o.output, "an .npy file for the result, float32; - for standard output");
        verb.flag("--explain", o.explain, "print each step: its shape, formula and first values");
        add_view(verb, o.view, false);
        verb.count("--n-heads", o.n_heads, 1, 1u << 16, "without MODEL: heads side by side in a row");
        verb.count("--n-kv-heads", o.n_kv_heads, 1, 1u << 16, "without MODEL: heads of keys and values");
        verb.real("--scale", o.scale, -1e30f, 1e30f, "without MODEL: multiplies scores (default 1/sqrt(dim))");
        verb.real("--softcap", o.softcap, 0, 1e30f, "without MODEL: scores become c*tanh(score/c)");
        verb.input("--past-key", o.past_key, "without MODEL: keys that come before the others");
        verb.input("--past-value", o.past_value, "without MODEL: their values");
        verb.input("--kv-lengths", o.kv_lengths, "[batch]: how many of each sequence's keys are real");
        verb.kv(o.common.kv_type);
        verb.count("--repeat", o.repeat, 1, 1000000, "times to compute it; --json tells their median");
        verb.opening(o.common);
    };
    add_verb<AttendOptions>(app, "attend", "One attention over arrays: a converted module, or heads alone",
                            attend_arrays, declare);
}

}  // namespace fovea
