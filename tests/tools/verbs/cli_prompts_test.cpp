// Prompts of sentence-transformers: kept by convert, put before texts by encode; ids and vectors are that library's own.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "host/model/texts.h"
#include "tests/support/command_line.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

const fs::path kGolden = FOVEA_GOLDEN_DIR;

/// A copy of the golden encoder with those prompts, or others.
struct Prompted {
    TemporaryFolder folder;
    fs::path source = folder / "m";
    std::string model = (folder / "m.fovea").string();

    Prompted() {
        fs::copy(kGolden / "encoders/bert_sentence", source, fs::copy_options::recursive);
        fs::copy(kGolden / "prompts/config_sentence_transformers.json", source);
    }
    [[nodiscard]] std::string refused(const char* field, const json& value) const {
        edit_json(source / "config_sentence_transformers.json", [&](auto& fields) { fields[field] = value; });
        return refusal_of([&] { convert_source({.source = source, .output = model}); });
    }
};

Prompts kept(const Prompted& files) {
    const host::Opened opened = open_path(files.model);
    return prompts_of(opened.model, opened.name);
}

std::vector<std::string> lines_of(const fs::path& path) {
    std::istringstream file(read_text(path));
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
}

TEST_CASE("prompts: ids and vectors are those of sentence-transformers, for each name, without one, and with none") {
    const Prompted files;
    convert_source({.source = files.source, .output = files.model});
    const host::Opened opened = open_path(files.model);
    const fs::path texts_path = kGolden / "encoders/bert_sentence/texts.txt";
    const std::vector<std::string> texts = lines_of(texts_path);
    const json expected = json::parse(read_text(kGolden / "prompts/expected.json"));
    CHECK(expected.size() == 6);
    CHECK(prompts_of(opened.model, opened.name).texts.size() == 4);
    for (const auto& entry : expected.items()) {
        const std::string& way = entry.key();
        const json& want = entry.value();
        CAPTURE(way);
        std::optional<std::string> name;
        if (way != "default") name = way == "nothing" ? "" : way;
        const std::string before = prompt_before(prompts_of(opened.model, opened.name), name);
        std::vector<std::string> command{"encode",   files.model, "--texts",
                                         texts_path, "-o",        (files.folder / "out.npy").string()};
        if (name) command.insert(command.end(), {"--prompt-name", *name});
        (void)output_of(command);
        const NpyArray got = read_npy((files.folder / "out.npy").string());
        REQUIRE(got.shape.size() == 2);
        REQUIRE(got.shape[0] == texts.size());
        const auto* values = reinterpret_cast<const float*>(got.data.data());
        for (std::size_t i = 0; i < texts.size(); ++i) {
            CAPTURE(i);
            CHECK(tokens_of(opened, {before + texts[i], {}}).ids == want["ids"][i].get<std::vector<Token>>());
            for (std::size_t k = 0; k < got.shape[1]; ++k)
                CHECK(std::abs(values[i * got.shape[1] + k] - want["vectors"][i][k].get<float>()) < 1e-5f);
        }
    }
}

TEST_CASE("prompts: a name that there is not lists those there are") {
    const Prompted files;
    convert_source({.source = files.source, .output = files.model});
    const std::vector<std::string> command{"encode", files.model, "-p", "lamp", "--json"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), command.begin(), command.end());
        return run_fovea(more);
    };
    CHECK(contains(with({"--prompt-name", "nobody"}).err,
                   "expected one of Instruct, document, empty, query, got nobody"));
    CHECK(with({"--prompt-name", "query"}).status == 0);
    const Ran ids = run_fovea({"encode", files.model, "--tokens", "2,40,3", "--prompt-name", "query", "--json"});
    CHECK(ids.status == 2);
    fs::remove(files.source / "config_sentence_transformers.json");
    convert_source({.source = files.source, .output = files.model});
    CHECK(contains(with({"--prompt-name", "query"}).err, "the model has no prompts, got query"));
    CHECK(with({}).status == 0);
}

TEST_CASE("prompts: what sentence-transformers would not take is refused by its field") {
    const Prompted files;
    CHECK(contains(files.refused("default_prompt_name", "nobody"),
                   "config_sentence_transformers.json: default_prompt_name: expected one of the prompts' names"));
    CHECK(contains(files.refused("default_prompt_name", 3), "default_prompt_name"));
    CHECK(files.refused("default_prompt_name", nullptr).empty());
    CHECK(kept(files).chosen.empty());
    CHECK(contains(files.refused("prompts", json{{"query", 3}}), "prompts: query: expected a text"));
    CHECK(contains(files.refused("prompts", json::array({"query"})), "prompts: expected an object"));
    CHECK(contains(files.refused("prompts", json{{"query", std::string(70000, 'a')}}), "at most 65536 bytes"));
    CHECK(files.refused("prompts", json::object()).empty());
    CHECK(files.refused("prompts", json{{"query", "lamp "}}).empty());
    CHECK(contains(files.refused("similarity_fn_name", "likeness"),
                   "similarity_fn_name: expected cosine, dot, euclidean or manhattan"));
    CHECK(contains(files.refused("truncate_dim", 0), "truncate_dim"));
    CHECK(contains(files.refused("model_type", "SparseEncoder"), "model_type: expected SentenceTransformer"));
    CHECK(Prompted().refused("model_type", "SentenceTransformer").empty());
}

TEST_CASE("prompts: settings of pooling, width and cutting give sentence-transformers' vectors") {
    const std::vector<std::string> texts = lines_of(kGolden / "encoders/bert_sentence/texts.txt");
    const json cases = json::parse(read_text(kGolden / "prompts/settings.json"));
    CHECK(cases.size() == 10);
    for (const json& one : cases) {
        CAPTURE(one["files"].dump());
        const Prompted files;
        for (const auto& [name, fields] : one["files"].items()) {
            const fs::path path = files.source / name;
            json whole = fs::exists(path) && !name.starts_with("1_") ? json::parse(read_text(path)) : json::object();
            whole.update(fields);
            write_text(path, whole.dump());
        }
        convert_source({.source = files.source, .output = files.model});
        const host::Opened opened = open_path(files.model);
        const std::vector<float> got = host::embed(opened, texts, {.n_threads = 1, .prompt = "query"});
        const std::size_t width = opened.vector_width();
        CHECK(width == one["vectors"][0].size());
        for (std::size_t i = 0; i < got.size(); ++i)
            CHECK(std::abs(got[i] - one["vectors"][i / width][i % width].get<float>()) < 1e-5f);
    }
}

}  // namespace
}  // namespace fovea::testing
