// The tokens of a vocabulary as a tree of their bytes.
#include <algorithm>
#include <cstring>

#include "engine/format/constraint_format.h"
#include "engine/format/tables.h"
#include "fovea/checksum.h"
#include "host/grammar/grammar.h"
#include "host/grammar/masks.h"

namespace fovea::grammar {
namespace {

struct IndexedToken {
    std::uint64_t head = 0;  // the first bytes, the first of all highest: most comparisons end here
    std::string_view text;
    Token id = 0;
};

[[nodiscard]] std::uint64_t head_of(std::string_view text) {
    std::uint64_t head = 0;
    for (std::size_t i = 0; i < sizeof head; ++i)
        head = head << 8 | (i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0);
    return head;
}

[[nodiscard]] std::vector<IndexedToken> sorted_tokens(const Tokenizer& tokenizer) {
    const Tables tables = TokenizerReader::tables(tokenizer);
    std::vector<IndexedToken> tokens;
    tokens.reserve(tokenizer.vocab_size());
    std::vector<bool> ends(tokenizer.vocab_size());
    for (const std::uint32_t id : tables.end_ids)
        if (id < ends.size()) ends[id] = true;
    for (Token id = 0; id < tokenizer.vocab_size(); ++id) {
        std::string_view text = tables.token(id);
        if (tables.has_bit(id, kSpecialToken) || ends[id]) continue;
        if (tables.has_bit(id, kJoinedToken) && text.starts_with(' ')) text.remove_prefix(1);
        if (!text.empty() && text.size() <= kMostTokenBytes) tokens.push_back({head_of(text), text, id});
    }
    std::sort(tokens.begin(), tokens.end(), [](const IndexedToken& a, const IndexedToken& b) {
        if (a.head != b.head) return a.head < b.head;
        const int order = a.text.compare(b.text);
        return order < 0 || (order == 0 && a.id < b.id);
    });
    return tokens;
}

[[nodiscard]] std::size_t n_same(std::string_view a, std::string_view b) {
    std::size_t n = 0;
    while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
    return n;
}

[[nodiscard]] std::vector<IndexNode> make_nodes(const std::vector<IndexedToken>& tokens, std::uint32_t& max_depth) {
    std::vector<IndexNode> nodes;
    std::vector<std::uint32_t> path;  // the nodes of the token before
    const auto close = [&](std::size_t depth) {
        for (; path.size() > depth; path.pop_back())
            nodes[path.back()].end_byte |= static_cast<std::uint32_t>(nodes.size()) << 8;
    };
    std::string_view before;
    for (const IndexedToken& token : tokens) {
        std::size_t same = n_same(before, token.text);
        if (same == token.text.size()) --same;  // the same bytes again: a neighbour of its own
        close(same);
        for (std::size_t i = same; i < token.text.size(); ++i) {
            path.push_back(static_cast<std::uint32_t>(nodes.size()));
            const std::uint32_t id = i + 1 == token.text.size() ? token.id : kNoNodeToken;
            nodes.push_back({static_cast<std::uint8_t>(token.text[i]), id << 8 | static_cast<std::uint32_t>(i + 1)});
        }
        max_depth = std::max(max_depth, static_cast<std::uint32_t>(token.text.size()));
        before = token.text;
    }
    close(0);
    return nodes;
}

}  // namespace

std::vector<std::byte> index_vocabulary(const Tokenizer& tokenizer) {
    if (tokenizer.vocab_size() == 0 || tokenizer.vocab_size() >= kNoNodeToken)
        throw GrammarError("vocabulary: expected 1 to " + std::to_string(kNoNodeToken - 1) + " tokens, got " +
                           std::to_string(tokenizer.vocab_size()));
    const Tables tables = TokenizerReader::tables(tokenizer);
    IndexHeader header{};
    std::memcpy(header.magic, kIndexMagic, sizeof kIndexMagic);
    header.version = kConstraintVersion;
    header.vocab_size = tokenizer.vocab_size();
    header.token_crc = crc32c(std::as_bytes(tables.token_text), crc32c(std::as_bytes(tables.token_offsets)));
    const std::vector<IndexNode> nodes = make_nodes(sorted_tokens(tokenizer), header.max_depth);
    if (nodes.size() > kNoNodeToken)
        throw GrammarError("vocabulary: expected at most " + std::to_string(kNoNodeToken) + " bytes, got more");
    header.n_nodes = static_cast<std::uint32_t>(nodes.size());
    std::vector<std::uint32_t> ends;
    for (const std::uint32_t id : tables.end_ids)
        if (id < header.vocab_size) ends.push_back(id);
    header.n_ends = static_cast<std::uint32_t>(ends.size());
    std::vector<std::byte> out(sizeof header + nodes.size() * sizeof(IndexNode) + ends.size() * sizeof(std::uint32_t));
    std::memcpy(out.data(), &header, sizeof header);
    std::memcpy(out.data() + sizeof header, nodes.data(), nodes.size() * sizeof(IndexNode));
    if (!ends.empty())
        std::memcpy(out.data() + sizeof header + nodes.size() * sizeof(IndexNode), ends.data(), ends.size() * 4);
    return out;
}

IndexView view_index(const Tokenizer& tokenizer, std::span<const std::byte> index) {
    IndexHeader header;
    if (index.size() < sizeof header) throw GrammarError("index: expected the bytes of index_vocabulary, got fewer");
    std::memcpy(&header, index.data(), sizeof header);
    if (std::memcmp(header.magic, kIndexMagic, sizeof kIndexMagic) != 0 ||
        header.vocab_size != tokenizer.vocab_size() ||
        index.size() != sizeof header + std::uint64_t{header.n_nodes} * sizeof(IndexNode) + header.n_ends * 4ull)
        throw GrammarError("index: expected that of this vocabulary, got another");
    IndexView view;
    view.vocab_size = header.vocab_size;
    view.nodes = {reinterpret_cast<const IndexNode*>(index.data() + sizeof header), header.n_nodes};
    std::uint32_t i = 0;
    for (std::size_t byte = 0; byte < 256; ++byte) {
        view.roots[byte] = i;
        for (; i < view.nodes.size() && view.nodes[i].byte() == byte; i = view.nodes[i].end())
            if (view.nodes[i].token() != kNoNodeToken) view.bytes[byte] = true;
    }
    view.roots[256] = i;
    return view;
}

}  // namespace fovea::grammar
