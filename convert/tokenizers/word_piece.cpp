#include "convert/tokenizers/word_piece.h"

#include "host/base/error.h"

namespace fovea {

using nlohmann::json;

// Written as a tokenizer.json, so that one reader knows the meaning of such files.
std::vector<std::byte> tokenizer_section_from_word_piece(const WordPiece& source, const std::string& file_name,
                                                         const TokenizerFacts& facts) {
    json added = json::array(), special_tokens = json::object();
    for (const WordPiece::Added& token : source.added)
        added.push_back({{"id", source.ids.at(token.spelling)},
                         {"content", token.spelling},
                         {"special", token.special},
                         {"normalized", false}});
    for (const std::string& name : {source.cls, source.sep}) special_tokens[name] = {{"ids", {source.ids.at(name)}}};
    const auto special = [](const std::string& name, int type = 0) -> json {
        return {{"SpecialToken", {{"id", name}, {"type_id", type}}}};
    };
    const auto text = [](const char* id, int type) -> json { return {{"Sequence", {{"id", id}, {"type_id", type}}}}; };
    const json whole = {
        {"added_tokens", added},
        {"normalizer",
         {{"type", "BertNormalizer"},
          {"handle_chinese_chars", source.chinese_apart},
          {"strip_accents", source.strip_accents},
          {"lowercase", source.lower_case}}},
        {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
        {"post_processor",
         {{"type", "TemplateProcessing"},
          {"single", {special(source.cls), text("A", 0), special(source.sep)}},
          {"pair", {special(source.cls), text("A", 0), special(source.sep), text("B", 1), special(source.sep, 1)}},
          {"special_tokens", special_tokens}}},
        {"decoder", {{"type", "WordPiece"}}},
        {"model", {{"type", "WordPiece"}, {"unk_token", source.unknown}, {"vocab", source.ids}}},
    };
    std::string as_json;
    try {
        as_json = whole.dump();
    } catch (const json::exception&) {
        throw host::Error(file_name + ": expected UTF-8, got other bytes");
    }
    return tokenizer_section_from_json(as_json, file_name, facts);
}

}  // namespace fovea
