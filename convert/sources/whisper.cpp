#include "convert/sources/whisper.h"

#include <optional>
#include <set>

#include "convert/families/reading.h"
#include "convert/sources/hf_speech.h"
#include "convert/sources/tied_output.h"
#include "convert/weights/mapped_weights.h"
#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMostWidth = 1u << 20, kMostLayers = 1u << 12, kMostPositions = kMaxPositions / 2,
                        kMostMels = 1u << 16;

/// What config.json calls the sizes of one of the two stacks.
struct StackNames {
    const char *n_layers, *n_heads, *d_ff, *max_positions;
};
constexpr StackNames kEncoder = {"encoder_layers", "encoder_attention_heads", "encoder_ffn_dim",
                                 "max_source_positions"};
constexpr StackNames kDecoder = {"decoder_layers", "decoder_attention_heads", "decoder_ffn_dim",
                                 "max_target_positions"};

/// What both stacks have: learned positions, norms before each part and behind all, biases everywhere but of keys.
void read_stack(const Fields& fields, const StackNames& names, Stack& stack) {
    stack.n_layers = fields.count(names.n_layers, 1, kMostLayers);
    stack.n_blocks = 1;
    stack.d_model = fields.count("d_model", 1, kMostWidth);
    stack.max_positions = fields.count(names.max_positions, 1, kMostPositions);
    stack.position = Position::learned;
    stack.final_norm = Norm::layer;
    stack.final_norm_bias = true;
    Block& b = stack.blocks[0];
    b.n_heads = b.n_kv_heads = fields.count(names.n_heads, 1, kMostWidth);
    if (stack.d_model % b.n_heads)
        fields.refuse(names.n_heads, "a divisor of d_model, " + std::to_string(stack.d_model));
    b.head_dim = b.value_head_dim = stack.d_model / b.n_heads;
    b.d_ff = fields.count(names.d_ff, 1, kMostWidth);
    b.norm = Norm::layer;
    b.norm_bias = true;
    b.query_bias = b.value_bias = b.output_bias = b.up_bias = b.down_bias = true;
    b.activation = read_activation(fields, "activation_function", "gelu");
}

Config read_config(const Fields& fields) {
    Config config;
    read_stack(fields, kEncoder, config.encoder);
    read_stack(fields, kDecoder, config.decoder);
    Sound& sound = config.encoder.sound;
    sound.n_mels = fields.count("num_mel_bins", 1, kMostMels);
    sound.n_frames = 2 * config.encoder.max_positions;  // of which every two make a position
    Stack& decoder = config.decoder;
    decoder.vocab_size = fields.count("vocab_size", 1, kMaxVocab);
    decoder.has_output_head = true;
    decoder.tied_output = fields.flag_or("tie_word_embeddings", true);
    decoder.blocks[0].causal = decoder.blocks[0].cross_attention = true;
    return config;
}

/// Of a layer's tensors, without the layer's prefix. The maps are q_proj, k_proj, v_proj.
std::string layer_name(Role role) {
    const auto map = [&](const char* module, Role query) {
        static constexpr const char* kMaps[] = {"q_proj", "k_proj", "v_proj"};
        const int i = static_cast<int>(role) - static_cast<int>(query);
        return std::string(module) + "." + kMaps[i / 2] + (i % 2 ? ".bias" : ".weight");
    };
    switch (role) {
        case Role::attention_norm: return "self_attn_layer_norm.weight";
        case Role::attention_norm_bias: return "self_attn_layer_norm.bias";
        case Role::attention_output: return "self_attn.out_proj.weight";
        case Role::attention_output_bias: return "self_attn.out_proj.bias";
        case Role::cross_norm: return "encoder_attn_layer_norm.weight";
        case Role::cross_norm_bias: return "encoder_attn_layer_norm.bias";
        case Role::cross_output: return "encoder_attn.out_proj.weight";
        case Role::cross_output_bias: return "encoder_attn.out_proj.bias";
        case Role::feed_forward_norm: return "final_layer_norm.weight";
        case Role::feed_forward_norm_bias: return "final_layer_norm.bias";
        case Role::up: return "fc1.weight";
        case Role::up_bias: return "fc1.bias";
        case Role::down: return "fc2.weight";
        case Role::down_bias: return "fc2.bias";
        default:
            return role < Role::cross_norm ? map("self_attn", Role::query) : map("encoder_attn", Role::cross_query);
    }
}

class WhisperTensors {
public:
    WhisperTensors(const Config& config, Safetensors weights) : files_(std::move(weights)) {
        source_.config = config;
        if (files_.tensors.count("model.decoder.embed_tokens.weight")) prefix_ = "model.";
    }

    ModelSource join(std::vector<float> filters) {
        const Config& config = source_.config;
        const auto own = files_.tensors.find(kOutput),
                   table = files_.tensors.find(prefix_ + "decoder.embed_tokens.weight");
        if (config.decoder.tied_output && own != files_.tensors.end() && table != files_.tensors.end() &&
            !are_equal(own->second, table->second)) {
            source_.config.decoder.tied_output = false;
            source_.notes.push_back(note_of_own_head(kOutput));
        }
        const auto add = [&](const TensorSpec& spec) {
            if (spec.role == Role::mel_filters)
                weights_.add_computed(spec, std::move(filters));
            else
                weights_.add(spec, view(spec));
        };
        for_each_tensor(config.encoder, StackIndex::encoder, add);
        for_each_tensor(config.decoder, StackIndex::decoder, add);
        for (const auto& [name, tensor] : files_.tensors)
            if (!used_.count(name) && !(config.decoder.tied_output && name == kOutput))
                refuse(name, "expected only tensors that the configuration calls for");
        source_.type = widest_.value_or(Type::f32);
        weights_.keep(std::move(files_.mappings));
        set_readers(std::move(weights_), source_);
        return std::move(source_);
    }

private:
    static constexpr const char* kOutput = "proj_out.weight";

    [[noreturn]] void refuse(const std::string& name, const std::string& why) const {
        throw host::Error(place_of(name) + ": " + why);
    }
    [[nodiscard]] std::string place_of(const std::string& name) const {
        return files_.files.front().string() + ": tensor " + name;
    }

    [[nodiscard]] std::string name_of(const TensorSpec& spec) const {
        const std::string stack = prefix_ + (spec.stack == StackIndex::encoder ? "encoder." : "decoder.");
        switch (spec.role) {
            case Role::token_embedding: return stack + "embed_tokens.weight";
            case Role::position_embedding: return stack + "embed_positions.weight";
            case Role::final_norm: return stack + "layer_norm.weight";
            case Role::final_norm_bias: return stack + "layer_norm.bias";
            case Role::output: return kOutput;
            case Role::first_convolution: return stack + "conv1.weight";
            case Role::first_convolution_bias: return stack + "conv1.bias";
            case Role::second_convolution: return stack + "conv2.weight";
            case Role::second_convolution_bias: return stack + "conv2.bias";
            default: return stack + "layers." + std::to_string(spec.layer) + "." + layer_name(spec.role);
        }
    }

    TensorView view(const TensorSpec& spec) {
        const std::string name = name_of(spec);
        const bool vector = spec.layout == Layout::vector;
        const bool convolves = spec.role == Role::first_convolution || spec.role == Role::second_convolution;
        std::vector<std::uint64_t> wanted = {vector ? spec.n_cols : spec.n_rows};
        if (convolves) wanted.insert(wanted.end(), {spec.n_cols / kTaps, kTaps});
        if (!vector && !convolves) wanted.push_back(spec.n_cols);
        const auto found = files_.tensors.find(name);
        if (found == files_.tensors.end()) refuse(name, "expected shape " + shape_words(wanted) + ", got none");
        const SourceTensor& tensor = found->second;
        if (tensor.shape != wanted)
            refuse(name, "expected shape " + shape_words(wanted) + ", got " + shape_words(tensor.shape));
        used_.insert(name);
        TensorView result;
        result.type = float_type(tensor, place_of(name));
        if (!vector) widest_ = widest_ && *widest_ != result.type ? Type::f32 : result.type;
        result.row_stride = vector ? 1 : spec.n_cols;
        result.data = tensor.data;
        return convolves ? by_taps(result, spec.n_cols) : result;
    }

    /// The source has the taps of each channel side by side, the file the channels of each tap.
    static TensorView by_taps(const TensorView& plain, std::uint32_t n_cols) {
        TensorView view = plain;
        view.group_type = plain.type;
        view.dequantize = [plain, n_cols](std::uint64_t row, float* out) {
            std::vector<float> values(n_cols);
            read_strided_row(plain, row, n_cols, values.data());
            const std::uint32_t n_channels = n_cols / kTaps;
            for (std::uint32_t i = 0; i < n_cols; ++i) out[i] = values[i % n_channels * kTaps + i / n_channels];
        };
        return view;
    }

    static constexpr std::uint32_t kTaps = 3;  // of both convolutions
    ModelSource source_;
    Safetensors files_;
    MappedWeights weights_;
    std::string prefix_;
    std::set<std::string> used_;
    std::optional<Type> widest_;  // of the matrices; f32 where they differ
};

}  // namespace

ModelSource read_whisper(const Fields& fields, const std::filesystem::path& folder, Safetensors weights) {
    refuse_present(fields, "quantization_config");
    Config config = read_config(fields);
    std::vector<float> filters = read_preprocessor(folder / "preprocessor_config.json", config.encoder.sound);
    require(check(config), fields.place());
    ModelSource source = WhisperTensors(config, std::move(weights)).join(std::move(filters));
    source.info = {{"name", model_name(fields, kWhisperType)},
                   {"architecture", kWhisperType},
                   {"speech", speech_info(fields, folder / "generation_config.json", folder / "tokenizer.json")}};
    return source;
}

}  // namespace fovea
