// How a tokenizer.json cuts and rewrites text, as steps of a tokenizer section; what is not known is refused.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/tokenizers/json_field.h"
#include "convert/tokenizers/tokenizer_json.h"
#include "convert/tokenizers/tokenizer_section.h"

namespace fovea {

/// From text to words.
struct TextSteps {
    std::vector<TokenizerStep> normalizer, pre_tokenizer;
    std::vector<PatternStates> patterns;  ///< what the steps name by number
    std::vector<MapSource> maps;          ///< likewise
    bool bytes = false;                   ///< words are bytes (ByteLevel), else characters
    /// A space is spelled "▁" in the vocabulary. The section spells it " " in both the vocabulary and the text. A
    /// text's own "▁" becomes a space, as it means one, and decoding need not put anything back.
    bool spaces = false;
    bool normalizes_spaces = false;  ///< and it is the normalizer that does so
    bool leaves_out_spaces = false;  ///< no word has one in it
    bool bert = false;               ///< BertPreTokenizer cuts words
    bool word_piece = false;         ///< words are as WordPiece wants them, each with a space first
};
/// `bert` counts more than what a BertNormalizer says.
[[nodiscard]] TextSteps read_steps(const JsonField& normalizer, const JsonField& pre_tokenizer,
                                   const std::optional<BertSettings>& bert);
/// Makes words of pre-tokenizers such as WordPiece looks up, or refuses those.
void make_word_pieces(const JsonField& pre_tokenizer, TextSteps& steps);

/// A step that cuts text by `nodes`, or rewrites their matches. Its states are added to `patterns`.
[[nodiscard]] TokenizerStep pattern_step(std::vector<PatternStates>& patterns, const PatternNodes& nodes, bool of_bytes,
                                         StepKind kind, std::uint8_t mode, std::string_view to,
                                         const RefusePattern& refuse);

/// The map of a normalizer of SentencePiece's: the bytes of a precompiled_charsmap. Throws host::Error, after `place`.
[[nodiscard]] MapSource read_charsmap(std::string_view bytes, const std::string& place);
/// The changes of forms KC and KD beyond C and D.
[[nodiscard]] MapSource compatibility_map();

/// From ids to text.
struct TextDecoding {
    std::uint32_t flags = 0;   ///< TokenizerFlag: what of the first space is dropped
    bool byte_tokens = false;  ///< "<0x41>" stands for a byte
    bool clean_up = false;     ///< WordPiece: no space before "." and other such tokens
};
[[nodiscard]] TextDecoding read_decoding(const JsonField& decoder, const TextSteps& steps);

/// The templates' ids around a text, and around two.
void read_template(const JsonField& post_processor, TokenizerSource& source);

inline constexpr std::string_view kMetaspace = "\xe2\x96\x81";  // ▁
inline constexpr std::string_view kContinues = "##";            // how WordPiece spells what continues a word

/// `text` with every `from` made `to`.
[[nodiscard]] std::string replaced(std::string_view text, std::string_view from, std::string_view to);

}  // namespace fovea
