#include "convert/hf_model.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "convert/mapped_weights.h"
#include "convert/refusal.h"

namespace fovea {
namespace {

/// What a tensor of ours is called there. "#" stands for the layer's prefix.
struct Name {
    Role role;
    const char* name;
    std::uint32_t part = 0, n_parts = 1;  // which of several matrices that are stored side by side
};

constexpr Name kLlamaNames[] = {
    {Role::token_embedding, "embed_tokens.weight"},
    {Role::final_norm, "norm.weight"},
    {Role::output, "lm_head.weight"},
    {Role::attention_norm, "#input_layernorm.weight"},
    {Role::query, "#self_attn.q_proj.weight"},
    {Role::query_bias, "#self_attn.q_proj.bias"},
    {Role::key, "#self_attn.k_proj.weight"},
    {Role::key_bias, "#self_attn.k_proj.bias"},
    {Role::value, "#self_attn.v_proj.weight"},
    {Role::value_bias, "#self_attn.v_proj.bias"},
    {Role::query_norm, "#self_attn.q_norm.weight"},
    {Role::key_norm, "#self_attn.k_norm.weight"},
    {Role::attention_output, "#self_attn.o_proj.weight"},
    {Role::attention_output_bias, "#self_attn.o_proj.bias"},
    {Role::feed_forward_norm, "#post_attention_layernorm.weight"},
    {Role::up, "#mlp.up_proj.weight"},
    {Role::up_bias, "#mlp.up_proj.bias"},
    {Role::down, "#mlp.down_proj.weight"},
    {Role::down_bias, "#mlp.down_proj.bias"},
};

constexpr Name kGpt2Names[] = {
    {Role::token_embedding, "wte.weight"},
    {Role::position_embedding, "wpe.weight"},
    {Role::final_norm, "ln_f.weight"},
    {Role::final_norm_bias, "ln_f.bias"},
    {Role::output, "lm_head.weight"},
    {Role::attention_norm, "#ln_1.weight"},
    {Role::attention_norm_bias, "#ln_1.bias"},
    {Role::query, "#attn.c_attn.weight", 0, 3},
    {Role::query_bias, "#attn.c_attn.bias", 0, 3},
    {Role::key, "#attn.c_attn.weight", 1, 3},
    {Role::key_bias, "#attn.c_attn.bias", 1, 3},
    {Role::value, "#attn.c_attn.weight", 2, 3},
    {Role::value_bias, "#attn.c_attn.bias", 2, 3},
    {Role::attention_output, "#attn.c_proj.weight"},
    {Role::attention_output_bias, "#attn.c_proj.bias"},
    {Role::feed_forward_norm, "#ln_2.weight"},
    {Role::feed_forward_norm_bias, "#ln_2.bias"},
    {Role::up, "#mlp.c_fc.weight"},
    {Role::up_bias, "#mlp.c_fc.bias"},
    {Role::down, "#mlp.c_proj.weight"},
    {Role::down_bias, "#mlp.c_proj.bias"},
};

constexpr Name kBertNames[] = {
    {Role::token_embedding, "embeddings.word_embeddings.weight"},
    {Role::position_embedding, "embeddings.position_embeddings.weight"},
    {Role::type_embedding, "embeddings.token_type_embeddings.weight"},
    {Role::embedding_norm, "embeddings.LayerNorm.weight"},
    {Role::embedding_norm_bias, "embeddings.LayerNorm.bias"},
    {Role::attention_norm, "#attention.output.LayerNorm.weight"},
    {Role::attention_norm_bias, "#attention.output.LayerNorm.bias"},
    {Role::query, "#attention.self.query.weight"},
    {Role::query_bias, "#attention.self.query.bias"},
    {Role::key, "#attention.self.key.weight"},
    {Role::key_bias, "#attention.self.key.bias"},
    {Role::value, "#attention.self.value.weight"},
    {Role::value_bias, "#attention.self.value.bias"},
    {Role::attention_output, "#attention.output.dense.weight"},
    {Role::attention_output_bias, "#attention.output.dense.bias"},
    {Role::feed_forward_norm, "#output.LayerNorm.weight"},
    {Role::feed_forward_norm_bias, "#output.LayerNorm.bias"},
    {Role::up, "#intermediate.dense.weight"},
    {Role::up_bias, "#intermediate.dense.bias"},
    {Role::down, "#output.dense.weight"},
    {Role::down_bias, "#output.dense.bias"},
};

/// One for each HfKind: the names, the prefix that the class with a head puts first, the embedding table, and what
/// comes before a layer's number.
struct Naming {
    std::span<const Name> names;
    std::string_view outer, layers;
};
constexpr Naming kNamings[] = {
    {kLlamaNames, "model.", "layers."}, {kGpt2Names, "transformer.", "h."}, {kBertNames, "bert.", "encoder.layer."}};

std::string in_words(const std::vector<std::uint64_t>& shape) {
    std::string words = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) words += (i ? ", " : "") + std::to_string(shape[i]);
    return words + "]";
}

class Joiner {
public:
    Joiner(HfConfig config, Safetensors weights)
        : config_(std::move(config)),
          files_(std::move(weights)),
          naming_(kNamings[static_cast<std::size_t>(config_.kind)]) {}

    ModelSource join() {
        find_prefix();
        Stack& stack = config_.stack();
        if (config_.kind == HfKind::gpt2) drop_missing_biases(stack);
        const StackIndex index = config_.kind == HfKind::bert ? StackIndex::encoder : StackIndex::decoder;
        for_each_tensor(stack, index, [&](const TensorSpec& spec) { add(stack, spec); });
        check_all_used(stack);
        config_.source.type = widest_ ? *widest_ : Type::f32;
        for (Mapping& mapping : files_.mappings) weights_.keep(std::move(mapping));
        set_readers(std::move(weights_), config_.source);
        return std::move(config_.source);
    }

private:
    /// Checkpoints of the bare model, without its head's class around it, lack the first part of every name.
    void find_prefix() {
        const std::string outer(naming_.outer), first(naming_.names[0].name);  // the embedding table
        prefix_ = files_.tensors.count(outer + first) || !files_.tensors.count(first) ? outer : "";
    }

    const Name& name_of(Role role) const {
        return *std::find_if(naming_.names.begin(), naming_.names.end(), [&](const Name& n) { return n.role == role; });
    }

    std::string full_name(std::string_view name, std::uint32_t layer) const {
        if (name.starts_with("lm_head.")) return std::string(name);
        if (!name.starts_with('#')) return prefix_ + std::string(name);
        return prefix_ + std::string(naming_.layers) + std::to_string(layer) + "." + std::string(name.substr(1));
    }

    /// The first BERT checkpoints call a norm's weight and bias gamma and beta.
    std::string older_name(std::string name) const {
        if (config_.kind != HfKind::bert || files_.tensors.count(name)) return name;
        for (const auto& [now, then] :
             {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}})
            if (name.ends_with(now))
                if (std::string older = name.substr(0, name.size() - std::string_view(now).size()) + then;
                    files_.tensors.count(older))
                    return older;
        return name;
    }

    /// GPT-2's classes always have biases, but models trained without one kind of them, or any, leave those out of every
    /// layer: then the model has none, and the user is told. A kind that some layers have and others lack is
    /// incomplete, and `view` will say which is missing.
    void drop_missing_biases(Stack& stack) {
        const auto has = [&](std::initializer_list<const char*> names) {
            for (const char* name : names)
                for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer)
                    if (files_.tensors.count(full_name(name, layer)) != 0) return true;
            std::string missing;
            for (const char* name : names) missing += (missing.empty() ? "" : ", ") + full_name(name, 0);
            config_.source.notes.push_back(files_.files.front().string() + ": no " + missing +
                                           " in any layer; the model is taken to have none");
            return false;
        };
        const bool projection = has({"#attn.c_attn.bias"}), output = has({"#attn.c_proj.bias"});
        const bool up = has({"#mlp.c_fc.bias"}), down = has({"#mlp.c_proj.bias"});
        const bool norm = has({"#ln_1.bias", "#ln_2.bias"});
        for (std::uint32_t i = 0; i < stack.n_blocks; ++i) {
            Block& b = stack.blocks[i];
            b.query_bias = b.key_bias = b.value_bias = projection;
            b.output_bias = output;
            b.up_bias = up;
            b.down_bias = down;
            b.norm_bias = norm;
        }
        stack.final_norm_bias = has({"ln_f.bias"});
    }

    /// The tensor of that name as a matrix of n_rows rows (a vector: of one column), after checking it.
    TensorView view(const std::string& name, bool vector, std::uint64_t n_rows, std::uint64_t n_cols, bool transposed,
                    const Name& place) {
        const std::uint64_t n_all = n_rows * place.n_parts;
        std::vector<std::uint64_t> wanted = {n_all};
        if (!vector) wanted = transposed ? std::vector{n_cols, n_all} : std::vector{n_all, n_cols};
        const auto found = files_.tensors.find(name);
        if (found == files_.tensors.end())
            throw Refusal(files_.files.front().string() + ": tensor " + name + ": expected " + in_words(wanted) +
                          ", got none");
        const SourceTensor& tensor = found->second;
        const std::string file = files_.files[tensor.file].string();
        if (tensor.shape != wanted)
            throw Refusal(file + ": tensor " + name + ": expected shape " + in_words(wanted) + ", got " +
                          in_words(tensor.shape));
        used_.insert(name);
        TensorView result;
        if (tensor.dtype == "F16")
            result.type = Type::f16;
        else if (tensor.dtype == "BF16")
            result.type = Type::bf16;
        else if (tensor.dtype != "F32")
            throw Refusal(file + ": tensor " + name + ": expected F32, F16 or BF16, got " + tensor.dtype);
        if (!vector) widen(result.type);
        const std::uint64_t element = result.type == Type::f32 ? 4 : 2;
        result.row_stride = vector || transposed ? 1 : n_cols;
        result.col_stride = transposed && !vector ? n_all : 1;
        result.data = tensor.data + place.part * n_rows * result.row_stride * element;
        return result;
    }

    void widen(Type type) { widest_ = widest_ && *widest_ != type ? Type::f32 : type; }

    void add(const Stack& stack, const TensorSpec& spec) {
        const Block& block = stack.block(spec.layer);
        if (spec.role == Role::rope_frequencies) {
            weights_.add_computed(spec.role, spec.layer, rope_frequencies(config_.rope, 2 * spec.n_cols));
            return;
        }
        const Name& place = name_of(spec.role);
        const std::string name = older_name(full_name(place.name, spec.layer));
        const bool vector = spec.layout == Layout::vector;
        const bool transposed = config_.kind == HfKind::gpt2 && place.name[0] == '#' && !vector;
        const bool is_up = spec.role == Role::up || spec.role == Role::up_bias;
        if (is_up && block.gated) {
            std::string gate_name = name;
            gate_name.replace(gate_name.find("up_proj"), 2, "gate");
            const TensorView up = view(name, vector, block.d_ff, spec.n_cols, false, place);
            const TensorView gate = view(gate_name, vector, block.d_ff, spec.n_cols, false, place);
            if (gate.type != up.type) throw Refusal("tensor " + gate_name + ": expected the type of " + name);
            weights_.add_gated(spec.role, spec.layer, gate, up, block.d_ff);
            return;
        }
        RowOrder order;
        switch (spec.role) {
            case Role::query:
            case Role::query_bias:
            case Role::query_norm:
            case Role::key:
            case Role::key_bias:
            case Role::key_norm:
                if (block.position == Position::rope) order = {block.head_dim, block.rotary_dim, 0};
                break;
            default: break;
        }
        const std::uint32_t n_rows = vector ? spec.n_cols : spec.n_rows;
        weights_.add(spec.role, spec.layer, view(name, vector, n_rows, spec.n_cols, transposed, place), order,
                     spec.stack);
    }

    /// A tensor that nothing reads means a model of another shape than its configuration says.
    void check_all_used(const Stack& stack) const {
        for (const auto& [name, tensor] : files_.tensors) {
            const std::string_view n = name;
            if (used_.count(name) || (stack.tied_output && n == "lm_head.weight")) continue;
            // Encoders stand alone: what predicts from them is another model's.
            if (config_.kind == HfKind::bert && (n.starts_with("cls.") || n.find("pooler.") != n.npos)) continue;
            // Buffers that older versions of the library saved: masks and frequencies, which are computed here.
            if (n.ends_with(".attn.bias") || n.ends_with(".attn.masked_bias") || n.ends_with("rotary_emb.inv_freq") ||
                n.ends_with("embeddings.position_ids") || n.ends_with("embeddings.token_type_ids"))
                continue;
            throw Refusal(files_.files[tensor.file].string() + ": tensor " + name +
                          ": expected only tensors that the configuration calls for");
        }
    }

    HfConfig config_;
    Safetensors files_;
    MappedWeights weights_;
    const Naming& naming_;
    std::string prefix_;
    std::set<std::string> used_;
    std::optional<Type> widest_;  // of the matrices; f32 where they differ
};

}  // namespace

ModelSource join_hf_model(HfConfig config, Safetensors weights) {
    return Joiner(std::move(config), std::move(weights)).join();
}

}  // namespace fovea
