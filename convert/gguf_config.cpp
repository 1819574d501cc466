#include "convert/gguf_config.h"

#include <algorithm>
#include <array>

#include "convert/refusal.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMostWidth = 1u << 20, kMostLayers = 1u << 12;  // check() says more; these keep sums small
constexpr double kMostFactor = 1e6;

class Reader {
public:
    explicit Reader(const Gguf& file) : file_(file), architecture_(file.text("general.architecture")) {}

    GgufConfig read() {
        static constexpr std::array<const char*, 5> kKnown = {"llama", "qwen2", "qwen3", "gpt2", "bert"};
        if (std::find(kKnown.begin(), kKnown.end(), architecture_) == kKnown.end())
            file_.refuse("general.architecture", "llama, qwen2, qwen3, gpt2 or bert");
        is_gpt2_ = architecture_ == "gpt2";
        is_bert_ = result_.is_encoder = architecture_ == "bert";
        refuse_others();
        result_.name = file_.text_or("general.name", architecture_);
        read_stack();
        read_block();
        if (is_bert_) read_encoder();
        Config config;
        (is_bert_ ? config.encoder : config.decoder) = result_.stack;
        require(check(config), file_.path().string());
        return result_;
    }

private:
    /// "llama.block_count" for "block_count".
    [[nodiscard]] std::string key(const char* name) const { return architecture_ + "." + name; }

    [[nodiscard]] bool has_tensor(const char* name) const { return file_.tensors().count(name) != 0; }

    /// GPT-2 and BERT; Llama's kind has RMS norms, rotary positions and gates instead.
    [[nodiscard]] bool has_layer_norm() const { return is_gpt2_ || is_bert_; }

    /// Settings that change what is computed in ways that these architectures do not have here.
    void refuse_others() const {
        if (file_.count_or("split.count", 1) > 1) file_.refuse("split.count", "a model in one file");
        if (file_.text_or("general.type", "model") != "model") file_.refuse("general.type", "\"model\"");
        if (file_.count_or(key("expert_count"), 0) != 0) file_.refuse(key("expert_count"), "none");
        for (const char* name : {"logit_scale", "residual_scale", "embedding_scale", "attention.clamp_kqv",
                                 "attention.max_alibi_bias", "attn_logit_softcapping", "final_logit_softcapping"}) {
            const double value = file_.number_or(key(name), -1e30, 1e30, 0.0);
            if (value != 0.0 && value != 1.0) file_.refuse(key(name), "none");
        }
        if (file_.flag_or(key("attention.causal"), !is_bert_) == is_bert_)
            file_.refuse(key("attention.causal"), is_bert_ ? "false" : "true");
    }

    /// The rows of a table: of the embedding they may be more than the tokenizer's tokens.
    std::uint32_t n_rows(const std::string& name) const {
        const auto found = file_.tensors().find(name);
        if (found == file_.tensors().end() || found->second.shape.size() != 2)
            file_.refuse("tensor " + name, "a matrix");
        constexpr std::uint64_t kMost = 1u << 30;
        return static_cast<std::uint32_t>(std::min(found->second.shape[0], kMost));  // check() refuses far fewer
    }

    void read_stack() {
        Stack& stack = result_.stack;
        stack.d_model = file_.count(key("embedding_length"), 1, kMostWidth);
        stack.n_layers = file_.count(key("block_count"), 1, kMostLayers);
        stack.max_positions = file_.count(key("context_length"));
        stack.vocab_size = n_rows("token_embd.weight");
        stack.n_blocks = 1;
        stack.position = has_layer_norm() ? Position::learned : Position::none;
        stack.final_norm = is_bert_ ? Norm::none : is_gpt2_ ? Norm::layer : Norm::rms;
        stack.final_norm_bias = is_gpt2_ && has_tensor("output_norm.bias");
        const std::string epsilon =
            key(has_layer_norm() ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon");
        stack.final_norm_epsilon = static_cast<float>(file_.number(epsilon, 0.0, 1.0));
        stack.has_output_head = !is_bert_;
        stack.tied_output = !is_bert_ && !has_tensor("output.weight");
    }

    /// What BERT has and decoders have not. Its activation is BERT's default, the exact one, as no key names it; and
    /// pooled vectors are normalized, as ggml's own program for embeddings does unless it is told not to.
    void read_encoder() {
        Stack& stack = result_.stack;
        stack.n_token_types = has_tensor("token_types.weight") ? n_rows("token_types.weight") : 0;
        stack.embedding_norm = Norm::layer;
        stack.embedding_norm_bias = true;
        static constexpr Pooling kPoolings[] = {Pooling::none, Pooling::mean, Pooling::first, Pooling::last};
        const std::uint32_t pooling = file_.count_or(key("pooling_type"), 0);
        if (pooling >= std::size(kPoolings))
            file_.refuse(key("pooling_type"), "0 (none), 1 (mean), 2 (first token) or 3 (last token)");
        stack.pooling = kPoolings[pooling];
        stack.normalize_pooled = stack.pooling != Pooling::none;

        Block& block = stack.blocks[0];
        block.norm_place = NormPlace::post;
        block.activation = Activation::gelu;
        block.query_bias = block.key_bias = block.value_bias = block.output_bias = true;
        block.norm_bias = block.up_bias = block.down_bias = true;
    }

    void read_block() {
        const Stack& stack = result_.stack;
        Block& block = result_.stack.blocks[0];
        block.n_heads = file_.count(key("attention.head_count"), 1, kMostWidth);
        block.n_kv_heads = file_.has(key("attention.head_count_kv"))
                               ? file_.count(key("attention.head_count_kv"), 1, block.n_heads)
                               : block.n_heads;
        if (!file_.has(key("attention.key_length")) && stack.d_model % block.n_heads != 0)
            file_.refuse(key("embedding_length"), "a multiple of the " + std::to_string(block.n_heads) + " heads");
        block.head_dim = file_.count_or(key("attention.key_length"), stack.d_model / block.n_heads);
        block.value_head_dim = file_.count_or(key("attention.value_length"), stack.d_model / block.n_heads);
        block.d_ff = file_.count(key("feed_forward_length"));
        block.norm = has_layer_norm() ? Norm::layer : Norm::rms;
        block.norm_epsilon = stack.final_norm_epsilon;
        block.softmax_scale = static_cast<float>(file_.number_or(key("attention.scale"), 0.0, 1e6, 0.0));
        block.query_key_norm = architecture_ == "qwen3" ? Norm::rms : Norm::none;
        block.activation = is_gpt2_ ? Activation::gelu_tanh : Activation::silu;
        block.gated = !has_layer_norm();
        block.causal = !is_bert_;
        block.window = file_.count_or(key("attention.sliding_window"), 0);
        read_biases(block);
        if (!has_layer_norm()) read_rope(block);
    }

    /// A bias that the first layer has must be in all, and one it lacks in none: the tensors are checked afterwards.
    void read_biases(Block& block) const {
        const bool fused = has_tensor("blk.0.attn_qkv.bias");
        block.query_bias = fused || has_tensor("blk.0.attn_q.bias");
        block.key_bias = fused || has_tensor("blk.0.attn_k.bias");
        block.value_bias = fused || has_tensor("blk.0.attn_v.bias");
        block.output_bias = has_tensor("blk.0.attn_output.bias");
        block.up_bias = has_tensor("blk.0.ffn_up.bias");
        block.gate_bias = block.gated && has_tensor("blk.0.ffn_gate.bias");
        if (block.gated) block.up_bias = block.gate_bias = block.up_bias || block.gate_bias;
        block.down_bias = has_tensor("blk.0.ffn_down.bias");
        block.norm_bias = is_gpt2_ && has_tensor("blk.0.attn_norm.bias");
    }

    void read_rope(Block& block) {
        Rope& rope = result_.rope;
        result_.rotates_halves = architecture_ != "llama";
        block.position = Position::rope;
        block.rotary_dim = file_.count_or(key("rope.dimension_count"), block.head_dim);
        rope.base = file_.number_or(key("rope.freq_base"), 1.01, 1e30, rope.base);
        const std::string type = file_.text_or(key("rope.scaling.type"), "linear");
        const std::string older = file_.has(key("rope.scaling.factor")) ? "rope.scaling.factor" : "rope.scale_linear";
        const double factor = file_.number_or(key(older.c_str()), 0.0, kMostFactor, 1.0);
        rope.factor = factor == 0.0 ? 1.0 : factor;
        if (type == "linear") {
            if (rope.factor != 1.0) rope.scaling = RopeScaling::linear;
        } else if (type == "yarn") {
            read_yarn();
        } else if (type != "none") {
            file_.refuse(key("rope.scaling.type"), "none, linear or yarn");
        }
        const double given = file_.number_or(key("rope.scaling.attn_factor"), 1e-3, 1e3, 1.0);
        block.rope_scale = static_cast<float>(rope.attention_factor * given);
    }

    void read_yarn() {
        Rope& rope = result_.rope;
        rope.scaling = RopeScaling::yarn;
        rope.original_positions = file_.has(key("rope.scaling.original_context_length"))
                                      ? file_.count(key("rope.scaling.original_context_length"))
                                      : result_.stack.max_positions;
        rope.beta_fast = file_.number_or(key("rope.scaling.yarn_beta_fast"), 1e-3, 1e6, 32.0);
        rope.beta_slow = file_.number_or(key("rope.scaling.yarn_beta_slow"), 1e-3, 1e6, 1.0);
        if (file_.number_or(key("rope.scaling.yarn_ext_factor"), -1.0, 1.0, 1.0) == 0.0)
            file_.refuse(key("rope.scaling.yarn_ext_factor"), "1");
        if (file_.number_or(key("rope.scaling.yarn_log_multiplier"), -1e3, 1e3, 0.0) != 0.0)
            file_.refuse(key("rope.scaling.yarn_log_multiplier"), "none");
        rope.attention_factor = static_cast<float>(yarn_attention_factor(rope.factor, 1.0));
    }

    const Gguf& file_;
    const std::string architecture_;
    bool is_gpt2_ = false, is_bert_ = false;
    GgufConfig result_;
};

}  // namespace

GgufConfig read_gguf_config(const Gguf& file) { return Reader(file).read(); }

}  // namespace fovea
