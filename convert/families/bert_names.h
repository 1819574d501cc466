// The names of BERT's tensors, which later models share, and the reading of their sizes.
#pragma once
#include <array>

#include "convert/families/family.h"
#include "convert/families/heads.h"
#include "convert/families/reading.h"

namespace fovea {

inline constexpr TensorName kBertNames[] = {
    {Role::token_embedding, "embeddings.word_embeddings.weight"},
    {Role::position_embedding, "embeddings.position_embeddings.weight"},
    {Role::type_embedding, "embeddings.token_type_embeddings.weight"},
    {Role::embedding_norm, "embeddings.LayerNorm.weight"},
    {Role::embedding_norm_bias, "embeddings.LayerNorm.bias"},
    {Role::embedding_map, "embeddings_project.weight"},
    {Role::embedding_map_bias, "embeddings_project.bias"},
    {Role::attention_norm, "#attention.output.LayerNorm.weight"},
    {Role::attention_norm_bias, "#attention.output.LayerNorm.bias"},
    {Role::query, "#attention.self.query.weight"},
    {Role::query_bias, "#attention.self.query.bias"},
    {Role::key, "#attention.self.key.weight"},
    {Role::key_bias, "#attention.self.key.bias"},
    {Role::value, "#attention.self.value.weight"},
    {Role::value_bias, "#attention.self.value.bias"},
    {Role::attention_output, "#attention.output.dense.weight"},
    {Role::attention_output_bias, "#attention.output.dense.bias"},
    {Role::feed_forward_norm, "#output.LayerNorm.weight"},
    {Role::feed_forward_norm_bias, "#output.LayerNorm.bias"},
    {Role::up, "#intermediate.dense.weight"},
    {Role::up_bias, "#intermediate.dense.bias"},
    {Role::down, "#output.dense.weight"},
    {Role::down_bias, "#output.dense.bias"},
};

/// BERT's names, with others in place of some: the first for a role counts.
template<std::size_t n>
constexpr auto with_bert_names(const TensorName (&others)[n]) {
    std::array<TensorName, n + std::size(kBertNames)> names{};
    std::size_t at = 0;
    for (const TensorName& name : others) names[at++] = name;
    for (const TensorName& name : kBertNames) names[at++] = name;
    return names;
}

/// The first checkpoints call a norm's weight and bias gamma and beta.
inline constexpr std::pair<std::string_view, std::string_view> kBertOlder[] = {{"LayerNorm.weight", "LayerNorm.gamma"},
                                                                               {"LayerNorm.bias", "LayerNorm.beta"}};

inline constexpr SizeNames kBertSizes = {.n_kv_heads = nullptr, .epsilon = "layer_norm_eps", .default_epsilon = 1e-12};

/// A stack like BERT's (Devlin et al. 2019): learned positions, norms that follow what they norm, a bias everywhere. The
/// block is not yet in the stack; types and activation are the caller's.
[[nodiscard]] Block read_bert_stack(const Fields& fields, const SizeNames& sizes, HfConfig& result);

/// Norms that follow what they norm, one of the embeddings, none behind the last layer; no causal order.
void set_bert_norms(Stack& stack, Block& block);

/// Positions are counted from the padding's id on, as in fairseq: the table's rows before that of position 0.
void skip_padding_positions(const Fields& fields, std::uint32_t padding, HfConfig& result);

/// Tensors of heads and of poolers, which a stack without that head has no use for.
[[nodiscard]] bool is_of_head(std::string_view name);

extern const HeadForms kBertHeads, kRobertaHeads;

inline constexpr HeadLayer kLabels[] = {{"/classifier"}};
inline constexpr HeadLayer kAnswers[] = {{"/qa_outputs"}};

}  // namespace fovea
