// What pictures are made of: every weight in its place, every label readable, well-formed whatever the tokens are.
#include "host/show/picture.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

using namespace fovea;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++n;
    return n;
}

/// Whether every element of an XML text is closed by its own end, with no bare "<" or "&" between.
bool well_formed(const std::string& xml) {
    std::vector<std::string> open;
    for (std::size_t at = 0; at < xml.size();) {
        if (xml[at] == '&' && xml.compare(at, 4, "&lt;") && xml.compare(at, 4, "&gt;") && xml.compare(at, 5, "&amp;") &&
            xml.compare(at, 6, "&quot;"))
            return false;
        if (xml[at] != '<') {
            ++at;
            continue;
        }
        const std::size_t end = xml.find('>', at);
        if (end == xml.npos) return false;
        const std::string tag = xml.substr(at + 1, end - at - 1);
        const std::string name = tag.substr(0, tag.find(' '));
        if (tag.find('<') != tag.npos) return false;
        if (name[0] == '/') {
            if (open.empty() || open.back() != name.substr(1)) return false;
            open.pop_back();
        } else if (tag.back() != '/') {
            open.push_back(name);
        }
        at = end + 1;
    }
    return open.empty();
}

AttentionPattern pattern_of(std::size_t n_heads, std::size_t n) {
    AttentionPattern pattern{.title = "layer <0> & more", .n_heads = n_heads};
    std::vector<float>& weights = pattern.weights;
    weights.assign(n_heads * n * n, 0.0f);
    for (std::size_t h = 0; h < n_heads; ++h)
        for (std::size_t i = 0; i < n; ++i) weights[(h * n + i) * n + (i * (h + 1)) % n] = 1.0f;
    for (std::size_t i = 0; i < n; ++i) pattern.queries.push_back(" t" + std::to_string(i));
    pattern.keys = pattern.queries;
    return pattern;
}

}  // namespace

TEST_CASE("picture: labels of tokens show every byte") {
    CHECK(token_label(" the") == "␣the");
    CHECK(token_label("\n") == "<0A>");
    CHECK(token_label("\xe4\xb8") == "<E4><B8>");
    CHECK(token_label("\xe4\xb8\xad\xe6") == "中<E6>");
    CHECK(token_label("<&\"") == "<&\"");
    CHECK(token_label("") == "");
    CHECK(text_columns("␣the") == 4);
    CHECK(text_columns("中文 가") == 7);
    CHECK(text_columns("e\xcc\x81") == 1);
    CHECK(text_columns("👍") == 2);
}

TEST_CASE("picture: an SVG is well-formed and has a panel for each head, a label for each token while there is room") {
    for (const std::size_t n : {1, 2, 7, 50, 200})
        for (const std::size_t n_heads : {1, 3, 12}) {
            CAPTURE(n);
            CAPTURE(n_heads);
            const AttentionPattern pattern = pattern_of(n_heads, n);
            const std::string svg = draw_svg({&pattern, 1});
            CHECK(well_formed(svg));
            CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 "));
            CHECK(count(svg, ">head ") == n_heads);
            CHECK(count(svg, "prefers-color-scheme:dark") == 1);
            CHECK(count(svg, "layer &lt;0&gt; &amp; more") == 1);
            // One weight of 1 in each row, so as many cells as rows, all of the same shade.
            CHECK(count(svg, "class=\"w\" fill-opacity=\"1\" d=") == n_heads);
            CHECK(count(svg, "z\"/>") == n_heads);
            CHECK(count(svg, "h-") == n_heads * n);
            const std::size_t every = n <= 50 ? 1 : 3;  // at 4 units a token and 12 a label
            CHECK(count(svg, "text-anchor=\"end\"") == n_heads * ((n + every - 1) / every));
            CHECK(count(svg, "rotate(-90") == n_heads * ((n + every - 1) / every));
        }
    AttentionPattern odd = pattern_of(1, 2);
    odd.keys = {"</text>", "\xff]]>"};
    odd.weights = {NAN, 2.0f, -1.0f, 0.5f};
    const std::string svg = draw_svg({&odd, 1});
    CHECK(well_formed(svg));
    CHECK(count(svg, "&lt;/text&gt;") == 1);
    CHECK(count(svg, "&lt;FF&gt;]]&gt;") == 1);
    CHECK(count(svg, "h-") == 2);  // NaN and what is below 0 are not drawn
}

TEST_CASE("picture: a page holds all weights and no reference") {
    AttentionPattern patterns[] = {pattern_of(2, 3), pattern_of(2, 3), pattern_of(1, 2)};
    patterns[0].queries[1] = patterns[1].queries[1] = "</script><b>";
    const std::string page = draw_html(patterns, 1);
    CHECK(count(page, "</script>") == 1);
    CHECK(count(page, "http") == 0);
    CHECK(count(page, "@media (prefers-color-scheme:dark)") == 1);
    const std::size_t at = page.find("const data=") + 11;
    const auto data = nlohmann::json::parse(page.substr(at, page.find(";\n", at) - at));
    CHECK(data["first"] == 1);
    REQUIRE(data["patterns"].size() == 3);
    CHECK(data["patterns"][0]["heads"] == 2);
    CHECK(data["tokens"].size() == 2);  // two patterns share theirs
    CHECK(data["patterns"][1]["tokens"] == 0);
    CHECK(data["patterns"][2]["tokens"] == 1);
    CHECK(data["tokens"][0]["queries"] == nlohmann::json({"␣t0", "</script><b>", "␣t2"}));
    // A digit for each of 18 weights: 1 at the diagonal of head 0; head 1 looks at 0, 2, 1, which makes a run of four zeros.
    CHECK(data["patterns"][0]["weights"] == "}000}000}}~04}0}0");
    CHECK(draw_html({}).find("\"patterns\":[]") != std::string::npos);
}

TEST_CASE("picture: lines for a terminal align whatever the tokens are") {
    AttentionPattern pattern = pattern_of(1, 3);
    pattern.queries = {" a", "中", "\xe4"};
    pattern.weights = {1.0f, 0.0f, 0.0f, 0.25f, 0.75f, 0.0f, 0.06f, 0.45f, 0.49f};
    std::istringstream lines(draw_text({&pattern, 1}));
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) all.push_back(line);
    REQUIRE(all.size() == 8);
    CHECK(all[2] == "     0 1 2 ");
    CHECK(all[3] == "  ␣a ██    ");
    CHECK(all[4] == "  中 ▒▒██  ");
    CHECK(all[5] == "<E4> ░░▓▓▓▓");
    CHECK(all[6] == "keys: 0=␣t0 1=␣t1 2=␣t2");
    for (std::size_t i = 3; i < 6; ++i) CHECK(text_columns(all[i]) == 11);
}

TEST_CASE("picture: long labels are cut at whole characters") {
    AttentionPattern pattern = pattern_of(1, 2);
    pattern.keys[0] = std::string(30, 'x');
    for (int i = 0; i < 15; ++i) pattern.keys[1] += "\u4e2d";
    const std::string svg = draw_svg({&pattern, 1});
    CHECK(count(svg, ">" + std::string(19, 'x') + "\u2026<") == 1);
    CHECK(count(svg, ">\u2423t1" + std::string("\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d") + "\u2026<") == 1);
}

TEST_CASE("picture: an arena has a row for each part, to scale") {
    Plan plan;
    plan.arena_bytes = 1000;
    plan.parts[0] = {"small", 0, 1};
    plan.parts[1] = {"keys & values", 1, 599};
    plan.parts[2] = {"rest", 600, 400};
    plan.n_parts = 3;
    const std::string svg = draw_arena("arena", plan, PictureKind::svg);
    CHECK(well_formed(svg));
    CHECK(count(svg, "class=\"w\"") == 3);
    CHECK(count(svg, ">keys &amp; values<") == 1);
    CHECK(count(svg, "> 59.9 %<") == 1);
    CHECK(count(svg, "x=\"466\" y=\"86\" width=\"224\"") == 1);  // 130 + 560 * 0.6, 560 * 0.4
    const std::string page = draw_arena("arena", plan, PictureKind::html);
    CHECK(count(page, svg) == 1);
    const std::string text = draw_arena("arena", plan, PictureKind::text);
    CHECK(count(text, "\n") == 4);
    CHECK(count(text, "\u2588") == 60);  // 36 and 24 columns of 60; the small part is a thin stroke in the first
    CHECK(count(text, "\u258f") == 1);
}
