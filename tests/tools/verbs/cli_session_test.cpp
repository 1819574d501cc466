// `run --session FILE`: the same text as without, from what the last run left.
#include <doctest/doctest.h>

#include "fovea/host/opened.h"
#include "fovea/host/runtime.h"
#include "host/base/error.h"
#include "host/text/session_file.h"
#include "tests/support/command_line.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

TEST_CASE("cli: run --session computes a prompt from the first token on that differs, and says the same") {
    const TemporaryFolder folder;
    const std::string file = (folder / "kept").string();
    const auto ran = [&](const std::string& prompt, const std::string& kv, bool kept) {
        std::vector<std::string> arguments{"run", "-p", prompt, "-n", "40", "--kv", kv, "--json"};
        if (kept) arguments.insert(arguments.end(), {"--session", file});
        return json::parse(output_of(arguments));
    };
    for (const char* kv : {"f32", "f16", "q8", "q4"}) {
        fs::remove(file);
        const json first = ran("turn on the reading lamp in the living room", kv, true);
        CHECK(first["n_kept_tokens"] == 0);
        CHECK(fs::exists(file));
        CHECK(std::distance(fs::directory_iterator(fs::path(file).parent_path()), {}) == 1);  // nothing beside it
        const json again = ran("turn on the reading lamp in the living room", kv, true);
        CHECK(again["text"] == first["text"]);
        CHECK(again["n_kept_tokens"] == first["n_prompt_tokens"].get<int>() - 1);
        for (const char* prompt : {"turn on the reading lamp in the bedroom and set a timer for five minutes",
                                   "turn on the reading lamp", "lock the front door"}) {
            const json with = ran(prompt, kv, true), without = ran(prompt, kv, false);
            CAPTURE(prompt);
            CHECK(with["text"] == without["text"]);
            CHECK(with["n_kept_tokens"] < with["n_prompt_tokens"]);
            CHECK((with["n_kept_tokens"] > 2) == (prompt[0] == 't'));
        }
    }
}

TEST_CASE("cli: run --session refuses what is not its own, and leaves it as it is") {
    const TemporaryFolder folder;
    const std::string file = (folder / "kept").string(), other = (folder / "other").string();
    const auto arguments = [](const std::string& path, std::vector<std::string> more = {}) {
        std::vector<std::string> all{"run", "-p", "lights off", "--session", path};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    (void)output_of(arguments(file));
    const std::string good = read_text(file);
    const auto refused = [&](const std::string& bytes, const std::string& words,
                             const std::vector<std::string>& more = {}) {
        write_text(other, bytes);
        check_refused(arguments(other, more), 1, words);
        CHECK(read_text(other) == bytes);
    };
    refused(good, "session mismatch: number of a saved session's cache type: expected 1, got 0", {"--kv", "f16"});
    refused(good, "context full", {"--context", "9", "-n", "1"});
    refused("some other file of a few bytes", "expected a saved session");
    for (const std::size_t at : {std::size_t{0}, std::size_t{16}, good.size() / 2, good.size() - 12, good.size() - 6}) {
        std::string damaged = good;
        damaged[at] = static_cast<char>(damaged[at] ^ 4);
        refused(damaged, other + ": ");
    }
    refused(good.substr(0, good.size() - 1), "expected a saved session");
    refused(good.substr(1), other + ": session mismatch");

    // A file whose parts are whole, but of different runs.
    const host::Opened opened = open_path_or_demo("");
    host::Runtime<Session> running = start_session(opened, {.max_kv_len = 20});
    const Token tokens[] = {1, 2, 3};
    require(forward(*running, tokens, {}));
    host::write_session_file(other, *running, std::span(tokens).first(2));
    refused(read_text(other), "tokens: expected 3, got 2");

    check_refused({"run", "--session", file}, 2, "--session: expected -p TEXT");
    check_refused(arguments((folder / "").string()), 1, ": ");
    CHECK(run_fovea(arguments((folder / "no" / "such").string())).status == 1);
}

}  // namespace
}  // namespace fovea::testing
