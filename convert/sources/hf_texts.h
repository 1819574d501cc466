// What a Hugging Face folder says of the texts that its model reads, beside config.json and the tokenizer.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "convert/tokenizers/tokenizer_json.h"

namespace fovea {

/// The folder is a Transformer of sentence-transformers, or one that its CrossEncoder or transformers reads as well.
struct TextSettings {
    /// Texts are messages, which the chat template makes a prompt of: how, beside `structured` ones, whose content is a list.
    struct Messages {
        bool structured = false, opens_answer = false;
        SortedJson variables = SortedJson::object();  ///< more of the template's
    };

    std::uint32_t most_tokens = 0;           ///< longer texts are cut there; 0: where the model's positions end
    bool module_says = false;                ///< that, and not the tokenizer's configuration
    bool lower_case = false;                 ///< before the tokenizer's own steps
    bool has_token_types = true;             ///< the second text of a pair is of type 1 where the template says so
    bool adds_bos = true, adds_eos = false;  ///< around a text, where the tokenizer is a SentencePiece model alone
    bool appends_eos = false;                ///< behind a text, by code of the folder's own beside a tokenizer.json
    std::optional<BertSettings> bert;        ///< of a tokenizer's class that goes by its own settings
    bool cuts_front = false;                 ///< of a text that is too long
    std::optional<Messages> messages = {};
};

/// Throws host::Error for texts that would be read otherwise than here.
[[nodiscard]] TextSettings read_text_settings(const std::filesystem::path& folder);

}  // namespace fovea
