// A SentencePiece model: a host::Error, or a section that opens and encodes.
#include "convert/tokenizers/sentence_piece.h"

#include <vector>

#include "fovea/tokenizer.h"
#include "host/base/error.h"
#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(sentence_piece) {
    using namespace fovea;
    std::vector<std::byte> section;
    try {
        section = tokenizer_section_from_sentence_piece({reinterpret_cast<const std::byte*>(data), size},
                                                        "tokenizer.model", {.vocab_size = 2000, .bos = {}, .eos = {}});
    } catch (const host::Error&) {
        return 0;
    }
    const AlignedBytes bytes(section.begin(), section.end());
    Tokenizer tokenizer;
    fuzz::promise(open_tokenizer(bytes, tokenizer).ok(), "what is written can be opened");
    constexpr std::string_view kText = "One text\nof 12 words: \xc3\xa9t\xc3\xa9 \xff<s> it's";
    std::vector<std::byte> scratch(tokenize_scratch_bytes(tokenizer, kText.size()));
    std::vector<Token> ids(max_tokens(tokenizer, kText.size()));
    std::size_t n_ids = 0;
    (void)tokenize(tokenizer, kText, {true, true}, scratch, ids, n_ids);
    return 0;
}
