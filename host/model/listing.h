// What stands in a model's file: its sections and its tensors, one by one.
#pragma once
#include <cstdint>
#include <vector>

#include "fovea/model.h"

namespace fovea {

struct SectionInfo {
    const char* kind = "";     ///< "config", "tensors", "weights", "tokenizer", "info" or "unknown"
    std::uint64_t offset = 0;  ///< from the file's start
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;  ///< CRC-32C the file states
};
[[nodiscard]] std::vector<SectionInfo> sections(const Model& model);

struct TensorInfo {
    const char* role = "";    ///< "query", "down_bias", …; "unknown" for roles of a later version
    const char* layout = "";  ///< "vector", "rows" or "panels"
    Type type = Type::f32;
    bool in_encoder = false;
    std::uint32_t layer = 0;
    std::uint32_t n_rows = 0, n_cols = 0;
    std::uint64_t offset = 0;  ///< from the file's start
    std::uint64_t bytes = 0;
};
[[nodiscard]] std::vector<TensorInfo> tensors(const Model& model);

}  // namespace fovea
