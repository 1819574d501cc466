// What the engine's own files see of a Model: tensors by role, as views into the file.
#pragma once
#include "engine/format/format.h"
#include "fovea/model.h"

namespace fovea {

/// Bytes that a Model takes in an arena, whatever a pointer's size.
inline constexpr std::uint64_t kModelBytes = 2 * kMaxBlocks * sizeof(Block) + 576;
static_assert(sizeof(Model) <= kModelBytes);

struct ModelAccess {
    /// Runs every check of open_model; on success fills `model`.
    [[nodiscard]] static Status read(std::span<const std::byte> bytes, Model& model) noexcept;

    /// The tensor of that role, or null. The directory is sorted: O(log n).
    [[nodiscard]] static const TensorRecord* find(const Model& model, StackIndex stack, std::uint32_t layer,
                                                  Role role) noexcept;

    /// Where a tensor's data starts, from the file's start.
    [[nodiscard]] static std::uint64_t offset(const Model& model, const TensorRecord& tensor) noexcept {
        return model.weights_offset_ + tensor.offset;
    }

    [[nodiscard]] static std::span<const SectionRecord> sections(const Model& model) noexcept {
        return {model.sections_, model.n_sections_};
    }

    [[nodiscard]] static std::span<const TensorRecord> tensors(const Model& model) noexcept {
        return {model.tensors_, model.n_tensors_};
    }

    /// The configuration of a model of no tensors, to be filled in.
    [[nodiscard]] static Config& config(Model& model) noexcept { return model.config_; }

private:
    [[nodiscard]] static Status read_sections(Model& model) noexcept;
    [[nodiscard]] static Status read_tensors(std::span<const std::byte> section, std::uint64_t weights_bytes,
                                             Model& model) noexcept;
};

/// Whether a number in a file is a role that this reader knows (names.cpp).
[[nodiscard]] bool is_role(std::uint16_t role) noexcept;

}  // namespace fovea
