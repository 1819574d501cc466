#include "texts.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "convert/refusal.h"
#include "fovea/encode.h"

namespace fovea {
namespace {

constexpr std::uint32_t kBatchRows =
    1024;  // enough for the matrices to be read seldom; a text that is longer is one batch
constexpr std::uint32_t kBatchTexts = 256;

/// What is no JSON object is a text as it stands, unless it was begun as one with a text.
Text text_of(const std::string& line, const std::string& place) {
    if (line.empty() || line.front() != '{') return {line, {}};
    const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object()) {
        const std::size_t begin = line.find_first_not_of(" \t", 1);
        if (begin != line.npos && line.compare(begin, 6, "\"text\"") == 0)
            throw Refusal(place + "expected a JSON object, got one that does not parse");
        return {line, {}};
    }
    const auto field = [&](const char* key) -> std::optional<std::string> {
        if (!object.contains(key)) return {};
        if (!object[key].is_string()) throw Refusal(place + key + ": expected a text, got " + object[key].type_name());
        return object[key].get<std::string>();
    };
    std::optional<std::string> text = field("text");
    if (!text) throw Refusal(place + "text: expected one in a JSON object, got none");
    return {std::move(*text), field("pair")};
}

const Stack& encoder_of(const OpenedModel& opened) { return opened.model.config().encoder; }

std::vector<Token> bare_tokens(const OpenedModel& opened, const std::string& text, bool parse_special) {
    return tokenize_text(opened, text, parse_special, false);
}

TextTokens tokens_of_pair(const OpenedModel& opened, const Text& text, std::size_t most, CutOf cut_of) {
    const Tokenizer& tokenizer = need_tokenizer(opened);
    std::vector<Token> first = bare_tokens(opened, text.text, false), second = bare_tokens(opened, *text.pair, false);
    PairTokens pair =
        join_texts(tokenizer, std::move(first), std::move(second), most, cut_of, encoder_of(opened).n_token_types);
    TextTokens result{std::move(pair.ids), std::move(pair.types), pair.second_begin, pair.second_end, pair.n_whole, {}};
    return result;
}

}  // namespace

std::vector<Text> read_text_lines(const std::string& path) {
    const std::string name = path == "-" ? "standard input" : path;
    std::istringstream file(read_text_file(path == "-" ? "/dev/stdin" : path));
    std::vector<Text> texts;
    for (std::string line; std::getline(file, line);) {
        if (line.ends_with('\r')) line.pop_back();
        texts.push_back(text_of(line, name + ": line " + std::to_string(texts.size() + 1) + ": "));
    }
    if (texts.empty()) throw Refusal(name + ": lines: expected 1 or more, got none");
    return texts;
}

TextTokens tokens_of(const OpenedModel& opened, const Text& text, bool parse_special, CutOf cut_of) {
    const std::size_t most = most_tokens(opened.model);
    if (text.pair) return tokens_of_pair(opened, text, most, cut_of);
    TextTokens result;
    result.ids = tokenize_text(opened, text.text, parse_special);
    result.n_whole = result.ids.size();
    if (result.n_whole > most) cut_text(tokenize_text(opened, "", false), most, result.ids);
    if (result.ids.empty()) throw Refusal("text: expected 1 token or more, got none");
    return result;
}

void note_cut(const OpenedModel& opened, std::span<const TextTokens> texts) {
    const auto is_cut = [](const TextTokens& text) { return text.is_cut(); };
    const auto first = std::find_if(texts.begin(), texts.end(), is_cut);
    if (first == texts.end()) return;
    const auto n = static_cast<std::uint64_t>(std::count_if(texts.begin(), texts.end(), is_cut));
    const std::string most = with_separators(most_tokens(opened.model));
    if (texts.size() == 1)
        std::fprintf(stderr, "note: the text has %s tokens and is cut to %s\n", with_separators(first->n_whole).c_str(),
                     most.c_str());
    else
        std::fprintf(stderr, "note: %s of %s texts have more than %s tokens and are cut, the first on line %s\n",
                     with_separators(n).c_str(), with_separators(texts.size()).c_str(), most.c_str(),
                     with_separators(static_cast<std::uint64_t>(first - texts.begin()) + 1).c_str());
}

TextBatches::TextBatches(const OpenedModel& opened, std::span<const TextTokens> texts, const BatchOptions& options)
    : opened_(opened), before_head_(options.before_head), texts_(texts), order_(texts.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return texts[a].ids.size() > texts[b].ids.size(); });
    std::uint64_t n_rows = 0;
    for (const TextTokens& text : texts) n_rows += text.ids.size();
    Limits limits;
    limits.n_threads = options.n_threads;
    limits.kv_type = options.kv_type;
    const std::uint64_t longest = texts.empty() ? 1 : texts[order_.front()].ids.size();
    limits.max_batch = static_cast<std::uint32_t>(std::max(longest, std::min<std::uint64_t>(n_rows, kBatchRows)));
    limits.max_sequences = static_cast<std::uint32_t>(std::clamp<std::size_t>(texts.size(), 1, kBatchTexts));
    running = start_session(opened, limits, options.isa);
}

std::size_t TextBatches::n_results(const TextTokens& text) const {
    if (encoder_of(opened_).pooling != Pooling::none) return 1;
    return text.rows.empty() ? text.ids.size() : text.rows.size();
}

void TextBatches::run(const std::function<void(std::size_t, std::span<const float>)>& take) {
    const std::size_t most_rows = running.plan.limits.max_batch, most_texts = running.plan.limits.max_sequences;
    for (std::size_t begin = 0, end; begin < order_.size(); begin = end) {
        std::size_t n_rows = 0;
        for (end = begin; end < order_.size() && end - begin < most_texts; ++end) {
            n_rows += texts_[order_[end]].ids.size();
            if (n_rows > most_rows) break;
        }
        run_batch(std::span(order_).subspan(begin, end - begin), take);
    }
}

void TextBatches::run_batch(std::span<const std::size_t> batch,
                            const std::function<void(std::size_t, std::span<const float>)>& take) {
    std::vector<Token> ids, types;
    std::vector<std::uint32_t> lengths, rows;
    const bool typed = std::any_of(batch.begin(), batch.end(), [&](std::size_t i) { return !texts_[i].types.empty(); });
    std::size_t n_all = 0;
    for (const std::size_t i : batch) {
        const TextTokens& text = texts_[i];
        for (const std::uint32_t row : text.rows) rows.push_back(static_cast<std::uint32_t>(ids.size()) + row);
        ids.insert(ids.end(), text.ids.begin(), text.ids.end());
        if (typed) types.insert(types.end(), text.types.begin(), text.types.end());
        if (typed) types.resize(ids.size());
        lengths.push_back(static_cast<std::uint32_t>(text.ids.size()));
        n_all += n_results(text);
    }
    const Stack& stack = encoder_of(opened_);
    const std::size_t width = before_head_ ? stack.d_model : stack.result_width();
    std::vector<float> results(n_all * width);
    const EncodeInput input{
        .source = {.ids = ids, .types = types, .lengths = lengths}, .rows = rows, .before_head = before_head_};
    require(encode(running.session, input, results), opened_.name);
    std::size_t at = 0;
    for (const std::size_t i : batch) {
        const std::size_t n = n_results(texts_[i]) * width;
        take(i, std::span(results).subspan(at, n));
        at += n;
    }
}

}  // namespace fovea
