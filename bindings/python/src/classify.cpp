// What an encoder's head says of texts: labels, labelled words, answers, masked words; and rows as they are.
#include "bindings/python/src/errors.h"
#include "bindings/python/src/session.h"
#include "host/model/head_results.h"
#include "host/model/late_interaction.h"
#include "host/model/sparse_vectors.h"

namespace fovea::python {
namespace {

nb::list list_of(const std::vector<LabelScore>& scores) {
    nb::list list;
    for (const LabelScore& s : scores) list.append(nb::make_tuple(str_of(s.label), s.score, s.logit));
    return list;
}

/// Characters of the text as two numbers; None where they are not known.
nb::object place_of(const TextPlace& place) {
    if (place.end == place.begin) return nb::none();
    return nb::make_tuple(place.begin, place.end);
}

/// What the head says of one text.
nb::object object_of(const Head& head, const HeadResult& result) {
    nb::list list;
    switch (head.task) {
        case HeadTask::classes: return list_of(result.labels);
        case HeadTask::words:
            for (const LabelledWord& w : result.words)
                list.append(nb::make_tuple(str_of(w.word), str_of(w.best.label), w.best.score, place_of(w.place)));
            return list;
        case HeadTask::answer:
            for (const AnswerSpan& a : result.answers)
                list.append(
                    nb::make_tuple(str_of(a.text), a.score, a.begin, a.end, place_of(a.place), result.no_answer));
            return list;
        case HeadTask::masked: break;
    }
    for (const std::vector<LabelScore>& mask : result.masks) list.append(list_of(mask));
    return list;
}

host::TextOptions options_of(const nb::dict& given) {
    host::TextOptions options;
    const auto whole = [&](const char* name) { return nb::cast<std::uint32_t>(given[name]); };
    const auto flag = [&](const char* name) { return nb::cast<bool>(given[name]); };
    options.n_likeliest = whole("top"), options.n_answers = whole("answers");
    options.most_answer_tokens = whole("answer_tokens");
    options.may_lack_answer = flag("no_answer"), options.joins_entities = flag("join");
    options.parse_special = flag("parse_special");
    return options;
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

std::vector<TextTokens> late_tokens(const LateModel& late, const std::string& before, const std::vector<Text>& texts,
                                    bool are_queries, bool parse_special) {
    const WithoutGil released;
    InterruptibleWork work;
    std::vector<TextTokens> tokens;
    for (const Text& text : texts) {
        work.next(text.text.size());
        tokens.push_back(late.tokens_of(are_queries, before, text.text, parse_special));
    }
    return tokens;
}

}  // namespace

nb::tuple PySession::classify(const nb::list& texts_object, const nb::object& pairs, const nb::dict& given) {
    const OpenedModel& view = *opened_;
    const Head head = head_of(view);
    const std::vector<Text> texts = read_texts(texts_object, pairs);
    const host::TextOptions options = options_of(given);
    const bool answers = head.task == HeadTask::answer;
    if (answers && pairs.is_none()) refuse_value("pairs", "the texts to find answers in", "none");
    std::vector<TextTokens> tokens;
    {
        const WithoutGil released;
        InterruptibleWork work;
        for (const Text& text : texts) {
            work.next(text.text.size() + (text.pair ? text.pair->size() : 0));
            tokens.push_back(head_tokens(view, head, text, options));
            if (answers && tokens.back().second_begin == tokens.back().second_end)
                refuse_value("pairs", "texts to find answers in", "one without tokens");
        }
    }
    std::vector<HeadResult> results(texts.size());
    run_batches(tokens, {}, [&](std::size_t i, std::span<const float> of) {
        results[i] = head_result(view, head, texts[i], tokens[i], of, options);
    });
    nb::list list;
    for (const HeadResult& result : results) list.append(object_of(head, result));
    return nb::make_tuple(list, n_cut(tokens));
}

nb::tuple PySession::encode_sparse(const nb::list& texts, const std::string& prompt, bool parse_special) {
    const std::vector<Text> read = read_texts(texts, nb::none());
    std::vector<TextTokens> tokens;
    {
        const WithoutGil released;
        InterruptibleWork work;
        for (const Text& text : read) {
            work.next(text.text.size());
            tokens.push_back(tokens_behind(*opened_, prompt, text.text, {.parse_special = parse_special}));
        }
    }
    std::vector<std::vector<TokenWeight>> vectors(read.size());
    run_batches(tokens, {}, [&](std::size_t i, std::span<const float> rows) {
        vectors[i] = sparse_vector(*opened_, tokens[i].ids, rows);
    });
    nb::list list;
    for (const std::vector<TokenWeight>& vector : vectors) {
        nb::dict weights;
        for (const TokenWeight& token : vector) weights[nb::int_(token.id)] = token.weight;
        list.append(weights);
    }
    return nb::make_tuple(list, n_cut(tokens));
}

nb::tuple PySession::encode_late(const nb::list& texts, const std::optional<std::string>& prompt, bool are_queries,
                                 bool parse_special) {
    const LateModel late(*opened_);
    const std::string before = prompt ? *prompt : late.prompt_of(are_queries, {});
    const std::vector<Text> read = read_texts(texts, nb::none());
    const std::vector<TextTokens> tokens = late_tokens(late, before, read, are_queries, parse_special);
    std::vector<nb::bytes> rows(read.size());
    run_batches(tokens, {}, [&](std::size_t i, std::span<const float> values) {
        const std::vector<float> vectors = late.vectors(are_queries, tokens[i].ids, values);
        rows[i] = nb::bytes(vectors.data(), vectors.size() * sizeof(float));
    });
    nb::list list;
    for (const nb::bytes& of_text : rows) list.append(of_text);
    return nb::make_tuple(list, n_cut(tokens));
}

nb::tuple PySession::late_scores(const std::string& query, const nb::list& documents) {
    const LateModel late(*opened_);
    const std::vector<Text> asked = {{query, {}}}, read = read_texts(documents, nb::none());
    const std::vector<TextTokens> query_tokens = late_tokens(late, late.prompt_of(true, {}), asked, true, false),
                                  tokens = late_tokens(late, late.prompt_of(false, {}), read, false, false);
    std::vector<float> of_query;
    run_batches(query_tokens, {}, [&](std::size_t, std::span<const float> rows) {
        of_query = late.vectors(true, query_tokens[0].ids, rows);
    });
    std::vector<double> scores(read.size());
    run_batches(tokens, {}, [&](std::size_t i, std::span<const float> rows) {
        scores[i] = late.score(of_query, late.vectors(false, tokens[i].ids, rows));
    });
    nb::list list;
    for (const double score : scores) list.append(score);
    return nb::make_tuple(list, n_cut(tokens));
}

nb::tuple PySession::rows_of_texts(const nb::list& texts, const nb::object& pairs, bool of_head, bool parse_special) {
    const std::vector<Text> read = read_texts(texts, pairs);
    const WantedRows wanted = rows_wanted(*opened_, of_head);
    std::vector<TextTokens> tokens;
    {
        const WithoutGil released;
        InterruptibleWork work;
        for (const Text& text : read) {
            work.next(text.text.size() + (text.pair ? text.pair->size() : 0));
            tokens.push_back(tokens_of(*opened_, text, {.parse_special = parse_special}));
        }
    }
    std::vector<nb::bytes> rows(read.size());
    run_batches(tokens, wanted, [&](std::size_t i, std::span<const float> results) {
        rows[i] = nb::bytes(results.data(), results.size_bytes());
    });
    nb::list list;
    for (const nb::bytes& of_text : rows) list.append(of_text);
    return nb::make_tuple(list, n_cut(tokens));
}

}  // namespace fovea::python
