#include "convert/sources/whisper.h"

#include <algorithm>
#include <span>

#include "convert/families/reading.h"
#include "convert/sources/hf_speech.h"
#include "convert/sources/source_rows.h"
#include "convert/sources/source_tensors.h"
#include "convert/sources/tied_output.h"
#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMostSpeechWidth = 1u << 20, kMostSpeechLayers = 1u << 12, kMostPositions = kMaxPositions / 2,
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
    stack.n_layers = fields.count(names.n_layers, 1, kMostSpeechLayers);
    stack.n_blocks = 1;
    stack.d_model = fields.count("d_model", 1, kMostSpeechWidth);
    stack.max_positions = fields.count(names.max_positions, 1, kMostPositions);
    stack.position = Position::learned;
    stack.final_norm = Norm::layer;
    stack.final_norm_bias = true;
    Block& b = stack.blocks[0];
    b.attention.n_heads = b.attention.n_kv_heads = fields.count(names.n_heads, 1, kMostSpeechWidth);
    if (stack.d_model % b.attention.n_heads)
        fields.refuse(names.n_heads, "a divisor of d_model, " + std::to_string(stack.d_model));
    b.attention.head_dim = b.attention.value_head_dim = stack.d_model / b.attention.n_heads;
    b.feed.d_ff = fields.count(names.d_ff, 1, kMostSpeechWidth);
    b.norm = Norm::layer;
    b.norm_bias = true;
    b.attention.query_bias = b.attention.value_bias = b.attention.output_bias = b.feed.up_bias = b.feed.down_bias =
        true;
    b.feed.activation = read_activation(fields, "activation_function", "gelu");
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
    decoder.blocks[0].attention.causal = decoder.blocks[0].attention.cross_attention = true;
    return config;
}

class WhisperTensors : private SourceTensors {
public:
    WhisperTensors(const Config& config, std::vector<float> filters, Safetensors weights)
        : SourceTensors(std::move(weights)), filters_(std::move(filters)) {
        source_.config = config;
        if (files_.tensors.count("model.decoder.embed_tokens.weight")) prefix_ = "model.";
    }

    ModelSource join() {
        Stack& decoder = source_.config.decoder;
        const auto own = files_.tensors.find(kOutput),
                   table = files_.tensors.find(prefix_ + "decoder.embed_tokens.weight");
        if (decoder.tied_output && own != files_.tensors.end() && table != files_.tensors.end() &&
            !are_equal(own->second, table->second)) {
            decoder.tied_output = false;
            source_.notes.push_back(note_of_own_head(kOutput));
        }
        assemble(source_);
        return std::move(source_);
    }

private:
    static constexpr const char* kOutput = "proj_out.weight";

    Unviewed without_view(const std::string& name, const SourceTensor&) const override {
        return source_.config.decoder.tied_output && name == kOutput ? Unviewed::noted : Unviewed::refused;
    }

    /// But for convolutions and the output head, names are BART's.
    [[nodiscard]] std::string name_of(const TensorSpec& spec) const {
        const bool encodes = spec.stack == StackIndex::encoder;
        const std::string stack = prefix_ + (encodes ? "encoder." : "decoder.");
        switch (spec.role) {
            case Role::output: return kOutput;
            case Role::first_convolution: return stack + "conv1.weight";
            case Role::first_convolution_bias: return stack + "conv1.bias";
            case Role::second_convolution: return stack + "conv2.weight";
            case Role::second_convolution_bias: return stack + "conv2.bias";
            default: break;
        }
        const std::string name =
            place_of(encodes ? families::bart.encoder_names : families::bart.names, spec.role).name;
        return name[0] == '#' ? stack + "layers." + std::to_string(spec.layer) + "." + name.substr(1) : prefix_ + name;
    }

    void add(const Stack&, const TensorSpec& spec) override {
        if (spec.role == Role::mel_filters) return weights_.add_computed(spec, std::move(filters_));
        const std::string name = name_of(spec);
        const bool vector = spec.layout == Layout::vector;
        const bool convolves = spec.role == Role::first_convolution || spec.role == Role::second_convolution;
        std::vector<std::uint64_t> wanted = {vector ? spec.n_cols : spec.n_rows};
        if (convolves) wanted.insert(wanted.end(), {spec.n_cols / kTaps, kTaps});
        if (!vector && !convolves) wanted.push_back(spec.n_cols);
        if (!files_.tensors.count(name)) refuse(files_, name, "shape " + shape_words(wanted), "none");
        TensorView view = floats(files_, name, wanted, !vector);
        view.row_stride = vector ? 1 : spec.n_cols;
        if (const SourceTensor& tensor = files_.tensors.at(name); tensor.packed) {
            if (vector || convolves) refuse(files_, name, "plain floats", "others");
            read_packed(tensor, 0, view);
            each_type_ = true;
        }
        weights_.add(spec, convolves ? by_taps(view, spec.n_cols) : view);
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
    std::vector<float> filters_;
    std::string prefix_;
};

}  // namespace

ModelSource join_whisper(const Fields& fields, const ReadFilters& read_filters, Safetensors weights,
                         const std::string& speech) {
    refuse_present(fields, "quantization_config");
    Config config = read_config(fields);
    std::vector<float> filters = read_filters(config.encoder.sound);
    require(check(config), fields.place());
    ModelSource source = WhisperTensors(config, std::move(filters), std::move(weights)).join();
    source.info = {{"name", model_name(fields, kWhisperType)}, {"architecture", kWhisperType}, {"speech", speech}};
    return source;
}

ModelSource read_whisper(const Fields& fields, const std::filesystem::path& folder, Safetensors weights) {
    const auto filters = [&](Sound& sound) { return read_preprocessor(folder / "preprocessor_config.json", sound); };
    std::vector<std::string> notes;
    const std::string speech = speech_info(fields, folder / "generation_config.json", added_tokens(folder), notes);
    ModelSource source = join_whisper(fields, filters, std::move(weights), speech);
    source.notes.insert(source.notes.end(), notes.begin(), notes.end());
    return source;
}

}  // namespace fovea
