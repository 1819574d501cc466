// From ids to the residual stream: a row of the embedding table, scaled, plus a learned position; and the pass's
// rotation tables (Su et al. 2021), one row per position, shared by all layers of a block shape.
#include <cstring>

#include "half.h"
#include "model.h"
#include "pass.h"

namespace fovea {
namespace {

[[nodiscard]] float element(const std::byte* data, Type type, std::uint64_t index) noexcept {
    if (type == Type::f32) {
        float value;
        std::memcpy(&value, data + index * 4, 4);
        return value;
    }
    std::uint16_t half;
    std::memcpy(&half, data + index * 2, 2);
    return type == Type::f16 ? from_f16(half) : from_bf16(half);
}

/// A quantized weight of a panel, in the layout of panel_bytes: its quant times its group's scale, exactly.
[[nodiscard]] float quantized(const std::byte* panel, Type type, std::uint64_t lane, std::uint64_t col) noexcept {
    const bool q8 = type == Type::q8;
    panel += col / kSuperblock * panel_bytes(static_cast<std::uint8_t>(type), kSuperblock);
    const std::uint64_t group = col % kSuperblock / kGroup, i = col % kGroup;
    const std::byte* quants = panel + 4 * kLanes + group * kLanes * (q8 ? kGroup : kGroup / 2);
    const float scale = element(panel, Type::f16, group * kLanes + lane);
    const auto byte = static_cast<std::uint8_t>(quants[(q8 ? i / 4 : i / 8) * 64 + lane * 4 + i % 4]);
    const int quant = q8 ? static_cast<std::int8_t>(byte) : (i % 8 < 4 ? byte & 15 : byte >> 4) - 8;
    return static_cast<float>(quant) * scale;
}

/// One row of a table, out[i] = row[i]·scale. A table of panels keeps a row's elements 16 apart.
void load_row(const SessionState& s, const TensorRecord& t, std::uint32_t row, float scale, float* out) noexcept {
    const std::byte* data = s.weights(ModelAccess::offset(s.model, t));
    const auto type = static_cast<Type>(t.type);
    std::uint64_t at = std::uint64_t{row} * t.n_cols, step = 1;
    if (t.layout == static_cast<std::uint8_t>(Layout::panels)) {
        data += row / kLanes * t.panel_stride;
        if (is_quantized(type)) {
            for (std::uint32_t i = 0; i < t.n_cols; ++i) out[i] = quantized(data, type, row % kLanes, i) * scale;
            return;
        }
        at = row % kLanes;
        step = kLanes;
    }
    for (std::uint32_t i = 0; i < t.n_cols; ++i) out[i] = element(data, type, at + i * step) * scale;
}

void add_row(const SessionState& s, const TensorRecord& t, std::uint32_t row, float* out) noexcept {
    const std::byte* data = s.weights(ModelAccess::offset(s.model, t));
    const std::uint64_t at = std::uint64_t{row} * t.n_cols;
    for (std::uint32_t i = 0; i < t.n_cols; ++i) out[i] = out[i] + element(data, static_cast<Type>(t.type), at + i);
}

}  // namespace

void embed(const Pass& pass) noexcept {
    const SessionState& s = pass.session;
    const Stack& stack = pass.stack();
    const NormWeights norm{stack.embedding_norm, s.embedding_norm, s.embedding_norm_bias, stack.final_norm_epsilon};
    const Pass::Share rows = pass.share(pass.seq_len);
    for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
        float* x = pass.hidden()[row];
        load_row(s, *s.token_embedding, pass.tokens[row], stack.embedding_scale, x);
        if (s.position_embedding) add_row(s, *s.position_embedding, pass.pos + row, x);
        if (norm.kind != Norm::none) pass.norm(norm, x, x);
        for (std::uint32_t i = 0; i < stack.n_blocks; ++i) {
            const Block& b = stack.blocks[i];
            if (b.position != Position::rope) continue;
            float* cosines = pass.rotation(i, row);
            s.kernels->rope_table(pass.pos + row, s.vector(s.rope_frequencies[i]), b.rotary_dim / 2, b.rope_scale,
                                  cosines, cosines + s.map.rotation_stride);
        }
    }
}

}  // namespace fovea
