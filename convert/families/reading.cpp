#include "convert/families/reading.h"

#include <algorithm>
#include <bit>

#include "host/base/exact_math.h"

namespace fovea {

namespace {

constexpr std::uint32_t kMostWidth = 1u << 20, kMostLayers = 1u << 12;  // check() says more; these keep sums small

/// Positions end where a scaling that was fixed at a length says so.
void end_positions(const Rope& rope, HfConfig& result) {
    Stack& stack = result.stack();
    if (!rope.fixed_length || rope.fixed_length >= stack.max_positions) return;
    stack.max_positions = rope.fixed_length;
    result.source.notes.push_back(
        "llama_4_scaling_beta: positions end where it begins to multiply queries; the model has " +
        std::to_string(rope.fixed_length) + " positions");
}

}  // namespace

Block read_sizes(const Fields& fields, const SizeNames& names, Norm norm, Stack& stack) {
    stack.d_model = fields.count(names.d_model, 1, kMostWidth);
    stack.n_layers = fields.count(names.n_layers, 1, kMostLayers);
    stack.vocab_size = fields.count("vocab_size");
    const bool must_say = names.default_positions == 0 || fields.has(names.max_positions);
    stack.max_positions = must_say ? fields.count(names.max_positions) : names.default_positions;
    stack.final_norm = norm;
    stack.final_norm_bias = norm == Norm::layer;
    stack.final_norm_epsilon = static_cast<float>(fields.number_or(names.epsilon, 0.0, 1.0, names.default_epsilon));

    Block block;
    block.attention.n_heads = fields.count(names.n_heads, 1, kMostWidth);
    block.attention.n_kv_heads =
        names.n_kv_heads ? fields.count_or(names.n_kv_heads, block.attention.n_heads) : block.attention.n_heads;
    if (block.attention.n_kv_heads == 0 || block.attention.n_heads % block.attention.n_kv_heads != 0)
        fields.refuse(names.n_kv_heads,
                      "a divisor of " + std::string(names.n_heads) + ", " + std::to_string(block.attention.n_heads));
    if (!fields.has("head_dim") && stack.d_model % block.attention.n_heads != 0)
        fields.refuse(names.d_model,
                      "a multiple of " + std::string(names.n_heads) + ", " + std::to_string(block.attention.n_heads));
    block.attention.head_dim =
        fields.has("head_dim") ? fields.count("head_dim", 1, kMostWidth) : stack.d_model / block.attention.n_heads;
    block.attention.value_head_dim = block.attention.head_dim;
    if (names.d_ff_is_ratio)
        block.feed.d_ff = fields.count_or(names.d_ff, 4) * stack.d_model;
    else
        block.feed.d_ff =
            names.d_ff_may_lack ? fields.count_or(names.d_ff, 4 * stack.d_model) : fields.count(names.d_ff);
    block.norm = norm;
    block.norm_bias = norm == Norm::layer;
    block.norm_epsilon = stack.final_norm_epsilon;
    block.attention.causal = true;
    return block;
}

Block read_gated(const Fields& fields, const SizeNames& names, bool tied_by_default, Stack& stack, Norm norm,
                 const char* activation) {
    Block block = read_sizes(fields, names, norm, stack);
    read_output_head(fields, tied_by_default, stack);
    block.feed.activation = read_activation(fields, "hidden_act", activation);
    block.feed.gated = true;
    return block;
}

void read_output_head(const Fields& fields, bool tied_by_default, Stack& stack) {
    stack.has_output_head = true;
    stack.tied_output = fields.flag_or("tie_word_embeddings", tied_by_default);
}

LayerShape with_rope(const Fields& fields, Block block, const char* layer_type, std::optional<double> part) {
    block.attention.position = Position::rope;
    block.attention.rotary_dim = read_hf_rotary_dim(fields, block.attention.head_dim, layer_type, part);
    const Rope rope = read_hf_rope(fields, layer_type);
    block.attention.rope_scale = rope.attention_factor;
    read_hf_sections(fields, layer_type, block);
    check_divisors(fields, rope, block.attention.rotary_dim / 2);
    return {block, rope, {}};
}

void check_divisors(const Fields& fields, const Rope& rope, std::size_t n) {
    if (rope.scaling == RopeScaling::divided && rope.divisors.size() != n)
        fields.refuse("short_factor", std::to_string(n) + " numbers");
    if (!rope.long_divisors.empty() && rope.long_divisors.size() != n)
        fields.refuse("long_factor", std::to_string(n) + " numbers");
}

LayerShape with_adjacent_rope(const Fields& fields, const Block& block, std::optional<double> part) {
    LayerShape shape = with_rope(fields, block, nullptr, part);
    shape.rope.halves = false;
    return shape;
}

std::vector<float> alibi_slopes(std::uint32_t n_heads, double most) {
    const std::uint32_t above = std::bit_ceil(n_heads);
    const auto slope = [&](std::uint32_t number) {
        return static_cast<float>(exact_exp(-exact_log(2.0) * most * number / above));
    };
    std::vector<float> slopes;
    for (std::uint32_t i = 1; above == n_heads && i <= above; ++i) slopes.push_back(slope(i));
    for (std::uint32_t i = 2; above != n_heads && i <= above; i += 2) slopes.push_back(slope(i));
    for (std::uint32_t i = 1; slopes.size() < n_heads; i += 2) slopes.push_back(slope(i));
    return slopes;
}

LayerShape with_slopes(const Block& block) {
    LayerShape layer;
    layer.block = block;
    layer.slopes = alibi_slopes(block.attention.n_heads);
    return layer;
}

std::vector<LayerShape> share_blocks(const std::vector<LayerShape>& layers, std::vector<std::uint8_t>& numbers) {
    std::vector<LayerShape> shapes;
    numbers.clear();
    for (const LayerShape& layer : layers) {
        const auto at = std::ranges::find(shapes, layer) - shapes.begin();
        if (at == kMaxBlocks) return {};
        if (at == std::ssize(shapes)) shapes.push_back(layer);
        numbers.push_back(static_cast<std::uint8_t>(at));
    }
    if (shapes.size() == 1) numbers.clear();
    return shapes;
}

void set_layers(const Fields& fields, const std::vector<LayerShape>& layers, HfConfig& result) {
    Stack& stack = result.stack();
    std::vector<std::uint8_t>& numbers = result.source.layer_blocks[static_cast<std::size_t>(result.stack_index())];
    const std::vector<LayerShape> shapes = share_blocks(layers, numbers);
    if (shapes.empty()) fields.refuse("layers", "at most " + std::to_string(kMaxBlocks) + " different kinds of layers");
    for (const LayerShape& shape : shapes) {
        end_positions(shape.rope, result);
        if (!shape.rope.long_divisors.empty())
            stack.rope_original_positions = static_cast<std::uint32_t>(shape.rope.original_positions);
        result.ropes[stack.n_blocks] = shape.rope;
        result.slopes[stack.n_blocks] = shape.slopes;
        stack.blocks[stack.n_blocks++] = shape.block;
    }
    stack.layer_blocks = numbers;
    for (const LayerShape& shape : shapes)
        if (shape.block.attention.position == Position::rope && stack.rope_original_positions &&
            shape.rope.long_divisors.empty())
            fields.refuse("rope_parameters", "longrope for all layers that turn or for none");
}

void set_layers(const Fields& fields, const LayerShape& layer, HfConfig& result) {
    set_layers(fields, std::vector<LayerShape>(result.stack().n_layers, layer), result);
}

float read_softcap(const Fields& fields, const char* name, double otherwise) {
    if (fields.has(name)) return static_cast<float>(fields.number(name, 1e-6, 1e9));
    return fields.json().contains(name) ? 0.0f : static_cast<float>(otherwise);
}

Activation read_activation(const Fields& fields, const char* name, const char* otherwise) {
    const std::string spelled = fields.text_or(name, otherwise);
    if (spelled == "silu" || spelled == "swish") return Activation::silu;
    if (spelled == "relu") return Activation::relu;
    if (spelled == "gelu" || spelled == "gelu_python") return Activation::gelu;
    if (spelled == "tanh") return Activation::tanh;
    if (spelled == "relu2") return Activation::relu2;
    if (spelled == "quick_gelu") return Activation::quick_gelu;
    for (const char* by_tanh : {"gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast", "gelu_accurate"})
        if (spelled == by_tanh) return Activation::gelu_tanh;
    fields.refuse(name,
                  "silu, relu, relu2, tanh, gelu, quick_gelu, gelu_new, gelu_fast, gelu_accurate or gelu_pytorch_tanh");
}

std::vector<bool> read_layer_words(const Fields& fields, const char* name, const std::string& no,
                                   const std::string& yes, std::size_t n_layers) {
    const std::vector<std::string> words = fields.texts(name);
    if (words.size() != n_layers) fields.refuse(name, std::to_string(n_layers) + " of them");
    std::vector<bool> layers;
    for (const std::string& word : words) {
        if (word != no && word != yes) fields.refuse(name, no + " or " + yes);
        layers.push_back(word == yes);
    }
    return layers;
}

void unset_listed(const Fields& fields, const char* name, std::vector<bool>& layers) {
    const SortedJson& list = fields.json()[name];
    if (!list.is_array()) fields.refuse(name, "a list of layers");
    for (const SortedJson& number : list) {
        if (!number.is_number_unsigned()) fields.refuse(name, "numbers of layers");
        if (const auto layer = number.get<std::uint64_t>(); layer < layers.size()) layers[layer] = false;
    }
}

std::vector<bool> read_sliding_layers(const Fields& fields, std::uint32_t n_layers) {
    return read_layer_words(fields, "layer_types", "full_attention", "sliding_attention", n_layers);
}

std::vector<bool> sliding_layers_or(const Fields& fields, const std::vector<bool>& otherwise) {
    if (!fields.has("layer_types")) return otherwise;
    return read_sliding_layers(fields, static_cast<std::uint32_t>(otherwise.size()));
}

std::vector<bool> all_but_every(std::uint32_t period, std::uint32_t n_layers) {
    std::vector<bool> layers(n_layers, true);
    for (std::uint64_t i = period; period && i <= n_layers; i += period) layers[i - 1] = false;
    return layers;
}

void set_windows(const Fields& fields, const std::vector<bool>& windowed, std::vector<LayerShape>& layers) {
    for (std::size_t i = 0; i < layers.size(); ++i)
        if (windowed[i]) layers[i].block.attention.window = fields.count("sliding_window");
}

std::vector<bool> read_rotated_layers(const Fields& fields, std::uint32_t n_layers) {
    if (!fields.has("no_rope_layers")) return all_but_every(fields.count_or("no_rope_layer_interval", 4), n_layers);
    std::vector<bool> rotated(n_layers);
    const SortedJson& list = fields.json()["no_rope_layers"];
    if (!list.is_array() || list.size() != n_layers)
        fields.refuse("no_rope_layers", std::to_string(n_layers) + " numbers");
    for (std::uint32_t i = 0; i < n_layers; ++i) {
        if (!list[i].is_number_integer()) fields.refuse("no_rope_layers", "0 or 1 for each layer");
        rotated[i] = list[i] != 0;
    }
    return rotated;
}

std::vector<bool> read_windows_of_all(const Fields& fields, std::uint32_t n_layers) {
    refuse_present(fields, "layer_types");
    return std::vector<bool>(n_layers, fields.has("sliding_window"));
}

std::vector<bool> read_qwen_windows(const Fields& fields, std::uint32_t n_layers) {
    const bool has_window = fields.flag_or("use_sliding_window", false) && fields.has("sliding_window");
    if (!fields.has("layer_types")) {
        const std::uint32_t first = has_window ? fields.count("max_window_layers", 0) : n_layers;
        std::vector<bool> windowed(n_layers);
        for (std::uint32_t i = 0; i < n_layers; ++i) windowed[i] = i >= first;
        return windowed;
    }
    std::vector<bool> windowed = read_sliding_layers(fields, n_layers);
    for (const bool is_windowed : windowed)
        if (is_windowed && !has_window) fields.refuse("sliding_window", "a window, as layer_types has sliding layers");
    return windowed;
}

void read_experts(const Fields& fields, const ExpertNames& names, bool always, Block& block) {
    const char* n = fields.has(names.n_experts) ? names.n_experts : "num_local_experts";
    block.experts.n = static_cast<std::uint16_t>(fields.count(n, 1, kMaxExperts));
    block.experts.n_used = static_cast<std::uint8_t>(
        fields.count("num_experts_per_tok", 1, std::min<std::uint32_t>(block.experts.n, kMaxExpertsUsed)));
    block.experts.normalize = always || fields.flag_or("norm_topk_prob", false);
    if (names.d_ff) block.feed.d_ff = fields.count(names.d_ff, 1, kMostWidth);
    if (!names.shared_d_ff) return;
    block.experts.shared_d_ff = fields.count(names.shared_d_ff, 1, kMostWidth);
    block.experts.shared_gate = true;
}

std::vector<bool> read_sparse_layers(const Fields& fields, std::uint32_t n_layers) {
    const std::uint32_t period = fields.has("decoder_sparse_step") ? fields.count("decoder_sparse_step") : 1;
    std::vector<bool> sparse(n_layers);
    for (std::uint32_t i = 0; i < n_layers; ++i) sparse[i] = (i + 1) % period == 0;
    if (fields.has("mlp_only_layers")) unset_listed(fields, "mlp_only_layers", sparse);
    return sparse;
}

void read_relative(const Fields& fields, const char* n_buckets, std::uint32_t max_distance, Block& block,
                   HfConfig& result) {
    constexpr std::uint32_t kMostBuckets = 1u << 16, kMostDistance = 1u << 20;
    const std::uint32_t n = fields.has(n_buckets) ? fields.count(n_buckets, 4, kMostBuckets) : 32;
    if (n % 4 || max_distance <= n / 4 || max_distance > kMostDistance)
        fields.refuse(n_buckets,
                      "a multiple of 4 below four times the largest distance, " + std::to_string(max_distance));
    block.attention.position = Position::relative;
    block.attention.relative_max_distance = max_distance;
    result.n_relative_buckets = n;
}

std::string model_name(const Fields& fields, const std::string& type) {
    std::string name = fields.text_or("_name_or_path", "");
    while (!name.empty() && name.back() == '/') name.pop_back();
    name = name.substr(name.find_last_of('/') + 1);
    return name.empty() ? type : name;
}

void refuse_present(const Fields& fields, const char* name) {
    if (fields.has(name)) fields.refuse(name, "none");
}

void refuse_true(const Fields& fields, const char* name) {
    if (fields.flag_or(name, false)) fields.refuse(name, "false");
}

}  // namespace fovea
