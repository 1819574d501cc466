// Texts through an encoder: their vectors, and what a head says of them.
//
//     const std::vector<float> vectors = host::embed(opened, texts, {.prompt = "query"});
//     const Head head = head_of(opened);
//     for (const HeadResult& result : host::classify(opened, head, pairs)) use(result.labels);
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/host/opened.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

/// What an encoder is asked about: a text, or two.
struct Text {
    std::string text;
    std::optional<std::string> pair;
};

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

struct LabelScore {
    std::string label;
    double score = 0, logit = 0;
    std::size_t index = 0;  ///< the label's, or the token's id
};
/// A word of a text, tokens that follow one another without a space.
struct LabelledWord {
    std::string word;
    LabelScore best;  ///< of its first token
};
struct AnswerSpan {
    std::string text;  ///< as the second text has it, whole words
    double score = 0;  ///< the product of its start's and its end's probability among the second text's tokens
    std::size_t begin = 0, end = 0;  ///< tokens of the second text
};
/// What a head says of one text: the member that is for its task.
struct HeadResult {
    std::vector<LabelScore> labels = {};  ///< the highest score first
    std::vector<LabelledWord> words = {};
    AnswerSpan answer = {};
    std::vector<std::vector<LabelScore>> masks = {};  ///< for each mask the likeliest tokens
};

namespace host {

struct TextOptions {
    std::uint32_t n_threads = 0;             ///< 0: default_threads()
    const char* isa = nullptr;               ///< nullptr: the best of this CPU
    std::optional<std::string> prompt = {};  ///< name of a prompt of the model's; "": none; nullopt: the model's choice
    std::span<std::size_t> n_whole = {};     ///< [n_texts] each text's tokens before it was cut; empty: not wanted
    std::size_t n_likeliest = 5;             ///< tokens for each mask
    std::size_t most_answer_tokens = 30;
};

/// The vector of each text, pooled and normalised as the model's source says: [n_texts][opened.vector_width()]. Throws
/// host::Error.
[[nodiscard]] std::vector<float> embed(const Opened& opened, std::span<const std::string> texts,
                                       const TextOptions& options = {});
/// What the model's head says of each text, or of each pair: an answer is found in the second text. Throws host::Error.
[[nodiscard]] std::vector<HeadResult> classify(const Opened& opened, const Head& head, std::span<const Text> texts,
                                               const TextOptions& options = {});

}  // namespace host
}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
