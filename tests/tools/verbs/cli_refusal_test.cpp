// The command line's contract where something is wrong: one line, exit status 2 for usage and 1 for the rest.
#include <doctest/doctest.h>

#include <cstring>

#include "engine/format/format.h"
#include "fovea/checksum.h"
#include "tests/support/command_line.h"
#include "tests/support/small_models.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

/// The built-in model's file, for changing.
std::string demo_file() {
    const auto bytes = demo_model_bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string written(const TemporaryFolder& folder, const char* name, const std::string& content) {
    write_text(folder / name, content);
    return (folder / name).string();
}

TEST_CASE("cli: usage errors") {
    const auto& verbs = "command: expected one of run, chat, convert, inspect, ";
    check_refused({}, 2, verbs);
    check_refused({}, 2, ", got none");
    check_refused({"sing"}, 2, "got sing");
    check_refused({"run", "--loud"}, 2, "got --loud");
    check_refused({"run", "a", "b", "c"}, 2, "PROMPT: expected one, got also c\n");
    check_refused({"run", "a", "b", "-p", "x"}, 2, "prompt: expected one of PROMPT, -p, -f and --tokens, got several");
    check_refused({"run", "-p"}, 2, "--prompt: expected a value");
    check_refused({"run", "-n", "-2", "-p", "x"}, 2, "-n: expected a whole number from 0");
    check_refused({"run", "-n", "", "-p", "x"}, 2, "got nothing");
    check_refused({"run", "-n", "12x", "-p", "x"}, 2, "got 12x");
    check_refused({"run", "--temp", "-0.5", "-p", "x"}, 2, "--temp: expected a number, 0 or more, got -0.5");
    check_refused({"run", "--temp", "nan", "-p", "x"}, 2, "got nan");
    check_refused({"run", "--top-p", "1.5", "-p", "x"}, 2, "--top-p: expected a number, 0 to 1, got 1.5");
    check_refused({"run", "--kv", "f8", "-p", "x"}, 2, "--kv: expected one of f32, f16, q8, q4, got f8");
    check_refused({"run", "--threads", "0", "-p", "x"}, 2, "--threads: expected 1 to 256, got 0");
    check_refused({"run", "--cpus", "0,,1", "-p", "x"}, 2, "--cpus: expected a whole number");
    check_refused({"plan"}, 2, "MODEL or --preset NAME: expected one of them, got neither");
    check_refused({"plan", "a", "--preset", "gpt2"}, 2, "got both");
    check_refused({"plan", "--preset", "gpt9"}, 2, "--preset: expected one of gpt2, ");
    check_refused({"inspect"}, 2, "MODEL: expected a Fovea file, got none");
    check_refused({"tokenize", "a"}, 2, "-p: expected a text, got none");
    check_refused({"logits", "a"}, 2, "--tokens or -p: expected one of them, got neither");
    check_refused({"logits", "a", "--tokens", "1", "-p", "x"}, 2, "got both");
    check_refused({"convert", "a"}, 2, "-o: expected the file to write, got none");
    check_refused({"convert", "-o", "a"}, 2, "SOURCE: expected a model to convert, got none");
    check_refused({"convert", "a", "-o", "b", "--threads", "0"}, 2, "--threads: expected 1 to 256, got 0");
    check_refused({"convert", "a", "-o", "b", "--threads", "257"}, 2, "--threads: expected 1 to 256, got 257");
    check_refused({"convert", "a", "-o", "b", "--threads", "all"}, 2,
                  "--threads: expected a whole number from 1 to 256, got all");
    check_refused({"bench"}, 2, "MODEL or --preset NAME");
    check_refused({"bench", "--preset", "demo", "--type", "f31"}, 2,
                  "--type: expected one of f32, f16, bf16, q8, q4, q6_k, q5_k, q4_k, iq4_nl, mxfp4, q3_k, q2_k, "
                  "iq4_xs, tq2_0, q8_128, q5, q4_1, q5_1, got f31");
}

TEST_CASE("cli: what may have been meant") {
    check_refused({"runn", "-p", "x"}, 2, ", got runn; did you mean run?\n");
    check_refused({"covnert", "a b"}, 2, "got covnert; did you mean convert?\n");
    check_refused({"pull", "m"}, 2, "got pull\n");
    check_refused({"convert", "a", "b", "-o", "c"}, 2, "SOURCE: expected one, got also b\n");
    check_refused({"run", "--tempp", "1"}, 2,
                  "argument: expected one that `fovea run --help` lists, got --tempp; did you mean --temp?\n");
    check_refused({"run", "--max-tokens=5"}, 2, "got --max-tokens=5; did you mean -n?\n");
    check_refused({"--verion"}, 2,
                  "option: expected one that `fovea --help` lists, got --verion; did you mean --version?\n");
}

TEST_CASE("cli: what this machine does not have") {
    check_refused({"run", "-p", "x", "--isa", "mmx"}, 1, "--isa: expected one of ");
    check_refused({"run", "-p", "x", "--isa", "mmx"}, 1, "scalar, got mmx");
    check_refused({"run", "-p", "x", "--cpus", "1023"}, 1, "--cpus: expected ");
}

TEST_CASE("cli: files that are no models") {
    const TemporaryFolder folder;
    const std::string file = demo_file(), demo = written(folder, "demo.fovea", file);
    const std::string none = (folder / "none.fovea").string();
    check_refused({"inspect", none}, 1, none + ": no such file\n");
    check_refused({"run", none, "-p", "x"}, 1, none + ": no such file\n");
    check_refused({"run", "none/model-1B", "-p", "x"}, 1,
                  "none/model-1B: no such file; a model of the Hugging Face hub is downloaded first: hf download "
                  "none/model-1B\n");
    for (const char* path : {"/none", "./none", "none/a/b", "none"})
        check_refused({"inspect", path}, 1, std::string(path) + ": no such file\n");
    check_refused({"logits", demo, "--tokens", "none.npy"}, 1, "none.npy: no such file\n");
    check_refused({"eval", demo, "--text", none}, 1, none + ": no such file\n");
    check_refused({"eval", demo, "--text", folder.path().string()}, 1, ": expected a file, got a folder\n");
    check_refused({"convert", none, "-o", (folder / "m").string()}, 1, none + ": no such file\n");
    check_refused({"inspect", "/dev/null"}, 1, "/dev/null: cannot be read: not a regular file\n");
    check_refused({"inspect", written(folder, "empty", "")}, 1, "empty: truncated");
    std::string magic = file;
    magic[3] ^= 1;
    check_refused({"inspect", written(folder, "magic", magic)}, 1, "magic: expected a Fovea file, got another kind\n");
    for (std::size_t i = 1; i <= 20; ++i) {
        const std::string part = file.substr(0, file.size() * i / 21);
        check_refused({"inspect", written(folder, "part", part)}, 1, "part: truncated: bytes of the file: expected ");
        check_refused({"run", (folder / "part").string(), "-p", "x"}, 1,
                      "part: truncated: bytes of the file: expected ");
    }
    std::string newer = file;
    FileHeader header;
    std::memcpy(&header, newer.data(), sizeof header);
    ++header.major;
    header.header_crc = crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(FileHeader, header_crc)));
    std::memcpy(newer.data(), &header, sizeof header);
    check_refused({"inspect", written(folder, "newer", newer)}, 1,
                  "newer: version unsupported: the format's major version: expected 1");
}

TEST_CASE("cli: inspect finds a flipped bit wherever it is") {
    const TemporaryFolder folder;
    const std::string file = demo_file();
    for (const std::size_t at :
         {file.size() - 1, file.size() / 2, std::size_t{65536}, std::size_t{70}, std::size_t{20}}) {
        std::string flipped = file;
        flipped[at] = static_cast<char>(flipped[at] ^ 4);
        check_refused({"inspect", written(folder, "flipped", flipped)}, 1, "flipped: ");
    }
    std::string weight = file;
    weight.back() = static_cast<char>(weight.back() ^ 1);
    check_refused({"inspect", written(folder, "weight", weight)}, 1, "weight: weights: expected crc 5b01ec33, got ");
}

TEST_CASE("cli: more tokens than the context holds") {
    std::string longest;
    for (int i = 0; i < 300; ++i) longest += "lamp ";
    check_refused({"run", "-p", longest}, 1, "prompt: expected at most 255 tokens, ");
    check_refused({"run", "-p", "lights in the kitchen off", "--context", "4"}, 1, "expected at most 3 tokens, ");
    check_refused({"run", "-p", "lights", "--context", "257"}, 1,
                  "--context: expected at most demo's 256 positions, got 257");
    check_refused({"certify", "-p", longest}, 1, "prompt: expected at most 256 positions");
    check_refused({"plan", "--preset", "demo", "--context", "257"}, 1,
                  "demo: bad limits: positions: expected at most 256");
    check_refused({"bench", "--preset", "stories260k", "-p", "500", "-n", "13"}, 1,
                  "expected at most 512 positions, got 513");
}

TEST_CASE("cli: tokens that are out of range") {
    const TemporaryFolder folder;
    const std::string model = written(folder, "demo.fovea", demo_file());
    check_refused({"logits", model, "--tokens", "1,512"}, 1, "token out of range: token: expected at most ");
    check_refused({"logits", model, "--tokens", "1,-2"}, 2, "--tokens: expected a whole number");
    check_refused({"logits", model, "--tokens", ""}, 2, "--tokens: expected IDS, got nothing");
    check_refused({"logits", model, "--tokens", "0-256"}, 1,
                  "tokens: expected 1 to 256 of them in a sequence, got 257");
    check_refused({"logits", model, "--tokens", written(folder, "a.npy", "\x93NUMPX")}, 1,
                  "expected an .npy file, got another kind");
    check_refused({"logits", model, "--tokens", "1", "-o", (folder / "no/such/folder.npy").string()}, 1,
                  "folder.npy: cannot be written: no such file or directory\n");
}

TEST_CASE("cli: memory that is not there") {
#if defined(FOVEA_SANITIZED)
    MESSAGE("skipped: sanitizers need the address space that this test takes away");
#elif defined(FOVEA_EMULATED)
    MESSAGE("skipped: the emulator does not limit a program's memory");
#else
    const TemporaryFolder folder;
    const Config config = llama_config(2, 48, 6, 6, 8, 88, 1u << 20);  // 2 · 2^20 · 6 · (8 + 16) · 4 bytes of cache
    const fs::path model = folder / "large.fovea";
    write_file(random_model(config, 1), model, {});
    RunSettings settings;
    settings.memory_bytes = 256u << 20;
    check_refused({"logits", model.string(), "--tokens", "1", "--context", "1048576"}, 1, "memory: expected 1,2",
                  settings);
#endif
}

TEST_CASE("cli: sources that can't be converted") {
    const TemporaryFolder folder;
    const std::string source = folder.path().string(), output = (folder / "out.fovea").string();
    const std::string config =
        R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 64,
            "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 64, "max_position_embeddings": 64,
            "rms_norm_eps": 1e-5})";
    check_refused({"convert", source, "-o", output}, 1, "config.json");
    write_text(folder / "model.safetensors", std::string("\0\0\0\0\0\0\0\x10", 8) + "{}");  // a header of 2^60 bytes
    write_text(folder / "config.json", config);
    check_refused({"convert", source, "-o", output}, 1, "1152921504606846976");
    std::string nameless = config;
    nameless.replace(nameless.find("hidden_size"), 11, "hidden_sike");
    write_text(folder / "config.json", nameless);
    check_refused({"convert", source, "-o", output}, 1, "config.json: hidden_size");
    const std::string model = written(folder, "demo.fovea", demo_file());
    const std::string tokenizer = written(folder, "tokenizer.json", "not JSON");
    check_refused({"convert", model, "-o", output, "--tokenizer", tokenizer}, 1, "tokenizer.json: ");
    CHECK_FALSE(fs::exists(output));
}

TEST_CASE("cli: nothing waits for input that no one types, and a full disk is an error") {
    const TemporaryFolder folder;
    const std::string model = written(folder, "demo.fovea", demo_file());
    RunSettings silent, full;
    silent.open_input = true;
    full.out_path = "/dev/full";
    check_refused({"run", model}, 2, "prompt: expected -p TEXT", silent);
    check_refused({"run", "--json"}, 2, "prompt: expected -p TEXT with --json", silent);
    if (fs::exists(full.out_path)) check_refused({"run", "-p", "lights off", "--json"}, 1, "standard output", full);
}

}  // namespace
}  // namespace fovea::testing
