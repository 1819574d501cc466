#include "convert/sources/hf_texts.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "convert/formats/text_file.h"
#include "convert/tokenizers/json_field.h"
#include "host/base/json.h"
#include "host/base/source_file.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr double kMostTokens = std::numeric_limits<std::uint32_t>::max();

/// The file's name has been the encoder's own, too.
[[nodiscard]] fs::path module_config(const fs::path& folder) {
    for (const char* name : {"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
        const fs::path path = folder / ("sentence_" + std::string(name) + "_config.json");
        if (is_there(path)) return path;
    }
    return {};
}

/// How a Transformer module has its chat template make prompts of messages.
TextSettings::Messages read_messages(const Fields& fields, const Fields& message) {
    TextSettings::Messages messages{.structured = message.text_or("format", "structured") == "structured"};
    if (!fields.has("processing_kwargs")) return messages;
    const Fields kwargs = fields.object("processing_kwargs");
    if (!kwargs.has("chat_template")) return messages;
    const Fields given = kwargs.object("chat_template");
    messages.opens_answer = given.flag_or("add_generation_prompt", false);
    messages.variables = given.json();
    for (const char* other :
         {"add_generation_prompt", "restore_suffix", "padding", "truncation", "max_length", "return_tensors"})
        messages.variables.erase(other);
    return messages;
}

/// What a Transformer module does to texts.
void read_module(const fs::path& path, TextSettings& settings) {
    const Fields fields = Fields::read(path);
    settings.most_tokens = fields.count_or("max_seq_length", 0);
    settings.lower_case = fields.flag_or("do_lower_case", false);
    if (fields.has("modality_config")) {
        const Fields modalities = fields.object("modality_config");
        if (modalities.has("message")) settings.messages = read_messages(fields, modalities.object("message"));
        if (modalities.has("text")) {
            const Fields text = modalities.object("text");  // a CrossEncoder's are logits
            const std::string output = text.text_or("method_output_name", "last_hidden_state");
            if (output != "last_hidden_state" && output != "logits")
                text.refuse("method_output_name", "last_hidden_state or logits");
        }
    }
    if (fields.has("processing_kwargs"))  // they count more than max_seq_length
        for (const char* of : {"common", "text"})
            if (const Fields kwargs = fields.object("processing_kwargs"); kwargs.has(of))
                settings.most_tokens = kwargs.object(of).count_or("max_length", settings.most_tokens);
    settings.module_says = settings.most_tokens != 0;
}

/// transformers' classes for BERT and its kin make their steps of their settings alone, whatever a tokenizer.json says.
std::optional<BertSettings> read_bert(const Fields& fields) {
    std::string name = fields.text_or("tokenizer_class", "");
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    constexpr const char* kClasses[] = {"BertTokenizer",       "DistilBertTokenizer", "ElectraTokenizer",
                                        "MPNetTokenizer",      "MobileBertTokenizer", "ConvBertTokenizer",
                                        "SqueezeBertTokenizer"};
    if (std::find(std::begin(kClasses), std::end(kClasses), name) == std::end(kClasses)) return {};
    BertSettings bert{fields.flag_or("do_lower_case", true), {}, fields.flag_or("tokenize_chinese_chars", true)};
    const auto role = [&](const char* name) { return token_text(fields.json().value(name, SortedJson())); };
    bert.cls = role("cls_token"), bert.sep = role("sep_token"), bert.unknown = role("unk_token");
    if (fields.has("strip_accents")) bert.strip_accents = fields.flag_or("strip_accents", false);
    return bert;
}

void read_tokenizer(const fs::path& path, TextSettings& settings) {
    const Fields fields = Fields::read(path);
    const SortedJson most = fields.json().value("model_max_length", SortedJson());
    if (!settings.most_tokens && most.is_number() && most >= 1 && most <= kMostTokens)
        settings.most_tokens = most.get<std::uint32_t>();
    settings.adds_bos = fields.flag_or("add_bos_token", true);
    settings.adds_eos = fields.flag_or("add_eos_token", false);
    // transformers' own classes go by tokenizer.json alone; those that a folder brings (gte-Qwen2's) add what the flag says.
    const SortedJson code = fields.json().value("auto_map", SortedJson());
    settings.appends_eos = settings.adds_eos && code.is_object() && code.contains("AutoTokenizer");
    if (fields.has("model_input_names")) {
        const std::vector<std::string> names = fields.texts("model_input_names");
        settings.has_token_types = std::find(names.begin(), names.end(), "token_type_ids") != names.end();
    }
    settings.bert = read_bert(fields);
    settings.cuts_front = fields.text_or("truncation_side", settings.cuts_front ? "left" : "right") == "left";
}

/// A tokenizer.json may say by itself where texts are cut; tokenizer_config.json counts more.
bool truncates_left(const fs::path& path) {
    using Event = SortedJson::parse_event_t;
    const Mapping mapping = map_source(path);
    const std::string_view text = text_of(mapping);
    check_json_depth(text, path.string());
    const auto is_wanted = [](int depth, Event event, const SortedJson& parsed) {  // not the vocabulary
        return event != Event::key || depth != 1 || parsed == "truncation";
    };
    const SortedJson json = read_sorted_json(text, nullptr, is_wanted);
    const auto found = json.find("truncation");
    return json.is_object() && found != json.end() && found->is_object() &&
           found->value("direction", SortedJson()) == "Left";
}

}  // namespace

TextSettings read_text_settings(const fs::path& folder) {
    TextSettings settings;
    if (const fs::path module = module_config(folder); !module.empty()) read_module(module, settings);
    if (const fs::path tokenizer = folder / "tokenizer.json"; is_there(tokenizer))
        settings.cuts_front = truncates_left(tokenizer);
    if (const fs::path tokenizer = folder / "tokenizer_config.json"; is_there(tokenizer))
        read_tokenizer(tokenizer, settings);
    return settings;
}

}  // namespace fovea
