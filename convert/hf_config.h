// A Hugging Face folder's config.json as a Config.
#pragma once
#include <filesystem>
#include <optional>
#include <vector>

#include "convert/model_source.h"
#include "convert/rope.h"
#include "convert/source_file.h"

namespace fovea {

/// Whose names and habits a folder's tensors follow.
enum class HfKind { llama, gpt2, bert };

struct HfConfig {
    ModelSource source;  ///< config, layer_blocks and info; the rest is still to come
    HfKind kind = HfKind::llama;
    Rope rope;  ///< for Llama's kind
    std::optional<Token> bos;
    std::vector<Token> eos;  ///< ids beyond the vocabulary left out: they can't come up

    /// The one stack there is: BERT's is an encoder.
    [[nodiscard]] Stack& stack() { return kind == HfKind::bert ? source.config.encoder : source.config.decoder; }
};

/// Models of type llama, mistral, qwen2, qwen3, gpt2 and bert. `generation` is the generation_config.json beside it,
/// read where it exists, for its end tokens. Throws Refusal naming file, field, what was wanted and what was there.
[[nodiscard]] HfConfig read_hf_config(const std::filesystem::path& config, const std::filesystem::path& generation);

/// What sentence-transformers does with an encoder's rows: the folder that the first entry of `modules` (a
/// modules.json) names holds the encoder, relative to it; `stack` gets the pooling and normalization of the others.
/// Throws Refusal where there are modules of another kind.
[[nodiscard]] std::filesystem::path read_sentence_modules(const std::filesystem::path& modules, Stack& stack);

/// The rotary settings among config.json's fields, in the older spelling (rope_theta, rope_scaling) or the newer
/// (rope_parameters). A scaling that follows the current length is fixed at the length the model was made for.
[[nodiscard]] Rope read_hf_rope(const Fields& config);

/// How many dims of each head turn: head_dim times partial_rotary_factor.
[[nodiscard]] std::uint32_t read_hf_rotary_dim(const Fields& config, std::uint32_t head_dim);

}  // namespace fovea
