// A model: checked views into the bytes of one Fovea file. Opening reads the directory, never the weights.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "fovea/config.h"
#include "fovea/status.h"

namespace fovea {
struct ModelAccess;  // the engine's own: a friend that is not shown
}
#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

struct SectionRecord;  // engine/format/format.h
struct TensorRecord;   // engine/format/format.h

/// A model's names, and the spelling of its prompts; from the file's metadata. Views into the file.
struct ModelInfo {
    std::string_view name;           ///< the model's name in its source, else its architecture
    std::string_view architecture;   ///< the source's own word: "llama", "gpt2", …
    std::string_view prompt_suffix;  ///< closes a prompt before the model answers; often empty
    std::string_view chat_template;  ///< the source's template, kept as text; the engine does not run it
};

/// Opened by open_model; trivially copyable. Views the caller's bytes, which must outlive it unchanged.
/// Immutable: any number of sessions and threads may share one.
class Model {
public:
    [[nodiscard]] const Config& config() const noexcept { return config_; }
    [[nodiscard]] const ModelInfo& info() const noexcept { return info_; }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
    /// The tokenizer section's bytes, empty if the file has none. See fovea/tokenizer.h.
    [[nodiscard]] std::span<const std::byte> tokenizer_bytes() const noexcept { return tokenizer_; }
    /// CRC-32C over the header and the directory, which holds every section's CRC-32C: one number per file content.
    [[nodiscard]] std::uint32_t fingerprint() const noexcept { return fingerprint_; }

private:
    friend struct ModelAccess;  // engine/model/model.h
    Config config_{};
    ModelInfo info_{};
    std::span<const std::byte> bytes_{};
    const SectionRecord* sections_ = nullptr;
    const TensorRecord* tensors_ = nullptr;
    std::uint64_t weights_offset_ = 0;
    std::uint32_t n_sections_ = 0;
    std::uint32_t n_tensors_ = 0;
    std::span<const std::byte> tokenizer_{};
    std::uint32_t fingerprint_ = 0;
};

/// The value of that key in the file's metadata; empty if it has none. A view into the file. docs/format.md lists keys.
[[nodiscard]] std::string_view find_info(const Model& model, std::string_view key) noexcept;

/// A speech model's mel filters (see Sound): [n_mels][n_bins] weights of a window's powers. Empty for other models.
[[nodiscard]] std::span<const float> mel_filters(const Model& model) noexcept;

struct OpenOptions {
    /// Also compute the CRC-32C of every section: reads the whole file. The header, directory, configuration and
    /// tensor list are always checked.
    bool verify_checksums = false;
};

/// Validates `bytes` (a whole Fovea file, 64-byte aligned) and fills `model`. O(number of tensors).
/// `bytes` may be anything at all. Errors, `model` unchanged: truncated, bad_magic, version_unsupported, misaligned,
/// checksum_mismatch, section_missing, section_invalid, config_invalid, tensor_missing, tensor_invalid, unsupported.
[[nodiscard]] Status open_model(std::span<const std::byte> bytes, Model& model,
                                const OpenOptions& options = {}) noexcept;

/// Finds damage anywhere in the file, in the weights too: recomputes every section's CRC-32C, which reads all of it.
/// Errors: checksum_mismatch, `what` naming the section's kind.
[[nodiscard]] Status verify_checksums(const Model& model) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
