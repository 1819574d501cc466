// Safetensors files, single or in shards, as views into their mappings.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fovea/mapping.h"
#include "fovea/type.h"

namespace fovea {

struct PackedMatrix;

/// An adapter's addition to a matrix: scale · left · right (Hu et al. 2021). Element (row, k) of `left` is at row ·
/// stride + k · rank_stride, (k, col) of `right` at col · stride + k · rank_stride.
struct LowRank {
    struct Factor {
        const std::byte* data = nullptr;  ///< of any alignment
        Type type = Type::f32;            ///< f32, f16 or bf16
        std::uint64_t stride = 0, rank_stride = 0;
    };
    Factor left, right;
    std::uint64_t n_rows = 0, n_cols = 0, rank = 0;
    float scale = 1.0f;
    std::string name;  ///< of the adapter's tensor, for refusals
};

struct SourceTensor {
    std::string dtype;  ///< as the file spells it: "F32", "BF16", …
    std::vector<std::uint64_t> shape;
    const std::byte* data = nullptr;  ///< of any alignment
    std::uint64_t bytes = 0;
    std::size_t file = 0;             ///< which of Safetensors::files
    std::vector<LowRank> added = {};  ///< to the matrix as its outputs are rows, however it lies here
    /// The model's own tensor, where an adapter's module that was trained whole stands in its place. What is tied to the
    /// model's own stays so.
    std::shared_ptr<const SourceTensor> in_model = {};
    /// In place of the data, in quantized folders: see convert/packed/packed.h. Its shape is [outputs, inputs].
    std::shared_ptr<const PackedMatrix> packed = {};
};

/// Whether an adapter changes an output head of which the model's files have no tensor, being tied: only `added` counts.
[[nodiscard]] inline bool is_tied_head(const SourceTensor& tensor) { return !tensor.data && !tensor.packed; }

/// F32, F16 or BF16 as a type. Throws host::Error for another: "PLACE: expected …".
[[nodiscard]] Type float_type(const SourceTensor& tensor, const std::string& place);

/// Whether a tensor that no family's list names is a buffer that versions of transformers saved: masks, numbers of positions,
/// frequencies and sinusoids, which are computed here.
[[nodiscard]] bool is_saved_buffer(std::string_view name, const SourceTensor& tensor);

struct Safetensors {
    std::vector<std::filesystem::path> files;
    std::vector<Mapping> mappings;
    std::vector<std::vector<std::byte>> copies;  ///< of tensors that lie in another order in their file
    std::map<std::string, SourceTensor, std::less<>> tensors;
};

/// Reads the headers of a folder's model.safetensors, or of the shards that its model.safetensors.index.json lists.
/// Every tensor lies within its file and overlaps no other, its bytes are those of its shape. Throws host::Error.
[[nodiscard]] Safetensors read_safetensors_folder(const std::filesystem::path& folder);

/// The files that an index lists in its weight_map. Throws host::Error for a name that leads out of the folder.
[[nodiscard]] std::set<std::string> shard_names(const std::filesystem::path& index);

/// The same for one file.
[[nodiscard]] Safetensors read_safetensors_file(const std::filesystem::path& path);

}  // namespace fovea
