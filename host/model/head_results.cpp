#include "host/model/head_results.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <sstream>
#include <utility>

#include "engine/format/utf8.h"
#include "host/base/error.h"

namespace fovea {
namespace {

/// exp(x − largest) over their sum, in double.
std::vector<double> softmax(std::span<const float> logits) {
    const double most = logits.empty() ? 0.0 : *std::max_element(logits.begin(), logits.end());
    std::vector<double> scores(logits.size());
    double total = 0;
    for (std::size_t i = 0; i < logits.size(); ++i)
        total += scores[i] = std::exp(static_cast<double>(logits[i]) - most);
    for (double& score : scores) score /= total;
    return scores;
}

std::string decoded(const host::Opened& opened, std::span<const Token> ids, bool special = false) {
    const std::string text = opened.text(ids, {.show_special = special});
    return text.starts_with(' ') ? text.substr(1) : text;
}

/// Where the first tokens of a text end in it: behind the longest beginning that has them and no others. Tokenizers change and
/// join characters, so beginnings are tried. Nothing where none is found.
std::optional<std::size_t> end_of_tokens(const host::Opened& opened, std::string_view text,
                                         std::span<const Token> ids) {
    constexpr std::size_t kNear =
        64;  // bytes: a beginning that ends within a word may have more tokens than a longer one
    if (ids.empty()) return 0;
    std::vector<std::size_t> places;  // between characters
    for (std::size_t at = 0; at < text.size();) places.push_back(at += first_character(text.substr(at)).bytes);
    const auto tokens_to = [&](std::size_t at) { return opened.tokens(text.substr(0, at), {.add_special = false}); };
    const auto has_fewer = [&](std::size_t at, std::size_t n) { return tokens_to(at).size() < n; };
    const auto about = std::lower_bound(places.begin(), places.end(), ids.size(), has_fewer);
    const std::size_t middle = about == places.end() ? text.size() : *about;
    std::optional<std::size_t> end;
    for (const std::size_t at : places) {
        if (at + kNear < middle || at > middle + kNear) continue;
        const std::vector<Token> tokens = tokens_to(at);
        if (std::equal(tokens.begin(), tokens.end(), ids.begin(), ids.end())) end = at;
    }
    return end;
}

/// Letters and digits of scripts that put spaces between words.
bool is_of_word(std::uint32_t code) {
    if (code < 0x80) return (code >= '0' && code <= '9') || ((code | 0x20) >= 'a' && (code | 0x20) <= 'z');
    return code >= 0xc0 && code < 0x2000 && code != 0xd7 && code != 0xf7;
}

/// Bytes of a text.
struct Bytes {
    std::size_t begin = 0, end = 0;
    [[nodiscard]] std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

std::size_t n_characters(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
}

TextPlace place_of(std::string_view text, const Bytes& bytes) {
    const std::size_t begin = n_characters(text.substr(0, bytes.begin));
    return {begin, begin + n_characters(bytes.of(text))};
}

std::string characters_of(std::string_view text, const TextPlace& place) {
    std::size_t at = 0, begin = 0;
    for (std::size_t i = 0; at < text.size() && i < place.end; ++i) {
        if (i == place.begin) begin = at;
        at += first_character(text.substr(at)).bytes;
    }
    return std::string(text.substr(begin, at - begin));
}

/// Without white space at its ends; nothing where there is nothing else.
std::optional<Bytes> trimmed(std::string_view text, Bytes bytes) {
    constexpr std::string_view kBlanks = " \t\r\n";
    const std::string_view part = bytes.of(text);
    const std::size_t from = part.find_first_not_of(kBlanks), to = part.find_last_not_of(kBlanks);
    if (from == part.npos) return {};
    return Bytes{bytes.begin + from, bytes.begin + to + 1};
}

/// The part of a text that its tokens from `begin` to `end` stand for, whole words. Nothing where it is not found.
std::optional<Bytes> part_of(const host::Opened& opened, std::string_view text, std::span<const Token> ids,
                             std::size_t begin, std::size_t end) {
    const auto first = end_of_tokens(opened, text, ids.first(begin)),
               last = end_of_tokens(opened, text, ids.first(end));
    if (!first || !last || *first >= *last) return {};
    auto part = trimmed(text, {*first, *last});
    if (!part) return {};
    auto& [from, to] = *part;
    bool is_within = false;  // of a word, up to where the part begins
    std::size_t word = 0;
    for (std::size_t at = 0; at < from;) {
        const Character c = first_character(text.substr(at));
        if (!is_of_word(c.code)) word = at + c.bytes;
        is_within = is_of_word(c.code);
        at += c.bytes;
    }
    if (is_within && is_of_word(first_character(text.substr(from)).code)) from = word;
    std::uint32_t before = 0;
    for (std::size_t at = from; at < to; at += first_character(text.substr(at)).bytes)
        before = first_character(text.substr(at)).code;
    while (is_of_word(before) && to < text.size()) {
        const Character c = first_character(text.substr(to));
        if (!is_of_word(c.code)) break;
        to += c.bytes;
    }
    return part;
}

/// Finds a text's words one after the other by their tokens.
class WordsOfText {
public:
    /// The first `n_before` tokens of the text are no words.
    WordsOfText(const host::Opened& opened, std::string_view text, std::size_t n_before)
        : opened_(opened), text_(text) {
        if (n_before) {
            const std::vector<Token> all = opened.tokens(text, {.add_special = false});
            at_ =
                end_of_tokens(opened, text, std::span(all).first(std::min(n_before, all.size()))).value_or(text.size());
        }
    }

    /// The part behind the last word that has these tokens and no others, as long as more of the text adds none. Where none is
    /// found that is near, nothing is from there on.
    TextPlace next(std::span<const Token> ids) {
        const std::size_t near = 128 + 8 * ids.size();  // bytes
        std::size_t found = at_;
        for (std::size_t end = at_; end < text_.size() && end - at_ < near;) {
            end += first_character(text_.substr(end)).bytes;
            const std::vector<Token> tokens = opened_.tokens(text_.substr(at_, end - at_), {.add_special = false});
            if (std::equal(tokens.begin(), tokens.end(), ids.begin(), ids.end()))
                found = end;
            else if (found > at_)
                break;
        }
        const auto word = trimmed(text_, {at_, found});
        at_ = word ? found : text_.size();
        return word ? place_of(text_, *word) : TextPlace{};
    }

private:
    const host::Opened& opened_;
    std::string_view text_;
    std::size_t at_ = 0;
};

bool starts_word(const host::Opened& opened, Token id) { return token_bytes(opened.tokenizer, id).starts_with(' '); }

/// The score of each logit, in the labels' order.
std::vector<double> scores_of(const Head& head, std::span<const float> logits) {
    if (head.scores == Scores::softmax) return softmax(logits);
    std::vector<double> scores(logits.begin(), logits.end());
    if (head.scores == Scores::sigmoid)
        for (double& score : scores) score = 1.0 / (1.0 + std::exp(-score));
    return scores;
}

}  // namespace

Head head_of(const host::Opened& opened) {
    const std::string task(find_info(opened.model, "task")), scores(find_info(opened.model, "scores"));
    const Stack& stack = opened.model.config().encoder;
    struct Name {
        const char* name;
        HeadTask task;
    };
    static constexpr Name kTasks[] = {{"text-classification", HeadTask::classes},
                                      {"token-classification", HeadTask::words},
                                      {"question-answering", HeadTask::answer},
                                      {"fill-mask", HeadTask::masked}};
    const auto known =
        std::find_if(std::begin(kTasks), std::end(kTasks), [&](const Name& n) { return task == n.name; });
    const bool has_head = stack.n_head_maps() || stack.has_output_head;
    if (known == std::end(kTasks) || !has_head || opened.model.config().decoder.n_layers)
        throw host::Error(opened.name +
                          ": model: expected an encoder with a head for classes, words, answers or masks, got " +
                          (task.empty() ? "one without" : task));
    static_cast<void>(opened.need_tokenizer());
    Head head;
    head.task = known->task;
    head.scores = scores == "sigmoid" ? Scores::sigmoid : scores == "none" ? Scores::as_they_are : Scores::softmax;
    std::istringstream labels{std::string(find_info(opened.model, "labels"))};
    for (std::string label; std::getline(labels, label);) head.labels.push_back(label);
    const bool pooled = stack.pooling != Pooling::none;
    const std::size_t wanted = head.task == HeadTask::answer ? 2 : stack.result_width();
    if (head.task == HeadTask::answer || head.task == HeadTask::masked)
        head.labels.clear();
    else if (head.labels.size() != wanted)
        throw host::Error(opened.name + ": labels: expected " + std::to_string(wanted) + ", got " +
                          std::to_string(head.labels.size()));
    if (stack.result_width() != wanted || pooled != (head.task == HeadTask::classes))
        throw host::Error(opened.name + ": model: expected a head for " + task + ", got one of another shape");
    return head;
}

std::vector<LabelScore> label_scores(const Head& head, std::span<const float> logits) {
    const std::vector<double> scores = scores_of(head, logits);
    std::vector<LabelScore> result;
    for (std::size_t i = 0; i < logits.size(); ++i) result.push_back({head.labels.at(i), scores[i], logits[i], i});
    std::stable_sort(result.begin(), result.end(),
                     [](const LabelScore& a, const LabelScore& b) { return a.score > b.score; });
    return result;
}

std::vector<LabelledWord> labelled_words(const host::Opened& opened, const Head& head, const Text& text,
                                         const TextTokens& tokens, std::span<const float> logits) {
    const std::size_t width = head.labels.size();
    // Only the template's own are left out: a word the tokenizer does not know is a special token, too.
    const std::vector<Token> around = opened.tokens("");
    const auto is_around = [&](Token id) {
        return opened.tokenizer.is_special(id) && std::find(around.begin(), around.end(), id) != around.end();
    };
    WordsOfText finder(opened, text.text, tokens.n_before);
    std::vector<LabelledWord> words;
    for (std::size_t i = 0, end; i < tokens.ids.size(); i = end) {
        end = i + 1;
        if (is_around(tokens.ids[i])) continue;
        while (end < tokens.ids.size() && !opened.tokenizer.is_special(tokens.ids[end]) &&
               !starts_word(opened, tokens.ids[end]))
            ++end;
        const auto ids = std::span(tokens.ids).subspan(i, end - i);
        const TextPlace place = text.pair ? TextPlace{} : finder.next(ids);
        std::string word = decoded(opened, ids, true);
        if (place.end > place.begin && word != decoded(opened, ids))
            word = characters_of(text.text, place);  // an unknown one
        words.push_back({std::move(word), label_scores(head, logits.subspan(i * width, width)).front(), place});
    }
    return words;
}

std::vector<LabelledWord> joined_entities(std::string_view text, std::span<const LabelledWord> words) {
    std::vector<LabelledWord> entities;
    std::string last;  // what the word before is
    std::size_t n_words = 0;
    for (const LabelledWord& word : words) {
        const std::string& label = word.best.label;
        const bool marked = label.starts_with("B-") || label.starts_with("I-");
        const std::string kind = marked ? label.substr(2) : label;
        const bool goes_on = kind == last && !label.starts_with("B-");
        last = kind;
        if (label == "O") continue;
        if (!goes_on) {
            entities.push_back(word);
            entities.back().best.label = kind;
            n_words = 1;
            continue;
        }
        LabelledWord& whole = entities.back();
        const auto n = static_cast<double>(n_words++);
        whole.best.score = (whole.best.score * n + word.best.score) / (n + 1);
        whole.word += " " + word.word;
        whole.place = word.place.end > whole.place.begin && whole.place.end
                          ? TextPlace{whole.place.begin, word.place.end}
                          : TextPlace{};
    }
    for (LabelledWord& entity : entities)
        if (entity.place.end) entity.word = characters_of(text, entity.place);
    return entities;
}

Answers best_answers(const host::Opened& opened, const TextTokens& text, std::string_view second,
                     std::span<const float> logits, const host::TextOptions& options) {
    const std::size_t n = text.second_end - text.second_begin;
    if (n == 0) throw host::Error("--pair: expected a text to find the answer in, got one without tokens");
    const std::vector<Token> around = opened.tokens("");
    const bool has_none = text.second_begin && !around.empty() && around.front() == text.ids.front();
    std::vector<float> starts, ends;
    for (std::size_t i = 0; i < n; ++i) {
        starts.push_back(logits[2 * (text.second_begin + i)]);
        ends.push_back(logits[2 * (text.second_begin + i) + 1]);
    }
    if (has_none) starts.push_back(logits[0]), ends.push_back(logits[1]);
    const std::vector<double> start = softmax(starts), end = softmax(ends);
    Answers answers;
    if (has_none) answers.none = start[n] * end[n];
    const auto likelier = [](const AnswerSpan& a, const AnswerSpan& b) { return a.score > b.score; };
    const auto insert = [&](const AnswerSpan& span) {
        auto& best = answers.best;
        best.insert(std::upper_bound(best.begin(), best.end(), span, likelier), span);
        if (best.size() > std::max<std::size_t>(options.n_answers, 1)) best.pop_back();
    };
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = i; j == i || (j < n && j - i < options.most_answer_tokens); ++j)
            insert({.text = {}, .score = start[i] * end[j], .begin = i, .end = j + 1});
    std::vector<Token> ids(text.ids.begin() + static_cast<std::ptrdiff_t>(text.second_begin),
                           text.ids.begin() + static_cast<std::ptrdiff_t>(text.second_end));
    if (text.n_before) ids = opened.tokens(second, {.add_special = false});
    for (AnswerSpan& span : answers.best) {
        span.begin += text.n_before, span.end += text.n_before;
        const auto part = part_of(opened, second, ids, span.begin, span.end);
        span.text = part ? std::string(part->of(second))
                         : decoded(opened, std::span(ids).subspan(span.begin, span.end - span.begin));
        if (part) span.place = place_of(second, *part);
    }
    if (options.may_lack_answer) insert({.text = {}, .score = answers.none});
    return answers;
}

std::vector<std::uint32_t> mask_rows(const host::Opened& opened, const TextTokens& text) {
    std::vector<std::uint32_t> rows;
    for (std::size_t i = 0; i < text.ids.size(); ++i) {
        std::string_view spelled = token_bytes(opened.tokenizer, text.ids[i]);
        if (spelled.starts_with(' ')) spelled.remove_prefix(1);
        if (spelled == "[MASK]" || spelled == "<mask>") rows.push_back(static_cast<std::uint32_t>(i));
    }
    if (rows.empty()) throw host::Error("text: expected the model's mask ([MASK] or <mask>) in it, got none");
    return rows;
}

std::vector<LabelScore> likeliest_tokens(const host::Opened& opened, std::span<const float> logits, std::size_t n) {
    const std::vector<double> scores = softmax(logits);
    std::vector<Token> ids(logits.size());
    std::iota(ids.begin(), ids.end(), Token{0});
    n = std::min(n, ids.size());
    std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n), ids.end(),
                      [&](Token a, Token b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
    std::vector<LabelScore> result;
    for (std::size_t i = 0; i < n; ++i) {
        std::string_view bytes = token_bytes(opened.tokenizer, ids[i]);
        if (bytes.starts_with(' ')) bytes.remove_prefix(1);
        result.push_back({std::string(bytes), scores[ids[i]], logits[ids[i]], ids[i]});
    }
    return result;
}

}  // namespace fovea
