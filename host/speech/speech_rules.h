// Rules of Whisper's texts: its special tokens, prompts, and which tokens may come next (Radford et al. 2022, section
// 2.3).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config.h"

namespace fovea {

/// A model's special tokens, from the members of its generation_config.json that a file keeps under the key "speech".
struct SpeechTokens {
    Token start = 0, end = 0, no_timestamps = 0;
    Token previous = 0;   ///< comes before the text of the window before
    Token no_speech = 0;  ///< its probability at the start is that of silence
    bool multilingual = false;
    std::map<std::string, Token> languages;  ///< "en"; empty for a model of one language
    std::map<std::string, Token> tasks;      ///< "transcribe", "translate"
    std::vector<Token> suppressed;           ///< never written; control tokens are among them
    std::vector<Token> suppressed_first;
    struct Head {
        std::uint32_t layer, head;
    };
    std::vector<Head> alignment_heads;  ///< of the decoder, which attend to what is being said; empty: not known
    std::optional<std::uint32_t> max_first_timestamp;  ///< of the first timestamp, in steps; none: any
    std::uint32_t vocab_size = 0;

    /// Throws host::Error: "NAME: speech: FIELD: expected …, got …".
    [[nodiscard]] static SpeechTokens read(std::string_view json, std::uint32_t vocab_size, const std::string& name);

    [[nodiscard]] Token first_timestamp() const { return no_timestamps + 1; }
    [[nodiscard]] bool is_timestamp(Token token) const { return token > no_timestamps; }
    [[nodiscard]] bool is_text(Token token) const { return token < end; }
    /// "en" of a language's token; empty for another.
    [[nodiscard]] std::string language_of(Token token) const;
    /// The model's name of a language as people write it: "en" of "English"; the text itself if the model knows no such.
    [[nodiscard]] std::string language_named(const std::string& written) const;
};

/// The tokens that tell the model what to do: start; language and task, if it is multilingual; and no_timestamps, if
/// there are to be none. `language` as language_named gives it. Throws host::Error for a language or task that it does not know.
[[nodiscard]] std::vector<Token> speech_prompt(const SpeechTokens& tokens, const std::string& language,
                                               const std::string& task, bool timestamps);

/// The same refusals before a recording is read. Without a language, which is then detected, only the task is checked.
void check_speech(const SpeechTokens& tokens, const std::string& language, const std::string& task);

/// The language's token that is likeliest after the start token, and its probability among languages.
struct DetectedLanguage {
    std::string language;
    double probability = 0;
};
[[nodiscard]] DetectedLanguage detect_language(const SpeechTokens& tokens, std::span<const float> logits);

/// Sets logits of tokens that may not come after `written` (without the prompt) to −inf: suppressed tokens and, with
/// `timestamps`, tokens that break their rules. They come in pairs, end and start, or one before the end of all; none
/// goes back, and no stretch is empty; the first token is one, at most max_first_timestamp; and if all timestamps
/// together are likelier than any other token, one must come.
void apply_rules(const SpeechTokens& tokens, std::span<const Token> written, bool timestamps, std::span<float> logits);

}  // namespace fovea
