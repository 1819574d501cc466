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

/// logits: [tokens][labels]. Special tokens are left out.
[[nodiscard]] std::vector<LabelledWord> labelled_words(const host::Opened& opened, const Head& head,
                                                       const TextTokens& text, std::span<const float> logits);

/// The likeliest span of at most `most_tokens` of `second`, the text of the pair's second tokens. logits: [tokens][2], start and
/// end (Devlin et al. 2019, section 4.2).
[[nodiscard]] AnswerSpan best_answer(const host::Opened& opened, const TextTokens& text, std::string_view second,
                                     std::span<const float> logits, std::size_t most_tokens);

/// Where the text's tokens are masks. Throws host::Error where none is.
[[nodiscard]] std::vector<std::uint32_t> mask_rows(const host::Opened& opened, const TextTokens& text);

/// The n likeliest tokens behind one mask, as text. logits: [vocab_size].
[[nodiscard]] std::vector<LabelScore> likeliest_tokens(const host::Opened& opened, std::span<const float> logits,
                                                       std::size_t n);

}  // namespace fovea
