#include "host/model/texts.h"
#include "host/base/input_file.h"
#include "host/base/json.h"
#include "host/base/text_file.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <sstream>

#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {
namespace {

constexpr std::uint32_t kBatchRows =
    1024;  // enough for the matrices to be read seldom; a text that is longer is one batch
constexpr std::uint32_t kBatchTexts = 256;
constexpr std::uint64_t kBatchValues = 1u << 24;  // of results that nothing pools: 64 MB, or one text's

/// What is no JSON object is a text as it stands, unless it was begun as one with a text.
Text text_of(const std::string& line, const std::string& place) {
    if (line.empty() || line.front() != '{') return {line, {}};
    const SortedJson object = read_sorted_json(line);
    if (!object.is_object()) {
        const std::size_t begin = line.find_first_not_of(" \t", 1);
        if (begin != line.npos && line.compare(begin, 6, "\"text\"") == 0)
            throw host::Error(place + "expected a JSON object, got one that does not parse");
        return {line, {}};
    }
    const auto field = [&](const char* key) -> std::optional<std::string> {
        if (!object.contains(key)) return {};
        if (!object[key].is_string())
            throw host::Error(place + key + ": expected a text, got " + object[key].type_name());
        return object[key].get<std::string>();
    };
    std::optional<std::string> text = field("text");
    if (!text) throw host::Error(place + "text: expected one in a JSON object, got none");
    return {std::move(*text), field("pair")};
}

const Stack& encoder_of(const host::Opened& opened) { return opened.model.config().encoder; }

/// Texts that are computed together.
struct TextBatch {
    std::vector<Token> ids, types;
    std::vector<std::uint32_t> lengths, rows, n_unpooled, n_unseen;
    std::vector<std::uint8_t> hidden;

    void add(const TextTokens& text) {
        const std::size_t begin = ids.size();
        for (const std::uint32_t row : text.rows) rows.push_back(static_cast<std::uint32_t>(begin) + row);
        ids.insert(ids.end(), text.ids.begin(), text.ids.end());
        if (!text.types.empty()) {
            types.resize(begin);  // of texts before, which have none
            types.insert(types.end(), text.types.begin(), text.types.end());
        }
        lengths.push_back(static_cast<std::uint32_t>(text.ids.size()));
        n_unpooled.push_back(text.n_unpooled);
        n_unseen.push_back(text.n_unseen);
    }
    [[nodiscard]] bool has_room_for(const TextTokens& text, BatchRoom room) const {
        return lengths.empty() || (lengths.size() < room.n_texts && ids.size() + text.ids.size() <= room.n_rows);
    }
    [[nodiscard]] EncodeInput input(const WantedRows& wanted) {
        if (!types.empty()) types.resize(ids.size());
        const Mask unseen = mask_of_unseen(lengths, n_unseen, hidden);
        return {.source = {.ids = ids, .types = types, .lengths = lengths, .masks = {.padding = unseen}},
                .rows = rows,
                .before_head = wanted.before_head,
                .pooling = wanted.pooling ? &*wanted.pooling : nullptr,
                .n_unpooled = n_unpooled};
    }
};

/// The texts' numbers, the longest text first.
std::vector<std::size_t> by_length(std::span<const TextTokens> texts) {
    std::vector<std::size_t> order(texts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return texts[a].ids.size() > texts[b].ids.size(); });
    return order;
}

}  // namespace

std::vector<Text> read_text_lines(const std::string& path) {
    const std::string name = input_name(path);
    std::istringstream file(read_text_file(path));
    std::vector<Text> texts;
    for (std::string line; std::getline(file, line);) {
        if (line.ends_with('\r')) line.pop_back();
        texts.push_back(text_of(line, name + ": line " + std::to_string(texts.size() + 1) + ": "));
    }
    if (texts.empty()) throw host::Error(name + ": lines: expected 1 or more, got none");
    return texts;
}

TextTokens tokens_of_pair(const host::Opened& opened, const std::string& first, const std::string& second,
                          const ReadOptions& options, const PairReader& reader) {
    const Tokenizer& tokenizer = opened.need_tokenizer();
    const std::size_t most = options.n_most ? options.n_most : most_tokens(opened.model);
    TextTokens tokens;
    if (const auto form = PairTemplate::read(find_info(opened.model, "pair_template"))) {
        TemplatedPair pair = templated_pair(*form, first, second, most, options.parse_special, tokenizer, reader);
        tokens.ids = std::move(pair.ids);
        tokens.n_whole = pair.n_whole;
        return tokens;
    }
    const auto bare = [&](const std::string& text) {
        return reader.read(std::string_view(text).substr(0, reader.most_bytes),
                           {.add_special = false, .parse_special = options.parse_special}, {});
    };
    PairTokens pair = join_texts(tokenizer, bare(first), bare(second), most, options.cut, cut_at(opened.model),
                                 encoder_of(opened).n_token_types);
    return {.ids = std::move(pair.ids),
            .types = std::move(pair.types),
            .second_begin = pair.second_begin,
            .second_end = pair.second_end,
            .n_whole = pair.n_whole,
            .n_before = pair.n_before,
            .rows = {}};
}

TextTokens tokens_of(const host::Opened& opened, const Text& text, const ReadOptions& options) {
    if (text.pair) return tokens_of_pair(opened, text.text, *text.pair, options, PairReader::of(opened));
    const std::size_t most = options.n_most ? options.n_most : most_tokens(opened.model);
    TextTokens result;
    result.ids = opened.tokens(text.text, {.parse_special = options.parse_special});
    drop_pads(opened.model, result.ids);
    result.n_whole = result.ids.size();
    const CutAt at = cut_at(opened.model);
    if (result.n_whole > most) cut_text(opened.tokens(""), most, at, result.ids);
    if (at == CutAt::front) result.n_before = result.n_whole - result.ids.size();
    if (result.ids.empty()) throw host::Error("text: expected 1 token or more, got none");
    return result;
}

std::uint32_t n_unpooled(const host::Opened& opened, const std::string& prompt, std::size_t n_tokens,
                         bool parse_special) {
    if (prompt.empty() || pools_prompts(opened.model)) return 0;
    const std::vector<Token> alone = opened.tokens(prompt, {.parse_special = parse_special});
    const bool closes = !alone.empty() && opened.tokenizer.is_special(alone.back());
    return static_cast<std::uint32_t>(std::min(alone.size() - closes, n_tokens - 1));
}

TextTokens tokens_behind(const host::Opened& opened, const std::string& prompt, std::string_view text,
                         const ReadOptions& options) {
    TextTokens tokens = tokens_of(opened, {prompt + std::string(text), {}}, options);
    tokens.n_unpooled = n_unpooled(opened, prompt, tokens.ids.size(), options.parse_special);
    return tokens;
}

Mask mask_of_unseen(std::span<const std::uint32_t> lengths, std::span<const std::uint32_t> n_unseen,
                    std::vector<std::uint8_t>& hidden) {
    if (std::all_of(n_unseen.begin(), n_unseen.end(), [](std::uint32_t n) { return n == 0; })) return {};
    const std::uint32_t longest = *std::max_element(lengths.begin(), lengths.end());
    hidden.assign(lengths.size() * longest, 0);
    for (std::size_t i = 0; i < lengths.size(); ++i)
        std::fill_n(hidden.begin() + static_cast<std::ptrdiff_t>(i * longest + lengths[i] - n_unseen[i]), n_unseen[i],
                    std::uint8_t{1});
    return {.hidden = hidden.data(), .sequence_stride = longest, .n_keys = longest};
}

void note_cut(const host::Opened& opened, std::span<const TextTokens> texts, std::uint32_t most_of_side) {
    const auto is_cut = [](const TextTokens& text) { return text.is_cut(); };
    const auto first = std::find_if(texts.begin(), texts.end(), is_cut);
    if (first == texts.end()) return;
    const auto n = static_cast<std::uint64_t>(std::count_if(texts.begin(), texts.end(), is_cut));
    const std::string most = with_separators(most_of_side ? most_of_side : most_tokens(opened.model));
    if (texts.size() == 1)
        std::fprintf(stderr, "note: the text has %s tokens and is cut to %s\n", with_separators(first->n_whole).c_str(),
                     most.c_str());
    else
        std::fprintf(stderr, "note: %s of %s texts have more than %s tokens and are cut, the first on line %s\n",
                     with_separators(n).c_str(), with_separators(texts.size()).c_str(), most.c_str(),
                     with_separators(static_cast<std::uint64_t>(first - texts.begin()) + 1).c_str());
}

std::optional<WantedRows> vector_of_text(const host::Opened& opened) {
    if (opened.kind() != host::Kind::vectors) return {};
    WantedRows wanted{.before_head = opened.has_task(), .width = opened.vector_width()};
    if (encoder_of(opened).pooling == Pooling::none) wanted.pooling = Pooling::mean;
    return wanted;
}

WantedRows rows_wanted(const host::Opened& opened, bool of_head) {
    const bool is_encoder = opened.kind() == host::Kind::vectors;
    if (!is_encoder || (of_head && !opened.has_task()))
        throw host::Error(opened.name + ": model: expected an encoder of texts" + (of_head ? " with a head" : "") +
                          ", got " + (is_encoder ? "one without" : "another"));
    if (of_head) return {};
    return {.before_head = true, .pooling = Pooling::none};
}

void encode_in_batches(const Stack& encoder, const WantedRows& wanted, std::span<const TextTokens> texts,
                       BatchRoom room, const ComputeBatch& compute, const TakeResults& take) {
    const std::size_t width = wanted.before_head ? encoder.d_model : encoder.result_width();
    const bool pools = wanted.pooling.value_or(encoder.pooling) != Pooling::none;
    const auto n_results = [&](const TextTokens& text) {
        if (pools) return width;
        return (text.rows.empty() ? text.ids.size() : text.rows.size()) * width;
    };
    const std::vector<std::size_t> order = by_length(texts);
    std::vector<float> results;
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
        TextBatch batch;
        std::size_t n_all = 0;
        for (; end < order.size() && batch.has_room_for(texts[order[end]], room); ++end) {
            batch.add(texts[order[end]]);
            n_all += n_results(texts[order[end]]);
        }
        results.resize(n_all);
        compute(batch.input(wanted), results);
        std::size_t at = 0;
        for (const std::size_t i : std::span(order).subspan(begin, end - begin)) {
            const std::size_t n = n_results(texts[i]);
            take(i, std::span(results).subspan(at, pools && wanted.width ? wanted.width : n));
            at += n;
        }
    }
}

TextBatches::TextBatches(const host::Opened& opened, std::span<const TextTokens> texts, const TextBatchOptions& options)
    : opened_(opened), wanted_(options.wanted), texts_(texts) {
    std::uint64_t n_rows = 0, longest = 1;
    for (const TextTokens& text : texts) {
        n_rows += text.ids.size();
        longest = std::max<std::uint64_t>(longest, text.ids.size());
    }
    const Stack& stack = encoder_of(opened);
    const std::uint32_t width = wanted_.before_head ? stack.d_model : stack.result_width();
    const bool pools = wanted_.pooling.value_or(stack.pooling) != Pooling::none;
    const std::uint64_t most = pools ? kBatchRows : std::clamp<std::uint64_t>(kBatchValues / width, 1, kBatchRows);
    Limits limits;
    limits.n_threads = options.n_threads;
    limits.kv_type = options.kv_type;
    limits.max_batch = static_cast<std::uint32_t>(std::max(longest, std::min(n_rows, most)));
    limits.max_sequences = static_cast<std::uint32_t>(std::clamp<std::size_t>(texts.size(), 1, kBatchTexts));
    running = start_session(opened, limits, {.isa = options.isa});
}

void TextBatches::run(const TakeResults& take) {
    const Limits& limits = running.plan.limits;
    const auto compute = [&](const EncodeInput& input, std::span<float> out) {
        require(encode(*running, input, out), opened_.name);
    };
    encode_in_batches(encoder_of(opened_), wanted_, texts_, {limits.max_batch, limits.max_sequences}, compute, take);
}

}  // namespace fovea
