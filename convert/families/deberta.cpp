// DeBERTa (He et al. 2021) as of its second version, and of its third (He et al. 2023), whose layers are the same: BERT's layers
// with disentangled positions.
#include <algorithm>
#include <cmath>
#include <utility>

#include "convert/families/bert_names.h"

namespace fovea {
namespace {

constexpr ModelType kDebertaTypes[] = {{"deberta-v2", R"({"max_position_embeddings": 512})"}};

constexpr auto kDebertaNames = kBertNames.with({
    {Role::query, "#attention.self.query_proj.weight"},
    {Role::key, "#attention.self.key_proj.weight"},
    {Role::value, "#attention.self.value_proj.weight"},
    {Role::distance_keys, "#attention.self.pos_key_proj"},
    {Role::distance_queries, "#attention.self.pos_query_proj"},
});

/// Which of the two products with distances scores get: "c2p|p2c", or a list of them.
std::vector<std::string> read_terms(const Fields& fields) {
    if (!fields.has("pos_att_type")) return {};
    std::vector<std::string> terms;
    if (!fields.json()["pos_att_type"].is_string()) {
        terms = fields.texts("pos_att_type");
    } else {
        std::string term;
        for (const char c : fields.text("pos_att_type") + "|") {
            if (c != '|' && c != ' ') term += c;
            if (c == '|' && !term.empty()) terms.push_back(std::exchange(term, ""));
        }
    }
    for (const std::string& term : terms)
        if (term != "c2p" && term != "p2c") fields.refuse("pos_att_type", "c2p or p2c or both");
    std::sort(terms.begin(), terms.end());
    terms.erase(std::unique(terms.begin(), terms.end()), terms.end());
    return terms;
}

/// A field that counts, for which −1 and 0 mean none.
std::uint32_t count_if_any(const Fields& fields, const char* name, std::uint32_t otherwise) {
    const bool none = !fields.has(name) || (fields.json()[name].is_number() && fields.json()[name].get<double>() <= 0);
    return none ? otherwise : fields.count(name);
}

DistanceBuckets read_buckets(const Fields& fields, const Stack& stack) {
    constexpr std::uint32_t kMostSpan = kMaxBuckets / 2;
    const std::uint32_t most = count_if_any(fields, "max_relative_positions", stack.max_positions);
    const std::uint32_t span = count_if_any(fields, "position_buckets", 0);
    if ((span ? span : most) > kMostSpan)
        fields.refuse(span ? "position_buckets" : "max_relative_positions", "at most " + std::to_string(kMostSpan));
    if (!span) return plain_buckets(most);
    if (span < 4) fields.refuse("position_buckets", "at least 4");
    if (most <= span / 2 + 1)
        fields.refuse("max_relative_positions",
                      "more than half of position_buckets and 1, " + std::to_string(span / 2 + 1));
    return log_buckets(span, most);
}

void read_distances(const Fields& fields, const std::vector<std::string>& terms, Block& block, HfConfig& result) {
    const auto has_term = [&](const char* name) { return std::find(terms.begin(), terms.end(), name) != terms.end(); };
    if (!fields.flag_or("relative_attention", false) || terms.empty()) return;
    DistanceTables& tables = result.distances;
    tables.buckets = read_buckets(fields, result.stack());
    tables.table = "encoder.rel_embeddings.weight";
    const std::string norms = fields.text_or("norm_rel_ebd", "none");
    if (norms != "none" && norms != "layer_norm") fields.refuse("norm_rel_ebd", "none or layer_norm");
    if (norms == "layer_norm") tables.norm = "encoder.LayerNorm";
    tables.keys = has_term("c2p");
    tables.queries = has_term("p2c");
    block.attention.position = Position::disentangled;
    block.attention.relative_max_distance = static_cast<std::uint32_t>(tables.buckets.of.size() / 2);
    block.attention.relative_buckets = static_cast<std::uint16_t>(2 * tables.buckets.span);
    if (!fields.flag_or("share_att_key", false)) return;
    for (std::uint32_t layer = 0; layer < result.stack().n_layers; ++layer) {
        result.names[{Role::distance_keys, layer}] = "#attention.self.key_proj";
        result.names[{Role::distance_queries, layer}] = "#attention.self.query_proj";
    }
}

void read_deberta(const Fields& fields, const std::string&, HfConfig& result) {
    constexpr SizeNames kSizes = {.n_kv_heads = nullptr, .epsilon = "layer_norm_eps", .default_epsilon = 1e-7};
    Block block = read_bert_stack(fields, kSizes, result);
    Stack& stack = result.stack();
    const auto must_be = [&](const char* name, std::uint32_t value) {
        if (fields.has(name) && fields.count(name, 0) != value) fields.refuse(name, std::to_string(value));
    };
    must_be("conv_kernel_size", 0);
    must_be("embedding_size", stack.d_model);
    must_be("attention_head_size", block.attention.head_dim);
    must_be("pooler_hidden_size", stack.d_model);
    if (!fields.flag_or("position_biased_input", true)) stack.position = Position::none;
    stack.n_token_types = fields.has("type_vocab_size") ? fields.count("type_vocab_size", 0) : 0;
    block.feed.activation = read_activation(fields, "hidden_act", "gelu");
    const std::vector<std::string> terms = read_terms(fields);
    const auto n_terms = static_cast<double>(1 + terms.size());
    block.attention.softmax_scale = static_cast<float>(1.0 / std::sqrt(n_terms * block.attention.head_dim));
    read_distances(fields, terms, block, result);
    set_layers(fields, LayerShape{block}, result);
}

/// Heads of pretraining, a table of absolute positions if the model does not add it, and the sources of distance
/// vectors, which some models have but do not use.
bool ignores_in_deberta(std::string_view name) {
    return is_of_head(name) || name.starts_with("lm_predictions.") || name.starts_with("mask_predictions.") ||
           name.ends_with("embeddings.position_embeddings.weight") || name.ends_with("encoder.rel_embeddings.weight") ||
           name.ends_with("encoder.LayerNorm.weight") || name.ends_with("encoder.LayerNorm.bias");
}

constexpr HeadLayer kDebertaClasses[] = {
    {.name = "/pooler.dense", .activation = Activation::gelu, .activation_field = "pooler_hidden_act"},
    {"/classifier"}};
constexpr HeadForms kDebertaHeads = {.classes = kDebertaClasses,
                                     .masked = kBertMasked,
                                     .decoder = "/cls.predictions.decoder",
                                     .decoder_bias = "/cls.predictions.bias"};

constexpr HeadLayer kEnhancedMasked[] = {{.name = "/lm_predictions.lm_head.dense",
                                          .norm = "/lm_predictions.lm_head.LayerNorm",
                                          .activation_field = "hidden_act"}};
constexpr HeadForms kEnhancedHeads = {
    .classes = kDebertaClasses, .masked = kEnhancedMasked, .decoder_bias = "/lm_predictions.lm_head.bias"};

/// The head for masked words that the paper's own code has: transformers calls the other one legacy.
const Family* with_head(const Fields& fields) {
    return fields.flag_or("legacy", true) ? nullptr : &families::deberta_enhanced;
}

void read_enhanced(const Fields& fields, const std::string& type, HfConfig& result) {
    if (!fields.flag_or("tie_word_embeddings", true))
        fields.refuse("tie_word_embeddings", "true where legacy is false");
    read_deberta(fields, type, result);
}

}  // namespace

const Family families::deberta = {.types = kDebertaTypes,
                                  .names = kDebertaNames,
                                  .outer = "deberta.",
                                  .layers = "encoder.layer.",
                                  .read = read_deberta,
                                  .stack = StackIndex::encoder,
                                  .older = kBertOlder,
                                  .ignores = ignores_in_deberta,
                                  .variant = with_head,
                                  .heads = &kDebertaHeads};

const Family families::deberta_enhanced = {.types = {},
                                           .names = kDebertaNames,
                                           .outer = "deberta.",
                                           .layers = "encoder.layer.",
                                           .read = read_enhanced,
                                           .stack = StackIndex::encoder,
                                           .older = kBertOlder,
                                           .ignores = ignores_in_deberta,
                                           .heads = &kEnhancedHeads};

}  // namespace fovea
