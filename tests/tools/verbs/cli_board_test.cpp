// `fovea plan --flash --ram` and `fovea embed`: what a firmware's builder asks before there is a board.
#include <nlohmann/json.hpp>

#include "fovea/fovea.h"
#include "fovea/host/opened.h"
#include "tests/support/command_line.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

Ran plan_of(const DemoFile& demo, std::vector<std::string> options) {
    options.insert(options.begin(), {"plan", demo.path});
    return run_fovea(options);
}

TEST_CASE("cli: plan says whether a board has the memory, to the byte") {
    const DemoFile demo;
    const Ran ample = plan_of(demo, {"--flash", "8M", "--ram", "4M"});
    CHECK(ample.status == 0);
    CHECK(ample.out.ends_with("\nfits\n"));
    const json board = json::parse(plan_of(demo, {"--flash", "1G", "--ram", "1G", "--json"}).out)["board"];
    CHECK(board["fits"] == true);
    CHECK(board["flash_bytes"] == demo_model_bytes().size() + 65536);
    for (const char* option : {"--flash", "--ram"}) {
        CAPTURE(option);
        const auto bytes = board[option == std::string("--ram") ? "ram_bytes" : "flash_bytes"].get<std::uint64_t>();
        CHECK(plan_of(demo, {option, std::to_string(bytes)}).status == 0);
        const Ran ran = plan_of(demo, {option, std::to_string(bytes - 1)});
        CHECK(ran.status == 1);
        CHECK(ran.err.find("does not fit: " + std::string(option == std::string("--ram") ? "RAM" : "flash")) !=
              std::string::npos);
        CHECK(ran.out.find("does not fit") != std::string::npos);
    }
    CHECK(plan_of(demo, {"--flash", "1M", "--ram", "1K"}).err.find("does not fit: flash") != std::string::npos);
}

/// A form of the demo's vocabulary, as firmware has it.
std::string write_form(const DemoFile& demo) {
    const std::string path = (demo.folder / "answers.form").string();
    CHECK(run_fovea({"grammar", demo.path, "--regex", "yes|no", "-o", path}).status == 0);
    return path;
}

TEST_CASE("cli: plan counts answers of a form") {
    const DemoFile demo;
    const std::string form = write_form(demo);
    const auto plan = [&](std::vector<std::string> more) {
        more.insert(more.end(), {"--flash", "1G", "--ram", "1G"});
        return plan_of(demo, more);
    };
    const json without = json::parse(plan({"--json"}).out)["board"];
    const json with = json::parse(plan({"--json", "--form", form}).out)["board"];
    const Ran made = run_fovea({"grammar", demo.path, "--regex", "yes|no", "-o", form, "--json"});
    const json figures = json::parse(made.out);
    CHECK(with["flash_bytes"].get<std::uint64_t>() ==
          without["flash_bytes"].get<std::uint64_t>() + figures["bytes"].get<std::uint64_t>() + 8192);
    CHECK(with["ram_bytes"].get<std::uint64_t>() == without["ram_bytes"].get<std::uint64_t>() +
                                                        figures["state_bytes"].get<std::uint64_t>() +
                                                        FOVEA_CONSTRAINT_BYTES);
    CHECK(plan({"--form", demo.path}).err.find("expected a form that fovea grammar wrote") != std::string::npos);
    const Ran alone = plan_of(demo, {"--form", form});
    CHECK(alone.status == 2);
    CHECK(alone.err.find("--form: expected a MODEL with --flash or --ram, got none") != std::string::npos);
}

/// The demo's program, as examples/bare_metal has it: 128 positions, 16 tokens together, texts of 64 bytes.
std::vector<std::string> bare_metal(std::vector<std::string> more) {
    more.insert(more.end(), {"--context", "128", "--batch", "16", "--json"});
    return more;
}

TEST_CASE("cli: plan counts all that the bare-metal example takes") {
    const DemoFile demo;
    const json board = json::parse(plan_of(demo, bare_metal({"--ram", "512K", "--flash", "8M"})).out)["board"];
    std::map<std::string, std::uint64_t> pieces;
    std::uint64_t sum = 0;
    for (const json& piece : board["ram"]) sum += pieces[piece["name"]] = piece["bytes"].get<std::uint64_t>();
    CHECK(sum == board["ram_bytes"]);
    CHECK(pieces["session"] + pieces["generator"] == 435'136);  // as docs/boards.md has it from the emulated boards
    CHECK(sum == 435'136 + 4'096 + 4 * 128 + 8'192);
    CHECK(plan_of(demo, bare_metal({"--ram", "447936"})).status == 0);
    CHECK(plan_of(demo, bare_metal({"--ram", "447935"})).status == 1);
}

TEST_CASE("cli: grammar and plan say what the C interface asks for a form's text") {
    const DemoFile demo;
    const std::string path = write_form(demo);
    const json made = json::parse(run_fovea({"grammar", demo.path, "--regex", "yes|no", "-o", path, "--json"}).out);
    const std::string text = read_text(path);
    AlignedBytes form(text.size());
    std::memcpy(form.data(), text.data(), text.size());
    alignas(8) std::byte handle[FOVEA_MODEL_BYTES], place[FOVEA_CONSTRAINT_BYTES];
    fovea_model* model = nullptr;
    fovea_constraint* constraint = nullptr;
    const std::span<const std::byte> file = demo_model_bytes();
    REQUIRE(fovea_open_model(file.data(), file.size(), 0, handle, sizeof handle, &model).code == FOVEA_OK);
    REQUIRE(fovea_open_constraint(model, form.data(), form.size(), nullptr, 0, place, sizeof place, &constraint).code ==
            FOVEA_OK);
    const std::uint64_t n_bytes = fovea_constraint_state_bytes(constraint);
    CHECK(made["state_bytes"] == n_bytes);
    AlignedBytes state(n_bytes);
    fovea_constraint_state* at = nullptr;
    CHECK(fovea_make_constraint_state(constraint, state.data(), n_bytes, &at).code == FOVEA_OK);
    CHECK(fovea_make_constraint_state(constraint, state.data(), n_bytes - 1, &at).code == FOVEA_ARENA_TOO_SMALL);
}

TEST_CASE("cli: plan names the parts that a model needs, and counts a library that has them") {
    const TemporaryFolder folder;
    const auto board_of = [&](const std::string& source, std::vector<std::string> more) {
        const std::string path = (folder / "model.fovea").string();
        more.insert(more.begin(), {"convert", source, "-o", path});
        output_of(more);
        return json::parse(output_of({"plan", path, "--flash", "1G", "--ram", "1G", "--json"}))["board"];
    };
    const DemoFile demo;
    const json plain = board_of(demo.path, {"--type", "q8"});
    CHECK(plain["needed_parts"].empty());
    CHECK(plain["flash"][1]["bytes"] == 65'536);
    struct Case {
        std::string source;
        std::vector<std::string> options, parts;
    };
    const Case cases[] = {
        {demo.path, {"--type", "q6_k"}, {"gguf_types"}},
        {demo.path, {"--type", "bf16"}, {"bf16"}},
        {golden("encoders/bert_masked"), {"--type", "f32"}, {"vectors"}},
        {golden("encoders/bert_sentence"), {"--type", "f32"}, {"vectors", "word_piece"}},
        {golden("families/gemma2"), {"--type", "f32"}, {"block_variants"}},
        {golden("families/mixtral"), {"--type", "f32"}, {"experts"}},
        {golden("families/deepseek_v3"), {"--type", "f32"}, {"experts", "latent"}},
        {golden("families/gemma4_text"), {"--type", "f32"}, {"layer_inputs"}},
        {golden("pairs/marian"), {"--type", "f32"}, {"vectors"}},
    };
    for (const Case& each : cases) {
        CAPTURE(each.source);
        const json board = board_of(each.source, each.options);
        for (const std::string& part : each.parts) {
            CAPTURE(part);
            const json &needed = board["needed_parts"], &without = board["without"];
            CHECK(std::find(needed.begin(), needed.end(), part) != needed.end());
            CHECK(std::find(without.begin(), without.end(), part) == without.end());
        }
        CHECK(board["flash"][1]["bytes"] == 192 << 10);
    }
    const std::string whisper = (folder / "whisper.fovea").string();
    output_of({"convert", golden("speech/whisper_talking"), "-o", whisper});
    check_refused({"plan", whisper, "--ram", "1G"}, 1, "board: expected a model that the C interface runs");
}

TEST_CASE("cli: the largest context that plan names fits, and one more does not") {
    const DemoFile demo;
    const json board = json::parse(plan_of(demo, {"--ram", "512K", "--kv", "f16", "--json"}).out)["board"];
    CHECK(board["fits"] == false);
    const auto context = board["largest_context"].get<std::uint32_t>();
    for (const std::uint32_t n : {context, context + 1})
        CHECK(plan_of(demo, {"--ram", "512K", "--kv", "f16", "--context", std::to_string(n)}).status ==
              (n == context ? 0 : 1));
    CHECK(plan_of(demo, {"--ram", "9K"}).err.find("no context would") != std::string::npos);
}

/// The words of a file that embed wrote.
std::vector<std::uint32_t> words_of(const std::string& text) {
    std::vector<std::uint32_t> words;
    const std::string directive = "    .4byte ";
    for (std::size_t at = text.find(directive); at != text.npos; at = text.find(directive, at))
        for (at += directive.size() - 1; text[at] != '\n';) {
            char* end = nullptr;
            words.push_back(static_cast<std::uint32_t>(std::strtoul(text.c_str() + at + 1, &end, 16)));
            at = static_cast<std::size_t>(end - text.c_str());
        }
    return words;
}

TEST_CASE("cli: embed writes every byte of a file") {
    const DemoFile demo;
    const std::string out = (demo.folder / "model.S").string();
    CHECK(run_fovea({"embed", demo.path, "-o", out, "--symbol", "home"}).status == 0);
    const std::string text = read_text(out);
    for (const char* part : {"home:\n", "home_end:\n", ".balign 64\n", "home[], home_end[]", "a Fovea model"})
        CHECK(text.find(part) != std::string::npos);
    const std::vector<std::uint32_t> words = words_of(text);
    REQUIRE(words.size() * 4 == demo_model_bytes().size());
    CHECK(std::memcmp(words.data(), demo_model_bytes().data(), demo_model_bytes().size()) == 0);
}

TEST_CASE("cli: embed writes a form of answers, and refuses what is none for a board") {
    const DemoFile demo;
    const std::string form = write_form(demo), out = (demo.folder / "form.S").string();
    CHECK(run_fovea({"embed", form, "-o", out}).status == 0);
    const std::string text = read_text(out), bytes = read_text(form);
    for (const char* part : {"fovea_form:\n", "fovea_form_end:\n", "fovea_form[], fovea_form_end[]", "a Fovea form"})
        CHECK(text.find(part) != std::string::npos);
    const std::vector<std::uint32_t> words = words_of(text);
    REQUIRE(words.size() == bytes.size() / 4);
    CHECK(std::memcmp(words.data(), bytes.data(), words.size() * 4) == 0);
    std::filesystem::remove(out);
    const auto refused = [&](std::string changed, const std::string& expected) {
        write_text(form, changed);
        const Ran ran = run_fovea({"embed", form, "-o", out});
        CAPTURE(ran.err);
        CHECK(ran.status == 1);
        CHECK(ran.err.find("answers.form: " + expected) != std::string::npos);
        CHECK(!std::filesystem::exists(out));
    };
    const std::string n = std::to_string(bytes.size());
    refused(bytes.substr(0, 60), "bytes of a form at least: expected 64, got 60");
    refused(bytes.substr(0, bytes.size() - 1), "bytes of a form: expected " + n + ", got ");
    refused(bytes + "x", "bytes of a form: expected " + n + ", got ");
    std::string later = bytes;
    later[8] = 2;
    refused(later, "a form's version: expected 1, got 2");
    // The last of the header's counts but two words is that of the index: none, and the file ends before it.
    std::string without = bytes;
    constexpr std::size_t kIndexBytesAt = 52;
    std::uint32_t index_bytes = 0;
    std::memcpy(&index_bytes, without.data() + kIndexBytesAt, sizeof index_bytes);
    std::memset(without.data() + kIndexBytesAt, 0, sizeof index_bytes);
    refused(without.substr(0, without.size() - index_bytes), "expected a form with an index of its own");
}

TEST_CASE("cli: what embed refuses") {
    const DemoFile demo;
    const std::string out = (demo.folder / "model.S").string();
    const auto refused = [](const std::vector<std::string>& arguments, int status, const std::string& words) {
        const Ran ran = run_fovea(arguments);
        CAPTURE(ran.err);
        CHECK(ran.status == status);
        CHECK(ran.err.find(words) != std::string::npos);
    };
    refused({"embed"}, 2, "MODEL: expected a Fovea file");
    refused({"embed", demo.path}, 2, "-o: expected the file to write, got none");
    refused({"embed", demo.path, "-o", out, "--symbol", "9a"}, 2, "--symbol: expected a name as C has them, got 9a");
    refused({"embed", demo.path, "-o", out + "/x"}, 1, "x: cannot be written: ");
    refused({"plan", demo.path, "--ram", "12Q"}, 2, "--ram: expected a whole number");
    refused({"plan", "--preset", "gpt2", "--flash", "1M"}, 2, "--flash: expected a MODEL");
    refused({"plan", "--preset", "gpt2", "--ram", "1M"}, 2, "--ram: expected a MODEL");
    std::string damaged(reinterpret_cast<const char*>(demo_model_bytes().data()), demo_model_bytes().size());
    damaged.back() ^= 1;
    write_text(demo.path, damaged);
    refused({"embed", demo.path, "-o", out}, 1, "weights: expected crc ");
    CHECK(!std::filesystem::exists(out));
}

}  // namespace
}  // namespace fovea::testing
