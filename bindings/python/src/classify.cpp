// What an encoder's head says of texts: labels, labelled words, answers, masked words.
#include "bindings/python/src/errors.h"
#include "bindings/python/src/session.h"
#include "host/model/head_results.h"

namespace fovea::python {
namespace {

/// One text's, whatever the head is for.
struct HeadResult {
    std::vector<LabelScore> labels;
    std::vector<LabelledWord> words;
    AnswerSpan answer;
    std::vector<std::vector<LabelScore>> masks;
};

nb::object str_of(const std::string& text) {
    return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

nb::list list_of(const std::vector<LabelScore>& scores) {
    nb::list list;
    for (const LabelScore& s : scores) list.append(nb::make_tuple(str_of(s.label), s.score, s.logit));
    return list;
}

nb::object object_of(HeadTask task, const HeadResult& result) {
    nb::list list;
    switch (task) {
        case HeadTask::classes: return list_of(result.labels);
        case HeadTask::words:
            for (const LabelledWord& w : result.words)
                list.append(nb::make_tuple(str_of(w.word), str_of(w.best.label), w.best.score));
            return list;
        case HeadTask::answer:
            return nb::make_tuple(str_of(result.answer.text), result.answer.score, result.answer.begin,
                                  result.answer.end);
        case HeadTask::masked: break;
    }
    for (const std::vector<LabelScore>& mask : result.masks) list.append(list_of(mask));
    return list;
}

std::vector<Text> read_texts(const nb::list& texts, const nb::object& pairs) {
    std::vector<Text> read;
    for (nb::handle text : texts) read.push_back({std::string(utf8_of(text, "texts")), {}});
    if (pairs.is_none()) return read;
    const auto given = nb::cast<nb::list>(pairs);
    if (given.size() != read.size())
        throw ValueRefused("pairs: expected one for each of " + std::to_string(read.size()) + " texts, got " +
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
    if (answers && pairs.is_none()) throw ValueRefused("pairs: expected the texts to find answers in, got none");
    std::vector<TextTokens> tokens;
    {
        const WithoutGil released;
        InterruptibleWork work;
        for (const Text& text : texts) {
            work.next(text.text.size() + (text.pair ? text.pair->size() : 0));
            tokens.push_back(tokens_of(view, text, masked, answers ? CutOf::second : CutOf::longer));
            if (masked) tokens.back().rows = mask_rows(view, tokens.back());
            if (answers && tokens.back().second_begin == tokens.back().second_end)
                throw ValueRefused("pairs: expected texts to find answers in, got one without tokens");
        }
    }
    std::vector<HeadResult> results(texts.size());
    run_batches(tokens, false, [&](std::size_t i, std::span<const float> of) {
        switch (head.task) {
            case HeadTask::classes: results[i].labels = label_scores(head, of); break;
            case HeadTask::words: results[i].words = labelled_words(view, head, tokens[i], of); break;
            case HeadTask::answer:
                results[i].answer = best_answer(view, tokens[i], *texts[i].pair, of, answer_tokens);
                break;
            case HeadTask::masked: {
                const std::size_t n = tokens[i].rows.size(), width = of.size() / n;
                for (std::size_t mask = 0; mask < n; ++mask)
                    results[i].masks.push_back(likeliest_tokens(view, of.subspan(mask * width, width), top));
            }
        }
    });
    nb::list list;
    for (const HeadResult& result : results) list.append(object_of(head.task, result));
    return list;
}

}  // namespace fovea::python
