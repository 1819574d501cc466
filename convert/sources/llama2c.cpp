#include "convert/sources/llama2c.h"

#include <cstring>
#include <string>

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

class Reader {
public:
    Reader(const std::filesystem::path& path, Mapping mapping) : path_(path), mapping_(std::move(mapping)) {}

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
        block.n_heads = field("n_heads", file_.shape.n_heads, 1 << 16);
        block.n_kv_heads = field("n_kv_heads", file_.shape.n_kv_heads, file_.shape.n_heads);
        if (stack.d_model % block.n_heads != 0)
            refuse("header: dim: expected a multiple of n_heads, " + std::to_string(block.n_heads) + ", got " +
                   std::to_string(stack.d_model));
        block.head_dim = block.value_head_dim = block.rotary_dim = stack.d_model / block.n_heads;
        block.d_ff = field("hidden_dim", file_.shape.hidden_dim, 1 << 20);
        block.norm = Norm::rms;
        block.position = Position::rope;  // on adjacent pairs already
        block.activation = Activation::silu;
        block.gated = block.causal = true;
        require(check(source_.config), path_.string() + ": header");
    }

    /// The next n_rows·n_cols numbers. Their sum stays far below 2^64: 2^12 layers of matrices of at most 2^40.
    TensorView next(std::uint64_t n_rows, std::uint64_t n_cols) {
        const std::uint64_t begin = end_;
        end_ += n_rows * n_cols * 4;
        const auto bytes = mapping_.bytes();
        return {end_ <= bytes.size() ? bytes.data() + begin : nullptr, Type::f32, n_cols, 1};
    }

    /// Bytes of a matrix: in version 2 its int8 elements and then a float32 scale for each group of them.
    std::uint64_t matrix_bytes(std::uint64_t n_elements) const {
        const std::uint64_t group = file_.group_size;
        if (group == 0) return n_elements * 4;
        if (n_elements % group != 0)
            refuse("header: group_size: expected a divisor of a matrix's " + std::to_string(n_elements) +
                   " elements, got " + std::to_string(group));
        return n_elements + n_elements / group * 4;
    }

    TensorView next_matrix(std::uint64_t n_rows, std::uint64_t n_cols) {
        const std::uint64_t begin = end_, n = n_rows * n_cols, group = file_.group_size;
        if (group == 0) return next(n_rows, n_cols);
        end_ += matrix_bytes(n);
        if (end_ > mapping_.bytes().size()) return {};
        TensorView view{mapping_.bytes().data() + begin};
        view.dequantize = [quants = view.data, scales = view.data + n, n_cols, group](std::uint64_t row, float* out) {
            for (std::uint64_t i = row * n_cols; i < (row + 1) * n_cols; ++i) {
                float scale;
                std::memcpy(&scale, scales + i / group * sizeof scale, sizeof scale);
                *out++ = static_cast<float>(static_cast<std::int8_t>(quants[i])) * scale;
            }
        };
        return view;
    }

    void per_layer(Role role, std::uint64_t n_rows, std::uint64_t n_cols) {
        const bool vector = n_cols == 1;
        for (std::uint32_t i = 0; i < source_.config.decoder.n_layers; ++i) {
            weights_.add(role, i, vector ? next(n_rows, n_cols) : next_matrix(n_rows, n_cols));
        }
    }

    void place_attention(const Stack& s, const Block& b) {
        const std::uint64_t kv = std::uint64_t{b.n_kv_heads} * b.head_dim;
        per_layer(Role::query, s.d_model, s.d_model);
        per_layer(Role::key, kv, s.d_model);
        per_layer(Role::value, kv, s.d_model);
        per_layer(Role::attention_output, s.d_model, s.d_model);
    }

    void place_feed_forward(const Stack& s, const Block& b) {
        const auto gates = [&](std::uint32_t layer, std::uint64_t first) {
            end_ = first + layer * matrix_bytes(std::uint64_t{b.d_ff} * s.d_model);
            return next_matrix(b.d_ff, s.d_model);
        };
        const std::uint64_t matrix = matrix_bytes(std::uint64_t{b.d_ff} * s.d_model), gate_at = end_;
        const std::uint64_t down_at = gate_at + s.n_layers * matrix, up_at = down_at + s.n_layers * matrix;
        for (std::uint32_t i = 0; i < s.n_layers; ++i) {
            const TensorView gate = gates(i, gate_at), up = gates(i, up_at);
            weights_.add_gated(Role::up, i, gate, up, b.d_ff);
        }
        end_ = down_at;
        per_layer(Role::down, s.d_model, b.d_ff);
        end_ = up_at + s.n_layers * matrix;
    }

    /// Version 0 has tables of cosines and sines, half a head each.
    std::uint64_t tables_bytes() const {
        const Stack& s = source_.config.decoder;
        return file_.version ? 0 : std::uint64_t{s.max_positions} * s.blocks[0].head_dim * 4;
    }

    /// What such a header is followed by is known before anything is made for each layer that it claims.
    void check_size() const {
        const Stack& s = source_.config.decoder;
        const Block& b = s.blocks[0];
        const std::uint64_t d = s.d_model, kv = std::uint64_t{b.n_kv_heads} * b.head_dim;
        const std::uint64_t ends = 4 * d + (s.tied_output ? 1 : 2) * matrix_bytes(s.vocab_size * d);
        const std::uint64_t layer =
            8 * d + 2 * matrix_bytes(d * d) + 2 * matrix_bytes(kv * d) + 3 * matrix_bytes(b.d_ff * d);
        const std::uint64_t header = file_.version ? kVersion1Bytes : kVersion0Bytes;
        const std::uint64_t want = header + s.n_layers * layer + ends + tables_bytes(), have = mapping_.bytes().size();
        if (want != have)
            refuse("expected " + std::to_string(want) + " bytes for its header, read as a llama2.c checkpoint, got " +
                   std::to_string(have));
    }

    void place_weights() {
        check_size();
        const Stack& s = source_.config.decoder;
        const Block& b = s.blocks[0];
        end_ = file_.version ? kVersion1Bytes : kVersion0Bytes;
        if (file_.version) {
            per_layer(Role::attention_norm, s.d_model, 1);
            per_layer(Role::feed_forward_norm, s.d_model, 1);
            weights_.add(Role::final_norm, 0, next(s.d_model, 1));
            weights_.add(Role::token_embedding, 0, next_matrix(s.vocab_size, s.d_model));
            place_attention(s, b);
        } else {
            weights_.add(Role::token_embedding, 0, next_matrix(s.vocab_size, s.d_model));
            per_layer(Role::attention_norm, s.d_model, 1);
            place_attention(s, b);
            per_layer(Role::feed_forward_norm, s.d_model, 1);
        }
        place_feed_forward(s, b);
        if (!file_.version) {
            weights_.add(Role::final_norm, 0, next(s.d_model, 1));
            end_ += tables_bytes();
        }
        if (!s.tied_output) weights_.add(Role::output, 0, next_matrix(s.vocab_size, s.d_model));
        weights_.add_computed(Role::rope_frequencies, 0, rope_frequencies({}, b.rotary_dim));
    }

    std::filesystem::path path_;
    Mapping mapping_;
    Checkpoint file_;
    ModelSource source_;
    MappedWeights weights_;
    std::uint64_t end_ = 0;  // of what is placed so far
};

}  // namespace

bool is_llama2c(std::span<const std::byte> bytes) noexcept {
    std::uint32_t magic = 0;
    if (bytes.size() >= sizeof magic) std::memcpy(&magic, bytes.data(), sizeof magic);
    return magic == kVersionedMagic;
}

ModelSource read_llama2c(const std::filesystem::path& path, Mapping mapping) {
    return Reader(path, std::move(mapping)).read();
}

}  // namespace fovea
