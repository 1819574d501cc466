// What is far too large is refused with one clear line, in no time: positions, batches, threads, texts, sparse files of
// 3 TB in place of every kind of file that is read.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstring>

#include "convert/writer/file_header.h"
#include "fovea/host/runtime.h"
#include "tests/support/command_line.h"
#include "tests/support/small_models.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

constexpr std::uint64_t kHuge = std::uint64_t{3} << 40;

/// A file of 3 TB, all of it a hole but for `front`; false where the file system holds no such file.
bool make_huge(const fs::path& path, const std::string& front = "") {
    write_text(path, front);
    std::error_code error;
    fs::resize_file(path, kHuge, error);
    return !error;
}

/// Whether addresses are left for so many bytes: not in 32 bits, nor beside the thread sanitizer's shadow.
bool has_addresses(std::uint64_t bytes) {
    if (bytes > SIZE_MAX) return false;
    void* at = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at != MAP_FAILED && munmap(at, static_cast<std::size_t>(bytes)) == 0;
}

TEST_CASE("oversized: numbers") {
    check_refused({"run", "-p", "x", "--context", "4294967295"}, 1,
                  "expected at most demo's 256 positions, got 4294967295");
    check_refused({"run", "-p", "x", "--context", "4294967296"}, 2,
                  "--context: expected 1 to 4294967295, got 4294967296");
    check_refused({"run", "-p", "x", "--context", std::string(3000, '9')}, 2,
                  "--context: expected 1 to 4294967295, got 9999");
    check_refused({"run", "-p", "x", "-n", "4294967295"}, 2, "-n: expected 0 to 4294967294, got 429496729");
    check_refused({"run", "-p", "x", "-n", "4294967296"}, 2, "-n: expected 0 to 4294967294, got 429496729");
    check_refused({"run", "-p", "x", "--threads", "4294967295"}, 2, "--threads: expected 1 to 256, got 4294967295");
    check_refused({"plan", "--preset", "demo", "--batch", "4294967295"}, 1, "tokens together: expected at most 256");
    check_refused({"plan", "--preset", "demo", "--batch", "99999999999999999999"}, 2, "--batch: expected 1 to ");
    check_refused({"bench", "--preset", "demo", "-p", "4294967295", "-n", "4294967295"}, 1,
                  "expected at most 256 positions");
}

TEST_CASE("oversized: a text of 10 MB") {
    const TemporaryFolder folder;
    const DemoFile demo;
    std::string text;
    while (text.size() < 10u << 20) text += "turn on the reading lamp, ";
    write_text(folder / "text", text);
    // As a prompt it can only come through the library: a command line holds no such argument.
    const host::Opened opened = open_path(demo.path);
    const std::vector<Token> tokens = opened.tokens(text);
    CHECK(tokens.size() > 1u << 20);
    host::Runtime<Session> running = start_session(opened, {});
    const Status full = forward(*running, tokens, {});
    CHECK(full.code == Code::context_full);
    CHECK(running->kv_len() == 0);
    check_refused({"run", "-p", text.substr(0, 100'000)}, 1, "prompt: expected at most 255 tokens, ");
}

TEST_CASE("oversized: files of 3 TB") {
    const TemporaryFolder folder;
    const DemoFile demo;
    const std::string out = (folder / "out").string();
    const auto in = [&](const char* name) { return (folder / name).string(); };
#if defined(FOVEA_EMULATED)
    constexpr bool kEmulated = true;  // in an address space within another
#else
    constexpr bool kEmulated = false;
#endif
    if (kEmulated || !has_addresses(kHuge) || !make_huge(folder / "huge")) {
        MESSAGE("skipped: this address space or file system holds no file of 3 TB");
        return;
    }
    for (const char* verb : {"inspect", "plan", "certify"})
        check_refused({verb, in("huge")}, 1, "huge: expected a Fovea file, got another kind");
    check_refused({"run", in("huge"), "-p", "x"}, 1, "huge: expected a Fovea file");
    check_refused({"run", "-p", "x", "--session", in("huge")}, 1, "huge: expected a saved session");
    check_refused({"attend", "--query", in("huge"), "-o", out}, 1, "huge: expected an .npy file, got another kind");
    check_refused({"logits", demo.path, "--tokens", in("huge")}, 2, "--tokens: expected a whole number");
    check_refused({"eval", demo.path, "--text", in("huge")}, 1,
                  "huge: text: expected at most 67,108,864 bytes, got more");
    const auto converts = [&](const std::string& source, const std::string& words) {
        check_refused({"convert", source, "-o", out}, 1, words);
        CHECK_FALSE(fs::exists(out));
    };
    converts(in("huge"), "huge: header, read as a llama2.c checkpoint: dim: expected a number from 1");
    REQUIRE(make_huge(folder / "m.gguf", std::string("GGUF\3\0\0\0", 8).append(16, '\xff')));
    converts(in("m.gguf"), "m.gguf: ");
    fs::create_directory(folder / "m");
    const fs::path model = golden_models() / "llama_tied";
    fs::copy(model / "config.json", folder / "m");
    REQUIRE(make_huge(folder / "m/model.safetensors", std::string("\0\0\0\0\0\0\0\1", 8) + "{}"));
    converts(in("m"), "model.safetensors: ");
    REQUIRE(make_huge(folder / "m/config.json", "{}"));
    converts(in("m"), "config.json: expected at most 4194304 bytes, got 3298534883328");
    REQUIRE(make_huge(folder / "tokenizer.json", "{}"));
    check_refused({"convert", model.string(), "--tokenizer", in("tokenizer.json"), "-o", out}, 1, "tokenizer.json: ");

    // A model may be as large as that: one that says so opens, and its plan is made, at once.
    Config config = llama_config(100, 1u << 15, 256, 256, 128, 1u << 17, 4096);
    FileHead head = make_head(random_model(config, 1), {.type = Type::bf16});
    seal(head, 0);
    REQUIRE(head.weights_bytes > kHuge);
    const std::string path = in("large.fovea");
    write_text(path, {reinterpret_cast<const char*>(head.bytes.data()), head.bytes.size()});
    fs::resize_file(path, head.bytes.size() + head.weights_bytes - 1);
    check_refused({"plan", path}, 1, "large.fovea: truncated: bytes of the file: expected ");
    fs::resize_file(path, head.bytes.size() + head.weights_bytes);
    CHECK(contains(output_of({"plan", path, "--context", "16"}), "arena"));
}

}  // namespace
}  // namespace fovea::testing
