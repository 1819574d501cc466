#include "convert/tokenizers/tokenizer_section.h"

#include <algorithm>
#include <cstring>

#include "convert/tokenizers/trie.h"
#include "convert/unicode/unicode_data.h"
#include "host/base/error.h"

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
        if (bytes_.size() > kNoId) throw host::Error("tokenizer: expected a section below 4 GiB, got more");
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

/// The elements in buckets as first_bucket and kMaxProbes say; `unused` elsewhere. Four fifths full, less if needed.
template<class T, class Hash, class Used>
std::vector<T> hash_table(const std::vector<T>& elements, std::uint32_t bucket, const T& unused, Hash hash, Used used) {
    if (elements.empty()) return {};
    for (std::uint64_t n = elements.size() * 5 / (4 * bucket) + 1;; n += n / 8 + 1) {
        if (n > 16 * elements.size() || n > kNoId / bucket)
            throw host::Error("tokenizer: expected tokens that a hash tells apart, got too many alike");
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
    // The later of two merges for one pair stays: the order below puts it first.
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
    if (text.size() >= kJoinedToken) throw host::Error("tokenizer: expected tokens below 1 GiB, got more");
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
    writer.add(TokenizerTableKind::combining, unicode_table(UnicodeTable::combining));
    const std::span<const std::uint32_t> decompositions = unicode_table(UnicodeTable::decompositions);
    writer.add(TokenizerTableKind::decompositions, decompositions);
    const auto entry = [=](std::size_t i) {
        return std::uint64_t{decompositions[2 * i + 1]} << 32 | decompositions[2 * i];
    };
    std::vector<std::uint16_t> compositions;
    for (std::size_t i = 0; i < decompositions.size() / 2; ++i)
        if (entry(i) >> 63) compositions.push_back(static_cast<std::uint16_t>(i));
    const auto pair = [&](std::uint16_t i) { return (entry(i) >> 21 & 0x1fffff) << 21 | (entry(i) >> 42 & 0x1fffff); };
    std::sort(compositions.begin(), compositions.end(), [&](auto a, auto b) { return pair(a) < pair(b); });
    writer.add<std::uint16_t>(TokenizerTableKind::compositions, compositions);
}

void add_patterns(SectionWriter& writer, const std::vector<PatternStates>& patterns) {
    if (patterns.empty()) return;
    std::vector<TokenizerPattern> records;
    std::vector<std::uint32_t> runs;
    std::vector<std::uint16_t> transitions;
    for (const PatternStates& p : patterns) {
        TokenizerPattern record{};
        record.n_states = p.n_states;
        record.n_classes = p.n_classes;
        record.first_transition = static_cast<std::uint32_t>(transitions.size());
        record.first_run = static_cast<std::uint32_t>(runs.size());
        record.n_runs = static_cast<std::uint32_t>(p.runs.size());
        record.flags = p.flags;
        std::copy(p.ascii.begin(), p.ascii.end(), record.ascii);
        records.push_back(record);
        runs.insert(runs.end(), p.runs.begin(), p.runs.end());
        transitions.insert(transitions.end(), p.transitions.begin(), p.transitions.end());
    }
    writer.add<TokenizerPattern>(TokenizerTableKind::patterns, records);
    writer.add<std::uint32_t>(TokenizerTableKind::pattern_runs, runs);
    writer.add<std::uint16_t>(TokenizerTableKind::transitions, transitions);
}

void add_maps(SectionWriter& writer, const std::vector<MapSource>& maps) {
    if (maps.empty()) return;
    std::vector<TokenizerMap> records;
    std::vector<std::uint32_t> units;
    std::string text;
    for (const MapSource& map : maps) {
        records.push_back({static_cast<std::uint32_t>(units.size()), static_cast<std::uint32_t>(map.units.size()),
                           static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(map.text.size())});
        units.insert(units.end(), map.units.begin(), map.units.end());
        text += map.text;
    }
    writer.add<TokenizerMap>(TokenizerTableKind::maps, records);
    writer.add<std::uint32_t>(TokenizerTableKind::map_units, units);
    writer.add<char>(TokenizerTableKind::map_text, text);
}

bool has_step(const TokenizerSource& source, StepKind kind, std::uint8_t mode_bit = 0) {
    return std::any_of(source.steps.begin(), source.steps.end(), [&](const TokenizerStep& s) {
        return s.kind == static_cast<std::uint8_t>(kind) && (!mode_bit || (s.mode & mode_bit));
    });
}

/// The steps, and the tables that they look things up in.
void add_steps(SectionWriter& writer, const TokenizerSource& source) {
    writer.add<TokenizerStep>(TokenizerTableKind::steps, source.steps);
    add_patterns(writer, source.patterns);
    add_maps(writer, source.maps);
    if (has_step(source, StepKind::map, kMapClusters))
        writer.add(TokenizerTableKind::clusters, unicode_table(UnicodeTable::clusters));
    const bool sees_classes = std::any_of(source.added.begin(), source.added.end(), [](const AddedTokenSource& token) {
        return token.flags & (kAddedWord | kAddedTakesLeft | kAddedTakesRight);
    });
    if (sees_classes || has_step(source, StepKind::words) || has_step(source, StepKind::digits) ||
        has_step(source, StepKind::strip))
        writer.add(TokenizerTableKind::classes, unicode_table(UnicodeTable::classes));
    if (has_step(source, StepKind::normal_form)) add_normalization(writer);
    const bool strips_marks = std::any_of(source.steps.begin(), source.steps.end(), [](const TokenizerStep& s) {
        return s.kind == static_cast<std::uint8_t>(StepKind::normal_form) && s.mode == 1;
    });
    if (strips_marks || has_step(source, StepKind::characters) || has_step(source, StepKind::bert_words))
        writer.add(TokenizerTableKind::characters, unicode_table(UnicodeTable::characters));
    if (has_step(source, StepKind::characters))
        writer.add(TokenizerTableKind::lower_case, unicode_table(UnicodeTable::lower_case));
}

}  // namespace

bool TokenTexts::set(std::uint32_t id, std::string_view text) {
    if (has(id)) return false;
    if (id >= places_.size()) places_.resize(std::size_t{id} + 1);
    places_[id] = {static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(text.size())};
    text_ += text;
    return true;
}

void TokenizerSource::add_byte(std::uint32_t id, int byte) {
    const char as_char = static_cast<char>(byte);
    tokens.set(id, {&as_char, 1});
    if (byte_ids[byte] == kNoId) byte_ids[byte] = id;
}

TokenizerStep make_step(StepKind kind, std::uint8_t mode, std::string_view from, std::string_view to,
                        std::uint32_t limit) {
    TokenizerStep step{};
    if (from.size() > sizeof step.from || to.size() > sizeof step.to)
        throw host::Error("tokenizer: expected strings of at most 12 bytes in a step, got more");
    step.kind = static_cast<std::uint8_t>(kind);
    step.mode = mode;
    step.n_from = static_cast<std::uint8_t>(from.size());
    step.n_to = static_cast<std::uint8_t>(to.size());
    step.limit = limit;
    std::copy(from.begin(), from.end(), step.from);
    std::copy(to.begin(), to.end(), step.to);
    return step;
}

std::vector<std::byte> write_steps_section(const TokenizerSource& source) {
    TokenizerHeader header{};
    header.model = static_cast<std::uint32_t>(TokenizerModel::bpe);
    header.n_tokens = 1;
    header.bos = header.unknown = kNoId;
    header.text_growth = kMaxTextGrowth;
    header.token_growth = 1;
    SectionWriter writer(static_cast<std::size_t>(TokenizerTableKind::pair));
    const std::uint32_t offsets[2] = {};
    writer.add<std::uint32_t>(TokenizerTableKind::token_offsets, offsets);
    add_steps(writer, source);
    return writer.finish(header);
}

std::vector<std::byte> write_tokenizer_section(const TokenizerSource& source) {
    TokenizerHeader header{};
    header.model = static_cast<std::uint32_t>(source.model);
    header.max_word_characters = source.max_word_characters;
    header.flags = source.flags;
    header.n_tokens = source.tokens.size();
    header.bos = source.bos;
    header.unknown = source.unknown;
    if (source.steps.size() > kMaxSteps)
        throw host::Error("tokenizer: expected at most " + std::to_string(kMaxSteps) +
                          " steps from text to words, got " + std::to_string(source.steps.size()));
    set_growth(source, header);

    SectionWriter writer(static_cast<std::size_t>(TokenizerTableKind::pair));
    add_tokens(writer, source, header.max_token_bytes);
    writer.add<std::uint32_t>(TokenizerTableKind::end_ids, source.end_ids);
    writer.add<std::uint32_t>(TokenizerTableKind::prefix_ids, source.prefix_ids);
    writer.add<std::uint32_t>(TokenizerTableKind::suffix_ids, source.suffix_ids);
    writer.add<std::uint32_t>(TokenizerTableKind::byte_ids, source.byte_ids);
    writer.add<TokenizerMerge>(TokenizerTableKind::merges, merge_table(source.merges));
    writer.add<TokenizerEntry>(TokenizerTableKind::vocabulary, vocabulary_table(source));
    add_added_tokens(writer, source.added);
    add_steps(writer, source);
    if (source.model == TokenizerModel::unigram) {
        for (const auto& [spelling, id] : source.pieces)
            header.max_token_bytes = std::max(header.max_token_bytes, static_cast<std::uint32_t>(spelling.size()));
        writer.add<std::uint32_t>(TokenizerTableKind::pieces, make_trie(source.pieces));
        std::vector<double> scores = source.scores;  // tokens beside the vocabulary have none
        if (scores.size() < header.n_tokens + 1)
            scores.insert(scores.end() - 1, header.n_tokens + 1 - scores.size(), 0.0);
        writer.add<double>(TokenizerTableKind::scores, scores);
    }
    if (!source.pair.empty()) writer.add<TokenizerPart>(TokenizerTableKind::pair, source.pair);
    return writer.finish(header);
}

}  // namespace fovea
