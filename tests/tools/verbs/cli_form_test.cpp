// `run --json-schema`, `--grammar` and `--regex`, and `grammar`: answers of a form from the command line.
#include <doctest/doctest.h>

#include <regex>

#include "fovea/constraint.h"
#include "tests/support/command_line.h"
#include "tests/support/json_validator.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

const std::string kHome = FOVEA_SOURCE_DIR "/examples/home_commands.schema.json";

TEST_CASE("cli: run --json-schema leaves the built-in model's answers as they are, with the schema of its commands") {
    for (const char* prompt :
         {"turn on the lights in the kitchen", "set a timer for ten minutes", "lock the front door"}) {
        const std::string plain = output_of({"run", "-p", prompt});
        CHECK(output_of({"run", "-p", prompt, "--json-schema", kHome}) == plain);
        CHECK(output_of({"run", "-p", prompt, "--json-schema", kHome, "--compact", "--speculate", "4"}) == plain);
    }
}

TEST_CASE("cli: run with a form gives what fits it, at any temperature, and says whether the answer is complete") {
    const TemporaryFolder folder;
    const std::string grammar = (folder / "g.gbnf").string();
    write_text(grammar, "root ::= (\"yes\" | \"no\") \", \" [a-z]{3,8} \".\"\n");
    for (const char* seed : {"1", "2", "3"}) {
        const json home = json::parse(output_of(
            {"run", "-p", "hello", "--json-schema", kHome, "--temp", "4", "--seed", seed, "-n", "300", "--json"}));
        CHECK(home["finish"] == "end");
        CHECK(home["complete"] == true);
        CHECK(home["n_forced_tokens"].get<int>() >= 0);
        const nlohmann::ordered_json schema = nlohmann::ordered_json::parse(read_text(kHome));
        CHECK(JsonValidator(schema).fits(nlohmann::ordered_json::parse(home["text"].get<std::string>())));
        const std::string said = output_of({"run", "-p", "hello", "--grammar", grammar, "--temp", "4", "--seed", seed});
        CHECK(std::regex_match(said, std::regex("(yes|no), [a-z]{3,8}\\.\n")));
        CHECK(std::regex_match(output_of({"run", "-p", "a", "--regex", "[0-9]{4}", "--temp", "4", "--seed", seed}),
                               std::regex("[0-9]{4}\n")));
    }
    const json cut = json::parse(output_of({"run", "-p", "hello", "--json-schema", kHome, "-n", "3", "--json"}));
    CHECK(cut["finish"] == "length");
    CHECK(cut["complete"] == false);
    const Ran note = run_fovea({"run", "-p", "hello", "--json-schema", kHome, "-n", "3"});
    CHECK(note.status == 0);
    CHECK(contains(note.err, "before it fits the form"));
}

TEST_CASE("docs: every command of the page on forms works") {
    const TemporaryFolder folder;
    const DemoFile demo;
    fs::copy(demo.path, folder / "model.fovea");
    fs::copy(demo.path, folder / "source");
    fs::create_directory_symlink(FOVEA_SOURCE_DIR "/examples", folder / "examples");
    write_text(folder / "person.json",
               R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}})");
    write_text(folder / "list.gbnf", "root ::= \"- \" [a-z]{3,8}\n");
    std::istringstream page(read_text(fs::path(FOVEA_SOURCE_DIR) / "docs" / "forms.md"));
    int n_commands = 0;
    for (std::string line; std::getline(page, line);) {
        if (!line.starts_with("    fovea ")) continue;
        CAPTURE(line);
        ++n_commands;
        const std::string shell =
            "cd " + folder.path().string() + " && fovea() { " FOVEA_CLI " \"$@\"; } && " + line + " > said 2> notes";
        CHECK(std::system(shell.c_str()) == 0);
    }
    CHECK(n_commands == 9);
    CHECK(fs::exists(folder / "commands.S"));
}

TEST_CASE("cli: a form that is none is refused in one line that names it") {
    const TemporaryFolder folder;
    const std::string path = (folder / "s.json").string();
    write_text(path, R"({"multipleOf":0})");
    check_refused({"run", "-p", "a", "--json-schema", path}, 1,
                  path + ": schema/multipleOf: expected a number above 0");
    check_refused({"run", "-p", "a", "--grammar", path}, 1, path + ": grammar, column 1: expected a rule's name");
    check_refused({"run", "-p", "a", "--json-schema", "/none/such"}, 1, "/none/such: no such file");
    check_refused({"run", "-p", "a", "--regex", "("}, 1, "--regex: regular expression, column 2: expected )");
    check_refused({"run", "-p", "a", "--regex", "a", "--grammar", path}, 2, "expected one of them");
    check_refused({"grammar", "--regex", "a"}, 2, "-o: expected the file");
    check_refused({"grammar", "-o", path}, 2, "form: expected --json-schema");
}

TEST_CASE("cli: grammar writes a form that opens by itself, and says its bytes") {
    const TemporaryFolder folder;
    const std::string path = (folder / "home.form").string();
    const json said = json::parse(output_of({"grammar", "--json-schema", kHome, "--compact", "-o", path, "--json"}));
    CHECK(said["bytes"] == fs::file_size(path));
    const std::string bytes = read_text(path);
    std::vector<std::uint32_t> aligned(bytes.size() / 4 + 1);
    std::memcpy(aligned.data(), bytes.data(), bytes.size());
    const host::Opened demo = open_path_or_demo("");
    Constraint constraint;
    REQUIRE(
        open_constraint(demo.tokenizer, std::as_bytes(std::span(aligned)).first(bytes.size()), {}, constraint).ok());
    constexpr std::uint64_t kHandle = 64;  // the C interface's, which programs of a form's file have
    CHECK(constraint_state_bytes(constraint) + kHandle == said["state_bytes"]);
}

}  // namespace
}  // namespace fovea::testing
