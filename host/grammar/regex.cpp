#include "host/grammar/regex.h"

#include <algorithm>

#include "host/base/ascii.h"
#include "host/grammar/source_text.h"

namespace fovea::grammar {
namespace {

const CodeSet kDigits{{'0', '9'}};
const CodeSet kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CodeSet kSpaces{{'\t', '\r'}, {' ', ' '}};
const CodeSet kAnySpaces{{'\t', '\r'},     {0x1c, ' '},      {0x85, 0x85},     {0xa0, 0xa0},
                         {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                         {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
const CodeSet kLineEnds{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

[[nodiscard]] std::uint64_t times(std::uint64_t length, std::uint32_t n) {
    if (length == 0 || n == 0) return 0;
    return length == kNoLimit || n == kNoLimit ? kNoLimit : std::min<std::uint64_t>(length * n, kNoLimit - 1);
}
[[nodiscard]] std::uint64_t sum_of_repeats(std::uint64_t a, std::uint64_t b) {
    return a == kNoLimit || b == kNoLimit ? kNoLimit : std::min<std::uint64_t>(a + b, kNoLimit - 1);
}

/// Characters of a class. Dialects differ beyond ASCII: ECMA's \w is ASCII, Python's and Rust's has the letters of all
/// scripts. So a class has two sets: the characters that every dialect has in it, and those that some dialect has.
struct Characters {
    CodeSet sure, perhaps;
};
[[nodiscard]] Characters exactly(CodeSet set) { return {set, set}; }
[[nodiscard]] Characters without(const Characters& set) { return {complement(set.perhaps), complement(set.sure)}; }
[[nodiscard]] Characters class_of(char lower) {
    if (lower == 'd') return exactly(kDigits);
    if (lower == 's') return {kSpaces, kAnySpaces};
    return {kWord, normalize({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}, {0x80, kLastCode}})};
}

/// Escapes, and classes in brackets.
class ClassReader {
public:
    explicit ClassReader(SourceText& text) : text_(text) {}

    Characters escape(bool in_set) {
        text_.skip(1);
        const char c = text_.peek();
        const auto one = [](std::uint32_t code) { return exactly({{code, code}}); };
        constexpr std::string_view kRefused = "123456789pPkAZzGcbB";  // the last two only outside of sets
        if (kRefused.substr(0, kRefused.size() - (in_set ? 2 : 0)).find(c) != kRefused.npos)
            text_.fail("an escape of one character or \\d, \\w, \\s, \\D, \\W, \\S");
        const std::uint32_t code = text_.character();
        switch (code) {
            case 'd':
            case 'w':
            case 's': return class_of(c);
            case 'D':
            case 'W':
            case 'S': return without(class_of(to_lower(c)));
            case 'x': return one(text_.hex(2));
            case 'u': return one(unit_or_pair());
            default: break;
        }
        static constexpr std::string_view kLetters = "tnrfvb0", kMeanings("\t\n\r\f\v\b\0", 7);
        if (const std::size_t i = kLetters.find(c); i != kLetters.npos)
            return one(static_cast<std::uint32_t>(kMeanings[i]));
        if (is_letter(c)) text_.fail("an escape that is known");
        return one(code);
    }

    Characters bracket() {
        text_.skip(1);
        const bool negated = text_.take("^");
        Characters set;
        std::string classes;  // d, D, w, W, s, S
        const auto item = [&]() -> Characters {
            if (text_.peek() == '\\') {
                if (std::string_view("dDwWsS").find(text_.peek(1)) != std::string_view::npos) classes += text_.peek(1);
                return escape(true);
            }
            const std::uint32_t code = text_.character();
            return exactly({{code, code}});
        };
        const auto is_one = [](const Characters& c) { return c.sure.size() == 1 && c.sure[0].low == c.sure[0].high; };
        for (bool first = true; first || text_.peek() != ']'; first = false) {
            if (first && text_.peek() == ']' && !negated) text_.fail("a character in [ ]");
            if (first && text_.peek() == ']') break;
            if (names_class()) text_.fail("\\d, \\w, \\s or a-z in [ ], which has no [:names:]");
            Characters low = item();
            if (text_.peek() == '-' && text_.peek(1) != ']' && is_one(low)) {
                text_.skip(1);
                const Characters high = item();
                if (!is_one(high) || high.sure[0].low < low.sure[0].low) text_.fail("a range from low to high");
                low = exactly({{low.sure[0].low, high.sure[0].low}});
            }
            set.sure.insert(set.sure.end(), low.sure.begin(), low.sure.end());
            set.perhaps.insert(set.perhaps.end(), low.perhaps.begin(), low.perhaps.end());
        }
        text_.expect("]");
        for (const char name : {'d', 'w', 's'})  // a dialect has in one what the other lacks
            if (classes.find(name) != classes.npos && classes.find(to_upper(name)) != classes.npos)
                set = exactly(complement({}));
        set = {normalize(std::move(set.sure)), normalize(std::move(set.perhaps))};
        return negated ? without(set) : set;
    }

private:
    /// Four digits; a high surrogate stands with its low one for a character, as in JavaScript.
    std::uint32_t unit_or_pair() {
        const std::uint32_t first = text_.hex(4);
        if (first < 0xd800 || first > 0xdfff) return first;
        if (first < 0xdc00 && text_.take("\\u"))
            if (const std::uint32_t second = text_.hex(4); second >= 0xdc00 && second <= 0xdfff)
                return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        text_.fail("\\u of a character, or of both its surrogates");
    }

    /// Whether [:name:] stands here.
    bool names_class() {
        if (text_.peek() != '[' || text_.peek(1) != ':') return false;
        std::size_t n = 2;
        while (is_lower(text_.peek(n))) ++n;
        return n > 2 && text_.peek(n) == ':' && text_.peek(n + 1) == ']';
    }

    SourceText& text_;
};

/// An end of a sequence: whether any text may stand beyond it, and whether an anchor may say that none does.
struct End {
    bool open = false, anchors = false;
};

class RegexReader {
public:
    RegexReader(Grammar& grammar, std::string_view pattern, const std::string& name, const WriteSet& write, bool search,
                Dialects dialects = Dialects::all)
        : grammar_(grammar), text_(pattern, name), write_(write), search_(search), dialects_(dialects) {}

    /// Whether (?= or (?! was met: what is read is right if sets are written as they are.
    [[nodiscard]] bool looks_ahead() const { return looks_ahead_; }

    RegexPart read() {
        RegexPart part = alternatives(0, {.open = search_, .anchors = true}, {.open = search_, .anchors = true});
        if (!text_.done()) text_.fail("the end of the expression");
        return part;
    }

private:
    RegexPart one_of(const Characters& characters) {
        const CodeSet& set = dialects_ == Dialects::all ? characters.sure : characters.perhaps;
        return {.node = write_(set), .min_length = 1, .max_length = 1, .fixed_length = 1};
    }

    RegexPart alternatives(std::uint32_t depth, End left, End right) {
        if (depth > kMostNesting) text_.fail("at most " + std::to_string(kMostNesting) + " groups within groups");
        std::vector<NodeId> all;
        RegexPart out{.min_length = kNoLimit};
        do {
            const RegexPart part = sequence(depth, left, right);
            out.min_length = std::min(out.min_length, part.min_length);
            out.max_length = std::max(out.max_length, part.max_length);
            out.fixed_length = std::max(out.fixed_length, part.fixed_length);
            out.repeats.insert(out.repeats.end(), part.repeats.begin(), part.repeats.end());
            all.push_back(part.node);
            out.one_way = all.size() == 1 && part.one_way;
        } while (text_.take("|"));
        out.node = grammar_.choice(std::move(all));
        return out;
    }

    RegexPart sequence(std::uint32_t depth, End left, End right) {
        std::vector<NodeId> nodes;
        std::vector<std::pair<std::size_t, Language>> ahead;  // where it looks, and what it sees there
        RegexPart out;
        const auto append = [&](const RegexPart& part) {
            nodes.push_back(part.node);
            out.min_length = sum_of_repeats(out.min_length, part.min_length);
            out.max_length = sum_of_repeats(out.max_length, part.max_length);
            out.fixed_length = sum_of_repeats(out.fixed_length, part.fixed_length);
            out.repeats.insert(out.repeats.end(), part.repeats.begin(), part.repeats.end());
            out.one_way = out.one_way && part.one_way;
        };
        const bool starts = text_.peek() == '^';
        if (starts && !left.anchors) text_.fail("^ at the expression's start alone");
        if (starts) text_.skip(1);
        left.open = left.open && !starts;
        const auto begin = [&] {
            if (left.open) append(anything());
            left = {};
        };
        while (!text_.done() && text_.peek() != '|' && text_.peek() != ')') {
            if (text_.peek() == '$') {
                if (!right.anchors || !ends_sequence(1)) text_.fail("$ at the expression's end alone");
                text_.skip(1);
                right.open = false;
                if (dialects_ == Dialects::any) append({.node = grammar_.optional(write_({{'\n', '\n'}}))});
                break;
            }
            if (depth == 0 && (text_.starts_with("(?=") || text_.starts_with("(?!"))) {
                begin();
                ahead.emplace_back(nodes.size(), look_ahead());
                continue;
            }
            const Anchors group = anchors_in_group();
            const bool at_left = group.left && left.anchors, at_right = group.right && right.anchors;
            if (!at_left) begin();
            append(quantified(atom(depth, at_left ? left : End{}, at_right ? right : End{})));
            left = {};
            if (at_right) right.open = false;
        }
        begin();
        if (right.open) append(anything());
        for (; !ahead.empty(); ahead.pop_back()) {
            const auto& [first, seen] = ahead.back();
            const auto from = nodes.begin() + static_cast<std::ptrdiff_t>(first);
            const Language rest = Language::of(grammar_, grammar_.sequence({from, nodes.end()}));
            nodes.erase(from, nodes.end());
            nodes.push_back((rest & seen).write(grammar_, write_));
            out = {};  // lengths are asked of the language
        }
        out.node = grammar_.sequence(std::move(nodes));
        return out;
    }

    /// Whether a sequence ends so many bytes on.
    [[nodiscard]] bool ends_sequence(std::size_t ahead) const {
        const char c = text_.peek(ahead);
        return c == '\0' || c == '|' || c == ')';
    }

    /// Whether the group that begins here, if one does, has anchors that say something of its sequence's ends.
    struct Anchors {
        bool left = false, right = false;
    };
    [[nodiscard]] Anchors anchors_in_group() const {
        Anchors out;
        std::size_t i = 0;
        std::uint32_t depth = 0;
        do {
            const char c = text_.peek(i);
            depth += c == '(';
            depth -= c == ')';
            out.left = out.left || c == '^';
            out.right = out.right || c == '$';
            if (c == '\0' || depth == 0) break;
            if (c == '[')
                for (i += text_.peek(i + 1) == '^' ? 2 : 1; text_.peek(i) != ']' && text_.peek(i) != '\0'; ++i)
                    i += text_.peek(i) == '\\';
            i += c == '\\' ? 2 : 1;
        } while (true);
        const char next = text_.peek(i + 1);
        const bool repeats = next == '*' || next == '+' || next == '?' || next == '{';
        if (text_.peek() != '(' || text_.peek(i) != ')' || repeats) return {};
        out.right = out.right && ends_sequence(i + 1);
        return out;
    }

    /// The texts that may follow what stands before (?=here) or (?!here).
    Language look_ahead() {
        looks_ahead_ = true;
        text_.skip(2);
        const bool wanted = text_.peek() == '=';
        text_.skip(1);
        std::vector<NodeId> ways;
        do {
            std::vector<NodeId> nodes;
            if (text_.peek() == '^') text_.fail("^ at the expression's start alone");
            while (!text_.done() && text_.peek() != '|' && text_.peek() != ')' && text_.peek() != '$')
                nodes.push_back(quantified(atom(1)).node);
            if (!text_.take("$")) nodes.push_back(anything().node);
            ways.push_back(grammar_.sequence(std::move(nodes)));
        } while (text_.take("|"));
        text_.expect(")");
        const Language seen = Language::of(grammar_, grammar_.choice(std::move(ways)));
        return wanted ? seen : Language::all() - seen;
    }

    RegexPart anything() {
        const NodeId any = write_(complement({}));
        return one_repeat(grammar_.repeat(any, 0, kNoLimit), 0, kNoLimit);
    }

    static RegexPart one_repeat(NodeId node, std::uint32_t min, std::uint32_t max) {
        return {.node = node, .min_length = min, .max_length = max, .repeats = {node}, .fixed_length = min};
    }

    /// {2}, {2,} or {2,5}; false, and nothing is read, if it is none.
    bool read_counts(std::uint32_t& min, std::uint32_t& max) {
        const std::size_t start = text_.place();
        text_.skip(1);
        if (is_digit(text_.peek())) {
            min = max = text_.number();
            if (text_.take(",")) max = text_.peek() == '}' ? kNoLimit : text_.number();
            if (text_.take("}")) {
                if (max < min) text_.fail("no fewer repetitions at most than at least");
                return true;
            }
        }
        text_.go_back(start);
        return false;
    }

    RegexPart quantified(const RegexPart& part) {
        std::uint32_t min = 0, max = kNoLimit;
        const char c = text_.peek();
        if (c == '*' || c == '+' || c == '?') {
            text_.skip(1);
            min = c == '+';
            if (c == '?') max = 1;
        } else if (c != '{' || !read_counts(min, max)) {
            return part;
        }
        if (min > kMostRepeats) text_.fail("at most " + std::to_string(kMostRepeats) + " repetitions");
        if (max != kNoLimit && dialects_ == Dialects::all) max = std::min(max, kMostRepeats);
        if (text_.take("?")) {  // which match is tried first changes no language
        } else if (text_.peek() == '+') {
            text_.fail("a greedy or lazy repetition");
        }
        const std::size_t end = text_.place();
        std::uint32_t least, most;
        if (text_.peek() == '*' || text_.peek() == '+' || text_.peek() == '?' ||
            (text_.peek() == '{' && read_counts(least, most))) {
            text_.go_back(end);
            text_.fail("one repetition");
        }
        const NodeId node = grammar_.repeat(part.node, min, max);
        if (part.min_length == 1 && part.max_length == 1) return one_repeat(node, min, max);
        RegexPart out{.node = node,
                      .min_length = times(part.min_length, min),
                      .max_length = times(part.max_length, max),
                      .fixed_length = times(part.max_length, max)};
        out.one_way = min == 1 && max == 1 && part.one_way;
        if (max == 1) out.repeats = part.repeats, out.fixed_length = part.fixed_length;
        return out;
    }

    /// The ends are those of its sequence where it is a group that speaks of them.
    RegexPart atom(std::uint32_t depth, End left = {}, End right = {}) {
        const char c = text_.peek();
        if (c == '(') return group(depth, left, right);
        if (c == '[') return one_of(classes_.bracket());
        if (c == '*' || c == '+' || c == '?') text_.fail("something to repeat");
        if (text_.take(".")) return one_of({complement(kLineEnds), complement({{'\n', '\n'}})});
        if (c == '\\') return one_of(classes_.escape(false));
        if (c == '^') text_.fail("^ at the expression's start alone");
        const std::uint32_t code = text_.character();
        return one_of(exactly({{code, code}}));
    }

    RegexPart group(std::uint32_t depth, End left, End right) {
        text_.skip(1);
        if (text_.take("?")) {
            if (text_.take("P<") || (text_.peek() == '<' && text_.peek(1) != '=' && text_.peek(1) != '!')) {
                while (!text_.take(">")) (void)text_.character();
            } else if (!text_.take(":")) {
                text_.fail("(?: or (?<name>");
            }
        }
        RegexPart part = alternatives(depth + 1, left, right);
        text_.expect(")");
        return part;
    }

    Grammar& grammar_;
    SourceText text_;
    ClassReader classes_{text_};
    const WriteSet& write_;
    bool search_, looks_ahead_ = false;
    Dialects dialects_;
};

Language language_of(std::string_view pattern, const std::string& name, bool search, Dialects dialects) {
    Grammar grammar;
    const WriteSet write = [&](const CodeSet& set) { return grammar.set(set); };
    return Language::of(grammar, RegexReader(grammar, pattern, name, write, search, dialects).read().node);
}

}  // namespace

RegexPart add_regex(Grammar& grammar, std::string_view pattern, const std::string& name, const WriteSet& write,
                    bool search) {
    RegexReader reader(grammar, pattern, name, write, search);
    RegexPart part = reader.read();
    if (reader.looks_ahead()) {
        const Language language = language_of(pattern, name, search, Dialects::all);
        part = {.node = language.write(grammar, write), .max_length = kNoLimit, .fixed_length = kNoLimit};
    }
    return part;
}

Language language_of_regex(std::string_view pattern, Dialects dialects) {
    return language_of(pattern, "", true, dialects);
}

Grammar read_regex(std::string_view pattern) {
    Grammar grammar;
    const WriteSet write = [&](const CodeSet& set) { return grammar.set(set); };
    const RegexPart part = add_regex(grammar, pattern, "regular expression", write, false);
    grammar.root = grammar.add_rule("root", part.node);
    return grammar;
}

}  // namespace fovea::grammar
