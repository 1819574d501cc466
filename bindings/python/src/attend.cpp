// One attention over arrays: heads as they are, in any layout, or a module's projections around them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/src/arrays.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/interrupt.h"
#include "bindings/python/src/module.h"
#include "bindings/python/src/opened.h"
#include "fovea/encode.h"
#include "fovea/host/runtime.h"
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
        refuse_value(what, "[batch, heads, seq, dim], [heads, seq, dim] or [seq, dim]", in_words(shape));
    if (shape[n - 1] > 1 && strides[n - 1] != 1) refuse_value(what, "a last dimension without gaps", "other strides");
    const auto at = [&](std::size_t from_end) { return static_cast<std::uint64_t>(strides[n - from_end]); };
    HeadLayout layout{.n_rows = shape[n - 2], .dim = shape[n - 1], .strides = {}};
    layout.strides.row = at(2);
    if (n > 2) layout.n_heads = shape[n - 3], layout.strides.head = at(3);
    if (n > 3) layout.n_sequences = shape[0], layout.strides.sequence = at(4);
    for (const std::uint64_t count : shape)
        if (count > kMostRows) refuse_value(what, "dimensions of at most 4194304", in_words(shape));
    return layout;
}

void refuse_overlap(const Output& out, std::span<const std::byte> read, const char* what) {
    const auto written = std::as_bytes(out.span());
    if (read.data() < written.data() + written.size() && written.data() < read.data() + read.size())
        throw ValueRefused(std::string("out: expected memory of its own, got that of ") + what);
}

void same(const char* what, const char* unit, std::uint64_t wanted, std::uint64_t had) {
    if (wanted != had) refuse_value(what, std::to_string(wanted) + " " + unit, std::to_string(had));
}

/// What a call reads and writes, checked.
struct AttendJob {
    Floats query, key, value, past_key, past_value;
    MaskArray mask, padding;
    std::vector<std::uint32_t> kv_lengths;
    Output out, weights;
    AttendInput input;
    AttentionSize size;
    std::uint64_t n_appended = 0;
};

void refuse_overlaps(const AttendJob& job) {
    const AttendInput& in = job.input;
    for (const auto& [heads, what] :
         {std::pair(&in.query, "query"), std::pair(&in.key, "key"), std::pair(&in.value, "value"),
          std::pair(&in.past_key, "past_key"), std::pair(&in.past_value, "past_value")})
        refuse_overlap(job.out, std::as_bytes(heads->data), what);
}

class PyAttention {
public:
    /// Without a model heads are attended to as they are.
    PyAttention(const ModelHandle* model, std::uint32_t n_threads, const std::string& isa)
        : isa_(isa), n_threads_(n_threads ? n_threads : default_threads()) {
        heads_.name = "heads";
        if (!model) return;
        opened_ = model->get();
        heads_.model = opened_->model;
    }
    PyAttention(const PyAttention&) = delete;
    PyAttention& operator=(const PyAttention&) = delete;

    /// The arguments beside the three arrays. None: not given.
    struct Given {
        nb::handle out;
        bool causal;
        nb::handle mask, key_padding_mask, weights;
        bool per_head;         ///< the weights, instead of their mean
        float scale, softcap;  ///< 0: 1/sqrt(head_dim), none
        nb::handle kv_lengths, past_key, past_value;
    };
    void attend(nb::handle query, nb::handle key, nb::handle value, const Given& given);
    void cancel() noexcept { gate_.cancel(); }

private:
    [[nodiscard]] AttentionShape read_heads(const Given& given, AttendJob& job);
    void read_rows(const Given& given, AttendJob& job);
    void prepare(const AttendJob& job, const AttentionShape& heads);

    SharedModel opened_;
    host::Opened heads_;  // the model, or one of the heads that a call asks for
    AttentionShape shape_;
    std::string isa_;
    std::uint32_t n_threads_;
    host::Runtime<Session> session_;
    PassGate gate_;
};

AttentionShape PyAttention::read_heads(const Given& given, AttendJob& job) {
    const HeadLayout query = layout_of(job.query.shape, job.query.strides, "query");
    const HeadLayout key = layout_of(job.key.shape, job.key.strides, "key");
    const HeadLayout value = layout_of(job.value.shape, job.value.strides, "value");
    same("key", "sequences", query.n_sequences, key.n_sequences);
    same("value", "sequences", query.n_sequences, value.n_sequences);
    same("key", "dims in a head", query.dim, key.dim);
    same("value", "heads", key.n_heads, value.n_heads);
    same("value", "rows", key.n_rows, value.n_rows);
    AttendInput& in = job.input;
    in.query = {job.query.span(), query.strides};
    in.key = {job.key.span(), key.strides};
    in.value = {job.value.span(), value.strides};
    if ((job.past_key.data == nullptr) != (job.past_value.data == nullptr))
        refuse_value("past_key and past_value", "both or none", "one of them");
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
        in.past_key = {job.past_key.span(), past_key.strides};
        in.past_value = {job.past_value.span(), past_value.strides};
        in.n_past = static_cast<std::uint32_t>(past_key.n_rows);
    }
    in.n_queries = static_cast<std::uint32_t>(query.n_rows);
    in.n_keys = static_cast<std::uint32_t>(key.n_rows);
    job.size = {query.n_sequences, query.n_heads, query.n_rows, in.n_past + key.n_rows};
    Shape shape = job.query.shape;
    shape.back() = value.dim;
    job.out = read_output(given.out, "out", shape, true);
    in.out_strides = layout_of(job.out.shape, job.out.strides, "out").strides;
    refuse_overlaps(job);

    AttentionShape heads;
    heads.n_heads = static_cast<std::uint32_t>(query.n_heads);
    heads.n_kv_heads = static_cast<std::uint32_t>(key.n_heads);
    heads.head_dim = static_cast<std::uint32_t>(query.dim);
    heads.value_head_dim = static_cast<std::uint32_t>(value.dim);
    heads.no_projections = true;
    heads.softmax_scale = given.scale;
    heads.score_softcap = given.softcap;
    return heads;
}

void PyAttention::read_rows(const Given& given, AttendJob& job) {
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
            refuse_value(side.what, "[batch, seq, " + std::to_string(side.width) + "]", in_words(s));
        if (!side.array.packed()) refuse_value(side.what, "a C-contiguous array", "other strides");
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
    refuse_overlaps(job);
}

void PyAttention::prepare(const AttendJob& job, const AttentionShape& heads) {
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

void PyAttention::attend(nb::handle query, nb::handle key, nb::handle value, const Given& given) {
    AttendJob job;
    job.query = read_floats(query, "query");
    job.key = read_floats(key, "key");
    job.value = read_floats(value, "value");
    if (!job.query.data || !job.key.data || !job.value.data)
        refuse_type("query, key and value", "arrays of float32", "None");
    job.past_key = read_floats(given.past_key, "past_key");
    job.past_value = read_floats(given.past_value, "past_value");
    AttentionShape heads;
    if (opened_)
        read_rows(given, job);
    else
        heads = read_heads(given, job);
    job.mask = read_mask(given.mask, "mask", job.size);
    job.padding = read_padding(given.key_padding_mask, "key_padding_mask", job.size);
    for (const auto& [mask, what] : {std::pair(&job.mask, "mask"), std::pair(&job.padding, "key_padding_mask")})
        if (mask->array.is_valid())
            refuse_overlap(job.out, {static_cast<const std::byte*>(mask->array.data()), mask->array.nbytes()}, what);
    job.input.masks = {job.mask.mask, job.padding.mask, given.causal};
    if (!given.kv_lengths.is_none()) {
        job.kv_lengths = read_ids(given.kv_lengths, "kv_lengths");
        same("kv_lengths", "lengths", job.size.n_sequences, job.kv_lengths.size());
        job.input.kv_lengths = job.kv_lengths;
    }
    job.input.n_sequences = static_cast<std::uint32_t>(std::min(job.size.n_sequences, kMostRows + 1));
    AttentionWeights asked;
    if (!given.weights.is_none()) {
        const std::uint64_t n_keys = job.size.n_keys + job.n_appended;
        Shape shape = {job.size.n_sequences, job.size.n_queries, n_keys};
        if (given.per_head) shape.insert(shape.begin() + 1, job.size.n_heads);
        job.weights = read_output(given.weights, "weights", shape);
        asked = {.per_head = given.per_head,
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

}  // namespace

void bind_attend(nb::module_& module) {
    const auto maybe = [](const char* name) { return nb::arg(name).none() = nb::none(); };
    nb::class_<PyAttention>(module, "Attention", "One attention, and the arena that the largest call so far took.")
        .def(nb::init<const ModelHandle*, std::uint32_t, const std::string&>(), nb::arg("model").none(),
             nb::arg("n_threads") = 0, nb::arg("isa") = "")
        .def(
            "attend",
            [](PyAttention& self, nb::handle query, nb::handle key, nb::handle value, nb::handle out, bool causal,
               nb::handle mask, nb::handle key_padding_mask, nb::handle weights, bool per_head, float scale,
               float softcap, nb::handle kv_lengths, nb::handle past_key, nb::handle past_value) {
                self.attend(query, key, value,
                            {out, causal, mask, key_padding_mask, weights, per_head, scale, softcap, kv_lengths,
                             past_key, past_value});
            },
            nb::arg("query").none(), nb::arg("key").none(), nb::arg("value").none(), nb::arg("out"), nb::arg("causal"),
            maybe("mask"), maybe("key_padding_mask"), maybe("weights"), nb::arg("per_head") = true,
            nb::arg("scale") = 0.0f, nb::arg("softcap") = 0.0f, maybe("kv_lengths"), maybe("past_key"),
            maybe("past_value"))
        .def("cancel", &PyAttention::cancel);
}

}  // namespace fovea::python
