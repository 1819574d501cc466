#include "engine/tokenizer/text.h"

namespace fovea {
namespace {

// ---- words ---------------------------------------------------------------------------------------------------------

constexpr std::uint32_t kLongS = 0x17f;  // ſ, the only character beyond ASCII that folds to a letter of a contraction
constexpr std::uint8_t kVisible = kLetter | kNumber | kSpace;  // without one of them: punctuation

bool is_line_end(std::uint32_t code) noexcept { return code == '\n' || code == '\r'; }

/// `code` as the small letter a contraction may have; with `fold` in either case.
std::uint32_t contraction_letter(std::uint32_t code, bool fold) noexcept {
    if (!fold) return code;
    if (code >= 'A' && code <= 'Z') return code + ('a' - 'A');
    return code == kLongS ? 's' : code;
}

/// The end of the contraction that starts with the apostrophe at `pos`; `pos` if there is none.
std::size_t contraction_end(const Classes& classes, std::string_view text, std::size_t pos, bool fold) noexcept {
    const auto first = classes.at(text, pos + 1);
    const std::size_t after_first = pos + 1 + first.bytes;
    const std::uint32_t a = contraction_letter(first.code, fold);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return after_first;
    const auto second = classes.at(text, after_first);
    const std::uint32_t b = contraction_letter(second.code, fold);
    if ((b == 'e' && (a == 'r' || a == 'v')) || (a == 'l' && b == 'l')) return after_first + second.bytes;
    return pos;
}

std::size_t line_ends_end(std::string_view text, std::size_t pos) noexcept {
    while (pos < text.size() && is_line_end(static_cast<std::uint8_t>(text[pos]))) ++pos;
    return pos;
}

std::size_t numbers_end(const Classes& classes, std::string_view text, std::size_t pos, std::uint32_t limit) noexcept {
    if (limit == 0) return classes.run_end(text, pos, kNumber);
    for (std::uint32_t i = 0; i < limit; ++i) {
        const auto c = classes.at(text, pos);
        if (!(c.bits & kNumber)) break;
        pos += c.bytes;
    }
    return pos;
}

/// `pos` is at space that no other part of the pattern takes.
std::size_t space_end(const Classes& classes, std::string_view text, std::size_t pos, bool line_ends) noexcept {
    std::size_t last_line_end = pos, last = pos, end = pos;
    for (auto c = classes.at(text, end); c.bits & kSpace; c = classes.at(text, end)) {
        last = end;
        end += c.bytes;
        if (is_line_end(c.code)) last_line_end = end;
    }
    if (line_ends && last_line_end != pos) return last_line_end;
    // Before a visible character the last space is left to go with it.
    return end == text.size() || last == pos ? end : last;
}

// ---- normal forms --------------------------------------------------------------------------------------------------

// Below this no character combines, composes with one before it, or changes: under form C, under form D.
constexpr std::uint32_t kFirstLively = 0x300, kFirstDecomposing = 0xc0;
constexpr std::uint32_t kNone = kNotACharacter;

// Hangul syllables are computed: index = (lead · kVowels + vowel) · kTrails + trail.
constexpr std::uint32_t kSyllable = 0xac00, kLead = 0x1100, kVowel = 0x1161, kTrail = 0x11a7;
constexpr std::uint32_t kLeads = 19, kVowels = 21, kTrails = 28, kSyllables = kLeads * kVowels * kTrails;

/// A code point of a hostile table may be none; it is written as U+FFFD.
bool is_character(std::uint32_t code) noexcept { return code < 0xd800 || (code >= 0xe000 && code < 0x110000); }

/// The character that `first` and `second` compose to, or kNone.
std::uint32_t compose(const Tables& t, std::uint32_t first, std::uint32_t second) noexcept {
    if (first - kLead < kLeads && second - kVowel < kVowels)
        return kSyllable + ((first - kLead) * kVowels + (second - kVowel)) * kTrails;
    if (first - kSyllable < kSyllables && (first - kSyllable) % kTrails == 0 && second - kTrail - 1 < kTrails - 1)
        return first + (second - kTrail);
    const auto pair = [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << Change::kCodeBits | b; };
    const auto entry = [&](std::size_t i) {
        const std::size_t index = t.compositions[i];
        return index < t.decompositions.size() ? Change{t.decompositions[index]} : Change{};
    };
    const std::uint64_t key = pair(first, second);
    const std::size_t i = first_place(t.compositions.size(), key,
                                      [&](std::size_t k) { return pair(entry(k).first(), entry(k).second()); });
    if (i == t.compositions.size()) return kNone;
    const Change change = entry(i);
    return change.composes() && pair(change.first(), change.second()) == key ? change.code() : kNone;
}

/// The fully decomposed characters of a text, in its order. A copy is a place to come back to.
class Decomposed {
public:
    Decomposed(const Tables& tables, std::string_view text) noexcept : tables_(&tables), text_(text) { advance(); }

    [[nodiscard]] bool done() const noexcept { return n_ == 0; }
    [[nodiscard]] std::uint32_t code() const noexcept { return codes_[n_ - 1]; }
    void next() noexcept {
        if (--n_ == 0) advance();
    }

private:
    static constexpr std::uint32_t kMaxDepth = 8;  // Unicode needs 3

    /// Reads one character and pushes its decomposition, last part first.
    void advance() noexcept {
        if (text_.empty()) return;
        const Character c = first_character(text_);
        text_.remove_prefix(c.bytes);
        std::uint32_t code = c.code;
        if (code - kSyllable < kSyllables) {
            const std::uint32_t s = code - kSyllable;
            if (s % kTrails) codes_[n_++] = kTrail + s % kTrails;
            codes_[n_++] = kVowel + s / kTrails % kVowels;
            codes_[n_++] = kLead + s / kTrails / kVowels;
            return;
        }
        for (std::uint32_t depth = 0; depth < kMaxDepth; ++depth) {  // a hostile table may go round in circles
            const Change change = change_of(tables_->decompositions, code);
            if (change.entry == 0) break;
            if (change.second()) codes_[n_++] = change.second();
            code = change.first();
        }
        codes_[n_++] = code;
    }

    const Tables* tables_;
    std::string_view text_;
    std::uint32_t codes_[kMaxDepth + 1] = {};
    std::uint32_t n_ = 0;
};

class Composer {
public:
    Composer(const Tables& tables, NormalForm form, TextSink& out) noexcept : tables_(tables), form_(form), out_(out) {}

    /// A run of characters that is normalized by itself: it starts and ends where normal forms have a boundary.
    void segment(std::string_view text) noexcept {
        std::uint32_t starter = kNone;
        Decomposed d(tables_, text);
        while (starter != kNone || !d.done()) {
            const Marks marks = skip_marks(d);
            const std::uint32_t merged = order_marks(starter, marks, false);
            const std::uint32_t next = d.done() ? kNone : d.code();
            if (next != kNone) d.next();
            const bool touching = marks_left_ == 0 && merged != kNone && next != kNone;
            const std::uint32_t joined = touching ? join(merged, next) : kNone;
            if (joined != kNone) {
                starter = joined;
                continue;
            }
            if (merged != kNone) put(merged);
            order_marks(starter, marks, true);
            starter = next;
        }
    }

    void copy(std::string_view text) noexcept { overflow_ |= !out_.put(text); }

    [[nodiscard]] bool overflow() const noexcept { return overflow_; }

private:
    struct Marks {
        Decomposed begin;
        std::uint64_t classes[4] = {};  // the set of their combining classes
        std::size_t n = 0;
    };

    /// Moves `d` over the characters with a combining class, up to the next starter.
    Marks skip_marks(Decomposed& d) noexcept {
        Marks marks{d};
        for (; !d.done(); d.next()) {
            const std::uint8_t c = value_at(tables_.combining, d.code());
            if (c == 0) break;
            marks.classes[c / 64] |= std::uint64_t{1} << c % 64;
            ++marks.n;
        }
        return marks;
    }

    /// Goes through the marks in canonical order, a pass for each class present (a sort would need memory). Marks that
    /// compose with `starter` do; the others are left, and written if `write`. Returns what the starter became.
    std::uint32_t order_marks(std::uint32_t starter, const Marks& marks, bool write) noexcept {
        marks_left_ = 0;
        std::uint32_t last_left = 0;
        for (std::uint32_t c = 1; c < 256 && marks.n; ++c) {
            if (!(marks.classes[c / 64] >> c % 64 & 1)) continue;
            Decomposed d = marks.begin;
            for (std::size_t i = 0; i < marks.n; ++i, d.next()) {
                if (value_at(tables_.combining, d.code()) != c) continue;
                const bool blocked = starter == kNone || last_left == c;
                const std::uint32_t joined = blocked ? kNone : join(starter, d.code());
                if (joined != kNone) {
                    starter = joined;
                    continue;
                }
                ++marks_left_;
                last_left = c;
                if (write) put(d.code());
            }
        }
        return starter;
    }

    [[nodiscard]] std::uint32_t join(std::uint32_t first, std::uint32_t second) const noexcept {
        return form_ == NormalForm::c ? compose(tables_, first, second) : kNone;
    }

    void put(std::uint32_t code) noexcept {
        if (form_ == NormalForm::stripped && (value_at(tables_.characters, code) & kMark)) return;
        char bytes[4];
        copy({bytes, put_character(is_character(code) ? code : 0xfffd, bytes)});
    }

    const Tables& tables_;
    NormalForm form_;
    TextSink& out_;
    std::size_t marks_left_ = 0;
    bool overflow_ = false;
};

}  // namespace

std::size_t word_end(const Classes& classes, const TokenizerStep& step, std::string_view text,
                     std::size_t pos) noexcept {
    const bool line_ends = step.mode & kLineEnds;
    const auto c = classes.at(text, pos);
    if (c.code == '\'') {
        const std::size_t end = contraction_end(classes, text, pos, step.mode & kIgnoreCase);
        if (end != pos) return end;
    }
    if (c.bits & kLetter) return classes.run_end(text, pos, kLetter);
    if (c.bits & kNumber) return numbers_end(classes, text, pos, step.limit);
    const std::size_t after = pos + c.bytes;
    const auto next = classes.at(text, after);
    const bool is_space = c.code == ' ';
    if ((next.bits & kLetter) && (step.mode & kAnyPrefix ? !is_line_end(c.code) : is_space))
        return classes.run_end(text, after, kLetter);
    if (is_space && (next.bits & kNumber) && step.limit == 0) return numbers_end(classes, text, after, 0);
    if (!(c.bits & kSpace) || (is_space && next.bytes && !(next.bits & kVisible))) {
        const std::size_t end = classes.run_end(text, after, kVisible, true);
        return line_ends ? line_ends_end(text, end) : end;
    }
    return space_end(classes, text, pos, line_ends);
}

bool normalize(const Tables& tables, NormalForm form, std::string_view text, TextSink& out) noexcept {
    Composer composer(tables, form, out);
    const auto is_plain = [first_lively = form == NormalForm::c ? kFirstLively : kFirstDecomposing](
                              const Character& c) { return c.code == kNotACharacter || c.code < first_lively; };
    while (!text.empty()) {
        // Plain characters stay as they are; the last before a lively one belongs to its segment.
        std::size_t end = 0, last = 0;
        bool last_is_character = false;
        while (end < text.size()) {
            const Character c = first_character(tail(text, end));
            if (!is_plain(c)) break;
            last_is_character = c.code != kNotACharacter;
            last = end;
            end += c.bytes;
        }
        if (end == text.size() || !last_is_character) last = end;
        composer.copy({text.data(), last});
        text.remove_prefix(last);
        end -= last;
        while (end < text.size()) {
            const Character c = first_character(tail(text, end));
            if (is_plain(c)) break;
            end += c.bytes;
        }
        composer.segment({text.data(), end});
        text.remove_prefix(end);
    }
    return !composer.overflow();
}

}  // namespace fovea
