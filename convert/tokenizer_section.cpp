#include "convert/tokenizer_section.h"

#include <algorithm>
#include <cstring>

#include "convert/refusal.h"
#include "convert/unicode_data.h"

namespace fovea {
namespace {

/// A section under construction: header, directory, then tables in the order they are added.
class SectionWriter {
public:
    explicit SectionWriter(std::size_t n_tables)
        : bytes_(round_up(sizeof(TokenizerHeader) + n_tables * sizeof(TokenizerTable), kSectionAlignment)) {}

    template<class T>
    void add(TokenizerTableKind kind, std::span<const T> elements) {
        const std::size_t offset = bytes_.size();
        bytes_.resize(round_up(offset + elements.size_bytes(), kSectionAlignment));
        if (bytes_.size() > kNoId) throw Refusal("tokenizer: expected a section below 4 GiB, got more");
        if (!elements.empty()) std::memcpy(bytes_.data() + offset, elements.data(), elements.size_bytes());
        const TokenizerTable table{static_cast<std::uint32_t>(kind), 0, static_cast<std::uint32_t>(offset),
                                   static_cast<std::uint32_t>(elements.size_bytes())};
        std::memcpy(bytes_.data() + sizeof(TokenizerHeader) + n_tables_++ * sizeof table, &table, sizeof table);
    }

    std::vector<std::byte> finish(TokenizerHeader header) {
        header.n_tables = n_tables_;
        std::memcpy(bytes_.data(), &header, sizeof header);
        return std::move(bytes_);
    }

private:
    std::vector<std::byte> bytes_;
    std::uint32_t n_tables_ = 0;
};

/// The elements in buckets as first_bucket and kMaxProbes say; `unused` elsewhere. Four fifths full, less where needed.
template<class T, class Hash, class Used>
std::vector<T> hash_table(const std::vector<T>& elements, std::uint32_t bucket, const T& unused, Hash hash, Used used) {
    if (elements.empty()) return {};
    for (std::uint64_t n = elements.size() * 5 / (4 * bucket) + 1;; n += n / 8 + 1) {
        if (n > 16 * elements.size() || n > kNoId / bucket)
            throw Refusal("tokenizer: expected tokens that a hash tells apart, got too many alike");
        const auto n_buckets = static_cast<std::uint32_t>(n);
        std::vector<T> table(n * bucket, unused);
        const bool fits = std::all_of(elements.begin(), elements.end(), [&](const T& element) {
            std::uint64_t at = first_bucket(hash(element), n_buckets);
            for (std::uint32_t probe = 0; probe < kMaxProbes; ++probe, at = (at + 1) % n_buckets)
                for (std::uint32_t i = 0; i < bucket; ++i)
                    if (T& place = table[at * bucket + i]; !used(place)) {
                        place = element;
                        return true;
                    }
            return false;
        });
        if (fits) return table;
    }
}

std::vector<TokenizerMerge> merge_table(std::vector<TokenizerMerge> merges) {
    const auto pair = [](const TokenizerMerge& m) { return std::uint64_t{m.left} << 32 | m.right; };
    // Of two for the same pair the later stays: first in the order below.
    std::stable_sort(merges.begin(), merges.end(), [&](const TokenizerMerge& a, const TokenizerMerge& b) {
        return pair(a) != pair(b) ? pair(a) < pair(b) : a.rank > b.rank;
    });
    const auto same = [&](const TokenizerMerge& a, const TokenizerMerge& b) { return pair(a) == pair(b); };
    merges.erase(std::unique(merges.begin(), merges.end(), same), merges.end());
    return hash_table(
        merges, kMergeBucket, TokenizerMerge{kNoId, kNoId, kNoId, kNoId},
        [](const TokenizerMerge& m) { return hash_pair(m.left, m.right); },
        [](const TokenizerMerge& m) { return m.left != kNoId; });
}

std::vector<TokenizerEntry> vocabulary_table(const TokenizerSource& source) {
    std::vector<TokenizerEntry> entries;
    for (const std::uint32_t id : source.lookup) {
        const std::string_view text = source.tokens.at(id);
        entries.push_back({hash_bytes(text.data(), text.size()), id});
    }
    return hash_table(
        entries, kEntryBucket, TokenizerEntry{0, kNoId}, [](const TokenizerEntry& e) { return e.hash; },
        [](const TokenizerEntry& e) { return e.id != kNoId; });
}

void add_tokens(SectionWriter& writer, const TokenizerSource& source, std::uint32_t& max_bytes) {
    const std::uint32_t n = source.tokens.size();
    std::vector<std::uint32_t> offsets(n + 1);
    std::string text;
    for (std::uint32_t id = 0; id < n; ++id) {
        offsets[id] = static_cast<std::uint32_t>(text.size());
        text += source.tokens.at(id);
        max_bytes = std::max(max_bytes, static_cast<std::uint32_t>(source.tokens.at(id).size()));
    }
    if (text.size() >= kJoinedToken) throw Refusal("tokenizer: expected tokens below 1 GiB, got more");
    offsets[n] = static_cast<std::uint32_t>(text.size());
    for (const std::uint32_t id : source.special) offsets.at(id) |= kSpecialToken;
    for (const std::uint32_t id : source.joined) offsets.at(id) |= kJoinedToken;
    writer.add<std::uint32_t>(TokenizerTableKind::token_offsets, offsets);
    writer.add<char>(TokenizerTableKind::token_text, text);
}

void add_added_tokens(SectionWriter& writer, std::vector<AddedTokenSource> added) {
    if (added.empty()) return;
    std::stable_sort(added.begin(), added.end(), [](const auto& a, const auto& b) { return a.text < b.text; });
    std::vector<AddedToken> records;
    std::string text;
    for (const AddedTokenSource& token : added) {
        records.push_back({token.id, static_cast<std::uint32_t>(text.size()),
                           static_cast<std::uint16_t>(token.text.size()), token.flags});
        text += token.text;
    }
    writer.add<AddedToken>(TokenizerTableKind::added_tokens, records);
    writer.add<char>(TokenizerTableKind::added_text, text);
}

void add_normalization(SectionWriter& writer) {
    writer.add(TokenizerTableKind::combining, unicode_combining);
    writer.add(TokenizerTableKind::decompositions, unicode_decompositions);
    std::vector<std::uint16_t> compositions;
    for (std::size_t i = 0; i < unicode_decompositions.size(); ++i)
        if (unicode_decompositions[i] >> 63) compositions.push_back(static_cast<std::uint16_t>(i));
    const auto pair = [](std::uint16_t i) {
        const std::uint64_t entry = unicode_decompositions[i];
        return (entry >> 21 & 0x1fffff) << 21 | (entry >> 42 & 0x1fffff);
    };
    std::sort(compositions.begin(), compositions.end(), [&](auto a, auto b) { return pair(a) < pair(b); });
    writer.add<std::uint16_t>(TokenizerTableKind::compositions, compositions);
}

/// How much a text can grow on its way through the steps: a piece of one byte is the worst, since what is put before a
/// piece then weighs most.
void set_growth(TokenizerHeader& header, const TokenizerSource& source) {
    std::uint64_t bytes = 1, rewritten = 0;
    for (const TokenizerStep& step : source.steps) {
        const auto kind = static_cast<StepKind>(step.kind);
        if (kind == StepKind::normal_form)
            bytes *= 3;  // Unicode Standard Annex 15, table 10
        else if (kind == StepKind::characters)
            bytes *= 2;  // an ideograph of 3 bytes gets two spaces
        else if (kind == StepKind::prepend)
            bytes += step.n_to;
        else if (kind == StepKind::replace)
            bytes *= std::max(1, (step.n_to + step.n_from - 1) / step.n_from);
        else
            continue;
        rewritten += bytes;
        if (bytes > kMaxTokenGrowth || rewritten > kMaxTextGrowth)
            throw Refusal("tokenizer: expected steps that grow a text at most 16 times, got more");
    }
    header.text_growth = static_cast<std::uint32_t>(rewritten);
    // A piece of a word has a character at least, and no character becomes more of them than it has bytes, marks apart.
    header.token_growth = source.model == TokenizerModel::word_piece ? 1 : static_cast<std::uint32_t>(bytes);
}

}  // namespace

bool TokenTexts::set(std::uint32_t id, std::string_view text) {
    if (has(id)) return false;
    if (id >= places_.size()) places_.resize(std::size_t{id} + 1);
    places_[id] = {static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(text.size())};
    text_ += text;
    return true;
}

TokenizerStep make_step(StepKind kind, std::uint8_t mode, std::string_view from, std::string_view to,
                        std::uint32_t limit) {
    TokenizerStep step{};
    if (from.size() > sizeof step.from || to.size() > sizeof step.to)
        throw Refusal("tokenizer: expected strings of at most 12 bytes in a step, got more");
    step.kind = static_cast<std::uint8_t>(kind);
    step.mode = mode;
    step.n_from = static_cast<std::uint8_t>(from.size());
    step.n_to = static_cast<std::uint8_t>(to.size());
    step.limit = limit;
    std::copy(from.begin(), from.end(), step.from);
    std::copy(to.begin(), to.end(), step.to);
    return step;
}

std::vector<std::byte> write_tokenizer_section(const TokenizerSource& source) {
    const auto has_step = [&](StepKind kind) {
        return std::any_of(source.steps.begin(), source.steps.end(),
                           [&](const TokenizerStep& s) { return s.kind == static_cast<std::uint8_t>(kind); });
    };
    TokenizerHeader header{};
    header.model = static_cast<std::uint32_t>(source.model);
    header.max_word_characters = source.max_word_characters;
    header.flags = source.flags;
    header.n_tokens = source.tokens.size();
    header.bos = source.bos;
    header.unknown = source.unknown;
    if (source.steps.size() > kMaxSteps)
        throw Refusal("tokenizer: expected at most " + std::to_string(kMaxSteps) + " steps from text to words, got " +
                      std::to_string(source.steps.size()));
    set_growth(header, source);

    SectionWriter writer(static_cast<std::size_t>(TokenizerTableKind::lower_case));
    add_tokens(writer, source, header.max_token_bytes);
    writer.add<std::uint32_t>(TokenizerTableKind::end_ids, source.end_ids);
    writer.add<std::uint32_t>(TokenizerTableKind::prefix_ids, source.prefix_ids);
    writer.add<std::uint32_t>(TokenizerTableKind::suffix_ids, source.suffix_ids);
    writer.add<TokenizerStep>(TokenizerTableKind::steps, source.steps);
    writer.add<std::uint32_t>(TokenizerTableKind::byte_ids, source.byte_ids);
    writer.add<TokenizerMerge>(TokenizerTableKind::merges, merge_table(source.merges));
    writer.add<TokenizerEntry>(TokenizerTableKind::vocabulary, vocabulary_table(source));
    add_added_tokens(writer, source.added);
    const bool sees_classes = std::any_of(source.added.begin(), source.added.end(), [](const AddedTokenSource& token) {
        return token.flags & (kAddedWord | kAddedTakesLeft | kAddedTakesRight);
    });
    if (sees_classes || has_step(StepKind::words) || has_step(StepKind::digits))
        writer.add(TokenizerTableKind::classes, unicode_classes);
    if (has_step(StepKind::normal_form)) add_normalization(writer);
    if (has_step(StepKind::characters) || has_step(StepKind::bert_words))
        writer.add(TokenizerTableKind::characters, unicode_characters);
    if (has_step(StepKind::characters)) writer.add(TokenizerTableKind::lower_case, unicode_lower_case);
    return writer.finish(header);
}

}  // namespace fovea
