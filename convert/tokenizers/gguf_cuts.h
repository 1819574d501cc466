// How a byte-level vocabulary's words are cut, by the name in a GGUF file's tokenizer.ggml.pre.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "convert/tokenizers/tokenizer_section.h"

namespace fovea {

struct GgufCut {
    bool known = false;
    bool nfc = false;          ///< text is normalized first
    bool whole_words = false;  ///< words of the vocabulary are tokens whatever the merges say
    bool adds_bos = false;
    bool adds_sep = false;  ///< and an end
    bool bytes = true;      ///< symbols are bytes, else characters with a space spelled "▁"
};

/// Puts the steps of the named way of cutting behind those of `source`; "default" is GPT-2's.
[[nodiscard]] GgufCut add_gguf_cut(std::string_view name, TokenizerSource& source);

/// All names, with commas between.
[[nodiscard]] std::string gguf_cut_names();

}  // namespace fovea
