#include "bindings/python/src/opened.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "bindings/python/src/arrays.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/interrupt.h"
#include "fovea/checksum.h"
#include "host/grammar/grammar.h"
#include "host/model/stacks.h"
#include "host/translate/source_memory.h"

namespace fovea::python {
namespace {

constexpr std::size_t kMostTextBytes = 64u << 20;  // a text takes a dozen times its bytes while it is encoded

void finish_opening(OpenedModel& opened, std::span<const std::byte> bytes, const OpenOptions& options) {
    check(open_model(bytes, opened.model, options), opened.name);
    const auto section = opened.model.tokenizer_bytes();
    if (!section.empty()) check(open_tokenizer(section, opened.tokenizer), opened.name);
}

void open_adapters(OpenedModel& opened, const std::vector<ScaledPath>& given, const OpenOptions& options) {
    if (given.empty()) return;
    for (const auto& [path, scale] : given) {
        OpenedAdapter adapter{.name = path, .mapping = {}, .model = {}, .scale = scale};
        check(map_file(path.c_str(), adapter.mapping), path);
        check(open_model(adapter.mapping.bytes(), adapter.model, options), path);
        if (!adapter_rank(adapter.model))
            throw ValueRefused(path + ": expected an adapter's file, got a model; fovea.convert_adapter makes one");
        opened.adapters.push_back(std::move(adapter));
    }
    // A workspace of one row sees what any other would.
    Limits limits{.max_batch = 1};
    opened.plan_adapters(limits);
    Plan plan;
    check(make_workspace_plan(opened.model.config(), limits, plan), opened.adapters.front().name);
    const Memory arena(plan.arena_bytes);
    Workspace workspace;
    check(make_workspace(opened.model, limits, arena.bytes(), workspace), opened.name);
    opened.use_adapters(workspace);
}

nb::list tokenize_text(const ModelHandle& handle, nb::handle text, bool add_special, bool parse_special) {
    const SharedModel opened = handle.get();
    const std::string_view bytes = utf8_of(text, "text");
    std::vector<Token> ids;
    {
        const WithoutGil released;
        ids = opened->ids_of(bytes, add_special, parse_special);
    }
    return ids_list(ids);
}

nb::str detokenize(const ModelHandle& handle, nb::handle object, bool show_special) {
    const SharedModel opened = handle.get();
    const Tokenizer& tokenizer = opened->tokenizer;
    if (!tokenizer.valid())
        throw ValueRefused(opened->name + ": text: expected a model with a tokenizer, got one without");
    std::string text;
    Decoder decoder;
    std::string piece(max_piece_bytes(tokenizer), '\0');
    for (const Token id : read_ids(object, "ids")) {
        if (id >= tokenizer.vocab_size())
            throw ValueRefused("ids: expected ids below " + std::to_string(tokenizer.vocab_size()) + ", got " +
                               std::to_string(id));
        text += decode(tokenizer, decoder, id, show_special, piece);
    }
    text += finish(decoder, piece);
    return nb::str(text.data(), text.size());
}

nb::bytes piece_of(const ModelHandle& handle, Token id) {
    const SharedModel opened = handle.get();
    const std::string_view bytes = opened->tokenizer.valid() ? token_bytes(opened->tokenizer, id) : std::string_view();
    return nb::bytes(bytes.data(), bytes.size());
}

nb::dict stack_facts(const Stack& s) {
    nb::dict facts;
    const Block& b = s.blocks[0];
    facts["n_layers"] = s.n_layers;
    facts["d_model"] = s.d_model;
    facts["vocab_size"] = s.vocab_size;
    facts["max_positions"] = s.max_positions;
    facts["n_heads"] = b.n_heads;
    nb::list heads;
    for (std::uint32_t layer = 0; layer < s.n_layers; ++layer) heads.append(nb::int_(s.block(layer).n_heads));
    facts["heads_of_layers"] = heads;
    facts["n_kv_heads"] = b.n_kv_heads;
    facts["head_dim"] = b.head_dim;
    facts["value_head_dim"] = b.value_head_dim;
    facts["d_ff"] = b.d_ff;
    facts["query_width"] = b.query_width ? b.query_width : s.d_model;
    facts["key_width"] = b.key_width ? b.key_width : s.d_model;
    facts["value_width"] = b.value_width ? b.value_width : s.d_model;
    facts["output_width"] = !b.has_output_map ? b.n_heads * b.value_head_dim
                            : b.output_width  ? b.output_width
                                              : s.d_model;
    facts["n_appended_keys"] = int{b.bias_kv} + int{b.zero_attn};
    facts["pools"] = s.pooling != Pooling::none;
    facts["normalizes"] = s.normalize_pooled;
    facts["has_output_head"] = s.has_output_head;
    facts["cross_attention"] = b.cross_attention;
    return facts;
}

nb::dict facts_of(const ModelHandle& handle) {
    const SharedModel opened = handle.get();
    const Config& config = opened->model.config();
    const ModelInfo& info = opened->model.info();
    const auto text = [](std::string_view view) { return nb::bytes(view.data(), view.size()); };
    nb::dict facts;
    facts["name"] = text(info.name);
    facts["architecture"] = text(info.architecture);
    facts["prompt_suffix"] = text(info.prompt_suffix);
    facts["has_chat_template"] = !info.chat_template.empty();
    const std::string_view task = find_info(opened->model, "task");
    facts["task"] = nb::str(task.data(), task.size());
    facts["vector_width"] = vector_width(*opened);
    const Prompts prompts = prompts_of(opened->model, opened->name);
    nb::dict texts;
    for (const auto& [name, prompt] : prompts.texts) texts[nb::str(name.data(), name.size())] = text(prompt);
    facts["prompts"] = texts;
    facts["default_prompt_name"] = text(prompts.chosen);
    facts["file_bytes"] = opened->model.bytes().size();
    facts["fingerprint"] = opened->model.fingerprint();
    facts["has_tokenizer"] = opened->tokenizer.valid();
    facts["gives_logits"] = opened->gives_logits();
    facts["writes_target"] = writes_target(config);
    facts["sampling_rate"] = config.encoder.sound.sample_rate;
    if (config.encoder.n_layers) facts["encoder"] = stack_facts(config.encoder);
    if (config.decoder.n_layers) facts["decoder"] = stack_facts(config.decoder);
    return facts;
}

using ScaledPaths = std::vector<std::pair<std::string, float>>;

std::vector<ScaledPath> paths_of(const ScaledPaths& pairs) {
    std::vector<ScaledPath> paths;
    for (const auto& [path, scale] : pairs) paths.push_back({path, scale});
    return paths;
}

void open_with_gil(ModelHandle* self, const std::string& path, bool verify, const ScaledPaths& adapters) {
    SharedModel opened;
    {
        const WithoutGil released;
        opened = open_file(path, verify, paths_of(adapters));
    }
    new (self) ModelHandle(std::move(opened));
}

ModelHandle* from_bytes(const nb::bytes& data, const std::string& name, const ScaledPaths& adapters) {
    AlignedBytes bytes(data.size());
    if (data.size()) std::memcpy(bytes.data(), data.c_str(), data.size());
    return new ModelHandle(open_bytes(std::move(bytes), name, paths_of(adapters)));
}

}  // namespace

const Stack& OpenedModel::first() const { return input_stack(model.config()); }

const Stack& OpenedModel::last() const { return output_stack(model.config()); }

bool OpenedModel::gives_logits() const {
    const auto& [encoder, decoder] = model.config();
    for (const Block& block : std::span(decoder.blocks).first(decoder.n_blocks))
        if (block.cross_attention) return false;  // steps beside a memory alone: Workspace
    return !encoder.n_layers && decoder.n_layers && decoder.vocab_size && decoder.has_output_head;
}

std::span<const std::byte> OpenedModel::vocabulary_index() const {
    const std::lock_guard lock(index_mutex_);
    if (index_.empty()) index_ = grammar::index_vocabulary(tokenizer);
    return index_;
}

std::vector<Token> OpenedModel::ids_of(std::string_view text, bool add_special, bool parse_special) const {
    if (!tokenizer.valid()) throw ValueRefused(name + ": text: expected a model with a tokenizer, got one without");
    if (text.size() > kMostTextBytes)
        throw ValueRefused("text: expected at most " + std::to_string(kMostTextBytes) + " bytes, got " +
                           std::to_string(text.size()));
    const Memory scratch(tokenize_scratch_bytes(tokenizer, text.size()));
    std::vector<Token> ids(max_tokens(tokenizer, text.size()));
    std::size_t n = 0;
    check(tokenize(tokenizer, text, {.add_special = add_special, .parse_special = parse_special}, scratch.bytes(), ids,
                   n),
          name);
    ids.resize(n);
    return ids;
}

void OpenedModel::plan_adapters(Limits& limits) const {
    limits.max_adapters = static_cast<std::uint32_t>(adapters.size());
    for (const OpenedAdapter& one : adapters)
        limits.max_adapter_rank = std::max(limits.max_adapter_rank, adapter_rank(one.model));
}

void OpenedModel::use_adapters(Workspace workspace) const {
    std::vector<Adapter> all;
    for (const OpenedAdapter& one : adapters) {
        all.push_back({&one.model, one.scale});
        check(set_adapters(workspace, {&all.back(), 1}), one.name);  // by itself, so that a refusal names it
    }
    if (!all.empty()) check(set_adapters(workspace, all));
}

std::uint32_t OpenedModel::adapters_checksum() const {
    std::uint32_t checksum = 0;
    for (const OpenedAdapter& one : adapters) {
        const std::uint32_t its[] = {one.model.fingerprint(), std::bit_cast<std::uint32_t>(one.scale)};
        checksum = crc32c(std::as_bytes(std::span(its)), checksum);
    }
    return checksum;
}

host::Opened view_of(const OpenedModel& opened) {
    host::Opened view;
    view.name = opened.name;
    view.model = opened.model;
    view.tokenizer = opened.tokenizer;
    return view;
}

bool before_head(const OpenedModel& opened) { return !find_info(opened.model, "task").empty(); }

std::uint32_t vector_width(const OpenedModel& opened) {
    return before_head(opened) ? opened.last().d_model : opened.last().result_width();
}

SharedModel open_file(const std::string& path, bool verify, const std::vector<ScaledPath>& adapters) {
    auto opened = std::make_shared<OpenedModel>();
    opened->name = path;
    const Status status = map_file(path.c_str(), opened->mapping);
    check(status, path);
    finish_opening(*opened, opened->mapping.bytes(), {.verify_checksums = verify});
    open_adapters(*opened, adapters, {.verify_checksums = verify});
    return opened;
}

SharedModel open_bytes(AlignedBytes bytes, const std::string& name, const std::vector<ScaledPath>& adapters) {
    auto opened = std::make_shared<OpenedModel>();
    opened->name = name;
    opened->bytes = std::move(bytes);
    finish_opening(*opened, opened->bytes, {});
    open_adapters(*opened, adapters, {});
    return opened;
}

SharedModel ModelHandle::get() const {
    const std::lock_guard lock(mutex_);
    if (!opened_) throw ValueRefused("model: expected an open one, got one that was closed");
    return opened_;
}

void ModelHandle::close() {
    const std::lock_guard lock(mutex_);
    opened_.reset();
}

bool ModelHandle::closed() const {
    const std::lock_guard lock(mutex_);
    return !opened_;
}

std::string_view utf8_of(nb::handle text, const char* what) {
    if (!PyUnicode_Check(text.ptr())) throw TypeRefused(std::string(what) + ": expected a str, got " + type_of(text));
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (!bytes && !PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nb::python_error();
    if (!bytes) {
        PyErr_Clear();
        throw ValueRefused(std::string(what) + ": expected text of Unicode characters, got a lone surrogate");
    }
    return {bytes, static_cast<std::size_t>(size)};
}

void bind_model(nb::module_& module) {
    nb::class_<ModelHandle>(module, "Model", "A mapped Fovea file.")
        .def("__init__", open_with_gil, nb::arg("path"), nb::arg("verify") = false, nb::arg("adapters") = ScaledPaths())
        .def_static("from_bytes", from_bytes, nb::arg("data"), nb::arg("name") = "bytes",
                    nb::arg("adapters") = ScaledPaths(), nb::rv_policy::take_ownership)
        .def("close", &ModelHandle::close)
        .def_prop_ro("closed", &ModelHandle::closed)
        .def("facts", facts_of)
        .def("tokenize", tokenize_text, nb::arg("text"), nb::arg("add_special") = true,
             nb::arg("parse_special") = false)
        .def("detokenize", detokenize, nb::arg("ids"), nb::arg("show_special") = false)
        .def("piece", piece_of, nb::arg("id"));
}

}  // namespace fovea::python
