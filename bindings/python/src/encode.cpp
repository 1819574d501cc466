// Vectors: texts by length, ids, and arrays for encoders and decoders of vectors.
#include <nanobind/stl/optional.h>

#include <algorithm>

#include "bindings/python/src/errors.h"
#include "bindings/python/src/session.h"
#include "host/model/stacks.h"

namespace fovea::python {
namespace {

/// Sequences of an array's rows.
struct Side {
    Floats array;
    std::vector<std::uint32_t> lengths;
    MaskArray mask, padding;  ///< of what attends to it

    [[nodiscard]] Masks masks(bool causal) const {
        return {.attention = mask.mask, .padding = padding.mask, .causal = causal};
    }
    [[nodiscard]] Sequences view(bool causal) const {
        return {.vectors = array.span(), .lengths = lengths, .masks = masks(causal)};
    }
    [[nodiscard]] std::uint64_t n_rows() const { return lengths.empty() ? 0 : array.shape[array.shape.size() - 2]; }
};

Side read_side(const nb::dict& inputs, const char* name, std::uint32_t d_model) {
    Side side;
    if (!inputs.contains(name)) return side;
    side.array = read_floats(inputs[name], name);
    if (!side.array.data) return side;
    const Shape& shape = side.array.shape;
    if ((shape.size() != 2 && shape.size() != 3) || shape.back() != d_model)
        refuse_value(name, "[batch, seq, " + std::to_string(d_model) + "] or [seq, " + std::to_string(d_model) + "]",
                     in_words(shape));
    if (!side.array.packed()) refuse_value(name, "a C-contiguous array", "other strides");
    if (side.array.span().size() > 0xffffffffu)
        refuse_value(name, "fewer than 2^32 elements", "shape " + in_words(shape));
    side.lengths.assign(shape.size() == 3 ? shape[0] : 1, static_cast<std::uint32_t>(shape[shape.size() - 2]));
    return side;
}

void read_masks(const nb::dict& inputs, const std::string& of, const Side& queries, const Side& keys,
                const Stack& stack, Side& side) {
    const AttentionSize size{queries.lengths.size(), heads_of_all(stack), queries.n_rows(), keys.n_rows()};
    const std::string mask = of + "_mask", padding = of + "_padding_mask";
    const auto given = [&](const std::string& name) {
        return inputs.contains(name.c_str()) ? nb::object(inputs[name.c_str()]) : nb::none();
    };
    side.mask = read_mask(given(mask), mask.c_str(), size);
    side.padding = read_padding(given(padding), padding.c_str(), size);
}

struct ArraysJob {
    Sides sides;
    Side source, target, memory;
    EncodeInput input;
    const Side* result = nullptr;  ///< the result has its rows
    const Side* keys = nullptr;    ///< the memory's rows
};

void need(const Side& side, const char* name, bool wanted) {
    if (wanted == side.lengths.empty())
        throw ValueRefused(std::string(name) + (wanted ? ": expected an array, got none"
                                                       : ": expected none with this model, got an array"));
}

void read_sides(const nb::dict& inputs, const Config& config, ArraysJob& job) {
    const Sides& sides = job.sides;
    job.source = read_side(inputs, "source", config.encoder.d_model);
    job.target = read_side(inputs, "target", config.decoder.d_model);
    job.memory = read_side(inputs, "memory", config.decoder.d_model);
    need(job.source, "source", sides.encodes);
    need(job.target, "target", sides.decodes);
    need(job.memory, "memory", sides.reads_memory && !sides.encodes);
    job.result = sides.decodes ? &job.target : &job.source;
    job.keys = sides.encodes ? &job.source : &job.memory;
}

void read_job(const OpenedModel& opened, const nb::dict& inputs, ArraysJob& job) {
    const Config& config = opened.model.config();
    if (input_stack(opened.config()).vocab_size)
        refuse_value(opened.name + ": model", "one that reads vectors", "one that reads text");
    job.sides = sides_of(config);
    read_sides(inputs, config, job);
    const bool causal = inputs.contains("causal") && nb::cast<bool>(inputs["causal"]);
    if (job.sides.encodes) read_masks(inputs, "source", job.source, job.source, config.encoder, job.source);
    if (job.sides.decodes) read_masks(inputs, "target", job.target, job.target, config.decoder, job.target);
    if (job.sides.reads_memory) {
        const std::size_t want = job.keys->lengths.size(), had = job.target.lengths.size();
        if (want != had)
            refuse_value("target", std::to_string(want) + " sequences as there are of the memory", std::to_string(had));
        read_masks(inputs, "memory", job.target, *job.keys, config.decoder, job.memory);
    }
    if (job.sides.encodes) job.input.source = job.source.view(causal && !job.sides.decodes);
    if (job.sides.decodes) job.input.target = job.target.view(causal);
    job.input.memory = job.memory.array.span();
    job.input.memory_lengths = job.memory.lengths;
    job.input.memory_masks = job.memory.masks(false);
}

}  // namespace

std::size_t PySession::n_cut(std::span<const TextTokens> texts) {
    return static_cast<std::size_t>(
        std::count_if(texts.begin(), texts.end(), [](const TextTokens& text) { return text.is_cut(); }));
}

std::size_t PySession::encode_texts(const nb::list& texts, const std::string& prompt, std::uint32_t most_tokens,
                                    bool parse_special, nb::handle out_object) {
    const std::optional<WantedRows> wanted = vector_of_text(*opened_);
    if (!wanted) refuse_value(opened_->name + ": model", "one that makes a vector of a text", "another");
    std::vector<std::string_view> views;
    for (nb::handle text : texts) views.push_back(utf8_of(text, "texts"));
    const Output out = read_output(out_object, "out", {views.size(), opened_->vector_width()});
    const std::uint32_t most = std::min({most_tokens ? most_tokens : fovea::most_tokens(opened_->model),
                                         opened_->config().encoder.max_positions, session_.plan.limits.max_batch});
    std::vector<TextTokens> tokens;
    {
        const WithoutGil released;
        InterruptibleWork work;
        for (const std::string_view view : views) {
            work.next(view.size());
            OpenedModel::check_length(view);
            tokens.push_back(tokens_behind(*opened_, prompt, view, {.parse_special = parse_special, .n_most = most}));
        }
    }
    run_batches(tokens, *wanted, [&](std::size_t i, std::span<const float> vector) {
        std::copy(vector.begin(), vector.end(), out.data + i * vector.size());
    });
    return n_cut(tokens);
}

void PySession::run_batches(std::span<const TextTokens> texts, const WantedRows& wanted, const TakeResults& take) {
    const auto compute = [&](const EncodeInput& input, std::span<float> out) {
        require(gate_.run([&] { return encode(*session_, input, out); }), "texts");
    };
    encode_in_batches(output_stack(opened_->config()), wanted, texts,
                      {session_.plan.limits.max_batch, session_.plan.limits.max_sequences}, compute, take);
}

void PySession::encode_ids(nb::handle object, nb::handle out_object) {
    const Stack& stack = output_stack(opened_->config());
    std::vector<Token> ids = read_ids(object, "ids");
    if (stack.pooling != Pooling::none) drop_pads(opened_->model, ids);
    const Output out = read_output(
        out_object, "out", stack.pooling == Pooling::none ? Shape{ids.size(), stack.d_model} : Shape{stack.d_model});
    const auto length = static_cast<std::uint32_t>(ids.size());
    EncodeInput input;
    input.source.ids = ids;
    input.source.lengths = {&length, 1};
    require(gate_.run([&] { return encode(*session_, input, out.span()); }), "ids");
}

void PySession::encode_arrays(const nb::dict& inputs, nb::handle out_object, const nb::object& weights_object,
                              std::uint32_t layer, bool in_encoder, bool cross) {
    ArraysJob job;
    read_job(*opened_, inputs, job);
    const Stack& stack = output_stack(opened_->config());
    Shape shape = job.result->array.shape;
    if (stack.pooling != Pooling::none) shape.erase(shape.end() - 2);
    shape.back() = stack.d_model;
    const Output out = read_output(out_object, "out", shape);
    AttentionWeights asked;
    Output weights;
    if (!weights_object.is_none()) {
        const Stack& of = in_encoder ? opened_->model.config().encoder : stack;
        const Side& queries = in_encoder ? job.source : *job.result;
        const Side& keys = cross ? *job.keys : queries;
        weights =
            read_output(weights_object, "weights",
                        {queries.lengths.size(), of.block(layer).attention.n_heads, queries.n_rows(), keys.n_rows()});
        asked = {.layer = layer,
                 .in_encoder = in_encoder,
                 .cross = cross,
                 .per_head = true,
                 .n_queries = static_cast<std::uint32_t>(queries.n_rows()),
                 .n_keys = static_cast<std::uint32_t>(keys.n_rows()),
                 .out = weights.span()};
    }
    require(gate_.run([&] {
        Status status = capture_attention(*session_, asked);
        if (status.ok()) status = encode(*session_, job.input, out.span());
        (void)capture_attention(*session_, {});
        return status;
    }),
            "encode");
}

void bind_session(nb::module_& module) {
    module.def("plan", plan_of, nb::arg("model"), nb::arg("limits"), nb::arg("of_workspace") = false);
    nb::class_<PySession>(module, "Session", "An arena with what computes and what remembers.")
        .def(nb::init<const ModelHandle&, const nb::dict&, const std::string&>(), nb::arg("model"), nb::arg("limits"),
             nb::arg("isa") = "")
        .def("forward", &PySession::forward, nb::arg("ids"), nb::arg("out").none(), nb::arg("all") = false)
        .def("rewind", &PySession::rewind_to, nb::arg("kv_len"))
        .def("save", &PySession::save)
        .def("restore", &PySession::restore, nb::arg("saved"))
        .def("copy_from", &PySession::copy_from, nb::arg("other"))
        .def("cancel", &PySession::cancel)
        .def("propose_by", &PySession::propose_by, nb::arg("draft"), nb::arg("always"))
        .def("start", &PySession::start, nb::arg("prompt"), nb::arg("options"), nb::arg("stop"),
             nb::arg("form").none() = nb::none(), nb::arg("chat").none() = nb::none())
        .def("next", &PySession::next, nb::arg("text"))
        .def_prop_ro("figures", &PySession::figures)
        .def("attention", &PySession::attention, nb::arg("ids"), nb::arg("layers"), nb::arg("out"))
        .def("encode_texts", &PySession::encode_texts, nb::arg("texts"), nb::arg("prompt"), nb::arg("most_tokens"),
             nb::arg("parse_special"), nb::arg("out"))
        .def("encode_sparse", &PySession::encode_sparse, nb::arg("texts"), nb::arg("prompt"), nb::arg("parse_special"))
        .def("encode_late", &PySession::encode_late, nb::arg("texts"), nb::arg("prompt").none(), nb::arg("are_queries"),
             nb::arg("parse_special"))
        .def("late_scores", &PySession::late_scores, nb::arg("query"), nb::arg("documents"))
        .def("rows_of_texts", &PySession::rows_of_texts, nb::arg("texts"), nb::arg("pairs").none(), nb::arg("of_head"),
             nb::arg("parse_special"))
        .def("classify", &PySession::classify, nb::arg("texts"), nb::arg("pairs").none(), nb::arg("options"))
        .def("encode_ids", &PySession::encode_ids, nb::arg("ids"), nb::arg("out"))
        .def("encode_arrays", &PySession::encode_arrays, nb::arg("inputs"), nb::arg("out"), nb::arg("weights").none(),
             nb::arg("layer") = 0, nb::arg("in_encoder") = false, nb::arg("cross") = false)
        .def_prop_ro("tokens", &PySession::tokens)
        .def_prop_ro("kv_len", &PySession::kv_len)
        .def_prop_ro("max_kv_len", &PySession::max_kv_len)
        .def_prop_ro("n_kept", &PySession::n_kept)
        .def_prop_ro("isa", &PySession::isa)
        .def_prop_ro("arena_bytes", &PySession::arena_bytes);
}

}  // namespace fovea::python
