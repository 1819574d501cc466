// A Hugging Face folder's config.json as a Config.
#pragma once
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "convert/formats/safetensors.h"
#include "convert/packed/packed.h"
#include "convert/weights/distance_tables.h"
#include "convert/weights/model_source.h"
#include "convert/weights/rope.h"
#include "host/base/source_file.h"

namespace fovea {

struct Family;

struct HfConfig {
    ModelSource source;  ///< config, layer_blocks and info; the rest is still to come
    const Family* family = nullptr;
    bool encodes = false;  ///< a decoder whose rows become vectors or classes, not logits: its stack is the encoder's
    std::optional<Token> unpooled = {};  ///< pads, behind whose last other token classes are read
    bool is_text_part = false;           ///< the rest of the source's tensors are left out: see keep_text_part
    std::optional<Quantization> quantization = {};      ///< how the weights are packed
    std::array<Rope, kMaxBlocks> ropes;                 ///< of each of the stack's blocks that rotates
    std::array<std::vector<float>, kMaxBlocks> slopes;  ///< of each that has ALiBi
    std::uint32_t n_relative_buckets = 0;               ///< rows of the source's relative_bias, see read_relative
    DistanceTables distances = {};                      ///< of disentangled positions
    /// Names of tensors for which the family's list has none or another: by role, and by layer or map; spelled as there.
    std::map<std::pair<Role, std::uint32_t>, std::string> names;
    /// Of a table's role: another table, of so many rows, whose first row is added to each of its rows.
    std::map<Role, std::pair<std::string, std::uint32_t>> added_rows;
    /// Matrices between tables of tokens of another width, table_width, and the model's: names by the table's role. What they
    /// make of the table becomes the file's tensor.
    std::map<Role, std::string> table_maps;
    std::uint32_t table_width = 0;
    bool output_from_embedding = false;       ///< the output head is that map of the embedding table
    std::vector<std::string> layer_prefixes;  ///< of each layer's names, where layers are not numbered one by one
    /// Of a head's maps that lie in files of their own, as sentence-transformers' Dense does: each map's.
    std::vector<Safetensors> map_files;
    /// [max_positions, d_model] where positions follow from a formula: of both stacks, in place of what the source has.
    std::vector<float> positions = {};
    std::uint32_t n_skipped_positions = 0;  ///< rows of the source's table of positions before that of position 0
    std::uint32_t n_skipped_layers = 0;     ///< layers of the source behind the stack's, which predict further tokens
    std::optional<Token> bos;
    std::vector<Token> eos;  ///< ids beyond the vocabulary left out: they can't come up

    /// The one stack there is; of two the decoder.
    [[nodiscard]] StackIndex stack_index() const;
    [[nodiscard]] Stack& stack();
    [[nodiscard]] const Stack& stack() const;
};

/// Models of the types that convert/families has. `generation` is the generation_config.json beside it,
/// read where it exists, for its end tokens. What predicts from a stack's rows is read too, unless they are pooled: then what is
/// read is an encoder, also of a decoder's family. Throws host::Error naming file, field, what was wanted and what was there.
[[nodiscard]] HfConfig read_hf_config(const std::filesystem::path& config, const std::filesystem::path& generation,
                                      bool pooled = false);

/// The part of "_name_or_path" after the last slash, the same wherever the folder lies now; without one the type.
[[nodiscard]] std::string model_name(const Fields& fields, const std::string& type);

/// What sentence-transformers does with an encoder's rows.
struct SentenceModules {
    std::filesystem::path encoder;  ///< its folder
    Pooling pooling = Pooling::none;
    bool normalize = false;
    std::vector<HeadMap> maps;           ///< Dense modules,
    std::vector<Safetensors> map_files;  ///< and the weights of each
};

/// Reads a modules.json. Throws host::Error where there are modules of another kind or in another order.
[[nodiscard]] SentenceModules read_sentence_modules(const std::filesystem::path& modules);

/// The rotary settings among config.json's fields, in the older spelling (rope_theta, rope_scaling) or the newer
/// (rope_parameters, maybe with settings for each kind of layer, of which `layer_type` is one). A scaling that follows the
/// current length is fixed at the length the model was made for.
[[nodiscard]] Rope read_hf_rope(const Fields& config, const char* layer_type = nullptr);

/// How many dims of each head turn: head_dim times partial_rotary_factor, which is `part` where no field has it.
[[nodiscard]] std::uint32_t read_hf_rotary_dim(const Fields& config, std::uint32_t head_dim,
                                               const char* layer_type = nullptr, double part = 1.0);

}  // namespace fovea
