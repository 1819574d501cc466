#include "convert/word_piece.h"

#include "convert/refusal.h"

namespace fovea {

using nlohmann::json;

// Written as a tokenizer.json, so that there is one reader of what such files mean.
std::vector<std::byte> tokenizer_section_from_word_piece(const WordPiece& source, const std::string& file_name,
                                                         const TokenizerFacts& facts) {
    json added = json::array(), special_tokens = json::object();
    for (const WordPiece::Added& token : source.added)
        added.push_back({{"id", source.ids.at(token.spelling)},
                         {"content", token.spelling},
                         {"special", token.special},
                         {"normalized", false}});
    for (const std::string& name : {source.cls, source.sep}) special_tokens[name] = {{"ids", {source.ids.at(name)}}};
    const auto special = [](const std::string& name) -> json { return {{"SpecialToken", {{"id", name}}}}; };
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
          {"single", {special(source.cls), {{"Sequence", {{"id", "A"}}}}, special(source.sep)}},
          {"special_tokens", special_tokens}}},
        {"decoder", {{"type", "WordPiece"}}},
        {"model", {{"type", "WordPiece"}, {"unk_token", source.unknown}, {"vocab", source.ids}}},
    };
    std::string as_json;
    try {
        as_json = whole.dump();
    } catch (const json::exception&) {
        throw Refusal(file_name + ": expected UTF-8, got other bytes");
    }
    return tokenizer_section_from_json(as_json, file_name, facts);
}

}  // namespace fovea
