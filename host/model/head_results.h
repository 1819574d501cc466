// What a model's head says, in words: labels with their scores, labelled words, an answer, what stands behind a mask.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/model/opened.h"
#include "host/model/texts.h"

namespace fovea {

/// What a head is for: the "task" of a file's metadata.
enum class HeadTask { classes, words, answer, masked };

/// How logits become scores: its "scores".
enum class Scores { as_they_are, softmax, sigmoid };

/// A model with a head, and what its metadata says of it.
struct Head {
    HeadTask task = HeadTask::classes;
    Scores scores = Scores::softmax;
    std::vector<std::string> labels;  ///< one for each logit; of a masked-word model none
};

/// Throws host::Error where the model has no head that this version has words for, or labels of another number.
[[nodiscard]] Head head_of(const host::Opened& opened);

/// The score of each logit, in the labels' order.
[[nodiscard]] std::vector<double> scores_of(const Head& head, std::span<const float> logits);

struct LabelScore {
    std::string label;
    double score = 0, logit = 0;
};
/// One for each logit; the highest score first, of equals the first label.
[[nodiscard]] std::vector<LabelScore> label_scores(const Head& head, std::span<const float> logits);

/// A word of a text, tokens that follow one another without a space.
struct LabelledWord {
    std::string word;
    LabelScore best;  ///< of its first token
};
/// logits: [tokens][labels]. Special tokens are left out.
[[nodiscard]] std::vector<LabelledWord> labelled_words(const host::Opened& opened, const Head& head,
                                                       const TextTokens& text, std::span<const float> logits);

struct AnswerSpan {
    std::string text;  ///< as the second text has it, whole words
    double score = 0;  ///< the product of its start's and its end's probability among the second text's tokens
    std::size_t begin = 0, end = 0;  ///< tokens of the second text
};
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
