#include "convert/vocab_txt.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "convert/source_file.h"
#include "refusal.h"

namespace fovea {
namespace {

using nlohmann::json;

/// Of a token that stands twice the later id counts.
json read_lines(std::string_view text) {
    json vocab = json::object();
    for (std::uint32_t id = 0; !text.empty(); ++id) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        vocab[std::string(line)] = id;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return vocab;
}

/// A token of the configuration: a string, or an object with its content.
std::string token_name(const json& config, const char* key, const char* otherwise) {
    const json field = config.value(key, json());
    const json& name = field.is_object() ? field.value("content", json()) : field;
    return name.is_string() ? name.get<std::string>() : otherwise;
}

json setting(const json& config, const char* key, const json& otherwise) {
    return config.contains(key) && !config[key].is_null() ? config[key] : otherwise;
}

}  // namespace

std::vector<std::byte> tokenizer_section_from_vocab_txt(std::span<const char> text, const std::string& file_name,
                                                        const std::filesystem::path& config_path,
                                                        const TokenizerFacts& facts) {
    std::error_code error;
    const json config = std::filesystem::exists(config_path, error) ? Fields::read(config_path).json() : json::object();
    if (setting(config, "do_basic_tokenize", true) != true)
        throw Refusal(config_path.string() + ": do_basic_tokenize: want true, have false");
    const json vocab = read_lines({text.data(), text.size()});
    const std::string cls = token_name(config, "cls_token", "[CLS]"), sep = token_name(config, "sep_token", "[SEP]");
    const std::string unknown = token_name(config, "unk_token", "[UNK]");
    json added = json::array(), special_tokens = json::object();
    for (const std::string& name :
         {cls, sep, unknown, token_name(config, "pad_token", "[PAD]"), token_name(config, "mask_token", "[MASK]")}) {
        if (!vocab.contains(name)) {
            if (name == cls || name == sep) throw Refusal(file_name + ": want the token " + name + ", have none");
            continue;
        }
        added.push_back({{"id", vocab[name]}, {"content", name}, {"special", true}, {"normalized", false}});
        special_tokens[name] = {{"ids", {vocab[name]}}};
    }
    const auto special = [](const std::string& name) -> json { return {{"SpecialToken", {{"id", name}}}}; };
    const json whole = {
        {"added_tokens", added},
        {"normalizer",
         {{"type", "BertNormalizer"},
          {"handle_chinese_chars", setting(config, "tokenize_chinese_chars", true)},
          {"strip_accents", setting(config, "strip_accents", nullptr)},
          {"lowercase", setting(config, "do_lower_case", true)}}},
        {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
        {"post_processor",
         {{"type", "TemplateProcessing"},
          {"single", {special(cls), {{"Sequence", {{"id", "A"}}}}, special(sep)}},
          {"special_tokens", special_tokens}}},
        {"decoder", {{"type", "WordPiece"}}},
        {"model", {{"type", "WordPiece"}, {"unk_token", unknown}, {"vocab", vocab}}},
    };
    std::string as_json;
    try {
        as_json = whole.dump();
    } catch (const json::exception&) {
        throw Refusal(file_name + ": want UTF-8, have other bytes");
    }
    return tokenizer_section_from_json(as_json, file_name, facts);
}

}  // namespace fovea
