// What a slip of the hand must not cost: a model that is overwritten, another model than the one that was meant, an option that
// says nothing.
#include <doctest/doctest.h>

#include "command_line.h"

using namespace fovea;
using namespace fovea::testing;

TEST_CASE("cli: a conversion never writes over what it reads") {
    const DemoFile demo;
    const std::string before = read_text(demo.path), link = (demo.folder / "link.fovea").string();
    const std::string expected = "-o: expected another file than what is read, got ";
    check_refused({"convert", demo.path, "-o", demo.path, "--type", "q4"}, 1, expected);
    fs::create_symlink(demo.path, link);
    check_refused({"convert", demo.path, "-o", link, "--type", "q4"}, 1, expected);
    CHECK(read_text(demo.path) == before);

    const fs::path folder = demo.folder / "model", config = folder / "config.json";
    fs::copy(fs::path(FOVEA_GOLDEN_DIR) / "families/llama", folder);
    const std::string had = read_text(config);
    const std::string other = "-o: expected a new file, or a Fovea file to replace, got another kind: ";
    check_refused({"convert", folder, "-o", config}, 1, other);
    check_refused({"convert", folder / "model.safetensors", "-o", config}, 1, other);
    const std::string text = (demo.folder / "text.txt").string();
    write_text(text, "turn on the light\n");
    check_refused({"convert", demo.path, "--type", "q4_k", "--calibrate", text, "-o", text}, 1, other);
    CHECK(read_text(text) == "turn on the light\n");
    CHECK(read_text(config) == had);
    for (int i = 0; i < 2; ++i) (void)output_of({"convert", folder, "-o", folder / "model.fovea"});  // that one may be
}

TEST_CASE("cli: an empty name is no model, and not the built-in one") {
    for (const std::vector<std::string>& command : {std::vector<std::string>{"run", "", "-p", "hi"},
                                                    {"certify", ""},
                                                    {"grammar", "", "--regex", "a"},
                                                    {"chat", ""},
                                                    {"logits", "", "-p", "hi"},
                                                    {"serve", ""}})
        check_refused(command, 2, "MODEL: expected a file, got an empty name");
}

TEST_CASE("cli: a text that starts with @ is a file's, with @@ itself") {
    const DemoFile demo;
    const std::string file = (demo.folder / "prompt.txt").string();
    write_text(file, "turn on the light\n");
    const auto answer = [&](const std::string& prompt) {
        return output_of({"run", demo.path, "-n", "8", "-p", prompt});
    };
    CHECK(answer("@" + file) == answer("turn on the light"));
    check_refused({"run", demo.path, "-p", "@alice said hi"}, 1,
                  "expected a file after @, got none; a text that starts with @");
    write_text(file, "@alice");
    CHECK(answer("@@alice") == answer("@" + file));
}

TEST_CASE("cli: lines of texts that are JSON say what they mean") {
    const TemporaryFolder folder;
    const std::string model = (folder / "m.fovea").string(), texts = (folder / "t.jsonl").string();
    (void)output_of({"convert", fs::path(FOVEA_GOLDEN_DIR) / "encoders/bert_sentence", "-o", model});
    const auto refused = [&](const char* line, const char* words) {
        write_text(texts, std::string("plain\n") + line + "\n");
        check_refused({"encode", model, "--texts", texts, "-o", folder / "v.npy"}, 1, words);
    };
    refused(R"({"text":5})", "line 2: text: expected a text, got number");
    refused(R"({"text":"a","pair":[]})", "line 2: pair: expected a text, got array");
    refused(R"({"foo":"a"})", "line 2: text: expected one in a JSON object, got none");
    refused(R"({"text":"a")", "line 2: expected a JSON object, got one that does not parse");
    write_text(texts, "{ braces are text, too\n");
    (void)output_of({"encode", model, "--texts", texts, "-o", folder / "v.npy"});
}

TEST_CASE("cli: an option that would do nothing is refused") {
    const DemoFile demo;
    check_refused({"bench", demo.path, "--type", "q4"}, 2, "--type: expected --preset beside it");
    check_refused({"run", demo.path, "--compact", "-p", "hi"}, 2, "--compact: expected --json-schema beside it");
    check_refused({"run", demo.path, "--lora", demo.path + ":abc", "-p", "hi"}, 2, "--lora: expected PATH:SCALE");
    const std::string model = (demo.folder / "m.fovea").string();
    (void)output_of({"convert", fs::path(FOVEA_GOLDEN_DIR) / "encoders/bert_sentence", "-o", model});
    check_refused({"encode", model, "-p", "a", "--head", "-o", demo.folder / "v.npy"}, 2,
                  "--head: expected a model with a head");
}

TEST_CASE("cli: a folder's tokenizer is found, and a damaged conversion is made again") {
    const TemporaryFolder folder;
    const fs::path source = fs::path(FOVEA_GOLDEN_DIR) / "encoders/bert_sentence";
    CHECK(output_of({"tokenize", source, "-p", "a b"}) == output_of({"tokenize", source / "vocab.txt", "-p", "a b"}));
    check_refused({"tokenize", folder.path(), "-p", "a"}, 1, "expected a tokenizer.json, tokenizer.model, vocab.txt");

    RunSettings cached;
    cached.environment = {"XDG_CACHE_HOME=" + folder.path().string()};
    const std::vector<std::string> command = {
        "run", fs::path(FOVEA_GOLDEN_DIR) / "families/llama", "--tokens", "1,2", "-n", "2", "--verify"};
    REQUIRE(run_fovea(command, cached).status == 0);
    fs::path made;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
        if (entry.path().extension() == ".fovea") made = entry.path();
    const std::string whole = read_text(made);
    std::string damaged = whole;
    damaged[damaged.size() - 100] ^= 1;
    write_text(made, damaged);
    CHECK(run_fovea(command, cached).status == 0);
    CHECK(read_text(made) == whole);
}

TEST_CASE("cli: a random seed is told, and gives the same text again") {
    const DemoFile demo;
    const auto run = [&](const std::string& seed) {
        return run_fovea(
            {"run", demo.path, "-p", "turn on the light", "--temp", "3", "-n", "24", "--quiet", "--seed", seed});
    };
    const Ran random = run("-1");
    REQUIRE(random.status == 0);
    REQUIRE(random.err.starts_with("note: --seed "));
    const std::string seed = random.err.substr(13, random.err.find('\n') - 13);
    CHECK(run(seed).out == random.out);
    CHECK(run("-1").err != random.err);
}
