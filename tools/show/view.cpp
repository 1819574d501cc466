#include "tools/show/view.h"

#include <algorithm>
#include <filesystem>

#include "host/base/arrays.h"
#include "host/base/error.h"
#include "host/base/output_file.h"
#include "host/base/words.h"
#include "host/show/picture.h"
#include "tools/terminal/usage_error.h"

namespace fovea {
namespace {

constexpr std::uint64_t kMostWeights = 1u << 25;  // in one picture: at most 34 MB of a page

std::string file_name(const std::string& path) {
    const std::string name = std::filesystem::path(path).filename().string();
    return name.empty() ? path : name;
}

std::uint32_t longest(const std::vector<std::vector<std::string>>& labels) {
    std::size_t n = 0;
    for (const auto& of_sequence : labels) n = std::max(n, of_sequence.size());
    return static_cast<std::uint32_t>(n);
}

bool has_attention(const Attended& a, std::uint32_t layer) {
    const Block& block = a.stack->block(layer);
    return block.attention.n_heads && (!a.cross || block.attention.cross_attention);
}

std::uint64_t matrices(const Attended& a, std::uint32_t layer, bool per_head) {
    return a.queries.size() * (per_head ? a.stack->block(layer).attention.n_heads : 1u);
}

/// [n_sequences, n_heads if per_head, n_queries, n_keys]
std::vector<float> weights_of(const Attended& a, std::uint32_t layer, bool per_head, const WeightsPass& pass) {
    std::vector<float> weights(matrices(a, layer, per_head) * a.n_queries() * a.n_keys());
    pass({.layer = layer,
          .in_encoder = a.in_encoder,
          .cross = a.cross,
          .per_head = per_head,
          .n_queries = a.n_queries(),
          .n_keys = a.n_keys(),
          .out = weights});
    return weights;
}

/// The patterns of one layer, a sequence after the other.
void add_patterns(const Attended& a, std::uint32_t layer, const WeightsPass& pass,
                  std::vector<AttentionPattern>& patterns) {
    const std::vector<float> weights = weights_of(a, layer, true, pass);
    const std::size_t n_heads = a.stack->block(layer).attention.n_heads, n_queries = a.n_queries(), n_keys = a.n_keys();
    for (std::size_t s = 0; s < a.queries.size(); ++s) {
        AttentionPattern pattern{.title = a.title, .n_heads = n_heads, .queries = a.queries[s], .keys = a.keys[s]};
        if (a.title.empty() || a.stack->n_layers > 1)
            pattern.title += (a.title.empty() ? "layer " : ", layer ") + std::to_string(layer);
        if (a.queries.size() > 1) pattern.title += ", sequence " + std::to_string(s);
        for (std::size_t row = 0; row < n_heads * n_queries; ++row) {  // what a shorter sequence has of the matrix
            const float* from = &weights[(s * n_heads * n_queries + row) * n_keys];
            if (row % n_queries < a.queries[s].size())
                pattern.weights.insert(pattern.weights.end(), from, from + a.keys[s].size());
        }
        patterns.push_back(std::move(pattern));
    }
}

void draw(const ViewOptions& view, std::span<const Attended> all, std::size_t chosen, const WeightsPass& pass) {
    const PictureKind kind = picture_kind(view.picture);
    struct Part {
        const Attended& attended;
        std::uint32_t layer;
    };
    std::vector<Part> parts;
    std::size_t first = 0;
    std::uint64_t n_weights = 0;
    for (const Attended& a : all)
        for (std::uint32_t layer = 0; layer < a.stack->n_layers; ++layer) {
            const bool is_chosen = &a == &all[chosen] && layer == view.layer;
            if (is_chosen) first = parts.size() * a.queries.size();
            if (!is_chosen && (kind != PictureKind::html || !has_attention(a, layer))) continue;
            parts.push_back({a, layer});
            n_weights += matrices(a, layer, true) * a.n_queries() * a.n_keys();
        }
    if (n_weights > kMostWeights)
        throw host::Error("--picture: expected at most " + with_separators(kMostWeights) +
                          " attention weights in one, got " + with_separators(n_weights) +
                          (parts.size() > 1 ? " (.svg draws one layer)" : ""));
    std::vector<AttentionPattern> patterns;
    for (const Part& part : parts) add_patterns(part.attended, part.layer, pass, patterns);
    write_picture(view.picture, kind == PictureKind::svg    ? draw_svg(patterns)
                                : kind == PictureKind::html ? draw_html(patterns, first, file_name(all[chosen].model))
                                                            : draw_text(patterns));
}

}  // namespace

void add_view(const Verb& verb, ViewOptions& view, bool has_layers) {
    const std::string what = "an .npy file for attention weights [batch, query, key], the heads' mean";
    verb.output("--weights", view.weights, has_layers ? what + ", of one layer" : what);
    verb.flag("--per-head", view.per_head, "weights of each head: [batch, heads, query, key]");
    verb.output("--picture", view.picture,
                has_layers ? "draw what attends to what: .svg (one layer), .html (all) or - (here)"
                           : "draw what attends to what: .svg, .html or - (here)");
    if (has_layers)
        verb.count("--layer", view.layer, 0, kAny, "which layer's, from 0 (the default)").each([&view] {
            view.has_layer = true;
        });
}

void check_view(const ViewOptions& view, const CommonOptions& common) {
    if (view.per_head && view.weights.empty()) throw UsageError("--per-head: expected --weights with it, got none");
    if (view.has_layer && !view.wanted())
        throw UsageError("--layer: expected --weights or --picture with it, got none");
    if (!view.picture.empty() && picture_kind(view.picture) == PictureKind::text && common.json)
        throw UsageError("--picture: expected a file beside --json, got -");
}

void check_layer(const ViewOptions& view, const Stack& stack) {
    if (view.wanted() && view.layer >= stack.n_layers)
        throw host::Error("--layer: expected at most " + std::to_string(stack.n_layers - 1) + ", got " +
                          std::to_string(view.layer));
    for (const std::string& path : {view.weights, view.picture})
        if (!path.empty() && path != "-") check_can_write(path);
}

std::uint32_t Attended::n_queries() const { return longest(queries); }
std::uint32_t Attended::n_keys() const { return longest(keys); }

std::vector<std::uint64_t> Attended::weights_shape(const ViewOptions& view) const {
    std::vector<std::uint64_t> shape = {n_queries(), n_keys()};
    if (view.per_head) shape.insert(shape.begin(), stack->block(view.layer).attention.n_heads);
    if (batched) shape.insert(shape.begin(), queries.size());
    return shape;
}

std::vector<std::string> position_labels(std::uint64_t n) {
    std::vector<std::string> labels;
    for (std::uint64_t i = 0; i < n; ++i) labels.push_back(std::to_string(i));
    return labels;
}

std::vector<std::string> token_labels(const host::Opened& opened, std::span<const Token> ids) {
    std::vector<std::string> labels;
    const Tokenizer& tokenizer = opened.tokenizer;
    for (const Token id : ids) {
        std::string label = tokenizer.valid() ? std::string(token_bytes(tokenizer, id)) : std::to_string(id);
        if (tokenizer.valid() && tokenizer.is_special(id) && label.starts_with(' ')) label.erase(0, 1);  // " [CLS]"
        labels.push_back(label);
    }
    return labels;
}

void show_attention(const ViewOptions& view, std::span<const Attended> all, std::size_t chosen,
                    const WeightsPass& pass) {
    if (!view.wanted()) return pass({});
    const Attended& a = all[chosen];
    check_layer(view, *a.stack);
    if (!has_attention(a, view.layer))
        throw host::Error("--layer: expected one with that attention, got " + std::to_string(view.layer));
    if (!view.weights.empty())
        write_npy(view.weights, a.weights_shape(view), weights_of(a, view.layer, view.per_head, pass));
    if (!view.picture.empty()) draw(view, all, chosen, pass);
}

void show_attention(const ViewOptions& view, const host::Opened& opened, Session& session,
                    std::span<const Token> tokens, std::size_t seq_len, bool batched) {
    if (!view.wanted()) return;
    Attended a{.stack = &opened.model.config().decoder, .model = opened.name, .batched = batched};
    for (std::size_t at = 0; at < tokens.size(); at += seq_len)
        a.queries.push_back(token_labels(opened, tokens.subspan(at, seq_len)));
    a.keys = a.queries;
    set_trace(session, {});
    show_attention(view, {&a, 1}, 0, [&](AttentionWeights asked) {
        const std::size_t n_sequences = tokens.size() / seq_len, n = asked.out.size() / n_sequences;
        const std::span<float> all = asked.out;
        for (std::size_t s = 0; s < n_sequences; ++s) {
            asked.out = all.subspan(s * n, n);
            require(capture_attention(session, asked), "--layer");
            require(rewind(session, 0), opened.name);
            require(forward(session, tokens.subspan(s * seq_len, seq_len), {}), opened.name);
        }
    });
}

}  // namespace fovea
