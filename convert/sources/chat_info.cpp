#include "convert/sources/chat_info.h"

#include <string>

#include "convert/formats/gguf.h"
#include "convert/formats/text_file.h"
#include "convert/tokenizers/json_field.h"
#include "host/base/json.h"
#include "host/base/source_file.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTextBytes = 256u << 20;  // of a template

void add_text(const char* key, const std::string& text, ModelSource& source) {
    if (!text.empty()) source.info.emplace_back(key, text);
}

[[nodiscard]] std::string file_text(const fs::path& path) {
    if (!is_there(path)) return {};
    return std::string(text_of(map_source(path, kMostTextBytes)));
}

/// A template of tokenizer_config.json: the field's text is the default one; a list has them by name.
[[nodiscard]] std::string template_of(const SortedJson& config, const std::string& name) {
    const auto field = config.find("chat_template");
    if (field == config.end()) return {};
    if (field->is_string()) return name == "default" ? field->get<std::string>() : std::string();
    for (const SortedJson& entry : field->is_array() ? *field : SortedJson::array())
        if (entry.is_object() && entry.value("name", SortedJson()) == name && entry.contains("template") &&
            entry["template"].is_string())
            return entry["template"].get<std::string>();
    return {};
}

}  // namespace

void add_chat_info(const fs::path& folder, ModelSource& source) {
    const auto object_in = [&](const char* name) {
        return is_there(folder / name) ? Fields::read(folder / name).json() : SortedJson::object();
    };
    const SortedJson config = object_in("tokenizer_config.json");
    std::string text = file_text(folder / "chat_template.jinja");
    if (text.empty()) text = template_of(config, "default");
    if (text.empty()) return;
    add_text("chat_template", text, source);
    std::string with_tools = file_text(folder / "additional_chat_templates" / "tool_use.jinja");
    if (with_tools.empty()) with_tools = template_of(config, "tool_use");
    add_text("chat_template_tool_use", with_tools, source);
    const SortedJson map = object_in("special_tokens_map.json");
    SortedJson tokens = SortedJson::object();
    for (const char* name : {"bos_token", "eos_token"}) {
        const std::string token = token_text(config.value(name, SortedJson()));
        if (config.contains(name) || map.contains(name))
            tokens[name] = token.empty() ? token_text(map.value(name, SortedJson())) : token;
    }
    if (tokens.empty()) return;
    add_text("special_tokens", json_text(tokens), source);
}

void add_chat_info(const Gguf& file, ModelSource& source) {
    const std::string text = file.text_or("tokenizer.chat_template", "");
    if (text.empty()) return;
    add_text("chat_template", text, source);
    add_text("chat_template_tool_use", file.text_or("tokenizer.chat_template.tool_use", ""), source);
    SortedJson tokens = SortedJson::object();
    for (const std::string name : {"bos", "eos"}) {
        const std::string key = "tokenizer.ggml." + name + "_token_id";
        if (!file.has(key) || !file.has_list("tokenizer.ggml.tokens", GgufKind::text)) continue;
        std::uint32_t left = file.count(key, 0);
        file.for_each_text("tokenizer.ggml.tokens", [&](std::string_view token) {
            if (left-- == 0) tokens[name + "_token"] = token;
        });
    }
    if (!tokens.empty()) add_text("special_tokens", json_text(tokens), source);
}

}  // namespace fovea
