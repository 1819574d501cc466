#include "host/model/pair_template.h"

#include <algorithm>
#include <string>

#include "host/base/error.h"
#include "host/base/tokens_around.h"

namespace fovea {
namespace {

constexpr TokenizeOptions kBare{.add_special = false}, kSpecial{.add_special = false, .parse_special = true};

/// Bytes of a text before its first special token; all of it where it has none.
std::size_t begin_of_special(std::string_view text, const Tokenizer& tokenizer, const PairReader& reader) {
    for (const Token id : reader.read(text, kSpecial, {}))
        if (tokenizer.is_special(id)) return std::min(text.find(token_bytes(tokenizer, id)), text.size());
    return text.size();
}

std::vector<Token> special_of(const std::vector<Token>& ids, const Tokenizer& tokenizer) {
    std::vector<Token> special;
    std::copy_if(ids.begin(), ids.end(), std::back_inserter(special),
                 [&](Token id) { return tokenizer.is_special(id); });
    return special;
}

}  // namespace

std::optional<PairTemplate> PairTemplate::read(std::string_view text) {
    const std::size_t query = text.find(kQuery), document = text.find(kDocument);
    if (query == text.npos || document == text.npos || document < query) return {};
    if (text.find(kQuery, query + 1) != text.npos || text.find(kDocument, document + 1) != text.npos) return {};
    const std::size_t between = query + kQuery.size();
    return PairTemplate{text.substr(0, query), text.substr(between, document - between),
                        text.substr(document + kDocument.size())};
}

PairReader PairReader::of(const host::Opened& opened) {
    const Tokenizer& tokenizer = opened.need_tokenizer();
    return {
        .read = [&tokenizer](std::string_view text, const TokenizeOptions& options, std::span<const TextRange> plain) {
            return host::tokenize_around(tokenizer, text, plain, options);
        }};
}

TemplatedPair templated_pair(const PairTemplate& form, std::string_view query, std::string_view document,
                             std::size_t most, bool parse_special, const Tokenizer& tokenizer,
                             const PairReader& reader) {
    std::string text(form.before);
    const auto add = [&](std::string_view part, std::size_t most_bytes) {
        const std::size_t first = text.size();
        text += part.substr(0, most_bytes - std::min(most_bytes, first));
        return TextRange{first, text.size()};
    };
    const std::size_t around = form.between.size() + form.after.size();
    const std::size_t most_bytes = reader.most_bytes - std::min(reader.most_bytes, around);
    const TextRange of_query = add(query, most_bytes);
    text += form.between;
    const TextRange of_document = add(document, most_bytes + form.between.size());
    std::vector<TextRange> plain;
    // Borders of plain ranges would end words: they matter only where the texts have special tokens.
    const std::string own = std::string(form.before) + std::string(form.between) + std::string(form.after);
    const auto tokens = [&](std::string_view all) { return reader.read(all, kSpecial, plain); };
    std::vector<Token> ids = tokens(text + std::string(form.after));
    if (!parse_special && special_of(ids, tokenizer) != special_of(tokens(own), tokenizer)) {
        for (const TextRange& range : {of_query, of_document})
            if (range.last > range.first) plain.push_back(range);
        ids = tokens(text + std::string(form.after));
    }
    TemplatedPair pair{.ids = std::move(ids), .n_whole = 0};
    pair.n_whole = pair.ids.size();
    if (pair.n_whole <= most) return pair;
    // What closes the text stays. It begins at a special token, which no word reaches across.
    const std::size_t n_with_document = begin_of_special(form.after, tokenizer, reader);
    pair.ids = tokens(text + std::string(form.after.substr(0, n_with_document)));
    const std::vector<Token> closing = reader.read(form.after.substr(n_with_document), kSpecial, {});
    std::erase_if(plain, [&](const TextRange& range) { return range.last > of_document.first; });
    const std::size_t n_before = tokens(std::string_view(text).substr(0, of_document.first)).size();
    if (n_before + closing.size() >= most)
        throw host::Error("query: expected one that leaves room for a document in " + std::to_string(most) +
                          " tokens, got " + std::to_string(n_before + closing.size()) + " with what is around it");
    pair.ids.resize(most - closing.size());
    pair.ids.insert(pair.ids.end(), closing.begin(), closing.end());
    return pair;
}

}  // namespace fovea
