// A model before it is a file: what every reader of a source format makes, and what the writer takes.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "convert/quantize/quantize.h"
#include "engine/format/format.h"
#include "fovea/config.h"

namespace fovea {

/// Writes rows [row_begin, row_begin + n_rows) of the tensor that `spec` asks for to `out` [n_rows][spec.n_cols], in
/// the order the file holds them: rotary pairs adjacent, gate and up in alternating panels, padding rows zero. Those that
/// this library makes may be called by several threads at a time.
using RowReader =
    std::function<void(const TensorSpec& spec, std::uint32_t row_begin, std::uint32_t n_rows, float* out)>;

/// Where the source holds those rows in groups that a tensor of that quantized type takes as they are: writes them to `out`
/// [n_rows][n_cols / 32], which is zero before, and returns true.
using GroupReader = std::function<bool(const TensorSpec& spec, Type type, std::uint32_t row_begin, std::uint32_t n_rows,
                                       QuantizedGroup* out)>;

struct ModelSource {
    ModelSource() = default;
    ModelSource(ModelSource&&) = default;  // moving keeps layer_blocks where config points
    ModelSource& operator=(ModelSource&&) = default;
    ModelSource(const ModelSource&) = delete;
    ModelSource& operator=(const ModelSource&) = delete;

    Config config;
    std::array<std::vector<std::uint8_t>, 2> layer_blocks;  ///< what the config's two layer_blocks point into
    /// By stack: the layer whose bytes each layer uses, itself or one before it of the same block; empty: each its own.
    std::array<std::vector<std::uint32_t>, 2> shared_layers;
    std::vector<std::pair<std::string, std::string>> info;  ///< metadata, see engine/format/format.h
    std::vector<std::string> notes;                         ///< what a user should know of the source, a line each
    std::vector<std::byte> tokenizer;                       ///< the section's bytes; empty: none
    Type type = Type::f32;                                  ///< how the source stores its matrices
    bool exact_tables = false;                              ///< f16 would round what the source's tables hold
    /// How the source stores that matrix, where its matrices differ; empty: as `type` says.
    std::function<Type(const TensorSpec& spec)> type_of;
    RowReader read_rows;
    GroupReader read_groups;  ///< may be empty
};

/// Whether it is what a norm multiplies with.
[[nodiscard]] bool is_norm_weight(Role role);

/// What row `row` of a gated block's `up` tensor holds.
struct UpRow {
    bool gate;
    std::uint32_t row;  ///< of gate or up; d_ff or more: padding
};
[[nodiscard]] constexpr UpRow up_row(std::uint32_t row) noexcept {
    return {row / kLanes % 2 == 0, row / (2 * kLanes) * kLanes + row % kLanes};
}

}  // namespace fovea
