#include "convert/tokenizers/random_vocabulary.h"

#include <string>
#include <unordered_map>

#include "engine/format/utf8.h"

namespace fovea {

TokenizerSource random_vocabulary(std::uint32_t n_tokens) {
    TokenizerSource source;
    std::unordered_map<std::string, std::uint32_t> ids;
    std::uint32_t state = 1;
    const auto random = [&](std::uint32_t n) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        return state % n;
    };
    const auto add = [&](const std::string& text) {
        if (ids.size() + 1 >= n_tokens || text.empty() || !ids.try_emplace(text, ids.size()).second) return;
        source.tokens.set(static_cast<std::uint32_t>(ids.size() - 1), text);
    };
    const auto word = [&] {
        static constexpr const char *kStart[] = {"b", "c", "d", "f", "g", "h",  "l",  "m", "n",
                                                 "p", "r", "s", "t", "v", "st", "tr", "pl"},
                                    *kMiddle[] = {"a", "e", "i", "o", "u", "ea", "ou", "ie"};
        std::string out;
        for (std::uint32_t i = 0, n = 1 + random(4); i < n; ++i)
            out += std::string(kStart[random(std::size(kStart))]) + kMiddle[random(std::size(kMiddle))];
        return random(3) ? out : out + kStart[random(std::size(kStart))];
    };
    for (std::uint32_t b = 0; b < 256; ++b) add(std::string(1, static_cast<char>(b)));
    for (std::uint32_t b = 0; b < 256; ++b) source.byte_ids[b] = b;
    for (std::uint32_t n = 2; n <= 64; ++n) {
        add(std::string(n, ' '));
        add("\n" + std::string(n - 1, ' '));
        add(std::string(n, '-'));
    }
    static constexpr const char kMarks[] = "\"'{}[]():;,.<>/\\=+-*&|!?#$%@^~`_ \n\t";
    for (std::uint32_t i = 0; i < n_tokens / 60; ++i) {
        std::string text;
        for (std::uint32_t k = 0, n = 2 + random(3); k < n; ++k) text += kMarks[random(sizeof kMarks - 1)];
        add(text);
    }
    for (std::uint32_t n = 0; n < 1000; ++n) add(std::to_string(n));
    const auto character = [&](std::uint32_t first, std::uint32_t count) {
        char utf8[4];
        return std::string(utf8, put_character(first + random(count), utf8));
    };
    while (ids.size() + 1 < n_tokens) {
        const std::string w = word();
        switch (random(10)) {
            case 0: add(w); break;
            case 1: add(static_cast<char>(w[0] - 32) + w.substr(1)); break;
            case 2: add(" " + std::string(1, static_cast<char>(w[0] - 32)) + w.substr(1)); break;
            case 3: add(character(0x4e00, 8000)); break;
            case 4: add(character(0x4e00, 3000) + character(0x4e00, 3000)); break;
            case 5:
                add((random(2) ? " " : "") + character(0x430, 32) + character(0x430, 32) + character(0x430, 32) +
                    character(0x430, 32));
                break;
            case 6: add((random(10) ? "_" : "\"") + w); break;
            case 7: add(w + (random(10) ? "_" : "\"") + (random(2) ? "" : ":")); break;
            default: add(" " + w); break;
        }
    }
    // A token is made of the longest one that it starts with and the rest, where that is one too.
    std::uint32_t rank = 0;
    for (std::uint32_t id = 256; id + 1 < n_tokens; ++id) {
        const std::string text(source.tokens.at(id));
        for (std::size_t n = text.size() - 1; n > 0; --n) {
            const auto left = ids.find(text.substr(0, n)), right = ids.find(text.substr(n));
            if (left == ids.end() || right == ids.end()) continue;
            source.merges.push_back({left->second, right->second, rank++, id});
            break;
        }
    }
    source.tokens.set(n_tokens - 1, "<|end|>");
    source.special.push_back(n_tokens - 1);
    source.end_ids.push_back(n_tokens - 1);
    return source;
}

}  // namespace fovea
