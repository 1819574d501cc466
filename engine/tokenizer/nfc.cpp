#include "engine/tokenizer/nfc.h"

#include "engine/tokenizer/utf8.h"

namespace fovea {
namespace {

// Below this no character combines, composes with one before it, or changes under NFC.
constexpr std::uint32_t kFirstLively = 0x300;
constexpr std::uint32_t kCodeBits = 21, kCodeMask = (1u << kCodeBits) - 1;
constexpr std::uint64_t kComposes = std::uint64_t{1} << 63;
constexpr std::uint32_t kNone = kNotACharacter;

// Hangul syllables are computed: index = (lead · kVowels + vowel) · kTrails + trail.
constexpr std::uint32_t kSyllable = 0xac00, kLead = 0x1100, kVowel = 0x1161, kTrail = 0x11a7;
constexpr std::uint32_t kLeads = 19, kVowels = 21, kTrails = 28, kSyllables = kLeads * kVowels * kTrails;

std::uint32_t code_of(std::uint64_t entry) noexcept { return static_cast<std::uint32_t>(entry) & kCodeMask; }
std::uint32_t first_of(std::uint64_t entry) noexcept {
    return static_cast<std::uint32_t>(entry >> kCodeBits) & kCodeMask;
}
std::uint32_t second_of(std::uint64_t entry) noexcept {
    return static_cast<std::uint32_t>(entry >> 2 * kCodeBits) & kCodeMask;
}

/// A code point of a hostile table may be none; it is written as U+FFFD.
bool is_character(std::uint32_t code) noexcept { return code < 0xd800 || (code >= 0xe000 && code < 0x110000); }

std::uint64_t find_decomposition(const Tables& t, std::uint32_t code) noexcept {
    std::size_t first = 0, count = t.decompositions.size();
    while (count > 0) {
        const std::size_t half = count / 2;
        if (code_of(t.decompositions[first + half]) < code) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    if (first < t.decompositions.size() && code_of(t.decompositions[first]) == code) return t.decompositions[first];
    return 0;
}

/// What `first` and `second` compose to, or kNone.
std::uint32_t compose(const Tables& t, std::uint32_t first, std::uint32_t second) noexcept {
    if (first - kLead < kLeads && second - kVowel < kVowels)
        return kSyllable + ((first - kLead) * kVowels + (second - kVowel)) * kTrails;
    if (first - kSyllable < kSyllables && (first - kSyllable) % kTrails == 0 && second - kTrail - 1 < kTrails - 1)
        return first + (second - kTrail);
    const std::uint64_t key = std::uint64_t{first} << kCodeBits | second;
    std::size_t begin = 0, count = t.compositions.size();
    while (count > 0) {
        const std::size_t half = count / 2;
        const std::size_t index = t.compositions[begin + half];
        if (index >= t.decompositions.size()) return kNone;
        const std::uint64_t entry = t.decompositions[index];
        const std::uint64_t pair = std::uint64_t{first_of(entry)} << kCodeBits | second_of(entry);
        if (pair == key) return (entry & kComposes) ? code_of(entry) : kNone;
        if (pair < key) {
            begin += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return kNone;
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

    /// Reads one character and pushes what it decomposes to, last part first.
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
        while (n_ < kMaxDepth) {
            const std::uint64_t entry = find_decomposition(*tables_, code);
            if (entry == 0) break;
            if (second_of(entry)) codes_[n_++] = second_of(entry);
            code = first_of(entry);
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
    Composer(const Tables& tables, std::span<char> out) noexcept : tables_(tables), out_(out) {}

    /// A run of characters from which nothing reaches out: it starts and ends where NFC has a boundary.
    void segment(std::string_view text) noexcept {
        std::uint32_t starter = kNone;
        Decomposed d(tables_, text);
        while (starter != kNone || !d.done()) {
            const Marks marks = skip_marks(d);
            const std::uint32_t merged = order_marks(starter, marks, false);
            const std::uint32_t next = d.done() ? kNone : d.code();
            if (next != kNone) d.next();
            const bool touching = marks_left_ == 0 && merged != kNone && next != kNone;
            const std::uint32_t joined = touching ? compose(tables_, merged, next) : kNone;
            if (joined != kNone) {
                starter = joined;
                continue;
            }
            if (merged != kNone) put(merged);
            order_marks(starter, marks, true);
            starter = next;
        }
    }

    void copy(std::string_view text) noexcept {
        if (text.size() > out_.size() - n_) {
            overflow_ = true;
            return;
        }
        for (const char c : text) out_[n_++] = c;
    }

    [[nodiscard]] bool overflow() const noexcept { return overflow_; }
    [[nodiscard]] std::size_t written() const noexcept { return n_; }

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
            const std::uint8_t c = tables_.combining_class(d.code());
            if (c == 0) break;
            marks.classes[c / 64] |= std::uint64_t{1} << c % 64;
            ++marks.n;
        }
        return marks;
    }

    /// Goes through the marks in canonical order, a pass for each class there is (a sort would need memory): those that
    /// compose with `starter` do, the others are left, and written if `write`. Returns what the starter became.
    std::uint32_t order_marks(std::uint32_t starter, const Marks& marks, bool write) noexcept {
        marks_left_ = 0;
        std::uint32_t last_left = 0;
        for (std::uint32_t c = 1; c < 256 && marks.n; ++c) {
            if (!(marks.classes[c / 64] >> c % 64 & 1)) continue;
            Decomposed d = marks.begin;
            for (std::size_t i = 0; i < marks.n; ++i, d.next()) {
                if (tables_.combining_class(d.code()) != c) continue;
                const bool blocked = starter == kNone || last_left == c;
                const std::uint32_t joined = blocked ? kNone : compose(tables_, starter, d.code());
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

    void put(std::uint32_t code) noexcept {
        char bytes[4];
        copy({bytes, put_character(is_character(code) ? code : 0xfffd, bytes)});
    }

    const Tables& tables_;
    std::span<char> out_;
    std::size_t n_ = 0;
    std::size_t marks_left_ = 0;
    bool overflow_ = false;
};

bool is_plain(const Character& c) noexcept { return c.code == kNotACharacter || c.code < kFirstLively; }

}  // namespace

bool nfc(const Tables& tables, std::string_view text, std::span<char> out, std::size_t& n) noexcept {
    Composer composer(tables, out);
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
    n = composer.written();
    return !composer.overflow();
}

}  // namespace fovea
