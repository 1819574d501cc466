// Where a model's tensors are in its file, layer by layer, as the arena keeps it.
#pragma once
#include "../model/format.h"
#include "../model/model.h"
#include "fovea/model.h"

namespace fovea {

/// A weight matrix in the file. `offset` is from the file's start; 0 where the model has none.
struct Matrix {
    std::uint64_t offset = 0;
    std::uint64_t panel_stride = 0;
    std::uint32_t n_rows = 0, n_cols = 0;
    Type type = Type::f32;
    std::uint8_t reserved[7] = {};

    [[nodiscard]] std::uint32_t n_panels() const noexcept { return (n_rows + kLanes - 1) / kLanes; }
};

/// A vector in the file, by its offset from the file's start; 0 where the model has none.
using VectorOffset = std::uint64_t;

/// One attention's tensors. Offsets rather than pointers, so that a plan has the same bytes on 32-bit and 64-bit
/// machines.
struct AttentionTensors {
    Matrix query, key, value, output;
    VectorOffset query_bias = 0, key_bias = 0, value_bias = 0, output_bias = 0;
    VectorOffset norm = 0, norm_bias = 0;
    VectorOffset query_norm = 0, query_norm_bias = 0, key_norm = 0, key_norm_bias = 0;
    VectorOffset appended_key = 0, appended_value = 0;
};

/// One layer's tensors, and which of its stack's blocks it is.
struct Layer {
    AttentionTensors self, cross;
    Matrix up, down;
    VectorOffset up_bias = 0, down_bias = 0, feed_forward_norm = 0, feed_forward_norm_bias = 0;
    std::uint32_t block = 0;
    std::uint32_t reserved = 0;
};
static_assert(sizeof(Matrix) == 32 && sizeof(Layer) == 552);

/// What a stack has beside its layers.
struct StackTensors {
    Matrix output;  // the output head, maybe the embedding table itself
    const TensorRecord* token_embedding = nullptr;
    const TensorRecord* position_embedding = nullptr;
    const TensorRecord* type_embedding = nullptr;
    VectorOffset embedding_norm = 0, embedding_norm_bias = 0, final_norm = 0, final_norm_bias = 0, output_bias = 0;
    VectorOffset rope_frequencies[kMaxBlocks] = {};
    std::uint32_t first_layer = 0;   // in the arena's list: the encoder's layers, then the decoder's
    std::uint64_t macs_per_row = 0;  // multiplications by weights, without the output head
};

/// Finds a stack's tensors and those of its layers, which go to `layers` [n_layers]. open_model has established that all
/// that the configuration calls for are there.
[[nodiscard]] StackTensors find_tensors(const Model& model, StackIndex index, Layer* layers) noexcept;

}  // namespace fovea
