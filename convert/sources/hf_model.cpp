#include "convert/sources/hf_model.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "convert/packed/module.h"
#include "convert/sources/hf_names.h"
#include "convert/sources/latent_rows.h"
#include "convert/sources/lora.h"
#include "convert/sources/lora_file.h"
#include "convert/sources/lora_joiner.h"
#include "convert/sources/recurrent_rows.h"
#include "convert/sources/score_row.h"
#include "convert/sources/source_rows.h"
#include "convert/sources/source_tensors.h"
#include "convert/sources/tied_output.h"
#include "convert/weights/mapped_table.h"
#include "convert/weights/mapped_weights.h"
#include "convert/weights/relative_bias.h"
#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {
namespace {

bool is_head(Role role) { return role >= Role::head_map && role <= Role::head_norm_bias; }

/// What follows from the configuration alone.
std::optional<std::vector<float>> computed_values(const HfConfig& config, const Stack& stack, const TensorSpec& spec) {
    if (spec.role == Role::rope_frequencies)
        return rope_frequencies(config.ropes[spec.layer], stack.blocks[spec.layer].attention.rotary_dim);
    if (spec.role == Role::distance_buckets) return config.distances.buckets.of;
    if (spec.role == Role::alibi_slopes) return config.slopes[spec.layer];
    if (spec.role == Role::position_embedding && !config.positions.empty()) return config.positions;
    return {};
}

/// What transformers calls all experts' matrices in one tensor, where a family has one for each.
std::string of_all_experts(const std::string& name, bool up) {
    const std::size_t number = name.find('*');
    return number == name.npos ? "" : name.substr(0, number) + (up ? "gate_up_proj" : "down_proj");
}

/// A table's rows, each with the first row of another added.
std::vector<float> with_first_row(const TensorView& table, const TensorView& others, const TensorSpec& spec) {
    std::vector<float> row(spec.n_cols), rows(std::size_t{spec.n_rows} * spec.n_cols);
    read_strided_row(others, 0, spec.n_cols, row.data());
    for (std::uint32_t i = 0; i < spec.n_rows; ++i) {
        float* own = rows.data() + std::size_t{i} * spec.n_cols;
        read_strided_row(table, i, spec.n_cols, own);
        for (std::uint32_t col = 0; col < spec.n_cols; ++col) own[col] += row[col];
    }
    return rows;
}

/// Adds to `values` what a vector has.
void add_vector(const TensorView& view, std::vector<float>& values) {
    std::vector<float> added(values.size());
    read_vector(view, static_cast<std::uint32_t>(values.size()), added.data());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += added[i];
}

/// What quantizers add to modules that have no bias.
bool is_empty_bias(const Safetensors& files, const std::string& name, const SourceTensor& tensor) {
    if (!name.ends_with(".bias")) return false;
    const auto matrix = files.tensors.find(name.substr(0, name.size() - 4) + "weight");
    return matrix != files.tensors.end() && matrix->second.packed && is_zero(tensor);
}

/// The shape that a tensor must have, of which `found` is one of that name. A vector may be a matrix of one row.
std::vector<std::uint64_t> wanted_shape(const SourceTensor* found, bool vector, bool transposed, const SourceRows& part,
                                        std::uint64_t n_cols, std::uint64_t in_rows) {
    if (!vector) return transposed ? std::vector{n_cols, part.n_all} : std::vector{part.n_all, n_cols};
    const bool one_row = found && found->shape.size() == 2 && found->shape[0] == 1;
    std::vector<std::uint64_t> wanted = {part.n_all};
    if (one_row) wanted.insert(wanted.begin(), 1);
    if (in_rows && !(one_row && wanted == found->shape)) wanted = {part.n_all / in_rows, in_rows};
    return wanted;
}

/// Whether the model leaves out the source's tensor of that name.
bool has_no_use(const HfConfig& config, const HfNames& names, const std::string& name) {
    const bool without_head = config.stack().tied_output || config.output_from_embedding || config.encodes;
    return (without_head && names.is_at(Role::output, name)) || names.is_unused(name) ||
           (config.encodes && names.is_at(Role::output_bias, name));
}

/// A vector's values, each with 1 added.
std::vector<float> one_more(const TensorView& vector, std::uint32_t n) {
    std::vector<float> values(n);
    read_vector(vector, n, values.data());
    for (float& value : values) value = 1.0f + value;
    return values;
}

class HfTensors : private SourceTensors {
public:
    HfTensors(HfConfig config, Safetensors weights)
        : SourceTensors(std::move(weights)), config_(std::move(config)), names_(config_, files_) {}

    ModelSource join() {
        const std::string head = names_.place(Role::output).name;
        settle_tied_output(names_.older(names_.full(place_of(config_.family->names, Role::token_embedding).name)),
                           head.empty() ? head : names_.older(names_.full(head)), config_, files_);
        if (config_.family->settle) config_.family->settle(names_, config_);
        for (Safetensors& files : config_.map_files) keep(files);
        each_type_ = config_.quantization.has_value();
        assemble(config_.source);
        if (config_.quantization) config_.source.info.emplace_back("source_type", config_.quantization->name);
        return std::move(config_.source);
    }

    /// See join_lora.
    ModelSource join_products(LoraFolder folder) {
        Stack& stack = config_.stack();
        if (config_.family->settle) config_.family->settle(names_, config_);
        LoraJoiner& products = products_.emplace(products_of(folder, files_));
        stack.adapter_rank = products.rank(), stack.adapted = kAllAdapted;
        for_each_tensor(stack, config_.stack_index(), [&](const TensorSpec& spec) {
            const auto add_matrix = [&](const TensorSpec& of_model) { add(stack, of_model); };
            if (const Adapted matrix = adapted_by(spec.role); matrix != Adapted::none)
                products.add(stack, spec, matrix, add_matrix, weights_);
            if (spec.role >= Role::adapter_latent_query_in)
                products.add_latent(stack, spec,
                                    names_.full(place_of(config_.family->names, Role::latent_query).name, spec.layer),
                                    weights_);
        });
        products.check_all_used();
        stack.adapted = products.adapted();
        require(check(config_.source.config), folder.config.string());
        keep(folder.files);
        set_readers(std::move(weights_), config_.source);
        return std::move(config_.source);
    }

private:
    /// Rows of the model's tensor of that name, or of an adapter's product for it.
    TensorView view(const std::string& name, bool vector, const SourceRows& part, std::uint64_t n_cols,
                    std::uint64_t in_rows = 0) {
        return products_ ? products_->view(name, part) : view_in(files_, name, vector, part, n_cols, in_rows);
    }

    /// Rows of the tensor of that name as a matrix of n_cols columns (a vector: of one), after checking it.
    /// With `in_rows` a vector is a matrix there, whose rows are so long.
    TensorView view_in(const Safetensors& from, const std::string& name, bool vector, const SourceRows& part,
                       std::uint64_t n_cols, std::uint64_t in_rows = 0) {
        const auto found = from.tensors.find(name);
        const SourceTensor* const tensor = found == from.tensors.end() ? nullptr : &found->second;
        const bool packed = tensor && tensor->packed;
        const bool transposed = config_.family->transposed && !vector && !packed && names_.is_of_layers(name);
        TensorView result =
            floats(from, name, wanted_shape(tensor, vector, transposed, part, n_cols, in_rows), !vector);
        result.row_stride = vector || transposed ? 1 : n_cols;
        result.col_stride = transposed ? part.n_all : 1;
        if (packed)
            read_packed(*tensor, part.begin, result);
        else
            result.data += part.begin * result.row_stride * (result.type == Type::f32 ? 4 : 2);
        if (!tensor->added.empty())
            add_low_ranks(tensor->added, from.files[tensor->file].string(), part, n_cols, vector, result);
        return result;
    }

    void add(const Stack& stack, const TensorSpec& spec) override {
        if (auto values = computed_values(config_, stack, spec)) return weights_.add_computed(spec, std::move(*values));
        if (!config_.map_files.empty() && is_head(spec.role))
            return add_whole(config_.map_files.at(spec.layer),
                             spec.role == Role::head_map ? "linear.weight" : "linear.bias", spec);
        if (config_.table_maps.count(spec.role)) return add_mapped_table(spec);
        if (config_.added_rows.count(spec.role)) return add_with_row(spec);
        const TensorPlace place = names_.place(spec);
        // A family may omit only the weights and biases of norms.
        if (place.name.empty())
            return weights_.add_computed(spec, std::vector(spec.n_cols, is_norm_weight(spec.role) ? 1.0f : 0.0f));
        const std::string name = names_.older(names_.full(place.name, spec));
        if (is_head(spec.role)) return add_whole(files_, name, spec);
        if (spec.role == Role::relative_bias) return add_relative(stack.blocks[spec.layer], spec, name);
        if (spec.role == Role::distance_keys || spec.role == Role::distance_queries)
            return add_distances(spec, place.name);
        const Block& block = stack.block(spec.layer);
        const bool vector = spec.layout == Layout::vector;
        if (spec.role >= Role::expert_up && spec.role <= Role::expert_down_bias)
            return add_experts(block, spec, place, name);
        if (spec.role == Role::latent_query || spec.role == Role::latent_value) return add_latent(block, spec, name);
        if (is_remade(spec.role)) return add_remade(stack.recurrent, spec, name);
        const bool shared = spec.role == Role::shared_up;
        if (block.feed.gated && (shared || spec.role == Role::up || spec.role == Role::up_bias))
            return add_gated(shared ? block.experts.shared_d_ff : block.feed.d_ff, spec, place, name);
        const SourceRows part = rows_of(config_, spec, place.within);
        RowOrder order = rotary_order(stack, spec, config_.ropes);
        order.run = part.run;
        order.stride = part.stride;
        const bool of_heads =
            is_turned(spec.role) && is_norm_weight(spec.role) && block.attention.head_norm == HeadNorm::each;
        if (name.find('*') != name.npos)
            return weights_.add_computed(spec, of_each_head(name, block, spec.n_cols), order);
        TensorView found = view(name, vector, part, spec.n_cols, of_heads ? block.attention.head_dim : 0);
        scale_rows(config_.factors, spec, found);
        const bool less_one = config_.family->norms_less_one && spec.role != Role::recurrent_state_norm;
        if (!less_one || !is_norm_weight(spec.role)) return weights_.add(spec, found, order);
        weights_.add_computed(spec, one_more(plain(found, name), spec.n_cols), order);
    }

    /// A vector whose parts, one for each head, are tensors.
    std::vector<float> of_each_head(const std::string& name, const Block& block, std::uint32_t n) {
        std::vector<float> values(n);
        for (std::uint32_t i = 0; i < n / block.attention.head_dim; ++i) {
            std::string one = name;
            one.replace(one.find('*'), 1, std::to_string(i));
            const TensorView part = plain(view(one, true, {.n_all = block.attention.head_dim}, 1), one);
            read_vector(part, block.attention.head_dim, values.data() + std::size_t{i} * block.attention.head_dim);
        }
        return values;
    }

    const TensorView& plain(const TensorView& found, const std::string& name) const {
        if (!found.dequantize) return found;
        throw host::Error(files_.files.front().string() + ": tensor " + name + ": expected plain floats, got others");
    }

    void add_whole(const Safetensors& from, const std::string& name, const TensorSpec& spec) {
        const bool vector = spec.layout == Layout::vector;
        const SourceRows all{.n_all = vector ? spec.n_cols : config_.scored ? config_.stack().vocab_size : spec.n_rows};
        const TensorView found = view_in(from, name, vector, all, spec.n_cols);
        if (!config_.scored) return weights_.add(spec, found);
        weights_.add_computed(spec, score_row(found, *config_.scored, config_.left_out.scale, spec.n_cols));
    }

    /// A table whose every row has the first row of another added.
    void add_with_row(const TensorSpec& spec) {
        const auto& [other_name, n_others] = config_.added_rows.at(spec.role);
        const std::string name = names_.full(names_.place(spec).name), others_name = names_.full(other_name);
        const TensorView table = plain(view(name, false, {.n_all = spec.n_rows}, spec.n_cols), name),
                         others = plain(view(others_name, false, {.n_all = n_others}, spec.n_cols), others_name);
        weights_.add_computed(spec, with_first_row(table, others, spec));
    }

    /// A table times the matrix that the source has behind it or, of an output head, before it.
    void add_mapped_table(const TensorSpec& spec) {
        const bool is_output = spec.role == Role::output;
        const TensorPlace place = place_of(
            config_.family->names, is_output && config_.output_from_embedding ? Role::token_embedding : spec.role);
        const std::uint32_t inner = config_.table_width;
        const TensorView table = view(names_.full(place.name), false, {.n_all = spec.n_rows}, inner);
        const TensorView matrix = view(names_.full(config_.table_maps.at(spec.role)), false,
                                       {.n_all = is_output ? inner : spec.n_cols}, is_output ? spec.n_cols : inner);
        weights_.add(spec, mapped_table(table, matrix, inner, spec.n_cols, is_output));
    }

    /// A recurrent part's vector that is another in the source. A bias of all maps is the step's too.
    void add_remade(const RecurrentShape& r, const TensorSpec& spec, const std::string& name) {
        std::vector<float> values(spec.n_cols);
        add_vector(plain(floats(files_, name, shape_before(r, spec.role, spec.n_cols), false), name), values);
        if (spec.role == Role::recurrent_step_bias && r.input_bias && r.convolves_keys()) {
            const std::string maps =
                names_.full(place_of(config_.family->names, Role::recurrent_query_bias).name, spec);
            add_vector(plain(view(maps, true, rows_of(config_, spec, Within::joined), 1), maps), values);
        }
        weights_.add_computed(spec, remade(config_, spec.role, std::move(values)));
    }

    void add_relative(const Block& block, const TensorSpec& spec, const std::string& name) {
        const std::uint32_t n_buckets = config_.n_relative_buckets;
        const TensorView table = plain(view(name, false, {.n_all = n_buckets}, spec.n_cols), name);
        weights_.add_computed(spec, relative_bias_rows(table, n_buckets, block.attention.causal,
                                                       block.attention.relative_max_distance, spec.n_cols));
    }

    void add_distances(const TensorSpec& spec, const std::string& module) {
        const auto by_name = [&](const std::string& name, std::uint32_t n_rows, std::uint32_t n_cols) {
            const std::string full = names_.older(names_.full(name, spec.layer));
            const TensorView found = view(full, n_cols == 1, {.n_all = n_rows}, n_cols);
            return n_cols == 1 ? plain(found, full) : found;
        };
        weights_.add_computed(spec, distance_vectors(config_.distances, config_.stack(), spec, module, by_name));
    }

    /// A gate and `up`, in a tensor each or one above the other.
    void add_gated(std::uint32_t d_ff, const TensorSpec& spec, const TensorPlace& place, const std::string& name) {
        const bool vector = spec.layout == Layout::vector, first = place.within == Within::above_gate,
                   stacked = place.within == Within::stacked || first;
        const std::string gate_name = stacked ? name : names_.full(place.gate, spec);
        const std::uint64_t n_all = stacked ? 2 * std::uint64_t{d_ff} : d_ff;
        TensorView up = view(name, vector, {.n_all = n_all, .begin = stacked && !first ? d_ff : 0}, spec.n_cols);
        TensorView gate = view(gate_name, vector, {.n_all = n_all, .begin = first ? d_ff : 0}, spec.n_cols);
        scale_rows(config_.factors, spec, gate);
        if (products_) {
            widen_product(gate, spec.n_cols / 2, 0);
            widen_product(up, spec.n_cols / 2, spec.n_cols / 2);
        }
        if (gate.type != up.type && !gate.dequantize && !up.dequantize)
            throw host::Error("tensor " + gate_name + ": expected the type of " + name);
        weights_.add_gated(spec, gate, up, d_ff);
    }

    /// A tensor, or a gate and an up, for each expert.
    void add_experts(const Block& block, const TensorSpec& spec, const TensorPlace& place, const std::string& name) {
        const bool up = spec.role == Role::expert_up || spec.role == Role::expert_up_bias,
                   gated = up && block.feed.gated;
        const std::uint32_t n_rows = up ? block.feed.d_ff : config_.stack().d_model;
        if (const std::string all = of_all_experts(name, up); files_.tensors.count(all))
            return weights_.add_each(spec, block.experts.n, n_rows, gated,
                                     experts(block, spec, all, n_rows, gated, Within::fused));
        if (place.within != Within::alone)
            return weights_.add_each(spec, block.experts.n, n_rows, gated,
                                     experts(block, spec, name, n_rows, gated, place.within,
                                             place.gate.empty() ? "" : names_.full(place.gate, spec)));
        const std::string gate_name = gated ? names_.full(place.gate, spec) : name;
        Type of_gate = Type::f32;
        weights_.add_each(spec, block.experts.n, n_rows, gated, [&](std::uint32_t i, bool is_up) {
            std::string numbered = is_up ? name : gate_name;
            numbered.replace(numbered.find('*'), 1, std::to_string(i));
            TensorView found = view(numbered, false, {.n_all = n_rows}, spec.n_cols);
            if (is_up && found.type != of_gate)
                throw host::Error("tensor " + gate_name + ", * = " + std::to_string(i) + ": expected the type of " +
                                  name);
            of_gate = found.type;
            return found;
        });
    }

    /// Per head of one tensor, the rows that make keys, transposed, or those that make values.
    void add_latent(const Block& b, const TensorSpec& spec, const std::string& name) {
        const std::uint64_t n_all = std::uint64_t{b.attention.n_heads} * (b.latent.query_dim + b.latent.value_dim);
        const bool is_key = spec.role == Role::latent_query;
        const TensorView all = view(name, false, {.n_all = n_all}, b.attention.value_head_dim);
        weights_.add_each(spec, b.attention.n_heads, is_key ? b.attention.value_head_dim : b.latent.value_dim, false,
                          [&](std::uint32_t head, bool) { return latent_head(all, b, is_key, head); });
    }

    Unviewed without_view(const std::string& name, const SourceTensor& tensor) const override {
        if (!tensor.added.empty() && !config_.is_text_part)  // whose layers of pictures are noted as left out
            throw host::Error(tensor.added.front().name + ": expected a matrix that the model multiplies by, got " +
                              name + ", which it leaves out");
        if (is_saved_buffer(name, tensor) || is_empty_bias(files_, name, tensor)) return Unviewed::computed;
        return has_no_use(config_, names_, name) ? Unviewed::noted : Unviewed::refused;
    }

    HfConfig config_;
    const HfNames names_;
    std::optional<LoraJoiner> products_;  // of an adapter's file: what `view` has in place of the model's tensors
};

}  // namespace

ModelSource join_hf_model(HfConfig config, Safetensors weights) {
    if (config.family->prepare) config.family->prepare(config, weights);
    return HfTensors(std::move(config), std::move(weights)).join();
}

ModelSource join_lora(HfConfig config, Safetensors weights, LoraFolder folder) {
    if (!folder.replaced.empty())
        throw host::Error(folder.config.string() + ": expected products alone, got " + folder.replaced.begin()->first +
                          "; convert MODEL --lora merges it");
    if (folder.products.empty())
        throw host::Error(folder.config.string() + ": expected at least one product, got none");
    if (!config.sharing_layers.empty())
        throw host::Error(
            folder.config.string() +
            ": expected a model whose layers have matrices of their own, got one whose layers share some; "
            "convert MODEL --lora merges it");
    for (const auto& [role, factor] : config.factors)
        if (factor != 1.0f)
            throw host::Error(folder.config.string() + ": expected a model without multipliers of maps, got one of " +
                              std::string(role_word(role)) + "; convert MODEL --lora merges it");
    return HfTensors(std::move(config), std::move(weights)).join_products(std::move(folder));
}

}  // namespace fovea
