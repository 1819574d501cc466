#include "convert/tokenizers/random_vocabulary.h"

#include <string>
#include <unordered_map>

#include "engine/format/utf8.h"

namespace fovea {

namespace {

class Random {
public:
    /// A number below n.
    std::uint32_t operator()(std::uint32_t n) {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 17;
        state_ ^= state_ << 5;
        return state_ % n;
    }

private:
    std::uint32_t state_ = 1;
};

std::string word(Random& random) {
    static constexpr const char *kStart[] = {"b", "c", "d", "f", "g", "h",  "l",  "m", "n",
                                             "p", "r", "s", "t", "v", "st", "tr", "pl"},
                                *kMiddle[] = {"a", "e", "i", "o", "u", "ea", "ou", "ie"};
    std::string out;
    for (std::uint32_t i = 0, n = 1 + random(4); i < n; ++i)
        out += std::string(kStart[random(std::size(kStart))]) + kMiddle[random(std::size(kMiddle))];
    return random(3) ? out : out + kStart[random(std::size(kStart))];
}

std::string character(Random& random, std::uint32_t first, std::uint32_t count) {
    char utf8[4];
    return std::string(utf8, put_character(first + random(count), utf8));
}

/// A word, alone, in capitals or with what stands around one, or characters of other scripts.
std::string token(Random& random) {
    const std::string w = word(random);
    switch (random(10)) {
        case 0: return w;
        case 1: return static_cast<char>(w[0] - 32) + w.substr(1);
        case 2: return " " + std::string(1, static_cast<char>(w[0] - 32)) + w.substr(1);
        case 3: return character(random, 0x4e00, 8000);
        case 4: return character(random, 0x4e00, 3000) + character(random, 0x4e00, 3000);
        case 5:
            return (random(2) ? " " : "") + character(random, 0x430, 32) + character(random, 0x430, 32) +
                   character(random, 0x430, 32) + character(random, 0x430, 32);
        case 6: return (random(10) ? "_" : "\"") + w;
        case 7: return w + (random(10) ? "_" : "\"") + (random(2) ? "" : ":");
        default: return " " + w;
    }
}

using Ids = std::unordered_map<std::string, std::uint32_t>;

/// A token is made of the longest one that it starts with and the rest, where that is one too.
void add_merges(const Ids& ids, std::uint32_t n_tokens, TokenizerSource& source) {
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
}

}  // namespace

TokenizerSource random_vocabulary(std::uint32_t n_tokens) {
    TokenizerSource source;
    Ids ids;
    Random random;
    const auto add = [&](const std::string& text) {
        if (ids.size() + 1 >= n_tokens || text.empty() || !ids.try_emplace(text, ids.size()).second) return;
        source.tokens.set(static_cast<std::uint32_t>(ids.size() - 1), text);
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
    while (ids.size() + 1 < n_tokens) add(token(random));
    add_merges(ids, n_tokens, source);
    source.tokens.set(n_tokens - 1, "<|end|>");
    source.special.push_back(n_tokens - 1);
    source.end_ids.push_back(n_tokens - 1);
    return source;
}

}  // namespace fovea
