// What a model's head says of a text (fovea/host/texts.h), from its logits.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/host/opened.h"
#include "host/model/texts.h"

namespace fovea {

/// One for each logit; the highest score first, of equals the first label.
[[nodiscard]] std::vector<LabelScore> label_scores(const Head& head, std::span<const float> logits);

/// logits: [tokens][labels], of the tokens of `text`. Special tokens are left out.
[[nodiscard]] std::vector<LabelledWord> labelled_words(const host::Opened& opened, const Head& head, const Text& text,
                                                       const TextTokens& tokens, std::span<const float> logits);

/// Words that belong together, as their labels' B- and I- say, as one; those of the label O are left out.
[[nodiscard]] std::vector<LabelledWord> joined_entities(std::string_view text, std::span<const LabelledWord> words);

/// The likeliest spans of at most `most_tokens` of `second`, the text of the pair's second tokens, and the probability that there
/// is no answer, which the token before the first text ([CLS]) stands for. logits: [tokens][2], start and end (Devlin et al.
/// 2019, sections 4.2 and 4.3).
struct Answers {
    std::vector<AnswerSpan> best;  ///< the likeliest first, of equal ones the first in the text
    double none = 0;
};
[[nodiscard]] Answers best_answers(const host::Opened& opened, const TextTokens& text, std::string_view second,
                                   std::span<const float> logits, const host::TextOptions& options);

/// A text's tokens as the head wants them; of masked words the masks' rows alone. Throws host::Error for a question without a pair.
[[nodiscard]] TextTokens head_tokens(const host::Opened& opened, const Head& head, const Text& text,
                                     const host::TextOptions& options);
/// What the head says of them, by the logits of their rows.
[[nodiscard]] HeadResult head_result(const host::Opened& opened, const Head& head, const Text& text,
                                     const TextTokens& tokens, std::span<const float> logits,
                                     const host::TextOptions& options);

/// Where the text's tokens are masks. Throws host::Error where none is.
[[nodiscard]] std::vector<std::uint32_t> mask_rows(const host::Opened& opened, const TextTokens& text);

/// The n likeliest tokens behind one mask, as text. logits: [vocab_size].
[[nodiscard]] std::vector<LabelScore> likeliest_tokens(const host::Opened& opened, std::span<const float> logits,
                                                       std::size_t n);

}  // namespace fovea
