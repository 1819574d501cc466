#include "convert/tokenizers/vocab_txt.h"

#include <algorithm>
#include <string_view>

#include "convert/formats/text_file.h"
#include "convert/tokenizers/json_field.h"
#include "convert/tokenizers/word_piece.h"
#include "host/base/error.h"
#include "host/base/source_file.h"

namespace fovea {
namespace {

/// A line is a token, its number the id. If a token stands twice, the later id counts.
SortedJson read_lines(std::string_view text) {
    SortedJson vocab = SortedJson::object();
    for (std::uint32_t id = 0; !text.empty(); ++id) vocab[std::string(take_line(text))] = id;
    return vocab;
}

std::string token_name(const SortedJson& config, const char* key, const char* otherwise) {
    return token_text(config.value(key, SortedJson()), otherwise);
}

SortedJson setting(const SortedJson& config, const char* key, const SortedJson& otherwise) {
    return config.contains(key) && !config[key].is_null() ? config[key] : otherwise;
}

}  // namespace

std::vector<std::byte> tokenizer_section_from_vocab_txt(std::span<const char> text, const std::string& file_name,
                                                        const std::filesystem::path& config_path,
                                                        const TokenizerFacts& facts) {
    std::error_code error;
    const SortedJson config =
        std::filesystem::exists(config_path, error) ? Fields::read(config_path).json() : SortedJson::object();
    if (setting(config, "do_basic_tokenize", true) != true)
        throw host::Error(config_path.string() + ": do_basic_tokenize: expected true, got false");
    WordPiece result;
    result.ids = read_lines({text.data(), text.size()});
    result.cls = token_name(config, "cls_token", "[CLS]");
    result.sep = token_name(config, "sep_token", "[SEP]");
    result.unknown = token_name(config, "unk_token", "[UNK]");
    for (const std::string& name : {result.cls, result.sep, result.unknown, token_name(config, "pad_token", "[PAD]"),
                                    token_name(config, "mask_token", "[MASK]")}) {
        if (result.ids.contains(name))
            result.added.push_back({name, true});
        else if (name == result.cls || name == result.sep)
            throw host::Error(file_name + ": expected the token " + name + ", got none");
    }
    result.lower_case = setting(config, "do_lower_case", true);
    result.strip_accents = setting(config, "strip_accents", nullptr);
    result.chinese_apart = setting(config, "tokenize_chinese_chars", true);
    return tokenizer_section_from_word_piece(result, file_name, facts);
}

}  // namespace fovea
