#include "engine/tokenizer/subwords.h"
#include "engine/tokenizer/text.h"

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
    /// The leftmost added token from `pos` on, the longest where several start together, of those that are matched in
    /// the normalized text or of those in the text as given. `taken` bounds the space that may go with it on the left;
    /// `space_end`, 0 at first, is where the space ends that went with the last one on the right: tokens that are made of
    /// space would else look through all of it each.
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
            return match;
        }
        return {};
    }

private:
    /// Narrows the sorted tokens down byte by byte. Those that end there come first: two at most, one of each kind.
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
struct Piece {
    std::string_view text;
    bool at_start = false;  ///< it begins where the text given to encode begins

    [[nodiscard]] Piece part(std::size_t begin, std::size_t end) const noexcept {
        return {{text.data() + begin, end - begin}, at_start && begin == 0};
    }
};

bool starts_with(std::string_view text, std::string_view prefix) noexcept {
    return text.size() >= prefix.size() && std::string_view{text.data(), prefix.size()} == prefix;
}

/// Takes pieces through the steps one after the other, depth first: nothing is kept but the rewritten texts on the way
/// to the current word.
class Encoder {
public:
    Encoder(const Tables& tables, const TokenizeOptions& options, std::span<std::byte> symbols, std::span<char> texts,
            std::span<Token> tokens) noexcept
        : tables_(tables),
          classes_(tables.classes),
          characters_(tables.characters),
          added_(tables, classes_, options.parse_special),
          symbols_(symbols),
          texts_(texts),
          sink_(tokens) {}

    [[nodiscard]] TokenSink& sink() noexcept { return sink_; }

    /// False where a table's promise about sizes does not hold.
    [[nodiscard]] bool run(const Piece& piece, std::size_t step_index) noexcept {
        if (piece.text.empty()) return true;
        if (step_index == tables_.steps.size()) {
            if (!tables_.is_word_piece()) return put_byte_pairs(tables_, piece.text, symbols_, sink_);
            put_word_pieces(tables_, piece.text, sink_);
            return true;
        }
        const TokenizerStep& step = tables_.steps[step_index];
        TextSink out(texts_);
        bool fits = true;
        switch (static_cast<StepKind>(step.kind)) {
            case StepKind::added_tokens: return take_added(piece, step_index);
            case StepKind::words:
            case StepKind::digits:
            case StepKind::split_before:
            case StepKind::bert_words: return split(piece, step_index);
            case StepKind::normal_form: fits = normalize(tables_, step.mode == 1, piece.text, out); break;
            case StepKind::characters: fits = rewrite_characters(step, piece.text, out); break;
            case StepKind::replace: fits = replace(step, piece.text, out); break;
            case StepKind::prepend: {
                const std::string_view to = to_of(step);
                const bool wanted =
                    step.mode == 0 || (!starts_with(piece.text, to) && (step.mode == 1 || piece.at_start));
                fits = (!wanted || out.put(to)) && out.put(piece.text);
            }
        }
        if (!fits) return false;
        const std::span<char> room = texts_;
        texts_ = room.subspan(out.text().size());
        const bool done = run({out.text(), piece.at_start}, step_index + 1);
        texts_ = room;
        return done;
    }

private:
    static std::string_view from_of(const TokenizerStep& step) noexcept {
        return {reinterpret_cast<const char*>(step.from), step.n_from};
    }
    static std::string_view to_of(const TokenizerStep& step) noexcept {
        return {reinterpret_cast<const char*>(step.to), step.n_to};
    }

    [[nodiscard]] bool take_added(const Piece& piece, std::size_t step_index) noexcept {
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

    [[nodiscard]] bool split(const Piece& piece, std::size_t step_index) noexcept {
        const TokenizerStep& step = tables_.steps[step_index];
        const bool drop_blank = static_cast<StepKind>(step.kind) == StepKind::bert_words;
        for (std::size_t pos = 0; pos < piece.text.size();) {
            if (drop_blank) pos = characters_.run_end(piece.text, pos, kBlank);
            const std::size_t end = piece_end(step, piece.text, pos);
            if (!run(piece.part(pos, end), step_index + 1)) return false;
            pos = end;
        }
        return true;
    }

    [[nodiscard]] std::size_t piece_end(const TokenizerStep& step, std::string_view text,
                                        std::size_t pos) const noexcept {
        const auto kind = static_cast<StepKind>(step.kind);
        if (kind == StepKind::words) return word_end(classes_, step, text, pos);
        if (kind == StepKind::bert_words) {
            const std::size_t end = characters_.run_end(text, pos, kBlank | kPunctuation, true);
            return end == pos ? pos + characters_.at(text, pos).bytes : end;
        }
        if (kind == StepKind::digits) {
            const auto first = classes_.at(text, pos);
            const bool numeric = first.bits & kNumeric;
            if (numeric && step.mode == 1) return pos + first.bytes;
            return classes_.run_end(text, pos, kNumeric, !numeric);
        }
        const std::size_t next = text.find(from_of(step), pos + 1);
        return next == std::string_view::npos ? text.size() : next;
    }

    static bool replace(const TokenizerStep& step, std::string_view text, TextSink& out) noexcept {
        const std::string_view from = from_of(step);
        for (std::size_t pos = 0;;) {
            const std::size_t next = text.find(from, pos);
            if (next == std::string_view::npos) return out.put(tail(text, pos));
            if (!out.put({text.data() + pos, next - pos}) || !out.put(to_of(step))) return false;
            pos = next + from.size();
        }
    }

    [[nodiscard]] bool rewrite_characters(const TokenizerStep& step, std::string_view text,
                                          TextSink& out) const noexcept {
        for (std::size_t pos = 0; pos < text.size();) {
            const auto c = characters_.at(text, pos);
            std::string_view spelled{text.data() + pos, c.bytes};
            pos += c.bytes;
            if (step.mode & kClean) {
                if ((c.bits & kDropped) || c.code == kNotACharacter) continue;
                if (c.bits & kBlank) spelled = " ";
            }
            char lower[8];
            if (const Change change = step.mode & kLowerCase ? change_of(tables_.lower_case, c.code) : Change{};
                change.entry) {
                std::uint32_t n_lower = put_character(change.first(), lower);
                if (change.second()) n_lower += put_character(change.second(), lower + n_lower);
                spelled = {lower, n_lower};
            }
            const std::string_view space(" ", (step.mode & kApart) && (c.bits & kIdeograph) ? 1 : 0);
            if (!out.put(space) || !out.put(spelled) || !out.put(space)) return false;
        }
        return true;
    }

    const Tables& tables_;
    Classes classes_, characters_;
    AddedTokens added_;
    std::span<std::byte> symbols_;
    std::span<char> texts_;  // what is free of the room for rewritten texts
    TokenSink sink_;
};

constexpr std::uint64_t kMost = ~std::uint64_t{0};

std::uint64_t times(std::uint64_t a, std::uint64_t b) noexcept { return b != 0 && a > kMost / b ? kMost : a * b; }
std::uint64_t plus(std::uint64_t a, std::uint64_t b) noexcept { return a > kMost - b ? kMost : a + b; }

/// For byte-pair encoding; a word's pieces need no room.
std::uint64_t symbol_bytes(const TokenizerHeader& header, std::uint64_t text_bytes) noexcept {
    if (header.model != static_cast<std::uint32_t>(TokenizerModel::bpe)) return 0;
    return times(times(text_bytes, header.token_growth), kBytesPerSymbol);
}

}  // namespace

std::uint64_t tokenize_scratch_bytes(const Tokenizer& tokenizer, std::uint64_t text_bytes) noexcept {
    if (!tokenizer.valid()) return 0;
    const TokenizerHeader& header = *TokenizerReader::header(tokenizer);
    return plus(symbol_bytes(header, text_bytes), times(text_bytes, header.text_growth));
}

std::uint64_t max_tokens(const Tokenizer& tokenizer, std::uint64_t text_bytes) noexcept {
    const Tables tables = TokenizerReader::tables(tokenizer);
    if (!tables.header) return 0;
    return plus(times(text_bytes, tables.header->token_growth), tables.prefix_ids.size() + tables.suffix_ids.size());
}

Status tokenize(const Tokenizer& tokenizer, std::string_view text, const TokenizeOptions& options,
                std::span<std::byte> scratch, std::span<Token> tokens, std::size_t& n_tokens) noexcept {
    n_tokens = 0;
    const Tables tables = TokenizerReader::tables(tokenizer);
    if (!tables.header) return {Code::section_missing, "tokenizer", 0, 0};
    const std::uint64_t wanted = tokenize_scratch_bytes(tokenizer, text.size());
    if (scratch.size() < wanted) return {Code::buffer_too_small, "scratch bytes", wanted, scratch.size()};
    if (reinterpret_cast<std::uintptr_t>(scratch.data()) % alignof(std::uint32_t))
        return {Code::misaligned, "scratch bytes' alignment", alignof(std::uint32_t),
                reinterpret_cast<std::uintptr_t>(scratch.data()) % alignof(std::uint32_t)};
    const std::uint64_t n_symbols = times(text.size(), tables.header->token_growth);
    if (n_symbols >= kNoId) return {Code::bad_argument, "text bytes", kNoId / tables.header->token_growth, text.size()};

    const auto symbols = scratch.first(static_cast<std::size_t>(symbol_bytes(*tables.header, text.size())));
    const auto rest = scratch.subspan(symbols.size());
    Encoder encoder(tables, options, symbols, {reinterpret_cast<char*>(rest.data()), rest.size()}, tokens);
    TokenSink& sink = encoder.sink();
    if (options.add_special)
        for (const Token id : tables.prefix_ids) sink.put(id);
    if (!encoder.run({text, true}, 0)) return {Code::section_invalid, "tokenizer's growth", 0, 0};
    if (options.add_special)
        for (const Token id : tables.suffix_ids) sink.put(id);
    if (sink.overflow()) return {Code::buffer_too_small, "tokens", sink.n(), tokens.size()};
    n_tokens = static_cast<std::size_t>(sink.n());
    return {};
}

}  // namespace fovea
