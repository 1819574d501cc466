#include "bindings/python/src/opened.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <sstream>

#include "bindings/python/src/arrays.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/interrupt.h"
#include "fovea/host/runtime.h"
#include "fovea/host/token_places.h"
#include "host/grammar/grammar.h"
#include "host/model/sampling_options.h"
#include "host/model/text_prompts.h"

namespace fovea::python {
namespace {

constexpr std::size_t kMostTextBytes = 64u << 20;  // a text takes a dozen times its bytes while it is encoded

/// A workspace of one row sees what any other would: whether the adapters are the model's.
void open_adapters(OpenedModel& opened, const ScaledPaths& given, const OpenOptions& options) {
    for (const auto& [path, scale] : given) opened.add_adapter(path, scale, options);
    if (!given.empty()) (void)start_workspace(opened, {.max_batch = 1});
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

nb::tuple tokenize_with_offsets(const ModelHandle& handle, nb::handle text, bool add_special, bool parse_special) {
    const SharedModel opened = handle.get();
    const std::string_view bytes = utf8_of(text, "text");
    host::PlacedTokens placed;
    {
        const WithoutGil released;
        OpenedModel::check_length(bytes);
        placed = host::tokenize_with_places(opened->need_tokenizer(), bytes,
                                            {.add_special = add_special, .parse_special = parse_special});
    }
    nb::list places;
    for (const host::TokenPlace& place : placed.places) places.append(nb::make_tuple(place.begin, place.end));
    return nb::make_tuple(ids_list(placed.tokens), places);
}

nb::str detokenize(const ModelHandle& handle, nb::handle object, bool show_special) {
    const SharedModel opened = handle.get();
    const Tokenizer& tokenizer = opened->need_tokenizer();
    const std::vector<Token> ids = read_ids(object, "ids");
    for (const Token id : ids)
        if (id >= tokenizer.vocab_size())
            refuse_value("ids", "ids below " + std::to_string(tokenizer.vocab_size()), std::to_string(id));
    const std::string text = opened->text(ids, {.show_special = show_special});
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
    facts["n_heads"] = b.attention.n_heads;
    nb::list heads;
    for (std::uint32_t layer = 0; layer < s.n_layers; ++layer) heads.append(nb::int_(s.block(layer).attention.n_heads));
    facts["heads_of_layers"] = heads;
    facts["n_kv_heads"] = b.attention.n_kv_heads;
    facts["head_dim"] = b.attention.head_dim;
    facts["value_head_dim"] = b.attention.value_head_dim;
    facts["d_ff"] = b.feed.d_ff;
    facts["query_width"] = b.attention.query_width ? b.attention.query_width : s.d_model;
    facts["key_width"] = b.attention.key_width ? b.attention.key_width : s.d_model;
    facts["value_width"] = b.attention.value_width ? b.attention.value_width : s.d_model;
    facts["output_width"] = !b.attention.has_output_map ? b.attention.n_heads * b.attention.value_head_dim
                            : b.attention.output_width  ? b.attention.output_width
                                                        : s.d_model;
    facts["n_appended_keys"] = int{b.attention.bias_kv} + int{b.attention.zero_attn};
    facts["pools"] = s.pooling != Pooling::none;
    facts["normalizes"] = s.normalize_pooled;
    facts["result_width"] = s.result_width();
    facts["has_output_head"] = s.has_output_head;
    facts["cross_attention"] = b.attention.cross_attention;
    return facts;
}

/// Options of chats that the file names, by the names that they have in Python.
nb::dict own_sampling(const host::Opened& opened) {
    const OwnSampling own = OwnSampling::of(opened.model, opened.name);
    nb::dict named;
#define FOVEA_SAMPLER_REAL(field, ...) \
    if (own.said.field) named[#field] = own.sampler.field;
#define FOVEA_SAMPLER_COUNT FOVEA_SAMPLER_REAL
#include "fovea/sampler_options.inc"
    if (own.said.repeat_last_n) named["repeat_last_n"] = static_cast<std::int32_t>(own.n_recent);
    return named;
}

nb::dict facts_of(const ModelHandle& handle) {
    const SharedModel opened = handle.get();
    const Config& config = opened->model.config();
    const ModelInfo& info = opened->model.info();
    const auto text = [](std::string_view view) { return str_of(std::string(view)); };
    nb::dict facts;
    facts["name"] = text(info.name);
    facts["architecture"] = text(info.architecture);
    facts["prompt_suffix"] = text(info.prompt_suffix);
    facts["sampling"] = own_sampling(*opened);
    facts["has_chat_template"] = !info.chat_template.empty();
    facts["task"] = text(find_info(opened->model, "task"));
    nb::list labels;
    std::istringstream lines{std::string(find_info(opened->model, "labels"))};
    for (std::string label; std::getline(lines, label);) labels.append(text(label));
    facts["labels"] = labels;
    facts["similarity"] = text(find_info(opened->model, "similarity"));
    facts["scores_pairs"] = opened->scores_pairs();
    facts["makes_sparse"] = opened->makes_sparse();
    facts["has_late_interaction"] = opened->has_late_interaction();
    facts["max_seq_length"] = config.encoder.n_layers ? most_tokens(opened->model) : config.decoder.max_positions;
    facts["vector_width"] = opened->vector_width();
    const Prompts prompts = prompts_of(opened->model, opened->name);
    nb::dict texts;
    for (const auto& [name, prompt] : prompts.texts) texts[nb::str(name.data(), name.size())] = text(prompt);
    facts["prompts"] = texts;
    facts["default_prompt_name"] = text(prompts.chosen);
    facts["file_bytes"] = opened->model.bytes().size();
    facts["fingerprint"] = opened->model.fingerprint();
    facts["has_tokenizer"] = opened->tokenizer.valid();
    facts["gives_logits"] = opened->kind() == host::Kind::text;
    facts["writes_target"] = opened->kind() == host::Kind::translation;
    facts["sampling_rate"] = config.encoder.sound.sample_rate;
    if (config.encoder.n_layers) facts["encoder"] = stack_facts(config.encoder);
    if (config.decoder.n_layers) facts["decoder"] = stack_facts(config.decoder);
    return facts;
}

void open_with_gil(ModelHandle* self, const std::string& path, bool verify, const ScaledPaths& adapters) {
    SharedModel opened;
    {
        const WithoutGil released;
        opened = open_file(path, verify, adapters);
    }
    new (self) ModelHandle(std::move(opened));
}

ModelHandle* from_bytes(const nb::bytes& data, const std::string& name, const ScaledPaths& adapters) {
    AlignedBytes bytes(data.size());
    if (data.size()) std::memcpy(bytes.data(), data.c_str(), data.size());
    return new ModelHandle(open_bytes(std::move(bytes), name, adapters));
}

}  // namespace

std::span<const std::byte> OpenedModel::vocabulary_index() const {
    const std::lock_guard lock(index_mutex_);
    if (index_.empty()) index_ = grammar::index_vocabulary(tokenizer);
    return index_;
}

void OpenedModel::check_length(std::string_view text) {
    if (text.size() > kMostTextBytes)
        refuse_value("text", "at most " + std::to_string(kMostTextBytes) + " bytes", std::to_string(text.size()));
}

std::vector<Token> OpenedModel::ids_of(std::string_view text, bool add_special, bool parse_special) const {
    (void)need_tokenizer();
    check_length(text);
    return tokens(text, {.add_special = add_special, .parse_special = parse_special});
}

SharedModel open_file(const std::string& path, bool verify, const ScaledPaths& adapters) {
    auto opened = std::make_shared<OpenedModel>();
    static_cast<host::Opened&>(*opened) = host::open_file(path, {.verify_checksums = verify});
    open_adapters(*opened, adapters, {.verify_checksums = verify});
    return opened;
}

SharedModel open_bytes(AlignedBytes bytes, const std::string& name, const ScaledPaths& adapters) {
    auto opened = std::make_shared<OpenedModel>();
    opened->bytes = std::move(bytes);
    static_cast<host::Opened&>(*opened) = host::open_bytes(opened->bytes, name);
    open_adapters(*opened, adapters, {});
    return opened;
}

std::string_view utf8_of(nb::handle text, const char* what) {
    if (!PyUnicode_Check(text.ptr())) refuse_type(what, "a str", type_of(text));
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (!bytes && !PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nb::python_error();
    if (!bytes) {
        PyErr_Clear();
        refuse_value(what, "text of Unicode characters", "a lone surrogate");
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
        .def("tokenize_with_offsets", tokenize_with_offsets, nb::arg("text"), nb::arg("add_special") = true,
             nb::arg("parse_special") = false)
        .def("detokenize", detokenize, nb::arg("ids"), nb::arg("show_special") = false)
        .def("piece", piece_of, nb::arg("id"));
}

}  // namespace fovea::python
