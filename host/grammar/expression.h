// The first form of every grammar: rules of expressions over characters.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::grammar {

/// Characters from low to high, both included.
struct CodeRange {
    std::uint32_t low = 0, high = 0;
    bool operator==(const CodeRange&) const = default;
};
using CodeSet = std::vector<CodeRange>;  ///< ascending, apart, without surrogates: what normalize gives

inline constexpr std::uint32_t kLastCode = 0x10ffff;

[[nodiscard]] CodeSet normalize(CodeSet set);
[[nodiscard]] CodeSet complement(const CodeSet& set);
[[nodiscard]] CodeSet intersect(const CodeSet& a, const CodeSet& b);

using NodeId = std::uint32_t;
using RuleId = std::uint32_t;
inline constexpr std::uint32_t kNoLimit = 0xffffffffu;
inline constexpr std::uint32_t kMostRepeats = 65534;  ///< of a repetition that has a limit

enum class NodeKind : std::uint8_t {
    bytes,     ///< `text`, which may be empty
    set,       ///< one character of `set`
    sequence,  ///< `children`, one after the other
    choice,    ///< one of `children`; of none: nothing fits
    repeat,    ///< children[0], `min` to `max` times
    rule,      ///< what rule `rule` stands for; with `item`, what tells an item of a list from others
    list,  ///< the present ones of the other children, in their order, with the last child between any two; `text` has a ListItem of each
    graph,  ///< a way through graph `rule` from its first state to one that accepts; children are the labels of its edges
};

/// A rule whose text differs from those of a list's items before: all since the first one. The rule is never empty.
enum class Item : std::uint8_t { none, first, further };

enum ListItem : char { kOptional = '?', kRequired = '!', kAnyNumber = '*' };

struct Node {
    NodeKind kind = NodeKind::bytes;
    std::string text = {};
    CodeSet set = {};
    std::vector<NodeId> children = {};
    std::uint32_t min = 0, max = 0;
    RuleId rule = 0;
    Item item = Item::none;
};

struct Rule {
    std::string name;
    NodeId body = 0;
    bool shared = false;  ///< stays a rule of its own, however small
};

/// What may be read from state to state; `accepts` of the first is true if the whole may be empty.
struct GraphEdge {
    std::uint32_t from = 0, to = 0;
    NodeId label = 0;
};
struct Graph {
    std::vector<bool> accepts;  // by state
    std::vector<GraphEdge> edges;
};

/// Nodes are made before those that hold them, so a body has no cycles but through rules.
struct Grammar {
    std::vector<Node> nodes;
    std::vector<Rule> rules;
    std::vector<Graph> graphs;
    RuleId root = 0;

    [[nodiscard]] NodeId bytes(std::string_view text);
    [[nodiscard]] NodeId set(CodeSet set);
    [[nodiscard]] NodeId sequence(std::vector<NodeId> children);
    [[nodiscard]] NodeId choice(std::vector<NodeId> children);
    [[nodiscard]] NodeId repeat(NodeId child, std::uint32_t min, std::uint32_t max);
    [[nodiscard]] NodeId optional(NodeId child) { return repeat(child, 0, 1); }
    [[nodiscard]] NodeId rule(RuleId rule, Item item = Item::none);
    [[nodiscard]] NodeId graph(Graph graph);
    [[nodiscard]] NodeId list(std::vector<NodeId> items, std::string kinds, NodeId separator);
    /// A node that several others will hold: it becomes a rule, unless it is as small as one. Else each holder would
    /// have a copy.
    [[nodiscard]] NodeId shared(NodeId node, const char* name);
    [[nodiscard]] RuleId add_rule(std::string name, NodeId body = 0) {
        rules.push_back({std::move(name), body, false});
        return static_cast<RuleId>(rules.size() - 1);
    }
    /// The rules of another grammar join these. What its root is here.
    [[nodiscard]] RuleId add_all(Grammar other);

private:
    [[nodiscard]] NodeId add(Node node);
};

}  // namespace fovea::grammar
