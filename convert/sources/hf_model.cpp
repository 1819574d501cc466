#include "convert/sources/hf_model.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "convert/families/family.h"
#include "convert/formats/mxfp4.h"
#include "convert/packed/module.h"
#include "convert/sources/latent_rows.h"
#include "convert/sources/lora.h"
#include "convert/sources/lora_file.h"
#include "convert/sources/lora_joiner.h"
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

class HfTensors : private SourceTensors, private Lookup {
public:
    HfTensors(HfConfig config, Safetensors weights)
        : SourceTensors(std::move(weights)), config_(std::move(config)), family_(*config_.family) {}

    ModelSource join() {
        find_prefix();
        const std::string head = spelled({Role::output, config_.stack_index(), 0, Layout::panels, 0, 0});
        settle_tied_output(older_name(full_name(name_of(Role::token_embedding)->name, 0)),
                           head.empty() ? head : older_name(full_name(head, 0)), config_, files_);
        if (family_.settle) family_.settle(*this, config_);
        for (Safetensors& files : config_.map_files) weights_.keep(std::move(files.mappings));
        each_type_ = config_.quantization.has_value();
        assemble(config_.source);
        if (config_.quantization) config_.source.info.emplace_back("source_type", config_.quantization->name);
        return std::move(config_.source);
    }

    /// See join_lora.
    ModelSource join_products(LoraFolder folder) {
        find_prefix();
        Stack& stack = config_.stack();
        if (family_.settle) family_.settle(*this, config_);
        LoraJoiner& products = products_.emplace(folder, files_);
        stack.adapter_rank = products.rank();
        stack.adapted = kAllAdapted;
        for_each_tensor(stack, config_.stack_index(), [&](const TensorSpec& spec) {
            const auto add_matrix = [&](const TensorSpec& of_model) { add(stack, of_model); };
            if (const Adapted matrix = adapted_by(spec.role); matrix != Adapted::none)
                products.add(stack, spec, matrix, add_matrix, weights_);
            if (spec.role >= Role::adapter_latent_query_in)
                products.add_latent(stack, spec, full_name(name_of(Role::latent_query)->name, spec.layer), weights_);
        });
        products.check_all_used();
        stack.adapted = products.adapted();
        require(check(config_.source.config), folder.config.string());
        weights_.keep(std::move(folder.files.mappings));
        set_readers(std::move(weights_), config_.source);
        return std::move(config_.source);
    }

private:
    /// Checkpoints of the bare model, without its head's class around it, lack the first part of every name, or its parts.
    void find_prefix() {
        const std::string first(name_of(Role::token_embedding)->name);
        std::string_view left = family_.outer;
        const auto begins_so = [&] { return files_.tensors.count(older_name(std::string(left) + first)) != 0; };
        while (!left.empty() && !begins_so()) left.remove_prefix(left.find('.') + 1);
        prefix_ = begins_so() ? left : family_.outer;
    }

    /// What the configuration calls a tensor, or the family's list; empty: neither names it.
    std::string spelled(const TensorSpec& spec) const {
        if (const auto own = config_.names.find({spec.role, spec.layer});
            own != config_.names.end() && is_main(spec.stack))
            return own->second;
        const TensorName* name = name_of(spec.role, is_main(spec.stack));
        return name ? name->name : "";
    }

    /// Whether it is the one stack there is, or of two the decoder.
    bool is_main(StackIndex stack) const { return stack == config_.stack_index(); }

    const TensorName* name_of(Role role, bool of_main = true) const {
        const std::span<const TensorName> names = of_main ? family_.names : family_.encoder_names;
        const auto found =
            std::find_if(names.begin(), names.end(), [&](const TensorName& name) { return name.role == role; });
        return found == names.end() ? nullptr : &*found;
    }

    std::string full_name(std::string_view name, std::uint32_t layer, bool of_main = true) const {
        if (name.starts_with('/')) return std::string(name.substr(1));
        if (!name.starts_with('#')) return prefix_ + std::string(name);
        const std::string own = config_.layer_prefixes.empty() ? "" : config_.layer_prefixes.at(layer);
        const std::string layers(of_main ? family_.layers : family_.encoder_layers);
        return prefix_ + (own.empty() ? layers + std::to_string(layer) + "." : own) + std::string(name.substr(1));
    }

    bool has(const char* name) const override {
        for (std::uint32_t layer = 0; layer < config_.stack().n_layers; ++layer)
            if (files_.tensors.count(full_name(name, layer)) != 0) return true;
        return false;
    }
    std::string full_name(const char* name) const override { return full_name(std::string_view(name), 0); }
    std::string file() const override { return files_.files.front().string(); }

    std::string older_name(std::string name) const {
        if (files_.tensors.count(name)) return name;
        for (const auto& [now, then] : family_.older)
            if (name.ends_with(now))
                if (std::string older = name.substr(0, name.size() - now.size()) + std::string(then);
                    files_.tensors.count(older))
                    return older;
        return name;
    }

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
        const bool packed = found != from.tensors.end() && found->second.packed;
        const bool transposed =
            family_.transposed && !vector && !packed && name.starts_with(prefix_ + std::string(family_.layers));
        std::vector<std::uint64_t> wanted = {part.n_all};
        // A vector may be a matrix of one row.
        if (vector && found != from.tensors.end() && found->second.shape.size() == 2 && found->second.shape[0] == 1)
            wanted.insert(wanted.begin(), 1);
        if (in_rows) wanted = {part.n_all / in_rows, in_rows};
        if (vector && found != from.tensors.end() && found->second.shape == std::vector<std::uint64_t>{1, part.n_all})
            wanted = found->second.shape;  // a matrix of one row
        if (!vector) wanted = transposed ? std::vector{n_cols, part.n_all} : std::vector{part.n_all, n_cols};
        TensorView result = floats(from, name, wanted, !vector);
        const SourceTensor& tensor = found->second;
        const std::uint64_t element = result.type == Type::f32 ? 4 : 2;
        result.row_stride = vector || transposed ? 1 : n_cols;
        result.col_stride = transposed ? part.n_all : 1;
        if (packed)
            read_packed(tensor, part.begin, result);
        else
            result.data += part.begin * result.row_stride * element;
        if (!tensor.added.empty())
            add_low_ranks(tensor, from.files[tensor.file].string(), part, n_cols, vector, result);
        return result;
    }

    void add(const Stack& stack, const TensorSpec& spec) override {
        if (spec.role == Role::rope_frequencies)
            return weights_.add_computed(spec, rope_frequencies(config_.ropes[spec.layer], 2 * spec.n_cols));
        if (spec.role == Role::distance_buckets) return weights_.add_computed(spec, config_.distances.buckets.of);
        if (spec.role == Role::alibi_slopes) return weights_.add_computed(spec, config_.slopes[spec.layer]);
        if (spec.role == Role::position_embedding && !config_.positions.empty())
            return weights_.add_computed(spec, config_.positions);
        if (!config_.map_files.empty() && is_head(spec.role))
            return add_whole(config_.map_files.at(spec.layer),
                             spec.role == Role::head_map ? "linear.weight" : "linear.bias", spec);
        if (config_.table_maps.count(spec.role)) return add_mapped_table(spec);
        if (config_.added_rows.count(spec.role)) return add_with_row(spec);
        const std::string known = spelled(spec);
        // A family may omit only the weights and biases of norms.
        if (known.empty())
            return weights_.add_computed(spec,
                                         std::vector<float>(spec.n_cols, is_norm_weight(spec.role) ? 1.0f : 0.0f));
        const std::string name = older_name(full_name(known, spec.layer, is_main(spec.stack)));
        if (is_head(spec.role)) return add_whole(files_, name, spec);
        if (spec.role == Role::relative_bias) return add_relative(stack.blocks[spec.layer], spec, name);
        if (spec.role == Role::distance_keys || spec.role == Role::distance_queries) return add_distances(spec, known);
        const Block& b = stack.block(spec.layer);
        const TensorName* place = name_of(spec.role, is_main(spec.stack));
        const bool vector = spec.layout == Layout::vector;
        if (spec.role >= Role::expert_up && spec.role <= Role::expert_down_bias)
            return add_experts(b, spec, *place, name);
        if ((spec.role == Role::up || spec.role == Role::up_bias) && b.feed.gated)
            return add_gated(b.feed.d_ff, spec, *place, name);
        if (spec.role == Role::latent_query || spec.role == Role::latent_value) return add_latent(b, spec, name);
        if (spec.role == Role::shared_up && b.feed.gated) return add_gated(b.experts.shared_d_ff, spec, *place, name);
        SourceRows part{.n_all = vector ? spec.n_cols : spec.n_rows};
        if (place && place->within != Within::alone) part = projection_part(b, spec.role, place->within);
        if (spec.role == Role::token_embedding) part.n_all += family_.n_further_tokens;
        if (spec.role == Role::position_embedding) {
            part.begin = config_.n_skipped_positions;
            part.n_all += part.begin;
        }
        RowOrder order = rotary_order(stack, spec, config_.ropes);
        order.run = part.run;
        order.stride = part.stride;
        const bool of_heads =
            is_turned(spec.role) && is_norm_weight(spec.role) && b.attention.head_norm == HeadNorm::each;
        if (name.find('*') != name.npos) return weights_.add_computed(spec, of_each_head(name, b, spec.n_cols), order);
        const TensorView found = view(name, vector, part, spec.n_cols, of_heads ? b.attention.head_dim : 0);
        if (!family_.norms_less_one || !is_norm_weight(spec.role)) return weights_.add(spec, found, order);
        std::vector<float> values(spec.n_cols);
        read_vector(plain(found, name), spec.n_cols, values.data());
        for (float& value : values) value = 1.0f + value;
        weights_.add_computed(spec, std::move(values), order);
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

    static bool is_head(Role role) { return role >= Role::head_map && role <= Role::head_norm_bias; }

    void add_whole(const Safetensors& from, const std::string& name, const TensorSpec& spec) {
        const bool vector = spec.layout == Layout::vector;
        const SourceRows all{.n_all = vector ? spec.n_cols : spec.n_rows};
        weights_.add(spec, view_in(from, name, vector, all, spec.n_cols));
    }

    /// A table whose every row has the first row of another added.
    void add_with_row(const TensorSpec& spec) {
        const auto& [other_name, n_others] = config_.added_rows.at(spec.role);
        const std::string name = full_name(spelled(spec), 0), others_name = full_name(other_name, 0);
        const TensorView table = plain(view(name, false, {.n_all = spec.n_rows}, spec.n_cols), name),
                         others = plain(view(others_name, false, {.n_all = n_others}, spec.n_cols), others_name);
        std::vector<float> row(spec.n_cols), rows(std::size_t{spec.n_rows} * spec.n_cols);
        read_strided_row(others, 0, spec.n_cols, row.data());
        for (std::uint32_t i = 0; i < spec.n_rows; ++i) {
            float* own = rows.data() + std::size_t{i} * spec.n_cols;
            read_strided_row(table, i, spec.n_cols, own);
            for (std::uint32_t col = 0; col < spec.n_cols; ++col) own[col] += row[col];
        }
        weights_.add_computed(spec, std::move(rows));
    }

    /// A table times the matrix that the source has behind it or, of an output head, before it.
    void add_mapped_table(const TensorSpec& spec) {
        const bool is_output = spec.role == Role::output;
        const TensorName* name =
            name_of(is_output && config_.output_from_embedding ? Role::token_embedding : spec.role);
        const std::uint32_t inner = config_.table_width;
        const TensorView table = view(full_name(name->name, 0), false, {.n_all = spec.n_rows}, inner);
        const TensorView matrix = view(full_name(config_.table_maps.at(spec.role), 0), false,
                                       {.n_all = is_output ? inner : spec.n_cols}, is_output ? spec.n_cols : inner);
        weights_.add(spec, mapped_table(table, matrix, inner, spec.n_cols, is_output));
    }

    void add_relative(const Block& block, const TensorSpec& spec, const std::string& name) {
        const std::uint32_t n_buckets = config_.n_relative_buckets;
        const TensorView table = plain(view(name, false, {.n_all = n_buckets}, spec.n_cols), name);
        weights_.add_computed(spec, relative_bias_rows(table, n_buckets, block.attention.causal,
                                                       block.attention.relative_max_distance, spec.n_cols));
    }

    void add_distances(const TensorSpec& spec, const std::string& module) {
        const auto by_name = [&](const std::string& name, std::uint32_t n_rows, std::uint32_t n_cols) {
            const std::string full = older_name(full_name(name, spec.layer));
            const TensorView found = view(full, n_cols == 1, {.n_all = n_rows}, n_cols);
            return n_cols == 1 ? plain(found, full) : found;
        };
        weights_.add_computed(spec, distance_vectors(config_.distances, config_.stack(), spec, module, by_name));
    }

    /// A gate and `up`, in a tensor each or one above the other.
    void add_gated(std::uint32_t d_ff, const TensorSpec& spec, const TensorName& place, const std::string& name) {
        const bool vector = spec.layout == Layout::vector, stacked = place.within == Within::stacked;
        const std::string gate_name = stacked ? name : full_name(place.gate, spec.layer, is_main(spec.stack));
        const std::uint64_t n_all = stacked ? 2 * std::uint64_t{d_ff} : d_ff;
        TensorView up = view(name, vector, {.n_all = n_all, .begin = stacked ? d_ff : 0}, spec.n_cols);
        TensorView gate = view(gate_name, vector, {.n_all = n_all}, spec.n_cols);
        if (products_) {
            widen_product(gate, spec.n_cols / 2, 0);
            widen_product(up, spec.n_cols / 2, spec.n_cols / 2);
        }
        if (gate.type != up.type && !gate.dequantize && !up.dequantize)
            throw host::Error("tensor " + gate_name + ": expected the type of " + name);
        weights_.add_gated(spec, gate, up, d_ff);
    }

    /// A tensor, or a gate and an up, for each expert.
    void add_experts(const Block& b, const TensorSpec& spec, const TensorName& place, const std::string& name) {
        const bool up = spec.role == Role::expert_up || spec.role == Role::expert_up_bias, gated = up && b.feed.gated;
        const std::uint32_t n_rows = up ? b.feed.d_ff : config_.stack().d_model;
        if (place.within != Within::alone)
            return weights_.add_each(spec, b.experts.n, n_rows, gated,
                                     packed_experts(b, spec, name, n_rows, gated, place.within));
        const std::string gate_name = gated ? full_name(place.gate, spec.layer, is_main(spec.stack)) : name;
        Type of_gate = Type::f32;
        weights_.add_each(spec, b.experts.n, n_rows, gated, [&](std::uint32_t i, bool is_up) {
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

    using ViewExpert = std::function<TensorView(std::uint32_t i, bool up)>;

    /// Every expert's part of one tensor: of floats [expert, column, row] or [expert, row, column], of a bias [expert, row],
    /// or MXFP4's two.
    ViewExpert packed_experts(const Block& block, const TensorSpec& spec, const std::string& name, std::uint32_t n_rows,
                              bool gated, Within within) {
        const bool vector = spec.layout == Layout::vector;
        const std::uint32_t n_parts = gated ? 2 : 1, step = within == Within::packed ? n_parts : 1;
        const std::uint64_t n_all = std::uint64_t{n_rows} * n_parts, n_cols = vector ? 1 : spec.n_cols;
        if (within == Within::packed && !vector && !files_.tensors.count(name) &&
            files_.tensors.count(name + "_blocks"))
            return mxfp4_experts(block, name, n_all, spec.n_cols, step);
        std::vector<std::uint64_t> wanted = {block.experts.n, n_cols, n_all};
        const std::vector<std::uint64_t> rows_first = {block.experts.n, n_all, n_cols};
        const auto found = files_.tensors.find(name);
        const bool fused =
            within == Within::fused ||
            (within == Within::fused_either && found != files_.tensors.end() && found->second.shape == rows_first);
        if (within == Within::fused_either && wanted == rows_first)
            throw host::Error(files_.files.front().string() + ": tensor " + name +
                              ": expected a shape that tells rows from columns, got a square one");
        if (fused) wanted = rows_first;
        if (vector) wanted = {block.experts.n, n_all};
        TensorView all = floats(files_, name, wanted, !vector);
        if (!found->second.added.empty())
            throw host::Error(found->second.added.front().name + ": expected a matrix, got " + name +
                              ", which holds those of all experts");
        all.row_stride = fused ? n_cols : step;
        all.col_stride = fused ? 1 : n_all;
        const std::uint64_t element = all.type == Type::f32 ? 4 : 2;
        const std::uint64_t up_begin = step == 2 ? 1 : n_rows * all.row_stride;
        return [=](std::uint64_t i, bool is_up) {
            TensorView one = all;
            one.data += (i * n_cols * n_all + (is_up ? up_begin : 0)) * element;
            return one;
        };
    }

    ViewExpert mxfp4_experts(const Block& block, const std::string& name, std::uint64_t n_rows, std::uint32_t n_cols,
                             std::uint32_t step) {
        const std::string blocks_name = name + "_blocks", scales_name = name + "_scales";
        if (n_cols % kGroup) refuse(files_, blocks_name, "a multiple of 32 columns", std::to_string(n_cols));
        const std::uint64_t n_groups = n_cols / kGroup;
        const SourceTensor& blocks = shaped(files_, blocks_name, {block.experts.n, n_rows, n_groups, kGroup / 2}, "U8");
        const SourceTensor& scales = shaped(files_, scales_name, {block.experts.n, n_rows, n_groups}, "U8");
        each_type_ = true;
        return [=, quants = blocks.data, factors = scales.data](std::uint64_t i, bool is_up) {
            const std::uint64_t first_group = (i * n_rows + (is_up ? 1 : 0)) * n_groups;
            return mxfp4_view(quants + first_group * kGroup / 2, factors + first_group, n_cols, step);
        };
    }

    bool is_skipped_layers(std::string_view name) const {
        const auto is_of = [&](std::uint32_t layer) { return name.starts_with(full_name("#", layer)); };
        const std::uint32_t n = config_.stack().n_layers;
        for (std::uint32_t i = n; i < n + config_.n_skipped_layers; ++i)
            if (is_of(i)) return true;
        return false;
    }

    bool is_left_out(const std::string& name, const SourceTensor& tensor) const override {
        if (!tensor.added.empty())
            throw host::Error(tensor.added.front().name + ": expected a matrix that the model multiplies by, got " +
                              name + ", which it leaves out");
        const StackIndex index = config_.stack_index();
        const std::string head = spelled({Role::output, index, 0, Layout::panels, 0, 0});
        const std::string head_bias = spelled({Role::output_bias, index, 0, Layout::vector, 0, 0});
        const bool unused = config_.stack().tied_output || config_.output_from_embedding || config_.encodes;
        return (unused && !head.empty() && name == full_name(head, 0)) ||
               (config_.encodes && !head_bias.empty() && name == full_name(head_bias, 0)) ||
               (family_.ignores && family_.ignores(name)) || is_empty_bias(name, tensor) || is_skipped_layers(name) ||
               is_saved_buffer(name);
    }

    /// What quantizers add to modules that have no bias.
    bool is_empty_bias(const std::string& name, const SourceTensor& tensor) const {
        if (!name.ends_with(".bias")) return false;
        const auto matrix = files_.tensors.find(name.substr(0, name.size() - 4) + "weight");
        return matrix != files_.tensors.end() && matrix->second.packed && is_zero(tensor);
    }

    HfConfig config_;
    const Family& family_;
    std::string prefix_;
    std::optional<LoraJoiner> products_;  // of an adapter's file: what `view` has in place of the model's tensors
};

}  // namespace

ModelSource join_hf_model(HfConfig config, Safetensors weights) {
    return HfTensors(std::move(config), std::move(weights)).join();
}

ModelSource join_lora(HfConfig config, Safetensors weights, LoraFolder folder) {
    if (!folder.replaced.empty())
        throw host::Error(folder.config.string() + ": expected products alone, got " + folder.replaced.begin()->first +
                          "; convert MODEL --lora merges it");
    if (folder.products.empty())
        throw host::Error(folder.config.string() + ": expected at least one product, got none");
    return HfTensors(std::move(config), std::move(weights)).join_products(std::move(folder));
}

}  // namespace fovea
