#include "fovea/host/token_places.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "engine/format/tables.h"
#include "engine/format/utf8.h"
#include "engine/tokenizer/rewrite.h"
#include "fovea/host/tokens.h"

namespace fovea::host {
namespace {

/// SentencePiece's mark of a space.
constexpr std::string_view kSpaceMark = "\xe2\x96\x81";

/// What a tokenizer does with blanks and with what it does not know.
struct Habits {
    explicit Habits(const Tables& of) : tables(&of), characters(of.characters), drops_blanks(of.is_word_piece()) {
        removes = of.is_word_piece();
        for (const TokenizerStep& step : of.steps) {
            const auto kind = static_cast<StepKind>(step.kind);
            const auto split = static_cast<SplitMode>(step.mode & ~kSplitInverts);
            has_words |= kind == StepKind::bert_words;
            removes |= kind == StepKind::pattern && split == SplitMode::removed;
            drops_blanks |= kind == StepKind::prepend && removes;
            prepends |= kind == StepKind::prepend && step.mode == 0;
            char room[64];
            TextSink out(room);
            joins_blanks |= kind == StepKind::replace_pattern && rewrite(of, characters, step, "  ", false, out) &&
                            (out.text() == " " || out.text() == kSpaceMark);
        }
        for (const AddedToken& token : of.added_tokens) added[token.id] = &token;
        is_apart = of.model() == TokenizerModel::bpe && !(of.header->flags & kFuseUnknown);
    }

    const Tables* tables;
    Classes characters;
    bool removes;               ///< white space, of any kind, may go
    bool drops_blanks;          ///< words lose the space before them
    bool prepends = false;      ///< a text gets one
    bool joins_blanks = false;  ///< of several blanks the last stays
    bool has_words = false;     ///< BERT's words, of which an unknown token takes one
    bool is_apart = false;      ///< each unknown character has a token
    std::unordered_map<Token, const AddedToken*> added;
};

/// A reading head over what a tokenizer makes of a text's characters, one after the other with its marks. A copy is a place to
/// come back to.
class ChangedText {
public:
    ChangedText(const Habits& habits, std::string_view text)
        : tables_(habits.tables), characters_(&habits.characters), text_(text), removes_(habits.removes) {
        for (const TokenizerStep& step : tables_->steps) joins_marks_ |= takes_marks(step);
        load();
    }

    [[nodiscard]] bool done() const { return at_ == made_.size(); }
    [[nodiscard]] char byte() const { return made_[at_]; }
    /// Whether the next byte is a space: of the text, or the mark that SentencePiece puts in its place.
    [[nodiscard]] bool at_blank() const {
        const std::string_view rest = std::string_view(made_).substr(at_);
        if (rest.starts_with(kSpaceMark)) return !tables_->is_word_piece();
        const Character c = rest.empty() ? Character{} : first_character(rest);
        return c.code == ' ' || (removes_ && is_space(c.code));
    }
    /// The character of the text that the next byte comes from.
    [[nodiscard]] TokenPlace place() const {
        std::size_t from = first_;
        if (!from_.empty())
            from += from_[std::max<std::size_t>(count(std::string_view(made_).substr(0, at_ + 1)), 1) - 1];
        return {from, from + 1};
    }
    [[nodiscard]] std::size_t first() const { return first_; }  ///< character that was read last
    /// The rest of the text, unchanged, where a character begins.
    [[nodiscard]] std::string_view unchanged() const { return at_ == 0 ? text_.substr(begin_) : std::string_view(); }

    void next() {
        if (++at_ == made_.size()) load();
    }
    void next_character() {
        at_ = made_.size();
        load();
    }
    /// Behind the next character of what was made.
    void skip_made() {
        const std::string_view rest = std::string_view(made_).substr(at_);
        at_ += rest.starts_with(kSpaceMark) ? kSpaceMark.size() : first_character(rest).bytes;
        if (at_ == made_.size()) load();
    }
    /// Behind that many bytes of the unchanged text.
    void skip(std::size_t n_bytes) {
        for (const std::size_t end = begin_ + n_bytes; !done() && begin_ < end;) next_character();
    }

private:
    /// Unicode's White_Space.
    static bool is_space(std::uint32_t code) {
        constexpr std::array<std::uint32_t, 9> kOthers = {' ',    0x85,   0xa0,   0x1680, 0x2028,
                                                          0x2029, 0x202f, 0x205f, 0x3000};
        return (code >= 9 && code <= 13) || (code >= 0x2000 && code <= 0x200a) ||
               std::find(kOthers.begin(), kOthers.end(), code) != kOthers.end();
    }
    static bool takes_marks(const TokenizerStep& step) {
        const auto kind = static_cast<StepKind>(step.kind);
        return kind == StepKind::normal_form || kind == StepKind::map;
    }
    [[nodiscard]] bool is_mark(std::uint32_t code) const {
        return value_at(tables_->combining, code) || (value_at(tables_->clusters, code) & kClusterJoins);
    }
    /// Characters, by the bytes that begin them.
    static std::size_t count(std::string_view text) {
        return static_cast<std::size_t>(std::count_if(
            text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
    }

    static constexpr std::size_t kMostRead =
        31;  // a character with its marks (Unicode Standard Annex 15, Stream-Safe Text)

    /// Reads characters until something comes of one.
    void load() {
        made_.clear();
        at_ = 0;
        while (made_.empty() && end_ < text_.size()) {
            first_ += n_read_;
            begin_ = end_;
            end_ += first_character(text_.substr(end_)).bytes;
            n_read_ = 1;
            if (joins_marks_ && !tables_->clusters.empty() && text_.substr(begin_).starts_with("\r\n"))
                ++end_, ++n_read_;
            while (joins_marks_ && n_read_ < kMostRead && end_ < text_.size()) {
                const Character c = first_character(text_.substr(end_));
                if (c.code == kNotACharacter || !is_mark(c.code)) break;
                end_ += c.bytes;
                ++n_read_;
            }
            made_ = changed(text_.substr(begin_, end_ - begin_));
            find_origins();
        }
        if (made_.empty()) first_ += n_read_, begin_ = end_, n_read_ = 0;
    }
    /// Which of the characters read each character made comes of: by each alone or, where they were joined, the first of the first
    /// one, and the others from the end.
    void find_origins() {
        from_.clear();
        if (n_read_ < 2) return;
        std::size_t n = 0;
        for (std::string_view rest = text_.substr(begin_, end_ - begin_); !rest.empty(); ++n) {
            const std::size_t n_bytes = first_character(rest).bytes;
            from_.insert(from_.end(), count(changed(rest.substr(0, n_bytes))), n);
            rest.remove_prefix(n_bytes);
        }
        const std::size_t n_made = count(made_);
        if (from_.size() == n_made) return;
        from_.assign(n_made, 0);
        for (std::size_t j = 1; j < n_made; ++j) from_[j] = n_read_ - std::min(n_made - j, n_read_);
    }
    [[nodiscard]] std::string changed(std::string_view text) const {
        std::string made(text);
        for (const TokenizerStep& step : tables_->steps) {
            const auto kind = static_cast<StepKind>(step.kind);
            const bool is_of_one =
                (kind == StepKind::replace && first_character({step_from(step), step.n_from}).bytes == step.n_from) ||
                (kind == StepKind::replace_pattern && made != " ");
            if (!takes_marks(step) && kind != StepKind::characters && !is_of_one) continue;
            std::array<char, 1024> room;
            TextSink out(room);
            if (!made.empty() && rewrite(*tables_, *characters_, step, made, false, out)) made = out.text();
        }
        return made;
    }
    static const char* step_from(const TokenizerStep& step) { return reinterpret_cast<const char*>(step.from); }

    const Tables* tables_;
    const Classes* characters_;
    std::string_view text_;
    bool removes_, joins_marks_ = false;
    std::string made_;                    // of the characters from begin_ to end_, bytes
    std::size_t at_ = 0;                  // in made_
    std::size_t begin_ = 0, end_ = 0;     // bytes of the text
    std::vector<std::size_t> from_;       // of a character with marks: each made character's, counted from first_
    std::size_t first_ = 0, n_read_ = 0;  // characters: the first of them, and how many
};

/// Finds tokens one after the other.
class Finder {
public:
    Finder(const Habits& habits, std::string_view text) : habits_(&habits), head_(habits, text) {}

    /// The place of the next token, or nothing where its bytes do not come next.
    std::optional<TokenPlace> find(Token id) {
        const bool begins = std::exchange(begins_, false);
        if (head_.done()) return {};
        if (const auto added = habits_->added.find(id); added != habits_->added.end()) {
            if (const auto place = match_added(*added->second)) {
                begins_ = true;
                return place;
            }
            if (habits_->tables->has_bit(id, kSpecialToken)) return {};
        }
        const std::string_view bytes = habits_->tables->token(id), visible = bytes.substr(blank_bytes(bytes));
        const bool has_blank = visible.size() < bytes.size();
        if (bytes.empty()) return {};
        const bool is_first = has_blank && begins && habits_->prepends;
        const bool is_joined = has_blank && habits_->joins_blanks;
        if (!habits_->drops_blanks && !is_first && !is_joined)
            if (auto place = match(head_, bytes)) return place;
        ChangedText behind = head_, last = head_;  // the blanks; the last of them
        for (; !behind.done() && behind.at_blank(); behind.skip_made()) last = behind;
        if (behind.done()) return match(head_, bytes);
        if (habits_->drops_blanks) return visible.empty() ? behind.place() : match(behind, visible);
        if (is_first) return visible.empty() ? head_.place() : match(head_, visible);
        if (auto place = match(is_joined ? last : head_, bytes)) return place;
        if (auto place = match(behind, bytes)) return place;
        if (!has_blank) return {};
        return visible.empty() ? head_.place() : match(behind, visible);
    }

    /// The place of an unknown token: a word, a character, or all up to where `next` is found (kNoId: the text's end).
    TokenPlace find_unknown(Token next) {
        constexpr std::size_t kMost = 4096;  // characters
        while (!head_.done() && head_.at_blank()) head_.skip_made();
        if (head_.done()) return {head_.first(), head_.first()};
        TokenPlace place = head_.place();
        for (std::size_t n = 0; n < kMost && !head_.done(); ++n) {
            place.end = head_.place().end;
            const bool was_word = is_word();
            head_.skip_made();
            if (habits_->is_apart || head_.done() || (habits_->drops_blanks && head_.at_blank())) break;
            if (habits_->has_words ? was_word || is_word() : comes(next)) break;
            if (!head_.at_blank()) continue;
            while (!head_.done() && head_.at_blank()) head_.skip_made();  // unknown, too
            if (head_.done() || comes(next)) break;
        }
        return place;
    }

private:
    /// The space that a token begins with.
    static std::size_t blank_bytes(std::string_view bytes) {
        return bytes.starts_with(' ') ? 1 : bytes.starts_with(kSpaceMark) ? kSpaceMark.size() : 0;
    }
    /// A token that is found in the text itself, as it is spelled there, with the space that goes with it.
    std::optional<TokenPlace> match_added(const AddedToken& added) {
        const std::string_view bytes = habits_->tables->spelling(added);
        ChangedText head = head_;
        while (!head.done() && head.at_blank() && !head.unchanged().starts_with(bytes)) head.skip_made();
        if (bytes.empty() || !head.unchanged().starts_with(bytes)) return {};
        const std::size_t begin = added.flags & kAddedTakesLeft ? head_.first() : head.first();
        head.skip(bytes.size());
        while ((added.flags & kAddedTakesRight) && !head.done() && head.at_blank()) head.skip_made();
        head_ = head;
        return TokenPlace{begin, head.first()};
    }
    std::optional<TokenPlace> match(ChangedText head, std::string_view bytes) {
        TokenPlace place{};
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            if (head.done()) return {};
            const TokenPlace here = head.place();
            if (bytes[i] == ' ' && head.at_blank())
                head.skip_made();
            else if (head.byte() == bytes[i])
                head.next();
            else
                return {};
            place = {i == 0 ? here.begin : std::min(place.begin, here.begin), std::max(place.end, here.end)};
        }
        head_ = head;
        return place;
    }
    [[nodiscard]] bool comes(Token next) const {
        const bool has_blank = !habits_->tables->is_word_piece() && blank_bytes(habits_->tables->token(next)) > 0;
        return (!has_blank || head_.at_blank()) && Finder(*this).find(next).has_value();
    }
    /// Whether the present character is a word of its own for BERT.
    [[nodiscard]] bool is_word() const {
        const std::string_view rest = head_.unchanged();
        return !rest.empty() && (habits_->characters.at(rest, 0).bits & (kPunctuation | kIdeograph)) != 0;
    }

    const Habits* habits_;
    ChangedText head_;
    bool begins_ = true;  ///< nothing was found yet, or an added token
};

/// Unigram takes neighbouring unknown characters as one, whose bytes all have the place of it.
void join_bytes(const Tables& tables, PlacedTokens& made) {
    if (tables.model() != TokenizerModel::unigram || tables.byte_ids.empty()) return;
    const auto is_byte = [&](Token id) {
        return std::find(tables.byte_ids.begin(), tables.byte_ids.end(), id) != tables.byte_ids.end();
    };
    for (std::size_t i = 0, end = 0; i < made.tokens.size(); i = end) {
        for (end = i; end < made.tokens.size() && is_byte(made.tokens[end]);) ++end;
        for (std::size_t k = i; k < end; ++k) made.places[k] = {made.places[i].begin, made.places[end - 1].end};
        end = std::max(end, i + 1);
    }
}

}  // namespace

PlacedTokens tokenize_with_places(const Tokenizer& tokenizer, std::string_view text, const TokenizeOptions& options) {
    PlacedTokens made{tokenize(tokenizer, text, options), {}};
    made.places.resize(made.tokens.size());
    const Tables tables = TokenizerReader::tables(tokenizer);
    const std::size_t n_before = options.add_special ? tables.prefix_ids.size() : 0,
                      n_after = options.add_special ? tables.suffix_ids.size() : 0;
    if (made.tokens.size() < n_before + n_after) return made;
    const Habits habits(tables);
    Finder finder(habits, text);
    const std::size_t end = made.tokens.size() - n_after;
    for (std::size_t i = n_before; i < end; ++i) {
        const auto place = finder.find(made.tokens[i]);
        made.places[i] = place ? *place : finder.find_unknown(i + 1 < end ? made.tokens[i + 1] : kNoId);
    }
    join_bytes(tables, made);
    return made;
}

}  // namespace fovea::host
