// Parts that a build may leave out (CMake: FOVEA_WITHOUT), for firmware whose model and program have no use for them. A
// file or a call that asks for such a part is refused by the part's name, as `unsupported`. Nothing else changes.
#pragma once

namespace fovea {

/// CMakeLists.txt reads the names from here.
enum class Part : unsigned {
    vectors = 1,            // encoders, decoders with a memory, attention alone
    attention_weights = 2,  // capture_attention
    gguf_types = 4,         // weights of the types after q4, and caches of q4
    word_piece = 8,         // tokenizers of that model, and the steps that BERT's take
    normal_forms = 16,      // tokenizers with Unicode's normal forms
    speculation = 32,       // generators that propose tokens
    teams = 64,             // several members, the engine's own threads or a host's
    unigram = 128,          // tokenizers of that model
    patterns = 256,         // tokenizers with steps that have tables of states, or maps of characters
    block_variants = 512,   // blocks beside norm, attention, norm, feed-forward; caps, scales, relu2 and later ones
    bf16 = 1024,            // weights of that type
    role_names = 2048,      // what tensors are called in messages
    experts = 4096,         // feed-forward parts of several experts; a row uses some of them; what they gate with
    penalties = 8192,       // the sampler's penalties by count, and biases of tokens
    adapters = 16384,       // set_adapters
    latent = 32768,         // latent attention, queries by way of a narrower row
    columns = 65536,        // column scales of quantized matrices' inputs
    layer_inputs = 131072,  // what tokens give each layer, keys of an earlier layer, norms of values, scales of layers
    states = 262144,        // recurrent layers, their states in caches, and marks; gates of attention's output
    rows = 524288,          // steps of vectors in place of tokens, their positions and spans
    samplers = 1048576,     // DRY, top-n-sigma, typical sampling, XTC, Mirostat
    known_sets = 2097152,   // speed: long texts' tokens, forms that can be read in many ways over 4,096 tokens and more
    plain_parts = 4194304,  // tokenize_around: texts of which parts have no special tokens
};

#ifndef FOVEA_WITHOUT
#define FOVEA_WITHOUT  // a list: Part::vectors, Part::speculation
#endif
[[nodiscard]] consteval unsigned joined_parts(auto... parts) noexcept {
    return (0u | ... | static_cast<unsigned>(parts));
}
inline constexpr unsigned kLeftOut = joined_parts(FOVEA_WITHOUT);

/// Whether this build has it. A constant: code behind a false one is not in the library.
[[nodiscard]] consteval bool has(Part part) noexcept { return (kLeftOut & static_cast<unsigned>(part)) == 0; }

/// In place of a field that is there, and takes room, in builds with a part alone: std::conditional_t<has(part), T, LeftOut<T>>.
template<class T>
struct LeftOut {
    constexpr LeftOut(T = {}) noexcept {}
    constexpr operator T() const noexcept { return T{}; }
};

}  // namespace fovea
