#include "convert/text_part.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace fovea {
namespace {

/// Those whose text model sees texts alone as it would without the rest: causal, with the same positions.
constexpr std::string_view kWholes[] = {
    "gemma3",   "mistral3", "llava",    "llava_next", "llava_next_video", "llava_onevision", "video_llava",
    "vipllava", "internvl", "idefics2", "idefics3",   "smolvlm",          "qwen2_audio"};

/// How names of its tensors begin, in the order they are tried, and what they begin with in a model of it alone.
constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {
    {"model.language_model.", "model."},
    {"language_model.model.", "model."},
    {"language_model.lm_head.", "lm_head."},
    {"model.text_model.", "model."},
    {"lm_head.", "lm_head."},
};

}  // namespace

std::optional<Fields> text_part(const Fields& fields) {
    if (!fields.has("text_config") || !fields.has("model_type")) return {};
    const std::string type = fields.text("model_type");
    if (std::find(std::begin(kWholes), std::end(kWholes), type) == std::end(kWholes)) return {};
    nlohmann::json of_whole = nlohmann::json::object();
    for (const char* name :
         {"bos_token_id", "eos_token_id", "tie_word_embeddings", "quantization_config", "_name_or_path"})
        if (fields.has(name)) of_whole[name] = fields.json()[name];
    return fields.object("text_config").or_else(of_whole);
}

void keep_text_part(Safetensors& weights) {
    decltype(weights.tensors) kept;
    for (auto& [name, tensor] : weights.tensors)
        for (const auto& [prefix, instead] : kPrefixes)
            if (name.starts_with(prefix)) {
                kept.emplace(std::string(instead) + name.substr(prefix.size()), std::move(tensor));
                break;
            }
    weights.tensors = std::move(kept);
}

}  // namespace fovea
