#include "convert/hf_texts.h"

#include <algorithm>
#include <limits>

#include "convert/refusal.h"
#include "convert/source_file.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr double kMostTokens = std::numeric_limits<std::uint32_t>::max();

[[nodiscard]] bool is_there(const fs::path& path) {
    std::error_code error;
    return fs::exists(path, error);
}

/// The file's name has been the encoder's own, too.
[[nodiscard]] fs::path module_config(const fs::path& folder) {
    for (const char* name : {"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
        const fs::path path = folder / ("sentence_" + std::string(name) + "_config.json");
        if (is_there(path)) return path;
    }
    return {};
}

/// What a Transformer module does to texts.
void read_module(const fs::path& path, TextSettings& settings) {
    const Fields fields = Fields::read(path);
    settings.most_tokens = fields.count_or("max_seq_length", 0);
    settings.lower_case = fields.flag_or("do_lower_case", false);
    if (fields.has("modality_config")) {
        const Fields modalities = fields.object("modality_config");
        if (modalities.has("message")) modalities.refuse("message", "texts as they are, without the chat template");
        if (modalities.has("text") &&
            modalities.object("text").text_or("method_output_name", "last_hidden_state") != "last_hidden_state")
            modalities.object("text").refuse("method_output_name", "last_hidden_state");
    }
    if (!settings.most_tokens && fields.has("processing_kwargs") && fields.object("processing_kwargs").has("text"))
        settings.most_tokens = fields.object("processing_kwargs").object("text").count_or("max_length", 0);
}

void read_tokenizer(const fs::path& path, TextSettings& settings) {
    const Fields fields = Fields::read(path);
    const double most = fields.number_or("model_max_length", 1, 1e300, 0);
    if (!settings.most_tokens && most <= kMostTokens) settings.most_tokens = static_cast<std::uint32_t>(most);
    settings.adds_bos = fields.flag_or("add_bos_token", true);
    settings.adds_eos = fields.flag_or("add_eos_token", false);
    if (fields.has("model_input_names")) {
        const std::vector<std::string> names = fields.texts("model_input_names");
        settings.has_token_types = std::find(names.begin(), names.end(), "token_type_ids") != names.end();
    }
    if (fields.text_or("truncation_side", "right") == "left")
        settings.notes.push_back(path.string() + ": truncation_side: texts that are too long are cut at their end");
}

}  // namespace

TextSettings read_text_settings(const fs::path& folder) {
    TextSettings settings;
    if (const fs::path module = module_config(folder); !module.empty()) read_module(module, settings);
    if (const fs::path tokenizer = folder / "tokenizer_config.json"; is_there(tokenizer))
        read_tokenizer(tokenizer, settings);
    return settings;
}

}  // namespace fovea
