// What a calibration reads: a text that the user gives, or one that the model writes itself.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "convert/weights/model_source.h"
#include "host/base/progress.h"

namespace fovea {

constexpr std::uint32_t kReadTokens = 128;    ///< of a pass, at most
constexpr std::uint32_t kWindowTokens = 512;  ///< read as one text, at most

/// Ids, as texts that are each read from position 0.
struct Texts {
    std::vector<std::vector<Token>> ids;

    [[nodiscard]] std::uint64_t n_tokens() const noexcept;
    /// The first of them, the last cut, with `most` tokens in all at most.
    [[nodiscard]] Texts first(std::uint64_t most) const;
};

/// The decoder, of models without one the encoder.
[[nodiscard]] StackIndex calibrated_stack(const ModelSource& source) noexcept;
[[nodiscard]] const Stack& calibrated_stack_of(const ModelSource& source) noexcept;

/// Positions that a text may have: kWindowTokens, or the model's.
[[nodiscard]] std::uint32_t window_of(const ModelSource& source) noexcept;

/// A text of the user's, `most` tokens of it, or all for 0. A decoder has them in windows. An encoder has lines, each cut to
/// what a pass takes, and the last one whole. Throws host::Error: no tokenizer, or less than two tokens, of an encoder in any
/// line.
[[nodiscard]] Texts texts_of(const ModelSource& source, std::string_view text, std::uint32_t most);

/// What the decoder writes itself: texts of a window each, `most` tokens in all or up to a window more. Every token is drawn
/// by its probability. Behind an end comes the model's start token or, where it has none, any token. Such texts calibrate
/// about as well as others (Williams, Chrysostomou and Aletras 2024). The tokens are the same on any host and any number of
/// threads. Takes the model's size in memory, and its caches. Throws host::Error for an encoder.
[[nodiscard]] Texts own_texts(const ModelSource& source, std::uint32_t most, std::uint32_t n_threads,
                              const Progress& progress);

}  // namespace fovea
