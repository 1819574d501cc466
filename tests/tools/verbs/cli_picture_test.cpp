// --picture beside every verb that attends: what is drawn, of which layers, with whose labels.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "fovea/host/opened.h"
#include "host/base/arrays.h"
#include "tests/support/command_line.h"
#include "tools/options/opened.h"
#include "tools/show/arrays.h"

namespace fovea::testing {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++n;
    return n;
}

nlohmann::json data_of(const std::string& page) {
    const std::size_t at = page.find("const data=") + 11;
    return nlohmann::json::parse(page.substr(at, page.find(";\n", at) - at));
}

struct Pictures {
    TemporaryFolder folder;
    std::string path(const char* name) const { return (folder / name).string(); }
};

TEST_CASE("cli: run draws prompt and answer: one layer, all layers, or into the terminal, beside --weights") {
    const Pictures files;
    const std::string svg = files.path("a.svg"), html = files.path("a.html"), w = files.path("w.npy");
    const host::Opened demo = open_path_or_demo("");
    const Config& config = demo.model.config();
    const std::uint32_t n_heads = config.decoder.block(1).attention.n_heads, n_layers = config.decoder.n_layers;
    const std::vector<std::string> run = {"run", "-p", "lights off", "-n", "5"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), run.begin(), run.end());
        return output_of(more);
    };
    const std::string plain = output_of(run);
    CHECK(with({"--picture", svg, "--layer", "1", "--weights", w, "--per-head"}) == plain);
    const FloatArray weights = read_floats(w);
    const std::size_t n = weights.shape[1];
    CHECK(weights.shape == std::vector<std::uint64_t>{n_heads, n, n});
    const std::string drawn = read_text(svg);
    CHECK(count(drawn, ">layer 1<") == 1);
    CHECK(count(drawn, ">head ") == n_heads);
    CHECK(count(drawn, "text-anchor=\"end\">") == n_heads * n);

    CHECK(with({"--picture", html, "--layer", "1"}) == plain);
    const auto data = data_of(read_text(html));
    REQUIRE(data["patterns"].size() == n_layers);
    CHECK(data["first"] == 1);
    CHECK(data["patterns"][1]["title"] == "layer 1");
    CHECK(data["tokens"].size() == 1);
    const auto& labels = data["tokens"][0]["queries"];
    REQUIRE(labels.size() == n);
    CHECK(contains(labels.dump(), "lights"));
    CHECK(contains(labels.dump(), "<0A>"));  // what ends a command

    const std::string shaded = with({"--picture", "-", "--layer", "1"});
    CHECK(shaded.starts_with(plain + "layer 1\nhead 0\n"));
    CHECK(count(shaded, "\nhead ") == n_heads);
}

TEST_CASE("cli: logits labels what no tokenizer names by numbers, and draws each sequence") {
    const Pictures files;
    const std::string svg = files.path("a.svg");
    const DemoFile demo;
    CHECK(output_of({"logits", demo.path, "-p", "lights on", "--picture", svg}) == "");
    CHECK(count(read_text(svg), ">layer 0<") == 1);
    CHECK(output_of({"logits", demo.path, "-p", "lights on", "--picture", svg, "--top", "1"}) != "");
}

TEST_CASE("cli: attend draws positions, one panel a head, a pattern for each sequence") {
    const Pictures files;
    const std::string x = files.path("x.npy"), svg = files.path("a.svg"), html = files.path("a.html");
    std::vector<float> data(2 * 6 * 12);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 7);
    write_npy(x, std::vector<std::uint64_t>{2, 6, 12}, data);
    CHECK(output_of({"attend", "--query", x, "--n-heads", "3", "--causal", "--picture", svg}) == "");
    CHECK(count(read_text(svg), ">attention, sequence ") == 2);
    CHECK(count(read_text(svg), ">head ") == 6);
    CHECK(output_of({"attend", "--query", x, "--n-heads", "3", "--causal", "--picture", html}) == "");
    const auto page = data_of(read_text(html));
    CHECK(page["patterns"].size() == 2);
    CHECK(page["tokens"][0]["keys"] == nlohmann::json({"0", "1", "2", "3", "4", "5"}));
}

TEST_CASE("cli: encode draws every attention of a model, of texts as long as they are") {
    const Pictures files;
    const std::string m = files.path("m.fovea"), html = files.path("a.html"), svg = files.path("a.svg");
    output_of({"convert", FOVEA_GOLDEN_DIR "/encoders/bert_sentence", "-o", m});
    const std::string texts = FOVEA_GOLDEN_DIR "/encoders/bert_sentence/texts.txt";
    CHECK(output_of({"encode", m, "--texts", texts, "--picture", html}) == "");
    const auto page = data_of(read_text(html));
    CHECK(page["patterns"].size() == 12);  // 6 texts, 2 layers
    CHECK(page["patterns"][7]["title"] == "layer 1, sequence 1");
    const auto tokens = page["tokens"][page["patterns"][0]["tokens"].get<std::size_t>()]["queries"];
    CHECK(tokens[0] == "[CLS]");
    CHECK(tokens.size() < page["tokens"][4]["queries"].size());
    CHECK(output_of({"encode", m, "-p", "The lamp is on.", "--layer", "1", "--picture", svg}) == "");
    CHECK(count(read_text(svg), ">layer 1<") == 1);
    CHECK(count(read_text(svg), ">[CLS]<") == 6);  // queries and keys of 3 heads
}

TEST_CASE("cli: plan draws the arena") {
    const Pictures files;
    const std::string svg = files.path("a.svg");
    const std::string plain = output_of({"plan", "--preset", "smollm2-135m"});
    CHECK(output_of({"plan", "--preset", "smollm2-135m", "--picture", svg}) == plain);
    CHECK(contains(read_text(svg), ">keys<"));
    CHECK(contains(output_of({"plan", "--preset", "smollm2-135m", "--picture", "-"}), "\u2588"));
}

TEST_CASE("cli: pictures that cannot be drawn are refused in one line") {
    const Pictures files;
    const std::string svg = files.path("a.svg");
    check_refused({"run", "-p", "x", "--picture", "a.png"}, 2, "expected a name that ends in .svg or .html, or -");
    check_refused({"attend", "--query", "x.npy", "--picture", "svg"}, 2, "got svg");
    check_refused({"plan", "--preset", "smollm2-135m", "--picture", "a.pdf"}, 2, "got a.pdf");
    check_refused({"run", "-p", "x", "--picture", "-", "--json"}, 2, "expected a file beside --json");
    check_refused({"run", "-p", "x", "--picture", svg, "--layer", "99"}, 1, "--layer: expected at most");
    check_refused({"run", "-p", "x", "--picture", svg, "--per-head"}, 2, "--per-head: expected --weights");
    check_refused({"run", "-p", "x", "--layer", "1"}, 2, "expected --weights or --picture");
    check_refused({"run", "--picture", svg}, 2, "expected -p TEXT with them");
    const Ran ran = run_fovea({"run", "-p", "x", "-n", "1", "--picture", files.path("none/a.svg")});
    CHECK(ran.status == 1);
    CHECK(contains(ran.err, "cannot be written"));
}

}  // namespace
}  // namespace fovea::testing
