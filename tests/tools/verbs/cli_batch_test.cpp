// `run --batch`: many requests in the passes of one run. Each answer is the one its request has alone, the file is the same
// however many are computed at once, and one that was begun is gone on with.
#include <doctest/doctest.h>
#include <sys/file.h>

#include <algorithm>

#include "tests/support/command_line.h"
#include "tests/support/small_models.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

constexpr const char* kRequests = R"({"prompt": "turn on the kitchen light"}
{"prompt": "lock the front door", "id": "b", "max_tokens": 5}

{"messages": [{"role": "user", "content": "is the garage door locked"}], "id": 3}
{"prompt": "turn on the kitchen light and then the bedroom light", "temperature": 0.9, "seed": 5}
{"prompt": [1, 40, 41, 42], "id": "ids", "max_tokens": 4}
{"prompt": "turn on the kitchen light and then the hall light", "stop": ["\"device"]}
{"prompt": "set a timer for ten minutes", "top_k": 5, "seed": 3, "max_tokens": 0}
{"prompt": "anything", "response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": ["yes", "no"]}}}}
{"prompt": "a number", "regex": "[0-9]{3}", "temperature": 1.5, "seed": 1}
)";

struct BatchFiles {
    TemporaryFolder folder;
    std::string in = (folder / "in.jsonl").string(), out = (folder / "out.jsonl").string();

    explicit BatchFiles(const std::string& requests = kRequests) { write_text(in, requests); }
    [[nodiscard]] std::vector<std::string> command(std::vector<std::string> more = {}) const {
        std::vector<std::string> all{"run", "--batch", in, "-o", out, "--json"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    [[nodiscard]] std::vector<json> answers() const {
        std::vector<json> all;
        std::istringstream lines(read_text(out));
        for (std::string line; std::getline(lines, line);) all.push_back(json::parse(line));
        return all;
    }
};

TEST_CASE("batch: each answer is the one its request has alone, in the order of the requests") {
    const BatchFiles batch;
    const json report = json::parse(output_of(batch.command()));
    CHECK(report["n_requests"] == 9);
    CHECK(report["n_kept"] == 0);
    CHECK(report["arena_bytes"] > 0);
    const std::vector<json> answers = batch.answers();
    REQUIRE(answers.size() == 9);
    const std::vector<std::vector<std::string>> alone{
        {"-p", "turn on the kitchen light"},
        {"-p", "lock the front door", "-n", "5"},
        {"-p", "is the garage door locked"},
        {"-p", "turn on the kitchen light and then the bedroom light", "--temp", "0.9", "--seed", "5"},
        {"--tokens", "1,40,41,42", "-n", "4"},
        {"-p", "turn on the kitchen light and then the hall light", "--stop", "\"device"},
        {"-p", "set a timer for ten minutes", "--top-k", "5", "--seed", "3", "-n", "0"},
        {"-p", "anything", "--regex", "\"yes\"|\"no\""},
        {"-p", "a number", "--regex", "[0-9]{3}", "--temp", "1.5", "--seed", "1"}};
    std::uint64_t n_tokens = 0;
    for (std::size_t i = 0; i < alone.size(); ++i) {
        CAPTURE(i);
        std::vector<std::string> arguments{"run", "--json"};
        arguments.insert(arguments.end(), alone[i].begin(), alone[i].end());
        const json one = json::parse(output_of(arguments));
        CHECK(answers[i]["index"] == i);
        CHECK(answers[i]["text"] == one["text"]);
        CHECK(answers[i]["finish"] == one["finish"]);
        CHECK(answers[i]["n_tokens"] == one["n_tokens"]);
        CHECK(answers[i]["n_prompt_tokens"] == one["n_prompt_tokens"]);
        n_tokens += one["n_tokens"].get<std::uint64_t>();
    }
    CHECK(report["n_tokens"] == n_tokens);
    CHECK_FALSE(answers[0].contains("id"));
    CHECK(answers[1]["id"] == "b");
    CHECK(answers[2]["id"] == 3);
}

TEST_CASE("batch: the file does not depend on how many are computed at once, nor on threads") {
    std::string first;
    for (const char* n : {"1", "2", "7", "64"}) {
        const BatchFiles batch;
        (void)output_of(batch.command({"--sequences", n, "--threads", n[0] == '7' ? "2" : "1"}));
        const std::string text = read_text(batch.out);
        if (first.empty()) first = text;
        CHECK(text == first);
    }
    // Standard input and output do as files.
    const BatchFiles batch;
    const std::string command = std::string(FOVEA_CLI) + " run --batch - --quiet < " + batch.in + " > " + batch.out;
    REQUIRE(std::system(command.c_str()) == 0);
    CHECK(read_text(batch.out) == first);
}

TEST_CASE("batch: options are what a request does not say, and change the answer of a request that says nothing") {
    const BatchFiles batch("{\"prompt\": \"lights off\"}\n{\"prompt\": \"lights off\", \"max_tokens\": 2}\n");
    (void)output_of(batch.command({"-n", "3"}));
    CHECK(batch.answers()[0]["n_tokens"] == 3);
    CHECK(batch.answers()[1]["n_tokens"] == 2);
    const BatchFiles formed("{\"prompt\": \"say\"}\n{\"prompt\": \"say\", \"regex\": \"z\"}\n");
    (void)output_of(formed.command({"--regex", "ab|cd"}));
    const std::string text = formed.answers()[0]["text"];
    CHECK((text == "ab" || text == "cd"));
    CHECK(formed.answers()[1]["text"] == "z");
}

TEST_CASE("batch: a file that was begun is gone on with, torn anywhere, and ends as if it had not been") {
    const BatchFiles batch;
    (void)output_of(batch.command());
    const std::string whole = read_text(batch.out);
    for (std::size_t n = 0; n <= whole.size(); n += n < 200 ? 13 : 97) {
        CAPTURE(n);
        write_text(batch.out, whole.substr(0, n));
        const json report = json::parse(output_of(batch.command()));
        CHECK(report["n_kept"] == std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n), '\n'));
        CHECK(read_text(batch.out) == whole);
    }
    // A process that is killed, at whatever moment this machine reaches.
    for (const char* seconds : {"0.005", "0.02", "0.05", "0.1"}) {
        fs::remove(batch.out);
        std::string command = std::string(FOVEA_CLI) + " run --batch " + batch.in + " -o " + batch.out +
                              " --sequences 2 --quiet & pid=$!; sleep " + seconds + "; kill -9 $pid 2>/dev/null; wait";
        (void)std::system(("{ " + command + "; } 2>/dev/null").c_str());
        (void)output_of(batch.command());
        CHECK(read_text(batch.out) == whole);
    }
}

TEST_CASE("batch: another batch's answers, and other files, are refused and left as they were") {
    const BatchFiles batch("{\"prompt\": \"lights off\"}\n{\"prompt\": \"lights on\"}\n");
    (void)output_of(batch.command({"-n", "4"}));
    const std::string whole = read_text(batch.out);
    const auto refuses = [&](const std::vector<std::string>& arguments, const std::string& words) {
        const std::string before = read_text(batch.out);
        check_refused(arguments, 1, words);
        CHECK(read_text(batch.out) == before);
    };
    refuses(batch.command({"-n", "5"}), "out.jsonl: line 1: expected the answer to request 0 of this batch");
    write_text(batch.in, "{\"prompt\": \"lights off\"}\n");
    refuses(batch.command({"-n", "4"}), "out.jsonl: answers: expected at most 1, one for each request, got more");
    write_text(batch.in, "{\"prompt\": \"lights off\"}\n{\"prompt\": \"lights on!\"}\n");
    refuses(batch.command({"-n", "4"}), "out.jsonl: line 2: expected the answer to request 1");
    for (const char* other : {"my notes, without a line break", "my notes\n", "{\"index\":1,", "[]\n", "\n"}) {
        write_text(batch.out, other);
        refuses(batch.command({"-n", "4"}), "out.jsonl: line 1: expected the answer to request 0");
    }
    write_text(batch.out, whole);
    const int held = open(batch.out.c_str(), O_RDWR);
    REQUIRE(flock(held, LOCK_EX) == 0);
    refuses(batch.command({"-n", "4"}), "got one that another batch is writing");
    close(held);
    check_refused({"run", "--batch", batch.in, "-o", "/nonexistent/out", "--quiet"}, 1,
                  "/nonexistent/out: cannot be written: no such file");
}

TEST_CASE("batch: what is wrong with a line is said before anything is computed") {
    const auto refused = [](const std::string& line, const std::string& words) {
        const BatchFiles batch("{\"prompt\": \"a\"}\n\n" + line + "\n");
        check_refused(batch.command(), 1, "in.jsonl: line 3: " + words);
        CHECK_FALSE(fs::exists(batch.out));
    };
    refused("{", "body: expected JSON, got a parse error at column 2");
    refused("[]", "request: expected a JSON object, got another value");
    refused("{}", "request: expected a prompt, tokens or messages, got neither");
    refused(R"({"prompt": "a", "messages": []})", "request: expected a prompt, tokens or messages, got both");
    refused(
        R"({"prompt": "a", "temprature": 1})",
        "field: expected one of prompt, tokens, messages, id, temperature, top_k, top_p, min_p, seed, "
        "repetition_penalty, frequency_penalty, presence_penalty, dry_multiplier, dry_base, dry_allowed_length, "
        "top_n_sigma, typical_p, xtc_probability, xtc_threshold, mirostat, mirostat_tau, mirostat_eta, "
        "min_tokens, repeat_penalty, ignore_eos, repeat_last_n, logit_bias, allowed_token_ids, bad_words, n_predict, "
        "max_tokens, max_completion_tokens, stop, stop_token_ids, include_stop_str_in_output, skip_special_tokens, "
        "from, to, response_format, json_schema, grammar, regex, guided_json, guided_grammar, ebnf, guided_regex, "
        "guided_choice, structured_outputs, add_generation_prompt, continue_final_message, chat_template_kwargs, "
        "enable_thinking, documents, reasoning_effort, add_special_tokens, truncate_prompt_tokens, got temprature; "
        "did you mean temperature?");
    refused(R"({"prompt": "a", "messages": null, "tools": []})", "field: expected one of ");
    refused(R"({"prompt": "a", "continue_final_message": true})",
            "continue_final_message: expected none, for only other requests have this field");
    refused(R"({"prompt": "a", "prompt_logprobs": 1})", "prompt_logprobs: expected none, for it is not supported");
    refused(R"({"prompt": "a", "stop_token_ids": [600]})", "stop_token_ids: expected ids below 512, got 600");
    refused(R"({"prompt": "a", "allowed_token_ids": []})", "allowed_token_ids: expected 1 token id or more, got none");
    refused(R"({"prompt": 3})", "prompt: expected texts or arrays of token ids");
    refused(R"({"prompt": ["a", "b"]})", "prompt: expected one text, got 2");
    refused(R"({"prompt": "a", "temperature": "hot"})", "temperature: expected a number, got \"hot\"");
    refused(R"({"prompt": "a", "frequency_penalty": 2000})", "frequency_penalty: expected -1000 to 1000, got 2000");
    refused(R"({"prompt": "a", "logit_bias": {"600": 1}})", "logit_bias: expected token ids below 512, got 600");
    refused(R"({"prompt": "a", "logit_bias": {"x": 1}})", "logit_bias: expected token ids, got x");
    refused(R"({"prompt": "a", "top_p": 2})", "top_p: expected 0 to 1, got 2");
    refused(R"({"prompt": "a", "max_tokens": -2})", "max_tokens: expected 0 to ");
    refused(R"({"prompt": "a", "seed": -1})", "seed: expected a number from 0, got -1");
    refused(R"({"prompt": "a", "id": {}})", "id: expected a text or a number");
    refused(R"({"prompt": "a", "stop": [1]})", "stop: expected a string or an array of strings, got 1");
    refused(R"({"prompt": "a", "regex": "("})", "regex: ");
    refused(R"({"prompt": "a", "response_format": {"type": "xml"}})", "response_format.type: expected text, ");
    refused(R"({"messages": [{"role": "system", "content": "x"}]})", "messages: expected one of role user, got none");
    refused(R"({"prompt": [99999]})", "prompt: expected token ids below 512, got 99999");
    std::string longest;
    for (int i = 0; i < 300; ++i) longest += "lamp ";
    refused("{\"prompt\": \"" + longest + "\"}",
            "prompt: expected at most 255 tokens, for this model's maximum context length is 256 tokens");
    const BatchFiles empty("\n \n");
    check_refused(empty.command(), 1, "in.jsonl: requests: expected a JSON object a line, got none");
    check_refused({"run", "--batch", "/none/such"}, 1, "/none/such: no such file");
}

/// A model without a tokenizer as a file: what it reads and writes are ids.
std::string write_bare(const TemporaryFolder& folder) {
    const std::string path = (folder / "bare.fovea").string();
    write_file(random_model(llama_config(), 1), path, {});
    return path;
}

TEST_CASE("batch: ids are answered by ids, with a tokenizer and without, and by two stacks") {
    const TemporaryFolder folder;
    const DemoFile demo;
    const std::string bare = write_bare(folder), marian = (folder / "marian.fovea").string();
    output_of({"convert", (fs::path(FOVEA_GOLDEN_DIR) / "pairs/marian").string(), "-o", marian});
    const std::string in = (folder / "in.jsonl").string();
    write_text(in, R"({"tokens": [5, 6, 7, 3], "max_tokens": 6}
{"tokens": [9, 8], "max_tokens": 6, "id": "b"}
{"prompt": [5, 6, 7, 3], "max_tokens": 6}
)");
    for (const std::string& model : {demo.path, bare, marian}) {
        CAPTURE(model);
        std::istringstream answers(output_of({"run", model, "--batch", in, "--quiet"}));
        for (const char* tokens : {"5,6,7,3", "9,8", "5,6,7,3"}) {
            std::vector<std::string> alone{"run", model, "--tokens", tokens, "-n", "6", "--json"};
            if (model == marian) alone.insert(alone.end(), {"--beams", "1"});
            const json one = json::parse(output_of(alone));
            std::string line;
            REQUIRE(std::getline(answers, line));
            const json answer = json::parse(line);
            for (const char* field : {"tokens", "text", "finish", "n_tokens", "n_prompt_tokens"})
                CHECK(answer[field] == one[field]);
        }
    }
}

TEST_CASE("batch: no request chooses the rotary frequencies of those beside it") {
    const TemporaryFolder folder;
    const std::string model = (folder / "model.fovea").string(), in = (folder / "in.jsonl").string(),
                      out = (folder / "out.jsonl").string();
    output_of({"convert", FOVEA_GOLDEN_DIR "/families/phi3_long", "-o", model});  // its first list is for 12 positions
    const auto answered = [&](const char* lines, std::vector<std::string> more) {
        write_text(in, lines);
        more.insert(more.begin(), {"run", model, "--batch", in, "-o", out});
        std::filesystem::remove(out);
        output_of(more);
        std::istringstream first(read_text(out));
        std::string line;
        std::getline(first, line);
        return json::parse(line)["tokens"];
    };
    constexpr const char* kShort = R"({"tokens": [5, 6, 7, 3], "max_tokens": 6})";
    constexpr const char* kBoth = R"({"tokens": [5, 6, 7, 3], "max_tokens": 6}
{"tokens": [5, 6, 7, 3, 5, 6, 7, 3, 5, 6, 7, 3, 9], "max_tokens": 6}
)";
    CHECK(answered(kBoth, {"--context", "64"}) == answered(kShort, {"--context", "64"}));
    CHECK(answered(kShort, {"--context", "12"}) == answered(kShort, {}));
    write_text(in, kBoth);
    check_refused({"run", model, "--batch", in, "-o", out}, 1,
                  "--context: expected one, for requests need 10 to 19 positions");
}

TEST_CASE("batch: what is wrong with ids, and texts where there is no tokenizer") {
    const TemporaryFolder folder;
    const std::string bare = write_bare(folder), in = (folder / "in.jsonl").string();
    const auto refused = [&](const std::string& line, const std::string& words) {
        write_text(in, line + "\n");
        check_refused({"run", bare, "--batch", in}, 1, "in.jsonl: line 1: " + words);
    };
    refused(R"({"tokens": "1,2"})", "tokens: expected a list of token ids");
    refused(R"({"tokens": []})", "tokens: expected a list of token ids");
    refused(R"({"tokens": [1, -2]})", "tokens: expected a list of token ids");
    refused(R"({"tokens": [1], "prompt": "a"})", "tokens: expected no prompt beside it");
    refused(R"({"tokens": [71]})", "prompt: expected token ids below 71, got 71");
    refused(R"({"prompt": "a"})", "prompt: expected a model with a tokenizer, got one without");
    refused(R"({"messages": [{"role": "user", "content": "a"}]})", "prompt: expected a model with a tokenizer");
    refused(R"({"tokens": [1], "stop": ["x"]})", "stop: expected a model with a tokenizer, got one without");
    refused(R"({"tokens": [1], "regex": "a"})", "response_format: expected a model with a tokenizer");
    check_refused({"run", bare, "--batch", in, "--regex", "a"}, 1, "text: expected a model with a tokenizer");
}

TEST_CASE("batch: options that it does not go with") {
    const BatchFiles batch;
    check_refused(batch.command({"-p", "x"}), 2, "--batch: expected no options of a single prompt, got a prompt");
    check_refused(batch.command({"--session", "s"}), 2, "got --session");
    check_refused(batch.command({"--echo"}), 2, "got --echo");
    check_refused({"run", "--batch", batch.in, "--json"}, 2, "--json: expected -o FILE with --batch");
    check_refused({"run", "-p", "x", "-o", batch.out}, 2, "-o: expected --batch with it, got none");
    check_refused(batch.command({"--sequences", "0"}), 2, "--sequences: expected 1 to 1024, got 0");
    CHECK_FALSE(fs::exists(batch.out));
}

TEST_CASE("batch: memory is planned first, and told") {
    const BatchFiles batch;
    const Ran ran = run_fovea({"run", "--batch", batch.in, "-o", batch.out, "--sequences", "4"});
    CHECK(ran.status == 0);
    CHECK(ran.out == "");
    CHECK(contains(ran.err, "9 requests, 4 at a time, of at most "));
    CHECK(contains(ran.err, "9 answers, 0 of them there already; "));
    CHECK(run_fovea({"run", "--batch", batch.in, "-o", batch.out, "--sequences", "4", "--quiet"}).err == "");
}

}  // namespace
}  // namespace fovea::testing
