// tokenizer.json: a host::Error, or a section that opens and encodes.
#include "convert/tokenizers/tokenizer_json.h"

#include <vector>

#include "fovea/tokenizer.h"
#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(tokenizer_json) {
    using namespace fovea;
    std::vector<std::byte> section;
    std::vector<std::string> notes;
    try {
        section = tokenizer_section_from_json({reinterpret_cast<const char*>(data), size}, "tokenizer.json",
                                              {.vocab_size = 2000, .bos = {}, .eos = {}}, notes);
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
