// Functions for what a row of the table of GGUF architectures cannot say: keys of an architecture's own, and numbers
// that it implies. The rows of convert/gguf/architectures.h name them.
#pragma once
#include <string>
#include <string_view>

#include "convert/families/reading.h"
#include "convert/gguf/architectures.h"

namespace fovea {

/// Embeddings are scaled.
void settle_gemma(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// The largest of Gemma 2 and 3 scale scores by another width than a head's.
void settle_gemma2(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Windows and full layers with heads of their own, layers that share keys, and what tokens give each layer.
void settle_gemma4(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Half of a window lies on each side; matrices behind the pooling have no keys that their tensors do not say.
void settle_gemma_embedding(const Gguf& file, const std::string& prefix, GgufConfig& config);

/// Queries, keys and values may be clipped.
void settle_clip(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Slopes, and what settle_clip reads.
void settle_alibi(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Slopes, and scores divided by a head's width.
void settle_jais(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// The model of 40 layers has slopes, that of 32 turns.
void settle_baichuan(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// BLOOM norms its embeddings.
void settle_bloom(const Gguf& file, const std::string& prefix, GgufConfig& config);

/// A file says whether attention and feed-forward part are parallel.
void settle_parallel(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// One norm, or two of which the second is attention's.
void settle_falcon(const Gguf& file, const std::string& prefix, GgufConfig& config);

/// Embeddings, residual rows and logits are scaled; there may be no positions.
void settle_granite(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// The same numbers, which must be there: files older than these keys leave them to the reader.
void settle_minicpm(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// As settle_granite; beside experts there may be a shared one.
void settle_granite_moe(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Logits are scaled.
void settle_cohere(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Every fourth layer has no positions.
void settle_smollm3(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// OLMo 3's windows turn as before its scaling.
void settle_olmo2(const Gguf& file, const std::string& prefix, GgufConfig& config);

/// Queries are multiplied from the original length on: positions end there.
void settle_mistral3(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// feed_forward_length counts the gate's rows too.
void settle_qwen(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// In files with sections of positions, as models of pictures have, halves of heads turn.
void settle_glm4(const Gguf& file, const std::string& prefix, GgufConfig& config);

/// The first layer's attention has no norm, since the embeddings' stands right before it: it becomes a layer of only
/// attention and one of only the feed-forward part. The others see a window on both sides, except every n-th.
void settle_modern_bert(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Positions are relative ones, of as many buckets; distances that share the last one are the published models'.
void settle_t5(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Tensors that a T5's encoder has no use for.
[[nodiscard]] bool is_t5_decoder(std::string_view name);

/// Each layer's block and rotary settings; and the same the other way. `key` is refused if the layers are of too many kinds.
[[nodiscard]] std::vector<LayerShape> gguf_layers(const GgufConfig& config);
void set_gguf_layers(const Gguf& file, const std::string& key, const std::vector<LayerShape>& layers,
                     GgufConfig& config);

/// Latent attention's widths. If the usual keys hold those of cached rows, files have a head's in other keys.
void settle_latent(const Gguf& file, const std::string& prefix, GgufConfig& config);

/// Layers without key-value heads are short convolutions; rows may choose experts.
void settle_lfm2(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// All layers but every few have a gated delta rule, whose heads' keys are in turn; the others an output gate.
void settle_qwen35(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Layers without key-value heads have a delta rule with a decay for each dim, the others latent attention without positions.
void settle_kimi_linear(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// The same of files whose heads are not in turn.
void settle_qwen3_next(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// All layers are Mamba-2's alone.
void settle_mamba2(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// All layers are Mamba's alone, whose inner norms may have no weights.
void settle_mamba(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Layers without key-value heads are Mamba's; those with a router have experts.
void settle_jamba(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// All layers have Mamba-2's part beside attention, maybe without a norm.
void settle_falcon_h1(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Each layer is one part: Mamba-2's, attention where it has key-value heads, feed-forward or experts where it has a width.
void settle_nemotron_h(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Layers without key-value heads are Mamba-2's; the rest is settle_granite_moe's.
void settle_granite_hybrid(const Gguf& file, const std::string& prefix, GgufConfig& config);

/// Its ramp's ends are not rounded, which no key says.
void settle_gpt_oss(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// One layer of so many has experts, the second of them.
void settle_nomic_moe(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// How rows choose experts, and that the first layers have none.
void settle_routed(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// The same, if every layer after those has them.
void settle_ernie_moe(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Windows may have a rotary base of their own, besides.
void settle_exaone_moe(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// xIELU, each layer with numbers of its own.
void settle_apertus(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Windows with sinks and key-value heads of their own, values times a number; layers with a router have experts.
void settle_mimo2(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Embeddings are scaled, and attention's output has a gate.
void settle_afmoe(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Queries and keys are normed behind their rotation; beside experts there is a shared one.
void settle_hunyuan(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Chunks of positions and layers that see all, with experts or without: mostly numbers that no key says.
void settle_llama4(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Attention's widths, and the published model's factors, which no key says.
void settle_minicpm3(const Gguf& file, const std::string& prefix, GgufConfig& config);
/// Attention's widths, and the same.
void settle_deepseek(const Gguf& file, const std::string& prefix, GgufConfig& config);

}  // namespace fovea
