#include "convert/sources/hf_prompts.h"

#include <algorithm>
#include <string>

#include "convert/formats/text_file.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/source_file.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

/// Whether a prompt's tokens are pooled with those of the text; read_sentence_modules has read the same files.
bool pools_prompts_of(const fs::path& folder) {
    const Mapping mapping = map_source(folder / "modules.json");
    const SortedJson modules = read_sorted_json(text_of(mapping));
    for (const SortedJson& module : modules)
        if (const std::string type = module.at("type").get<std::string>(); type.ends_with("Pooling"))
            return Fields::read(folder / module.at("path").get<std::string>() / "config.json")
                .flag_or("include_prompt", true);
    return true;
}

constexpr const char* kSimilarities[] = {"cosine", "dot", "euclidean", "manhattan"};

}  // namespace

void add_prompts(const fs::path& folder, const char* kind, ModelSource& source) {
    if (!pools_prompts_of(folder)) source.info.emplace_back("include_prompt", "false");
    const fs::path path = folder / "config_sentence_transformers.json";
    if (!is_there(path)) return;
    const Fields fields = Fields::read(path);
    // Modules of another kind are left aside by sentence-transformers, which makes some of its own.
    if (fields.json().contains("model_type") && fields.text_or("model_type", "none") != kind)
        fields.refuse("model_type", kind);
    if (fields.has("truncate_dim"))
        source.info.emplace_back("truncate_dim", std::to_string(fields.count("truncate_dim", 1, kMaxWidth)));
    if (const std::string likeness = fields.text_or("similarity_fn_name", ""); !likeness.empty()) {
        if (std::find(std::begin(kSimilarities), std::end(kSimilarities), likeness) == std::end(kSimilarities))
            fields.refuse("similarity_fn_name", "cosine, dot, euclidean or manhattan");
        source.info.emplace_back("similarity", likeness);
    }
    const std::string chosen = fields.text_or("default_prompt_name", "");
    const auto refuse = [&](const std::string& name, const std::string& wanted) {
        throw host::Error(path.string() + ": " + name + ": expected " + wanted + ", got another");
    };
    if (!fields.has("prompts")) {
        if (!chosen.empty()) refuse("default_prompt_name", "one of the prompts' names");
        return;
    }
    constexpr std::size_t kMostBytes = 1u << 16;
    const Fields prompts = fields.object("prompts");
    SortedJson texts = prompts.json();
    for (auto& [name, prompt] : texts.items()) {
        if (prompt.is_null()) prompt = "";
        if (!prompt.is_string()) refuse("prompts: " + name, "a text");
    }
    const std::string text = json_text(texts);
    if (text.size() > kMostBytes) refuse("prompts", "at most " + std::to_string(kMostBytes) + " bytes");
    if (!chosen.empty() && !texts.contains(chosen)) refuse("default_prompt_name", "one of the prompts' names");
    if (prompts.json().empty()) return;
    source.info.emplace_back("prompts", text);
    if (!chosen.empty()) source.info.emplace_back("default_prompt", chosen);
}

}  // namespace fovea
