#include "convert/tokenizers/tokenizer_spelling.h"

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>

#include "engine/format/utf8.h"

namespace fovea {
namespace {

/// Latin-1's visible characters are themselves, the other bytes follow from U+0100 on.
std::array<std::uint32_t, 256> byte_characters() {
    std::array<std::uint32_t, 256> characters{};
    std::uint32_t next = 0x100;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        const bool visible = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
        characters[byte] = visible ? byte : next++;
    }
    return characters;
}

const std::array<std::uint32_t, 256>& characters() {
    static const std::array<std::uint32_t, 256> kCharacters = byte_characters();
    return kCharacters;
}

}  // namespace

std::string spelled(std::uint32_t code) {
    char bytes[4];
    return {bytes, put_character(code, bytes)};
}

std::string byte_spelling(std::uint32_t byte) { return spelled(characters()[byte]); }

bool spelled_bytes(std::string_view text, std::string& bytes) {
    bytes.clear();
    for (std::string_view rest = text; !rest.empty();) {
        const Character c = first_character(rest);
        const auto byte = std::find(characters().begin(), characters().end(), c.code);
        if (byte == characters().end()) {
            bytes = text;
            return false;
        }
        bytes += static_cast<char>(byte - characters().begin());
        rest.remove_prefix(c.bytes);
    }
    return true;
}

std::string byte_token(std::uint32_t byte) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    return {'<', '0', 'x', kDigits[byte / 16], kDigits[byte % 16], '>'};
}

int byte_of_token(std::string_view spelling) {
    if (spelling.size() != 6 || spelling.substr(0, 3) != "<0x" || spelling[5] != '>') return -1;
    int byte = 0;
    for (const char c : spelling.substr(3, 2)) {
        const std::size_t digit = std::string_view("0123456789ABCDEF").find(c);
        if (digit == std::string_view::npos) return -1;
        byte = byte * 16 + static_cast<int>(digit);
    }
    return byte;
}

std::vector<TokenizerMerge> piece_merges(std::span<const std::string_view> texts, std::span<const float> scores,
                                         std::span<const std::uint32_t> ids) {
    std::unordered_map<std::string_view, std::uint32_t> id_of;
    for (const std::uint32_t id : ids) id_of.emplace(texts[id], id);
    std::vector<float> ranked;
    ranked.reserve(id_of.size());
    for (const auto& [text, id] : id_of) ranked.push_back(scores[id]);
    std::sort(ranked.begin(), ranked.end(), std::greater<>());
    ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());
    std::vector<TokenizerMerge> merges;
    for (const std::uint32_t id : ids) {
        const std::string_view text = texts[id];
        if (id_of.at(text) != id) continue;
        const auto rank = std::lower_bound(ranked.begin(), ranked.end(), scores[id], std::greater<>()) - ranked.begin();
        for (std::size_t n = 1; n < text.size(); ++n) {
            const auto left = id_of.find(text.substr(0, n)), right = id_of.find(text.substr(n));
            if (left != id_of.end() && right != id_of.end())
                merges.push_back({left->second, right->second, static_cast<std::uint32_t>(rank), id});
        }
    }
    return merges;
}

}  // namespace fovea
