// Heads on a stack's rows: the classes that transformers puts around a stack, and the names of their tensors.
#pragma once
#include <span>

#include "convert/families/family.h"

namespace fovea {

/// One map of a head, by the name of its module; its tensors are NAME.weight and NAME.bias. Spelled as in TensorName.
struct HeadLayer {
    const char* name;
    Activation activation = Activation::none;
    const char* norm = nullptr;              ///< module of the norm that follows
    const char* activation_field = nullptr;  ///< in config.json; missing: `activation`, or without one the model's own
    const char* bias_field = nullptr;        ///< in config.json, if there may be no bias; missing: there is none
    const char* norm_bias_field = nullptr;   ///< the same of the norm's
    bool of_embedding = false;               ///< as wide as the embeddings, not as d_model
    bool bias = true;
};

inline constexpr HeadLayer kLabels[] = {{"/classifier"}};
inline constexpr HeadLayer kAnswers[] = {{"/qa_outputs"}};

/// The heads of one family. Layers before the last one's labels; a family that lacks a head has none for it.
struct HeadForms {
    std::span<const HeadLayer> classes = {};        ///< of a sequence's vector; the last makes the labels
    std::span<const HeadLayer> words = kLabels;     ///< of every row
    std::span<const HeadLayer> answers = kAnswers;  ///< of every row, two logits
    std::span<const HeadLayer> masked = {};         ///< of every row, before the output head
    const char* decoder = nullptr;                  ///< module of that output head, if it is not the embedding table
    const char* decoder_bias = nullptr;             ///< its bias
    const char* decoder_bias_field = nullptr;       ///< in config.json, if there may be none; missing: there is one
    const char* pooling_field = nullptr;            ///< "cls" or "mean"; none: `pooling`
    Pooling pooling = Pooling::first;               ///< what makes a sequence's vector
};

/// The heads of decoders, which are the same for all, and of families whose classes are older than the common ones.
extern const HeadForms kDecoderHeads, kOlderDecoderHeads;

/// Whether config.json's `architectures` names a head of these for classes of a sequence or of its words.
[[nodiscard]] bool has_classes(const Fields& fields, const HeadForms& forms);

/// Whether it names a class that goes on with texts.
[[nodiscard]] bool gives_logits(const Fields& fields);

/// "none" or "sigmoid": CrossEncoder's function of logits, by the name of PyTorch's class. Null: the field is missing,
/// or names a custom class, which sentence-transformers does not trust either. Throws host::Error for another of
/// PyTorch's.
[[nodiscard]] const char* scores_of_activation(const Fields& fields, const char* name);

/// Makes a decoder that is read as an encoder a classifier with one label, the score of a text by the logits of those tokens.
void score_tokens(const Fields& fields, const ScoredTokens& tokens, HfConfig& config);

/// Adds the head that config.json's `architectures` names to the stack, its labels and its task to the metadata. A class
/// without a head of these kinds leaves all as it is, with a note if it has another.
void read_head(const Fields& fields, const HeadForms& forms, HfConfig& result);

/// Adds the maps before the output head, and the head, of a model that predicts words.
void read_word_head(const Fields& fields, const HeadForms& forms, HfConfig& result);

}  // namespace fovea
