#include "convert/tokenizers/word_piece.h"

#include "host/base/error.h"

namespace fovea {

// Written as a tokenizer.json, so that one reader knows the meaning of such files.
std::vector<std::byte> tokenizer_section_from_word_piece(const WordPiece& source, const std::string& file_name,
                                                         const TokenizerFacts& facts) {
    SortedJson added = SortedJson::array(), special_tokens = SortedJson::object();
    for (const WordPiece::Added& token : source.added)
        added.push_back({{"id", source.ids.at(token.spelling)},
                         {"content", token.spelling},
                         {"special", token.special},
                         {"normalized", false}});
    for (const std::string& name : {source.cls, source.sep}) special_tokens[name] = {{"ids", {source.ids.at(name)}}};
    const auto special = [](const std::string& name, int type = 0) -> SortedJson {
        return {{"SpecialToken", {{"id", name}, {"type_id", type}}}};
    };
    const auto text = [](const char* id, int type) -> SortedJson {
        return {{"Sequence", {{"id", id}, {"type_id", type}}}};
    };
    const SortedJson whole = {
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
    } catch (const SortedJson::exception&) {
        throw host::Error(file_name + ": expected UTF-8, got other bytes");
    }
    std::vector<std::string> none;  // each added token is in the vocabulary, whose ids are checked
    return tokenizer_section_from_json(as_json, file_name, facts, none);
}

}  // namespace fovea
