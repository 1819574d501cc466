// fovea/host/texts.h: texts read, computed, and made into results.
#include <algorithm>

#include "host/base/error.h"
#include "host/model/head_results.h"

namespace fovea::host {
namespace {

/// Runs an encoder over texts, the longest first, and gives each one's results to `take`.
void run_texts(const Opened& opened, std::span<const TextTokens> tokens, const TextOptions& options,
               const TakeResults& take) {
    for (std::size_t i = 0; i < options.n_whole.size(); ++i) options.n_whole[i] = tokens[i].n_whole;
    if (tokens.empty()) return;
    TextBatches(opened, tokens,
                {.n_threads = options.n_threads ? options.n_threads : default_threads(), .isa = options.isa})
        .run(take);
}

TextTokens read_for(const Opened& opened, const Head& head, const Text& text) {
    if (head.task == HeadTask::answer && !text.pair)
        throw ArgumentError("pair: expected the text to find the answer in, got none");
    const bool masked = head.task == HeadTask::masked;
    TextTokens tokens = tokens_of(opened, text, masked, head.task == HeadTask::answer ? CutOf::second : CutOf::longer);
    if (masked) tokens.rows = mask_rows(opened, tokens);
    return tokens;
}

HeadResult result_of(const Opened& opened, const Head& head, const Text& text, const TextTokens& tokens,
                     std::span<const float> logits, const TextOptions& options) {
    switch (head.task) {
        case HeadTask::classes: return {.labels = label_scores(head, logits)};
        case HeadTask::words: return {.words = labelled_words(opened, head, tokens, logits)};
        case HeadTask::answer:
            return {.answer = best_answer(opened, tokens, *text.pair, logits, options.most_answer_tokens)};
        case HeadTask::masked: break;
    }
    HeadResult result;
    const std::size_t width = logits.size() / tokens.rows.size();
    for (std::size_t begin = 0; begin < logits.size(); begin += width)
        result.masks.push_back(likeliest_tokens(opened, logits.subspan(begin, width), options.n_likeliest));
    return result;
}

}  // namespace

std::vector<float> embed(const Opened& opened, std::span<const std::string> texts, const TextOptions& options) {
    if (opened.kind() != Kind::vectors || opened.has_task() || opened.config().encoder.pooling == Pooling::none)
        throw Error(opened.name + ": model: expected an encoder that makes a vector of a text, got another");
    const std::string before = prompt_before(prompts_of(opened.model, opened.name), options.prompt);
    std::vector<TextTokens> tokens;
    for (const std::string& text : texts) tokens.push_back(tokens_of(opened, {before + text, {}}));
    const std::size_t width = opened.vector_width();
    std::vector<float> vectors(texts.size() * width);
    run_texts(opened, tokens, options, [&](std::size_t i, std::span<const float> vector) {
        std::copy(vector.begin(), vector.end(), vectors.begin() + static_cast<std::ptrdiff_t>(i * width));
    });
    return vectors;
}

std::vector<HeadResult> classify(const Opened& opened, const Head& head, std::span<const Text> texts,
                                 const TextOptions& options) {
    std::vector<TextTokens> tokens;
    for (const Text& text : texts) tokens.push_back(read_for(opened, head, text));
    std::vector<HeadResult> results(texts.size());
    run_texts(opened, tokens, options, [&](std::size_t i, std::span<const float> logits) {
        results[i] = result_of(opened, head, texts[i], tokens[i], logits, options);
    });
    return results;
}

}  // namespace fovea::host
