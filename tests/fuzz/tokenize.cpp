// Any text through each golden tokenizer: ids in range, no more than announced, the same again, and text from any ids.
#include "fovea/tokenizer.h"

#include <iterator>
#include <vector>

#include "convert/tokenizers/tokenizer_json.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace fovea;

struct Opened {
    AlignedBytes section;
    Tokenizer tokenizer;
};

std::vector<Opened> open_all() {
    std::vector<Opened> all;
    for (const char* name : {"gpt2", "llama3", "qwen2", "smollm", "llama2", "mistral", "metaspace", "bert", "falcon",
                             "gpt_oss", "behaviors", "t5_small", "albert_small", "unigram_bytes"}) {
        const std::string path = std::string(FOVEA_GOLDEN_DIR "/tokenizer_") + name + ".json";
        std::ifstream file(path, std::ios::binary);
        const std::string json((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        std::vector<std::string> notes;
        const auto section =
            tokenizer_section_from_json(json, path, {.vocab_size = 100000, .bos = {}, .eos = {}}, notes);
        Opened& opened = all.emplace_back();
        opened.section.assign(section.begin(), section.end());
        fuzz::promise(open_tokenizer(opened.section, opened.tokenizer).ok(), "golden tokenizers open");
    }
    return all;
}

}  // namespace

FOVEA_FUZZ_TARGET(tokenize) {
    static const std::vector<Opened> all = open_all();
    fuzz::Input input(data, size);
    const auto choice = input.take<std::uint8_t>();
    const Tokenizer& tokenizer = all[choice % all.size()].tokenizer;
    const TokenizeOptions options{.add_special = (choice & 64) != 0, .parse_special = (choice & 128) != 0};
    const std::string_view text = input.rest();
    std::vector<std::byte> scratch(tokenize_scratch_bytes(tokenizer, text.size()));
    std::vector<Token> ids(max_tokens(tokenizer, text.size())), again(ids.size());
    std::size_t n_ids = 0, n_again = 0;
    fuzz::promise(tokenize(tokenizer, text, options, scratch, ids, n_ids).ok(), "every text is encoded");
    const bool twice = (choice & 32) != 0;
    if (twice)
        fuzz::promise(tokenize(tokenizer, text, options, scratch, again, n_again).ok() && n_again == n_ids,
                      "and again");
    std::vector<char> piece(max_piece_bytes(tokenizer));
    Decoder decoder;
    for (std::size_t i = 0; i < n_ids; ++i) {
        fuzz::promise(ids[i] < tokenizer.vocab_size(), "ids are in range");
        fuzz::promise(!twice || ids[i] == again[i], "and the same again");
        if (i < 24) (void)decode(tokenizer, decoder, ids[i], i % 2 != 0, piece);
    }
    fuzz::Input any(data, size);
    for (std::size_t i = 0; i < std::min<std::size_t>(size / 4, 8); ++i)
        (void)decode(tokenizer, decoder, any.take<Token>(), true, piece);
    (void)finish(decoder, piece);
    return 0;
}
