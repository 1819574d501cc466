// A compiled form of answers and the index of a vocabulary, byte by byte: host/grammar/ writes them, and
// engine/text/constraint.cpp checks them. Both are little-endian, hold offsets and no pointers, and are used where they
// lie, aligned to 4 bytes.
#pragma once
#include <cstddef>
#include <cstdint>

namespace fovea {

inline constexpr std::uint32_t kNoPlace = 0xffffffffu;  // no token, no mask
inline constexpr std::uint16_t kNoState = 0xffffu;

// ---- the index of a vocabulary: its tokens' bytes as a tree, in the order of a walk through it ----------------------

inline constexpr std::uint8_t kIndexMagic[8] = {'F', 'o', 'v', 'e', 'a', 'V', 'o', 'c'};
inline constexpr std::uint8_t kConstraintMagic[8] = {'F', 'o', 'v', 'e', 'a', 'F', 'o', 'r'};
inline constexpr std::uint32_t kConstraintVersion = 1;

/// Then IndexNode [n_nodes], then u32 [n_ends], the ids that end a text.
struct IndexHeader {
    std::uint8_t magic[8];
    std::uint32_t version;
    std::uint32_t vocab_size;
    std::uint32_t
        token_crc;  // CRC-32C of the tokenizer's token_offsets, then token_text: an index is of one vocabulary
    std::uint32_t n_nodes;
    std::uint32_t n_ends;
    std::uint32_t max_depth;  // the longest token's bytes
};
static_assert(sizeof(IndexHeader) == 32);

/// One byte of tokens that begin alike. Its first child, if it has one, is the next node. Tokens of the same bytes are
/// neighbours.
struct IndexNode {
    std::uint32_t end_byte;     // past its subtree, in nodes, << 8 | the byte
    std::uint32_t token_depth;  // id << 8 | bytes up to here, from 1; id kNoNodeToken: no token ends here

    [[nodiscard]] constexpr std::uint32_t end() const noexcept { return end_byte >> 8; }
    [[nodiscard]] constexpr std::uint8_t byte() const noexcept { return static_cast<std::uint8_t>(end_byte); }
    [[nodiscard]] constexpr std::uint32_t token() const noexcept { return token_depth >> 8; }
    [[nodiscard]] constexpr std::uint32_t depth() const noexcept { return token_depth & 0xff; }
};
static_assert(sizeof(IndexNode) == 8);
inline constexpr std::uint32_t kNoNodeToken = 0xffffffu;
inline constexpr std::uint32_t kMostTokenBytes = 126;  // of a token in an index; longer ones are left out

// ---- a form: a pushdown automaton over bytes ------------------------------------------------------------------------

/// Then, each as long as its count says: StateRecord, CallRecord, RangeRecord, rows of 256 u16 (a state or kNoState for each
/// byte), WideRecord, IndexNode and GroupRecord of merged tokens, and n_words u32 that these speak of. Then index_bytes of an
/// index, if the form has its own.
struct ConstraintHeader {
    std::uint8_t magic[8];
    std::uint32_t version;
    std::uint32_t vocab_size;
    std::uint32_t index_crc;  // CRC-32C of the header of the index it was made with
    std::uint32_t n_states, n_calls, n_ranges, n_rows, n_wide, n_words;
    std::uint32_t start;      // state
    std::uint32_t max_depth;  // calls within calls
    std::uint32_t index_bytes;
    std::uint32_t n_merged, n_groups;
};
static_assert(sizeof(ConstraintHeader) == 64);

/// A state of one rule's automaton.
struct StateRecord {
    std::uint32_t first;       // range; of a state with kRowOfBytes, its row
    std::uint16_t n_ranges;    // or kRowOfBytes
    std::uint16_t first_call;  // rules that can be entered here
    std::uint16_t n_calls;
    std::uint8_t accepts;  // 1: the rule can end here
    std::uint8_t height;   // calls within calls that its end wants at least
    std::uint32_t forced;  // the one token that may follow, or kNoPlace
    std::uint32_t wide;    // the WideRecord of the tokens that may follow, kMergedTokens or kNoPlace
};
static_assert(sizeof(StateRecord) == 20);
inline constexpr std::uint16_t kRowOfBytes = 0xffffu;
inline constexpr std::uint32_t kMergedTokens = 0xfffffffeu;  // the tree of merged tokens has those that may follow

/// Bytes from low to high lead to `target`. Ascending within a state.
struct RangeRecord {
    std::uint8_t low, high;
    std::uint16_t target;
};
static_assert(sizeof(RangeRecord) == 4);

/// A rule entered min to max times, one after the other, before the automaton goes on at `target`.
struct CallRecord {
    std::uint16_t callee, target;  // states
    std::uint16_t min, max;        // min >= 1; max 0: without end
    std::uint32_t loop;            // the WideRecord of the callee's repetitions, kNoPlace, kFirstItem or kFurtherItem
};
static_assert(sizeof(CallRecord) == 12);
// A call that reads what tells an item of a list from the others: its text is none of those since the first item's.
inline constexpr std::uint32_t kFirstItem = 0xfffffffeu, kFurtherItem = 0xfffffffdu;
inline constexpr std::uint32_t kMostItems = 128;  // of such a list

/// A state's or a loop's tokens, precomputed if there are many.
///
/// For a state, `mask` has the tokens that stay within its rule, and `entries` the nodes where a token may leave the
/// rule, each with the state before that node. For a loop, `counts` has the number of repetitions that each token
/// begins, 0 if the token is not made of repetitions only; `mask` has the tokens that are; `entries` the nodes where a
/// token may leave, with the repetitions before. For a state whose other tokens the tree of merged tokens has, `n_entries` is
/// kNoPlace, and `entries` has a bit for each of its nodes: set if the mask has all tokens from there on.
struct WideRecord {
    std::uint32_t mask;     // word at which (vocab_size + 31) / 32 words start
    std::uint32_t counts;   // word at which a byte for each token starts, filled up to a multiple of 32; or kNoPlace
    std::uint32_t entries;  // word at which n_entries pairs start: node, state or repetitions; by the latter, ascending
    std::uint32_t n_entries;
};
static_assert(sizeof(WideRecord) == 16);

// ---- merged tokens -------------------------------------------------------------------------------------------------
// A tree as an index's, for states that walks go far from: those with kMergedTokens or a WideRecord that says so. Tokens are merged
// if their bytes lead all of these states to the same ones. A node's byte is one of those that its step stands for, its id a
// GroupRecord.

struct GroupRecord {
    std::uint32_t tokens;  // word at which their ids start; where n is kNoPlace, a mask of (vocab_size + 31) / 32 words
    std::uint32_t n;
};
static_assert(sizeof(GroupRecord) == 8);

}  // namespace fovea
