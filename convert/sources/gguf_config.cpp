#include "convert/sources/gguf_config.h"

#include <algorithm>
#include <string_view>

#include "host/base/error.h"
#include "host/model/pair_template.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMostWidth = 1u << 20, kMostLayers = 1u << 12;  // check() says more; these keep sums small
constexpr double kMostFactor = 1e6;

/// A file, and what its family says of it.
struct GgufReading {
    const Gguf& file;
    std::string architecture;
    const GgufFamily* family = nullptr;

    /// "llama.block_count" for "block_count".
    [[nodiscard]] std::string key(const char* name) const { return architecture + "." + name; }

    [[nodiscard]] bool has_tensor(const char* name) const { return file.tensors().count(name) != 0; }

    /// Whether the family's `settle` does.
    [[nodiscard]] bool reads(std::string_view name) const {
        const auto is_it = [&](const char* known) { return known == name; };
        return std::any_of(family->keys.begin(), family->keys.end(), is_it);
    }
};

/// Experts in place of the feed-forward part. A shared one is there where its gate is.
void read_experts(const GgufReading& from, Block& block) {
    if (!from.family->experts || from.file.count_or(from.key("expert_count"), 0) == 0) return;
    block.experts.n = static_cast<std::uint16_t>(from.file.count(from.key("expert_count"), 1, kMaxExperts));
    block.experts.n_used = static_cast<std::uint8_t>(
        from.file.count(from.key("expert_used_count"), 1, std::min<std::uint32_t>(block.experts.n, kMaxExpertsUsed)));
    block.experts.normalize = from.file.flag_or(from.key("expert_weights_norm"), from.family->normalize_experts);
    if (from.has_tensor("blk.0.ffn_gate_inp_shexp.weight")) {
        block.experts.shared_d_ff = from.file.count_or(from.key("expert_shared_feed_forward_length"), block.feed.d_ff);
        block.experts.shared_gate = true;
    }
    block.feed.d_ff = from.file.count_or(from.key("expert_feed_forward_length"), block.feed.d_ff);
    block.experts.router_bias = from.has_tensor("blk.0.ffn_gate_inp.bias");
    block.feed.up_bias = from.has_tensor("blk.0.ffn_up_exps.bias");
    block.feed.gate_bias = block.feed.gated && block.feed.up_bias;
    block.feed.down_bias = from.has_tensor("blk.0.ffn_down_exps.bias");
    if (from.family->routed) return;
    const double scale = from.file.number_or(from.key("expert_weights_scale"), -1e30, 1e30, 0.0);
    if (scale != 0.0 && scale != 1.0) from.file.refuse(from.key("expert_weights_scale"), "1");
    constexpr std::uint32_t kSoftmax = 1, kSoftmaxOfChosen = 3;
    const std::uint32_t gating = from.file.count_or(from.key("expert_gating_func"), kSoftmax);
    if (gating != kSoftmax && gating != kSoftmaxOfChosen)
        from.file.refuse(from.key("expert_gating_func"), "1 (softmax) or 3 (softmax of the chosen)");
    block.experts.normalize |= gating == kSoftmaxOfChosen;
}

void read_yarn(const GgufReading& from, std::uint32_t max_positions, Rope& rope) {
    rope.scaling = RopeScaling::yarn;
    rope.original_positions = from.file.has(from.key("rope.scaling.original_context_length"))
                                  ? from.file.count(from.key("rope.scaling.original_context_length"))
                                  : max_positions;
    rope.beta_fast = from.file.number_or(from.key("rope.scaling.yarn_beta_fast"), 1e-3, 1e6, 32.0);
    rope.beta_slow = from.file.number_or(from.key("rope.scaling.yarn_beta_slow"), 1e-3, 1e6, 1.0);
    if (from.file.number_or(from.key("rope.scaling.yarn_ext_factor"), -1.0, 1.0, 1.0) == 0.0)
        from.file.refuse(from.key("rope.scaling.yarn_ext_factor"), "1");
    // DeepSeek's scores are scaled in place of its rotation; Ministral's rotation is divided by what they would be.
    const double of_scores = from.file.number_or(from.key("rope.scaling.yarn_log_multiplier"), -1e3, 1e3, 0.0);
    const bool divides = from.reads("rope.scaling.yarn_log_multiplier");
    if (of_scores != 0.0 && !from.family->latent && !divides)
        from.file.refuse(from.key("rope.scaling.yarn_log_multiplier"), "none");
    const double factor = yarn_attention_factor(rope.factor, 1.0),
                 divisor = of_scores == 0.0 ? 1.0
                           : divides        ? yarn_attention_factor(rope.factor, of_scores)
                                            : factor;
    rope.attention_factor = static_cast<float>(factor / divisor);
}

/// Positions of three dimensions, of models of pictures: as read_hf_sections has them.
void read_sections(const GgufReading& from, AttentionShape& attention) {
    const std::string name = from.key("rope.dimension_sections");
    if (!from.file.has(name)) return;
    const std::vector<std::uint32_t> n = from.file.counts(name, 4, 0, kMostWidth);
    if (n[1] != n[2] || n[1] > 255 || n[0] + 2 * n[1] != attention.rotary_dim / 2) return;
    attention.rope_plane = static_cast<std::uint8_t>(n[1]);
    attention.rope_interleaved = n[1] && from.architecture.starts_with("qwen3vl");
}

void read_rope(const GgufReading& from, Stack& stack, Block& block, Rope& rope) {
    rope.halves = from.family->halves;
    block.attention.position = Position::rope;
    block.attention.rotary_dim = from.file.count_or(from.key("rope.dimension_count"), block.attention.head_dim);
    read_sections(from, block.attention);
    rope.base = from.file.number_or(from.key("rope.freq_base"), 1.01, 1e30, rope.base);
    const std::string type = from.file.text_or(from.key("rope.scaling.type"), "linear");
    const std::string older =
        from.file.has(from.key("rope.scaling.factor")) ? "rope.scaling.factor" : "rope.scale_linear";
    const double factor = from.file.number_or(from.key(older.c_str()), 0.0, kMostFactor, 1.0);
    rope.factor = factor == 0.0 ? 1.0 : factor;
    if (from.has_tensor("rope_factors_short.weight")) {
        rope.scaling = RopeScaling::divided;  // by that tensor's numbers, up to the original length
        const auto original = from.file.count_or(from.key("rope.scaling.original_context_length"), stack.max_positions);
        if (original == 0) from.file.refuse(from.key("rope.scaling.original_context_length"), "1 or more");
        if (stack.max_positions > original) {
            if (from.has_tensor("rope_factors_long.weight"))
                stack.rope_original_positions = original;
            else
                stack.max_positions = original;
        }
    } else if (type == "linear") {
        if (rope.factor != 1.0) rope.scaling = RopeScaling::linear;
    } else if (type == "yarn") {
        read_yarn(from, stack.max_positions, rope);
    } else if (type != "none") {
        from.file.refuse(from.key("rope.scaling.type"), "none, linear or yarn");
    }
    const double given = from.file.number_or(from.key("rope.scaling.attn_factor"), 1e-3, 1e3, 1.0);
    block.attention.rope_scale = static_cast<float>(rope.attention_factor * given);
}

/// As a list of flags says, which may have n_more behind them, or all but every n-th: the file's n, or the family's.
std::vector<bool> windowed_layers(const GgufReading& from, std::uint32_t n_layers, std::uint32_t n_more) {
    const std::string name = from.key("attention.sliding_window_pattern");
    std::vector<bool> windowed(n_layers, true);
    if (from.file.has_list(name, GgufKind::boolean)) {
        const std::span<const std::byte> flags = from.file.list_bytes(name, GgufKind::boolean);
        if (flags.size() != n_layers && flags.size() != std::size_t{n_layers} + n_more)
            from.file.refuse(name, "a flag for each layer");
        for (std::uint32_t i = 0; i < n_layers; ++i) windowed[i] = flags[i] != std::byte{0};
        return windowed;
    }
    if (from.file.has_list(name, GgufKind::i32) || from.file.has_list(name, GgufKind::u32)) {
        const std::vector<std::uint32_t> flags = from.file.counts(name, n_layers, 0, 1, n_more);
        return {flags.begin(), flags.end()};
    }
    const std::uint32_t usual = from.family->windows == GgufWindows::one_in ? from.family->period : 0;
    const std::uint32_t period = from.file.has(name) ? from.file.count(name, 0) : usual;
    for (std::uint32_t i = 0; period && i < n_layers; ++i) windowed[i] = (i + 1) % period != 0;
    return windowed;
}

class GgufConfigReader : GgufReading {
public:
    explicit GgufConfigReader(const Gguf& gguf) : GgufReading{gguf, gguf.text("general.architecture")} {}

    GgufConfig read() {
        family = result_.family = find_gguf_family(architecture);
        if (!family) file.refuse("general.architecture", known_gguf_architectures());
        result_.names = family->names;
        classifies_ = has_tensor("cls.output.weight");
        is_encoder_ = result_.is_encoder = family->encoder || classifies_;
        refuse_others();
        result_.name = file.text_or("general.name", architecture);
        read_stack();
        read_block();
        if (family->encoder) read_encoder();
        read_windows();
        if (family->settle) family->settle(file, key(""), result_);
        if (classifies_) read_classifier();
        Config config;
        (is_encoder_ ? config.encoder : config.decoder) = result_.stack;
        require(check(config), file.path().string());
        return std::move(result_);
    }

private:
    [[nodiscard]] bool has_layer_norm() const { return family->norm == Norm::layer; }

    /// Settings that change what is computed in ways that these architectures do not have here.
    void refuse_others() const {
        if (file.text_or("general.type", "model") != "model") file.refuse("general.type", "\"model\"");
        if (!family->experts && file.count_or(key("expert_count"), 0) != 0) file.refuse(key("expert_count"), "none");
        for (const char* name : {"logit_scale", "residual_scale", "embedding_scale", "attention.clamp_kqv",
                                 "attention.max_alibi_bias", "attn_logit_softcapping", "final_logit_softcapping",
                                 "attention.temperature_scale", "attention.value_scale"}) {
            if (reads(name)) continue;
            const double value = file.number_or(key(name), -1e30, 1e30, 0.0);
            if (value != 0.0 && value != 1.0) file.refuse(key(name), "none");
        }
        if (!reads("attention.scale") && file.number_or(key("attention.scale"), -1e30, 1e30, 0.0) != 0.0)
            file.refuse(key("attention.scale"), "none");
        if (file.flag_or(key("attention.causal"), !family->encoder) == family->encoder)
            file.refuse(key("attention.causal"), family->encoder ? "false" : "true");
    }

    /// The rows of a table: of the embedding they may be more than the tokenizer's tokens.
    std::uint32_t n_rows(const std::string& name) const {
        const auto found = file.tensors().find(name);
        if (found == file.tensors().end() || found->second.shape.size() > 2) file.refuse("tensor " + name, "a matrix");
        constexpr std::uint64_t kMost = 1u << 30;  // check() refuses far fewer
        const std::vector<std::uint64_t>& shape = found->second.shape;
        return shape.size() == 1 ? 1 : static_cast<std::uint32_t>(std::min(shape[0], kMost));
    }

    void read_stack() {
        Stack& stack = result_.stack;
        stack.d_model = file.count(key("embedding_length"), 1, kMostWidth);
        const std::uint32_t n_layers = file.count(key("block_count"), 1, kMostLayers);
        const char* const further = "nextn_predict_layers";
        if (file.has(key(further))) result_.n_skipped_layers = file.count(key(further), 0, n_layers - 1);
        stack.n_layers = n_layers - result_.n_skipped_layers;
        stack.max_positions = file.count(key("context_length"));
        stack.vocab_size = n_rows("token_embd.weight");
        stack.n_blocks = 1;
        stack.position = family->position == Position::learned ? Position::learned : Position::none;
        stack.final_norm = family->norm_place == NormPlace::post ? Norm::none : family->norm;
        stack.final_norm_bias = stack.final_norm == Norm::layer && has_tensor("output_norm.bias");
        const std::string epsilon =
            key(has_layer_norm() ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon");
        stack.final_norm_epsilon = static_cast<float>(file.number(epsilon, 0.0, 1.0));
        stack.has_output_head = !is_encoder_;
        stack.tied_output = !is_encoder_ && !has_tensor("output.weight");
        stack.output_bias = !is_encoder_ && has_tensor("output.bias");
    }

    /// What encoders have and decoders have not. Pooled vectors are normalized, as ggml's own program for embeddings does unless
    /// it is told not to.
    void read_encoder() {
        Stack& stack = result_.stack;
        stack.n_token_types = has_tensor("token_types.weight") ? n_rows("token_types.weight") : 0;
        stack.embedding_norm = has_tensor("token_embd_norm.weight") ? Norm::layer : Norm::none;
        stack.embedding_norm_bias = has_tensor("token_embd_norm.bias");
        static constexpr Pooling kPoolings[] = {Pooling::none, Pooling::mean, Pooling::first, Pooling::last};
        const std::uint32_t pooling = classifies_ ? 0 : file.count_or(key("pooling_type"), 0);
        if (pooling >= std::size(kPoolings))
            file.refuse(key("pooling_type"), "0 (none), 1 (mean), 2 (first token) or 3 (last token)");
        stack.pooling = kPoolings[pooling];
        stack.normalize_pooled = stack.pooling != Pooling::none;

        Block& block = stack.blocks[0];
        block.norm_bias = family->norm_place == NormPlace::post;
        if (architecture != "bert") return;
        stack.embedding_norm = Norm::layer;
        stack.embedding_norm_bias = true;
        block.attention.query_bias = block.attention.key_bias = block.attention.value_bias =
            block.attention.output_bias = true;
        block.feed.up_bias = block.feed.down_bias = true;
    }

    /// A head for classes of a text, as ggml's own program for rerankers runs it: of the first token, of a decoder's family of
    /// the last; a map with tanh (of ModernBERT gelu) and maybe a norm, or none; then the labels'.
    void read_classifier() {
        Stack& stack = result_.stack;
        constexpr std::uint32_t kRank = 4;
        if (file.count_or(key("pooling_type"), kRank) != kRank) file.refuse(key("pooling_type"), "4 (rank)");
        stack.pooling = family->encoder ? Pooling::first : Pooling::last;
        stack.normalize_pooled = false;
        const auto add = [&](const std::string& name, Activation activation) {
            HeadMap& map = stack.head[result_.head.size()];
            map.width = n_rows(name + ".weight");
            map.bias = has_tensor((name + ".bias").c_str());
            map.activation = activation;
            result_.head.push_back(name);
            return &map;
        };
        if (has_tensor("cls.weight")) {
            HeadMap* map = add("cls", architecture == "modern-bert" ? Activation::gelu : Activation::tanh);
            map->norm = has_tensor("cls.norm.weight") ? Norm::layer : Norm::none;
            map->norm_epsilon = stack.final_norm_epsilon;
        }
        const std::uint32_t n_labels = add("cls.output", Activation::none)->width;
        const std::string key_of_labels = key("classifier.output_labels");
        if (file.has(key_of_labels))
            file.for_each_text(key_of_labels, [&](std::string_view label) { result_.labels.emplace_back(label); });
        for (auto i = result_.labels.size(); !file.has(key_of_labels) && i < n_labels; ++i)
            result_.labels.push_back("LABEL_" + std::to_string(i));
        if (result_.labels.size() != n_labels)
            file.refuse(key_of_labels, std::to_string(n_labels) + " labels, as cls.output.weight has rows");
        read_pair_template();
    }

    /// Qwen3-Reranker's: of two labels the first one's probability is the score.
    void read_pair_template() {
        const char* const name = "tokenizer.chat_template.rerank";
        result_.pair_template = file.text_or(name, "");
        if (result_.pair_template.empty()) return;
        if (!PairTemplate::read(result_.pair_template))
            file.refuse(name, "{query} and behind it {document}, once each");
        HeadMap& map = result_.stack.head[0];
        if (result_.head.size() != 1 || map.width != 2 || map.bias) return;
        map.width = 1;
        result_.labels.resize(1);
        result_.subtracts_labels = true;
    }

    void read_block() {
        const Stack& stack = result_.stack;
        Block& block = result_.stack.blocks[0];
        block.norm = family->norm;
        block.norm_place = family->norm_place;
        block.norm_epsilon = stack.final_norm_epsilon;
        if (!family->attends) return;
        block.attention.n_heads = file.count(key("attention.head_count"), 1, kMostWidth);
        block.attention.n_kv_heads = file.has(key("attention.head_count_kv"))
                                         ? first_count("attention.head_count_kv", block.attention.n_heads)
                                         : block.attention.n_heads;
        if (!file.has(key("attention.key_length")) && stack.d_model % block.attention.n_heads != 0)
            file.refuse(key("embedding_length"),
                        "a multiple of the " + std::to_string(block.attention.n_heads) + " heads");
        block.attention.head_dim = file.count_or(key("attention.key_length"), stack.d_model / block.attention.n_heads);
        block.attention.value_head_dim =
            file.count_or(key("attention.value_length"), stack.d_model / block.attention.n_heads);
        const bool all_experts = family->experts && !file.has(key("feed_forward_length"));
        block.feed.d_ff = first_count(all_experts ? "expert_feed_forward_length" : "feed_forward_length", kMostWidth);
        block.attention.softmax_scale = static_cast<float>(file.number_or(key("attention.scale"), 0.0, 1e6, 0.0));
        // Qwen 3 and LFM2 have them always; where others have none, none are read.
        if (architecture == "qwen3" || architecture.starts_with("lfm2") || has_tensor("blk.0.attn_q_norm.weight")) {
            if (family->head_norm == Norm::none) file.refuse("tensor blk.0.attn_q_norm.weight", "none");
            block.attention.query_key_norm = family->head_norm;
            block.attention.head_norm = family->heads;
        }
        block.feed.activation = family->activation;
        block.feed.gated = family->gated;
        block.attention.causal = !family->encoder;
        block.feed.parallel = family->parallel;
        block.feed.shared_norm = block.feed.parallel && !has_tensor("blk.0.ffn_norm.weight");
        read_biases(block);
        read_experts(*this, block);
        if (family->position == Position::alibi) block.attention.position = Position::alibi;
        if (family->position == Position::rope) read_rope(*this, result_.stack, block, result_.ropes[0]);
    }

    /// A number of all layers or, where the family's `settle` reads those of each, the first that is not 0.
    std::uint32_t first_count(const char* name, std::uint32_t most) const {
        if (!reads(name)) return file.count(key(name), 1, most);
        const std::vector<std::uint32_t> counts =
            file.counts(key(name), result_.stack.n_layers, 0, most, result_.n_skipped_layers);
        const auto first = std::ranges::find_if(counts, [](std::uint32_t n) { return n != 0; });
        if (first == counts.end()) file.refuse(key(name), "a number above 0 for a layer");
        return *first;
    }

    /// Layers of one kind, or windows and full layers.
    void read_windows() {
        Stack& stack = result_.stack;
        const std::uint32_t window = family->windows == GgufWindows::none
                                         ? 0
                                         : file.count_or(key("attention.sliding_window"), family->usual_window);
        if (window == 0) return;
        Block windows = stack.blocks[0], full = stack.blocks[0];
        windows.attention.window = window;
        if (family->only_windows_turn) {
            full.attention.position = Position::none;
            full.attention.rotary_dim = 0;
            full.attention.rope_scale = 1.0f;
        }
        const std::vector<bool> windowed = windowed_layers(*this, stack.n_layers, result_.n_skipped_layers);
        const auto n_windowed = std::count(windowed.begin(), windowed.end(), true);
        stack.blocks[0] = n_windowed ? windows : full;
        if (n_windowed == 0 || n_windowed == static_cast<std::ptrdiff_t>(stack.n_layers)) return;
        stack.blocks[1] = full;
        stack.n_blocks = 2;
        result_.ropes[1] = result_.ropes[0];
        for (const bool has_window : windowed) result_.layer_blocks.push_back(has_window ? 0 : 1);
        stack.layer_blocks = result_.layer_blocks;
    }

    /// A bias that the first layer has must be in all, and one it lacks in none: the tensors are checked afterwards.
    void read_biases(Block& block) const {
        const bool fused = has_tensor("blk.0.attn_qkv.bias");
        block.attention.query_bias = fused || has_tensor("blk.0.attn_q.bias");
        block.attention.key_bias = fused || has_tensor("blk.0.attn_k.bias");
        block.attention.value_bias = fused || has_tensor("blk.0.attn_v.bias");
        block.attention.output_bias = has_tensor("blk.0.attn_output.bias");
        block.feed.up_bias = has_tensor("blk.0.ffn_up.bias");
        block.feed.gate_bias = block.feed.gated && has_tensor("blk.0.ffn_gate.bias");
        if (block.feed.gated) block.feed.up_bias = block.feed.gate_bias = block.feed.up_bias || block.feed.gate_bias;
        block.feed.down_bias = has_tensor("blk.0.ffn_down.bias");
        block.attention.attention_sinks = has_tensor("blk.0.attn_sinks.weight");
        block.norm_bias = has_layer_norm() && has_tensor("blk.0.attn_norm.bias");
    }

    bool is_encoder_ = false, classifies_ = false;
    GgufConfig result_;
};

}  // namespace

GgufConfig read_gguf_config(const Gguf& file) { return GgufConfigReader(file).read(); }

}  // namespace fovea
