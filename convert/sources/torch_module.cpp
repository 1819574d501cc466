#include "convert/sources/torch_module.h"

#include <algorithm>
#include <array>

#include "convert/families/torch_ends.h"
#include "convert/sources/source_tensors.h"
#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMostModuleWidth = 1u << 20, kMostModuleLayers = 1u << 12;
constexpr std::array<const char*, 5> kModules = {"torch.nn.MultiheadAttention", "torch.nn.TransformerEncoder",
                                                 "torch.nn.TransformerDecoder", "torch.nn.Transformer", "attention"};

std::uint32_t divided(const Fields& fields, const char* name, std::uint32_t width, std::uint32_t n_heads) {
    if (width % n_heads) fields.refuse(name, "a divisor of the width, " + std::to_string(width));
    return width / n_heads;
}

void lone(Stack& stack, std::uint32_t d_model, const Block& block) {
    stack.n_layers = stack.n_blocks = 1;
    stack.d_model = d_model;
    stack.blocks[0] = block;
}

void read_multihead(const Fields& fields, Stack& stack) {
    Block b;
    const std::uint32_t width = fields.count("embed_dim", 1, kMostModuleWidth);
    b.attention.n_heads = b.attention.n_kv_heads = fields.count("num_heads", 1, kMostModuleWidth);
    b.attention.head_dim = b.attention.value_head_dim = divided(fields, "num_heads", width, b.attention.n_heads);
    b.attention.key_width = fields.count_or("kdim", width);
    b.attention.value_width = fields.count_or("vdim", width);
    b.attention.query_bias = b.attention.key_bias = b.attention.value_bias = b.attention.output_bias =
        fields.flag_or("bias", true);
    b.attention.bias_kv = fields.flag_or("add_bias_kv", false);
    b.attention.zero_attn = fields.flag_or("add_zero_attn", false);
    lone(stack, width, b);
}

void read_attention(const Fields& fields, Stack& stack) {
    Block b;
    const std::uint32_t d_model = fields.count("d_model", 1, kMostModuleWidth);
    b.attention.n_heads = fields.count("n_heads", 1, kMostModuleWidth);
    b.attention.n_kv_heads = fields.count_or("n_kv_heads", b.attention.n_heads);
    b.attention.head_dim = fields.has("head_dim") ? fields.count("head_dim", 1, kMostModuleWidth)
                                                  : divided(fields, "n_heads", d_model, b.attention.n_heads);
    b.attention.value_head_dim = fields.count_or("value_head_dim", b.attention.head_dim);
    b.attention.query_width = fields.count_or("query_width", d_model);
    b.attention.key_width = fields.count_or("key_width", d_model);
    b.attention.value_width = fields.count_or("value_width", d_model);
    b.attention.output_width = fields.count_or("output_width", d_model);
    b.attention.has_output_map = fields.flag_or("output_projection", true);
    const bool bias = fields.flag_or("bias", true);
    b.attention.query_bias = b.attention.key_bias = b.attention.value_bias = bias;
    b.attention.output_bias = bias && b.attention.has_output_map;
    b.attention.causal = fields.flag_or("causal", false);
    b.attention.softmax_scale = static_cast<float>(fields.number_or("softmax_scale", -1e30, 1e30, 0.0));
    b.attention.score_softcap = static_cast<float>(fields.number_or("score_softcap", 0.0, 1e30, 0.0));
    lone(stack, d_model, b);
}

void read_layers(const Fields& fields, const char* n_layers, bool decoder, bool final_norm, Stack& stack) {
    stack.n_layers = fields.count(fields.has(n_layers) ? n_layers : "num_layers", 1, kMostModuleLayers);
    stack.n_blocks = 1;
    stack.d_model = fields.count("d_model", 1, kMostModuleWidth);
    const bool bias = fields.flag_or("bias", true);
    stack.final_norm = fields.flag_or("final_norm", final_norm) ? Norm::layer : Norm::none;
    stack.final_norm_bias = bias && stack.final_norm == Norm::layer;
    stack.final_norm_epsilon = static_cast<float>(fields.number_or("layer_norm_eps", 0.0, 1.0, 1e-5));
    Block& b = stack.blocks[0];
    b.attention.n_heads = b.attention.n_kv_heads = fields.count("nhead", 1, kMostModuleWidth);
    b.attention.head_dim = b.attention.value_head_dim = divided(fields, "nhead", stack.d_model, b.attention.n_heads);
    b.feed.d_ff = fields.count_or("dim_feedforward", 2048);
    b.norm = Norm::layer;
    b.norm_place = fields.flag_or("norm_first", false) ? NormPlace::pre : NormPlace::post;
    b.norm_epsilon = stack.final_norm_epsilon;
    b.norm_bias = bias;
    b.attention.query_bias = b.attention.key_bias = b.attention.value_bias = b.attention.output_bias = b.feed.up_bias =
        b.feed.down_bias = bias;
    const std::string activation = fields.text_or("activation", "relu");
    if (activation != "relu" && activation != "gelu") fields.refuse("activation", "relu or gelu");
    b.feed.activation = activation == "relu" ? Activation::relu : Activation::gelu;
    b.attention.cross_attention = decoder;
}

/// A module's configuration, and the names of what stands around its stacks, by StackIndex.
struct TorchConfig {
    Config config;
    std::array<TorchEnds, 2> ends;
};

/// Ids go in where there is a vocab_size, and an output map may follow the last stack. Layers of an encoder that see no later
/// row and give logits are a decoder without a memory.
TorchConfig read_config(const Fields& fields, const std::string& type) {
    TorchConfig result;
    auto& [config, ends] = result;
    if (type == kModules[0]) read_multihead(fields, config.encoder);
    if (type == kModules[4]) read_attention(fields, config.encoder);
    const bool both = type == kModules[3], encoder = both || type == kModules[1], decoder = both || type == kModules[2];
    if (encoder) read_layers(fields, "num_encoder_layers", false, both, config.encoder);
    if (decoder) read_layers(fields, "num_decoder_layers", true, both, config.decoder);
    if (!encoder && !decoder) return result;
    if (encoder)
        read_torch_embedding(both && fields.has("source") ? fields.object("source") : fields, config.encoder, ends[0]);
    if (decoder)
        read_torch_embedding(both && fields.has("target") ? fields.object("target") : fields, config.decoder, ends[1]);
    Stack& last = decoder ? config.decoder : config.encoder;
    read_torch_output(fields, last, ends[decoder]);
    last.blocks[0].attention.causal = fields.flag_or("causal", decoder && last.has_output_head);
    if (!decoder && last.blocks[0].attention.causal && last.has_output_head) {
        std::swap(config.encoder, config.decoder);
        std::swap(ends[0], ends[1]);
    }
    return result;
}

/// Where a tensor of ours is in a state dict: a name and, of several maps in one tensor, which.
struct ModulePlace {
    std::string name;
    std::uint32_t part = 0, n_parts = 1;
};

class TorchTensors : private SourceTensors {
public:
    TorchTensors(const std::string& type, const TorchConfig& config, std::string prefix, Safetensors weights)
        : SourceTensors(std::move(weights)), type_(type), ends_(config.ends), prefix_(std::move(prefix)) {
        source_.config = config.config;
    }

    ModelSource join() {
        assemble(source_);
        return std::move(source_);
    }

private:
    [[nodiscard]] const TorchEnds& ends_of(const TensorSpec& spec) const {
        return ends_[static_cast<std::size_t>(spec.stack)];
    }
    /// The maps of one attention: three that share a tensor or have one each.
    [[nodiscard]] ModulePlace projection(const std::string& prefix, const Block& b, std::uint32_t d_model,
                                         std::uint32_t which, bool bias) const {
        static constexpr std::array<const char*, 3> kLetters = {"q", "k", "v"};
        const std::string separate = prefix + kLetters[which] + "_proj";
        if (type_ == kModules[4]) return {separate + (bias ? ".bias" : ".weight")};
        if (bias) return {prefix + "in_proj_bias", which, 3};
        const bool shared = (!b.attention.key_width || b.attention.key_width == d_model) &&
                            (!b.attention.value_width || b.attention.value_width == d_model);
        return shared ? ModulePlace{prefix + "in_proj_weight", which, 3} : ModulePlace{separate + "_weight"};
    }

    [[nodiscard]] ModulePlace place_of(const Stack& stack, const TensorSpec& spec) const {
        const Block& b = stack.block(spec.layer);
        std::string outer = prefix_;
        if (type_ == kModules[3]) outer += spec.stack == StackIndex::encoder ? "encoder." : "decoder.";
        const bool in_stack = b.feed.d_ff != 0;
        const std::string layer = in_stack ? outer + "layers." + std::to_string(spec.layer) + "." : outer;
        const std::string self = layer + (in_stack ? "self_attn." : ""), cross = layer + "multihead_attn.";
        const std::string output = type_ == kModules[4] ? "o_proj" : "out_proj";
        const std::string last_norm = layer + (b.attention.cross_attention ? "norm3" : "norm2");
        const auto map = [&](const std::string& prefix, Role query) -> ModulePlace {
            const auto i = static_cast<std::uint32_t>(spec.role) - static_cast<std::uint32_t>(query);
            return projection(prefix, b, stack.d_model, i / 2, i % 2 == 1);
        };
        switch (spec.role) {
            case Role::token_embedding: return {ends_of(spec).token_embedding};
            case Role::position_embedding: return {ends_of(spec).position_embedding};
            case Role::output:
            case Role::head_map: return {ends_of(spec).output};
            case Role::output_bias:
            case Role::head_map_bias: return {ends_of(spec).output_bias};
            case Role::final_norm: return {outer + "norm.weight"};
            case Role::final_norm_bias: return {outer + "norm.bias"};
            case Role::attention_norm: return {layer + "norm1.weight"};
            case Role::attention_norm_bias: return {layer + "norm1.bias"};
            case Role::cross_norm: return {layer + "norm2.weight"};
            case Role::cross_norm_bias: return {layer + "norm2.bias"};
            case Role::feed_forward_norm: return {last_norm + ".weight"};
            case Role::feed_forward_norm_bias: return {last_norm + ".bias"};
            case Role::attention_output: return {self + output + ".weight"};
            case Role::attention_output_bias: return {self + output + ".bias"};
            case Role::cross_output: return {cross + output + ".weight"};
            case Role::cross_output_bias: return {cross + output + ".bias"};
            case Role::appended_key: return {self + "bias_k"};
            case Role::appended_value: return {self + "bias_v"};
            case Role::up: return {layer + "linear1.weight"};
            case Role::up_bias: return {layer + "linear1.bias"};
            case Role::down: return {layer + "linear2.weight"};
            case Role::down_bias: return {layer + "linear2.bias"};
            default: return spec.role < Role::cross_norm ? map(self, Role::query) : map(cross, Role::cross_query);
        }
    }

    void add(const Stack& stack, const TensorSpec& spec) override {
        if (spec.role == Role::position_embedding && ends_of(spec).sinusoidal)
            return weights_.add_computed(spec, sinusoids(spec.n_rows, spec.n_cols));
        const ModulePlace place = place_of(stack, spec);
        const bool vector = spec.layout == Layout::vector;
        const std::uint64_t n_rows = vector ? spec.n_cols : spec.n_rows;
        std::vector<std::uint64_t> wanted = {n_rows * place.n_parts};
        if (!vector) wanted.push_back(spec.n_cols);
        if (spec.role == Role::appended_key || spec.role == Role::appended_value) wanted = {1, 1, n_rows};
        const auto found = files_.tensors.find(place.name);
        if (found == files_.tensors.end()) refuse(files_, place.name, "shape " + shape_words(wanted), "none");
        if (spec.role == Role::position_embedding) {  // a buffer may have an axis for the batch
            std::vector<std::uint64_t> shape = found->second.shape;
            shape.erase(std::remove(shape.begin(), shape.end(), 1u), shape.end());
            if (shape == wanted) wanted = found->second.shape;
        }
        TensorView view = floats(files_, place.name, wanted, !vector);
        view.row_stride = vector ? 1 : spec.n_cols;
        view.data += place.part * n_rows * view.row_stride * (view.type == Type::f32 ? 4 : 2);
        weights_.add(spec, view);
    }

    const std::string type_;
    const std::array<TorchEnds, 2> ends_;
    const std::string prefix_;
    ModelSource source_;
};

}  // namespace

bool is_torch_module(const std::string& model_type) {
    return std::find(kModules.begin(), kModules.end(), model_type) != kModules.end();
}

ModelSource read_torch_module(const Fields& fields, Safetensors weights) {
    const std::string type = fields.text("model_type");
    const TorchConfig config = read_config(fields, type);
    if (const Status status = check(config.config); !status.ok())
        fields.refuse("model_type", "a module that can be, not one where " + status_words(status));
    ModelSource source = TorchTensors(type, config, fields.text_or("prefix", ""), std::move(weights)).join();
    source.info = {{"name", type}, {"architecture", type}};
    return source;
}

}  // namespace fovea
