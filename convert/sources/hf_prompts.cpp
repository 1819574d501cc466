#include "convert/sources/hf_prompts.h"

#include <string>

#include "convert/formats/text_file.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/source_file.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

/// Whether a prompt's tokens are pooled with those of the text; read_sentence_modules has read the same files.
bool pools_prompts(const fs::path& folder) {
    const Mapping mapping = map_source(folder / "modules.json");
    const SortedJson modules = read_sorted_json(text_of(mapping));
    const std::string path = modules.at(1).at("path").get<std::string>();
    return Fields::read(folder / path / "config.json").flag_or("include_prompt", true);
}

}  // namespace

void add_prompts(const fs::path& folder, ModelSource& source) {
    const fs::path path = folder / "config_sentence_transformers.json";
    if (!is_there(path)) return;
    const Fields fields = Fields::read(path);
    if (fields.has("truncate_dim")) source.notes.push_back(path.string() + ": truncate_dim: vectors are given whole");
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
    if (!pools_prompts(folder)) {
        source.notes.push_back(path.string() +
                               ": prompts: left out, for the pooling passes over them (include_prompt)");
        return;
    }
    source.info.emplace_back("prompts", text);
    if (!chosen.empty()) source.info.emplace_back("default_prompt", chosen);
}

}  // namespace fovea
