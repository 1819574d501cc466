// `run --stop`, `--speculate` and `--draft`: where a text ends, and that guessing ahead changes nothing but the passes.
#include <doctest/doctest.h>

#include "tests/support/command_line.h"
#include "tests/support/small_models.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

json ran(std::vector<std::string> more, const char* prompt = "turn on the kitchen light and then the bedroom light") {
    std::vector<std::string> arguments{"run", "-p", prompt, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json::parse(output_of(arguments));
}

TEST_CASE("cli: run --stop ends the text before any of its texts") {
    const std::string whole = ran({})["text"];
    CHECK(ran({})["finish"] == "end");
    const json stopped = ran({"--stop", "never", "--stop", "\"device"});
    CHECK(stopped["text"] == whole.substr(0, whole.find("\"device")));
    CHECK(stopped["finish"] == "stop");
    CHECK(ran({"--stop", "never"})["text"] == whole);
    CHECK(ran({"-n", "3"})["finish"] == "length");
    CHECK(output_of({"run", "-p", "lock the front door", "--stop", "front"}) == "{\"do\":\"lock\",\"device\":\"\n");
    check_refused({"run", "-p", "a", "--stop", ""}, 2, "--stop: expected a text");
    check_refused({"run", "-p", "a", "--stop", "\xff"}, 1, "not UTF-8");
}

TEST_CASE("cli: run --speculate and --draft change no text, and --json says how many passes it took") {
    const DemoFile demo;
    for (const char* temperature : {"0", "0.8"}) {
        const std::vector<std::string> sampled{"--temp", temperature, "--seed", "5", "-n", "100"};
        const auto with = [&](std::vector<std::string> more) {
            more.insert(more.end(), sampled.begin(), sampled.end());
            return ran(more);
        };
        const json plain = with({});
        CHECK(plain["n_proposed_tokens"] == 0);
        CHECK(plain["n_passes"].get<int>() + (plain["finish"] == "length") == plain["n_tokens"]);
        for (const json& other : {with({"--speculate", "8"}), with({"--draft", demo.path}),
                                  with({"--draft", demo.path, "--speculate", "3"})}) {
            CHECK(other["text"] == plain["text"]);
            CHECK(other["n_tokens"] == plain["n_tokens"]);
            CHECK(other["finish"] == plain["finish"]);
            CHECK(other["n_passes"] <= plain["n_passes"]);
            CHECK(other["n_accepted_tokens"] <= other["n_proposed_tokens"]);
        }
    }
}

TEST_CASE("cli: run --draft refuses a model of another vocabulary, and one that is not there") {
    const TemporaryFolder folder;
    const std::string path = (folder / "small.fovea").string();
    write_file(random_model(llama_config(), 1), path, {});
    check_refused({"run", "-p", "a", "--draft", path}, 1, path + ": vocabulary: expected demo's");
    check_refused({"run", "-p", "a", "--draft", "/none/such"}, 1, "/none/such: ");
    check_refused({"run", "-p", "a", "--speculate", "257"}, 2, "--speculate");
}

}  // namespace
}  // namespace fovea::testing
