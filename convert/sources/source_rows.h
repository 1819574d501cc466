// Rows of a source's tensor as a matrix of ours: which of them, what adapters add to them, and what unpacks them.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "convert/families/family.h"
#include "convert/formats/safetensors.h"
#include "convert/weights/mapped_weights.h"

namespace fovea {

/// Rows of a source's tensor that are one of ours.
struct SourceRows {
    std::uint64_t n_all = 0, begin = 0;  ///< rows of the source's tensor, and the first of them that is ours
    std::uint32_t run = 0, stride = 0;   ///< as in RowOrder
};

/// The rows that are the tensor of a spec, by the place that a family's list says.
[[nodiscard]] SourceRows rows_of(const HfConfig& config, const TensorSpec& spec, Within within);

/// Query, key or value of a block among the rows of all three.
[[nodiscard]] SourceRows projection_part(const Block& b, Role role, Within within);

/// Makes `view` one of the rows' sums with what adapters add to them. Throws host::Error where these have another shape.
void add_low_ranks(const std::vector<LowRank>& all, const std::string& file, const SourceRows& part,
                   std::uint64_t n_cols, bool vector, TensorView& view);

/// Makes `view` one of the rows times the factor of their role, if they have one.
void scale_rows(const std::map<Role, float>& factors, const TensorSpec& spec, TensorView& view);

/// Makes `view` one of the rows of a packed matrix from `first` on.
void read_packed(const SourceTensor& tensor, std::uint64_t first, TensorView& view);

}  // namespace fovea
