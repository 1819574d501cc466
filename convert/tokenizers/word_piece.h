// Makes a tokenizer section of a WordPiece vocabulary, from any kind of file.
#pragma once
#include <string>
#include <vector>

#include "convert/tokenizers/tokenizer_json.h"
#include "host/base/json.h"

namespace fovea {

struct WordPiece {
    struct Added {
        std::string spelling;  ///< one of `ids`
        bool special;
    };

    SortedJson ids = SortedJson::object();  ///< by spelling, with "##" first if a token continues a word
    std::vector<Added> added;               ///< found in the text as they are
    std::string cls, sep, unknown;          ///< spellings; the first two go around every text
    SortedJson lower_case = true;           ///< true or false, as a file may say it: anything else is refused
    SortedJson strip_accents;               ///< null: as lower_case
    SortedJson chinese_apart = true;        ///< each Chinese character is a word
};

/// The section's bytes. Throws host::Error, naming `file_name`, if the vocabulary is none.
[[nodiscard]] std::vector<std::byte> tokenizer_section_from_word_piece(const WordPiece& source,
                                                                       const std::string& file_name,
                                                                       const TokenizerFacts& facts);

}  // namespace fovea
