// GPT-J (Wang and Komatsuzaki 2021), the first with attention and feed-forward in parallel; CodeGen (Nijkamp et al. 2022), the
// same with one matrix for queries, values and keys; and GPT-Neo (Black et al. 2021), whose scores are not scaled, and
// whose every other layer sees a window.
#include <array>

#include "convert/families/family.h"
#include "convert/families/heads.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kGptJ[] = {{"gptj", R"({"n_positions": 2048, "rotary_dim": 64})"}};
constexpr ModelType kCodeGen[] = {{"codegen", R"({"n_positions": 2048, "rotary_dim": 64})"}};
constexpr ModelType kGptNeo[] = {{"gpt_neo", R"({"max_position_embeddings": 2048})"}};

constexpr auto kGptJNames = names_of({
    {Role::token_embedding, "wte.weight"},
    {Role::final_norm, "ln_f.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::output_bias, "/lm_head.bias"},
    {Role::attention_norm, "#ln_1.weight"},
    {Role::query, "#attn.q_proj.weight"},
    {Role::key, "#attn.k_proj.weight"},
    {Role::value, "#attn.v_proj.weight"},
    {Role::attention_output, "#attn.out_proj.weight"},
    {Role::up, "#mlp.fc_in.weight"},
    {Role::down, "#mlp.fc_out.weight"},
});

constexpr auto kCodeGenNames = kGptJNames.with({
    {Role::query, "#attn.qkv_proj.weight", Within::quartered},
    {Role::key, "#attn.qkv_proj.weight", Within::quartered},
    {Role::value, "#attn.qkv_proj.weight", Within::quartered},
});

constexpr TensorName kGptNeoNames[] = {
    {Role::token_embedding, "wte.weight"},
    {Role::position_embedding, "wpe.weight"},
    {Role::final_norm, "ln_f.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::attention_norm, "#ln_1.weight"},
    {Role::query, "#attn.attention.q_proj.weight"},
    {Role::key, "#attn.attention.k_proj.weight"},
    {Role::value, "#attn.attention.v_proj.weight"},
    {Role::attention_output, "#attn.attention.out_proj.weight"},
    {Role::feed_forward_norm, "#ln_2.weight"},
    {Role::up, "#mlp.c_fc.weight"},
    {Role::down, "#mlp.c_proj.weight"},
};

constexpr SizeNames kGptNeoSizes = {.n_layers = "num_layers",
                                    .n_heads = "num_heads",
                                    .n_kv_heads = nullptr,
                                    .epsilon = "layer_norm_epsilon",
                                    .default_epsilon = 1e-5,
                                    .d_ff_may_lack = true};

void read_gptj(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, kGpt2Sizes, Norm::layer, stack);
    if (type == "codegen" && block.attention.n_heads % 4 != 0) fields.refuse("n_head", "a multiple of 4");
    read_output_head(fields, false, stack);
    stack.output_bias = true;
    block.feed.activation = read_activation(fields, "activation_function", "gelu_new");
    block.feed.parallel = block.feed.shared_norm = true;
    block.feed.up_bias = block.feed.down_bias = true;
    block.attention.position = Position::rope;
    block.attention.rotary_dim = fields.count_or("rotary_dim", 64);
    LayerShape layer{block, {}};
    layer.rope.halves = false;
    set_layers(fields, layer, result);
}

/// "global" or "local" for each layer, as a list or as lists of them with how often they are repeated.
std::vector<std::string> attention_layers(const Fields& fields) {
    if (fields.has("attention_layers")) return fields.texts("attention_layers");
    const char* wanted = "pairs of a list of \"global\" and \"local\" and how often it is repeated";
    if (!fields.has("attention_types") || !fields.json()["attention_types"].is_array())
        fields.refuse("attention_types", wanted);
    std::vector<std::string> layers;
    for (const SortedJson& pair : fields.json()["attention_types"]) {
        const bool is_pair = pair.is_array() && pair.size() == 2 && pair[0].is_array() && pair[1].is_number_unsigned();
        if (!is_pair || pair[1].get<std::uint64_t>() > 4096 || layers.size() > 4096)
            fields.refuse("attention_types", wanted);
        for (std::uint64_t i = 0; i < pair[1].get<std::uint64_t>(); ++i)
            for (const SortedJson& kind : pair[0]) {
                if (!kind.is_string() || layers.size() > 4096) fields.refuse("attention_types", wanted);
                layers.push_back(kind.get<std::string>());
            }
    }
    return layers;
}

void read_gpt_neo(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, kGptNeoSizes, Norm::layer, stack);
    read_output_head(fields, true, stack);
    stack.position = Position::learned;
    block.feed.activation = read_activation(fields, "activation_function", "gelu_new");
    block.attention.softmax_scale = 1.0f;
    block.attention.output_bias = block.feed.up_bias = block.feed.down_bias = true;
    std::vector<LayerShape> layers(stack.n_layers, {block, {}});
    const std::vector<std::string> kinds = attention_layers(fields);
    const char* name = fields.has("attention_layers") ? "attention_layers" : "attention_types";
    if (kinds.size() != stack.n_layers) fields.refuse(name, std::to_string(stack.n_layers) + " layers");
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) {
        if (kinds[i] != "global" && kinds[i] != "local") fields.refuse(name, "global or local");
        if (kinds[i] == "local") layers[i].block.attention.window = fields.count_or("window_size", 256);
    }
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::gptj = {
    .types = kGptJ, .names = kGptJNames, .outer = "transformer.", .layers = "h.", .read = read_gptj};
const Family families::codegen = {
    .types = kCodeGen, .names = kCodeGenNames, .outer = "transformer.", .layers = "h.", .read = read_gptj};
const Family families::gpt_neo = {.types = kGptNeo,
                                  .names = kGptNeoNames,
                                  .outer = "transformer.",
                                  .layers = "h.",
                                  .read = read_gpt_neo,
                                  .heads = &kOlderDecoderHeads};

}  // namespace fovea
