#include "engine/format/tables.h"

#include "engine/format/parts.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMaxTables = 64;

/// Whether the table's extent fits in the section, and `out` then views it as whole elements of T.
template<class T>
bool view(std::span<const std::byte> section, const TokenizerTable& table, std::span<const T>& out) noexcept {
    if (table.offset % 64 != 0 || table.bytes % sizeof(T) != 0 || !out.empty()) return false;
    if (table.offset > section.size() || table.bytes > section.size() - table.offset) return false;
    out = {reinterpret_cast<const T*>(section.data() + table.offset), table.bytes / sizeof(T)};
    return true;
}

/// Views a table as the span of its kind, the spans being in TokenizerTableKind's order. False if its extent is wrong.
/// A table of a later version is left alone: its critical bit was checked before.
bool view_table(std::span<const std::byte> section, const TokenizerTable& table, Tables& t) noexcept {
    bool valid = true;
    std::uint32_t kind = 0;
    const auto look_among = [&](auto&... spans) {
        ((valid = ++kind == table.kind ? view(section, table, spans) : valid), ...);
    };
    look_among(t.token_offsets, t.token_text, t.end_ids, t.prefix_ids, t.suffix_ids, t.steps, t.byte_ids, t.merges,
               t.vocabulary, t.added_tokens, t.added_text, t.classes, t.combining, t.decompositions, t.compositions,
               t.characters, t.lower_case);
    if constexpr (has(Part::patterns) || has(Part::unigram))
        look_among(t.patterns, t.pattern_runs, t.transitions, t.maps, t.map_units, t.map_text, t.clusters, t.pieces,
                   t.scores, t.pair);
    return valid;
}

bool is_known(std::uint32_t kind) noexcept {
    return kind != 0 && kind <= static_cast<std::uint32_t>(TokenizerTableKind::pair);
}

Status invalid_table(const char* what, std::uint64_t wanted, std::uint64_t had) noexcept {
    return {Code::section_invalid, what, wanted, had};
}

Status check_header(const TokenizerHeader& header) noexcept {
    constexpr auto kWordPiece = static_cast<std::uint32_t>(TokenizerModel::word_piece);
    constexpr auto kUnigram = static_cast<std::uint32_t>(TokenizerModel::unigram);
    if (header.model == 0 || header.model > kUnigram)
        return {Code::unsupported, "tokenizer model", kUnigram, header.model};
    if (!has(Part::word_piece) && header.model == kWordPiece)
        return {Code::unsupported, "word pieces: left out of this build", 0, 0};
    if (!has(Part::unigram) && header.model == kUnigram)
        return {Code::unsupported, "unigrams: left out of this build", 0, 0};
    if (header.model == kWordPiece && (header.max_word_characters - 1 >= kMaxWordCharacters))
        return invalid_table("characters of a word", kMaxWordCharacters, header.max_word_characters);
    if (header.flags & ~std::uint32_t{kTokenizerFlags})
        return {Code::unsupported, "tokenizer flags", kTokenizerFlags, header.flags};
    if (header.n_tokens == 0 || header.n_tokens >= kSpecialToken)
        return invalid_table("tokens", kSpecialToken - 1, header.n_tokens);
    if (header.n_tables > kMaxTables) return invalid_table("tokenizer tables", kMaxTables, header.n_tables);
    if (header.text_growth > kMaxTextGrowth)
        return invalid_table("tokenizer text growth", kMaxTextGrowth, header.text_growth);
    if (header.token_growth == 0 || header.token_growth > kMaxTokenGrowth)
        return invalid_table("tokenizer token growth", kMaxTokenGrowth, header.token_growth);
    return {};
}

bool step_valid(const TokenizerStep& step) noexcept {
    if (step.n_from > sizeof step.from || step.n_to > sizeof step.to) return false;
    switch (static_cast<StepKind>(step.kind)) {
        case StepKind::added_tokens: return step.mode <= 1;
        case StepKind::normal_form: return step.mode <= 2;
        case StepKind::digits: return step.mode <= 1 || (step.mode == 2 && step.limit != 0);
        case StepKind::pattern: return (step.mode & ~kSplitModes) == 0;
        case StepKind::replace_pattern: return step.mode == 0;
        case StepKind::map: return (step.mode & ~kMapModes) == 0;
        case StepKind::strip: return (step.mode & ~kStripModes) == 0;
        case StepKind::characters: return (step.mode & ~kRewriteFlags) == 0;
        case StepKind::bert_words: return step.mode == 0;
        case StepKind::replace:
        case StepKind::split_before: return step.n_from != 0;
        case StepKind::prepend: return step.mode <= 2;
        case StepKind::words: return (step.mode & ~kWordFlags) == 0;
    }
    return true;
}

constexpr bool has_step(StepKind kind) noexcept {
    if (kind == StepKind::normal_form) return has(Part::normal_forms);
    if (kind > StepKind::bert_words) return has(Part::patterns);
    return has(Part::word_piece) || (kind != StepKind::characters && kind != StepKind::bert_words);
}

Status check_tables(const Tables& t) noexcept {
    const std::uint64_t n_offsets = std::uint64_t{t.header->n_tokens} + 1;
    if (t.token_offsets.size() != n_offsets) return invalid_table("token offsets", n_offsets, t.token_offsets.size());
    if (t.header->max_token_bytes > t.token_text.size())
        return invalid_table("longest token's bytes", t.token_text.size(), t.header->max_token_bytes);
    if (!t.byte_ids.empty() && t.byte_ids.size() != 256) return invalid_table("byte ids", 256, t.byte_ids.size());
    if (t.merges.size() % kMergeBucket) return invalid_table("merges in whole buckets", 0, t.merges.size());
    if (t.vocabulary.size() % kEntryBucket) return invalid_table("vocabulary in whole buckets", 0, t.vocabulary.size());
    if (t.pair.size() > kMaxTemplateParts)
        return invalid_table("parts of a pair's template", kMaxTemplateParts, t.pair.size());
    if (t.header->model == static_cast<std::uint32_t>(TokenizerModel::unigram) && t.scores.size() != n_offsets)
        return invalid_table("scores", n_offsets, t.scores.size());
    if (t.steps.size() > kMaxSteps) return invalid_table("tokenizer steps", kMaxSteps, t.steps.size());
    constexpr auto kLast = static_cast<std::uint8_t>(StepKind::strip);
    for (const TokenizerStep& step : t.steps) {
        if (step.kind == 0 || step.kind > kLast) return {Code::unsupported, "tokenizer step", kLast, step.kind};
        if (!has_step(static_cast<StepKind>(step.kind)))
            return {Code::unsupported, "tokenizer step that this build leaves out", 0, step.kind};
        if (!step_valid(step)) return invalid_table("tokenizer step's mode", 0, step.mode);
    }
    return {};
}

bool is_unused(const TokenizerEntry& entry) noexcept { return entry.id == kNoId; }
bool is_unused(const TokenizerMerge& merge) noexcept { return merge.left == kNoId; }

/// The wanted one of a hash table's entries, or null.
template<class Entry>
const Entry* look_up(std::span<const Entry> table, std::uint32_t per_bucket, std::uint32_t hash,
                     auto is_wanted) noexcept {
    const auto n_buckets = static_cast<std::uint32_t>(table.size() / per_bucket);
    if (n_buckets == 0) return nullptr;
    std::uint32_t bucket = first_bucket(hash, n_buckets);
    for (std::uint32_t probe = 0; probe < kMaxProbes; ++probe) {
        for (const Entry& entry : table.subspan(std::size_t{bucket} * per_bucket, per_bucket)) {
            if (is_unused(entry)) return nullptr;
            if (is_wanted(entry)) return &entry;
        }
        bucket = bucket + 1 == n_buckets ? 0 : bucket + 1;
    }
    return nullptr;
}

}  // namespace

Status read_tables(std::span<const std::byte> section, Tables& tables) noexcept {
    if (section.empty()) return {Code::section_missing, "tokenizer", 0, 0};
    if (section.size() < sizeof(TokenizerHeader))
        return {Code::truncated, "tokenizer bytes", sizeof(TokenizerHeader), section.size()};
    if (reinterpret_cast<std::uintptr_t>(section.data()) % alignof(std::uint64_t))
        return {Code::misaligned, "tokenizer section's alignment", alignof(std::uint64_t),
                reinterpret_cast<std::uintptr_t>(section.data()) % alignof(std::uint64_t)};
    Tables t;
    t.header = reinterpret_cast<const TokenizerHeader*>(section.data());
    if (Status s = check_header(*t.header); !s.ok()) return s;
    const std::size_t directory_end = sizeof(TokenizerHeader) + t.header->n_tables * sizeof(TokenizerTable);
    if (section.size() < directory_end) return {Code::truncated, "tokenizer bytes", directory_end, section.size()};
    const auto* directory = reinterpret_cast<const TokenizerTable*>(section.data() + sizeof(TokenizerHeader));
    for (std::uint32_t i = 0; i < t.header->n_tables; ++i) {
        if (!is_known(directory[i].kind) && (directory[i].flags & kCritical))
            return {Code::unsupported, "tokenizer table", 0, directory[i].kind};
        if (!view_table(section, directory[i], t))
            return invalid_table("tokenizer table's extent", section.size(),
                                 std::uint64_t{directory[i].offset} + directory[i].bytes);
    }
    if (Status s = check_tables(t); !s.ok()) return s;
    tables = t;
    return {};
}

std::string_view Tables::token(Token id) const noexcept {
    if (std::uint64_t{id} + 1 >= token_offsets.size()) return {};
    const std::uint32_t begin = offset(id), end = offset(std::size_t{id} + 1);
    if (begin > end || end > token_text.size()) return {};
    return {token_text.data() + begin, end - begin};
}

std::string_view Tables::spelling(const AddedToken& added) const noexcept {
    if (added.offset > added_text.size() || added.bytes > added_text.size() - added.offset) return {};
    return {added_text.data() + added.offset, added.bytes};
}

Token Tables::find(std::string_view bytes, std::uint32_t hash) const noexcept {
    const TokenizerEntry* found = look_up(vocabulary, kEntryBucket, hash, [&](const TokenizerEntry& entry) {
        return entry.hash == hash && token(entry.id) == bytes;
    });
    return found ? found->id : kNoId;
}

const TokenizerMerge* Tables::merge(Token left, Token right) const noexcept {
    return look_up(merges, kMergeBucket, hash_pair(left, right),
                   [&](const TokenizerMerge& place) { return place.left == left && place.right == right; });
}

Tables TokenizerReader::tables(const Tokenizer& tokenizer) noexcept {
    Tables tables;  // stays empty for a Tokenizer that was never opened
    static_cast<void>(read_tables({reinterpret_cast<const std::byte*>(tokenizer.header_), tokenizer.bytes_}, tables));
    return tables;
}

void TokenizerReader::set(Tokenizer& tokenizer, std::span<const std::byte> section) noexcept {
    tokenizer.header_ = reinterpret_cast<const TokenizerHeader*>(section.data());
    tokenizer.bytes_ = section.size();
}

}  // namespace fovea
