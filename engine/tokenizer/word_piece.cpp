#include "engine/tokenizer/subwords.h"
#include "engine/tokenizer/utf8.h"

namespace fovea {
namespace {

bool too_long(std::string_view word, std::uint32_t most) noexcept {
    for (std::uint32_t n = 0; !word.empty(); word.remove_prefix(first_character(word).bytes))
        if (n++ == most) return true;
    return false;
}

}  // namespace

void put_word_pieces(const Tables& tables, std::string_view word, TokenSink& sink) noexcept {
    const std::uint64_t n_before = sink.n();
    bool known = !too_long(word, tables.header->max_word_characters);
    while (known && !word.empty()) {
        Token longest = kNoId;
        std::size_t taken = 0;
        std::uint32_t hash = kHashStart;
        for (std::size_t n = 0; n < word.size() && n < tables.header->max_token_bytes;) {
            hash = hash_step(hash, word[n++]);
            const Token id = tables.find({word.data(), n}, hash_end(hash));
            if (id == kNoId) continue;
            longest = id;
            taken = n;
        }
        known = longest != kNoId;
        if (known) sink.put(longest);
        word.remove_prefix(taken);
    }
    if (known) return;
    sink.go_back(n_before);
    if (tables.header->unknown != kNoId) sink.put(tables.header->unknown);
}

}  // namespace fovea
