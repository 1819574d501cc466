// What a slip of the hand must not cost: a model that is overwritten, another model than the one that was meant, an option that
// says nothing.
#include <doctest/doctest.h>

#include "tests/support/command_line.h"

using namespace fovea;
using namespace fovea::testing;

TEST_CASE("cli: a conversion never writes over what it reads") {
    const DemoFile demo;
    const std::string before = read_text(demo.path), link = (demo.folder / "link.fovea").string();
    const std::string expected = ": expected another file than what is read\n";
    check_refused({"convert", demo.path, "-o", demo.path, "--type", "q4"}, 1, demo.path + expected);
    fs::create_symlink(demo.path, link);
    check_refused({"convert", demo.path, "-o", link, "--type", "q4"}, 1, link + expected);
    CHECK(read_text(demo.path) == before);

    const fs::path folder = demo.folder / "model", config = folder / "config.json";
    fs::copy(fs::path(FOVEA_GOLDEN_DIR) / "families/llama", folder);
    const std::string had = read_text(config);
    const std::string other = "-o: expected a new file, or a Fovea file to replace, got another kind: ";
    check_refused({"convert", folder, "-o", config}, 1, expected);
    check_refused({"convert", folder / "model.safetensors", "-o", config}, 1, expected);
    const std::string text = (demo.folder / "text.txt").string();
    write_text(text, "turn on the light\n");
    check_refused({"convert", demo.path, "--type", "q4_k", "--calibrate", text, "-o", text}, 1, expected);
    check_refused({"convert", demo.path, "-o", text}, 1, other);
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

TEST_CASE("cli: an option that names something refuses an empty name") {
    const DemoFile demo;
    check_refused({"serve", demo.path, "--api-key-file", ""}, 2, "--api-key-file: expected FILE, got nothing");
    check_refused({"certify", demo.path, "--expect", ""}, 2, "--expect: expected HASH, got nothing");
    check_refused({"run", demo.path, "-p", "hi", "--json-schema", ""}, 2, "--json-schema: expected FILE, got nothing");
    check_refused({"run", demo.path, "-p", "hi", "--session", ""}, 2, "--session: expected FILE, got nothing");
    check_refused({"run", demo.path, "-p", "hi", "--lora", ""}, 2, "--lora: expected PATH or PATH:SCALE, got nothing");
    check_refused({"run", demo.path, "-p", "hi", "--session", "-"}, 2, "--session: expected a file's name, got -");
    check_refused({"convert", demo.path, "-o", "-"}, 2, "-o: expected a file's name, got -");
    CHECK(run_fovea({"run", demo.path, "-p", "", "-n", "4"}).status == 0);  // a text may be empty
}

TEST_CASE("cli: nothing that is written replaces the model that is read") {
    const DemoFile demo;
    const std::string before = read_text(demo.path), link = (demo.folder / "link.npy").string();
    fs::create_symlink(demo.path, link);
    const std::string words = ": expected another file than what is read\n";
    check_refused({"logits", demo.path, "-p", "hi", "-o", demo.path}, 1, demo.path + words);
    check_refused({"logits", demo.path, "-p", "hi", "-o", link}, 1, link + words);
    check_refused({"run", demo.path, "-p", "hi", "--weights", demo.path}, 1, demo.path + words);
    check_refused({"run", demo.path, "-p", "hi", "--picture", link}, 1, link + words);
    check_refused({"run", demo.path, "-p", "hi", "--session", demo.path}, 1, demo.path + words);
    check_refused({"embed", demo.path, "-o", demo.path}, 1, demo.path + words);
    check_refused({"grammar", demo.path, "--regex", "a", "-o", demo.path}, 1, demo.path + words);
    CHECK(read_text(demo.path) == before);
    const std::string nowhere = (demo.folder / "none/w.npy").string();  // known before anything is generated
    check_refused({"run", demo.path, "-p", "hi", "--weights", nowhere}, 1, "w.npy: cannot be written: no such file");
}

TEST_CASE("cli: a stream that is closed gets nothing, and neither does a file in its place") {
    const DemoFile demo;
    const std::string file = (demo.folder / "x.npy").string();
    REQUIRE(run_fovea({"logits", demo.path, "-p", "hi", "-o", file}).status == 0);
    const std::string expected = read_text(file);
    for (const int closed : {0, 1, 2}) {
        CAPTURE(closed);
        RunSettings settings;
        settings.closed = closed;
        CHECK(run_fovea({"logits", demo.path, "-p", "hi", "-o", file, "--json"}, settings).status == (closed == 1));
        CHECK(read_text(file) == expected);
        const Ran chat = run_fovea({"chat", demo.path}, settings);  // and does not wait for what never comes
        CHECK(chat.status == (closed == 0));
    }
}

TEST_CASE("cli: a file that is replaced keeps its permissions, and one that grows too large leaves no part") {
    const DemoFile demo;
    const fs::path file = demo.folder / "private.npy", large = demo.folder / "large.fovea";
    write_text(file, "");
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
    REQUIRE(run_fovea({"logits", demo.path, "-p", "hi", "-o", file}).status == 0);
    CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
    RunSettings small;
    small.file_bytes = 4096;
    check_refused({"convert", demo.path, "--type", "f32", "-o", large}, 1, "cannot be written: file too large", small);
    for (const auto& entry : fs::directory_iterator(demo.folder.path()))
        CHECK_FALSE(entry.path().filename().string().starts_with("large"));
}

TEST_CASE("cli: a source is converted once, whatever the spelling of its path") {
    const TemporaryFolder folder;
    RunSettings cached;
    cached.environment = {"XDG_CACHE_HOME=" + folder.path().string()};
    const std::string source = FOVEA_GOLDEN_DIR "/families/llama";
    const auto run = [&](const std::string& path) {
        return run_fovea({"run", path, "--tokens", "1,2", "-n", "2", "--quiet"}, cached);
    };
    CHECK(contains(run(source).err, "was converted into"));
    for (const std::string& other : {source + "/", FOVEA_GOLDEN_DIR "/../golden/families/./llama" + std::string()}) {
        const Ran again = run(other);
        CHECK(again.status == 0);
        CHECK(again.err == "");
    }
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
    refused(R"({ "text" : "a")", "line 2: expected a JSON object, got one that does not parse");
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
