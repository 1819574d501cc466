#include "bindings/python/src/session.h"

#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings/python/src/errors.h"
#include "host/base/words.h"
#include "host/model/saved_text.h"
#include "host/model/stacks.h"

namespace fovea::python {
std::uint32_t count_of(nb::handle value, const std::string& name) {
    if (!PyIndex_Check(value.ptr())) refuse_type(name, "a whole number", type_of(value));
    const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
    if (!number.is_valid()) throw nb::python_error();
    std::uint32_t count = 0;
    if (!nb::try_cast(number, count))
        refuse_value(name, "a number from 0 to 4294967295", nb::cast<std::string>(nb::str(number)));
    return count;
}

void read_count(const nb::dict& named, const char* name, std::uint32_t& field) {
    if (named.contains(name)) field = count_of(named[name], name);
}

Type type_named(const std::string& name, const char* what) {
    std::string names;
    for (const Type type : kTypes) {
        if (name == type_name(type)) return type;
        names += std::string(names.empty() ? "" : ", ") + type_name(type);
    }
    refuse_value(what, "one of " + names, name);
}

void read_kv_type(const nb::dict& named, Type& field) {
    if (named.contains("kv_type")) field = type_named(std::string(utf8_of(named["kv_type"], "kv_type")), "kv_type");
}

namespace {

/// The numbers of fovea.Limits.
struct NamedCount {
    const char* name;
    std::uint32_t Limits::*field;
};
constexpr NamedCount kCounts[] = {{"max_kv_len", &Limits::max_kv_len},
                                  {"max_batch", &Limits::max_batch},
                                  {"n_threads", &Limits::n_threads},
                                  {"max_sequences", &Limits::max_sequences},
                                  {"max_key_rows", &Limits::max_key_rows}};

}  // namespace

Limits limits_of(const OpenedModel& opened, const nb::dict& named) {
    Limits limits;
    limits.n_threads = 0;
    read_kv_type(named, limits.kv_type);
    for (const auto& [name, field] : kCounts) read_count(named, name, limits.*field);
    if (limits.n_threads == 0) limits.n_threads = default_threads();
    opened.plan_adapters(limits);
    return limits;
}

nb::tuple plan_of(const ModelHandle& handle, const nb::dict& named, bool of_workspace) {
    const SharedModel opened = handle.get();
    Plan plan;
    require((of_workspace ? make_workspace_plan : make_plan)(opened->model.config(), limits_of(*opened, named), plan),
            opened->name);
    nb::dict limits;
    for (const auto& [name, field] : kCounts) limits[name] = plan.limits.*field;
    limits["kv_type"] = type_name(plan.limits.kv_type);
    nb::list parts;
    for (std::uint32_t i = 0; i < plan.n_parts; ++i)
        parts.append(nb::make_tuple(plan.parts[i].name, plan.parts[i].offset, plan.parts[i].bytes));
    return nb::make_tuple(plan.arena_bytes, limits, parts);
}

PySession::PySession(const ModelHandle& model, const nb::dict& named, const std::string& isa) : opened_(model.get()) {
    const Limits limits = limits_of(*opened_, named);
    const WithoutGil released;
    session_ = start_session(*opened_, limits, {.isa = isa.empty() ? nullptr : isa.c_str()});
    set_cancel(*session_, gate_.flag());
}

void PySession::propose_by(const ModelHandle& draft, bool always) {
    need_logits();
    const SharedModel opened = draft.get();
    opened->need_logits();
    opened_->check_same_tokens(*opened);
    const Limits limits{.max_kv_len = std::min(session_->max_kv_len(), opened->config().decoder.max_positions),
                        .n_threads = session_.plan.limits.n_threads};
    require(gate_.alone([&]() -> Status {
        touched();
        draft_ = start_session(*opened, limits, {.isa = session_->isa()});
        set_cancel(*draft_, gate_.flag());
        draft_opened_ = opened;
        drafts_always_ = always;
        return {};
    }),
            "propose_by");
}

void PySession::need_logits() const {
    if (opened_->kind() != host::Kind::text)
        refuse_value(opened_->name + ": model", "one for logits", "one for vectors");
}

void PySession::settle_tokens() {
    if (!generating_) return;
    const std::span<const Token> all = generator_->tokens().first(session_->kv_len());
    tokens_.assign(all.begin(), all.end());
}

void PySession::forward(nb::handle object, nb::handle out_object, bool all) {
    need_logits();
    int n_dims = 1;
    const bool is_rows = nb::hasattr(object, "ndim") && nb::try_cast(object.attr("ndim"), n_dims) && n_dims == 2;
    const Floats rows = is_rows ? read_packed(object, "ids", 2) : Floats{};
    std::vector<Token> ids = is_rows ? std::vector<Token>(rows.shape[0]) : read_ids(object, "ids");
    if (ids.empty()) refuse_value("ids", "1 or more", "none");
    const Stack& stack = output_stack(opened_->config());
    const std::uint64_t vocab_size = stack.vocab_size,
                        width = stack.embedding_width ? stack.embedding_width : stack.d_model;
    if (is_rows && rows.shape[1] != width)
        refuse_value("ids", "shape [n, " + std::to_string(width) + "] of rows", in_words(rows.shape));
    const Output out = read_output(out_object, "out", all ? Shape{ids.size(), vocab_size} : Shape{vocab_size});
    Step step{session_->cache(), {}, out.span(), {}, is_rows ? rows.span() : std::span<const float>{}};
    if (is_rows)
        row_keys(step, ids);
    else
        step.tokens = ids;
    require(gate_.run([&] {
        settle_tokens();
        Workspace workspace = session_->workspace();
        const Status status = fovea::forward(workspace, {&step, 1});
        touched();
        if (status.ok()) tokens_.insert(tokens_.end(), ids.begin(), ids.end());
        return status;
    }),
            "ids");
}

std::uint32_t PySession::rewind_to(std::uint32_t kv_len) {
    std::uint32_t reached = 0;
    require(gate_.alone([&] {
        settle_tokens();
        const Status status = fovea::rewind(*session_, kv_len, &reached);
        touched();
        if (status.ok()) tokens_.resize(reached);
        return status;
    }),
            "kv_len");
    return reached;
}

nb::bytes PySession::save() {
    need_logits();
    std::vector<std::byte> bytes;
    require(gate_.alone([&] {
        settle_tokens();
        bytes.resize(session_bytes(*session_));
        std::size_t written = 0;
        const Status status = save_session(*session_, bytes, written);
        const std::vector<std::byte> end = bytes_behind(tokens_, opened_->adapters_checksum());
        bytes.insert(bytes.end(), end.begin(), end.end());
        return status;
    }));
    return nb::bytes(bytes.data(), bytes.size());
}

void PySession::restore(const nb::bytes& object) {
    need_logits();
    const std::span saved(reinterpret_cast<const std::byte*>(object.c_str()), object.size());
    std::optional<SavedText> split = split_saved(saved, opened_->adapters_checksum());
    if (!split)
        refuse_value("saved", "a saved session with its tokens, of the same adapters", "damaged bytes or others");
    require(gate_.alone([&] {
        settle_tokens();
        const Status status = restore_session(*session_, split->session);
        touched();
        if (!status.ok()) return status;
        if (split->tokens.size() != session_->kv_len()) {  // somebody joined two files: forget both
            (void)fovea::rewind(*session_, 0);
            tokens_.clear();
            return Status{Code::bad_shape, "saved tokens", session_->kv_len(), split->tokens.size()};
        }
        tokens_ = std::move(split->tokens);
        return status;
    }),
            "saved");
}

void PySession::copy_from(PySession& other) {
    need_logits();
    if (&other == this) return;
    const nb::bytes bytes = other.save();  // two gates are never held at once
    restore(bytes);
}

nb::list PySession::tokens() {
    return ids_list(gate_.alone([&] {
        settle_tokens();
        return tokens_;
    }));
}

void PySession::attention(nb::handle object, nb::handle layers_object, nb::handle out_object) {
    const std::vector<Token> ids = read_ids(object, "ids");
    const std::vector<std::uint32_t> layers = read_ids(layers_object, "layers");
    const Stack& stack = output_stack(opened_->config());
    const bool encodes = opened_->model.config().encoder.n_layers != 0;
    std::uint64_t n_heads = 0;
    for (const std::uint32_t layer : layers) {
        if (layer >= stack.n_layers)
            refuse_value("layers", "numbers below " + std::to_string(stack.n_layers), std::to_string(layer));
        if (n_heads && stack.block(layer).attention.n_heads != n_heads)
            refuse_value("layers", "layers with as many heads",
                         std::to_string(n_heads) + " and " + std::to_string(stack.block(layer).attention.n_heads));
        n_heads = stack.block(layer).attention.n_heads;
    }
    const std::uint64_t n = ids.size();
    const Output out = read_output(out_object, "out", {layers.size(), n_heads, n, n});
    const auto length = static_cast<std::uint32_t>(n);
    std::vector<float> vectors(encodes ? (stack.pooling == Pooling::none ? n : 1) * stack.d_model : 0);
    EncodeInput input;
    input.source.ids = ids;
    input.source.lengths = {&length, 1};
    input.before_head = true;  // no head attends
    for (std::size_t i = 0; i < layers.size(); ++i) {
        AttentionWeights asked{.layer = layers[i],
                               .in_encoder = encodes,
                               .per_head = true,
                               .n_queries = length,
                               .n_keys = length,
                               .out = {}};
        asked.out = out.span().subspan(i * n_heads * n * n, n_heads * n * n);
        require(gate_.run([&] {
            touched();
            tokens_.clear();
            Status status = capture_attention(*session_, asked);
            if (status.ok() && !encodes) status = fovea::rewind(*session_, 0);
            if (status.ok()) status = encodes ? encode(*session_, input, vectors) : fovea::forward(*session_, ids, {});
            (void)capture_attention(*session_, {});
            if (!encodes) (void)fovea::rewind(*session_, 0);
            return status;
        }),
                "ids");
    }
}

}  // namespace fovea::python
