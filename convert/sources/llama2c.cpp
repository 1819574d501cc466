#include "convert/sources/llama2c.h"

#include <cstring>
#include <string>
#include <vector>

#include "convert/weights/mapped_weights.h"
#include "convert/weights/rope.h"
#include "host/base/error.h"

namespace fovea {
namespace {

constexpr std::uint32_t kVersionedMagic = 0x616b3432;
constexpr std::uint64_t kVersion0Bytes = 28, kVersion1Bytes = 256;

struct Shape {
    std::int32_t dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len;
};
static_assert(sizeof(Shape) == kVersion0Bytes);

struct Checkpoint {
    Shape shape{};
    bool shared_head = true;
    int version = 0;
    std::uint64_t group_size = 0;  // version 2: int8 elements for each scale
};

class Llama2cTensors {
public:
    Llama2cTensors(const std::filesystem::path& path, Mapping mapping) : path_(path), mapping_(std::move(mapping)) {}

    ModelSource read() {
        read_header();
        make_config();
        place_weights();
        source_.info = {{"name", "llama2.c"}, {"architecture", "llama"}};
        if (file_.group_size) {
            source_.type = Type::q8;
            source_.info.emplace_back("source_type", "q80, groups of " + std::to_string(file_.group_size));
        }
        weights_.keep(std::move(mapping_));
        set_readers(std::move(weights_), source_);
        return std::move(source_);
    }

private:
    [[noreturn]] void refuse(const std::string& why) const { throw host::Error(path_.string() + ": " + why); }

    void read_header() {
        const auto bytes = mapping_.bytes();
        const bool versioned = is_llama2c(bytes);
        const std::uint64_t header_bytes = versioned ? kVersion1Bytes : kVersion0Bytes;
        if (bytes.size() < header_bytes)
            refuse("expected a header of " + std::to_string(header_bytes) + " bytes, got " +
                   std::to_string(bytes.size()));
        if (versioned) {
            std::memcpy(&file_.version, bytes.data() + 4, 4);
            if (file_.version != 1 && file_.version != 2)
                refuse("expected a llama2.c checkpoint of version 0, 1 or 2, got version " +
                       std::to_string(file_.version));
            std::memcpy(&file_.shape, bytes.data() + 8, sizeof file_.shape);
            file_.shared_head = bytes[8 + sizeof file_.shape] != std::byte{0};
            std::int32_t group_size;
            std::memcpy(&group_size, bytes.data() + 9 + sizeof file_.shape, sizeof group_size);
            if (file_.version == 2) file_.group_size = field("group_size", group_size, 1 << 20);
            return;
        }
        std::memcpy(&file_.shape, bytes.data(), sizeof file_.shape);
        file_.shared_head = file_.shape.vocab_size > 0;
        if (!file_.shared_head && file_.shape.vocab_size != INT32_MIN) file_.shape.vocab_size = -file_.shape.vocab_size;
    }

    std::uint32_t field(const char* name, std::int32_t value, std::int32_t most) const {
        if (value < 1 || value > most)
            refuse(std::string("header, read as a llama2.c checkpoint: ") + name + ": expected a number from 1 to " +
                   std::to_string(most) + ", got " + std::to_string(value));
        return static_cast<std::uint32_t>(value);
    }

    void make_config() {
        Stack& stack = source_.config.decoder;
        stack.d_model = field("dim", file_.shape.dim, 1 << 20);
        stack.n_layers = field("n_layers", file_.shape.n_layers, 1 << 12);
        stack.vocab_size = field("vocab_size", file_.shape.vocab_size, 1 << 24);
        stack.max_positions = field("seq_len", file_.shape.seq_len, 1 << 24);
        stack.n_blocks = 1;
        stack.final_norm = Norm::rms;
        stack.final_norm_epsilon = 1e-5f;
        stack.has_output_head = true;
        stack.tied_output = file_.shared_head;
        Block& block = stack.blocks[0];
        block.attention.n_heads = field("n_heads", file_.shape.n_heads, 1 << 16);
        block.attention.n_kv_heads = field("n_kv_heads", file_.shape.n_kv_heads, file_.shape.n_heads);
        if (stack.d_model % block.attention.n_heads != 0)
            refuse("header: dim: expected a multiple of n_heads, " + std::to_string(block.attention.n_heads) +
                   ", got " + std::to_string(stack.d_model));
        block.attention.head_dim = block.attention.value_head_dim = block.attention.rotary_dim =
            stack.d_model / block.attention.n_heads;
        block.feed.d_ff = field("hidden_dim", file_.shape.hidden_dim, 1 << 20);
        block.norm = Norm::rms;
        block.attention.position = Position::rope;  // on adjacent pairs already
        block.feed.activation = Activation::silu;
        block.feed.gated = block.attention.causal = true;
        require(check(source_.config), path_.string() + ": header");
    }

    /// A tensor, or one of each layer, of so many numbers; in version 2 matrices are groups.
    struct Section {
        Role role;
        bool of_layers;
        std::uint64_t n_rows, n_cols = 1;
        bool is_matrix = false;
    };

    /// What follows the header, in order. Role::up is there twice: the gates come first. Version 0 has tables of cosines and sines,
    /// half a head each, in place of the frequencies.
    [[nodiscard]] std::vector<Section> sections() const {
        const Stack& s = source_.config.decoder;
        const Block& b = s.blocks[0];
        const std::uint64_t d = s.d_model, kv = std::uint64_t{b.attention.n_kv_heads} * b.attention.head_dim;
        const Section attention_norm{Role::attention_norm, true, d},
            feed_forward_norm{Role::feed_forward_norm, true, d}, final_norm{Role::final_norm, false, d},
            embedding{Role::token_embedding, false, s.vocab_size, d, true};
        std::vector<Section> all;
        if (file_.version)
            all = {attention_norm, feed_forward_norm, final_norm, embedding};
        else
            all = {embedding, attention_norm};
        all.insert(all.end(), {{Role::query, true, d, d, true},
                               {Role::key, true, kv, d, true},
                               {Role::value, true, kv, d, true},
                               {Role::attention_output, true, d, d, true}});
        if (!file_.version) all.push_back(feed_forward_norm);
        all.insert(all.end(), {{Role::up, true, b.feed.d_ff, d, true},
                               {Role::down, true, d, b.feed.d_ff, true},
                               {Role::up, true, b.feed.d_ff, d, true}});
        if (!file_.version)
            all.insert(
                all.end(),
                {final_norm, {Role::rope_frequencies, false, std::uint64_t{s.max_positions} * b.attention.head_dim}});
        if (!s.tied_output) all.push_back({Role::output, false, s.vocab_size, d, true});
        return all;
    }

    [[nodiscard]] std::uint32_t n_tensors(const Section& section) const {
        return section.of_layers ? source_.config.decoder.n_layers : 1;
    }

    /// In version 2 a matrix's int8 elements, and then a float32 scale for each group of them.
    [[nodiscard]] std::uint64_t bytes_of(const Section& section) const {
        const std::uint64_t n_elements = section.n_rows * section.n_cols, group = file_.group_size;
        if (group == 0 || !section.is_matrix) return n_elements * 4;
        if (n_elements % group != 0)
            refuse("header: group_size: expected a divisor of a matrix's " + std::to_string(n_elements) +
                   " elements, got " + std::to_string(group));
        return n_elements + n_elements / group * 4;
    }

    [[nodiscard]] TensorView view(const Section& section, std::uint64_t begin) const {
        const std::uint64_t n_cols = section.n_cols, group = file_.group_size;
        TensorView view{mapping_.bytes().data() + begin, Type::f32, n_cols};
        if (group == 0 || !section.is_matrix) return view;
        view.dequantize = [quants = view.data, scales = view.data + section.n_rows * n_cols, n_cols, group](
                              std::uint64_t row, float* out) {
            for (std::uint64_t i = row * n_cols; i < (row + 1) * n_cols; ++i) {
                float scale;
                std::memcpy(&scale, scales + i / group * sizeof scale, sizeof scale);
                *out++ = static_cast<float>(static_cast<std::int8_t>(quants[i])) * scale;
            }
        };
        return view;
    }

    /// What such a header is followed by is known before anything is made for each layer that it claims. The sum stays far below
    /// 2^64: 2^12 layers of matrices of at most 2^40.
    void check_size(std::uint64_t header) const {
        std::uint64_t want = header;
        for (const Section& section : sections()) want += n_tensors(section) * bytes_of(section);
        if (const std::uint64_t have = mapping_.bytes().size(); want != have)
            refuse("expected " + std::to_string(want) + " bytes for its header, read as a llama2.c checkpoint, got " +
                   std::to_string(have));
    }

    void place_weights() {
        std::uint64_t begin = file_.version ? kVersion1Bytes : kVersion0Bytes;
        check_size(begin);
        const Block& b = source_.config.decoder.blocks[0];
        std::vector<TensorView> gates;
        for (const Section& section : sections())
            for (std::uint32_t layer = 0; layer < n_tensors(section); ++layer, begin += bytes_of(section)) {
                const TensorSpec spec{section.role, StackIndex::decoder, layer, {}, 0, 0};
                if (section.role != Role::up)
                    weights_.add(spec, view(section, begin));
                else if (gates.size() < source_.config.decoder.n_layers)
                    gates.push_back(view(section, begin));
                else
                    weights_.add_gated(spec, gates[layer], view(section, begin), b.feed.d_ff);
            }
        weights_.add_computed({Role::rope_frequencies, StackIndex::decoder, 0, Layout::vector, 1, 0},
                              rope_frequencies({}, b.attention.rotary_dim));
    }

    std::filesystem::path path_;
    Mapping mapping_;
    Checkpoint file_;
    ModelSource source_;
    MappedWeights weights_;
};

}  // namespace

bool is_llama2c(std::span<const std::byte> bytes) noexcept {
    std::uint32_t magic = 0;
    if (bytes.size() >= sizeof magic) std::memcpy(&magic, bytes.data(), sizeof magic);
    return magic == kVersionedMagic;
}

ModelSource read_llama2c(const std::filesystem::path& path, Mapping mapping) {
    return Llama2cTensors(path, std::move(mapping)).read();
}

}  // namespace fovea
