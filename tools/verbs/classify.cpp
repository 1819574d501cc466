// fovea classify: what an encoder's head says of a text or a pair of texts.
#include "host/model/head_results.h"
#include "host/model/texts.h"
#include "tools/terminal/progress.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

struct ClassifyOptions {
    CommonOptions common;
    std::string model, texts;
    std::optional<std::string> text, pair;
    std::uint32_t top = 0, answer_tokens = 30;
    bool special = false, may_lack_answer = false, joins_entities = false;

    [[nodiscard]] host::TextOptions settings() const {
        return {.n_likeliest = top ? top : 5,
                .most_answer_tokens = answer_tokens,
                .n_answers = top ? top : 1,
                .may_lack_answer = may_lack_answer,
                .joins_entities = joins_entities,
                .parse_special = special};
    }
};

void add_place(const TextPlace& place, Json& object) {
    if (place.end > place.begin) object["characters"] = {place.begin, place.end};
}

Json to_json(const AnswerSpan& answer) {
    Json object = {{"answer", answer.text}, {"score", answer.score}, {"tokens", {answer.begin, answer.end}}};
    add_place(answer.place, object);
    return object;
}

Json to_json(const std::vector<LabelScore>& scores) {
    Json list = Json::array();
    for (const LabelScore& s : scores) list.push_back({{"label", s.label}, {"score", s.score}, {"logit", s.logit}});
    return list;
}

/// One text's result, as one JSON object or as lines.
class ClassPrinter {
public:
    ClassPrinter(const ClassifyOptions& options, const Head& head, bool many)
        : options_(options), head_(head), many_(many) {}

    void print(const Text& text, const TextTokens& tokens, const HeadResult& result) const {
        Json object;
        if (many_) {
            object["text"] = text.text;
            if (text.pair) object["pair"] = *text.pair;
        }
        std::string lines;
        switch (head_.task) {
            case HeadTask::classes: add_classes(result.labels, object, lines); break;
            case HeadTask::words: add_words(result.words, object, lines); break;
            case HeadTask::answer: add_answers(result, object, lines); break;
            case HeadTask::masked: add_masked(result.masks, object, lines); break;
        }
        object["n_tokens"] = tokens.ids.size();
        if (tokens.is_cut()) object["n_tokens_whole"] = tokens.n_whole;
        if (options_.common.json) return print_line(object);
        std::fputs(lines.c_str(), stdout);
    }

private:
    static void add_line(std::string& lines, double score, const std::string& words) {
        char number[48];
        std::snprintf(number, sizeof number, "%.6f", score);
        lines += number + (words.empty() ? "" : "  " + one_line(words)) + "\n";
    }

    /// For many texts only the likeliest label, a line each; for a model with one label, its score.
    void add_classes(const std::vector<LabelScore>& scores, Json& object, std::string& lines) const {
        object["labels"] = to_json(scores);
        if (scores.size() == 1) {
            object["score"] = scores[0].score;
            return add_line(lines, scores[0].score, "");
        }
        for (const LabelScore& s : scores) {
            add_line(lines, s.score, s.label);
            if (many_) break;
        }
    }
    void add_words(const std::vector<LabelledWord>& words, Json& object, std::string& lines) const {
        object["words"] = Json::array();
        for (const LabelledWord& w : words) {
            object["words"].push_back({{"word", w.word}, {"label", w.best.label}, {"score", w.best.score}});
            add_place(w.place, object["words"].back());
            add_line(lines, w.best.score, w.best.label + "  " + w.word);
        }
        if (many_) lines += "\n";
    }
    void add_answers(const HeadResult& result, Json& object, std::string& lines) const {
        object.update(to_json(result.answer));
        object["no_answer"] = result.no_answer;
        if (options_.top) object["answers"] = Json::array();
        for (const AnswerSpan& answer : result.answers) {
            if (options_.top) object["answers"].push_back(to_json(answer));
            add_line(lines, answer.score, answer.text);
        }
        if (options_.top && many_) lines += "\n";
    }
    void add_masked(const std::vector<std::vector<LabelScore>>& masks, Json& object, std::string& lines) const {
        object["masks"] = Json::array();
        for (std::size_t i = 0; i < masks.size(); ++i) {
            object["masks"].push_back(to_json(masks[i]));
            for (const LabelScore& s : masks[i]) add_line(lines, s.score, s.label);
            if (i + 1 < masks.size() || many_) lines += "\n";
        }
    }

    const ClassifyOptions& options_;
    const Head& head_;
    bool many_;
};

/// -p's text, with --pair; or the lines of --texts, beside -p each the pair of -p's text, beside --pair each with that.
std::vector<Text> read_texts(const ClassifyOptions& options) {
    if (options.texts.empty()) {
        if (!options.text) throw UsageError("-p or --texts: expected one of them, got neither");
        return {{*options.text, options.pair}};
    }
    if (options.text && options.pair) throw UsageError("--texts: expected -p or --pair beside it, got both");
    std::vector<Text> texts = read_text_lines(options.texts);
    for (Text& text : texts) {
        if ((options.text || options.pair) && text.pair)
            throw host::Error(options.texts + ": expected lines without a pair beside -p or --pair, got one with");
        if (options.text) text = {*options.text, text.text};
        if (options.pair) text.pair = options.pair;
    }
    return texts;
}

/// Pairs' scores by late interaction.
void classify_late(const ClassifyOptions& options, const host::Opened& opened, const std::vector<Text>& texts) {
    host::TextOptions settings = options.settings();
    settings.n_threads = options.common.n_threads;
    settings.isa = options.common.isa_or_best();
    const std::vector<double> scores = host::score_pairs(opened, texts, settings);
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (!options.common.json) {
            std::printf("%.6f\n", scores[i]);
            continue;
        }
        Json object;
        if (!options.texts.empty()) object = {{"text", texts[i].text}, {"pair", texts[i].pair.value_or("")}};
        object["score"] = scores[i];
        print_line(object);
    }
}

void classify(ClassifyOptions& options) {
    need_model(options.model);
    settle(options.common);
    const std::vector<Text> texts = read_texts(options);
    const host::Opened opened = open_path(options.model, options.common.opening());
    if (opened.has_late_interaction()) return classify_late(options, opened, texts);
    const Head head = head_of(opened);
    const host::TextOptions settings = options.settings();
    std::vector<TextTokens> tokens;
    for (const Text& text : texts) {
        if (head.task == HeadTask::answer && !text.pair)
            throw UsageError("--pair: expected the text to find the answer in, got none");
        tokens.push_back(head_tokens(opened, head, text, settings));
    }
    note_cut(opened, tokens);
    TextBatches batches(opened, tokens,
                        {options.common.n_threads, options.common.isa_or_best(), options.common.kv_type});
    std::vector<HeadResult> results(texts.size());
    Progress progress = progress_line("classifying");
    std::uint64_t n_done = 0;
    batches.run([&](std::size_t i, std::span<const float> result) {
        results[i] = head_result(opened, head, texts[i], tokens[i], result, settings);
        if (progress) progress(++n_done, results.size());
    });
    progress = {};  // ends its line
    const ClassPrinter printer(options, head, !options.texts.empty());
    for (std::size_t i = 0; i < texts.size(); ++i) printer.print(texts[i], tokens[i], results[i]);
}

}  // namespace

void add_classify(CLI::App& app) {
    const auto declare = [](const Verb& verb, ClassifyOptions& o) {
        verb.model(o.model);
        verb.text("-p,--prompt", o.text, "the text; of an answer, the question");
        verb.text("--pair", o.pair, "the second text; of an answer, where to find it");
        verb.input("--texts", o.texts,
                   "a file of texts, a line each, or - for standard input; a line may be {\"text\": …, \"pair\": …}. "
                   "Beside -p each is the pair of that text");
        verb.count("--top", o.top, 1, 1000000, "words to show for each mask (default: 5), or answers (1)");
        verb.count("--answer-tokens", o.answer_tokens, 1, 1000000, "most tokens of an answer (default: 30)");
        verb.flag("--no-answer", o.may_lack_answer, "an answer may be empty, where the model finds none likelier");
        verb.flag("--join", o.joins_entities, "words of one entity as one (B-PER, I-PER), others left out");
        verb.flag("--special", o.special, "read [SEP] and the like in texts as special tokens");
        verb.kv(o.common.kv_type);
        verb.opening(o.common);
    };
    add_verb<ClassifyOptions>(app, "classify", "Labels of a text or a pair, labelled words, answers, masked words",
                              classify, declare);
}

}  // namespace fovea
