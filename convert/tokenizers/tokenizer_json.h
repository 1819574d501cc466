// A Hugging Face tokenizer.json becomes a tokenizer section.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/config.h"
#include "host/base/json.h"

namespace fovea {

/// What tokenizer_config.json says to BERT's tokenizer class, which makes its steps of that alone.
struct BertSettings {
    bool lower_case = true;
    std::optional<bool> strip_accents = {};  ///< none: as lower_case
    bool chinese_apart = true;
    std::string cls = {}, sep = {}, unknown = {};  ///< tokens of these roles; empty where it names none
};

/// Facts about the model that the tokenizer's own file does not hold.
struct TokenizerFacts {
    std::uint32_t vocab_size =
        0;  ///< rows of the model's embedding; added tokens beyond are left out, other ids refused
    std::optional<Token> bos = {};          ///< config.json's bos_token_id
    std::vector<Token> eos = {};            ///< config.json's and generation_config.json's eos_token_id, one or several
    bool lower_case = false;                ///< texts are lower-cased before anything else
    std::optional<BertSettings> bert = {};  ///< of a class of transformers', which heeds no BertNormalizer in the file
    bool has_token_types = true;            ///< else the second text of a pair is of the first's type
    bool adds_bos = true, adds_eos = false;   ///< of a SentencePiece model, which does not say
    bool appends_eos = false;                 ///< the first of eos comes behind a text whose template ends with none
    std::optional<Token> left_out_last = {};  ///< a template puts this id nowhere behind all else
    SortedJson config = {};                   ///< the tokenizer_config.json beside a tokenizer.json, if there is one
    std::uint32_t* n_left_out = nullptr;      ///< becomes how many of it one text's template has lost; may be null
};

/// The section's bytes for the tokenizer.json in `json_text` (the whole file; it may be a mapping).
/// Whether encoding puts a start token first is the file's word (its post-processor); facts.bos only says which it is.
/// `notes` gets a line for the user where an added token is left out. Memory: about the size of the result, besides the mapping. Throws host::Error, naming `file_name`, the field, and what
/// was wanted and had.
[[nodiscard]] std::vector<std::byte> tokenizer_section_from_json(std::span<const char> json_text,
                                                                 const std::string& file_name,
                                                                 const TokenizerFacts& facts,
                                                                 std::vector<std::string>& notes);

}  // namespace fovea
