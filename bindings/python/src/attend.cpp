// One attention over arrays: heads as they are, in any layout, or a module's projections around them.
#include "bindings/python/src/attend.h"

#include <algorithm>

#include "bindings/python/src/errors.h"
#include "host/model/stacks.h"

namespace fovea::python {
namespace {

constexpr std::uint64_t kMostRows = 1u << 22;  // as a plan takes

/// [sequence, head, row, dim] of an array whose leading dimensions may be missing.
struct HeadLayout {
    std::uint64_t n_sequences = 1, n_heads = 1, n_rows = 0, dim = 0;
    Strides strides;
};

HeadLayout layout_of(const Shape& shape, const std::vector<std::int64_t>& strides, const char* what) {
    const std::size_t n = shape.size();
    if (n < 2 || n > 4)
        throw ValueRefused(std::string(what) +
                           ": expected [batch, heads, seq, dim], [heads, seq, dim] or [seq, dim], got " +
                           in_words(shape));
    if (shape[n - 1] > 1 && strides[n - 1] != 1)
        throw ValueRefused(std::string(what) + ": expected a last dimension without gaps, got other strides");
    const auto at = [&](std::size_t from_end) { return static_cast<std::uint64_t>(strides[n - from_end]); };
    HeadLayout layout{.n_rows = shape[n - 2], .dim = shape[n - 1], .strides = {}};
    layout.strides.row = at(2);
    if (n > 2) layout.n_heads = shape[n - 3], layout.strides.head = at(3);
    if (n > 3) layout.n_sequences = shape[0], layout.strides.sequence = at(4);
    for (const std::uint64_t count : shape)
        if (count > kMostRows)
            throw ValueRefused(std::string(what) + ": expected dimensions of at most 4194304, got " + in_words(shape));
    return layout;
}

/// The part of memory from the first element to the last.
std::span<const float> extent(const Floats& floats, const HeadLayout& layout) {
    const Strides& s = layout.strides;
    const std::uint64_t n = (layout.n_sequences - 1) * s.sequence + (layout.n_heads - 1) * s.head +
                            (layout.n_rows - 1) * s.row + layout.dim;
    return {floats.data, static_cast<std::size_t>(n)};
}

void refuse_overlap(const Output& out, std::span<const std::byte> read, const char* what) {
    const auto written = std::as_bytes(out.span());
    if (read.data() < written.data() + written.size() && written.data() < read.data() + read.size())
        throw ValueRefused(std::string("out: expected memory of its own, got that of ") + what);
}

void refuse_overlap(const Output& out, const Heads& heads, const char* what) {
    refuse_overlap(out, std::as_bytes(heads.data), what);
}

void refuse_overlap(const Output& out, const MaskArray& mask, const char* what) {
    refuse_overlap(out, {static_cast<const std::byte*>(mask.array.data()), mask.array.nbytes()}, what);
}

void same(const char* what, const char* unit, std::uint64_t wanted, std::uint64_t had) {
    if (wanted != had)
        throw ValueRefused(std::string(what) + ": expected " + std::to_string(wanted) + " " + unit + ", got " +
                           std::to_string(had));
}

}  // namespace

/// What a call reads and writes, checked.
struct PyAttention::Job {
    Floats query, key, value, past_key, past_value;
    MaskArray mask, padding;
    std::vector<std::uint32_t> kv_lengths;
    Output out, weights;
    AttendInput input;
    AttentionSize size;
    std::uint64_t n_appended = 0;
    bool per_head = true;
};

PyAttention::PyAttention(const ModelHandle* model, std::uint32_t n_threads, const std::string& isa)
    : isa_(isa), n_threads_(n_threads ? n_threads : default_threads()) {
    heads_.name = "heads";
    if (!model) return;
    opened_ = model->get();
    heads_.model = opened_->model;
}

AttentionShape PyAttention::read_heads(const Given& given, Job& job) {
    const HeadLayout query = layout_of(job.query.shape, job.query.strides, "query");
    const HeadLayout key = layout_of(job.key.shape, job.key.strides, "key");
    const HeadLayout value = layout_of(job.value.shape, job.value.strides, "value");
    same("key", "sequences", query.n_sequences, key.n_sequences);
    same("value", "sequences", query.n_sequences, value.n_sequences);
    same("key", "dims in a head", query.dim, key.dim);
    same("value", "heads", key.n_heads, value.n_heads);
    same("value", "rows", key.n_rows, value.n_rows);
    AttendInput& in = job.input;
    in.query = {extent(job.query, query), query.strides};
    in.key = {extent(job.key, key), key.strides};
    in.value = {extent(job.value, value), value.strides};
    if ((job.past_key.data == nullptr) != (job.past_value.data == nullptr))
        throw ValueRefused("past_key and past_value: expected both or none, got one of them");
    if (job.past_key.data) {
        const HeadLayout past_key = layout_of(job.past_key.shape, job.past_key.strides, "past_key");
        const HeadLayout past_value = layout_of(job.past_value.shape, job.past_value.strides, "past_value");
        for (const HeadLayout* past : {&past_key, &past_value}) {
            same("past_key and past_value", "sequences", query.n_sequences, past->n_sequences);
            same("past_key and past_value", "heads", key.n_heads, past->n_heads);
        }
        same("past_key", "dims in a head", key.dim, past_key.dim);
        same("past_value", "dims in a head", value.dim, past_value.dim);
        same("past_value", "rows", past_key.n_rows, past_value.n_rows);
        in.past_key = {extent(job.past_key, past_key), past_key.strides};
        in.past_value = {extent(job.past_value, past_value), past_value.strides};
        in.n_past = static_cast<std::uint32_t>(past_key.n_rows);
    }
    in.n_queries = static_cast<std::uint32_t>(query.n_rows);
    in.n_keys = static_cast<std::uint32_t>(key.n_rows);
    job.size = {query.n_sequences, query.n_heads, query.n_rows, in.n_past + key.n_rows};
    Shape shape = job.query.shape;
    shape.back() = value.dim;
    job.out = read_output(given.out, "out", shape, true);
    in.out_strides = layout_of(job.out.shape, job.out.strides, "out").strides;
    refuse_overlap(job.out, in.query, "query");
    refuse_overlap(job.out, in.key, "key");
    refuse_overlap(job.out, in.value, "value");
    refuse_overlap(job.out, in.past_key, "past_key");
    refuse_overlap(job.out, in.past_value, "past_value");

    AttentionShape heads;
    heads.n_heads = static_cast<std::uint32_t>(query.n_heads);
    heads.n_kv_heads = static_cast<std::uint32_t>(key.n_heads);
    heads.head_dim = static_cast<std::uint32_t>(query.dim);
    heads.value_head_dim = static_cast<std::uint32_t>(value.dim);
    heads.no_projections = true;
    if (given.scale.is_valid()) heads.softmax_scale = nb::cast<float>(given.scale);
    if (given.softcap.is_valid()) heads.score_softcap = nb::cast<float>(given.softcap);
    return heads;
}

void PyAttention::read_rows(const Given& given, Job& job) {
    const AttentionShape& b = output_stack(opened_->config()).blocks[0].attention;
    const std::uint32_t d_model = output_stack(opened_->config()).d_model;
    const auto width = [&](std::uint32_t w) { return w ? w : d_model; };
    struct Side {
        const Floats& array;
        const char* what;
        std::uint32_t width;
    };
    for (const Side& side : {Side{job.query, "query", width(b.query_width)}, Side{job.key, "key", width(b.key_width)},
                             Side{job.value, "value", width(b.value_width)}}) {
        const Shape& s = side.array.shape;
        if (s.size() != 3 || s.back() != side.width || s[0] > kMostRows || s[1] > kMostRows)
            throw ValueRefused(std::string(side.what) + ": expected [batch, seq, " + std::to_string(side.width) +
                               "], got " + in_words(s));
        if (!side.array.packed())
            throw ValueRefused(std::string(side.what) + ": expected a C-contiguous array, got other strides");
    }
    same("key", "sequences", job.query.shape[0], job.key.shape[0]);
    same("value", "sequences", job.query.shape[0], job.value.shape[0]);
    same("value", "rows", job.key.shape[1], job.value.shape[1]);
    AttendInput& in = job.input;
    in.query.data = job.query.span();
    in.key.data = job.key.span();
    in.value.data = job.value.span();
    in.n_queries = static_cast<std::uint32_t>(job.query.shape[1]);
    in.n_keys = static_cast<std::uint32_t>(job.key.shape[1]);
    job.size = {job.query.shape[0], b.n_heads, in.n_queries, in.n_keys};
    job.n_appended = std::uint64_t{b.bias_kv} + b.zero_attn;
    const std::uint64_t out_width =
        b.has_output_map ? width(b.output_width) : std::uint64_t{b.n_heads} * b.value_head_dim;
    job.out = read_output(given.out, "out", {job.query.shape[0], job.query.shape[1], out_width});
    refuse_overlap(job.out, in.query, "query");
    refuse_overlap(job.out, in.key, "key");
    refuse_overlap(job.out, in.value, "value");
}

void PyAttention::prepare(const Job& job, const AttentionShape& heads) {
    if (!opened_ && !(heads == shape_ && session_->valid())) {
        require(attention_model(heads, heads_.model), heads_.name);
        shape_ = heads;
        session_ = {};
    }
    const auto rows = [](std::uint64_t n) { return static_cast<std::uint32_t>(std::min(n, kMostRows + 1)); };
    Limits wanted{.n_threads = n_threads_};
    wanted.max_sequences = rows(job.size.n_sequences);
    wanted.max_batch = rows(job.size.n_sequences * job.size.n_queries);
    wanted.max_key_rows = rows(job.size.n_sequences * job.size.n_keys);
    const Limits& had = session_.plan.limits;
    if (session_->valid() && had.max_sequences >= wanted.max_sequences && had.max_batch >= wanted.max_batch &&
        had.max_key_rows >= wanted.max_key_rows)
        return;
    session_ = start_session(heads_, wanted, {.isa = isa_.empty() ? nullptr : isa_.c_str()});
    set_cancel(*session_, gate_.flag());
}

PyAttention::Given::Given(const nb::dict& named) : out(Py_None) {
    const std::pair<std::string_view, nb::handle*> kNames[] = {{"out", &out},
                                                               {"causal", &causal},
                                                               {"mask", &mask},
                                                               {"key_padding_mask", &key_padding_mask},
                                                               {"weights", &weights},
                                                               {"per_head", &per_head},
                                                               {"scale", &scale},
                                                               {"softcap", &softcap},
                                                               {"past_key", &past_key},
                                                               {"past_value", &past_value},
                                                               {"kv_lengths", &kv_lengths}};
    for (const auto& [key, value] : named) {
        const std::string_view name = utf8_of(key, "given");
        for (const auto& [known, place] : kNames)
            if (name == known) *place = value;
    }
}

void PyAttention::attend(nb::handle query, nb::handle key, nb::handle value, const nb::dict& named) {
    const Given given(named);
    Job job;
    job.query = read_floats(query, "query");
    job.key = read_floats(key, "key");
    job.value = read_floats(value, "value");
    if (!job.query.data || !job.key.data || !job.value.data)
        throw TypeRefused("query, key and value: expected arrays of float32, got None");
    if (given.past_key.is_valid()) job.past_key = read_floats(given.past_key, "past_key");
    if (given.past_value.is_valid()) job.past_value = read_floats(given.past_value, "past_value");
    AttentionShape heads;
    if (opened_)
        read_rows(given, job);
    else
        heads = read_heads(given, job);
    if (given.mask.is_valid()) {
        job.mask = read_mask(given.mask, "mask", job.size);
        refuse_overlap(job.out, job.mask, "mask");
    }
    if (given.key_padding_mask.is_valid()) {
        job.padding = read_padding(given.key_padding_mask, "key_padding_mask", job.size);
        refuse_overlap(job.out, job.padding, "key_padding_mask");
    }
    job.input.masks = {job.mask.mask, job.padding.mask, given.causal.ptr() == Py_True};
    if (given.kv_lengths.is_valid()) {
        job.kv_lengths = read_ids(given.kv_lengths, "kv_lengths");
        same("kv_lengths", "lengths", job.size.n_sequences, job.kv_lengths.size());
        job.input.kv_lengths = job.kv_lengths;
    }
    job.input.n_sequences = static_cast<std::uint32_t>(std::min(job.size.n_sequences, kMostRows + 1));
    AttentionWeights asked;
    if (given.weights.is_valid()) {
        const bool per_head = given.per_head.ptr() == Py_True;
        const std::uint64_t n_keys = job.size.n_keys + job.n_appended;
        Shape shape = {job.size.n_sequences, job.size.n_queries, n_keys};
        if (per_head) shape.insert(shape.begin() + 1, job.size.n_heads);
        job.weights = read_output(given.weights, "weights", shape);
        asked = {.per_head = per_head,
                 .n_queries = job.input.n_queries,
                 .n_keys = static_cast<std::uint32_t>(n_keys),
                 .out = job.weights.span()};
    }
    require(gate_.run([&] {
        prepare(job, heads);
        Status status = capture_attention(*session_, asked);
        if (status.ok()) status = fovea::attend(*session_, job.input, job.out.span());
        if (!asked.out.empty()) (void)capture_attention(*session_, {});
        return status;
    }),
            "attend");
}

void bind_attend(nb::module_& module) {
    nb::class_<PyAttention>(module, "Attention", "One attention, and the arena that the largest call so far took.")
        .def(nb::init<const ModelHandle*, std::uint32_t, const std::string&>(), nb::arg("model").none(),
             nb::arg("n_threads") = 0, nb::arg("isa") = "")
        .def("attend", &PyAttention::attend, nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::arg("given"))
        .def("cancel", &PyAttention::cancel);
}

}  // namespace fovea::python
