#include <algorithm>
#include <limits>
#include <memory>

#include "convert/tokenizers/pattern.h"
#include "engine/format/utf8.h"

namespace fovea {
namespace {

constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max(), kMostRepeats = 1000;
constexpr std::size_t kMostNodes = 20000;
constexpr int kMostDepth = 64;

/// A pattern as a tree.
struct PatternPart {
    enum class Kind { set, sequence, choice, repeat, look };
    Kind kind = Kind::sequence;
    CodeSet set;                        // set, look
    bool at_end = false;                // look
    std::uint32_t least = 0, most = 0;  // repeat
    bool lazy = false;
    std::vector<PatternPart> parts;
};

PatternPart part_of(PatternPart::Kind kind) {
    PatternPart part;
    part.kind = kind;
    return part;
}
PatternPart part_of(CodeSet set) {
    PatternPart part = part_of(PatternPart::Kind::set);
    part.set = std::move(set);
    return part;
}

class Parser {
public:
    Parser(std::string_view text, const RefusePattern& refuse) : rest_(text), refuse_(refuse) {}

    PatternPart run() {
        PatternPart part = choice();
        if (!rest_.empty()) refuse_("a pattern with \")\" only after its \"(\"");
        return part;
    }

private:
    [[nodiscard]] bool take(std::string_view word) {
        if (!rest_.starts_with(word)) return false;
        rest_.remove_prefix(word.size());
        return true;
    }
    std::uint32_t take_character() {
        if (rest_.empty()) refuse_("a pattern that goes on after " + std::string("\"[\", \"(\" or \"\\\""));
        const Character c = first_character(rest_);
        if (c.code == kNotACharacter) refuse_("a pattern in UTF-8");
        rest_.remove_prefix(c.bytes);
        return c.code;
    }

    PatternPart choice() {
        if (++depth_ > kMostDepth) refuse_("a pattern with fewer groups in groups");
        PatternPart result = part_of(PatternPart::Kind::choice);
        do result.parts.push_back(sequence());
        while (take("|"));
        --depth_;
        return result.parts.size() == 1 ? std::move(result.parts[0]) : result;
    }

    PatternPart sequence() {
        PatternPart result;
        while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')') result.parts.push_back(repeated(atom()));
        return result.parts.size() == 1 ? std::move(result.parts[0]) : result;
    }

    PatternPart repeated(PatternPart part) {
        PatternPart result = part_of(PatternPart::Kind::repeat);
        bool braces = false;
        if (take("?"))
            result.least = 0, result.most = 1;
        else if (take("*"))
            result.least = 0, result.most = kNoLimit;
        else if (take("+"))
            result.least = 1, result.most = kNoLimit;
        else if (rest_.starts_with("{"))
            braces = true, take_counts(result);
        else
            return part;
        if (part.kind == PatternPart::Kind::look) refuse_("no repeated lookahead");
        if (!braces && take("?")) result.lazy = true;
        if (rest_.starts_with("+") || rest_.starts_with("*") || rest_.starts_with("?"))
            refuse_("no possessive repetition, nor one of another");
        result.parts.push_back(std::move(part));
        return result;
    }

    void take_counts(PatternPart& part) {
        static_cast<void>(take("{"));
        const auto number = [&](std::uint32_t otherwise) {
            if (rest_.empty() || rest_[0] < '0' || rest_[0] > '9') return otherwise;
            std::uint32_t n = 0;
            for (; !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; rest_.remove_prefix(1))
                n = std::min(n * 10 + static_cast<std::uint32_t>(rest_[0] - '0'), kMostRepeats + 1);
            return n;
        };
        part.least = number(0);
        part.most = take(",") ? number(kNoLimit) : part.least;
        const bool sound = part.least <= kMostRepeats && part.most >= std::max(part.least, 1u) &&
                           (part.most <= kMostRepeats || part.most == kNoLimit);
        if (!take("}") || !sound) refuse_("numbers of repetitions up to 1000, as {2,5}");
    }

    PatternPart atom() {
        if (take("(")) return group();
        if (take("[")) return part_of(char_class());
        if (take("$")) {  // in these patterns a line's end, not the text's alone
            PatternPart part = part_of(PatternPart::Kind::look);
            part.set = CodeSet('\n', '\n');
            part.at_end = true;
            return part;
        }
        if (take(".")) return part_of(CodeSet('\n', '\n').inverse());
        if (rest_[0] == '^' || rest_[0] == '*' || rest_[0] == '+' || rest_[0] == '?' || rest_[0] == '{')
            refuse_("no \"" + std::string(rest_.substr(0, 1)) + "\" there");
        if (take("\\")) return part_of(escape());
        const std::uint32_t code = take_character();
        return part_of(folded(CodeSet(code, code)));
    }

    PatternPart group() {
        const bool looks = take("?="), looks_not = !looks && take("?!"), folds = folds_;
        if (!looks && !looks_not && take("?i:"))
            folds_ = true;
        else if (!looks && !looks_not && !take("?:") && rest_.starts_with("?"))
            refuse_("groups \"(\", \"(?:\", \"(?i:\", \"(?=\" and \"(?!\"");
        PatternPart inner = choice();
        folds_ = folds;
        if (!take(")")) refuse_("a pattern with \")\" after each \"(\"");
        if (!looks && !looks_not) return inner;
        PatternPart part = part_of(PatternPart::Kind::look);
        part.set = one_of(inner);
        if (looks_not) part.set = part.set.inverse();
        part.at_end = looks_not;
        return part;
    }

    /// The characters that `part` is one of.
    CodeSet one_of(const PatternPart& part) const {
        if (part.kind == PatternPart::Kind::set) return part.set;
        if (part.kind != PatternPart::Kind::choice) refuse_("a lookahead of one character");
        CodeSet all;
        for (const PatternPart& other : part.parts) all |= one_of(other);
        return all;
    }

    /// After "[". Inside, only what follows has a meaning: ], [, ^ first, - between two, && and \.
    CodeSet char_class() {
        if (++depth_ > kMostDepth) refuse_("a pattern with fewer classes in classes");
        const bool excludes = take("^");
        CodeSet all, current;
        bool intersects = false;
        const auto close = [&] {
            all = intersects ? all & current : current;
            current = {};
        };
        while (!take("]")) {
            if (take("&&")) {
                close();
                intersects = true;
            } else if (rest_.starts_with("[:")) {
                refuse_("no [: :] class");
            } else if (take("[")) {
                current |= char_class();
            } else {
                current |= class_item();
            }
        }
        close();
        --depth_;
        return excludes ? all.inverse() : all;
    }

    CodeSet class_item() {
        std::uint32_t first = 0;
        if (take("\\")) {
            const CodeSet set = escape();
            const auto& stretches = set.stretches();
            if (stretches.size() != 1 || stretches[0].second != stretches[0].first + 1) return set;
            first = stretches[0].first;
        } else {
            first = take_character();
        }
        std::uint32_t last = first;
        if (rest_.starts_with("-") && !rest_.starts_with("-]") && !rest_.starts_with("-&&")) {
            static_cast<void>(take("-"));
            if (take("\\")) {
                const CodeSet set = escape();
                if (set.stretches().size() != 1) refuse_("a character after \"-\"");
                last = set.stretches()[0].first;
            } else {
                last = take_character();
            }
            if (last < first) refuse_("ranges of characters that ascend");
        }
        return folded(CodeSet(first, last));
    }

    /// After "\".
    CodeSet escape() {
        const std::uint32_t c = take_character();
        static constexpr std::pair<char, char> kControls[] = {{'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'f', '\f'},
                                                              {'v', '\v'}, {'a', '\a'}, {'e', 0x1b}};
        for (const auto& [name, code] : kControls)
            if (c == static_cast<std::uint32_t>(name))
                return {static_cast<std::uint32_t>(code), static_cast<std::uint32_t>(code)};
        if (c == 's') return class_set(kSpace);
        if (c == 'S') return class_set(kSpace).inverse();
        if (c == 'd') return *property_set("Nd");
        if (c == 'D') return property_set("Nd")->inverse();
        if (c == 'p' || c == 'P') return property(c == 'P');
        if (c == 'x' || c == 'u') return hexadecimal(c == 'u');
        const bool is_word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 128;
        if (is_word) refuse_("no \"\\" + std::string(1, c < 128 ? static_cast<char>(c) : '?') + "\"");
        return {c, c};
    }

    CodeSet property(bool excludes) {
        if (!take("{")) refuse_("a name in braces after \\p");
        if (take("^")) excludes = !excludes;
        const std::size_t end = rest_.find('}');
        const auto set = end == std::string_view::npos ? std::nullopt : property_set(rest_.substr(0, end));
        if (!set) refuse_("a general category, or Han, after \\p");
        rest_.remove_prefix(end + 1);
        return excludes ? set->inverse() : *set;
    }

    CodeSet hexadecimal(bool four) {
        const bool braces = !four && take("{");
        std::uint32_t code = 0;
        std::size_t n = 0;
        const std::size_t most = braces ? 6 : four ? 4 : 2;
        for (; n < most && !rest_.empty(); ++n, rest_.remove_prefix(1)) {
            const auto digit =
                std::string_view("0123456789abcdef").find(static_cast<char>(rest_[0] | (rest_[0] >= 'A' ? 32 : 0)));
            if (digit == std::string_view::npos) break;
            code = code * 16 + static_cast<std::uint32_t>(digit);
        }
        if (n == 0 || (!braces && n < most) || (braces && !take("}")) || code >= kCodeEnd)
            refuse_("a character's number in hexadecimal");
        return {code, code};
    }

    /// In a "(?i:" group, letters stand for both cases; beside ASCII's, two other characters fold to them.
    CodeSet folded(CodeSet set) const {
        if (!folds_) return set;
        CodeSet all = set;
        for (const auto& [first, end] : set.stretches())
            for (std::uint32_t code = first; code < end; ++code) {
                if (code >= 128) refuse_("ASCII alone in \"(?i:\"");
                const std::uint32_t lower = code | 32;
                if (lower < 'a' || lower > 'z') continue;
                all |= CodeSet(lower, lower);
                all |= CodeSet(lower - 32, lower - 32);
                if (lower == 's') all |= CodeSet(0x17f, 0x17f);
                if (lower == 'k') all |= CodeSet(0x212a, 0x212a);
            }
        return all;
    }

    std::string_view rest_;
    const RefusePattern& refuse_;
    bool folds_ = false;
    int depth_ = 0;
};

/// Nodes from the last to the first: each knows what follows it.
class Emitter {
public:
    explicit Emitter(const RefusePattern& refuse) : refuse_(refuse) {}

    PatternNodes run(const PatternPart& part) {
        const std::uint32_t end = add({PatternNode::Kind::match, 0, false, 0, 0});
        result_.start = emit(part, end);
        return std::move(result_);
    }

private:
    std::uint32_t add(const PatternNode& node) {
        if (result_.nodes.size() >= kMostNodes) refuse_("a pattern with fewer repetitions");
        result_.nodes.push_back(node);
        return static_cast<std::uint32_t>(result_.nodes.size() - 1);
    }

    std::uint32_t emit(const PatternPart& part, std::uint32_t next) {
        switch (part.kind) {
            case PatternPart::Kind::set:
                return add({PatternNode::Kind::take, index_in(result_.sets, part.set), false, next, 0});
            case PatternPart::Kind::look:
                return add({PatternNode::Kind::look, index_in(result_.sets, part.set), part.at_end, next, 0});
            case PatternPart::Kind::sequence:
                for (auto p = part.parts.rbegin(); p != part.parts.rend(); ++p) next = emit(*p, next);
                return next;
            case PatternPart::Kind::choice: {
                std::uint32_t start = emit(part.parts.back(), next);
                for (std::size_t i = part.parts.size() - 1; i-- > 0;)
                    start = fork(emit(part.parts[i], next), start, false);
                return start;
            }
            case PatternPart::Kind::repeat: return repeat(part, next);
        }
        return next;
    }

    std::uint32_t repeat(const PatternPart& part, std::uint32_t next) {
        const PatternPart& body = part.parts[0];
        std::uint32_t start = next;
        if (part.most == kNoLimit) {
            const std::uint32_t loop = fork(0, next, part.lazy);
            const std::uint32_t again = emit(body, loop);
            PatternNode& node = result_.nodes[loop];
            (part.lazy ? node.other : node.next) = again;
            start = loop;
        } else {
            for (std::uint32_t i = part.least; i < part.most; ++i) start = fork(emit(body, start), next, part.lazy);
        }
        for (std::uint32_t i = 0; i < part.least; ++i) start = emit(body, start);
        return start;
    }

    std::uint32_t fork(std::uint32_t into, std::uint32_t past, bool lazy) {
        return add({PatternNode::Kind::fork, 0, false, lazy ? past : into, lazy ? into : past});
    }

    const RefusePattern& refuse_;
    PatternNodes result_;
};

}  // namespace

PatternNodes parse_pattern(std::string_view pattern, const RefusePattern& refuse) {
    return Emitter(refuse).run(Parser(pattern, refuse).run());
}

}  // namespace fovea
