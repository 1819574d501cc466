// The command line's contract where all is well.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "fovea/host/opened.h"
#include "fovea/host/runtime.h"
#include "fovea/session.h"
#include "host/base/npy.h"
#include "tests/support/command_line.h"
#include "tests/support/emulated_tiles.h"
#include "tests/support/small_models.h"
#include "tools/measure/available_memory.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

TEST_CASE("cli: every verb has help, on standard output") {
    for (const char* verb : {"run", "convert", "inspect", "plan", "logits", "attend", "encode", "tokenize", "bench",
                             "certify", "eval", "embed"}) {
        CAPTURE(verb);
        const Ran ran = run_fovea({verb, "--help"});
        CHECK(ran.status == 0);
        CHECK(ran.err == "");
        for (const char* option : {"--threads", "--cpus", "--isa", "--json", "--help"})
            CHECK(contains(ran.out, option));
    }
    const std::string help = output_of({"--help"});
    for (const char* verb : {"run", "convert", "inspect", "plan", "logits", "attend", "encode", "tokenize", "bench",
                             "certify", "eval", "embed"})
        CHECK(contains(help, verb));
}

TEST_CASE("cli: plan counts GPT-3 to the last parameter") {
    const std::string plan = output_of({"plan", "--preset", "gpt3"});
    for (const char* map : {"query map", "key map", "value-down map", "value-up map"}) {
        CAPTURE(map);
        const std::size_t at = plan.find(map);
        REQUIRE(at != plan.npos);
        CHECK(contains(plan.substr(at, plan.find('\n', at) - at), " 1,572,864"));
    }
    for (const char* number : {" 6,291,456\n", " 603,979,776 ", " 57,982,058,496   33.2 %", " 150,994,944\n"})
        CHECK(contains(plan, number));
}

TEST_CASE("cli: plan's bytes are the ones a run takes") {
    const DemoFile demo;
    const json plan = json::parse(output_of({"plan", demo.path, "--context", "100", "--threads", "2", "--json"}));
    const json ran =
        json::parse(output_of({"run", demo.path, "-p", "lights off", "--context", "100", "--threads", "2", "--json"}));
    CHECK(plan["arena_bytes"] == ran["arena_bytes"]);
    std::uint64_t end = 0;
    for (const json& part : plan["parts"]) {
        CHECK(part["offset"] == end);
        end = part["offset"].get<std::uint64_t>() + (part["bytes"].get<std::uint64_t>() + 63) / 64 * 64;
    }
    CHECK(end == plan["arena_bytes"]);
    const json half =
        json::parse(output_of({"plan", demo.path, "--context", "100", "--threads", "2", "--kv", "f16", "--json"}));
    CHECK(half["arena_bytes"] < plan["arena_bytes"]);
}

TEST_CASE("cli: run prints the continuation and nothing else on standard output") {
    const Ran ran = run_fovea({"run", "-p", "turn on the kitchen light"});
    CHECK(ran.status == 0);
    CHECK(ran.out == "{\"do\":\"on\",\"device\":\"light\",\"room\":\"kitchen\"}\n");
    CHECK(contains(ran.err, "tokens per second"));
    CHECK(output_of({"run", "-p", "turn on the kitchen light", "--echo"}) ==
          "turn on the kitchen light\n{\"do\":\"on\",\"device\":\"light\",\"room\":\"kitchen\"}\n");
    CHECK(output_of({"run", "-p", "turn on the kitchen light", "-n", "0"}) == "\n");
    const json object =
        json::parse(output_of({"run", "-p", "lock the front door", "--threads", "2", "--json", "--echo"}));
    CHECK(object["text"] == "{\"do\":\"lock\",\"device\":\"front door\"}");
    CHECK(object["n_threads"] == 2);
    CHECK(object["isa"] == best_without_tiles());
    CHECK(object["file_bytes"] == demo_model_bytes().size());
    for (const char* field :
         {"n_tokens", "n_prompt_tokens", "tokens_per_second", "prefill_tokens_per_second", "arena_bytes"})
        CHECK(object[field] > 0);
}

TEST_CASE("cli: run stops where its context ends") {
    const std::string text = output_of({"run", "-p", "lights off"});
    for (const char* most : {"-1", "256", "4294967294"})
        CHECK(output_of({"run", "-p", "lights off", "-n", most}) == text);
    const json all = json::parse(output_of({"run", "-p", "lights off", "-n", "-1", "--context", "9", "--json"}));
    CHECK(all["n_prompt_tokens"].get<int>() + all["n_tokens"].get<int>() == 9);
    const std::string fill = "lights off in the kitchen and in the hall";
    const json none = json::parse(output_of({"run", "-p", fill, "-n", "0", "--json"}));
    const std::string context = std::to_string(none["n_prompt_tokens"].get<int>());
    CHECK(json::parse(output_of({"run", "-p", fill, "-n", "0", "--context", context, "--json"}))["n_tokens"] == 0);
    check_refused({"run", "-p", fill, "-n", "1", "--context", context}, 1,
                  "which a context of " + context + " has room");
}

TEST_CASE("cli: run samples the same text from the same seed") {
    const auto text = [](const char* seed, const char* isa) {
        return output_of({"run", "-p", "turn", "--temp", "3", "--top-k", "50", "--top-p", "0.99", "--min-p", "0.001",
                          "--repeat-penalty", "1.1", "--seed", seed, "--isa", isa, "-n", "60"});
    };
    CHECK(text("1", isas_of_cpu().front()) == text("1", "scalar"));
    CHECK(text("1", "scalar") != text("2", "scalar"));
}

TEST_CASE("cli: penalties and biases of run") {
    const auto text = [](std::vector<std::string> options) {
        options.insert(options.begin(), {"run", "-p", "play jazz in the kitchen", "-n", "40"});
        return output_of(options);
    };
    const std::string plain = text({});
    CHECK(text({"--frequency-penalty", "0", "--presence-penalty", "0", "--repeat-last-n", "7"}) == plain);
    for (const char* penalty : {"--frequency-penalty", "--presence-penalty"}) {
        CHECK(text({penalty, "100"}) != plain);
        CHECK(text({penalty, "100", "--repeat-last-n", "-1"}) != plain);
        CHECK(text({penalty, "100", "--repeat-last-n", "0"}) == plain);
        check_refused({"run", "-p", "x", penalty, "1001"}, 2, penalty);
    }
    const DemoFile demo;
    const json first =
        json::parse(output_of({"logits", demo.path, "-p", "play jazz in the kitchen\n", "--top", "2", "--json"}));
    const std::string best = std::to_string(first["top"][0]["id"].get<int>());
    const std::string second = std::to_string(first["top"][1]["id"].get<int>());
    CHECK(text({"--logit-bias", best + "-inf"}) != plain);
    CHECK(text({"--logit-bias", second + "+1000"}) != plain);
    CHECK(text({"--logit-bias", best + "+0"}) == plain);
    CHECK(text({"--logit-bias", best + "-inf", "--logit-bias", second + "+1e3"}) ==
          text({"--logit-bias", second + "+1000", "--logit-bias", best + "-inf"}));
    for (const char* wrong : {"7", "7+", "+7", "7+x", "7+inf", "7+nan", "7+0x10", "7+1e31", "a+1", "7-1 "})
        check_refused({"run", "-p", "x", "--logit-bias", wrong}, 2, "--logit-bias: expected");
    check_refused({"run", "-p", "x", "--logit-bias", "99999999+1"}, 1, "--logit-bias: expected ids below");
    check_refused({"run", "-p", "x", "--repeat-last-n", "-2"}, 2, "--repeat-last-n");
}

TEST_CASE("cli: run without anything shows what the built-in model does") {
    const std::string shown = output_of({"run"});
    for (const char* word :
         {"rooms", "lights", "switches", "heating", "blinds", "locks", "timers", "alarms", "reminders", "lists",
          "music", "questions", "guess", "{\"do\":\"timer\",\"seconds\":1500}"})
        CHECK(contains(shown, word));
    const std::string last = shown.substr(shown.rfind('\n', shown.size() - 2) + 1);
    for (const char* word : {"tokens per second", "arena bytes", best_without_tiles(), "thread", "file bytes"})
        CHECK(contains(last, word));
}

TEST_CASE("cli: tokenize and logits speak of the same tokens") {
    const DemoFile demo;
    const std::string ids = output_of({"tokenize", demo.path, "-p", "lights off"});
    CHECK(ids.find('\n') == ids.size() - 1);
    CHECK(ids.starts_with("0 "));  // the start token
    std::string list = ids.substr(0, ids.size() - 1);
    const std::string by_ids = output_of({"logits", demo.path, "--tokens", list});
    std::replace(list.begin(), list.end(), ' ', ',');
    CHECK(output_of({"logits", demo.path, "--tokens", list}) == by_ids);
    CHECK(output_of({"logits", demo.path, "-p", "lights off"}) == by_ids);
    CHECK(std::count(by_ids.begin(), by_ids.end(), '\n') == 10);
    const json object = json::parse(output_of({"logits", demo.path, "--tokens", list, "--top", "3", "--json"}));
    CHECK(object["top"].size() == 3);
    const json tokens = json::parse(output_of({"tokenize", demo.path, "-p", "lights off", "--json"}));
    CHECK(tokens["n_tokens"] == object["n_tokens"]);
}

TEST_CASE("cli: logits writes every row, the same whatever the memory") {
    const DemoFile demo;
    const std::string output = (demo.folder / "logits.npy").string();
    CHECK(output_of({"logits", demo.path, "--tokens", "0-199", "-o", output}) == "");
    const NpyArray array = read_npy(output);
    CHECK(array.type == "f4");
    CHECK(array.shape == std::vector<std::uint64_t>{200, 512});
    const json all = json::parse(output_of({"logits", demo.path, "--tokens", "0-199", "--json"}));
    const json half = json::parse(output_of({"logits", demo.path, "--tokens", "0-99", "--json"}));
    CHECK(all["hash"] != half["hash"]);
    host::Opened opened = open_path(demo.path);
    host::Runtime<Session> running = start_session(opened, {}, {.isa = "scalar"});
    std::vector<Token> tokens(200);
    for (Token i = 0; i < 200; ++i) tokens[i] = i;
    std::vector<float> logits(200 * 512);
    REQUIRE(forward(*running, tokens, logits).ok());
    CHECK(std::memcmp(logits.data(), array.data.data(), array.data.size()) == 0);
}

TEST_CASE("cli: logits --trace names the layers' operations and hashes them alike on every instruction set") {
    const DemoFile demo;
    const std::string best = output_of({"logits", demo.path, "--tokens", "5,6,7", "--trace"});
    CHECK(output_of({"logits", demo.path, "--tokens", "5,6,7", "--trace", "--isa", "scalar", "--threads", "1"}) ==
          best);
    CHECK(output_of({"logits", demo.path, "--tokens", "5,6,8", "--trace"}) != best);
    for (const char* operation : {"embedding", "attended", "block", "logits"}) CHECK(contains(best, operation));
}

TEST_CASE("cli: inspect lists what is in the file") {
    const DemoFile demo;
    const std::string text = output_of({"inspect", demo.path});
    for (const char* part : {"5 layers", "4 query heads and 2 key-value heads of 32", "tied", " 927,104\n",
                             "token_embedding", "verified", "512 x 128"})
        CHECK(contains(text, part));
    const json object = json::parse(output_of({"inspect", demo.path, "--json"}));
    CHECK(object["parameters"]["total"] == 927104);
    CHECK(object["file_bytes"] == fs::file_size(demo.path));
    std::uint64_t bytes = 0;
    for (const json& tensor : object["tensors"]) bytes += tensor["bytes"].get<std::uint64_t>();
    CHECK(bytes == object["bytes"]["total"]);
}

TEST_CASE("cli: certify says equal, and holds the hash against the one expected") {
    const std::string verdict = output_of({"certify", "-p", "lights off", "--threads", "2"});
    CHECK(verdict.ends_with("\nequal\n"));
    CHECK(std::count(verdict.begin(), verdict.end(), '\n') == 3);
    CHECK(contains(verdict, " ways to compute them, "));
    const std::string text = output_of({"certify", "-p", "lights off", "--threads", "2", "--rows"});
    CHECK(text.ends_with("\nequal\n"));
    CHECK(contains(text, verdict.substr(verdict.find('\n') + 1, 16) + "  scalar, "));
    for (const char* isa : isas_of_cpu()) CHECK(contains(text, std::string(isa) + ", 2 threads, pieces of 7\n"));
    const std::string hash = text.substr(text.find('\n') + 1, 16);
    CHECK(run_fovea({"certify", "-p", "lights off", "--threads", "1", "--expect", hash}).status == 0);
    const Ran other = run_fovea({"certify", "-p", "lights on", "--threads", "1", "--expect", hash});
    CHECK(other.status == 1);
    CHECK(contains(other.err, "fovea: logits' hash: expected " + hash + ", got "));
    const json object = json::parse(output_of({"certify", "-p", "lights off", "--threads", "1", "--json"}));
    CHECK(object["hash"] == hash);
    CHECK(object["equal"] == true);
}

TEST_CASE("cli: bench measures speeds and ceilings") {
    const json object = json::parse(output_of({"bench", "--preset", "stories260k", "--type", "f16", "-p", "16", "-n",
                                               "4", "--repeat", "1", "--threads", "1", "--json"}));
    for (const char* field :
         {"prefill_tokens_per_second", "tokens_per_second", "fma_peak", "read_peak", "prefill_share", "decode_share"})
        CHECK(object[field] > 0);
}

TEST_CASE("cli: bench refuses a model that neither memory nor the disk holds before it writes any of it") {
    const TemporaryFolder folder;
    RunSettings settings;
    settings.file_bytes = 1 << 20;  // in case that this machine holds it
    settings.environment = {"TMPDIR=" + folder.path().string()};
    constexpr std::uint64_t kBytes = std::uint64_t{700} << 30;
    if (available_memory() < kBytes)
        check_refused({"bench", "--preset", "gpt3"}, 1, "gpt3: memory: expected ", settings);
    else
        check_refused({"bench", "--preset", "gpt3"}, 1,
                      fs::space(folder.path()).available < kBytes ? "expected room for " : "", settings);
    CHECK(folder.n_files() == 0);
}

TEST_CASE("cli: bench of quantized weights sets prefill beside the peak of products of bytes") {
    for (const char* type : {"q8", "q4"}) {
        const json object = json::parse(output_of({"bench", "--preset", "stories260k", "--type", type, "-p", "16", "-n",
                                                   "4", "--repeat", "1", "--threads", "1", "--json"}));
        for (const char* field : {"int8_peak", "prefill_share", "decode_share"}) CHECK(object[field] > 0);
        CHECK_FALSE(object.contains("fma_peak"));
    }
}

TEST_CASE("cli: eval prints perplexity, and the distance from another model") {
    const TemporaryFolder folder;
    const std::string text = (folder / "text.txt").string(), model = (folder / "q4.fovea").string();
    write_text(text, "switch off the light in the kitchen");
    const std::string demo = FOVEA_SOURCE_DIR "/tools/demo/demo.fovea";
    const Ran converted = run_fovea({"convert", demo, "-o", model, "--type", "q4", "--json"});
    CHECK(contains(converted.err, " tensors quantized: relative error 0.0"));
    const json losses = json::parse(converted.out)["quantized"];
    CHECK(losses.size() > 10);
    for (const json& loss : losses) {
        const bool kept = loss["role"] == "token_embedding";
        CHECK(loss["type"] == (kept ? "q8" : "q4"));
        CHECK(loss["relative_error"] > (kept ? 0.002 : 0.02));
        CHECK(loss["relative_error"] < (kept ? 0.01 : 0.1));
    }
    const json object = json::parse(output_of({"eval", model, "--text", text, "--against", demo, "--json"}));
    CHECK(object["perplexity"] > 1);
    CHECK(object["n_predicted"] > 3);
    CHECK(object["against"]["kl_divergence"] > 0);
    CHECK(contains(output_of({"eval", demo, "--text", text, "--kv", "f16", "--context", "8"}), "perplexity"));
    CHECK(contains(output_of({"eval", demo, "--text", text, "--against", demo}), "(+0.000 %), KL divergence 0.000000"));
    CHECK(contains(run_fovea({"eval", demo}).err, "fovea: --text: expected a file, got none"));
    write_text(text, "");
    const Ran empty = run_fovea({"eval", demo, "--text", text});
    CHECK(empty.status == 1);
    CHECK(contains(empty.err, "tokens: expected at least 2, got "));
}

TEST_CASE("cli: stories260K's text, on every instruction set, from both versions of its file") {
    const auto stories = reference_model("stories260k");
    if (!stories) return;
    const std::string want = read_text(*stories / "expected_greedy.txt");
    const TemporaryFolder folder;
    const std::string model = (folder / "stories.fovea").string();
    const auto text = [&](const char* isa, const char* n_threads) {
        return output_of({"run", model, "-p", "Once upon a time", "-n", "252", "--echo", "--temp", "0", "--isa", isa,
                          "--threads", n_threads});
    };
    CHECK(output_of({"convert", (*stories / "checkpoint_v1.bin").string(), "-o", model}) == "");
    CHECK(text(isas_of_cpu().front(), "2") == want);
    CHECK(output_of({"convert", (*stories / "checkpoint_legacy.bin").string(), "-o", model}) == "");
    for (const char* isa : isas_of_cpu())
        for (const char* n_threads : {"1", "2", "4"}) {
            CAPTURE(isa);
            CAPTURE(n_threads);
            CHECK(text(isa, n_threads) == want);
        }
    // The ids after the start token begin as the text does.
    const std::string ids = output_of({"tokenize", model, "-p", "Once upon a time"});
    const std::string all = "1 " + read_text(*stories / "expected_greedy_ids.txt");
    CHECK(all.starts_with(ids.substr(0, ids.size() - 1) + " "));
}

/// The reference checkpoint lacks the biases of queries, keys and values that upstream computed its logits with. While
/// it does, `convert` says so, and what it must give is in golden/ (make_nanosort.py).
TEST_CASE("cli: nanosort's logits are upstream's, or numpy's where the checkpoint lacks what upstream had") {
    const auto nanosort = reference_model("nanosort");
    if (!nanosort) return;
    const TemporaryFolder folder;
    const std::string model = (folder / "nanosort.fovea").string(), output = (folder / "logits.npy").string();
    const Ran converted = run_fovea({"convert", nanosort->string(), "-o", model});
    CHECK(converted.status == 0);
    const bool whole = converted.err.find("no transformer.h.0.attn.c_attn.bias in any layer") == std::string::npos;
    const std::string weights = (folder / "weights.npy").string();
    CHECK(output_of({"logits", model, "--tokens", (*nanosort / "tokens.npy").string(), "-o", output, "--weights",
                     weights, "--layer", "0", "--per-head"}) == "");
    const NpyArray seen = read_npy(weights);
    const NpyArray wanted_weights = read_npy(whole ? (*nanosort / "expected_layer0_weights.npy").string()
                                                   : std::string(FOVEA_GOLDEN_DIR "/nanosort_layer0_weights.npy"));
    REQUIRE(seen.shape == wanted_weights.shape);
    for (std::size_t i = 0; i < seen.data.size(); i += 4) {
        float got, wanted;
        std::memcpy(&got, seen.data.data() + i, 4);
        std::memcpy(&wanted, wanted_weights.data.data() + i, 4);
        CHECK(std::abs(got - wanted) <= 1e-5f);
    }
    const std::string expected =
        whole ? (*nanosort / "expected_logits.npy").string() : std::string(FOVEA_GOLDEN_DIR "/nanosort_logits.npy");
    const NpyArray want = read_npy(expected), got = read_npy(output);
    CHECK(got.shape == want.shape);
    REQUIRE(got.data.size() == want.data.size());
    float furthest = 0;
    for (std::size_t i = 0; i < got.data.size(); i += sizeof(float)) {
        float a, b;
        std::memcpy(&a, got.data.data() + i, sizeof a);
        std::memcpy(&b, want.data.data() + i, sizeof b);
        furthest = std::max(furthest, std::abs(a - b));
    }
    CHECK(furthest <= 1e-4f);  // the tolerance its README gives: another order of sums
}

}  // namespace
}  // namespace fovea::testing
