// Modules around a PyTorch stack of layers: embeddings of tokens and positions before it, a map behind it.
#pragma once
#include <string>
#include <vector>

#include "fovea/config.h"
#include "host/base/source_file.h"

namespace fovea {

/// Where the tensors of a stack's ends are in the state dict; empty: there is none.
struct TorchEnds {
    std::string token_embedding, position_embedding, output, output_bias;
    bool sinusoidal = false;  ///< positions are computed, see sinusoids
};

/// Reads what comes before the layers, if `fields` has a vocab_size: ids go in then, instead of vectors.
///
///     vocab_size, token_embedding ["embedding.weight"], embedding_scale [1]: a number, or "sqrt" for that of d_model
///     positions ["none", or "learned" with position_embedding]: none, learned, sinusoidal; max_positions
///     position_embedding ["position_embedding.weight"]
void read_torch_embedding(const Fields& fields, Stack& stack, TorchEnds& ends);

/// Reads what comes behind the last stack, if `fields` has an output: a map's weight, with output_bias if the map has
/// one. With vocab_size rows it gives logits; else it has num_labels rows, after pooling [none].
void read_torch_output(const Fields& fields, Stack& stack, TorchEnds& ends);

/// Positions as Vaswani et al. 2017, section 3.5 have them: [n_positions][d_model], sines at even columns.
[[nodiscard]] std::vector<float> sinusoids(std::uint32_t n_positions, std::uint32_t d_model);
/// Those of M2M-100 and XGLM: all sines, then all cosines, of frequencies from 1 to 1/10000 in steps and positions that PyTorch
/// rounds to float32. Two positions come before the first. d_model is at least 4; the last column of an odd one is 0.
[[nodiscard]] std::vector<float> halved_sinusoids_after_two(std::uint32_t n_positions, std::uint32_t d_model);

}  // namespace fovea
