// No verb writes over what it reads: each output of each verb, named as each of its inputs.
#include <doctest/doctest.h>

#include <set>
#include <sstream>

#include "host/base/arrays.h"
#include "tests/support/command_line.h"

namespace fovea::testing {
namespace {

/// A verb's options that name files; "" is what is given without an option.
struct NamedFiles {
    std::string verb;
    std::vector<std::string> inputs, outputs;
};

const std::vector<NamedFiles>& all_named_files() {
    static const std::vector<NamedFiles> all = {
        {"run",
         {"", "--file", "--json-schema", "--grammar", "--draft", "--lora", "--batch"},
         {"--session", "--weights", "--picture", "--output"}},
        {"chat", {"", "--template", "--tools", "--lora"}, {"--session"}},
        {"convert", {"", "--tokenizer", "--config", "--lora", "--base", "--calibrate"}, {"--output"}},
        {"inspect", {""}, {}},
        {"plan", {"", "--form"}, {"--picture"}},
        {"logits", {"", "--lora"}, {"--output", "--weights", "--picture"}},
        {"attend",
         {"", "--query", "--key", "--value", "--attn-mask", "--keep-mask", "--key-padding-mask", "--past-key",
          "--past-value", "--kv-lengths"},
         {"--output", "--weights", "--picture"}},
        {"encode",
         {"", "--texts", "--source", "--target", "--memory", "--source-mask", "--target-mask", "--memory-mask",
          "--source-padding-mask", "--target-padding-mask", "--memory-padding-mask"},
         {"--output", "--weights", "--picture"}},
        {"classify", {"", "--texts"}, {}},
        {"transcribe", {""}, {"--output"}},
        {"tokenize", {"", "--file", "--jsonl"}, {}},
        {"bench", {""}, {}},
        {"certify", {""}, {}},
        {"eval", {"", "--text", "--against"}, {}},
        {"embed", {""}, {"--output"}},
        {"grammar", {"", "--json-schema", "--grammar"}, {"--output"}},
        {"serve", {"", "--models", "--api-key-file", "--lora"}, {"--log"}}};
    return all;
}

/// The long names of a verb's options that take a file or a folder, as its help shows them.
std::set<std::string> file_options(const std::string& verb) {
    std::istringstream help(output_of({verb, "--help"}));
    std::set<std::string> names;
    for (std::string line; std::getline(help, line);) {
        std::istringstream words(line);
        std::string name, kind;
        if (!(words >> name >> kind) || !name.starts_with('-')) continue;
        if (kind.starts_with("FILE") || kind.starts_with("PATH") || kind.starts_with("FOLDER"))
            names.insert(name.substr(name.rfind(',') + 1));
    }
    return names;
}

/// The verbs that `fovea --help` lists, indented and below their heading.
std::set<std::string> listed_verbs() {
    const std::string help = output_of({"--help"});
    std::istringstream lines(help.substr(help.find("Subcommands:")));
    std::set<std::string> verbs;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string verb;
        if (line.starts_with("  ") && words >> verb) verbs.insert(verb);
    }
    return verbs;
}

std::vector<std::string> command(const NamedFiles& files, const std::string& input, const std::string& path) {
    std::vector<std::string> arguments{files.verb};
    if (!input.empty()) arguments.push_back(input);
    arguments.push_back(path);
    return arguments;
}

constexpr const char* kRefusal = ": expected another file than what is read\n";

TEST_CASE("overwriting: the table has every verb, and every option that names a file") {
    std::set<std::string> verbs;
    for (const NamedFiles& files : all_named_files()) {
        CAPTURE(files.verb);
        verbs.insert(files.verb);
        std::set<std::string> named;
        for (const auto* list : {&files.inputs, &files.outputs})
            for (const std::string& name : *list)
                if (!name.empty()) named.insert(name);
        CHECK(file_options(files.verb) == named);
    }
    CHECK(verbs == listed_verbs());
}

TEST_CASE("overwriting: no output is an input, by its name, a hard link or a symbolic one") {
    const TemporaryFolder folder;
    const std::string path = (folder / "input").string(), hard = (folder / "hard").string(),
                      symbolic = (folder / "symbolic").string(), kept = "somebody's work";
    write_text(path, kept);
    fs::create_hard_link(path, hard);
    fs::create_symlink(path, symbolic);
    for (const NamedFiles& files : all_named_files())
        for (const std::string& input : files.inputs)
            for (const std::string& output : files.outputs)
                for (const std::string& name : {path, hard, symbolic}) {
                    std::vector<std::string> arguments = command(files, input, path);
                    arguments.insert(arguments.end(), {output, name});
                    check_refused(arguments, 1, name + kRefusal);
                    CHECK(read_text(path) == kept);
                }
    CHECK(folder.n_files() == 3);
}

TEST_CASE("overwriting: two outputs are two files, whether they are there or not") {
    const TemporaryFolder folder;
    const std::string path = (folder / "result").string(), other = (folder.path() / "." / "result").string(),
                      link = (folder / "link").string();
    fs::create_symlink("result", link);
    const fs::path before = fs::current_path();
    fs::current_path(folder.path());  // where it has a name without a folder
    for (const bool is_there : {false, true}) {
        if (is_there) write_text(path, "older");
        for (const NamedFiles& files : all_named_files())
            for (const std::string& first : files.outputs)
                for (const std::string& second : files.outputs)
                    for (const std::string& name : {other, link, std::string("result")})
                        if (first != second)
                            check_refused({files.verb, first, path, second, name}, 1,
                                          "expected a file for each result, got one for two\n");
    }
    fs::current_path(before);
    CHECK(read_text(path) == "older");
    CHECK(folder.n_files() == 2);
}

TEST_CASE("overwriting: what is read without an option of its own is kept, too") {
    const DemoFile demo;
    const TemporaryFolder folder;
    const std::string ids = (folder / "ids.npy").string(), text = (folder / "text.npy").string();
    write_npy(ids, std::vector<std::uint64_t>{2}, std::vector<float>{1, 2});
    write_text(text, "turn on the light");
    const std::string ids_before = read_text(ids), text_before = read_text(text);
    check_refused({"logits", demo.path, "--tokens", ids, "-o", ids}, 1, ids + kRefusal);
    check_refused({"logits", demo.path, "--tokens", ids, "--weights", ids}, 1, ids + kRefusal);
    for (const char* output : {"--session", "--weights"})
        check_refused({"run", demo.path, "-p", "@" + text, output, text}, 1, text + kRefusal);
    RunSettings from_file;
    from_file.input = open(text.c_str(), O_RDONLY);
    check_refused({"run", demo.path, "-p", "-", "--session", text}, 1, text + kRefusal, from_file);
    close(from_file.input);
    CHECK(read_text(ids) == ids_before);
    CHECK(read_text(text) == text_before);
}

TEST_CASE("overwriting: a model's folder keeps its files, and results may lie there") {
    const TemporaryFolder folder;
    RunSettings cached;
    cached.environment = {"XDG_CACHE_HOME=" + folder.path().string()};
    const fs::path model = folder / "model";
    fs::copy(fs::path(FOVEA_GOLDEN_DIR) / "families/llama", model);
    for (const fs::path& source : {model, model / "model.safetensors"})
        for (const char* name : {"config.json", "model.safetensors"}) {
            const std::string before = read_text(model / name);
            check_refused({"logits", source, "--tokens", "1,2", "-o", model / name}, 1, kRefusal, cached);
            CHECK(read_text(model / name) == before);
        }
    fs::create_directory(folder / "models");
    const fs::path served = folder / "models/lamp.fovea";
    write_text(served, "somebody's work");
    check_refused({"serve", "--models", folder / "models", "--port", "0", "--log", served}, 1, kRefusal);
    CHECK(read_text(served) == "somebody's work");
    for (int i = 0; i < 2; ++i) {
        const Ran ran = run_fovea({"logits", model, "--tokens", "1,2", "-o", model / "logits.npy"}, cached);
        CAPTURE(ran.err);
        CHECK(ran.status == 0);
    }
}

TEST_CASE("overwriting: a conversation is not saved onto what it came from") {
    const DemoFile demo;
    const std::string before = read_text(demo.path), lines = (demo.folder / "lines").string();
    write_text(lines, "/save " + demo.path + "\n");
    RunSettings settings;
    settings.input = open(lines.c_str(), O_RDONLY);
    CHECK(run_fovea({"chat", demo.path}, settings).status == 1);
    close(settings.input);
    CHECK(read_text(demo.path) == before);
}

}  // namespace
}  // namespace fovea::testing
