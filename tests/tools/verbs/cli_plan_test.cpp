// `fovea plan`, `certify` and `bench` of models of two stacks: the bytes that `run` and `transcribe` take, the same bits in every
// way, and what is refused.
#include <doctest/doctest.h>

#include "tests/support/command_line.h"

namespace fovea::testing {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

/// A golden folder's model as a file.
struct ModelFile {
    TemporaryFolder folder;
    std::string model = (folder / "model.fovea").string();

    explicit ModelFile(const std::string& source) { output_of({"convert", source, "-o", model, "--type", "f32"}); }

    [[nodiscard]] json asked(const char* verb, Words more) const {
        more.insert(more.begin(), {verb, model});
        more.push_back("--json");
        return json::parse(output_of(more));
    }
};

std::vector<std::string> pair_folders() {
    std::vector<std::string> folders;
    for (const auto& entry : fs::directory_iterator(golden("pairs"))) folders.push_back(entry.path().string());
    return folders;
}

Words joined(Words first, const Words& more) {
    first.insert(first.end(), more.begin(), more.end());
    return first;
}

void check_parts(const json& plan) {
    std::uint64_t end = 0;
    for (const json& part : plan["parts"]) {
        CHECK(part["offset"] == end);
        end += part["bytes"].get<std::uint64_t>();
    }
    CHECK(end == plan["arena_bytes"]);
}

const Words kSource{"--tokens", "5,6,7,3"};

}  // namespace

TEST_CASE("cli: plan's bytes are the ones that run takes of every model of two stacks") {
    std::size_t n_models = 0;
    for (const std::string& folder : pair_folders()) {
        CAPTURE(folder);
        const ModelFile pair(folder);
        for (const Words& settings :
             {Words{"--threads", "1"}, Words{"--threads", "2", "--beams", "1"}, Words{"--threads", "2", "--beams", "4"},
              Words{"--threads", "2", "--beams", "4", "--kv", "q8"}}) {
            const json plan = pair.asked("plan", settings), ran = pair.asked("run", joined(settings, kSource));
            CHECK(plan["arena_bytes"] == ran["arena_bytes"]);
            check_parts(plan);
        }
        CHECK(pair.asked("plan", {"--beams", "4"})["arena_bytes"] >
              pair.asked("plan", {"--beams", "2"})["arena_bytes"]);
        ++n_models;
    }
    CHECK(n_models >= 9);
}

TEST_CASE("cli: plan's bytes are the ones that transcribe takes, its recording's too") {
    const ModelFile whisper(golden("speech/whisper_talking"));
    const std::string three = golden("recordings/three.wav");
    for (const Words& settings : {Words{"--threads", "1"}, Words{"--threads", "2", "--words", "--kv", "f16"}}) {
        const json plan = whisper.asked("plan", joined(settings, {"--seconds", "1.5"}));
        const json ran = whisper.asked("transcribe", joined(settings, {three, "--language", "de", "--temp", "0"}));
        REQUIRE(ran["seconds"] == 1.5);
        CHECK(plan["arena_bytes"] == ran["arena_bytes"]);
        check_parts(plan);
    }
    const std::string unasked = output_of({"plan", whisper.model});
    CHECK(contains(unasked, ", a window (--seconds says another length)"));
    const auto of_hour = whisper.asked("plan", {"--seconds", "3600"})["arena_bytes"].get<std::uint64_t>(),
               of_half = whisper.asked("plan", {"--seconds", "1800"})["arena_bytes"].get<std::uint64_t>();
    CHECK(of_hour > of_half + 1800 * 64'000);
}

#if defined(FOVEA_FAULTS)
TEST_CASE("cli: run and transcribe work with the planned bytes, and refuse with one less") {
    const auto check = [](const Words& command, std::uint64_t n_bytes) {
        const auto with = [](std::uint64_t n) {
            RunSettings settings;
            settings.environment = {"LD_PRELOAD=" FOVEA_FAULTS, "FOVEA_ALIGNED_BYTES=" + std::to_string(n)};
            return settings;
        };
        const Ran ran = run_fovea(command, with(n_bytes));
        CAPTURE(ran.err);
        CHECK(ran.status == 0);
        check_refused(command, 1, "expected", with(n_bytes - 1));
    };
    // All of one beam's memory is arenas.
    for (const std::string& folder : pair_folders()) {
        CAPTURE(folder);
        const ModelFile pair(folder);
        const Words settings{"--threads", "2", "--beams", "1"};
        check(joined(joined({"run", pair.model, "--json"}, settings), kSource),
              pair.asked("plan", settings)["arena_bytes"]);
    }
    // Several beams' logits and beginnings, and a recording's samples and frames, are none.
    const auto aligned = [](const json& plan) {
        std::uint64_t n = 0;
        for (const json& part : plan["parts"]) {
            const std::string name = part["name"];
            if (name == "workspace" || name == "memory" || name == "text" || name == "frames' scratch")
                n += part["bytes"].get<std::uint64_t>();
        }
        return n;
    };
    const ModelFile pair(golden("pairs/marian"));
    check(joined({"run", pair.model, "--json", "--beams", "4", "--threads", "1"}, kSource),
          aligned(pair.asked("plan", {"--beams", "4", "--threads", "1"})));
    const ModelFile whisper(golden("speech/whisper_talking"));
    check({"transcribe", whisper.model, golden("recordings/three.wav"), "--language", "de", "--json", "--threads", "1"},
          aligned(whisper.asked("plan", {"--seconds", "1.5", "--threads", "1"})));
}
#endif

TEST_CASE("cli: certify finds the same bits in models of two stacks, whatever they read") {
    Words sources = pair_folders();
    sources.push_back(golden("speech/whisper_talking"));
    sources.push_back(golden("torch_text/translation"));
    for (const std::string& source : sources) {
        CAPTURE(source);
        const ModelFile model(source);
        const json made = model.asked("certify", {"--threads", "2"});
        CHECK(made["equal"] == true);
        CHECK(made["runs"].size() % 10 == 0);  // of each instruction set, of two numbers of threads
        for (const json& run : made["runs"]) CHECK(run["hash"] == made["hash"]);
        CHECK(model.asked("certify", {"--threads", "1", "--isa", "scalar"})["hash"] == made["hash"]);
        const Ran other = run_fovea({"certify", model.model, "--threads", "1", "--expect", "0123456789abcdef"});
        CHECK(other.status == 1);
        CHECK(contains(other.err, "logits' hash: expected 0123456789abcdef, got " + made["hash"].get<std::string>()));
    }
}

TEST_CASE("cli: certify of a model that hears reads -p beside the sound") {
    const ModelFile whisper(golden("speech/whisper_talking"));
    const auto hash_of = [&](const char* text) {
        return whisper.asked("certify", {"--threads", "1", "--isa", "scalar", "-p", text})["hash"];
    };
    CHECK(hash_of("one") != hash_of("two"));
}

TEST_CASE("cli: bench measures an encoder's pass and a decoder's tokens") {
    const ModelFile marian(golden("pairs/marian"));
    const json made = marian.asked("bench", {"-p", "9", "-n", "5", "--repeat", "1", "--threads", "1"});
    CHECK(made["n_prompt_tokens"] == 9);
    CHECK(made["n_tokens"] == 5);
    for (const char* field : {"prefill_tokens_per_second", "tokens_per_second", "prefill_share", "decode_share"})
        CHECK(made[field].get<double>() > 0);
    const json unasked = marian.asked("bench", {"--repeat", "1", "--threads", "1"});  // no more than it has positions
    CHECK(unasked["n_prompt_tokens"].get<int>() > 9);
    check_refused({"bench", marian.model, "-p", "100000"}, 1, "-p: expected at most ");
    check_refused({"bench", marian.model, "--sequences", "2"}, 2, "--sequences: expected a model that continues its");
    check_refused({"bench", marian.model, "--context", "9"}, 2,
                  "--context: expected a model that continues its prompt");
    const ModelFile whisper(golden("speech/whisper_talking"));
    CHECK(whisper.asked("bench", {"-n", "3", "--repeat", "1", "--threads", "1"})["prefill_tokens_per_second"] > 0);
    check_refused({"bench", whisper.model, "-p", "7"}, 2, "-p: expected a model that reads tokens");
}

TEST_CASE("cli: plan refuses options that do nothing for a model") {
    const DemoFile demo;
    const ModelFile marian(golden("pairs/marian")), whisper(golden("speech/whisper_talking"));
    check_refused({"plan", demo.path, "--beams", "2"}, 2,
                  "--beams: expected a model that writes one text from another");
    check_refused({"plan", whisper.model, "--beams", "2"}, 2, "--beams: expected a model that writes one text");
    for (const std::string& model : {demo.path, marian.model}) {
        check_refused({"plan", model, "--seconds", "2"}, 2, "--seconds: expected a model that hears and writes");
        check_refused({"plan", model, "--words"}, 2, "--words: expected a model that hears and writes");
    }
    check_refused({"plan", marian.model, "--batch", "2"}, 2, "--batch: expected a model that has one stack");
    check_refused({"plan", marian.model, "--context", "2"}, 1, "model: expected one that reads a text alone");
    check_refused({"plan", whisper.model, "--context", "2"}, 1, "model: expected one that reads text");
}

}  // namespace fovea::testing
