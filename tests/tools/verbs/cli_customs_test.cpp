// What people expect of a command line and its files before they have read anything: customary spellings, "-" for standard
// output, notes and refusals that say what to do next. Rows of what new users met.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "convert/tokenizers/tokenizer_json.h"
#include "host/base/npy.h"
#include "tests/support/command_line.h"
#include "tests/support/encoder_models.h"
#include "tests/support/small_models.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

std::string written(const TemporaryFolder& folder, const char* name, const Config& config,
                    const char* tokenizer = nullptr) {
    ModelSource source = random_model(config, 1);
    if (tokenizer) {
        const fs::path path = fs::path(FOVEA_GOLDEN_DIR) / tokenizer;
        source.tokenizer =
            tokenizer_section_from_json(read_text(path), path.string(), {.vocab_size = 1u << 20}, source.notes);
    }
    write_file(source, folder / name, {});
    return (folder / name).string();
}

constexpr const char* kPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:0123456789abcdef\nsize 538090408\n";

TEST_CASE("customs: help, help VERB, -v and --json before the verb") {
    CHECK(output_of({"help"}) == output_of({"--help"}));
    CHECK(output_of({"help", "run"}) == output_of({"run", "--help"}));
    CHECK(output_of({"-v"}) == output_of({"--version"}));
    CHECK(json::parse(output_of({"--json", "run", "-p", "lights off", "-n", "2"}))["n_tokens"] == 2);
    check_refused({"help", "runn"}, 2, "got runn; did you mean run?");
}

TEST_CASE("customs: types and sizes as others write them") {
    const TemporaryFolder folder;
    const DemoFile demo;
    for (const auto& [written_as, means] :
         {std::pair{"Q8_0", "q8"}, std::pair{"FP16", "f16"}, std::pair{"Q4_K_M", "q4_k"}, std::pair{"BF16", "bf16"}}) {
        const std::string a = (folder / "a.fovea").string(), b = (folder / "b.fovea").string();
        CHECK(run_fovea({"convert", demo.path, "-o", a, "--type", written_as}).status == 0);
        CHECK(run_fovea({"convert", demo.path, "-o", b, "--type", means}).status == 0);
        CHECK(read_text(a) == read_text(b));
    }
    check_refused({"convert", demo.path, "-o", "x", "--type", "Q9_0"}, 2, "--type: expected one of f32, ");
    const std::string fits = output_of({"plan", demo.path, "--flash", "8M", "--ram", "8192K"});
    for (const char* flash : {"8MB", "8MiB", "8m", "8mb", "8388608"})
        CHECK(output_of({"plan", demo.path, "--flash", flash, "--ram", "8192KB"}) == fits);
    check_refused({"plan", demo.path, "--flash", "2MX"}, 2, "--flash: expected a whole number");
    check_refused({"plan", demo.path, "--flash", "MB"}, 2, "--flash: expected a whole number");
}

TEST_CASE("customs: a session's place is looked at before anything is generated") {
    check_refused({"run", "-p", "lights off", "--session", "/nonexistent/s"}, 1,
                  "/nonexistent/s: cannot be written: no such file or directory");
    const TemporaryFolder folder;
    const std::string session = (folder / "s").string();
    write_text(session, "not a session");
    check_refused({"run", "-p", "lights off", "--session", session}, 1, "s: expected a saved session");
    CHECK(read_text(session) == "not a session");
    CHECK(folder.n_files() == 1);
}

TEST_CASE("customs: an array on standard output is the file's, and --json prints a vector") {
    const TemporaryFolder folder;
    const DemoFile demo;
    const std::string file = (folder / "a.npy").string();
    (void)output_of({"logits", demo.path, "--tokens", "1,2,3", "-o", file});
    CHECK(output_of({"logits", demo.path, "--tokens", "1,2,3", "-o", "-"}) == read_text(file));
    CHECK_FALSE(fs::exists("-"));
    Config config = bert_config();
    config.encoder.vocab_size = 40'000;
    config.encoder.pooling = Pooling::mean;
    const std::string bert = written(folder, "bert.fovea", config, "tokenizer_bert.json");
    (void)output_of({"encode", bert, "-p", "some words", "-o", file});
    CHECK(output_of({"encode", bert, "-p", "some words", "-o", "-"}) == read_text(file));
    const NpyArray array = read_npy(file);
    const json object = json::parse(output_of({"encode", bert, "-p", "some words", "--json"}));
    REQUIRE(object["vector"].size() == array.shape[0]);
    for (std::size_t i = 0; i < array.shape[0]; ++i)
        CHECK(object["vector"][i].get<float>() == reinterpret_cast<const float*>(array.data.data())[i]);
    write_text(folder / "lines", "one\ntwo words\n");
    const json two = json::parse(output_of({"encode", bert, "--texts", (folder / "lines").string(), "--json"}));
    CHECK(two["vectors"].size() == 2);
    CHECK(two["vectors"][1].size() == array.shape[0]);
    check_refused({"encode", bert, "-p", "x"}, 2,
                  "-o: expected a file for the result, or --json to print it, got neither");
    check_refused({"encode", bert, "-p", "x", "-o", "-", "--json"}, 2, "--json: expected -o FILE with it");
    check_refused({"logits", demo.path, "--tokens", "1", "-o", "-", "--json"}, 2, "--json: expected -o FILE with it");
    // Standard input has texts too.
    const std::string command =
        std::string(FOVEA_CLI) + " encode " + bert + " --texts - -o " + file + " < " + (folder / "lines").string();
    REQUIRE(std::system(command.c_str()) == 0);
    CHECK(read_npy(file).shape == std::vector<std::uint64_t>{2, array.shape[0]});
}

TEST_CASE("customs: the likeliest tokens come with their probabilities") {
    const DemoFile demo;
    const json object = json::parse(output_of({"logits", demo.path, "--tokens", "1,2,3", "--top", "512", "--json"}));
    double sum = 0, before = 1;
    for (const json& one : object["top"]) {
        const double probability = one["probability"];
        CHECK(probability <= before);
        sum += before = probability;
    }
    CHECK(std::fabs(sum - 1) < 1e-9);
    const double first = object["top"][0]["probability"];
    char percent[16];
    std::snprintf(percent, sizeof percent, "%.2f %%", 100 * first);
    CHECK(contains(output_of({"logits", demo.path, "--tokens", "1,2,3", "--top", "1"}), percent));
}

TEST_CASE("customs: tokenize names each token's piece, of a tokenizer without a model too, and gives the text back") {
    const DemoFile demo;
    CHECK(output_of({"tokenize", demo.path, "-p", "lights off", "--pieces"}) ==
          "0\t\"<|endoftext|>\"\n412\t\"lights\"\n392\t\" off\"\n");
    CHECK(output_of({"tokenize", demo.path, "-p", "lights off", "--pieces", "--offsets"}) ==
          "0\t0 0\t\"<|endoftext|>\"\n412\t0 6\t\"lights\"\n392\t6 10\t\" off\"\n");
    CHECK(output_of({"tokenize", demo.path, "--decode", "0 412, 392"}) == "lights off\n");
    CHECK(output_of({"tokenize", demo.path, "--decode", "0 412, 392", "--special"}) == "<|endoftext|>lights off\n");
    const std::string llama = FOVEA_GOLDEN_DIR "/tokenizer_llama2.json", text = "lights off \xc3\xa9";
    const json object = json::parse(output_of({"tokenize", llama, "-p", text, "--pieces", "--json"}));
    std::string ids, pieces;
    for (std::size_t i = 0; i < object["tokens"].size(); ++i) {
        ids += std::to_string(object["tokens"][i].get<int>()) + " ";
        pieces += object["pieces"][i];
    }
    CHECK(pieces == "<s> " + text);
    CHECK(output_of({"tokenize", llama, "--decode", ids}) == text + "\n");
    const json speed = json::parse(output_of({"tokenize", llama, "-p", text, "--speed", "--json"}));
    CHECK(speed["n_bytes"] == text.size());
    CHECK(speed["n_tokens"] == object["n_tokens"]);
    CHECK(speed["seconds"] >= 0.0);
    check_refused({"tokenize", llama, "--decode", "1", "--speed"}, 2, "--speed: expected with -p, -f or --jsonl, got ");
    check_refused({"tokenize", llama, "--decode", "1 99999"}, 1, "--decode: expected ids below ");
    check_refused({"tokenize", llama, "--decode", "x"}, 2, "--decode: expected ids, got x");
}

TEST_CASE("customs: --verify finds a flipped weight, which run alone does not look for") {
    const TemporaryFolder folder;
    const DemoFile demo;
    std::string file = read_text(demo.path);
    file.back() = static_cast<char>(file.back() ^ 1);
    const std::string flipped = (folder / "flipped.fovea").string();
    write_text(flipped, file);
    CHECK(run_fovea({"run", flipped, "-p", "lights off", "-n", "1"}).status == 0);
    const char* const words = "flipped.fovea: weights: expected crc 5b01ec33, got ";
    check_refused({"run", flipped, "-p", "lights off", "-n", "1", "--verify"}, 1, words);
    check_refused({"logits", flipped, "--tokens", "1", "--verify"}, 1, words);
    check_refused({"chat", flipped, "-p", "lights off", "--verify"}, 1, words);
    check_refused({"eval", demo.path, "--text", demo.path, "--against", flipped, "--verify"}, 1, "");
    CHECK(run_fovea({"run", demo.path, "-p", "lights off", "-n", "1", "--verify"}).status == 0);
}

TEST_CASE("customs: a clone without git-lfs is told so") {
    const TemporaryFolder folder;
    const std::string model = (folder / "model.fovea").string(), out = (folder / "out.fovea").string();
    write_text(model, kPointer);
    const char* const words = ": expected the file itself, got a Git LFS pointer to it: `git lfs pull` fetches it\n";
    check_refused({"run", model, "-p", "x"}, 1, model + words);
    const std::string gguf = (folder / "model.gguf").string();
    write_text(gguf, kPointer);
    check_refused({"convert", gguf, "-o", out}, 1, gguf + words);
    const fs::path golden = fs::path(FOVEA_GOLDEN_DIR) / "models" / "llama_tied", clone = folder / "clone";
    fs::copy(golden, clone);
    write_text(clone / "model.safetensors", kPointer);
    check_refused({"convert", clone.string(), "-o", out}, 1, (clone / "model.safetensors").string() + words);
    write_text(clone / "config.json", kPointer);
    check_refused({"convert", clone.string(), "-o", out}, 1, (clone / "config.json").string() + words);
    CHECK_FALSE(fs::exists(out));
}

TEST_CASE("customs: convert config.json names the folder, and a model without a tokenizer gets a note") {
    const TemporaryFolder folder;
    const fs::path clone = folder / "clone";
    fs::copy(fs::path(FOVEA_GOLDEN_DIR) / "models" / "llama_tied", clone);
    for (const char* name : {"tokenizer.json", "tokenizer.model", "tokenizer.bin", "vocab.txt"})
        fs::remove(clone / name);
    const std::string out = (folder / "out.fovea").string(), config = (clone / "config.json").string();
    check_refused({"convert", config, "-o", out}, 1,
                  config + ": expected the folder that it is in, or a file of weights, got a .json file; give " +
                      clone.string() + "\n");
    const Ran ran = run_fovea({"convert", clone.string(), "-o", out});
    CHECK(ran.status == 0);
    CHECK(contains(ran.err,
                   "note: " + clone.string() + ": no tokenizer was found beside it: the model takes ids (--tokens)"));
    check_refused({"run", out, "-p", "x"}, 1, "out.fovea: text: expected a model with a tokenizer, got one without");
}

TEST_CASE("customs: eval --against refuses a model of other tokens") {
    const TemporaryFolder folder;
    Config config = llama_config();
    config.decoder.vocab_size = 600;
    const std::string one = written(folder, "one.fovea", config, "tokenizer_llama2.json"),
                      other = written(folder, "other.fovea", config, "tokenizer_qwen2.json");
    write_text(folder / "text", "some words of a text");
    const std::string text = (folder / "text").string();
    const DemoFile demo;
    check_refused({"eval", demo.path, "--text", text, "--against", one}, 1, "vocabulary: expected ");
    const Ran ran = run_fovea({"eval", one, "--text", text, "--against", other});
    CHECK(ran.status == 1);
    CHECK(contains(ran.err, "fovea: "));
}

TEST_CASE("customs: a first pass that reads the file says so") {
    const TemporaryFolder folder;
    const DemoFile demo;
    const json object = json::parse(output_of({"run", demo.path, "-p", "lights off", "-n", "2", "--json"}));
    CHECK(object["prefill_page_faults"].get<std::int64_t>() >= 0);
    const bool cold = object["prefill_is_cold"];
    CHECK(cold == (object["prefill_page_faults"].get<std::uint64_t>() * (128 << 10) >= object["file_bytes"]));
    // How much a fault maps is the system's choice each time: where one run was cold, one of some others says that it is.
    bool said = !cold;
    for (int run = 0; run < 20 && !said; ++run)
        said = contains(run_fovea({"run", demo.path, "-p", "lights off", "-n", "2"}).err,
                        " cold: the file was mapped meanwhile), ");
    CHECK(said);
    CHECK(run_fovea({"run", demo.path, "-p", "lights off", "-n", "2", "--quiet"}).err == "");
}

TEST_CASE("customs: -n ends where the context does, and says why") {
    const json object =
        json::parse(output_of({"run", "-p", "lights off", "-n", "-1", "--temp", "2", "--seed", "1", "--json"}));
    CHECK(object["n_tokens"].get<int>() + object["n_prompt_tokens"].get<int>() <= 256);
    CHECK(run_fovea({"run", "-p", "lights off", "-n", "100000"}).status == 0);
}

TEST_CASE("run --tokens: ids in; text out where there is a tokenizer, ids where there is none") {
    const TemporaryFolder folder;
    const std::string bare = written(folder, "bare.fovea", llama_config());
    const json object = json::parse(output_of({"run", bare, "--tokens", "3,1,4", "-n", "5", "--json"}));
    CHECK(object["n_prompt_tokens"] == 3);
    CHECK(object["text"] == "");
    REQUIRE(object["tokens"].size() == 5);
    // Each is the likeliest after those before it.
    std::string ids = "3,1,4";
    for (const json& id : object["tokens"]) {
        const json next = json::parse(output_of({"logits", bare, "--tokens", ids, "--top", "1", "--json"}));
        CHECK(next["top"][0]["id"] == id);
        ids += "," + std::to_string(id.get<int>());
    }
    CHECK(output_of({"run", bare, "--tokens", "3,1,4", "-n", "5"}) == ids.substr(6) + "\n");
    CHECK(output_of({"run", bare, "--tokens", "3,1,4", "-n", "5", "--echo"}) == ids + "\n");
    // With a tokenizer: the same text as from the words.
    const DemoFile demo;
    const json words = json::parse(output_of({"tokenize", demo.path, "-p", "lights off\n", "--json"}));
    std::string list;
    for (const json& id : words["tokens"]) list += (list.empty() ? "" : ",") + std::to_string(id.get<int>());
    CHECK(output_of({"run", demo.path, "--tokens", list}) == output_of({"run", demo.path, "-p", "lights off"}));
    check_refused({"run", bare, "--tokens", "71"}, 1, "token out of range: ");
    check_refused({"run", bare, "--tokens", "x"}, 2, "--tokens: expected a whole number");
    check_refused({"run", bare, "--tokens", "1", "PROMPT"}, 2, "prompt: expected one of PROMPT, -p, -f and --tokens");
}

TEST_CASE("encode --tokens: the vectors of ids are those of their text") {
    const TemporaryFolder folder;
    Config config = bert_config();
    config.encoder.vocab_size = 40'000;
    config.encoder.pooling = Pooling::mean;
    const std::string bert = written(folder, "bert.fovea", config, "tokenizer_bert.json");
    const json words = json::parse(output_of({"tokenize", bert, "-p", "some words of a text", "--json"}));
    std::string list;
    for (const json& id : words["tokens"]) list += (list.empty() ? "" : ",") + std::to_string(id.get<int>());
    const json a = json::parse(output_of({"encode", bert, "-p", "some words of a text", "--json"})),
               b = json::parse(output_of({"encode", bert, "--tokens", list, "--json"}));
    CHECK(a["vector"] == b["vector"]);
    const std::string bare = written(folder, "bare.fovea", bert_config());
    CHECK(json::parse(output_of({"encode", bare, "--tokens", "1,2,3", "--json"})).contains("isa"));
    check_refused({"encode", bare, "-p", "text", "--json"}, 1, "expected a model with a tokenizer, got one without");
    check_refused({"encode", bert, "-p", "a", "--tokens", "1", "--json"}, 2,
                  "-p, --texts or --tokens: expected one of them, got several");
    check_refused({"encode", bare, "--tokens", "1,99999", "--json"}, 1, "token out of range");
}

TEST_CASE("docs: every command of the chat page works") {
    const TemporaryFolder folder;
    const DemoFile demo;
    fs::copy(demo.path, folder / "model.fovea");
    write_text(folder / "prompt.txt", "turn off the hall light\n");
    std::string requests;
    std::vector<std::string> commands;
    std::istringstream page(read_text(fs::path(FOVEA_SOURCE_DIR) / "docs" / "chat.md"));
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("    {\"index\"")) continue;
        if (line.starts_with("    {"))
            requests += line + "\n";
        else if (line.starts_with("    "))
            commands.push_back(line.substr(4));
    }
    CHECK(std::count(requests.begin(), requests.end(), '\n') == 2);
    write_text(folder / "in.jsonl", requests);
    REQUIRE(commands.size() == 9);
    for (const std::string& command : commands) {
        CAPTURE(command);
        const std::string shell =
            "cd " + folder.path().string() + " && fovea() { " FOVEA_CLI " \"$@\"; } && " + command + " > said 2> notes";
        CHECK(std::system(shell.c_str()) == 0);
        CHECK((fs::file_size(folder / "said") > 1) == !contains(command, " -o "));
    }
    CHECK(read_text(folder / "out.jsonl").starts_with("{\"index\":0,\"id\":\"a\",\"request\":\""));
}

TEST_CASE("customs: -- before a prompt, byte order marks before texts, a variable for threads") {
    const DemoFile demo;
    const std::vector<std::string> run{"run", demo.path, "-n", "8", "--quiet"};
    const auto with = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all = run;
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    CHECK(output_of(with({"--", "-lights off"})) == output_of(with({"-p", "-lights off"})));
    CHECK(output_of(with({"--", "lights off"})) == output_of(with({"-p", "lights off"})));

    const std::string text = (demo.folder / "text.txt").string(), expected = output_of(with({"-p", "lights off"}));
    write_text(text, "\xef\xbb\xbflights off\n");
    CHECK(output_of(with({"-f", text})) == expected);
    CHECK(output_of(with({"-p", "@" + text})) == expected);
    write_text(text, "\xef\xbb\xbf{\"prompt\": \"lights off\"}\n");
    CHECK(json::parse(output_of(with({"--batch", text})))["text"].get<std::string>() + "\n" == expected);
    write_text(text, "\xef\xbb\xbf{\"enum\": [\"on\"]}");
    CHECK(output_of(with({"-p", "lights off", "--json-schema", text})) == "\"on\"\n");

    const auto threads = [&](const std::string& variable, const std::vector<std::string>& more) {
        std::vector<std::string> all{"plan", demo.path, "--json"};
        all.insert(all.end(), more.begin(), more.end());
        const Ran ran = run_fovea(all, {.out_path = {}, .environment = {"FOVEA_THREADS=" + variable}});
        CHECK(ran.status == 0);
        return json::parse(ran.out)["n_threads"].get<std::uint32_t>();
    };
    CHECK(threads("3", {}) == 3);
    CHECK(threads("3", {"--threads", "2"}) == 2);
    CHECK(threads("", {}) == default_threads());
    check_refused({"plan", demo.path}, 2, "FOVEA_THREADS: expected a whole number from 1 to 256, got all",
                  {.out_path = {}, .environment = {"FOVEA_THREADS=all"}});
}

}  // namespace
}  // namespace fovea::testing
