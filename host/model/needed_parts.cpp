#include "host/model/needed_parts.h"

#include "engine/format/format.h"
#include "engine/format/tables.h"
#include "engine/format/variants.h"
#include "host/model/listing.h"

namespace fovea {
namespace {

class NeededParts {
public:
    void add(const Block& b) {
        need(Part::vectors, b.attention.cross_attention || b.attention.position == Position::relative ||
                                b.attention.position == Position::disentangled || b.attention.bias_kv ||
                                b.attention.zero_attn);
        need(Part::experts, b.experts.n || b.feed.activation == Activation::silu_clamped);
        need(Part::latent, b.latent.query_rank || b.latent.query_dim);
        need(Part::columns, b.column_scales);
        need(Part::layer_inputs, has_layer_inputs(b));
        need(Part::block_variants, is_variant(b));
        need(Part::states, has_last_fields(b));
    }
    void add(const Stack& s) {
        if (!s.n_layers) return;
        for (const Block& b : s.used_blocks()) add(b);
        for (const HeadMap& map : s.head) {
            need(Part::experts, map.activation == Activation::silu_clamped);
            need(Part::block_variants, map.activation >= Activation::relu2);
        }
        need(Part::vectors, s.n_head_maps() || embedding_cols(s) || s.sound.is_speech());
        need(Part::rows, s.joins_rows);
        need(Part::columns, s.output_columns);
        need(Part::block_variants, s.logit_scale != 1.0f || s.logit_softcap != 0.0f || s.rope_original_positions);
        need(Part::adapters, s.adapter_rank != 0);
    }
    void add(const Tables& tokenizer) {
        const auto model = static_cast<TokenizerModel>(tokenizer.header->model);
        need(Part::word_piece, model == TokenizerModel::word_piece);
        need(Part::unigram, model == TokenizerModel::unigram);
        for (const TokenizerStep& step : tokenizer.steps) {
            const auto kind = static_cast<StepKind>(step.kind);
            need(Part::normal_forms, kind == StepKind::normal_form);
            need(Part::patterns, kind > StepKind::bert_words);
            need(Part::word_piece, kind == StepKind::characters || kind == StepKind::bert_words);
        }
    }
    void need(Part part, bool where) { bits |= where ? static_cast<unsigned>(part) : 0; }

    unsigned bits = 0;
};

}  // namespace

unsigned needed_parts(const Model& model) {
    NeededParts parts;
    const Config& config = model.config();
    parts.add(config.encoder), parts.add(config.decoder);
    parts.need(Part::vectors, config.encoder.n_layers || !config.decoder.vocab_size || !config.decoder.has_output_head);
    for (const TensorInfo& tensor : tensors(model)) {
        parts.need(Part::bf16, tensor.type == Type::bf16);
        parts.need(Part::gguf_types, tensor.type > Type::q4);
    }
    if (Tables tables; read_tables(model.tokenizer_bytes(), tables).ok()) parts.add(tables);
    return parts.bits;
}

}  // namespace fovea
