// What an encoder's head says of texts: labels, labelled words, answers, masked words.
#include "bindings/python/src/errors.h"
#include "bindings/python/src/session.h"
#include "host/model/head_results.h"

namespace fovea::python {
namespace {

nb::list list_of(const std::vector<LabelScore>& scores) {
    nb::list list;
    for (const LabelScore& s : scores) list.append(nb::make_tuple(str_of(s.label), s.score, s.logit));
    return list;
}

/// What the head says of one text, by the results of its rows.
nb::object object_of(const OpenedModel& opened, const Head& head, const Text& text, const TextTokens& tokens,
                     std::span<const float> results, std::uint32_t top, std::uint32_t answer_tokens) {
    nb::list list;
    switch (head.task) {
        case HeadTask::classes: return list_of(label_scores(head, results));
        case HeadTask::words:
            for (const LabelledWord& w : labelled_words(opened, head, tokens, results))
                list.append(nb::make_tuple(str_of(w.word), str_of(w.best.label), w.best.score));
            return list;
        case HeadTask::answer: {
            const AnswerSpan answer = best_answer(opened, tokens, *text.pair, results, answer_tokens);
            return nb::make_tuple(str_of(answer.text), answer.score, answer.begin, answer.end);
        }
        case HeadTask::masked: break;
    }
    const std::size_t n = tokens.rows.size(), width = results.size() / n;
    for (std::size_t mask = 0; mask < n; ++mask)
        list.append(list_of(likeliest_tokens(opened, results.subspan(mask * width, width), top)));
    return list;
}

std::vector<Text> read_texts(const nb::list& texts, const nb::object& pairs) {
    std::vector<Text> read;
    for (nb::handle text : texts) read.push_back({std::string(utf8_of(text, "texts")), {}});
    if (pairs.is_none()) return read;
    const auto given = nb::cast<nb::list>(pairs);
    if (given.size() != read.size())
        refuse_value("pairs", "one for each of " + std::to_string(read.size()) + " texts",
                     std::to_string(given.size()));
    for (std::size_t i = 0; i < read.size(); ++i) read[i].pair = std::string(utf8_of(given[i], "pairs"));
    return read;
}

}  // namespace

nb::list PySession::classify(const nb::list& texts_object, const nb::object& pairs, std::uint32_t top,
                             std::uint32_t answer_tokens) {
    const OpenedModel& view = *opened_;
    const Head head = head_of(view);
    const std::vector<Text> texts = read_texts(texts_object, pairs);
    const bool answers = head.task == HeadTask::answer, masked = head.task == HeadTask::masked;
    if (answers && pairs.is_none()) refuse_value("pairs", "the texts to find answers in", "none");
    std::vector<TextTokens> tokens;
    {
        const WithoutGil released;
        InterruptibleWork work;
        for (const Text& text : texts) {
            work.next(text.text.size() + (text.pair ? text.pair->size() : 0));
            tokens.push_back(tokens_of(view, text, masked, answers ? CutOf::second : CutOf::longer));
            if (masked) tokens.back().rows = mask_rows(view, tokens.back());
            if (answers && tokens.back().second_begin == tokens.back().second_end)
                refuse_value("pairs", "texts to find answers in", "one without tokens");
        }
    }
    std::vector<nb::object> results(texts.size());
    run_batches(tokens, false, [&](std::size_t i, std::span<const float> of) {
        results[i] = object_of(view, head, texts[i], tokens[i], of, top, answer_tokens);
    });
    nb::list list;
    for (const nb::object& result : results) list.append(result);
    return list;
}

}  // namespace fovea::python
