// Nomic's BERT (Nussbaum et al. 2024): rotary positions, a gated feed-forward part, and hardly a bias. Its config.json has
// the words of its first code (n_embd, rotary_emb_base, …) or those of transformers; its tensors have the first code's names.
#include "convert/families/bert_names.h"
#include "convert/weights/mapped_weights.h"
#include "host/base/error.h"

namespace fovea {
namespace {

constexpr ModelType kNomicBertTypes[] = {{"nomic_bert", R"({"rope_theta": 1000.0})"}};

constexpr auto kNomicBertNames = names_of({
    {Role::token_embedding, "embeddings.word_embeddings.weight"},
    {Role::type_embedding, "embeddings.token_type_embeddings.weight"},
    {Role::embedding_norm, "emb_ln.weight"},
    {Role::attention_norm, "#norm1.weight"},
    {Role::query, "#attn.Wqkv.weight", Within::stacked},
    {Role::attention_output, "#attn.out_proj.weight"},
    {Role::feed_forward_norm, "#norm2.weight"},
    {Role::up, "#mlp.fc11.weight", Within::alone, "#mlp.fc12.weight"},
    {Role::down, "#mlp.fc2.weight"},
});

/// Sizes by the names of the first code. Its other settings must be those of the published models.
Block read_frame(const Fields& fields, Stack& stack, Rope& rope) {
    for (const char* off : {"prenorm", "parallel_block", "causal", "use_rms_norm", "rotary_emb_interleaved"})
        refuse_true(fields, off);
    for (const char* none : {"rotary_emb_scale_base", "rotary_scaling_factor"}) refuse_present(fields, none);
    if (fields.number_or("rotary_emb_fraction", 0.0, 1.0, 1.0) != 1.0) fields.refuse("rotary_emb_fraction", "1");
    rope.base = fields.number_or("rotary_emb_base", 1.01, 1e30, 10000.0);
    SizeNames sizes = kGpt2Sizes;
    sizes.default_epsilon = 1e-12;
    return read_sizes(fields, sizes, Norm::layer, stack);
}

Block read_first(const Fields& fields, Stack& stack, Rope& rope) {
    for (const char* off : {"qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"}) refuse_true(fields, off);
    if (fields.text_or("activation_function", "swiglu") != "swiglu") fields.refuse("activation_function", "swiglu");
    return read_frame(fields, stack, rope);
}

void read_nomic_bert(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    const bool first = fields.has("n_embd");
    Rope rope;
    Block block = first ? read_first(fields, stack, rope) : read_sizes(fields, kBertSizes, Norm::layer, stack);
    stack.n_token_types = fields.count_or("type_vocab_size", 2);
    set_bert_norms(stack, block);
    block.feed.gated = true;
    block.feed.activation = read_activation(fields, "hidden_act", "silu");
    block.attention.position = Position::rope;
    block.attention.rotary_dim = block.attention.head_dim;
    set_layers(fields, first ? LayerShape{block, rope} : with_rope(fields, block), result);
}

constexpr HeadLayer kNomicBertMasked[] = {{.name = "/cls.predictions.transform.dense",
                                           .norm = "/cls.predictions.transform.layer_norm",
                                           .activation_field = "hidden_act"}};
constexpr HeadForms kNomicBertHeads = {.classes = kBertClasses,
                                       .answers = {},
                                       .masked = kNomicBertMasked,
                                       .decoder = "/cls.predictions.decoder",
                                       .decoder_bias = "/cls.predictions.bias"};

const Family* with_experts(const Fields& fields) {
    return fields.has("num_experts") && fields.count("num_experts", 0) ? &families::nomic_moe : nullptr;
}

constexpr auto kNomicMoeNames = kNomicBertNames.with({
    {Role::up, "#mlp.fc1.weight"},
    {Role::router, "#mlp.router.layer.weight"},
    {Role::expert_up, "#mlp.experts.mlp.w1", Within::below},
    {Role::expert_up_bias, "#mlp.experts.mlp.b1", Within::fused},
    {Role::expert_down, "#mlp.experts.mlp.w2", Within::below},
});

/// Every so many layers, from the second of them on, have experts (Nussbaum and Duderstadt 2025).
void read_nomic_moe(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Rope rope;
    Block dense = read_frame(fields, stack, rope);
    for (const char* on : {"qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"})
        if (!fields.flag_or(on, true)) fields.refuse(on, "true");
    for (const char* off : {"expert_choice_router", "num_shared_experts", "moe_normalize_expert_weights"})
        if (fields.has(off) && fields.json()[off] != false && fields.json()[off] != 0) fields.refuse(off, "none");
    stack.n_token_types = fields.count_or("type_vocab_size", 2);
    set_bert_norms(stack, dense);
    set_biases(dense, true);
    dense.feed.activation = read_activation(fields, "activation_function", "gelu");
    dense.attention.position = Position::rope;
    dense.attention.rotary_dim = dense.attention.head_dim;
    Block sparse = dense;
    sparse.experts.n = static_cast<std::uint16_t>(fields.count("num_experts", 1, kMaxExperts));
    sparse.experts.n_used = static_cast<std::uint8_t>(
        fields.count("moe_top_k", 1, std::min<std::uint32_t>(sparse.experts.n, kMaxExpertsUsed)));
    sparse.experts.router_bias = true;
    sparse.feed.down_bias = false;
    const std::uint32_t every = fields.count("moe_every_n_layers");
    std::vector<LayerShape> layers;
    for (std::uint32_t i = 0; i < stack.n_layers; ++i) layers.push_back({i % every == 1 ? sparse : dense, rope});
    set_layers(fields, layers, result);
}

std::vector<float> floats_of(const Safetensors& files, const std::string& name, std::uint64_t n_rows,
                             std::uint32_t n_cols) {
    const auto found = files.tensors.find(name);
    const auto n_bytes = [&] { return found->second.bytes / (found->second.dtype == "F32" ? 4 : 2); };
    if (found == files.tensors.end() || found->second.packed || n_bytes() != n_rows * n_cols)
        throw host::Error("tensor " + name + ": expected " + std::to_string(n_rows * n_cols) + " floats, got others");
    TensorView view;
    view.data = found->second.data;
    view.type = float_type(found->second, "tensor " + name);
    view.row_stride = n_cols;
    std::vector<float> values(n_rows * n_cols);
    for (std::uint64_t row = 0; row < n_rows; ++row) read_row(view, row, n_cols, values.data() + row * n_cols);
    return values;
}

void put_floats(Safetensors& files, const std::string& name, const std::vector<std::uint64_t>& shape,
                const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    const std::vector<std::byte>& copy = files.copies.emplace_back(bytes.begin(), bytes.end());
    files.tensors[name] = {.dtype = "F32", .shape = shape, .data = copy.data(), .bytes = copy.size()};
}

/// -W·b of every row of W.
std::vector<float> less_products(const std::vector<float>& matrix, const std::vector<float>& vector) {
    std::vector<float> result(matrix.size() / vector.size());
    for (std::size_t row = 0; row < result.size(); ++row) {
        double sum = 0;
        for (std::size_t i = 0; i < vector.size(); ++i)
            sum += static_cast<double>(matrix[row * vector.size() + i]) * static_cast<double>(vector[i]);
        result[row] = static_cast<float>(-sum);
    }
    return result;
}

/// All experts have one bias b, which is added to their sum, so to the residual row. The norm before them takes it up, and what
/// reads that row gets biases that take it off again: W·x + u = W·(x + b) + (u - W·b).
void fold_experts_bias(const HfConfig& config, Safetensors& files) {
    const Stack& stack = config.stack();
    for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer) {
        const Block& block = stack.block(layer);
        if (!block.experts.n) continue;
        const std::string end = "encoder.layers." + std::to_string(layer) + ".";
        const std::string own = files.tensors.count(end + "mlp.experts.bias") ? end : "bert." + end;
        const std::uint32_t width = stack.d_model, n = block.experts.n, inner = block.feed.d_ff;
        const std::vector<float> bias = floats_of(files, own + "mlp.experts.bias", 1, width);
        std::vector<float> norm = floats_of(files, own + "norm1.bias", 1, width);
        for (std::uint32_t i = 0; i < width; ++i) norm[i] += bias[i];
        put_floats(files, own + "norm1.bias", {width}, norm);
        const auto less = [&](const char* name, std::uint64_t n_rows) {
            return less_products(floats_of(files, own + name, n_rows, width), bias);
        };
        put_floats(files, own + "mlp.router.layer.bias", {n}, less("mlp.router.layer.weight", n));
        put_floats(files, own + "mlp.experts.mlp.b1", {n, inner}, less("mlp.experts.mlp.w1", std::uint64_t{n} * inner));
        files.tensors.erase(own + "mlp.experts.bias");
    }
}

}  // namespace

const Family families::nomic_moe = {.types = {},
                                    .names = kNomicMoeNames,
                                    .outer = "bert.",
                                    .layers = "encoder.layers.",
                                    .read = read_nomic_moe,
                                    .stack = StackIndex::encoder,
                                    .ignores = is_of_head,
                                    .prepare = fold_experts_bias};

const Family families::nomic_bert = {.types = kNomicBertTypes,
                                     .names = kNomicBertNames,
                                     .outer = "nomic_bert.",
                                     .layers = "encoder.layers.",
                                     .read = read_nomic_bert,
                                     .stack = StackIndex::encoder,
                                     .ignores = is_of_head,
                                     .variant = with_experts,
                                     .heads = &kNomicBertHeads};

}  // namespace fovea
