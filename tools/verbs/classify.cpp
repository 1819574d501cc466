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
    std::uint32_t top = 5, answer_tokens = 30;
};

Json to_json(const std::vector<LabelScore>& scores) {
    Json list = Json::array();
    for (const LabelScore& s : scores) list.push_back({{"label", s.label}, {"score", s.score}, {"logit", s.logit}});
    return list;
}

/// One text's result, as one JSON object or as lines.
class ClassPrinter {
public:
    ClassPrinter(const ClassifyOptions& options, const host::Opened& opened, const Head& head, bool many)
        : options_(options), opened_(opened), head_(head), many_(many) {}

    void print(const Text& text, const TextTokens& tokens, std::span<const float> results) const {
        Json object;
        if (many_) {
            object["text"] = text.text;
            if (text.pair) object["pair"] = *text.pair;
        }
        std::string lines;
        switch (head_.task) {
            case HeadTask::classes: add_classes(results, object, lines); break;
            case HeadTask::words: add_words(tokens, results, object, lines); break;
            case HeadTask::answer: add_answer(text, tokens, results, object, lines); break;
            case HeadTask::masked: add_masked(tokens, results, object, lines); break;
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
    void add_classes(std::span<const float> results, Json& object, std::string& lines) const {
        const std::vector<LabelScore> scores = label_scores(head_, results);
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
    void add_words(const TextTokens& tokens, std::span<const float> results, Json& object, std::string& lines) const {
        object["words"] = Json::array();
        for (const LabelledWord& w : labelled_words(opened_, head_, tokens, results)) {
            object["words"].push_back({{"word", w.word}, {"label", w.best.label}, {"score", w.best.score}});
            add_line(lines, w.best.score, w.best.label + "  " + w.word);
        }
        if (many_) lines += "\n";
    }
    void add_answer(const Text& text, const TextTokens& tokens, std::span<const float> results, Json& object,
                    std::string& lines) const {
        const AnswerSpan answer = best_answer(opened_, tokens, *text.pair, results, options_.answer_tokens);
        object["answer"] = answer.text;
        object["score"] = answer.score;
        object["tokens"] = {answer.begin, answer.end};
        add_line(lines, answer.score, answer.text);
    }
    void add_masked(const TextTokens& tokens, std::span<const float> results, Json& object, std::string& lines) const {
        const std::size_t width = results.size() / tokens.rows.size();
        object["masks"] = Json::array();
        for (std::size_t i = 0; i < tokens.rows.size(); ++i) {
            const auto likeliest = likeliest_tokens(opened_, results.subspan(i * width, width), options_.top);
            object["masks"].push_back(to_json(likeliest));
            for (const LabelScore& s : likeliest) add_line(lines, s.score, s.label);
            if (i + 1 < tokens.rows.size() || many_) lines += "\n";
        }
    }

    const ClassifyOptions& options_;
    const host::Opened& opened_;
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

void classify(ClassifyOptions& options) {
    need_model(options.model);
    settle(options.common);
    const std::vector<Text> texts = read_texts(options);
    const host::Opened opened = open_path(options.model, options.common.opening());
    const Head head = head_of(opened);
    std::vector<TextTokens> tokens;
    for (const Text& text : texts) {
        if (head.task == HeadTask::answer && !text.pair)
            throw UsageError("--pair: expected the text to find the answer in, got none");
        const bool masked = head.task == HeadTask::masked;
        tokens.push_back(
            tokens_of(opened, text, masked, head.task == HeadTask::answer ? CutOf::second : CutOf::longer));
        if (masked) tokens.back().rows = mask_rows(opened, tokens.back());
    }
    note_cut(opened, tokens);
    TextBatches batches(opened, tokens,
                        {options.common.n_threads, options.common.isa_or_best(), options.common.kv_type});
    std::vector<std::vector<float>> results(texts.size());
    Progress progress = progress_line("classifying");
    std::uint64_t n_done = 0;
    batches.run([&](std::size_t i, std::span<const float> result) {
        results[i].assign(result.begin(), result.end());
        if (progress) progress(++n_done, results.size());
    });
    progress = {};  // ends its line
    const ClassPrinter printer(options, opened, head, !options.texts.empty());
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
        verb.count("--top", o.top, 1, 1000000, "words to show for each mask (default: 5)");
        verb.count("--answer-tokens", o.answer_tokens, 1, 1000000, "most tokens of an answer (default: 30)");
        verb.kv(o.common.kv_type);
        verb.opening(o.common);
    };
    add_verb<ClassifyOptions>(app, "classify", "Labels of a text or a pair, labelled words, answers, masked words",
                              classify, declare);
}

}  // namespace fovea
