// Zamba2 (Glorioso et al. 2024): Mamba-2, and before it in some layers a chain of attention and feed-forward part that few sets of
// weights share. Each use of a set has low-rank products of its own, which are added to the set's matrices: a layer of the file has its
// own matrices.
#include <cmath>
#include <optional>

#include "convert/families/recurrent.h"
#include "host/base/error.h"

namespace fovea {
namespace {

constexpr ModelType kZamba2Types[] = {
    {"zamba2",
     R"({"max_position_embeddings": 4096, "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_ngroups": 1,
                   "n_mamba_heads": 8, "num_attention_heads": 32, "num_mem_blocks": 1, "adapter_rank": 128})"}};
constexpr auto kZamba2Names = names_of({
    {Role::token_embedding, "embed_tokens.weight"},
    {Role::final_norm, "final_layernorm.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::attention_norm, "#shared_transformer.input_layernorm.weight"},
    {Role::query, "#shared_transformer.self_attn.q_proj.weight"},
    {Role::key, "#shared_transformer.self_attn.k_proj.weight"},
    {Role::value, "#shared_transformer.self_attn.v_proj.weight"},
    {Role::attention_output, "#shared_transformer.self_attn.o_proj.weight"},
    {Role::feed_forward_norm, "#shared_transformer.pre_ff_layernorm.weight"},
    {Role::up, "#shared_transformer.feed_forward.gate_up_proj.weight", Within::stacked},
    {Role::down, "#shared_transformer.feed_forward.down_proj.weight"},
    {Role::layer_output, "#linear.weight"},
    {Role::recurrent_norm, "#input_layernorm.weight"},
    FOVEA_MAMBA2_NAMES("#mamba"),
});

void read_zamba2(const Fields& all, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    const std::uint32_t read = 2 * all.count("hidden_size", 1, kMaxWidth / 2),
                        n_heads = all.count("num_attention_heads", 1, kMaxHeads);
    if (read % n_heads) all.refuse("num_attention_heads", "a divisor of " + std::to_string(read));
    const Fields fields = all.with("head_dim", read / n_heads);
    Block block = read_gated(fields, {.default_epsilon = 1e-5, .d_ff_may_lack = true}, true, stack, Norm::rms, "gelu");
    if (fields.flag_or("use_long_context", false)) stack.max_positions = 16384;
    block.attention.query_width = block.attention.key_width = block.attention.value_width = read;
    block.attention.softmax_scale = static_cast<float>(1.0 / std::sqrt(read / n_heads / 2.0));
    block.feed.up_bias = block.feed.gate_bias = block.feed.down_bias = fields.flag_or("add_bias_linear", false);
    block.recurrent = block.inputs.joins_embedding = true;
    read_mamba2(fields,
                {.n_heads = "n_mamba_heads",
                 .head_dim = "mamba_headdim",
                 .n_groups = "mamba_ngroups",
                 .bias = "add_bias_linear",
                 .step_least = "time_step_min"},
                result);
    stack.recurrent.kernel_bias = true;
    stack.recurrent.inner_norm_epsilon = 1e-5f;
    const LayerShape joined =
        fields.flag_or("use_mem_rope", false) ? with_rope(fields, block) : LayerShape{block, {}, {}};
    Block alone = recurrent_block(block);
    alone.feed = {}, alone.inputs = {};
    std::vector<LayerShape> layers;
    const std::vector<bool> by_itself = read_recurrent_layers(fields, "linear_attention", stack.n_layers, "hybrid");
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        layers.push_back(by_itself[i] ? LayerShape{alone, {}, {}} : joined);
        if (!by_itself[i]) result.sharing_layers.push_back(i);
    }
    result.n_shared_sets = fields.count("num_mem_blocks", 1, kMaxLayers);
    set_layers(fields, layers, result);
}

/// A checkpoint's tensors, some of which several layers share.
class SharedLayers {
public:
    SharedLayers(const HfConfig& config, Safetensors& files)
        : tensors_(files.tensors),
          file_(files.files.front().string()),
          layers_(config.sharing_layers),
          n_sets_(config.n_shared_sets),
          prefix_(tensors_.contains("model.embed_tokens.weight") ? "model.layers." : "layers.") {}

    /// Gives each layer its own tensors by the usual names. A layer without them has those of its set's first.
    void spread() {
        for (const std::uint32_t layer : layers_) rename_mamba(of_layer(layer));
        std::vector<std::pair<std::string, SourceTensor>> made;
        for (std::size_t use = 0; use < layers_.size(); ++use) {
            const auto own = tensors_.lower_bound(shared(use));
            const bool has_own = own != tensors_.end() && own->first.starts_with(shared(use));
            const std::string from = shared(has_own ? use : use % n_sets_);
            for (const auto& [name, tensor] : tensors_) {
                if (!name.starts_with(from) || name.find(kProducts) != name.npos) continue;
                SourceTensor copy = tensor;
                if (const auto product = product_of(name, use)) copy.added.push_back(*product);
                made.emplace_back(shared(use) + name.substr(from.size()), std::move(copy));
            }
        }
        std::erase_if(tensors_, [](const auto& item) { return item.first.find(kProducts) != item.first.npos; });
        for (auto& [name, tensor] : made) tensors_.insert_or_assign(name, std::move(tensor));
    }

private:
    static constexpr std::string_view kProducts = "_adapter_list.";

    [[nodiscard]] std::string of_layer(std::uint32_t layer) const { return prefix_ + std::to_string(layer) + "."; }
    [[nodiscard]] std::string shared(std::size_t use) const { return of_layer(layers_[use]) + "shared_transformer."; }

    void rename_mamba(const std::string& layer) {
        const std::string from = layer + "mamba_decoder.";
        for (auto at = tensors_.lower_bound(from); at != tensors_.end() && at->first.starts_with(from);) {
            auto node = tensors_.extract(at++);
            node.key() = layer + node.key().substr(from.size());
            tensors_.insert(std::move(node));
        }
    }

    /// What a use adds to the matrix of that name: "…q_proj.weight" has "…linear_q_adapter_list.USE.0.weight" and ".1.weight",
    /// "…gate_up_proj.weight" "…gate_up_proj_adapter_list.USE…".
    [[nodiscard]] std::optional<LowRank> product_of(const std::string& name, std::size_t use) const {
        const std::string module = name.substr(0, name.size() - std::string_view(".weight").size());
        const std::size_t at = module.rfind('.') + 1;
        const bool is_letter = module.substr(at + 1) == "_proj";
        const std::string stem = is_letter ? module.substr(0, at) + "linear_" + module[at] : module;
        const std::string list = stem + std::string(kProducts) + std::to_string(use);
        const std::string names[] = {list + ".0.weight", list + ".1.weight"};
        const auto first = tensors_.find(names[0]), second = tensors_.find(names[1]);
        if (first == tensors_.end() && second == tensors_.end()) return {};
        const SourceTensor none, &right = first == tensors_.end() ? none : first->second,
                                 &left = second == tensors_.end() ? none : second->second;
        if (!is_plain(right) || !is_plain(left) || right.shape[0] != left.shape[1])
            throw host::Error(file_ + ": tensor " + names[0] +
                              ": expected a matrix and a second one whose columns are its rows, got others");
        const std::uint64_t rank = left.shape[1], n_cols = right.shape[1];
        return LowRank{.left = {left.data, float_type(left, names[1]), rank, 1},
                       .right = {right.data, float_type(right, names[0]), 1, n_cols},
                       .n_rows = left.shape[0],
                       .n_cols = n_cols,
                       .rank = rank,
                       .name = names[0]};
    }
    [[nodiscard]] static bool is_plain(const SourceTensor& tensor) {
        return tensor.data && tensor.shape.size() == 2 && tensor.added.empty();
    }

    std::map<std::string, SourceTensor, std::less<>>& tensors_;
    std::string file_;
    const std::vector<std::uint32_t>& layers_;
    std::uint32_t n_sets_;
    std::string prefix_;
};

void spread_shared_layers(const HfConfig& config, Safetensors& files) { SharedLayers(config, files).spread(); }

}  // namespace

const Family families::zamba2 = {
    .types = kZamba2Types, .names = kZamba2Names, .read = read_zamba2, .prepare = spread_shared_layers};

}  // namespace fovea
