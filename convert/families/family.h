// A family of Hugging Face models: the reading of its config.json, and the names of its tensors. Each has a file here
// and a line in families.inc; convert/sources/hf_model.cpp does the rest: lookup, shape, type, rotary order, gates,
// fused matrices.
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/formats/safetensors.h"
#include "convert/packed/packed.h"
#include "convert/weights/distance_tables.h"
#include "convert/weights/model_source.h"
#include "convert/weights/rope.h"
#include "host/base/source_file.h"

namespace fovea {

struct Family;

/// A matrix of a source whose rows are several maps of a recurrent part, one below the other.
struct RecurrentRows {
    std::vector<Role> maps;    ///< in their order
    bool by_key_head = false;  ///< of each key head in turn: its rows of every map
};

/// Tokens whose logits behind a text are its score: that of `yes`, less that of `no` if there is one.
struct ScoredTokens {
    Token yes = 0;
    std::optional<Token> no = {};
};

/// What made logits of a decoder's rows, where they become vectors or classes.
struct LeftOutLogits {
    bool tied = false, bias = false;
    float softcap = 0.0f, scale = 1.0f;
};

/// A model's config.json, as its family and the readers common to all read it.
struct HfConfig {
    ModelSource source;  ///< config, layer_blocks and info; the rest is still to come
    const Family* family = nullptr;
    bool encodes = false;  ///< a decoder whose rows become vectors or classes, not logits: its stack is the encoder's
    LeftOutLogits left_out = {};              ///< of such a decoder
    std::optional<ScoredTokens> scored = {};  ///< its head is one row, made of those of the output head
    std::optional<Token> unpooled = {};       ///< pads, behind whose last other token classes are read
    bool is_text_part = false;                ///< the rest of the source's tensors are left out: see keep_text_part
    std::optional<Quantization> quantization = {};      ///< how the weights are packed
    std::array<Rope, kMaxBlocks> ropes;                 ///< of each of the stack's blocks that rotates
    std::array<std::vector<float>, kMaxBlocks> slopes;  ///< of each that has ALiBi
    std::uint32_t n_relative_buckets = 0;               ///< rows of the source's relative_bias, see read_relative
    DistanceTables distances = {};                      ///< of disentangled positions
    /// Names of tensors for which the family's list has none or another: by role, and by layer or map; spelled as there.
    std::map<std::pair<Role, std::uint32_t>, std::string> names;
    /// By a table's role: another table, of so many rows, whose first row is added to each of its rows.
    std::map<Role, std::pair<std::string, std::uint32_t>> added_rows;
    /// Matrices from a table of another width, table_width, to the model's: names by the table's role. The product with
    /// the table becomes the file's tensor.
    std::map<Role, std::string> table_maps;
    std::uint32_t table_width = 0;
    bool output_from_embedding = false;       ///< the output head is that map of the embedding table
    std::vector<std::string> layer_prefixes;  ///< of each layer's names, if layers are not numbered one by one
    /// Files of a head's maps, where each has its own, as sentence-transformers' Dense does.
    std::vector<Safetensors> map_files;
    /// [max_positions, d_model] if positions follow from a formula: of both stacks, in place of what the source has.
    std::vector<float> positions = {};
    std::vector<RecurrentRows> recurrent_rows;  ///< matrices that hold several maps of a recurrent part
    std::map<Role, float> factors;              ///< what a matrix is multiplied by; of up: its gate
    std::uint32_t n_skipped_positions = 0;      ///< rows of the source's table of positions before that of position 0
    std::uint32_t n_skipped_layers = 0;  ///< layers of the source behind the stack's, which predict further tokens
    /// Layers that share sets of the source's tensors: the first of them has the first of n_shared_sets, and so on in turn.
    std::vector<std::uint32_t> sharing_layers;
    std::uint32_t n_shared_sets = 0;
    std::optional<Token> bos;
    std::vector<Token> eos;  ///< ids beyond the vocabulary left out: they can't come up

    /// The one stack there is; of two the decoder.
    [[nodiscard]] StackIndex stack_index() const;
    [[nodiscard]] Stack& stack();
    [[nodiscard]] const Stack& stack() const;
};

/// Where in a source's tensor one of ours lies.
enum class Within : std::uint8_t {
    alone,       ///< it is all of it
    stacked,     ///< query, key and value one below the other; or a gate above `up`
    above_gate,  ///< `up`, above its gate
    grouped,     ///< of each key-value head in turn: its queries, its key, its value
    quartered,   ///< of each quarter of the heads in turn: its queries, its values, its keys
    packed,  ///< all experts' matrices are one tensor, their columns before their rows; rows of a gate and of `up` alternate
    joined,         ///< one of a recurrent part's maps: see HfConfig::recurrent_rows
    gate_beside,    ///< of each head in turn: its queries, then its output gate
    fused,          ///< all experts' matrices are one tensor, rows before columns, rows of a gate before those of `up`
    fused_either,   ///< the same, or columns before rows if its shape says so
    fused_columns,  ///< the same, columns before rows
    below,          ///< each expert's hidden units below those of the one before it, whatever reads or makes them
};

/// The name there of a tensor of ours. "#" stands for the layer's prefix; a name that starts with "/" has no outer
/// prefix; "*" is the number of a head or an expert, each with a tensor of its own.
struct TensorName {
    Role role;
    const char* name;
    Within within = Within::alone;
    const char* gate = "";  ///< of a gated feed-forward part, beside `up`, if it is a tensor of its own
};

/// What a list of names says of a role.
struct TensorPlace {
    std::string name;  ///< empty: nothing
    Within within = Within::alone;
    std::string gate = {};
};

/// The first row for the role counts. Without one, a bias lies beside its weight, by ".bias" in place of ".weight", and keys and
/// values lie in the tensor that holds the queries. Biases of output heads and of norms of queries and keys need a row.
/// Norms without a place have weights of 1 and biases of 0.
[[nodiscard]] TensorPlace place_of(std::span<const TensorName> names, Role role);

/// A list of names that others may follow in part.
template<std::size_t n>
struct TensorNames : std::array<TensorName, n> {
    /// The same with others in place of some.
    template<std::size_t n_others>
    constexpr TensorNames<n + n_others> with(const TensorName (&others)[n_others]) const {
        TensorNames<n + n_others> result{};
        std::copy(this->begin(), this->end(), std::copy_n(others, n_others, result.begin()));
        return result;
    }
};
template<std::size_t n>
constexpr TensorNames<n> names_of(const TensorName (&names)[n]) {
    return TensorNames<0>{}.with(names);
}

/// Whether a checkpoint has the tensor of that name of the family's list, in any layer.
class Lookup {
public:
    virtual ~Lookup() = default;
    [[nodiscard]] virtual bool has(const char* name) const = 0;
    /// "transformer.h.0.attn.c_attn.bias", and the file, for notes.
    [[nodiscard]] virtual std::string full_name(const char* name) const = 0;
    [[nodiscard]] virtual std::string file() const = 0;
};

struct HeadForms;  // convert/families/heads.h

/// A model_type, and transformers' defaults for fields that its config.json lacks, as a JSON object; null: none. A
/// field that is null is not missing. Defaults that all families share, or that are more than a number, stand where
/// they are read. Files that transformers wrote have all fields. Files cut by hand lack some, which must get the
/// family's own value, not another's.
struct ModelType {
    std::string_view name;
    const char* defaults = nullptr;
};

struct Family {
    std::span<const ModelType> types;     ///< the types that it reads
    std::span<const TensorName> names;    ///< see place_of
    std::string_view outer = "model.";    ///< the prefix that the class with a head puts first
    std::string_view layers = "layers.";  ///< what comes before a layer's number
    /// Fills Stack, Block and rotary settings from config.json.
    void (*read)(const Fields& fields, const std::string& type, HfConfig& result);

    StackIndex stack = StackIndex::decoder;
    /// Tensor names of the encoder, in families that have one. `names` and `layers` are the decoder's.
    std::span<const TensorName> encoder_names = {};
    std::string_view encoder_layers = {};
    bool transposed = false;      ///< matrices of layers are [columns, rows]: Conv1D
    bool norms_less_one = false;  ///< a norm's weight is stored less 1
    /// Endings of names that older checkpoints have another word for.
    std::span<const std::pair<std::string_view, std::string_view>> older = {};
    /// Tensors that a checkpoint may hold and the model does not use. Null: none beyond those that any checkpoint may
    /// hold.
    bool (*ignores)(std::string_view name) = nullptr;
    /// Settles what only the tensors say. Null: nothing.
    void (*settle)(const Lookup& tensors, HfConfig& result) = nullptr;
    /// Changes a checkpoint's tensors before they are looked for. Null: nothing.
    void (*prepare)(const HfConfig& config, Safetensors& files) = nullptr;
    /// Chooses another family by other fields of config.json. It returns null for this one. A null pointer: always this one.
    const Family* (*variant)(const Fields& fields) = nullptr;
    std::uint32_t n_further_tokens = 0;  ///< rows of its table of tokens behind the vocabulary's
    bool reads_mxfp4 = false;            ///< experts may be quantized so (convert/formats/mxfp4.h)
    const HeadForms* heads = nullptr;    ///< what may predict from an encoder; null: nothing
};

/// The family that reads models of that type; null: none does.
[[nodiscard]] const Family* find_family(const std::string& model_type);
/// The fields, and the type's defaults for missing ones.
[[nodiscard]] Fields with_defaults(const Fields& fields, const Family& family, const std::string& model_type);
/// "bert, gpt2, llama or mistral"; of many names the first, and how many more there are.
[[nodiscard]] std::string alternatives(const std::vector<std::string>& names);
/// Every type that a family reads.
[[nodiscard]] std::vector<std::string> known_model_types();

namespace families {
#define FOVEA_FAMILY(name) extern const Family name;
#include "convert/families/families.inc"
#undef FOVEA_FAMILY
}  // namespace families

}  // namespace fovea
