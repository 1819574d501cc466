// fovea/host/texts.h: texts read, computed, and made into results.
#include <algorithm>
#include <map>
#include <string_view>

#include "host/base/error.h"
#include "host/model/head_results.h"
#include "host/model/late_interaction.h"
#include "host/model/sparse_vectors.h"

namespace fovea {

TextTokens head_tokens(const host::Opened& opened, const Head& head, const Text& text,
                       const host::TextOptions& options) {
    if (head.task == HeadTask::answer && !text.pair)
        throw host::ArgumentError("pair: expected the text to find the answer in, got none");
    TextTokens tokens = tokens_of(opened, text,
                                  {.parse_special = options.parse_special || head.task == HeadTask::masked,
                                   .cut = head.task == HeadTask::answer ? CutOf::second : CutOf::longer});
    if (head.task == HeadTask::masked) tokens.rows = mask_rows(opened, tokens);
    return tokens;
}

HeadResult head_result(const host::Opened& opened, const Head& head, const Text& text, const TextTokens& tokens,
                       std::span<const float> logits, const host::TextOptions& options) {
    switch (head.task) {
        case HeadTask::classes: return {.labels = label_scores(head, logits)};
        case HeadTask::words: {
            std::vector<LabelledWord> words = labelled_words(opened, head, text, tokens, logits);
            return {.words = options.joins_entities ? joined_entities(text.text, words) : std::move(words)};
        }
        case HeadTask::answer: {
            Answers answers = best_answers(opened, tokens, *text.pair, logits, options);
            return {.answer = answers.best.front(), .answers = std::move(answers.best), .no_answer = answers.none};
        }
        case HeadTask::masked: break;
    }
    HeadResult result;
    const std::size_t width = logits.size() / tokens.rows.size();
    for (std::size_t begin = 0; begin < logits.size(); begin += width)
        result.masks.push_back(likeliest_tokens(opened, logits.subspan(begin, width), options.n_likeliest));
    return result;
}

namespace host {
namespace {

/// Runs an encoder over texts, the longest first, and gives each one's results to `take`.
void run_texts(const Opened& opened, std::span<const TextTokens> tokens, const TextOptions& options,
               const WantedRows& wanted, const TakeResults& take) {
    for (std::size_t i = 0; i < options.n_whole.size(); ++i) options.n_whole[i] = tokens[i].n_whole;
    if (tokens.empty()) return;
    TextBatches(
        opened, tokens,
        {.n_threads = options.n_threads ? options.n_threads : default_threads(), .isa = options.isa, .wanted = wanted})
        .run(take);
}

}  // namespace

std::vector<float> embed(const Opened& opened, std::span<const std::string> texts, const TextOptions& options) {
    const std::optional<WantedRows> wanted = vector_of_text(opened);
    const bool has_classes = opened.has_task() && opened.config().encoder.pooling != Pooling::none;
    if (!wanted || has_classes)
        throw Error(opened.name + ": model: expected an encoder that makes a vector of a text, got another");
    const std::string before = prompt_before(prompts_of(opened.model, opened.name), options.prompt);
    std::vector<TextTokens> tokens;
    for (const std::string& text : texts)
        tokens.push_back(tokens_behind(opened, before, text, {.parse_special = options.parse_special}));
    const std::size_t width = opened.vector_width();
    std::vector<float> vectors(texts.size() * width);
    run_texts(opened, tokens, options, *wanted, [&](std::size_t i, std::span<const float> vector) {
        std::copy(vector.begin(), vector.end(), vectors.begin() + static_cast<std::ptrdiff_t>(i * width));
    });
    return vectors;
}

std::vector<std::vector<TokenWeight>> embed_sparse(const Opened& opened, std::span<const std::string> texts,
                                                   const TextOptions& options) {
    if (!opened.makes_sparse())
        throw Error(opened.name + ": model: expected one that makes sparse vectors of texts, got another");
    const std::string before = prompt_before(prompts_of(opened.model, opened.name), options.prompt);
    std::vector<TextTokens> tokens;
    for (const std::string& text : texts)
        tokens.push_back(tokens_behind(opened, before, text, {.parse_special = options.parse_special}));
    std::vector<std::vector<TokenWeight>> vectors(texts.size());
    run_texts(opened, tokens, options, {}, [&](std::size_t i, std::span<const float> rows) {
        vectors[i] = sparse_vector(opened, tokens[i].ids, rows);
    });
    return vectors;
}

std::vector<HeadResult> classify(const Opened& opened, const Head& head, std::span<const Text> texts,
                                 const TextOptions& options) {
    std::vector<TextTokens> tokens;
    for (const Text& text : texts) tokens.push_back(head_tokens(opened, head, text, options));
    std::vector<HeadResult> results(texts.size());
    run_texts(opened, tokens, options, {}, [&](std::size_t i, std::span<const float> logits) {
        results[i] = head_result(opened, head, texts[i], tokens[i], logits, options);
    });
    return results;
}

std::vector<TextRows> rows_of(const Opened& opened, std::span<const Text> texts, bool of_head,
                              const TextOptions& options) {
    const WantedRows wanted = rows_wanted(opened, of_head);
    std::vector<TextTokens> tokens;
    for (const Text& text : texts) tokens.push_back(tokens_of(opened, text, {.parse_special = options.parse_special}));
    std::vector<TextRows> rows(texts.size());
    const Stack& stack = opened.config().encoder;
    run_texts(opened, tokens, options, wanted, [&](std::size_t i, std::span<const float> values) {
        rows[i] = {tokens[i].ids, {values.begin(), values.end()}, of_head ? stack.result_width() : stack.d_model};
    });
    return rows;
}

std::vector<TextRows> embed_tokens(const Opened& opened, std::span<const std::string> texts, bool are_queries,
                                   const TextOptions& options) {
    const LateModel late(opened);
    const std::string before = late.prompt_of(are_queries, options.prompt);
    std::vector<TextTokens> tokens;
    for (const std::string& text : texts)
        tokens.push_back(late.tokens_of(are_queries, before, text, options.parse_special));
    std::vector<TextRows> rows(texts.size());
    run_texts(opened, tokens, options, {}, [&](std::size_t i, std::span<const float> values) {
        const std::vector<Token>& ids = tokens[i].ids;
        rows[i] = {{}, late.vectors(are_queries, ids, values), late.width()};
        for (const std::uint32_t row : late.kept(are_queries, ids)) rows[i].ids.push_back(ids[row]);
    });
    return rows;
}

namespace {

/// Queries that come several times are computed once; documents' vectors become scores batch by batch.
std::vector<double> late_scores(const Opened& opened, std::span<const Text> pairs, const TextOptions& options) {
    const LateModel late(opened);
    std::vector<std::string> queries;
    std::vector<std::size_t> query_of;
    std::map<std::string_view, std::size_t> known;
    for (const Text& text : pairs) {
        if (!text.pair) throw ArgumentError("pair: expected a document for the query, got none");
        const auto [found, is_new] = known.try_emplace(text.text, queries.size());
        if (is_new) queries.push_back(text.text);
        query_of.push_back(found->second);
    }
    TextOptions of_queries = options;
    of_queries.n_whole = {};
    const std::vector<TextRows> vectors = embed_tokens(opened, queries, true, of_queries);
    const std::string before = late.prompt_of(false, {});
    std::vector<TextTokens> tokens;
    for (const Text& text : pairs) tokens.push_back(late.tokens_of(false, before, *text.pair, options.parse_special));
    std::vector<double> scores(pairs.size());
    run_texts(opened, tokens, options, {}, [&](std::size_t i, std::span<const float> rows) {
        scores[i] = late.score(vectors[query_of[i]].values, late.vectors(false, tokens[i].ids, rows));
    });
    return scores;
}

}  // namespace

std::vector<double> score_pairs(const Opened& opened, std::span<const Text> pairs, const TextOptions& options) {
    if (opened.has_late_interaction()) return late_scores(opened, pairs, options);
    if (!opened.scores_pairs())
        throw Error(opened.name +
                    ": model: expected a reranker, a head for classes with one label or late interaction, got another");
    std::vector<double> scores;
    for (const HeadResult& result : classify(opened, head_of(opened), pairs, options))
        scores.push_back(result.labels.front().score);
    return scores;
}

std::vector<Ranked> rank(const Opened& opened, const std::string& query, std::span<const std::string> documents,
                         const TextOptions& options) {
    std::vector<Text> pairs;
    for (const std::string& document : documents) pairs.push_back({query, document});
    std::vector<Ranked> ranked;
    for (const double score : score_pairs(opened, pairs, options)) ranked.push_back({ranked.size(), score});
    std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) { return a.score > b.score; });
    return ranked;
}

}  // namespace host
}  // namespace fovea
