// Attention as verbs show it on request: --weights as an array, --picture as a drawing.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fovea/host/opened.h"
#include "tools/options/options.h"

namespace fovea {

struct ViewOptions {
    std::string weights, picture;
    std::uint32_t layer = 0;
    bool per_head = false, has_layer = false;

    [[nodiscard]] bool wanted() const { return !weights.empty() || !picture.empty(); }
};

/// Adds --weights, --per-head, --picture and, for models of layers, --layer.
void add_view(const Verb& verb, ViewOptions& view, bool has_layers);
/// Throws UsageError for options that want another beside them, host::ArgumentError for a picture of an unknown kind.
void check_view(const ViewOptions& view, const CommonOptions& common);
/// Throws host::Error if there is no such layer, or a requested file cannot be written.
void check_layer(const ViewOptions& view, const Stack& stack);

/// One of the attentions that every layer of a stack has, as calls of one session compute it.
struct Attended {
    const Stack* stack = nullptr;
    std::string model = {};  ///< the model's path; a page names its last part; empty: nothing
    std::string title = {};  ///< name of its patterns; empty: their layer's number
    bool in_encoder = false, cross = false;
    bool batched = false;  ///< whether arrays have a dimension for sequences
    /// [n_sequences] labels of what each sequence's queries and keys are: their number is the sequence's length.
    std::vector<std::vector<std::string>> queries = {}, keys = {};

    [[nodiscard]] std::uint32_t n_queries() const;  ///< of the longest
    [[nodiscard]] std::uint32_t n_keys() const;
    [[nodiscard]] std::vector<std::uint64_t> weights_shape(const ViewOptions& view) const;
};

[[nodiscard]] std::vector<std::string> position_labels(std::uint64_t n);
/// Each token's bytes, or its number if the model has no tokenizer.
[[nodiscard]] std::vector<std::string> token_labels(const host::Opened& opened, std::span<const Token> ids);

/// Computes all sequences with these weights asked for.
using WeightsPass = std::function<void(const AttentionWeights&)>;

/// Writes what was asked for of all[chosen]; a page shows all of them. Runs `pass` once for each layer of each, and once without weights
/// where nothing was asked for.
void show_attention(const ViewOptions& view, std::span<const Attended> all, std::size_t chosen,
                    const WeightsPass& pass);

/// The same for a decoder over sequences of seq_len tokens. The session then holds the last sequence.
void show_attention(const ViewOptions& view, const host::Opened& opened, Session& session,
                    std::span<const Token> tokens, std::size_t seq_len, bool batched);

}  // namespace fovea
