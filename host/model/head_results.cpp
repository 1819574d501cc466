#include "host/model/head_results.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <sstream>

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

/// The part of a text that its tokens from `begin` to `end` stand for, whole words. Nothing where it is not found.
std::optional<std::string> part_of(const host::Opened& opened, std::string_view text, std::span<const Token> ids,
                                   std::size_t begin, std::size_t end) {
    const auto first = end_of_tokens(opened, text, ids.first(begin)),
               last = end_of_tokens(opened, text, ids.first(end));
    if (!first || !last || *first >= *last) return {};
    constexpr std::string_view kBlanks = " \t\r\n";
    std::size_t from = text.find_first_not_of(kBlanks, *first), to = text.find_last_not_of(kBlanks, *last - 1);
    if (from == text.npos || to == text.npos || from > to) return {};
    ++to;
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
    return std::string(text.substr(from, to - from));
}

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

std::vector<LabelledWord> labelled_words(const host::Opened& opened, const Head& head, const TextTokens& text,
                                         std::span<const float> logits) {
    const std::size_t width = head.labels.size();
    // Only the template's own are left out: a word the tokenizer does not know is a special token, too.
    const std::vector<Token> around = opened.tokens("");
    const auto is_around = [&](Token id) {
        return opened.tokenizer.is_special(id) && std::find(around.begin(), around.end(), id) != around.end();
    };
    std::vector<LabelledWord> words;
    for (std::size_t i = 0, end; i < text.ids.size(); i = end) {
        end = i + 1;
        if (is_around(text.ids[i])) continue;
        while (end < text.ids.size() && !opened.tokenizer.is_special(text.ids[end]) &&
               !starts_word(opened, text.ids[end]))
            ++end;
        words.push_back({decoded(opened, std::span(text.ids).subspan(i, end - i), true),
                         label_scores(head, logits.subspan(i * width, width)).front()});
    }
    return words;
}

AnswerSpan best_answer(const host::Opened& opened, const TextTokens& text, std::string_view second,
                       std::span<const float> logits, std::size_t most_tokens) {
    const std::size_t n = text.second_end - text.second_begin;
    std::vector<float> starts, ends;
    for (std::size_t i = 0; i < n; ++i) {
        starts.push_back(logits[2 * (text.second_begin + i)]);
        ends.push_back(logits[2 * (text.second_begin + i) + 1]);
    }
    const std::vector<double> start = softmax(starts), end = softmax(ends);
    AnswerSpan best;
    best.score = -1;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = i; j < n && j - i < most_tokens; ++j)
            if (start[i] * end[j] > best.score) best.score = start[i] * end[j], best.begin = i, best.end = j + 1;
    if (best.end == 0) throw host::Error("--pair: expected a text to find the answer in, got one without tokens");
    const auto ids = std::span(text.ids).subspan(text.second_begin, n);
    const auto part = part_of(opened, second, ids, best.begin, best.end);
    best.text = part ? *part : decoded(opened, ids.subspan(best.begin, best.end - best.begin));
    return best;
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
