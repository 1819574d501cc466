// Grammars as llama.cpp has them: rules of literals, character classes, groups, alternatives and repetitions.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "host/base/ascii.h"
#include "host/grammar/source_text.h"

namespace fovea::grammar {
namespace {

constexpr std::size_t kMostRules = 20000;

[[nodiscard]] bool is_name(char c) { return is_letter_or_digit(c) || c == '-' || c == '_'; }

class GbnfReader {
public:
    explicit GbnfReader(std::string_view text) : text_(text, "grammar") {}

    Grammar read() {
        skip_space(true);
        while (!text_.done()) read_rule();
        const auto root = ids_.find("root");
        if (root == ids_.end() || !defined_[root->second])
            throw GrammarError("grammar: expected a rule root, got none");
        for (RuleId r = 0; r < defined_.size(); ++r)
            if (!defined_[r])
                throw GrammarError("grammar: expected a rule " + grammar_.rules[r].name + ", which is used, got none");
        grammar_.root = root->second;
        return std::move(grammar_);
    }

private:
    RuleId id_of(const std::string& name) {
        const auto [place, made] = ids_.try_emplace(name, static_cast<RuleId>(grammar_.rules.size()));
        if (made) {
            if (grammar_.rules.size() == kMostRules) text_.fail("at most " + std::to_string(kMostRules) + " rules");
            (void)grammar_.add_rule(name);
            defined_.push_back(false);
        }
        return place->second;
    }

    /// Blanks and comments; with `lines` line ends too.
    void skip_space(bool lines) {
        for (;;) {
            const char c = text_.peek();
            if (c == '#') {
                while (!text_.done() && text_.peek() != '\n' && text_.peek() != '\r') text_.skip(1);
            } else if (!text_.done() && (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))) {
                text_.skip(1);
            } else {
                return;
            }
        }
    }

    std::string name() {
        std::string name;
        while (is_name(text_.peek())) {
            name += text_.peek();
            text_.skip(1);
        }
        if (name.empty()) text_.fail("a rule's name");
        return name;
    }

    void read_rule() {
        const std::size_t start = text_.place();
        const RuleId id = id_of(name());
        skip_space(false);
        text_.expect("::=");
        if (defined_[id]) {
            text_.go_back(start);
            text_.fail("each rule once");
        }
        defined_[id] = true;
        skip_space(true);
        const NodeId body = alternatives(0);
        grammar_.rules[id].body = body;
        if (!text_.done() && text_.peek() != '\n' && text_.peek() != '\r') text_.fail("the rule's end");
        skip_space(true);
    }

    /// Whether the next line goes on with an alternative.
    bool next_line_goes_on() {
        const std::size_t start = text_.place();
        skip_space(true);
        if (text_.peek() == '|') return true;
        text_.go_back(start);
        return false;
    }

    NodeId alternatives(std::uint32_t depth) {
        if (depth > kMostNesting) text_.fail("at most " + std::to_string(kMostNesting) + " groups within groups");
        std::vector<NodeId> all{sequence(depth)};
        while (text_.peek() == '|' || (depth == 0 && next_line_goes_on())) {
            text_.skip(1);
            skip_space(true);
            all.push_back(sequence(depth));
        }
        return grammar_.choice(std::move(all));
    }

    NodeId sequence(std::uint32_t depth) {
        std::vector<NodeId> nodes;
        for (std::optional<NodeId> node; (node = item(depth));) {
            skip_space(depth > 0);
            nodes.push_back(repeated(*node, depth));
        }
        return grammar_.sequence(std::move(nodes));
    }

    std::optional<NodeId> item(std::uint32_t depth) {
        const char c = text_.peek();
        if (c == '"') return literal();
        if (c == '[') return grammar_.set(bracket());
        if (c == '(') {
            text_.skip(1);
            skip_space(true);
            const NodeId node = alternatives(depth + 1);
            text_.expect(")");
            return node;
        }
        if (c == '.') {
            text_.skip(1);
            return grammar_.set(complement({}));
        }
        if (c == '<' || c == '!')
            text_.fail("a literal, a class, a group or a rule (tokens as such are not supported)");
        if (is_name(c)) return grammar_.rule(id_of(name()));
        return std::nullopt;
    }

    NodeId repeated(NodeId node, std::uint32_t depth) {
        for (;; skip_space(depth > 0)) {
            const char c = text_.peek();
            if (c != '*' && c != '+' && c != '?' && c != '{') return node;
            text_.skip(1);
            std::uint32_t min = c == '+', max = c == '?' ? 1 : kNoLimit;
            if (c == '{') {
                skip_space(depth > 0);
                min = max = text_.peek() == ',' ? 0 : text_.number();
                skip_space(depth > 0);
                if (text_.take(",")) {
                    skip_space(depth > 0);
                    max = text_.peek() == '}' ? kNoLimit : text_.number();
                    skip_space(depth > 0);
                }
                if (max < min) text_.fail("no fewer repetitions at most than at least");
                text_.expect("}");
            }
            node = grammar_.repeat(node, min, max);
        }
    }

    std::uint32_t character() {
        if (text_.peek() != '\\') return text_.character();
        text_.skip(1);
        const char c = text_.peek();
        const std::uint32_t code = text_.character();
        switch (code) {
            case 'n': return '\n';
            case 't': return '\t';
            case 'r': return '\r';
            case 'x': return text_.hex(2);
            case 'u': return text_.hex(4);
            case 'U': return text_.hex(8);
            default: break;
        }
        if (is_letter_or_digit(c)) text_.fail("an escape that is known");
        return code;
    }
    std::uint32_t scalar() {
        const std::uint32_t code = character();
        if (code > kLastCode || (code >= 0xd800 && code < 0xe000)) text_.fail("a Unicode character before this");
        return code;
    }

    NodeId literal() {
        text_.skip(1);
        std::string bytes;
        while (text_.peek() != '"') {
            char utf8[4];
            bytes.append(utf8, put_character(scalar(), utf8));
        }
        text_.skip(1);
        return grammar_.bytes(bytes);
    }

    CodeSet bracket() {
        text_.skip(1);
        const bool negated = text_.take("^");
        CodeSet set;
        while (text_.peek() != ']') {
            CodeRange range{scalar(), 0};
            range.high = range.low;
            if (text_.peek() == '-' && text_.peek(1) != ']') {
                text_.skip(1);
                range.high = scalar();
                if (range.high < range.low) text_.fail("a range from low to high before this");
            }
            set.push_back(range);
        }
        text_.skip(1);
        set = normalize(std::move(set));
        return negated ? complement(set) : set;
    }

    Grammar grammar_;
    SourceText text_;
    std::unordered_map<std::string, RuleId> ids_;
    std::vector<bool> defined_;
};

/// Whether a grammar is written as Lark has it: "start: a | b", "%import common.WORD". Rules of GBNF have "::=".
bool is_lark(std::string_view text) {
    if (text.find("::=") != text.npos) return false;
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t")));
        if (line.starts_with("%")) return true;
        const auto is_of_name = [](char c) { return is_name(c) || c == '.'; };
        const std::size_t begin = std::min(line.find_first_not_of("?!"), line.size());
        const auto end = std::find_if_not(line.begin() + static_cast<std::ptrdiff_t>(begin), line.end(), is_of_name);
        const std::size_t colon = line.find_first_not_of(" \t", static_cast<std::size_t>(end - line.begin()));
        if (end != line.begin() + static_cast<std::ptrdiff_t>(begin) && colon != line.npos && line[colon] == ':')
            return true;
    }
    return false;
}

}  // namespace

Grammar read_gbnf(std::string_view text) {
    if (is_lark(text))
        throw GrammarError(
            "grammar: expected a GBNF grammar (root ::= ...), a regex or a JSON schema, got a Lark grammar");
    return GbnfReader(text).read();
}

}  // namespace fovea::grammar
