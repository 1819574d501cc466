// A family of Hugging Face models: how its config.json reads, and what its tensors are called. Each has a file here and a
// line in families.inc; convert/sources/hf_model.cpp does the rest: lookup, shape, type, rotary order, gates, fused matrices.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/formats/safetensors.h"
#include "convert/sources/hf_config.h"

namespace fovea {

/// Where in a source's tensor one of ours lies.
enum class Within : std::uint8_t {
    alone,      ///< it is all of it
    stacked,    ///< query, key and value one below the other; or a gate above `up`
    grouped,    ///< of each key-value head in turn: its queries, its key, its value
    quartered,  ///< of each quarter of the heads in turn: its queries, its values, its keys
    packed,  ///< all experts' matrices are one tensor, their columns before their rows; rows of a gate and of `up` alternate
    fused,         ///< all experts' matrices are one tensor, rows before columns, rows of a gate before those of `up`
    fused_either,  ///< the same, or columns before rows where its shape says so
};

/// What a tensor of ours is called there. "#" stands for the layer's prefix; a name that starts with "/" has no outer prefix;
/// "*" is the number of a head or of an expert, each of which has a tensor.
/// Norms that a family does not name have weights of 1 and biases of 0.
struct TensorName {
    Role role;
    const char* name;
    Within within = Within::alone;
    const char* gate = nullptr;  ///< of a gated feed-forward part, beside `up`, where it is a tensor of its own
};

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

/// A model_type, and a JSON object of what transformers takes fields for that its config.json does not have; null: of none. A
/// field that is null is there. What is the same for every family, or is more than a number, stands where it is read.
/// Files that transformers wrote have all fields; those that people cut by hand lack some, and a family's own value would be
/// taken for another's.
struct ModelType {
    std::string_view name;
    const char* defaults = nullptr;
};

struct Family {
    std::span<const ModelType> types;   ///< those that it reads
    std::span<const TensorName> names;  ///< the first for a role counts
    std::string_view outer;             ///< the prefix that the class with a head puts first
    std::string_view layers;            ///< what comes before a layer's number
    /// Fills Stack, Block and rotary settings from config.json.
    void (*read)(const Fields& fields, const std::string& type, HfConfig& result);

    StackIndex stack = StackIndex::decoder;
    /// Of a family of two stacks: what its encoder's tensors are called, `names` and `layers` being the decoder's.
    std::span<const TensorName> encoder_names = {};
    std::string_view encoder_layers = {};
    bool transposed = false;      ///< matrices of layers are [columns, rows]: Conv1D
    bool norms_less_one = false;  ///< a norm's weight is stored less 1
    /// Endings of names that older checkpoints have another word for.
    std::span<const std::pair<std::string_view, std::string_view>> older = {};
    /// Tensors that a checkpoint may hold and the model has no use for. Null: none but those that all may hold.
    bool (*ignores)(std::string_view name) = nullptr;
    /// Settles what only the tensors say. Null: nothing.
    void (*settle)(const Lookup& tensors, HfConfig& result) = nullptr;
    /// Chooses another family by other fields of config.json. It returns null for this one. A null pointer: always this one.
    const Family* (*variant)(const Fields& fields) = nullptr;
    std::uint32_t n_further_tokens = 0;  ///< rows of its table of tokens behind the vocabulary's
    bool reads_mxfp4 = false;            ///< experts may be quantized so (convert/formats/mxfp4.h)
    const HeadForms* heads = nullptr;    ///< what may predict from an encoder; null: nothing
};

/// The family that reads models of that type; null: none does.
[[nodiscard]] const Family* find_family(const std::string& model_type);
/// The fields, and those of the type's defaults that are not among them.
[[nodiscard]] Fields with_defaults(const Fields& fields, const Family& family, const std::string& model_type);
/// "bert, gpt2, llama or mistral"; of many names the first, and how many more there are.
[[nodiscard]] std::string alternatives(const std::vector<std::string>& names);
/// Every type that is read, so.
[[nodiscard]] std::string known_model_types();

namespace families {
#define FOVEA_FAMILY(name) extern const Family name;
#include "convert/families/families.inc"
#undef FOVEA_FAMILY
}  // namespace families

}  // namespace fovea
