// Verbs given models of a kind they are not for, or options that nothing reads: refused, and what is read stays whole.
#include <doctest/doctest.h>

#include "convert/tokenizers/tokenizer_json.h"
#include "tests/support/command_line.h"
#include "tests/support/encoder_models.h"
#include "tests/support/small_models.h"

namespace fovea::testing {
namespace {

std::string model_file(const TemporaryFolder& folder, const char* name, const Config& config, bool has_tokenizer) {
    ModelSource source = random_model(config, 1);
    const fs::path json = fs::path(FOVEA_GOLDEN_DIR) / "tokenizer_bert.json";
    if (has_tokenizer)
        source.tokenizer =
            tokenizer_section_from_json(read_text(json), json.string(), {.vocab_size = 1u << 20}, source.notes);
    write_file(source, folder / name, {});
    return (folder / name).string();
}

TEST_CASE("cli: models of vectors are refused where logits are wanted") {
    const TemporaryFolder folder;
    const std::string bert = model_file(folder, "bert.fovea", bert_config(), true);
    Config lone;
    lone.encoder = both_config(NormPlace::pre).encoder;
    const std::string encoder = model_file(folder, "encoder.fovea", lone, false);
    write_text(folder / "text", "some words of a text");
    const std::string text = (folder / "text").string();
    const DemoFile demo;
    const char* const words = "model: expected one for logits, got one for vectors";
    for (const std::string& model : {bert, encoder}) {
        check_refused({"certify", model}, 1, words);
        check_refused({"run", model, "-p", "x"}, 1, words);
        check_refused({"logits", model, "--tokens", "1", "--picture", "-"}, 1, words);
        check_refused({"bench", model}, 1, words);
        check_refused({"eval", model, "--text", text}, 1, words);
        check_refused({"eval", demo.path, "--against", model, "--text", text}, 1, words);
        check_refused({"plan", model, "--context", "3"}, 1, words);
    }
    Config memory = llama_config();
    memory.decoder.blocks[0].attention.cross_attention = true;
    const std::string reader = model_file(folder, "reader.fovea", memory, false);
    for (const char* verb : {"run", "logits"})
        check_refused({verb, reader, "--tokens", "1"}, 1, "got one that also reads an encoder's vectors");
}

TEST_CASE("cli: ids of a tokenizer that the model has no logits for are refused") {
    const TemporaryFolder folder;
    const std::string model = model_file(folder, "small.fovea", llama_config(), true);  // 71 ids, its tokenizer more
    write_text(folder / "text", "some words of a text");
    check_refused({"eval", model, "--text", (folder / "text").string()}, 1, "expected ids below its vocab_size 71");
    Config one = llama_config();
    one.decoder.vocab_size = 40'000;
    one.decoder.max_positions = 1;
    const std::string short_one = model_file(folder, "one.fovea", one, true);
    check_refused({"eval", short_one, "--text", (folder / "text").string()}, 1, "positions: expected 2 or more, got 1");
}

TEST_CASE("cli: encode refuses what nothing reads") {
    const TemporaryFolder folder;
    const std::string bert = model_file(folder, "bert.fovea", bert_config(), true), y = (folder / "y.npy").string();
    check_refused({"encode", bert, "-p", "hi", "--source", "none.npy", "-o", y}, 2, "--source: expected none");
    check_refused({"encode", bert, "-p", "hi", "--target-mask", "none.npy", "-o", y}, 2,
                  "--target-mask: expected none");
    check_refused({"encode", bert, "-p", "hi", "--memory-padding-mask", "none.npy", "-o", y}, 2, "expected none");
    CHECK(!fs::exists(y));
}

TEST_CASE("cli: a text beyond the model's positions keeps the tokens that close it") {
    const TemporaryFolder folder;
    Config config = bert_config();
    config.encoder.max_positions = 10;
    config.encoder.vocab_size = 40'000;
    const std::string bert = model_file(folder, "bert.fovea", config, true), y = (folder / "y.npy").string();
    std::string text;
    for (int i = 0; i < 30; ++i) text += " a";
    const std::string keys = output_of({"encode", bert, "-p", text, "--picture", "-"});
    CHECK(contains(keys, "0=[CLS]"));
    CHECK(contains(keys, "9=[SEP]"));
    CHECK(!contains(keys, "8=[SEP]"));
}

TEST_CASE("cli: one verb, and after it no name of another") {
    check_refused({"run", "plan"}, 1, "plan: no such file");
    check_refused({"tokenize", "none.fovea", "-p", "x", "run"}, 2, "MODEL: expected one, got also run\n");
}

TEST_CASE("cli: what a shell made standard output keeps what it has") {
    const TemporaryFolder folder;
    const DemoFile demo;
    const std::string all = (folder / "all").string(), command = FOVEA_CLI;
    const std::string made = command + " embed " + demo.path + " -o /dev/stdout";
    REQUIRE(std::system(("{ echo first; " + made + "; echo last; } > " + all).c_str()) == 0);
    const std::string text = read_text(all);
    CHECK(text.starts_with("first\n/* "));
    CHECK(text.ends_with("\nlast\n"));
    REQUIRE(std::system((made + " >> " + all).c_str()) == 0);
    CHECK(read_text(all).starts_with(text + "/* "));
    CHECK(folder.n_files() == 1);
}

TEST_CASE("cli: a result that cannot be had whole is not printed in part") {
    const DemoFile demo;
    check_refused({"logits", demo.path, "--tokens", "1", "--json", "--weights", "/nonexistent/w.npy"}, 1,
                  "/nonexistent/w.npy: cannot be written: no such file or directory");
    const RunSettings full{.out_path = "/dev/full"};
    check_refused({"run", "-p", "hi", "-n", "2"}, 1, "standard output: cannot be written in full", full);
    check_refused({"--help"}, 1, "standard output: cannot be written in full", full);
    check_refused({"embed", demo.path, "-o", "/dev/null", "--isa", "none"}, 1, "--isa: expected one of");
}

}  // namespace
}  // namespace fovea::testing
