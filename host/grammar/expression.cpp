#include "host/grammar/expression.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fovea::grammar {

namespace {
constexpr std::uint32_t kFirstSurrogate = 0xd800, kLastSurrogate = 0xdfff;
}

CodeSet normalize(CodeSet set) {
    std::sort(set.begin(), set.end(), [](const CodeRange& a, const CodeRange& b) { return a.low < b.low; });
    CodeSet joined;
    for (const CodeRange& range : set) {
        if (!joined.empty() && range.low <= std::uint64_t{joined.back().high} + 1)
            joined.back().high = std::max(joined.back().high, range.high);
        else
            joined.push_back(range);
    }
    CodeSet out;
    for (CodeRange range : joined) {
        range.high = std::min(range.high, kLastCode);
        if (range.low < kFirstSurrogate && range.high >= kFirstSurrogate) {
            out.push_back({range.low, kFirstSurrogate - 1});
            range.low = kLastSurrogate + 1;
        } else if (range.low >= kFirstSurrogate && range.low <= kLastSurrogate) {
            range.low = kLastSurrogate + 1;
        }
        if (range.low <= range.high) out.push_back(range);
    }
    return out;
}

CodeSet complement(const CodeSet& set) {
    CodeSet out;
    std::uint32_t next = 0;
    for (const CodeRange& range : set) {
        if (range.low > next) out.push_back({next, range.low - 1});
        next = range.high + 1;
    }
    if (next <= kLastCode) out.push_back({next, kLastCode});
    return normalize(std::move(out));
}

CodeSet intersect(const CodeSet& a, const CodeSet& b) {
    CodeSet out;
    for (const CodeRange& x : a)
        for (const CodeRange& y : b)
            if (x.low <= y.high && y.low <= x.high) out.push_back({std::max(x.low, y.low), std::min(x.high, y.high)});
    return normalize(std::move(out));
}

NodeId Grammar::add(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<NodeId>(nodes.size() - 1);
}

NodeId Grammar::bytes(std::string_view text) { return add({.kind = NodeKind::bytes, .text = std::string(text)}); }
NodeId Grammar::set(CodeSet set) { return add({.kind = NodeKind::set, .set = normalize(std::move(set))}); }
NodeId Grammar::sequence(std::vector<NodeId> children) {
    if (children.size() == 1) return children[0];
    return add({.kind = NodeKind::sequence, .children = std::move(children)});
}
NodeId Grammar::choice(std::vector<NodeId> children) {
    if (children.size() == 1) return children[0];
    return add({.kind = NodeKind::choice, .children = std::move(children)});
}
NodeId Grammar::repeat(NodeId child, std::uint32_t min, std::uint32_t max) {
    return add({.kind = NodeKind::repeat, .children = {child}, .min = min, .max = max});
}
NodeId Grammar::list(std::vector<NodeId> items, std::string kinds, NodeId separator) {
    items.push_back(separator);
    return add({.kind = NodeKind::list, .text = std::move(kinds), .children = std::move(items)});
}
NodeId Grammar::other(RuleId rule, std::vector<std::string> texts, NodeId same) {
    others.push_back(std::move(texts));
    const auto list = static_cast<std::uint32_t>(others.size() - 1);
    return add({.kind = NodeKind::rule, .children = {same}, .min = list, .rule = rule, .item = Item::other});
}
NodeId Grammar::graph(Graph graph) {
    std::vector<NodeId> labels;
    for (const GraphEdge& edge : graph.edges) labels.push_back(edge.label);
    graphs.push_back(std::move(graph));
    return add(
        {.kind = NodeKind::graph, .children = std::move(labels), .rule = static_cast<RuleId>(graphs.size() - 1)});
}
NodeId Grammar::shared(NodeId node, const char* name) {
    const NodeKind kind = nodes[node].kind;
    if (kind == NodeKind::bytes || kind == NodeKind::set || kind == NodeKind::rule) return node;
    return rule(add_rule(name, node));
}
RuleId Grammar::add_all(Grammar other) {
    const auto n_nodes = static_cast<NodeId>(nodes.size());
    const auto n_rules = static_cast<RuleId>(rules.size()), n_graphs = static_cast<RuleId>(graphs.size());
    const auto n_others = static_cast<std::uint32_t>(others.size());
    for (Node& node : other.nodes) {
        for (NodeId& child : node.children) child += n_nodes;
        node.rule += node.kind == NodeKind::graph ? n_graphs : n_rules;
        if (node.item == Item::other) node.min += n_others;
        nodes.push_back(std::move(node));
    }
    for (Graph& graph : other.graphs) {
        for (GraphEdge& edge : graph.edges) edge.label += n_nodes;
        graphs.push_back(std::move(graph));
    }
    std::move(other.others.begin(), other.others.end(), std::back_inserter(others));
    for (Rule& rule : other.rules) {
        rule.body += n_nodes;
        rules.push_back(std::move(rule));
    }
    return other.root + n_rules;
}
NodeId Grammar::rule(RuleId rule, Item item) { return add({.kind = NodeKind::rule, .rule = rule, .item = item}); }

}  // namespace fovea::grammar
