// How a tokenizer.json cuts and rewrites text, as steps of a tokenizer section; what is not known is refused.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "convert/tokenizer_section.h"

namespace fovea {

/// A value of a tokenizer.json and where it stands, for refusals.
class JsonField {
public:
    JsonField(const nlohmann::json& value, const std::string& file_name, std::string path)
        : value_(&value), file_name_(&file_name), path_(std::move(path)) {}

    [[nodiscard]] bool is_null() const;
    [[nodiscard]] bool is_zero() const;                                ///< the number 0
    [[nodiscard]] JsonField operator[](const std::string& key) const;  ///< null where there is none
    [[nodiscard]] std::vector<JsonField> elements() const;
    [[nodiscard]] std::string text() const;
    [[nodiscard]] std::string text_or(const std::string& otherwise) const;
    [[nodiscard]] bool flag_or(bool otherwise) const;
    [[nodiscard]] std::uint32_t id() const;
    [[noreturn]] void refuse(const std::string& wanted) const;  ///< one line: file, path, wanted, had

private:
    const nlohmann::json* value_;
    const std::string* file_name_;
    std::string path_;
};

/// From text to words.
struct TextSteps {
    std::vector<TokenizerStep> normalizer, pre_tokenizer;
    bool bytes = false;  ///< words are bytes (ByteLevel), else characters
    /// A space is spelled "▁" in the vocabulary. The section spells it " " instead, in both: the text's "▁" becomes a
    /// space, as it means one, and nothing need be put back when decoding.
    bool spaces = false;
    bool bert = false;  ///< words are cut as WordPiece wants them, each with a space first
};
[[nodiscard]] TextSteps read_steps(const JsonField& normalizer, const JsonField& pre_tokenizer);

/// From ids to text.
struct TextDecoding {
    std::uint32_t flags = 0;   ///< TokenizerFlag: what of the first space is dropped
    bool byte_tokens = false;  ///< "<0x41>" stands for a byte
    bool clean_up = false;     ///< WordPiece: no space before "." and other such tokens
};
[[nodiscard]] TextDecoding read_decoding(const JsonField& decoder, const TextSteps& steps);

/// The template's ids around a text.
void read_template(const JsonField& post_processor, std::vector<std::uint32_t>& prefix,
                   std::vector<std::uint32_t>& suffix);

/// `content` as the normalizer would have it, in the section's spelling of spaces.
[[nodiscard]] std::string normalized(const JsonField& content, const TextSteps& steps);

inline constexpr std::string_view kMetaspace = "\xe2\x96\x81";  // ▁
inline constexpr std::string_view kContinues = "##";            // how WordPiece spells what continues a word

/// `text` with every `from` made `to`.
[[nodiscard]] std::string replaced(std::string_view text, std::string_view from, std::string_view to);

}  // namespace fovea
