#include "host/model/late_interaction.h"

#include <algorithm>
#include <cmath>

#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/source_file.h"

namespace fovea {
namespace {

SortedJson json_of(const LateInteraction::Side& side) {
    SortedJson members = {{"length", side.most}};
    if (side.marker) members["marker"] = *side.marker;
    return members;
}

/// Members of an object, each of its kind.
struct Members {
    const SortedJson& object;
    const std::string& place;

    [[noreturn]] void refuse(const char* name, const std::string& wanted) const {
        throw host::Error(place + ": " + name + ": expected " + wanted + ", got another value");
    }
    [[nodiscard]] const SortedJson* find(const char* name) const {
        const auto found = object.find(name);
        return found == object.end() ? nullptr : &*found;
    }
    [[nodiscard]] static bool is_below(const SortedJson& value, std::uint32_t end) {
        return value.is_number_unsigned() && value.get<std::uint64_t>() < end;
    }
    [[nodiscard]] std::uint32_t count(const char* name, std::uint32_t end) const {
        const SortedJson* value = find(name);
        if (!value) return 0;
        if (!is_below(*value, end)) refuse(name, "a whole number below " + std::to_string(end));
        return value->get<std::uint32_t>();
    }
    [[nodiscard]] std::optional<Token> id(const char* name, std::uint32_t vocab_size) const {
        return find(name) ? std::optional<Token>(count(name, vocab_size)) : std::nullopt;
    }
    [[nodiscard]] bool flag(const char* name) const {
        const SortedJson* value = find(name);
        if (value && !value->is_boolean()) refuse(name, "true or false");
        return value && value->get<bool>();
    }
};

constexpr std::uint32_t kMostLength = 1u << 20;

}  // namespace

std::string LateInteraction::to_json() const {
    SortedJson members = {{"query", json_of(query)},    {"document", json_of(document)}, {"skipped", skipped},
                          {"sees_filler", sees_filler}, {"skips_first", skips_first},    {"mean", mean},
                          {"filled_length", n_filled}};
    if (filler) members["filler"] = *filler;
    return json_text(members);
}

LateInteraction LateInteraction::read(std::string_view json, std::uint32_t vocab_size, const std::string& place) {
    check_json_depth(json, place);
    const SortedJson object = read_sorted_json(json);
    if (!object.is_object()) throw host::Error(place + ": expected a JSON object, got something else");
    const Members members{object, place};
    LateInteraction how{.filler = members.id("filler", vocab_size),
                        .n_filled = members.count("filled_length", kMostLength),
                        .sees_filler = members.flag("sees_filler"),
                        .skips_first = members.flag("skips_first"),
                        .mean = members.flag("mean")};
    for (const auto& [name, side] : {std::pair{"query", &how.query}, {"document", &how.document}}) {
        const SortedJson* given = members.find(name);
        if (!given || !given->is_object()) members.refuse(name, "an object");
        const Members own{*given, place};
        *side = {own.id("marker", vocab_size), own.count("length", kMostLength)};
    }
    const SortedJson* skipped = members.find("skipped");
    if (skipped && !skipped->is_array()) members.refuse("skipped", "a list of ids");
    for (std::size_t i = 0; skipped && i < skipped->size(); ++i) {
        if (!Members::is_below((*skipped)[i], vocab_size)) members.refuse("skipped", "ids of the vocabulary");
        how.skipped.push_back((*skipped)[i].get<Token>());
    }
    std::sort(how.skipped.begin(), how.skipped.end());
    return how;
}

LateModel::LateModel(const host::Opened& opened) : opened_(opened), width_(opened.config().encoder.result_width()) {
    if (!opened.has_late_interaction() || opened.kind() != host::Kind::vectors ||
        opened.config().encoder.pooling != Pooling::none)
        throw host::Error(opened.name + ": model: expected one of late interaction, got another");
    how_ = LateInteraction::read(find_info(opened.model, "late_interaction"), opened.config().encoder.vocab_size,
                                 opened.name + ": late_interaction");
    most_ = most_tokens(opened.model);
    around_ = opened.tokens("");
    const std::vector<Token> letter = opened.tokens("a");
    n_opening_ = static_cast<std::size_t>(
        std::mismatch(around_.begin(), around_.end(), letter.begin(), letter.end()).first - around_.begin());
}

std::uint32_t LateModel::most(bool is_query) const {
    const std::uint32_t own = how_.side(is_query).most;
    return own ? std::min(own, opened_.config().encoder.max_positions) : most_;
}

std::string LateModel::prompt_of(bool is_query, const std::optional<std::string>& name) const {
    const Prompts prompts = prompts_of(opened_.model, opened_.name);
    if (name) return prompt_before(prompts, name);
    for (const auto& [known, text] : prompts.texts)
        if (known == (is_query ? "query" : "document")) return text;
    return {};
}

TextTokens LateModel::settle(bool is_query, std::vector<Token> ids) const {
    const std::optional<Token> marker = how_.side(is_query).marker;
    const std::size_t n_marker = marker ? 1 : 0, limit = most(is_query);
    if (limit <= n_marker) throw host::Error("text: expected room for 2 tokens or more, got a model with none");
    TextTokens tokens;
    tokens.n_whole = ids.size() + n_marker;
    cut_text(around_, limit - n_marker, cut_at(opened_.model), ids);
    if (marker) ids.insert(ids.begin() + static_cast<std::ptrdiff_t>(std::min(n_opening_, ids.size())), *marker);
    if (ids.empty()) throw host::Error("text: expected 1 token or more, got none");
    const std::uint32_t n_filled = std::min(how_.n_filled, opened_.config().encoder.max_positions);
    if (is_query && how_.filler && ids.size() < n_filled) {
        if (!how_.sees_filler) tokens.n_unseen = n_filled - static_cast<std::uint32_t>(ids.size());
        tokens.n_whole += n_filled - ids.size();
        ids.resize(n_filled, *how_.filler);
    }
    tokens.ids = std::move(ids);
    return tokens;
}

TextTokens LateModel::tokens_of(bool is_query, const std::string& prompt, std::string_view text,
                                bool parse_special) const {
    return settle(is_query, opened_.tokens(prompt + std::string(text), {.parse_special = parse_special}));
}

std::vector<std::uint32_t> LateModel::kept(bool is_query, std::span<const Token> ids) const {
    std::vector<std::uint32_t> rows;
    for (std::uint32_t i = how_.skips_first; i < ids.size(); ++i)
        if (is_query || !std::binary_search(how_.skipped.begin(), how_.skipped.end(), ids[i])) rows.push_back(i);
    return rows;
}

std::vector<float> LateModel::vectors(bool is_query, std::span<const Token> ids, std::span<const float> rows) const {
    std::vector<float> vectors;
    for (const std::uint32_t i : kept(is_query, ids)) {
        const std::span<const float> row = rows.subspan(i * width_, width_);
        double squares = 0;
        for (const float x : row) squares += static_cast<double>(x) * static_cast<double>(x);
        const double length = squares > 0 ? std::sqrt(squares) : 1.0;
        for (const float x : row) vectors.push_back(static_cast<float>(static_cast<double>(x) / length));
    }
    return vectors;
}

double LateModel::score(std::span<const float> query, std::span<const float> document) const {
    double sum = 0;
    for (std::size_t q = 0; q < query.size(); q += width_) {
        double most = -1.0;  // the least product of vectors of length 1
        for (std::size_t d = 0; d < document.size(); d += width_) {
            double product = 0;
            for (std::size_t i = 0; i < width_; ++i)
                product += static_cast<double>(query[q + i]) * static_cast<double>(document[d + i]);
            most = d == 0 ? product : std::max(most, product);
        }
        sum += most;
    }
    return how_.mean && !query.empty() ? sum * static_cast<double>(width_) / static_cast<double>(query.size()) : sum;
}

}  // namespace fovea
