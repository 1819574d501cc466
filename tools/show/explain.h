// One attention as textbooks draw it: every step by itself, with the engine's kernels, unfused.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fovea/encode.h"

namespace fovea {

struct ExplainedStep {
    std::string name, formula;
    std::vector<std::uint64_t> shape;
    std::vector<float> values;  ///< all of them, row-major
};

inline constexpr std::uint64_t kMostExplained = 1u << 24;  ///< scores; each step keeps its own

/// The steps of what `attend` computes in a session of `model` with keys and values kept as `kv_type`; `input` as
/// there, and no more than kMostExplained scores. `out` becomes what attend writes: the same bits if a query's keys
/// are at most 64; else rounding differs, for the fused path adds tile by tile under a maximum that may yet rise. An
/// output is then at most (2·n_keys + 400)·2⁻²⁴·(largest value) off before the output map: two chains of n_keys
/// roundings, and differences of scores of at most 80, rounded once or, along the tiles, in parts.
[[nodiscard]] std::vector<ExplainedStep> explain(const Model& model, const AttendInput& input, Type kv_type,
                                                 const char* isa, std::vector<float>& out);

/// Name, shape and formula of each, and the first rows of its first matrix.
[[nodiscard]] std::string in_words(const std::vector<ExplainedStep>& steps);

}  // namespace fovea
