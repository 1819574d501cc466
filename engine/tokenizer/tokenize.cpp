#include <algorithm>
#include <cstring>
#include <type_traits>

#include "engine/format/parts.h"
#include "engine/tokenizer/automaton.h"
#include "engine/tokenizer/known_words.h"
#include "engine/tokenizer/rewrite.h"
#include "engine/tokenizer/subwords.h"
#include "engine/tokenizer/text.h"
#include "engine/tokenizer/tokenize_parts.h"

namespace fovea {
namespace {

/// Tokens that are found in the text itself, before it is cut into words: "<|name|>" and the like.
class AddedTokens {
public:
    AddedTokens(const Tables& tables, const Classes& classes, bool parse_special) noexcept
        : tables_(tables), classes_(classes), parse_special_(parse_special) {
        for (const AddedToken& token : tables.added_tokens)
            if (const std::string_view spelling = tables.spelling(token); !spelling.empty()) {
                const auto first = static_cast<std::uint8_t>(spelling[0]);
                starts_[first / 32] |= 1u << first % 32;
            }
    }

    struct Match {
        const AddedToken* token = nullptr;  ///< null: there is none
        bool taken = false;                 ///< it counts; else its characters are plain text
        std::size_t begin = 0, end = 0;     ///< what it takes out, the space it asks for included
        std::size_t resume = 0;             ///< where to look for the next one
    };
    /// The leftmost added token from `pos` on, the longest if several start together: of the tokens matched in the
    /// normalized text, or of those matched in the text as given. `taken` bounds the space that may go with it on the
    /// left. `space_end`, 0 at first, is the end of the space that went with the last one on the right; without it,
    /// each token made of space would look through all of it again.
    [[nodiscard]] Match next(std::string_view text, std::size_t pos, std::size_t taken, std::size_t& space_end,
                             bool normalized) const noexcept {
        for (; pos < text.size(); ++pos) {
            const auto first = static_cast<std::uint8_t>(text[pos]);
            if (!(starts_[first / 32] >> first % 32 & 1)) continue;
            const AddedToken* token = longest(tail(text, pos), normalized);
            if (!token) continue;
            Match match{token, false, pos, pos + token->bytes, pos + token->bytes};
            if (!counts(*token, text, match.begin, match.end)) return match;
            match.taken = true;
            while ((token->flags & kAddedTakesLeft) && match.begin > taken) {
                const Character c = last_character({text.data() + taken, match.begin - taken});
                if (!(classes_.of(c) & kSpace)) break;
                match.begin -= c.bytes;
            }
            if (token->flags & kAddedTakesRight) {
                if (match.end < space_end) match.end = space_end;
                space_end = match.end = classes_.run_end(text, match.end, kSpace);
            }
            // A token made of space that already went with the token before it does not count.
            if ((token->flags & kAddedTakesLeft) && match.end <= taken) match.taken = false;
            return match;
        }
        return {};
    }

private:
    /// Narrows the sorted tokens down byte by byte. Tokens that end here come first: two at most, one of each kind.
    [[nodiscard]] const AddedToken* longest(std::string_view text, bool normalized) const noexcept {
        const std::span<const AddedToken> all = tables_.added_tokens;
        const AddedToken* found = nullptr;
        // The byte at `depth` as a key that puts the end of a spelling before every byte.
        std::size_t low = 0, high = all.size(), depth = 0;
        const auto key = [&](std::size_t i) -> std::uint32_t {
            const std::string_view spelling = tables_.spelling(all[low + i]);
            return depth < spelling.size() ? static_cast<std::uint8_t>(spelling[depth]) + 1u : 0;
        };
        for (; low < high && depth < kMaxAddedBytes && depth < text.size(); ++depth) {
            const std::uint32_t wanted = static_cast<std::uint8_t>(text[depth]) + 1u;
            low += first_place(high - low, wanted, key);
            high = low + first_place(high - low, wanted + 1, key);
            for (std::size_t i = low; i < high && i < low + 2 && all[i].bytes == depth + 1; ++i)
                if (((all[i].flags & kAddedNormalized) != 0) == normalized) found = &all[i];
        }
        return found;
    }

    [[nodiscard]] bool counts(const AddedToken& token, std::string_view text, std::size_t begin,
                              std::size_t end) const noexcept {
        if ((token.flags & kAddedSpecial) && !parse_special_) return false;
        if (!(token.flags & kAddedWord)) return true;
        const bool word_before = begin > 0 && (classes_.of(last_character({text.data(), begin})) & kWord);
        return !word_before && !(classes_.at(text, end).bits & kWord);
    }

    const Tables& tables_;
    const Classes& classes_;
    bool parse_special_;
    std::uint32_t starts_[8] = {};  // the set of first bytes
};

/// A stretch of text on its way through the steps.
struct TextPiece {
    std::string_view text;
    bool at_start = false;  ///< it begins where the text given to encode begins
    /// It begins at the border of a part, within the text.
    [[no_unique_address]] std::conditional_t<has(Part::plain_parts), bool, LeftOut<bool>> at_border = false;

    [[nodiscard]] TextPiece part(std::size_t begin, std::size_t end) const noexcept {
        return {{text.data() + begin, end - begin}, at_start && begin == 0, at_border && begin == 0};
    }
};

constexpr std::uint64_t kMost = ~std::uint64_t{0};

std::uint64_t times(std::uint64_t a, std::uint64_t b) noexcept { return b != 0 && a > kMost / b ? kMost : a * b; }
std::uint64_t plus(std::uint64_t a, std::uint64_t b) noexcept { return a > kMost - b ? kMost : a + b; }

/// For byte-pair encoding and unigrams; a word's pieces need no room.
std::uint64_t word_bytes(const TokenizerHeader& header, std::uint64_t n_symbols) noexcept {
    switch (static_cast<TokenizerModel>(header.model)) {
        case TokenizerModel::bpe: return times(n_symbols, kBytesPerSymbol);
        case TokenizerModel::unigram: return plus(times(n_symbols, 2), unigram_window_bytes(header.max_token_bytes));
        default: return 0;
    }
}
/// For a text's longest word, and known words. With byte-pair encoding both share the room.
std::uint64_t symbol_bytes(const TokenizerHeader& header, std::uint64_t text_bytes) noexcept {
    const std::uint64_t longest = word_bytes(header, times(text_bytes, header.token_growth));
    const bool shares = static_cast<TokenizerModel>(header.model) == TokenizerModel::bpe;
    return shares ? longest : plus(longest, KnownWordsOrNone::bytes_for(text_bytes));
}

/// Takes pieces through the steps one after the other, depth first: nothing is kept but the rewritten texts on the way
/// to the current word.
class Splitter {
public:
    Splitter(const Tables& tables, const TokenizeOptions& options, std::span<std::byte> symbols,
             std::uint64_t text_bytes, std::span<char> texts, std::span<Token> tokens) noexcept
        : tables_(tables),
          classes_(tables.classes),
          characters_(tables.characters),
          added_(tables, classes_, options.parse_special),
          symbols_(symbols),
          known_(symbols, text_bytes),
          texts_(texts),
          sink_(tokens) {}

    [[nodiscard]] TokenSink& sink() noexcept { return sink_; }

    /// A part of a text from `begin` on; `is_plain`: without added tokens. False as below.
    [[nodiscard]] bool run_part(std::string_view text, std::size_t begin, std::size_t end, bool is_plain) noexcept {
        is_plain_ = is_plain;
        return run({{text.data() + begin, end - begin}, begin == 0, begin != 0}, 0);
    }

    /// False if a table's promise about sizes does not hold.
    [[nodiscard]] bool run(const TextPiece& piece, std::size_t step_index) noexcept {
        const bool is_rewritten = step_index < tables_.steps.size() && rewrites(tables_.steps[step_index]);
        return has(Part::known_sets) && !is_rewritten ? pass_on(piece, step_index) : run_rewritten(piece, step_index);
    }

private:
    [[nodiscard]] bool pass_on(const TextPiece& piece, std::size_t step_index) noexcept {
        if (piece.text.empty()) return true;
        return step_index == tables_.steps.size() ? put_word(piece.text) : cut(piece, step_index);
    }
    /// A piece that a step changes is a copy, which would cost the others more than their step does.
    [[nodiscard]] bool run_rewritten(TextPiece piece, std::size_t step_index) noexcept {
        const std::span<char> room = texts_;
        std::size_t n_kept = 0;  // of the room, where the piece lies once it is rewritten
        for (; step_index < tables_.steps.size() && rewrites(tables_.steps[step_index]); ++step_index) {
            if (piece.text.empty()) return true;
            if (has(Part::plain_parts))  // what comes first in a text does not come behind a border
                if (piece.at_border && static_cast<StepKind>(tables_.steps[step_index].kind) == StepKind::prepend)
                    continue;
            TextSink out(room.subspan(n_kept));
            if (!rewrite(tables_, characters_, tables_.steps[step_index], piece.text, piece.at_start, out))
                return false;
            if (drops_start(tables_.steps[step_index], piece.text, out.text())) piece.at_start = false;
            // The step's input is not needed any more.
            n_kept = out.text().size();
            if (n_kept) std::memmove(room.data(), out.text().data(), n_kept);
            piece.text = {room.data(), n_kept};
        }
        texts_ = room.subspan(n_kept);
        const bool done = pass_on(piece, step_index);
        texts_ = room;
        return done;
    }
    /// Whether a step that takes characters away took the first. A text then does not begin where it began, as the
    /// `tokenizers` package sees it.
    static bool drops_start(const TokenizerStep& step, std::string_view before, std::string_view after) noexcept {
        const auto kind = static_cast<StepKind>(step.kind);
        if (kind != StepKind::strip && kind != StepKind::replace && kind != StepKind::replace_pattern) return false;
        return step.n_to == 0 && !after.empty() && first_character(before).code != first_character(after).code;
    }

    [[nodiscard]] bool put_word(std::string_view word) noexcept {
        if (!has(Part::known_sets)) return put_new_word(word, symbols_);
        if (known_.put(word, sink_)) return true;
        const std::uint64_t n_before = sink_.n();
        const std::uint64_t n_symbols = word_bytes(*tables_.header, word.size());
        if (n_symbols > known_.n_before()) {  // more than half of the text
            const bool done = put_new_word(word, symbols_);
            known_.forget();
            return done;
        }
        if (!put_new_word(word, symbols_.first(known_.n_before()))) return false;
        known_.keep(word, sink_.since(n_before));
        return true;
    }
    [[nodiscard]] bool put_new_word(std::string_view word, std::span<std::byte> symbols) noexcept {
        if (has(Part::unigram) && tables_.model() == TokenizerModel::unigram)
            return put_unigram(tables_, word, symbols, sink_);
        if (!has(Part::word_piece) || !tables_.is_word_piece()) return put_byte_pairs(tables_, word, symbols, sink_);
        put_word_pieces(tables_, word, sink_);
        return true;
    }

    [[nodiscard]] bool cut(const TextPiece& piece, std::size_t step_index) noexcept {
        const auto kind = static_cast<StepKind>(tables_.steps[step_index].kind);
        if (kind == StepKind::added_tokens) return take_added(piece, step_index);
        if (has(Part::patterns) && kind == StepKind::pattern) return split_by_pattern(piece, step_index);
        return split(piece, step_index);
    }

    [[nodiscard]] bool take_added(const TextPiece& piece, std::size_t step_index) noexcept {
        if (has(Part::plain_parts) && is_plain_) return run(piece, step_index + 1);
        const bool normalized = tables_.steps[step_index].mode == 1;
        std::size_t taken = 0, space_end = 0;  // up to `taken` the text is dealt with
        for (std::size_t pos = 0; pos < piece.text.size();) {
            const AddedTokens::Match match = added_.next(piece.text, pos, taken, space_end, normalized);
            if (!match.token) break;
            pos = match.resume;
            if (!match.taken) continue;
            if (match.begin > taken && !run(piece.part(taken, match.begin), step_index + 1)) return false;
            sink_.put(match.token->id);
            taken = match.end;
        }
        return taken >= piece.text.size() || run(piece.part(taken, piece.text.size()), step_index + 1);
    }

    [[nodiscard]] bool split(const TextPiece& piece, std::size_t step_index) noexcept {
        const TokenizerStep& step = tables_.steps[step_index];
        const bool drop_blank = has(Part::word_piece) && static_cast<StepKind>(step.kind) == StepKind::bert_words;
        for (std::size_t pos = 0; pos < piece.text.size();) {
            if (drop_blank) pos = characters_.run_end(piece.text, pos, kBlank);
            const std::size_t end = piece_end(step, piece.text, pos);
            if (!run(piece.part(pos, end), step_index + 1)) return false;
            pos = end;
        }
        return true;
    }

    /// Matches and what is between them, joined as the step's mode says.
    [[nodiscard]] bool split_by_pattern(const TextPiece& piece, std::size_t step_index) noexcept {
        const TokenizerStep& step = tables_.steps[step_index];
        Pattern pattern(tables_, step.limit);
        const auto behavior = static_cast<SplitMode>(step.mode & ~kSplitInverts);
        const bool inverts = step.mode & kSplitInverts;
        bool was_match = false;
        std::size_t begin = 0;
        for (std::size_t pos = 0; pos < piece.text.size();) {
            const Pattern::Segment segment = pattern.segment(piece.text, pos);
            const bool is_match = segment.is_match != inverts;
            const bool joins = behavior == SplitMode::before_threes ||
                               (behavior == SplitMode::contiguous && is_match == was_match) ||
                               (behavior == SplitMode::with_previous && is_match && !was_match) ||
                               (behavior == SplitMode::with_next && !is_match && was_match);
            if (!joins && pos > begin) {
                if (!run(piece.part(begin, pos), step_index + 1)) return false;
                begin = pos;
            }
            if (is_match && (behavior == SplitMode::threes || behavior == SplitMode::before_threes)) {
                const std::string_view match(piece.text.data(), segment.end);
                std::size_t at = skip(match, pos, n_characters(match, pos) % 3);
                if (behavior == SplitMode::threes && at == pos) at = skip(match, at, 3);  // it has begun there
                for (; at < segment.end; at = skip(match, at, 3)) {
                    if (at > begin && !run(piece.part(begin, at), step_index + 1)) return false;
                    begin = at;
                }
                if (behavior == SplitMode::threes) {
                    if (!run(piece.part(begin, at), step_index + 1)) return false;
                    begin = at;
                }
            }
            pos = segment.end;
            was_match = is_match;
            if (behavior == SplitMode::removed && is_match) begin = pos;
        }
        return begin == piece.text.size() || run(piece.part(begin, piece.text.size()), step_index + 1);
    }

    static std::size_t n_characters(std::string_view text, std::size_t pos) noexcept {
        std::size_t n = 0;
        for (; pos < text.size(); pos += first_character(tail(text, pos)).bytes) ++n;
        return n;
    }

    /// Where n characters from `pos` on end.
    static std::size_t skip(std::string_view text, std::size_t pos, std::size_t n) noexcept {
        for (; n > 0 && pos < text.size(); --n) pos += first_character(tail(text, pos)).bytes;
        return pos;
    }

    [[nodiscard]] std::size_t piece_end(const TokenizerStep& step, std::string_view text,
                                        std::size_t pos) const noexcept {
        const auto kind = static_cast<StepKind>(step.kind);
        if (kind == StepKind::words) return word_end(classes_, step, text, pos);
        if (has(Part::word_piece) && kind == StepKind::bert_words) {
            const std::size_t end = characters_.run_end(text, pos, kBlank | kPunctuation, true);
            return end == pos ? pos + characters_.at(text, pos).bytes : end;
        }
        if (kind == StepKind::digits) return digits_end(step, text, pos);
        const std::size_t next = text.find({reinterpret_cast<const char*>(step.from), step.n_from}, pos + 1);
        return next == std::string_view::npos ? text.size() : next;
    }

    [[nodiscard]] std::size_t digits_end(const TokenizerStep& step, std::string_view text,
                                         std::size_t pos) const noexcept {
        const auto first = classes_.at(text, pos);
        const bool numeric = first.bits & kNumeric;
        if (numeric && step.mode == 1) return pos + first.bytes;
        return classes_.run_end(text, pos, kNumeric, !numeric);
    }

    const Tables& tables_;
    Classes classes_, characters_;
    AddedTokens added_;
    std::span<std::byte> symbols_;
    [[no_unique_address]] KnownWordsOrNone known_;
    std::span<char> texts_;  // what is free of the room for rewritten texts
    TokenSink sink_;
    // Whether the part has no added tokens.
    [[no_unique_address]] std::conditional_t<has(Part::plain_parts), bool, LeftOut<bool>> is_plain_ = false;
};

/// Checks the scratch of a call with texts of at most `text_bytes`.
Status check_room(const Tables& tables, const Tokenizer& tokenizer, std::uint64_t text_bytes,
                  std::span<std::byte> scratch) noexcept {
    if (!tables.header) return {Code::section_missing, "tokenizer", 0, 0};
    const std::uint64_t wanted = tokenize_scratch_bytes(tokenizer, text_bytes);
    if (scratch.size() < wanted) return {Code::buffer_too_small, "scratch bytes", wanted, scratch.size()};
    if (reinterpret_cast<std::uintptr_t>(scratch.data()) % alignof(std::uint32_t))
        return {Code::misaligned, "scratch bytes' alignment", alignof(std::uint32_t),
                reinterpret_cast<std::uintptr_t>(scratch.data()) % alignof(std::uint32_t)};
    const std::uint64_t n_symbols = times(text_bytes, tables.header->token_growth);
    if (n_symbols >= kNoId) return {Code::bad_argument, "text bytes", kNoId / tables.header->token_growth, text_bytes};
    return {};
}

Splitter make_splitter(const Tables& tables, const TokenizeOptions& options, std::uint64_t text_bytes,
                       std::span<std::byte> scratch, std::span<Token> tokens) noexcept {
    const auto symbols = scratch.first(static_cast<std::size_t>(symbol_bytes(*tables.header, text_bytes)));
    const auto rest = scratch.subspan(symbols.size());
    return {tables, options, symbols, text_bytes, {reinterpret_cast<char*>(rest.data()), rest.size()}, tokens};
}

Status finish(const TokenSink& sink, std::span<Token> tokens, std::size_t& n_tokens) noexcept {
    if (sink.overflow()) return {Code::buffer_too_small, "tokens", sink.n(), tokens.size()};
    n_tokens = static_cast<std::size_t>(sink.n());
    return {};
}

constexpr Status kGrown{Code::section_invalid, "tokenizer's growth", 0, 0};

}  // namespace

std::uint64_t tokenize_scratch_bytes(const Tokenizer& tokenizer, std::uint64_t text_bytes) noexcept {
    if (!tokenizer.valid()) return 0;
    const TokenizerHeader& header = *TokenizerReader::header(tokenizer);
    return plus(symbol_bytes(header, text_bytes), times(text_bytes, header.text_growth));
}

std::uint64_t max_tokens(const Tokenizer& tokenizer, std::uint64_t text_bytes) noexcept {
    const Tables tables = TokenizerReader::tables(tokenizer);
    if (!tables.header) return 0;
    const std::size_t n_around = tables.prefix_ids.size() + tables.suffix_ids.size();
    return plus(times(text_bytes, tables.header->token_growth), std::max(n_around, tables.pair.size()));
}

Status tokenize(const Tokenizer& tokenizer, std::string_view text, const TokenizeOptions& options,
                std::span<std::byte> scratch, std::span<Token> tokens, std::size_t& n_tokens) noexcept {
    n_tokens = 0;
    const Tables tables = TokenizerReader::tables(tokenizer);
    if (Status s = check_room(tables, tokenizer, text.size(), scratch); !s.ok()) return s;
    Splitter splitter = make_splitter(tables, options, text.size(), scratch, tokens);
    TokenSink& sink = splitter.sink();
    if (options.add_special)
        for (const Token id : tables.prefix_ids) sink.put(id);
    if (!splitter.run({text, true}, 0)) return kGrown;
    if (options.add_special)
        for (const Token id : tables.suffix_ids) sink.put(id);
    return finish(sink, tokens, n_tokens);
}

// Written beside tokenize, not as its general form: a function for both costs firmware 16 bytes of its limit.
Status tokenize_parts(const Tokenizer& tokenizer, std::string_view text, std::span<const TextRange> plain,
                      const TokenizeOptions& options, std::span<std::byte> scratch, std::span<Token> tokens,
                      std::size_t& n_tokens) noexcept {
    if (!has(Part::plain_parts)) return kGrown;  // tokenize_around refuses
    n_tokens = 0;
    const Tables tables = TokenizerReader::tables(tokenizer);
    if (Status s = check_room(tables, tokenizer, text.size(), scratch); !s.ok()) return s;
    Splitter splitter = make_splitter(tables, options, text.size(), scratch, tokens);
    TokenSink& sink = splitter.sink();
    if (options.add_special)
        for (const Token id : tables.prefix_ids) sink.put(id);
    std::size_t at = 0;
    for (const TextRange& range : plain) {
        if (!splitter.run_part(text, at, range.first, false)) return kGrown;
        if (!splitter.run_part(text, range.first, range.last, true)) return kGrown;
        at = range.last;
    }
    if (!splitter.run_part(text, at, text.size(), false)) return kGrown;
    if (options.add_special)
        for (const Token id : tables.suffix_ids) sink.put(id);
    return finish(sink, tokens, n_tokens);
}

Status tokenize_pair(const Tokenizer& tokenizer, std::string_view first, std::string_view second,
                     const TokenizeOptions& options, std::span<std::byte> scratch, std::span<Token> tokens,
                     std::span<std::uint32_t> types, std::size_t& n_tokens) noexcept {
    n_tokens = 0;
    const Tables tables = TokenizerReader::tables(tokenizer);
    const std::size_t longest = std::max(first.size(), second.size());
    if (Status s = check_room(tables, tokenizer, longest, scratch); !s.ok()) return s;
    if (tables.pair.empty()) return {Code::section_missing, "template of a pair", 0, 0};
    Splitter splitter = make_splitter(tables, options, longest, scratch, tokens);
    TokenSink& sink = splitter.sink();
    std::uint32_t n_seen = 0;  // a template has each text once: more would be more ids than max_tokens says
    for (const TokenizerPart& part : tables.pair) {
        const std::uint64_t before = sink.n();
        if (part.id == kFirstText || part.id == kSecondText) {
            if (++n_seen > 2) return {Code::section_invalid, "texts of a pair's template", 2, n_seen};
            if (!splitter.run({part.id == kFirstText ? first : second, true}, 0)) return kGrown;
        } else if (options.add_special) {
            sink.put(part.id);
        }
        for (std::uint64_t i = before; i < sink.n() && i < types.size(); ++i)
            types[static_cast<std::size_t>(i)] = part.type;
    }
    return finish(sink, tokens, n_tokens);
}

}  // namespace fovea
