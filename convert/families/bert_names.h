// The names of BERT's tensors, which later models share, and the reading of their sizes.
#pragma once
#include <array>

#include "convert/families/family.h"
#include "convert/families/heads.h"
#include "convert/families/reading.h"

namespace fovea {

inline constexpr auto kBertNames = names_of({
    {Role::token_embedding, "embeddings.word_embeddings.weight"},
    {Role::position_embedding, "embeddings.position_embeddings.weight"},
    {Role::type_embedding, "embeddings.token_type_embeddings.weight"},
    {Role::embedding_norm, "embeddings.LayerNorm.weight"},
    {Role::embedding_map, "embeddings_project.weight"},
    {Role::attention_norm, "#attention.output.LayerNorm.weight"},
    {Role::query, "#attention.self.query.weight"},
    {Role::key, "#attention.self.key.weight"},
    {Role::value, "#attention.self.value.weight"},
    {Role::attention_output, "#attention.output.dense.weight"},
    {Role::feed_forward_norm, "#output.LayerNorm.weight"},
    {Role::up, "#intermediate.dense.weight"},
    {Role::down, "#output.dense.weight"},
});

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

inline constexpr HeadLayer kBertClasses[] = {{"pooler.dense", Activation::tanh}, {"/classifier"}};
inline constexpr HeadLayer kBertMasked[] = {{.name = "/cls.predictions.transform.dense",
                                             .norm = "/cls.predictions.transform.LayerNorm",
                                             .activation_field = "hidden_act"}};
extern const HeadForms kBertHeads, kRobertaHeads;
/// BERT's without that of masked words.
inline constexpr HeadForms kBertHeadsOfClasses = {.classes = kBertClasses};

/// A family whose layers stand in BERT's frame.
constexpr Family bert_family(std::span<const ModelType> types, std::span<const TensorName> names,
                             std::string_view outer, decltype(Family::read) read, const HeadForms* heads,
                             decltype(Family::older) older = kBertOlder) {
    return {.types = types,
            .names = names,
            .outer = outer,
            .layers = "encoder.layer.",
            .read = read,
            .stack = StackIndex::encoder,
            .older = older,
            .ignores = is_of_head,
            .heads = heads};
}

}  // namespace fovea
