// The tokenizer section's bytes as structs; see format.h for the rest of the file.
#pragma once
// clang-format off
#include <cstddef>
#include <cstdint>

namespace fovea {

// ---- tokenizer: tables that are searched where they lie ------------------------------------------------------------
//
//     TokenizerHeader             at the section's start
//     TokenizerTable[n_tables]    the directory, at offset 64; each table is 64-byte aligned and stands there once
//
// Offsets count from the section's start. A reader skips tables it does not know unless their critical bit is set, and
// refuses models, flags and steps it does not know; so further models come with new numbers and tables, not versions.

inline constexpr std::uint32_t kNoId = 0xffffffffu;

enum class TokenizerModel : std::uint32_t { bpe = 1, word_piece = 2, unigram = 3 };

enum TokenizerFlag : std::uint32_t {
    kSymbolsAreBytes = 1,   // words start as bytes, else as characters
    kWholeWords = 2,        // a word that is itself in the vocabulary is one token, whatever the merges say
    kByteFallback = 4,      // an unknown character becomes its bytes
    kFuseUnknown = 8,       // neighbouring unknown characters become one unknown token
    kDropFirstSpace = 16,   // decoding drops the space a text starts with
    kDropFirstSpaces = 32,  // decoding drops every space of the first token
    kSingleSums = 64,       // unigram: sums of scores are rounded to float, and unknown characters are not looked up, as SentencePiece does
    kTokenizerFlags = 127,
};

// Bounded, so that a file cannot make its reader use more memory, or a deeper stack, than the text justifies.
inline constexpr std::uint32_t kMaxTextGrowth = 128, kMaxTokenGrowth = 32, kMaxSteps = 24;
inline constexpr std::uint32_t kMaxWordCharacters = 1000;  // and the time a word of word_piece may take

struct TokenizerHeader {
    std::uint32_t model;            // TokenizerModel
    std::uint32_t flags;            // TokenizerFlag
    std::uint32_t n_tokens;         // ids are below this
    std::uint32_t n_tables;
    std::uint32_t bos, unknown;     // ids, or kNoId
    std::uint32_t max_token_bytes;  // of the longest token
    std::uint32_t text_growth;      // at most this many bytes are rewritten by all steps, per byte of a text
    std::uint32_t token_growth;     // at most this many ids come of each byte of a text, its template's ids apart
    std::uint32_t max_word_characters;  // word_piece: a longer word, its space counted, is unknown; else 0
    std::uint32_t reserved[6];          // zero
};
static_assert(sizeof(TokenizerHeader) == 64);

enum class TokenizerTableKind : std::uint32_t {
    token_offsets = 1,  // u32 [n_tokens + 1]: where each token starts in token_text, and the two bits below
    token_text,         // the bytes each token stands for in a text
    end_ids,            // u32: tokens that end a text
    prefix_ids,         // u32: the template's tokens before a text
    suffix_ids,         // u32: and after it
    steps,              // TokenizerStep: from a text to words, in order
    byte_ids,           // u32 [256]: the token of each byte, or kNoId
    merges,             // TokenizerMerge: a hash table in buckets of 4
    vocabulary,         // TokenizerEntry: a hash table in buckets of 8; only if words or characters are looked up
    added_tokens,       // AddedToken, sorted by their bytes
    added_text,         // the bytes that spell them
    classes,            // u32 ascending: first code point << 8 | UnicodeClass bits, up to the next one's
    combining,          // u32 likewise: canonical combining classes
    decompositions,     // u64 ascending: code point | first << 21 | second (or 0) << 42 | bit 63: composes again
    compositions,       // u16: those with bit 63, as indices into decompositions, sorted by (first, second)
    characters,         // u32 as classes: CharacterBit
    lower_case,         // u64 as decompositions
    patterns,           // TokenizerPattern
    pattern_runs,       // u32 as classes: a pattern's classes of characters beyond ASCII
    transitions,        // u16: state | kMatchBefore
    maps,               // TokenizerMap
    map_units,          // u32: their tries, as automaton.h has them; values are offsets
    map_text,           // replacements of keys, each with a zero byte behind it
    clusters,           // u32 as classes: ClusterBit
    pieces,             // u32: a trie of tokens' spellings; values are ids
    scores,             // f64 [n_tokens + 1]: the last is an unknown character's
    pair,               // TokenizerPart: the template of two texts
};

// Bits of an offset. A token that joins the one before it loses its first space when decoded.
inline constexpr std::uint32_t kSpecialToken = 0x80000000u, kJoinedToken = 0x40000000u;

struct TokenizerTable {
    std::uint32_t kind;    // TokenizerTableKind
    std::uint32_t flags;   // kCritical
    std::uint32_t offset;
    std::uint32_t bytes;
};
static_assert(sizeof(TokenizerTable) == 16);

// A step takes a piece of text and hands on pieces of it, or a rewritten one; what leaves the last step are words.
enum class StepKind : std::uint8_t {
    added_tokens = 1,  // takes out added tokens: mode 0 those matched in the text as given, 1 in the normalized one
    normal_form,       // Unicode's: mode 0 form C, 1 form D without nonspacing marks
    replace,           // every `from` becomes `to`
    prepend,           // puts `to` first: mode 0 always, 1 unless the piece starts with it, 2 so at a text's start
    words,             // contractions, letters, numbers, punctuation, space: mode WordFlag bits; `limit`
    digits,            // numbers apart from the rest: mode 0 in runs, 1 one by one
    split_before,      // a piece starts at every `from`
    characters,        // each by its bits: mode RewriteFlag bits
    bert_words,        // space goes, each punctuation character is a piece (Devlin et al. 2019)
    pattern,            // pieces are the matches of pattern number `limit`, and the text between: mode SplitMode
    replace_pattern,    // every match of pattern number `limit` becomes `to`
    map,                // characters become what map number `limit` has for them: mode MapFlag bits
    strip,              // space at the ends goes: mode StripFlag bits
};

enum class SplitMode : std::uint8_t {
    isolated,       // each match is a piece, and so is what is between two
    removed,        // matches go
    contiguous,     // neighbouring matches are one piece
    with_previous,  // a match goes with what is before it
    with_next,      // and with what is after it
    threes,         // as isolated, each match cut into three characters each, counted from its end
    before_threes,  // a piece begins at each three characters of a match, counted from its end, and nowhere else
};
inline constexpr std::uint8_t kSplitInverts = 8, kSplitModes = 15;  // bit 3: what is between the matches counts as them

enum MapFlag : std::uint8_t {
    kMapClusters = 1,  // user-perceived characters of up to 5 bytes at once, by their shortest key; else the longest key
    kMapReplaces = 2,  // bytes that are no character become U+FFFD
    kMapModes = 3,
};

enum StripFlag : std::uint8_t {
    kStripLeft = 1,
    kStripRight = 2,
    kStripBlanks = 4,  // U+0020 alone
    kStripModes = 7,
};

enum WordFlag : std::uint8_t {
    kIgnoreCase = 1,   // 'S as 's
    kAnyPrefix = 2,    // letters take one character before them that is no line end, letter or number; else one space
    kLineEnds = 4,     // punctuation takes the line ends after it, and a run of space ends with its last line end
    kWordFlags = 7,
};

enum RewriteFlag : std::uint8_t {
    kClean = 1,         // dropped characters and invalid bytes go, other space becomes " "
    kApart = 2,         // a space on both sides of an ideograph
    kLowerCase = 4,
    kRewriteFlags = 7,
};

struct TokenizerStep {
    std::uint8_t kind;    // StepKind
    std::uint8_t mode;
    std::uint8_t n_from, n_to;
    std::uint32_t limit;  // words: digits that stay together; 0: all, with one space before them. Or a number of a table's entry
    std::uint8_t from[12], to[12];
};
static_assert(sizeof(TokenizerStep) == 32);

// A pattern's states: state 0 is the end, matching starts in kStartState. In a state's row a character's class, or n_classes
// at the end of the text, leads to the next state, and says whether a match ends before that character.
struct TokenizerPattern {
    std::uint32_t n_states, n_classes;
    std::uint32_t first_transition, first_run, n_runs;  // in those tables
    std::uint32_t flags;                                // PatternFlag
    std::uint32_t reserved[2];
    std::uint8_t ascii[128];  // classes
};
static_assert(sizeof(TokenizerPattern) == 160);
inline constexpr std::uint16_t kMatchBefore = 0x8000, kStateMask = 0x7fff;
inline constexpr std::uint32_t kStartState = 1, kMaxClasses = 255, kReplacementCode = 0xfffd;

enum PatternFlag : std::uint32_t {
    kPatternOfBytes = 1,  // classes are of bytes
};

struct TokenizerMap {
    std::uint32_t first_unit, n_units, first_byte, n_bytes;  // in those tables
};
static_assert(sizeof(TokenizerMap) == 16);

enum ClusterBit : std::uint8_t {
    kClusterJoins = 1,      // what is before it: marks and joiners
    kClusterTakesNext = 2,  // a prefix
    kClusterAlone = 4,      // a control
};

// A place in the template of a pair: a token, or in its stead one of the two texts; and the token type there.
struct TokenizerPart {
    std::uint32_t id;    // or kFirstText, kSecondText
    std::uint32_t type;  // token type
};
static_assert(sizeof(TokenizerPart) == 8);
inline constexpr std::uint32_t kFirstText = 0xfffffffeu, kSecondText = 0xfffffffdu, kMaxTemplateParts = 64;

struct TokenizerMerge {
    std::uint32_t left, right;  // ids; left is kNoId in an unused place
    std::uint32_t rank;         // lower merges first
    std::uint32_t merged;       // id
};
static_assert(sizeof(TokenizerMerge) == 16);

struct TokenizerEntry {
    std::uint32_t hash;         // of the token's bytes
    std::uint32_t id;           // kNoId in an unused place
};
static_assert(sizeof(TokenizerEntry) == 8);

// Where to look: in bucket first_bucket(hash) and the next ones, until one is not full; kMaxProbes at most.
inline constexpr std::uint32_t kMergeBucket = 4, kEntryBucket = 8, kMaxProbes = 16;

[[nodiscard]] constexpr std::uint32_t first_bucket(std::uint32_t hash, std::uint32_t n_buckets) noexcept {
    return static_cast<std::uint32_t>(std::uint64_t{hash} * n_buckets >> 32);
}

/// Multiply and fold, so that the high bits that first_bucket uses depend on every bit of both ids.
[[nodiscard]] constexpr std::uint32_t hash_pair(std::uint32_t left, std::uint32_t right) noexcept {
    std::uint64_t h = (std::uint64_t{left} << 32 | right) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    return static_cast<std::uint32_t>(h >> 32);
}

/// FNV-1a (Fowler, Noll, Vo 1991), its high bits stirred by one more multiplication. In steps, for growing strings.
inline constexpr std::uint32_t kHashStart = 2166136261u;
[[nodiscard]] constexpr std::uint32_t hash_step(std::uint32_t h, char byte) noexcept {
    return (h ^ static_cast<std::uint8_t>(byte)) * 16777619u;
}
[[nodiscard]] constexpr std::uint32_t hash_end(std::uint32_t h) noexcept { return (h ^ h >> 15) * 0x85ebca6bu; }
[[nodiscard]] constexpr std::uint32_t hash_bytes(const char* bytes, std::size_t n) noexcept {
    std::uint32_t h = kHashStart;
    for (std::size_t i = 0; i < n; ++i) h = hash_step(h, bytes[i]);
    return hash_end(h);
}

struct AddedToken {
    std::uint32_t id;
    std::uint32_t offset;  // in added_text
    std::uint16_t bytes;   // at most kMaxAddedBytes
    std::uint16_t flags;   // AddedFlag
};
static_assert(sizeof(AddedToken) == 12);
inline constexpr std::uint32_t kMaxAddedBytes = 255;

enum AddedFlag : std::uint16_t {
    kAddedSpecial = 1,      // read only if special tokens are asked for
    kAddedNormalized = 2,   // matched in the normalized text, and spelled so
    kAddedWord = 4,         // only if no word character is next to it
    kAddedTakesLeft = 8,    // with the space before it
    kAddedTakesRight = 16,  // with the space after it
    kAddedFlags = 31,
};

enum UnicodeClass : std::uint8_t {
    kLetter = 1,   // \p{L} of the regular expressions
    kNumber = 2,   // \p{N}
    kSpace = 4,    // \s
    kNumeric = 8,  // what Digits takes for a number: \p{N} of a later Unicode
    kWord = 16,    // \w, next to added tokens
};

enum CharacterBit : std::uint8_t {
    kDropped = 1,      // control characters and the like
    kBlank = 2,        // space, among them some that are dropped too
    kIdeograph = 4,    // Chinese, Japanese, Korean
    kPunctuation = 8,
    kMark = 16,        // nonspacing, after decomposition
};

}  // namespace fovea
