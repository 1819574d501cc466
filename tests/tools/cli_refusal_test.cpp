// The command line's contract where something is wrong: one line, exit status 2 for usage and 1 for the rest.
#include <doctest/doctest.h>

#include <cstring>

#include "command_line.h"
#include "engine/model/format.h"
#include "fovea/checksum.h"
#include "opened.h"
#include "small_models.h"

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
    check_refused(
        {}, 2,
        "command, want one of run, convert, inspect, plan, logits, attend, encode, tokenize, bench, certify, eval, "
        "embed, had none");
    check_refused({"sing"}, 2, "had sing");
    check_refused({"run", "--loud"}, 2, "had --loud");
    check_refused({"run", "a", "b", "-p", "x"}, 2, "had b");
    check_refused({"run", "-p"}, 2, "--prompt, want a value");
    check_refused({"run", "-n", "-1", "-p", "x"}, 2, "-n, want a whole number from 0");
    check_refused({"run", "-n", "12x", "-p", "x"}, 2, "had 12x");
    check_refused({"run", "--temp", "-0.5", "-p", "x"}, 2, "--temp, want a number, 0 or more, had -0.5");
    check_refused({"run", "--temp", "nan", "-p", "x"}, 2, "had nan");
    check_refused({"run", "--top-p", "1.5", "-p", "x"}, 2, "--top-p, want a number, 0 to 1, had 1.5");
    check_refused({"run", "--kv", "f8", "-p", "x"}, 2, "--kv, want one of f32, f16, q8, had f8");
    check_refused({"run", "--threads", "0", "-p", "x"}, 2, "--threads, want a whole number from 1 to 256, had 0");
    check_refused({"run", "--cpus", "0,,1", "-p", "x"}, 2, "--cpus, want a whole number");
    check_refused({"plan"}, 2, "MODEL or --preset NAME, want one of them, had neither");
    check_refused({"plan", "a", "--preset", "gpt2"}, 2, "had both");
    check_refused({"plan", "--preset", "gpt9"}, 2, "--preset, want one of gpt2, ");
    check_refused({"inspect"}, 2, "MODEL, want a Fovea file, had none");
    check_refused({"tokenize", "a"}, 2, "-p, want a text, had none");
    check_refused({"logits", "a"}, 2, "--tokens or -p, want one of them, had neither");
    check_refused({"logits", "a", "--tokens", "1", "-p", "x"}, 2, "had both");
    check_refused({"convert", "a"}, 2, "-o, want the file to write, had none");
    check_refused({"convert", "-o", "a"}, 2, "SOURCE, want a model to convert, had none");
    check_refused({"bench"}, 2, "MODEL or --preset NAME");
    check_refused({"bench", "--preset", "demo", "--type", "f31"}, 2,
                  "--type, want one of f32, f16, bf16, q8, q4, had f31");
}

TEST_CASE("cli: what this machine does not have") {
    check_refused({"run", "-p", "x", "--isa", "mmx"}, 1, "--isa, want one of ");
    check_refused({"run", "-p", "x", "--isa", "mmx"}, 1, "scalar, had mmx");
    check_refused({"run", "-p", "x", "--cpus", "1023"}, 1, "--cpus, want ");
}

TEST_CASE("cli: files that are no models") {
    const TemporaryFolder folder;
    const std::string file = demo_file();
    const std::string none = (folder / "none.fovea").string();
    check_refused({"inspect", none}, 1, none + ": open, want a regular file that can be read, had No such file");
    check_refused({"run", none, "-p", "x"}, 1, "No such file");
    check_refused({"inspect", folder.path().string()}, 1, "had Is a directory");
    check_refused({"inspect", written(folder, "empty", "")}, 1, "empty: truncated");
    std::string magic = file;
    magic[3] ^= 1;
    check_refused({"inspect", written(folder, "magic", magic)}, 1, "first bytes, want a Fovea file's");
    for (std::size_t i = 1; i <= 20; ++i) {
        const std::string part = file.substr(0, file.size() * i / 21);
        check_refused({"inspect", written(folder, "part", part)}, 1, "part: truncated: want ");
        check_refused({"run", (folder / "part").string(), "-p", "x"}, 1, "part: truncated: want ");
    }
    std::string newer = file;
    FileHeader header;
    std::memcpy(&header, newer.data(), sizeof header);
    ++header.major;
    header.header_crc = crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(FileHeader, header_crc)));
    std::memcpy(newer.data(), &header, sizeof header);
    check_refused({"inspect", written(folder, "newer", newer)}, 1, "newer: version unsupported: want 1 ");
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
    check_refused({"inspect", written(folder, "weight", weight)}, 1, "weight: checksum mismatch");
}

TEST_CASE("cli: more tokens than the context holds") {
    std::string longest;
    for (int i = 0; i < 300; ++i) longest += "lamp ";
    check_refused({"run", "-p", longest}, 1, "prompt and new tokens, want at most 256 positions, had ");
    check_refused({"run", "-p", "lights", "-n", "256"}, 1, "want at most 256 positions, had ");
    check_refused({"run", "-p", "lights off", "-n", "10", "--context", "8"}, 1, "want at most 8 positions, had ");
    check_refused({"run", "-p", "lights", "--context", "257"}, 1,
                  "--context, want at most demo's 256 positions, had 257");
    check_refused({"certify", "-p", longest}, 1, "prompt, want at most 256 positions");
    check_refused({"plan", "--preset", "demo", "--context", "257"}, 1, "demo: bad limits: want 256 positions");
    check_refused({"bench", "--preset", "stories260k", "-p", "500", "-n", "13"}, 1,
                  "want at most 512 positions, had 513");
}

TEST_CASE("cli: tokens that are out of range") {
    const TemporaryFolder folder;
    const std::string model = written(folder, "demo.fovea", demo_file());
    check_refused({"logits", model, "--tokens", "1,512"}, 1, "token out of range: want ");
    check_refused({"logits", model, "--tokens", "1,-2"}, 2, "--tokens, want a whole number");
    check_refused({"logits", model, "--tokens", ""}, 2, "--tokens, want a whole number");
    check_refused({"logits", model, "--tokens", "0-256"}, 1, "tokens, want 1 to 256 of them in a sequence, had 257");
    check_refused({"logits", model, "--tokens", written(folder, "a.npy", "\x93NUMPX")}, 1,
                  "first bytes, want an .npy file's");
    check_refused({"logits", model, "--tokens", "1", "-o", (folder / "no/such/folder.npy").string()}, 1,
                  "No such file");
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
    check_refused({"logits", model.string(), "--tokens", "1", "--context", "1048576"}, 1, "memory, want 1,2", settings);
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
    check_refused({"run", model}, 2, "prompt, want -p TEXT", silent);
    check_refused({"run", "--json"}, 2, "prompt, want -p TEXT with --json", silent);
    if (fs::exists(full.out_path)) check_refused({"run", "-p", "lights off", "--json"}, 1, "standard output", full);
}

}  // namespace
}  // namespace fovea::testing
