#include "convert/sources/text_part.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "host/base/error.h"
#include "host/base/json.h"

namespace fovea {
namespace {

/// Those whose text model sees texts alone as it would without the rest: causal, with the same positions.
constexpr std::string_view kModelTypes[] = {
    "gemma3",      "gemma4",       "gemma4_unified",   "llama4",          "mistral3",
    "qwen2_vl",    "qwen2_5_vl",   "qwen3_vl",         "qwen3_vl_moe",    "mllama",
    "llava",       "llava_next",   "llava_next_video", "llava_onevision", "video_llava",
    "vipllava",    "qwen3_5",      "qwen3_5_moe",      "internvl",        "idefics2",
    "idefics3",    "smolvlm",      "qwen2_audio",      "voxtral",         "glm4v",
    "glm46v",      "exaone4_5",    "got_ocr2",         "lighton_ocr",     "ovis2",
    "deepseek_vl", "video_llama_3"};

/// Those whose published files have the text model's fields among their own, and its type.
constexpr std::pair<std::string_view, const char*> kFlat[] = {{"qwen2_vl", "qwen2_vl_text"},
                                                              {"qwen2_5_vl", "qwen2_5_vl_text"}};

/// How names of its tensors begin, in the order they are tried, and what they begin with in a model of it alone.
constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {
    {"model.language_model.", "model."},
    {"language_model.model.", "model."},
    {"language_model.lm_head.", "lm_head."},
    {"model.text_model.", "model."},
    {"lm_head.", "lm_head."},
    {"model.layers.", "model.layers."},
    {"model.embed_tokens.", "model.embed_tokens."},
    {"model.norm.", "model.norm."},
};

/// Sizes that a text_config of the type has where it does not say them, as transformers' classes have them: files within others
/// are as short as that.
constexpr std::pair<std::string_view, const char*> kSizes[] = {
    {"llama", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
                  "num_attention_heads": 32})"},
    {"mistral", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                    "num_attention_heads": 32, "num_key_value_heads": 8})"},
    {"qwen2", R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
                  "num_attention_heads": 32, "num_key_value_heads": 32})"},
    {"qwen3", R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
                  "num_attention_heads": 32})"},
    {"qwen2_vl_text",
     R"({"vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80,
                          "num_attention_heads": 64})"},
    {"qwen2_5_vl_text", R"({"vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568,
                            "num_hidden_layers": 80, "num_attention_heads": 64})"},
    {"qwen3_vl_text", R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
                          "num_hidden_layers": 32, "num_attention_heads": 32})"},
    {"qwen3_5_text", R"({"vocab_size": 248320, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 32,
                         "num_attention_heads": 16})"},
    {"qwen3_5_moe_text", R"({"vocab_size": 248320, "hidden_size": 2048, "num_hidden_layers": 40,
                             "num_attention_heads": 16})"},
    {"llama4_text",
     R"({"vocab_size": 202048, "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
                        "num_hidden_layers": 48, "num_attention_heads": 40})"},
    {"mllama_text_model", R"({"vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
                              "num_hidden_layers": 40, "num_attention_heads": 32})"},
    {"glm4v_text", R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40,
                       "num_attention_heads": 32})"},
    {"exaone4", R"({"vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 32,
                    "num_attention_heads": 32, "num_key_value_heads": 32})"},
    {"gemma4_text", R"({"vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 30,
                        "num_attention_heads": 8})"},
    {"gemma4_unified_text", R"({"vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216,
                                "num_hidden_layers": 30, "num_attention_heads": 8})"},
    {"gemma3_text", R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
                        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256})"},
};

/// What a tensor of the whole is called in a model of the text part alone; nothing for the other parts'.
std::optional<std::string> name_alone(std::string_view name) {
    for (const auto& [prefix, instead] : kPrefixes)
        if (name.starts_with(prefix)) return std::string(instead) += name.substr(prefix.size());
    return {};
}

/// The same of a module, or of a tensor in one, by the class with a head or by that without.
std::optional<std::string> module_alone(const std::string& name) {
    for (const char* outer : {"", "model."})
        if (auto alone = name_alone(outer + name + ".")) {
            alone->pop_back();
            return alone;
        }
    return {};
}

/// What Voxtral's text_config has where it does not say it, whatever its type has.
constexpr const char* kOfVoxtral =
    R"({"model_type": "llama", "vocab_size": 131072, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 30,
        "num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 100000000.0,
        "head_dim": 128})";

}  // namespace

std::optional<Fields> text_part(const Fields& fields) {
    if (!fields.has("model_type")) return {};
    const std::string type = fields.text("model_type");
    if (std::find(std::begin(kModelTypes), std::end(kModelTypes), type) == std::end(kModelTypes)) return {};
    if (!fields.has("text_config")) {
        for (const auto& [whole, of_text] : kFlat)
            if (type == whole) return fields.with("model_type", of_text);
        return {};
    }
    SortedJson of_whole = SortedJson::object();
    for (const char* name :
         {"bos_token_id", "eos_token_id", "tie_word_embeddings", "quantization_config", "_name_or_path"})
        if (fields.has(name)) of_whole[name] = fields.json()[name];
    Fields part = fields.object("text_config").or_else(of_whole);
    if (fields.flag_or("tie_word_embeddings", false)) part = part.with("tie_word_embeddings", true);
    if (type == "voxtral") part = part.or_else(read_sorted_json(kOfVoxtral));
    const std::string of_part = part.text("model_type");
    for (const auto& [name, sizes] : kSizes)
        if (of_part == name) return part.or_else(read_sorted_json(sizes));
    return part;
}

void keep_text_part(Safetensors& weights) {
    decltype(weights.tensors) kept;
    for (auto& [name, tensor] : weights.tensors)
        if (const auto alone = name_alone(name); alone && !kept.emplace(*alone, std::move(tensor)).second)
            throw host::Error("tensor " + name + ": expected one tensor of the text model's " + *alone + ", got two");
    weights.tensors = std::move(kept);
}

void keep_text_part(LoraFolder& folder, std::vector<std::string>& notes) {
    std::vector<LoraProduct> products;
    decltype(folder.replaced) replaced;
    decltype(folder.copied) copied;
    std::string left_out;
    for (LoraProduct& product : folder.products)
        if (const auto alone = module_alone(product.module)) {
            product.module = *alone;
            products.push_back(std::move(product));
        } else {
            left_out = product.module;
        }
    for (auto& [name, tensor] : folder.replaced)
        if (const auto alone = module_alone(name)) {
            if (folder.copied.count(name)) copied.insert(*alone);
            replaced.emplace(*alone, std::move(tensor));
        } else {
            left_out = name;
        }
    if (products.empty() && replaced.empty())
        throw host::Error(folder.config.string() + ": expected an adapter of the text model, got one of " + left_out);
    if (!left_out.empty())
        notes.push_back(folder.config.string() + ": what is not of the text model is left out, such as " + left_out);
    folder.products = std::move(products);
    folder.replaced = std::move(replaced);
    folder.copied = std::move(copied);
}

}  // namespace fovea
