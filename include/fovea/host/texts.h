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
/// Characters of a text (Unicode code points). begin = end: not found, for tokenizers change texts.
struct TextPlace {
    std::size_t begin = 0, end = 0;
};
/// A word of a text, tokens that follow one another without a space; or several of them as one entity.
struct LabelledWord {
    std::string word;
    LabelScore best;       ///< of its first token; of an entity the words' mean score, its label without B- or I-
    TextPlace place = {};  ///< of a pair not found
};
struct AnswerSpan {
    std::string text;  ///< as the second text has it, whole words; "": there is no answer
    double score =
        0;  ///< the product of its start's and its end's probability among the second text's tokens and [CLS]
    std::size_t begin = 0, end = 0;  ///< tokens of the second text
    TextPlace place = {};
};
/// What a head says of one text: the member that is for its task.
struct HeadResult {
    std::vector<LabelScore> labels = {};  ///< the highest score first
    std::vector<LabelledWord> words = {};
    AnswerSpan answer = {};                ///< the likeliest; the same product of [CLS] as both is that of no answer
    std::vector<AnswerSpan> answers = {};  ///< the likeliest of all, n_answers
    double no_answer = 0;                  ///< 0: the model puts no [CLS] before a text
    std::vector<std::vector<LabelScore>> masks = {};  ///< for each mask the likeliest tokens
};

/// A token of a sparse vector; those that it lacks weigh 0.
struct TokenWeight {
    Token id = 0;
    float weight = 0;  ///< above 0
};

namespace host {

struct TextOptions {
    std::uint32_t n_threads = 0;             ///< 0: default_threads()
    const char* isa = nullptr;               ///< nullptr: the best of this CPU
    std::optional<std::string> prompt = {};  ///< name of a prompt of the model's; "": none; nullopt: the model's choice
    std::span<std::size_t> n_whole = {};     ///< [n_texts] each text's tokens before it was cut; empty: not wanted
    std::size_t n_likeliest = 5;             ///< tokens for each mask
    std::size_t most_answer_tokens = 30;
    std::size_t n_answers = 1;     ///< to give, the likeliest first
    bool may_lack_answer = false;  ///< an answer may be "", if [CLS] is likelier
    bool joins_entities = false;   ///< words of one entity become one, and words outside all entities are left out
    bool parse_special = false;    ///< "[SEP]" in a text is that token
};

/// The vector of each text, pooled and normalised as the model's source says: [n_texts][opened.vector_width()]. Throws
/// host::Error.
[[nodiscard]] std::vector<float> embed(const Opened& opened, std::span<const std::string> texts,
                                       const TextOptions& options = {});
/// The sparse vector of each text, by ids, of a model that makes such (Opened::makes_sparse). Throws host::Error.
[[nodiscard]] std::vector<std::vector<TokenWeight>> embed_sparse(const Opened& opened,
                                                                 std::span<const std::string> texts,
                                                                 const TextOptions& options = {});
/// What the model's head says of each text, or of each pair: an answer is found in the second text. Throws host::Error.
[[nodiscard]] std::vector<HeadResult> classify(const Opened& opened, const Head& head, std::span<const Text> texts,
                                               const TextOptions& options = {});

/// What a model makes of a text's tokens, which nothing pools.
struct TextRows {
    std::vector<Token> ids;     ///< of the text, with what the tokenizer puts around it
    std::vector<float> values;  ///< [n_rows][width]: a row for each id; of the logits of a head for classes one
    std::size_t width = 0;
};
/// The vectors that the model's layers leave for each token; with `of_head` the logits that its head makes. Throws host::Error.
[[nodiscard]] std::vector<TextRows> rows_of(const Opened& opened, std::span<const Text> texts, bool of_head,
                                            const TextOptions& options = {});

/// The vectors of each text's tokens, of length 1, of a model of late interaction (Opened::has_late_interaction): of queries, or of
/// documents. `ids` are of the tokens that have vectors. Throws host::Error.
[[nodiscard]] std::vector<TextRows> embed_tokens(const Opened& opened, std::span<const std::string> texts,
                                                 bool are_queries, const TextOptions& options = {});
/// The score of each pair's second text for its first, by a reranker or by late interaction. Throws host::Error for other models.
[[nodiscard]] std::vector<double> score_pairs(const Opened& opened, std::span<const Text> pairs,
                                              const TextOptions& options = {});

/// A document, and what a reranker says of it.
struct Ranked {
    std::size_t index = 0;  ///< in the caller's list
    double score = 0;
};
/// The documents by their scores for a query, the best first, of equal ones the first. Throws host::Error, also for a model that
/// is neither a reranker, a head for classes with one label (Opened::scores_pairs), nor one of late interaction.
[[nodiscard]] std::vector<Ranked> rank(const Opened& opened, const std::string& query,
                                       std::span<const std::string> documents, const TextOptions& options = {});

}  // namespace host
}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
