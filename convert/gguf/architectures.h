// Facts that the name of a GGUF architecture says beyond the file's keys: a row for each architecture, and a function
// for what a row can't say.
#pragma once
#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/families/family.h"
#include "convert/formats/gguf.h"
#include "convert/weights/rope.h"
#include "fovea/config.h"

namespace fovea {

struct GgufFamily;

/// A model as a file's metadata describes it.
struct GgufConfig {
    Stack stack;                             ///< checked
    std::vector<std::uint8_t> layer_blocks;  ///< what its layer_blocks point into
    bool is_encoder = false;                 ///< else a decoder; classifiers of a decoder's family are encoders too
    std::vector<std::string> head;           ///< names of a classifier's maps; empty: dense_2, dense_3, …
    std::vector<std::string> labels;         ///< of a classifier
    std::string pair_template;               ///< of a reranker that reads a chat
    bool subtracts_labels = false;           ///< the classifier's row is the first of the file's less its second
    std::array<Rope, kMaxBlocks> ropes;      ///< of each block that rotates
    std::vector<float> slopes;               ///< if positions are ALiBi
    std::vector<std::vector<float>> xielu;   ///< of each layer, if its activation is that
    const GgufFamily* family = nullptr;
    std::vector<RecurrentRows> recurrent_rows;  ///< as HfConfig has them
    std::uint32_t n_relative_buckets = 0;       ///< if positions are relative
    std::vector<std::uint32_t> layer_numbers;   ///< the file's, of each layer; empty: the same
    std::uint32_t n_skipped_layers = 0;         ///< layers of the file behind the stack's, which predict further tokens
    std::vector<std::string> notes;             ///< for the user
    std::span<const TensorName> names;          ///< in place of the usual ones: the family's, or those of some files
    std::vector<TensorName> next_head;          ///< of a next-token head, before these; see convert/sources/next_head.h
    std::map<Role, float> factors;              ///< what a matrix is multiplied by
    std::string name;
};

/// Which layers see a window of attention.sliding_window positions only.
enum class GgufWindows : std::uint8_t {
    none,    ///< none
    all,     ///< all, if the key is there
    one_in,  ///< all but every n-th
};

struct GgufFamily {
    const char* architecture;
    Norm norm = Norm::rms;
    NormPlace norm_place = NormPlace::pre;
    Position position = Position::rope;  ///< learned ones are the stack's
    bool halves = true;                  ///< dim i turns with dim i + rotary_dim / 2
    Activation activation = Activation::silu;
    bool gated = true;
    bool stacked_up = false;      ///< ffn_up holds the gate, then up
    bool parallel = false;        ///< with one norm if the layers have no second
    Norm head_norm = Norm::none;  ///< of queries and keys, if the layers have any
    HeadNorm heads = HeadNorm::shared;
    GgufWindows windows = GgufWindows::none;
    std::uint32_t period = 1;        ///< of GgufWindows::one_in
    std::uint32_t usual_window = 0;  ///< if the file has no attention.sliding_window
    bool only_windows_turn = false;
    bool plain_windows = false;  ///< rope_freqs divide the frequencies of layers without a window alone
    bool norm_weights = true;    ///< else they are 1
    bool encoder = false;
    bool experts = false;  ///< if expert_count is there
    bool attends = true;   ///< else no layer does, and `settle` reads what its layers are
    bool latent = false;   ///< DeepSeek's attention; `settle` reads it
    bool routed = false;   ///< `settle` reads how rows choose experts, and which layers have none
    bool normalize_experts = false;
    /// Keys that `settle` reads: they change what is computed, and other architectures may not have them.
    std::span<const char* const> keys = {};
    /// Names in place of the usual ones.
    std::span<const TensorName> names = {};
    const char* prefix = "";  ///< before the layers' names
    /// Whether a tensor that such a file may also hold is left out.
    bool (*ignores)(std::string_view name) = nullptr;
    /// Reads the rest: keys of its own, numbers that the architecture implies.
    void (*settle)(const Gguf& file, const std::string& prefix, GgufConfig& config) = nullptr;
};

/// Null: none that is read.
[[nodiscard]] const GgufFamily* find_gguf_family(const std::string& architecture);
/// "llama, qwen2 or bert".
[[nodiscard]] std::string known_gguf_architectures();

}  // namespace fovea
