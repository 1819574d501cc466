#include "convert/sources/lora_file.h"

#include <algorithm>
#include <span>
#include <vector>

#include "convert/sources/lora.h"
#include "fovea/checksum.h"

namespace fovea {

Adapted adapted_by(Role role) noexcept {
    switch (role) {
        case Role::adapter_query_out: return Adapted::query;
        case Role::adapter_key_out: return Adapted::key;
        case Role::adapter_value_out: return Adapted::value;
        case Role::adapter_attention_output_out: return Adapted::attention_output;
        case Role::adapter_up_out: return Adapted::up;
        case Role::adapter_down_out: return Adapted::down;
        case Role::adapter_query_down_out: return Adapted::query_down;
        default: return Adapted::none;
    }
}

Role adapted_role(Adapted matrix) noexcept {
    switch (matrix) {
        case Adapted::query: return Role::query;
        case Adapted::key: return Role::key;
        case Adapted::value: return Role::value;
        case Adapted::attention_output: return Role::attention_output;
        case Adapted::up: return Role::up;
        case Adapted::query_down: return Role::query_down;
        default: return Role::down;
    }
}

std::uint32_t n_inputs(const Stack& stack, Adapted matrix, std::uint32_t layer) noexcept {
    const Block& b = stack.block(layer);
    if (matrix == Adapted::attention_output) return b.attention.n_heads * merged_head_dim(b);
    if (matrix == Adapted::query && b.latent.query_rank) return b.latent.query_rank;
    return matrix == Adapted::down ? b.feed.d_ff : stack.d_model;
}

TensorView first_view(const LowRank* const (&products)[2], std::uint32_t rank, bool gated, std::uint32_t n_cols) {
    TensorView view;
    view.dequantize = [first = products[0] ? *products[0] : LowRank{}, second = products[1] ? *products[1] : LowRank{},
                       rank, gated, n_cols](std::uint64_t row, float* out) {
        const LowRank& low = gated && row >= rank ? second : first;
        const std::uint64_t k = row % rank;
        std::fill_n(out, n_cols, 0.0f);
        if (k < low.rank) read_factor(low.right, k, false, low.n_cols, out);
    };
    return view;
}

TensorView second_view(const LowRank* product, std::uint32_t rank, std::uint64_t first) {
    TensorView view;
    view.dequantize = [low = product ? *product : LowRank{}, rank, first](std::uint64_t row, float* out) {
        std::fill_n(out, rank, 0.0f);
        if (low.rank) read_factor(low.left, first + row, true, low.rank, out);
        for (std::uint32_t k = 0; k < rank; ++k) out[k] = low.scale * out[k];
    };
    return view;
}

void widen_product(TensorView& view, std::uint32_t rank, std::uint32_t at) {
    view.dequantize = [narrow = view.dequantize, rank, at](std::uint64_t row, float* out) {
        std::fill_n(out, 2 * std::size_t{rank}, 0.0f);
        narrow(row, out + at);
    };
}

std::uint32_t vectors_checksum(const ModelSource& model) {
    std::uint32_t checksum = 0;
    std::vector<float> values;
    for (const StackIndex index : {StackIndex::encoder, StackIndex::decoder}) {
        const Stack& stack = index == StackIndex::encoder ? model.config.encoder : model.config.decoder;
        if (!stack.n_layers) continue;
        for_each_tensor(stack, index, [&](const TensorSpec& spec) {
            if (!tells_model(spec)) return;
            values.resize(spec.n_cols);
            model.read_rows(spec, 0, 1, values.data());
            checksum = crc32c(std::as_bytes(std::span<const float>(values)), checksum);
        });
    }
    return checksum;
}

}  // namespace fovea
