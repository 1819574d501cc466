// What a model's text goes on from: text, images and sound, in their order.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/host/opened.h"
#include "fovea/workspace.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {
namespace host {

/// A part of a prompt: tokens, or the vectors that an image or a recording became.
struct PromptPart {
    enum class Kind { text, image, sound };

    Kind kind = Kind::text;
    std::vector<Token> tokens{};             ///< of text
    std::vector<float> rows{};               ///< [n, d_model] of the others, as Step::rows has them
    std::vector<std::uint32_t> positions{};  ///< [n, 3] or none, see Step::positions
    std::vector<RowSpan> spans{};            ///< counted from the part's first row
};

/// Parts as the model has them: ready for steps, with a key for each token or row. Movable.
class Prompt {
public:
    Prompt() = default;
    Prompt(std::span<const Token> text);  // NOLINT: a text is a prompt
    Prompt(const std::vector<Token>& text) : Prompt(std::span(text)) {}

    /// Appends a part. Throws Error where it is empty, or is no text and the model reads text alone.
    void add(const Opened& opened, PromptPart part);

    /// Tokens, and keys of rows (row_keys of fovea/workspace.h): two prompts begin alike as far as their keys do.
    [[nodiscard]] std::span<const Token> keys() const { return keys_; }
    /// How many keys, from the first on, end with the last row. 0: all is text.
    [[nodiscard]] std::uint32_t n_with_rows() const { return n_with_rows_; }
    /// The most of the first n keys that a cache can keep: not part of an image.
    [[nodiscard]] std::uint32_t whole(std::uint32_t n) const;
    /// What follows the cache's positions in the same part, at most `most` tokens, or all rows: a step without logits. There is more.
    [[nodiscard]] Step step(const Cache& cache, std::uint32_t most = 0xffffffffu) const;

private:
    struct Placed : PromptPart {
        std::uint32_t first = 0, n = 0;  // among the keys
    };
    [[nodiscard]] const Placed& part_at(std::uint32_t position) const;

    std::vector<Placed> parts_;
    std::vector<Token> keys_;
    std::uint32_t n_with_rows_ = 0;
};

}  // namespace host
}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
