#include "convert/gguf_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>

#include "convert/gguf.h"
#include "convert/gguf_config.h"
#include "convert/gguf_tokenizer.h"
#include "convert/mapped_weights.h"
#include "convert/refusal.h"

namespace fovea {
namespace {

/// What a tensor of ours is called there. "#" stands for the layer's prefix.
struct Name {
    Role role;
    const char* name;
    const char* in_encoder = name;  // where norms follow what they norm
};
constexpr Name kNames[] = {
    {Role::token_embedding, "token_embd.weight"},
    {Role::position_embedding, "position_embd.weight"},
    {Role::type_embedding, "token_types.weight"},
    {Role::embedding_norm, "token_embd_norm.weight"},
    {Role::embedding_norm_bias, "token_embd_norm.bias"},
    {Role::final_norm, "output_norm.weight"},
    {Role::final_norm_bias, "output_norm.bias"},
    {Role::output, "output.weight"},
    {Role::attention_norm, "#attn_norm.weight", "#attn_output_norm.weight"},
    {Role::attention_norm_bias, "#attn_norm.bias", "#attn_output_norm.bias"},
    {Role::query, "#attn_q.weight"},
    {Role::query_bias, "#attn_q.bias"},
    {Role::key, "#attn_k.weight"},
    {Role::key_bias, "#attn_k.bias"},
    {Role::value, "#attn_v.weight"},
    {Role::value_bias, "#attn_v.bias"},
    {Role::query_norm, "#attn_q_norm.weight"},
    {Role::key_norm, "#attn_k_norm.weight"},
    {Role::attention_output, "#attn_output.weight"},
    {Role::attention_output_bias, "#attn_output.bias"},
    {Role::feed_forward_norm, "#ffn_norm.weight", "#layer_output_norm.weight"},
    {Role::feed_forward_norm_bias, "#ffn_norm.bias", "#layer_output_norm.bias"},
    {Role::up, "#ffn_up.weight"},
    {Role::up_bias, "#ffn_up.bias"},
    {Role::down, "#ffn_down.weight"},
    {Role::down_bias, "#ffn_down.bias"},
};

std::string full_name(const char* name, std::uint32_t layer) {
    return name[0] == '#' ? "blk." + std::to_string(layer) + "." + (name + 1) : name;
}

std::string in_words(const std::vector<std::uint64_t>& shape) {
    std::string words = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) words += (i ? ", " : "") + std::to_string(shape[i]);
    return words + "]";
}

/// The type that holds what the blocks hold: all of it where one can, nearly all in q8 where none can.
Type type_for(const GgufBlocks& blocks) { return blocks.dequantize ? blocks.group_type : blocks.plain; }

/// The ways to read rows of `row_bytes` bytes from `data` on.
void set_quantized(const GgufBlocks& blocks, const std::byte* data, std::uint64_t row_bytes, const std::string& place,
                   TensorView& view) {
    view.dequantize = [&blocks, data, row_bytes](std::uint64_t row, float* out) {
        const std::byte* block = data + row * row_bytes;
        for (const std::byte* end = block + row_bytes; block != end; block += blocks.n_bytes) {
            blocks.dequantize(block, out);
            out += blocks.n_elements;
        }
    };
    if (blocks.take_apart == nullptr) return;
    view.group_type = blocks.group_type;
    view.groups = [&blocks, data, row_bytes, place](std::uint64_t row, QuantizedGroup* out) {
        const std::byte* block = data + row * row_bytes;
        for (const std::byte* end = block + row_bytes; block != end; block += blocks.n_bytes) {
            blocks.take_apart(block, out);
            const std::uint32_t n_groups = blocks.n_elements / kGroup;
            if (n_groups == 1 && std::count(out->quants.begin(), out->quants.end(), std::int8_t{-128}) != 0)
                throw Refusal(place + ": expected quants from -127 to 127, got -128; --type f32 takes it");
            out += n_groups;
        }
    };
}

class Reader {
public:
    Reader(const std::filesystem::path& path, Mapping mapping)
        : file_(path, std::move(mapping)), config_(read_gguf_config(file_)) {}

    ModelSource read(bool with_tokenizer) {
        ModelSource source;
        Stack& stack = config_.is_encoder ? source.config.encoder : source.config.decoder;
        stack = config_.stack;
        const StackIndex index = config_.is_encoder ? StackIndex::encoder : StackIndex::decoder;
        for_each_tensor(stack, index, [&](const TensorSpec& spec) { add(stack, spec); });
        check_all_used();
        set_type(source);
        source.info.insert(source.info.begin(),
                           {{"name", config_.name}, {"architecture", file_.text("general.architecture")}});
        if (with_tokenizer) source.tokenizer = tokenizer_section_from_gguf(file_, stack.vocab_size, source.notes);
        if (const std::string text = file_.text_or("tokenizer.chat_template", ""); !text.empty())
            source.info.emplace_back("chat_template", text);
        weights_.keep(file_.release());
        set_readers(std::move(weights_), source, true);
        return source;
    }

private:
    [[noreturn]] void refuse(const std::string& name, const std::string& why) const {
        throw Refusal(file_.path().string() + ": tensor " + name + ": " + why);
    }

    /// Rows [row_begin, row_begin + n_rows) of the tensor of that name, which has n_all, after checking it.
    TensorView view(const std::string& name, bool vector, std::uint64_t n_cols, std::uint64_t row_begin,
                    std::uint64_t n_all) {
        std::vector<std::uint64_t> wanted = {n_all};
        if (!vector) wanted.push_back(n_cols);
        const auto found = file_.tensors().find(name);
        if (found == file_.tensors().end()) refuse(name, "expected " + in_words(wanted) + ", got none");
        const GgufTensor& tensor = found->second;
        if (tensor.shape != wanted)
            refuse(name, "expected shape " + in_words(wanted) + ", got " + in_words(tensor.shape));
        used_.insert(name);
        const GgufBlocks& blocks = *tensor.blocks;
        if (vector && blocks.dequantize) refuse(name, std::string("expected F32, F16 or BF16, got ") + blocks.name);
        const std::uint64_t row_bytes = (vector ? 1 : n_cols / blocks.n_elements) * blocks.n_bytes;
        TensorView result;
        result.data = tensor.data + row_begin * row_bytes;
        result.type = blocks.plain;
        result.row_stride = vector ? 1 : n_cols;
        if (blocks.dequantize)
            set_quantized(blocks, result.data, row_bytes, file_.path().string() + ": tensor " + name, result);
        return result;
    }

    void add(const Stack& stack, const TensorSpec& spec) {
        const Block& block = stack.block(spec.layer);
        if (spec.role == Role::rope_frequencies) {
            weights_.add_computed(spec.role, spec.layer, frequencies(spec.n_cols));
            return;
        }
        const bool vector = spec.layout == Layout::vector;
        const auto place = std::find_if(std::begin(kNames), std::end(kNames),
                                        [&](const Name& name) { return name.role == spec.role; });
        const std::string name = full_name(config_.is_encoder ? place->in_encoder : place->name, spec.layer);
        const bool is_up = spec.role == Role::up || spec.role == Role::up_bias;
        if (is_up && block.gated) {
            const std::string gate = full_name(vector ? "#ffn_gate.bias" : "#ffn_gate.weight", spec.layer);
            weights_.add_gated(spec.role, spec.layer, view(gate, vector, spec.n_cols, 0, block.d_ff),
                               view(name, vector, spec.n_cols, 0, block.d_ff), block.d_ff);
            return;
        }
        RowOrder order;
        if (config_.rotates_halves && is_turned(spec.role)) order = {block.head_dim, block.rotary_dim, 0};
        const std::uint64_t n_rows = vector ? spec.n_cols : spec.n_rows;
        weights_.add(spec.role, spec.layer, projection_view(block, spec, name, n_rows), order, spec.stack);
    }

    static bool is_turned(Role role) {
        return role == Role::query || role == Role::query_bias || role == Role::query_norm || role == Role::key ||
               role == Role::key_bias || role == Role::key_norm;
    }

    /// Query, key and value may lie in one tensor, one below the other.
    TensorView projection_view(const Block& b, const TensorSpec& spec, const std::string& name, std::uint64_t n_rows) {
        const bool vector = spec.layout == Layout::vector;
        const std::string fused = full_name(vector ? "#attn_qkv.bias" : "#attn_qkv.weight", spec.layer);
        const std::uint64_t n_query = std::uint64_t{b.n_heads} * b.head_dim,
                            n_key = std::uint64_t{b.n_kv_heads} * b.head_dim;
        const std::uint64_t n_all = n_query + n_key + std::uint64_t{b.n_kv_heads} * b.value_head_dim;
        const bool is_fused = file_.tensors().count(fused) != 0 && file_.tensors().count(name) == 0;
        switch (is_fused ? spec.role : Role::output) {
            case Role::query:
            case Role::query_bias: return view(fused, vector, spec.n_cols, 0, n_all);
            case Role::key:
            case Role::key_bias: return view(fused, vector, spec.n_cols, n_query, n_all);
            case Role::value:
            case Role::value_bias: return view(fused, vector, spec.n_cols, n_query + n_key, n_all);
            default: return view(name, vector, spec.n_cols, 0, n_rows);
        }
    }

    /// Radians per position; Llama 3 divides them by the numbers of a tensor of its own.
    std::vector<float> frequencies(std::uint32_t n) {
        std::vector<float> result = rope_frequencies(config_.rope, 2 * n);
        const std::string name = "rope_freqs.weight";
        if (file_.tensors().count(name) == 0) return result;
        const TensorView factors = view(name, true, n, 0, n);
        if (factors.type != Type::f32) refuse(name, "expected F32, got another type");
        for (std::uint32_t i = 0; i < n; ++i) {
            float factor;
            std::memcpy(&factor, factors.data + i * sizeof factor, sizeof factor);
            if (!(factor > 0) || !std::isfinite(factor))
                refuse(name, "expected positive numbers, got " + std::to_string(factor));
            result[i] /= factor;
        }
        return result;
    }

    /// Encoders stand alone: what predicts from them is another model's.
    bool is_head(std::string_view name) const { return config_.is_encoder && name.starts_with("cls."); }

    /// A tensor that nothing reads means a model of another shape than its metadata says.
    void check_all_used() const {
        for (const auto& [name, tensor] : file_.tensors())
            if (used_.count(name) == 0 && !is_head(name))
                refuse(name, "expected only tensors that the metadata calls for");
    }

    /// The model's type is that of most of its layers' matrices, by their elements.
    void set_type(ModelSource& source) const {
        std::map<const GgufBlocks*, std::uint64_t> n_elements;
        for (const auto& [name, tensor] : file_.tensors())
            if (tensor.shape.size() == 2 && name.starts_with("blk."))
                n_elements[tensor.blocks] += tensor.shape[0] * tensor.shape[1];
        if (n_elements.empty()) return;
        const auto most = std::max_element(n_elements.begin(), n_elements.end(), [](const auto& a, const auto& b) {
            return a.second != b.second ? a.second < b.second : a.first < b.first;
        });
        source.type = type_for(*most->first);
        source.exact_tables = most->first->take_apart != nullptr;
        source.info.emplace_back("source_type", most->first->name);
    }

    Gguf file_;
    GgufConfig config_;
    MappedWeights weights_;
    std::set<std::string> used_;
};

}  // namespace

ModelSource read_gguf(const std::filesystem::path& path, Mapping mapping, bool with_tokenizer) {
    return Reader(path, std::move(mapping)).read(with_tokenizer);
}

}  // namespace fovea
