// Rerankers in the form of Qwen3-Reranker: ids and logits of pairs are the model card's, whatever kind of source says so.
#include <doctest/doctest.h>

#include <cmath>

#include "host/model/texts.h"
#include "tests/support/command_line.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

const fs::path kRerankers = fs::path(FOVEA_GOLDEN_DIR) / "rerankers";

/// A copy of a golden folder, changed before it is converted.
class Reranker {
public:
    explicit Reranker(const char* name, const std::function<void(const fs::path&)>& change = {}, bool option = false) {
        const fs::path source = folder_ / "m";
        fs::copy(kRerankers / name, source, fs::copy_options::recursive);
        if (change) change(source);
        options.source = fs::exists(source / "model.gguf") ? source / "model.gguf" : source;
        options.output = folder_ / "m.fovea";
        options.type = Type::f32;
        options.reranker = option;
    }
    [[nodiscard]] host::Opened opened() const {
        convert_source(options);
        return open_path(options.output.string());
    }
    ConvertOptions options;

private:
    TemporaryFolder folder_;
};

json expected() { return json::parse(read_text(kRerankers / "causal/expected.json")); }

/// Without what sentence-transformers adds: the folder that Qwen published first.
void strip(const fs::path& folder) {
    for (const char* name : {"modules.json", "1_LogitScore", "config_sentence_transformers.json",
                             "sentence_bert_config.json", "chat_template.jinja"})
        fs::remove_all(folder / name);
}

void check_pairs(const host::Opened& opened) {
    CHECK(opened.scores_pairs());
    const json cases = expected();
    std::vector<Text> pairs;
    for (const json& one : cases) {
        pairs.push_back({one["query"], one["document"].get<std::string>()});
        const TextTokens tokens = tokens_of(opened, pairs.back());
        CHECK(tokens.ids == one["ids"].get<std::vector<Token>>());
        CHECK(tokens.is_cut() == (&one == &cases.back()));
    }
    const auto results = host::classify(opened, head_of(opened), pairs, {.n_threads = 1});
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const double want = cases[i]["logit"];
        CHECK(std::abs(results[i].labels.at(0).logit - want) < 1e-4 * 4);  // the largest is 3.9
        CHECK(std::abs(results[i].labels.at(0).score - 1 / (1 + std::exp(-want))) < 1e-4);
    }
}

TEST_CASE("a causal reranker: modules, a class of its own, GGUF, and a folder that says nothing with --reranker") {
    check_pairs(Reranker("causal").opened());
    check_pairs(Reranker("causal_classes").opened());
    check_pairs(Reranker("causal_gguf").opened());
    check_pairs(Reranker("causal", strip, true).opened());
    check_pairs(Reranker("causal_classes", strip, true).opened());
}

TEST_CASE("cli: classify scores pairs as the model card of a causal reranker does") {
    const Reranker model("causal");
    convert_source(model.options);
    const fs::path lines = model.options.output.parent_path() / "pairs.jsonl";
    std::string text;
    for (const json& one : expected()) text += json{{"text", one["query"]}, {"pair", one["document"]}}.dump() + "\n";
    write_text(lines, text);
    std::istringstream out(output_of({"classify", model.options.output.string(), "--texts", lines.string(), "--json"}));
    for (const json& one : expected()) {
        std::string line;
        REQUIRE(std::getline(out, line));
        CHECK(std::abs(json::parse(line)["labels"][0]["logit"].get<double>() - one["logit"].get<double>()) < 4e-4);
    }
}

TEST_CASE(
    "a causal reranker: a prompt that is used unasked is the instruction; one token's logit alone may be the score") {
    const Reranker model("causal", [](const fs::path& folder) {
        edit_json(folder / "config_sentence_transformers.json", [](json& fields) {
            fields["prompts"] = {{"web", "Find {answers}."}};
            fields["default_prompt_name"] = "web";
        });
        edit_json(folder / "1_LogitScore/config.json", [](json& fields) { fields["false_token_id"] = nullptr; });
    });
    const host::Opened opened = model.opened();
    CHECK(contains(std::string(find_info(opened.model, "pair_template")),
                   "<Instruct>: Find {answers}.\n<Query>: {query}\n"));
    const host::Opened whole = Reranker("causal").opened();
    std::vector<Text> pairs{{"explain gravity", "It pulls."}};
    const double yes = host::classify(opened, head_of(opened), pairs)[0].labels[0].logit,
                 less_no = host::classify(whole, head_of(whole), pairs)[0].labels[0].logit;
    CHECK(yes != less_no);
}

TEST_CASE("a causal reranker: special tokens in a document stay text, and a long query is refused") {
    const host::Opened opened = Reranker("causal").opened();
    const auto n_special = [&](const std::string& document, bool parse) {
        const TextTokens tokens = tokens_of(opened, {"q", document}, {.parse_special = parse});
        return std::count_if(tokens.ids.begin(), tokens.ids.end(),
                             [&](Token id) { return opened.tokenizer.is_special(id); });
    };
    const auto n_own = n_special("yes", false);
    CHECK(n_own == 5);
    CHECK(n_special("yes<|im_end|>no", false) == n_own);
    CHECK(n_special("yes<|im_end|>no", true) == n_own + 1);
    std::string query;
    for (int i = 0; i < 200; ++i) query += "why ";
    CHECK(contains(refusal_of([&] {
                       (void)tokens_of(opened, {query, "yes"});
                   }),
                   "query: expected one that leaves room for a document in 150 tokens"));
}

TEST_CASE("a causal reranker: what makes no score is refused by its name") {
    const auto refused = [](const char* name, const std::function<void(const fs::path&)>& change, bool option = false) {
        return refusal_of([&] { (void)Reranker(name, change, option).opened(); });
    };
    const auto edit = [](const char* file, const std::function<void(json&)>& change) {
        return [=](const fs::path& folder) { edit_json(folder / file, change); };
    };
    CHECK(contains(refused("causal", edit("1_LogitScore/config.json", [](json& f) { f["true_token_id"] = 9999; })),
                   "vocab_size: expected more than 9999"));
    CHECK(contains(refused("causal", edit("modules.json", [](json& f) { f.push_back(f[0]); })),
                   "or a Transformer and a LogitScore or"));
    CHECK(contains(refused("causal",
                           [](const fs::path& folder) {
                               write_text(folder / "chat_template.jinja", "{{ messages[0].content }}");
                           }),
                   "chat_template: expected one that shows messages of the roles query and document"));
    CHECK(contains(refused("causal_gguf", {}, true), "--reranker: expected a Hugging Face source"));
}

}  // namespace
}  // namespace fovea::testing
