#include "convert/sources/gguf_model.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "convert/formats/gguf_split.h"
#include "convert/gguf/architectures.h"
#include "convert/gguf/names.h"
#include "convert/sources/chat_info.h"
#include "convert/sources/gguf_config.h"
#include "convert/sources/gguf_tensors.h"
#include "convert/sources/latent_rows.h"
#include "convert/sources/lora_joiner.h"
#include "convert/sources/next_head.h"
#include "convert/sources/recurrent_rows.h"
#include "convert/sources/sampling_info.h"
#include "convert/sources/score_row.h"
#include "convert/sources/source_rows.h"
#include "convert/sources/source_tensors.h"
#include "convert/tokenizers/gguf_tokenizer.h"
#include "convert/weights/mapped_weights.h"
#include "convert/weights/relative_bias.h"
#include "host/base/error.h"
#include "host/base/source_file.h"
#include "host/base/words.h"

namespace fovea {
namespace {

/// The name that older files have for one expert.
std::string alone_name(std::string all, std::uint64_t number) {
    constexpr std::string_view kAll = "_exps.";
    return all.replace(all.find(kAll), kAll.size(), "." + std::to_string(number) + ".");
}

/// The rows that are the tensor of a spec, of a tensor that holds others too.
SourceRows part_of(const GgufConfig& config, const TensorSpec& spec, Within within) {
    const Stack& stack = config.stack;
    if (within == Within::joined) return recurrent_part(stack.recurrent, config.recurrent_rows, spec.role);
    return beside_gate(stack.block(spec.layer).attention, spec.role);
}

const char* end_of_head(Role role) {
    return role == Role::head_norm ? ".norm.weight" : role == Role::head_map_bias ? ".bias" : ".weight";
}

std::string name_in_head(const GgufConfig& config, const TensorSpec& spec) {
    return (config.head.empty() ? "dense_" + std::to_string(spec.layer + 2) : config.head.at(spec.layer)) +
           end_of_head(spec.role);
}

/// The type that holds what the blocks hold: all of it where one can, nearly all in q8 where none can.
Type type_for(const GgufBlocks& blocks) { return blocks.dequantize ? blocks.group_type : blocks.plain; }

StackIndex index_of(const GgufConfig& config) { return config.is_encoder ? StackIndex::encoder : StackIndex::decoder; }
Stack& stack_of(const GgufConfig& config, ModelSource& source) {
    return config.is_encoder ? source.config.encoder : source.config.decoder;
}

/// A source of that shape, without anything in it.
ModelSource shaped_source(const GgufConfig& config) {
    ModelSource source;
    const auto index = static_cast<std::size_t>(index_of(config));
    stack_of(config, source) = config.stack;
    source.layer_blocks[index] = config.layer_blocks;
    stack_of(config, source).layer_blocks = source.layer_blocks[index];
    return source;
}

void check_architecture(const Gguf& file, const GgufLora& adapter) {
    const std::string own = file.text("general.architecture");
    if (adapter.architecture != own)
        throw host::Error(adapter.path.string() + ": general.architecture: expected the model's " + own + ", got " +
                          adapter.architecture);
}

/// What a classifier's logits are.
void add_task(const GgufConfig& config, ModelSource& source) {
    if (config.labels.empty()) return;
    std::string lines;
    for (const std::string& label : config.labels) lines += one_line(label) + "\n";
    source.info.emplace_back("task", "text-classification");
    source.info.emplace_back("labels", lines);
    source.info.emplace_back("scores", config.labels.size() == 1 ? "sigmoid" : "softmax");
    if (!config.pair_template.empty()) source.info.emplace_back("pair_template", config.pair_template);
}

/// The model's type is that of most of its layers' matrices, by their elements.
void set_type(const Gguf& file, ModelSource& source) {
    std::map<const GgufBlocks*, std::uint64_t> n_elements;
    for (const auto& [name, tensor] : file.tensors())
        if (tensor.shape.size() >= 2 && name.find("blk.") != std::string::npos)
            n_elements[tensor.blocks] +=
                tensor.shape[0] * tensor.shape[1] * (tensor.shape.size() > 2 ? tensor.shape[2] : 1);
    if (n_elements.empty()) return;
    const auto most = std::max_element(n_elements.begin(), n_elements.end(), [](const auto& a, const auto& b) {
        return a.second != b.second ? a.second < b.second : a.first < b.first;
    });
    source.type = type_for(*most->first);
    source.exact_tables = most->first->take_apart != nullptr;
    source.info.emplace_back("source_type", most->first->name);
}

/// By the file's own list, in which a name may be of nothing, or by the usual one.
TensorPlace place_in(std::span<const TensorName> own, Role role) {
    const bool says = std::ranges::find(own, role, &TensorName::role) != own.end();
    return says || !place_of(own, role).name.empty() ? place_of(own, role) : place_of(kGgufNames, role);
}

class GgufModel {
public:
    GgufModel(const std::filesystem::path& path, Mapping mapping, bool next_head = false)
        : tensors_(read_gguf_parts(path, std::move(mapping))), config_(read_gguf_config(file())) {
        if (next_head) keep_next_head(file(), config_);
    }

    ModelSource read(bool with_tokenizer, std::vector<ScaledGgufLora> loras) {
        for (ScaledGgufLora& lora : loras) {
            check_architecture(file(), lora.adapter);
            tensors_.add_products(lora.adapter.products, lora.scale);
            weights_.keep(std::move(lora.adapter.mappings));
        }
        ModelSource source = shaped_source(config_);
        const Stack& stack = stack_of(config_, source);
        for_each_tensor(stack, index_of(config_), [&](const TensorSpec& spec) { add(stack, spec); });
        set_type(file(), source);
        source.notes = config_.notes;
        check_unviewed(source.notes);
        add_task(config_, source);
        source.info.insert(source.info.begin(),
                           {{"name", config_.name}, {"architecture", file().text("general.architecture")}});
        if (with_tokenizer) source.tokenizer = tokenizer_section_from_gguf(file(), stack.vocab_size, source.notes);
        add_chat_info(file(), source);
        if (stack.has_output_head) add_sampling_info(file(), source);
        weights_.keep(tensors_.release());
        set_readers(std::move(weights_), source, true);
        return source;
    }

private:
    friend class GgufAdapter;
    [[nodiscard]] const Gguf& file() const { return tensors_.file(); }

    std::string full_name(const std::string& name, std::uint32_t layer) const {
        if (!name.starts_with('#')) return name;
        if (!config_.layer_numbers.empty()) layer = config_.layer_numbers[layer];
        return std::string(config_.family->prefix) + "blk." + std::to_string(layer) + "." + name.substr(1);
    }

    TensorPlace place(Role role) const {
        const bool is_of_head =
            std::ranges::find(config_.next_head, role, &TensorName::role) != config_.next_head.end();
        return is_of_head ? place_of(config_.next_head, role) : place_in(config_.names, role);
    }

    void add(const Stack& stack, const TensorSpec& spec) {
        if (spec.role == Role::rope_frequencies) return weights_.add_computed(spec, frequencies(spec.layer));
        if (spec.role == Role::alibi_slopes) return weights_.add_computed(spec, config_.slopes);
        if (spec.role == Role::xielu) return weights_.add_computed(spec, config_.xielu.at(spec.layer));
        if (is_norm_weight(spec.role) && !config_.family->norm_weights)
            return weights_.add_computed(spec, std::vector<float>(spec.n_cols, 1.0f));
        if (spec.role >= Role::head_map && spec.role <= Role::head_norm_bias) return add_head(spec);
        if (spec.role == Role::embedding_norm && stack.joins_rows) return add_joined_norms(spec);
        const Block& block = stack.block(spec.layer);
        const bool narrow = spec.role == Role::query && block.latent.query_rank;
        const auto [usual, within, gate] = narrow ? TensorPlace{"#attn_q_b.weight"} : place(spec.role);
        // Biases of norms of queries and keys are in no file, nor are weights of values' norms.
        if (usual.empty())
            return weights_.add_computed(spec,
                                         std::vector<float>(spec.n_cols, is_norm_weight(spec.role) ? 1.0f : 0.0f));
        if (spec.role == Role::relative_bias) return add_relative(stack.blocks[spec.layer], spec, usual);
        const bool vector = spec.layout == Layout::vector;
        const std::string name = full_name(usual, spec.layer);
        if (spec.role == Role::latent_query || spec.role == Role::latent_value) return add_latent(block, spec, name);
        if (spec.role >= Role::expert_up && spec.role <= Role::expert_down_bias)
            return add_experts(block, spec, name, gate);
        if ((spec.role == Role::up || spec.role == Role::up_bias) && block.feed.gated)
            return add_gated(block.feed.d_ff, spec, name, gate);
        if (spec.role == Role::shared_up && block.feed.gated)
            return add_gated(block.experts.shared_d_ff, spec, name, gate);
        if (is_remade(spec.role) || spec.role == Role::recurrent_skip) return add_remade(stack.recurrent, spec, name);
        if (within != Within::alone) {
            const SourceRows part = part_of(config_, spec, within);
            RowOrder order = rotary_order(stack, spec, config_.ropes);
            order.run = part.run, order.stride = part.stride;
            return weights_.add(spec, tensors_.view(name, vector, spec.n_cols, part.begin, part.n_all), order);
        }
        if (spec.role == Role::recurrent_state_norm && !stack.recurrent.shared_norm)
            return weights_.add(
                spec, tensors_.view(name, true, 1, 0, spec.n_cols, spec.n_cols / stack.recurrent.n_norm_groups));
        TensorView own = projection_view(block, spec, name, vector ? spec.n_cols : spec.n_rows);
        scale_rows(config_.factors, spec, own);
        weights_.add(spec, std::move(own), rotary_order(stack, spec, config_.ropes));
    }

    /// A next-token head's norm of embeddings and, behind it, of rows.
    void add_joined_norms(const TensorSpec& spec) {
        const std::uint32_t n = spec.n_cols / 2;
        std::vector<float> both(spec.n_cols);
        read_vector(tensors_.view(full_name("#nextn.enorm.weight", 0), true, n, 0, n), n, both.data());
        read_vector(tensors_.view(full_name("#nextn.hnorm.weight", 0), true, n, 0, n), n, both.data() + n);
        weights_.add_computed(spec, std::move(both));
    }

    /// A kernel's rows of channels, in a tensor for queries, one for keys and one for values.
    TensorView kernel_view(const RecurrentShape& r, const std::string& name) {
        std::array<TensorView, 3> parts;
        const std::uint32_t n_keys = r.query_width(), widths[] = {n_keys, n_keys, r.value_width()};
        for (std::size_t i = 0; i < parts.size(); ++i)
            parts[i] = tensors_.view(std::string(name).replace(name.find('*'), 1, 1, "qkv"[i]), false, r.n_taps, 0,
                                     widths[i], 0, widths[i]);
        TensorView all = parts[0];
        all.dequantize = [parts, n_keys, n = r.n_taps](std::uint64_t row, float* out) {
            const std::uint64_t part = std::min<std::uint64_t>(row / n_keys, 2);
            read_row(parts[part], row - part * n_keys, n, out);
        };
        return all;
    }

    /// A recurrent part's vector. Kernels have a row for each channel, decays and skips one for each head.
    void add_remade(const RecurrentShape& r, const TensorSpec& spec, const std::string& name) {
        const std::uint32_t n_cols = row_length(r, spec.role);
        if (name.find('*') != name.npos)
            return weights_.add_computed(spec, recurrent_vector(r, config_.recurrent_rows, spec, kernel_view(r, name)));
        weights_.add_computed(spec, recurrent_vector(r, config_.recurrent_rows, spec,
                                                     tensors_.view(name, is_plain_vector(r, spec.role), n_cols, 0,
                                                                   spec.n_cols / n_cols)));
    }

    /// A matrix behind the pooling, or what follows it.
    void add_head(const TensorSpec& spec) {
        const bool vector = spec.layout == Layout::vector;
        const std::uint32_t n_rows = vector ? spec.n_cols : spec.n_rows + config_.subtracts_labels;
        const TensorView found = tensors_.view(name_in_head(config_, spec), vector, spec.n_cols, 0, n_rows);
        if (!config_.subtracts_labels) return weights_.add(spec, found);
        weights_.add_computed(spec, score_row(found, {0, 1}, 1.0f, spec.n_cols));
    }

    void add_relative(const Block& block, const TensorSpec& spec, const std::string& name) {
        const std::uint32_t n_buckets = config_.n_relative_buckets;
        const TensorView table = tensors_.view(name, false, spec.n_cols, 0, n_buckets);
        if (table.dequantize) tensors_.refuse(name, "expected F32, F16 or BF16, got a quantized type");
        weights_.add_computed(spec, relative_bias_rows(table, n_buckets, block.attention.causal,
                                                       block.attention.relative_max_distance, spec.n_cols));
    }

    /// A gate and `up`, in a tensor each or one above the other.
    void add_gated(std::uint32_t d_ff, const TensorSpec& spec, const std::string& name, const std::string& gate_name) {
        const bool vector = spec.layout == Layout::vector, stacked = config_.family->stacked_up;
        const std::string gate = stacked ? name : full_name(gate_name, spec.layer);
        const std::uint64_t n_all = (stacked ? 2 : 1) * std::uint64_t{d_ff};
        TensorView up = tensors_.view(name, vector, spec.n_cols, stacked ? d_ff : 0, n_all);
        TensorView of_gate = tensors_.view(gate, vector, spec.n_cols, 0, n_all);
        if (tensors_.is_replaced()) {
            widen_product(of_gate, spec.n_cols / 2, 0);
            widen_product(up, spec.n_cols / 2, spec.n_cols / 2);
        }
        weights_.add_gated(spec, of_gate, up, d_ff);
    }

    /// Every expert's rows of one tensor, or of a gate's and an up's.
    void add_experts(const Block& block, const TensorSpec& spec, const std::string& name,
                     const std::string& gate_name) {
        const bool up = spec.role == Role::expert_up || spec.role == Role::expert_up_bias,
                   gated = up && block.feed.gated;
        const bool vector = spec.layout == Layout::vector;
        const std::uint32_t n_rows = up ? block.feed.d_ff : config_.stack.d_model;
        const std::string both = full_name("#ffn_gate_up_exps.weight", spec.layer);  // a gate above an up
        const bool fused = gated && !vector && tensors_.has(both);
        const std::uint64_t n_all = (fused ? 2 : 1) * std::uint64_t{n_rows} * block.experts.n;
        weights_.add_each(spec, block.experts.n, n_rows, gated, [&](std::uint64_t expert, bool is_up) {
            const std::string all = fused ? both : gated && !is_up ? full_name(gate_name, spec.layer) : name;
            if (tensors_.has(alone_name(all, 0)))
                return tensors_.view(alone_name(all, expert), vector, spec.n_cols, 0, n_rows);
            return tensors_.view(all, vector, spec.n_cols, (fused ? 2 * expert + is_up : expert) * n_rows, n_all, 0,
                                 block.experts.n);
        });
    }

    /// Each head's map, in a tensor for keys and one for values; older files have both one below the other, keys' transposed.
    void add_latent(const Block& block, const TensorSpec& spec, const std::string& name) {
        const bool is_key = spec.role == Role::latent_query;
        const std::uint32_t rank = block.attention.value_head_dim, n_value = block.latent.value_dim;
        const std::uint32_t n_rows = is_key ? rank : n_value;
        const std::uint64_t n_heads = block.attention.n_heads;
        const std::string both = full_name("#attn_kv_b.weight", spec.layer);
        if (tensors_.has(name) || !tensors_.has(both))
            return weights_.add_each(spec, block.attention.n_heads, n_rows, false, [&](std::uint64_t head, bool) {
                return tensors_.view(name, false, spec.n_cols, head * n_rows, n_heads * n_rows, 0, n_heads);
            });
        const TensorView all = tensors_.view(both, false, rank, 0, n_heads * (block.latent.query_dim + n_value));
        weights_.add_each(spec, block.attention.n_heads, n_rows, false,
                          [&](std::uint32_t head, bool) { return latent_head(all, block, is_key, head); });
    }

    /// Query, key and value may lie in one tensor, one below the other.
    TensorView projection_view(const Block& b, const TensorSpec& spec, const std::string& name, std::uint64_t n_rows) {
        const bool vector = spec.layout == Layout::vector;
        const std::string fused = full_name(vector ? "#attn_qkv.bias" : "#attn_qkv.weight", spec.layer);
        const bool is_fused = tensors_.has(fused) && !tensors_.has(name);
        if (is_fused && spec.role >= Role::query && spec.role <= Role::value_bias) {
            const SourceRows part = projection_part(b, spec.role, Within::stacked);
            return tensors_.view(fused, vector, spec.n_cols, part.begin, part.n_all);
        }
        // Values may be the keys before their norm, and then have no tensor of their own.
        if (spec.role == Role::value && b.attention.value_norm && !tensors_.has(name))
            return tensors_.view(full_name("#attn_k.weight", spec.layer), vector, spec.n_cols, 0, n_rows);
        const bool of_heads =
            is_norm_weight(spec.role) && is_turned(spec.role) && b.attention.head_norm == HeadNorm::each;
        return tensors_.view(name, vector, spec.n_cols, 0, n_rows, of_heads ? b.attention.head_dim : 0);
    }

    /// Radians per position; Llama 3 divides them by the numbers of a tensor of its own, Phi 3 by one of two.
    std::vector<float> frequencies(std::uint32_t block) {
        const AttentionShape& attention = config_.stack.blocks[block].attention;
        const std::uint32_t n = attention.rotary_dim / 2;
        Rope rope = config_.ropes[block];
        if (rope.scaling == RopeScaling::divided) {
            rope.divisors = tensors_.divisors("rope_factors_short.weight", n);
            if (config_.stack.rope_original_positions)
                rope.long_divisors = tensors_.divisors("rope_factors_long.weight", n);
        }
        std::vector<float> result = rope_frequencies(rope, attention.rotary_dim);
        if (config_.family->plain_windows && attention.window) return result;
        if (!tensors_.has("rope_freqs.weight")) return result;
        const std::vector<float> factors = tensors_.divisors("rope_freqs.weight", n);
        for (std::size_t i = 0; i < result.size(); ++i) result[i] /= factors[i % n];
        return result;
    }

    /// Whether the model has no use for it. Encoders stand alone: what predicts from them is another model's. So does what predicts
    /// a token behind the next.
    bool is_unused(std::string_view name) const {
        const auto ignores = config_.family->ignores;
        if ((config_.is_encoder && name.starts_with("cls.")) || (ignores && ignores(name))) return true;
        for (std::uint32_t i = 0; i < config_.n_skipped_layers; ++i)
            if (name.starts_with(full_name("#", config_.stack.n_layers + i))) return true;
        return name == "rope_factors_long.weight" && tensors_.used("rope_factors_short.weight");
    }

    /// Any other tensor that nothing reads means a model of another shape than its metadata says.
    void check_unviewed(std::vector<std::string>& notes) const {
        std::vector<std::string> unused;
        const bool is_head = config_.stack.joins_rows;
        for (const auto& [name, tensor] : file().tensors()) {
            if (tensors_.used(name) || (is_head && !name.starts_with(full_name("#", 0)))) continue;
            if (!is_unused(name)) tensors_.refuse(name, "expected only tensors that the metadata calls for");
            unused.push_back(name);
        }
        if (!unused.empty()) notes.push_back(note_of_unused(file().path().string(), unused));
    }

    GgufTensors tensors_;
    GgufConfig config_;
    MappedWeights weights_;
};

/// An adapter's products in place of the matrices of its model's file.
class GgufAdapter {
public:
    explicit GgufAdapter(const std::filesystem::path& base) : model_(base, map_source(base)) {}

    ModelSource join(GgufLora adapter) {
        const GgufConfig& config = model_.config_;
        check_architecture(model_.file(), adapter);
        ModelSource source = shaped_source(config);
        Stack& stack = stack_of(config, source);
        LoraJoiner& products = model_.tensors_.replace_by(std::move(adapter.products));
        stack.adapter_rank = products.rank();
        stack.adapted = kAllAdapted;
        for_each_tensor(stack, index_of(config), [&](const TensorSpec& spec) {
            const auto add_matrix = [&](const TensorSpec& of_model) { model_.add(stack, of_model); };
            if (const Adapted matrix = adapted_by(spec.role); matrix != Adapted::none)
                products.add(stack, spec, matrix, add_matrix, model_.weights_);
        });
        products.check_all_used();
        stack.adapted = products.adapted();
        require(check(source.config), adapter.path.string());
        source.info = {{"name", config.name}, {"architecture", adapter.architecture}};
        model_.weights_.keep(std::move(adapter.mappings));
        set_readers(std::move(model_.weights_), source);
        return source;
    }

private:
    GgufModel model_;
};

}  // namespace

ModelSource read_gguf(const std::filesystem::path& path, Mapping mapping, bool with_tokenizer,
                      std::vector<ScaledGgufLora> loras, bool next_head) {
    return GgufModel(path, std::move(mapping), next_head).read(with_tokenizer, std::move(loras));
}

ModelSource join_gguf_lora(const std::filesystem::path& path, GgufLora adapter) {
    return GgufAdapter(path).join(std::move(adapter));
}

}  // namespace fovea
