// Chat templates against transformers' own renderings (tests/golden/make_chat.py), and what hostile ones get.
#include "host/chat/chat_template.h"
#include "host/base/json.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "fovea/checksum.h"

namespace fovea::testing {
namespace {

std::string read_golden(const std::string& name) {
    std::ifstream file(std::string(FOVEA_GOLDEN_DIR) + "/chat/" + name, std::ios::binary);
    REQUIRE(file.good());
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string crc_of(const std::string& text) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", crc32c(std::as_bytes(std::span(text))));
    return digits;
}

ChatInput one_message(const std::string& content = "Hello") {
    ChatInput input;
    input.messages = Json::array({{{"role", "user"}, {"content", content}}});
    return input;
}

/// The text, or "!" and the refusal.
std::string rendered(const std::string& text, const ChatInput& input = one_message()) {
    try {
        return ChatTemplate::parse(text).render(input).text();
    } catch (const ChatTemplateError& error) {
        CHECK(std::string(error.what()).find('\n') == std::string::npos);
        return "!" + std::string(error.what());
    }
}

bool refused(const std::string& text, const std::string& words, const ChatInput& input = one_message()) {
    const std::string got = rendered(text, input);
    CAPTURE(text.substr(0, 200));
    CAPTURE(got.substr(0, 200));
    const bool right = got.starts_with("!") && got.find(words) != std::string::npos;
    CHECK(right);
    return right;
}

std::string times(const std::string& text, std::size_t n) {
    std::string all;
    for (std::size_t i = 0; i < n; ++i) all += text;
    return all;
}

TEST_CASE("chat templates: 200 conversations by 12 templates are those of transformers' apply_chat_template") {
    const Json golden = Json::parse(read_golden("conversations.json"));
    const Json& conversations = golden["conversations"];
    CHECK(conversations.size() == 200);
    CHECK(golden["expected"].size() == 12);
    std::size_t n_texts = 0;
    for (const auto& [name, expected] : golden["expected"].items()) {
        const ChatTemplate chat = ChatTemplate::parse(read_golden("templates/" + name + ".jinja"));
        REQUIRE(expected.size() == conversations.size());
        for (std::size_t i = 0; i < conversations.size(); ++i) {
            const std::string& of = name;
            CAPTURE(of);
            CAPTURE(i);
            const Json& conversation = conversations[i];
            ChatInput input;
            input.messages = conversation["messages"];
            if (conversation.contains("tools")) input.tools = conversation["tools"];
            if (conversation.contains("documents")) input.documents = conversation["documents"];
            input.add_generation_prompt = conversation["add_generation_prompt"];
            input.extra = conversation["extra"];
            input.bos_token = golden["bos_token"];
            input.eos_token = golden["eos_token"];
            input.now = golden["now"];
            std::string text, refusal = "none";
            try {
                text = chat.render(input).text();
            } catch (const ChatTemplateError& error) {
                refusal = error.what();
            }
            const Json& want = expected[i];
            if (want.is_object() && want.contains("refusal")) {
                CHECK(refusal != "none");
                CHECK(refusal.ends_with(want["refusal"].get<std::string>()));
                continue;
            }
            ++n_texts;
            CHECK(refusal == "none");
            if (want.is_string()) CHECK(crc_of(text) == want);
            if (want.is_object()) CHECK(text == want["text"]);
        }
    }
    CHECK(n_texts > 1500);
}

TEST_CASE("chat templates: expressions, filters, tests, methods and blocks give what Jinja gives") {
    const Json golden = Json::parse(read_golden("snippets.json"));
    CHECK(golden["snippets"].size() > 60);
    for (const Json& snippet : golden["snippets"]) {
        ChatInput input = one_message();
        input.extra = golden["variables"];
        const std::string got = rendered(snippet["template"], input);
        CAPTURE(snippet["template"]);
        if (snippet["text"].is_null()) {
            CHECK(got.starts_with("!line "));
        } else {
            CHECK(got == snippet["text"]);
        }
    }
}

TEST_CASE("chat templates: what cannot be read is one line that names the place") {
    refused("a\n{% if x %}", "line 2: expected endif, got the template's end");
    refused("{{ a b }}", "expected }}, got b");
    refused("{% frobnicate %}", "expected if, for, set");
    refused("{% include 'x' %}", "expected if, for, set");
    refused("{{ 'a }}", "text: expected a quotation mark");
    refused("{# a", "comment: expected #}");
    refused("{% raw %}a", "raw: expected endraw");
    refused("{{ (1 }}", "brackets");
    refused("{{ ? }}", "got the character ?");
    refused("{{ 99999999999999999999 }}", "a number of 64 bits");
    refused("{% break %}", "within a loop");
    refused("{% for x in messages %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "within a loop");
    refused("{{ f(*messages) }}", "arguments one by one");
    refused("{{ messages", "got the template's end");
    refused("{{ '\\ud800' }}", "expected a character after");
    refused("{% for x in y", "got the template's end");
    CHECK_THROWS_AS((void)ChatTemplate::parse(std::string(ChatTemplate::kMostBytes + 1, 'a')), ChatTemplateError);
    CHECK_THROWS_AS((void)ChatTemplate().render(one_message()), ChatTemplateError);
    ChatInput empty;
    refused("a", "messages: expected a list of 1 or more", empty);
    empty.messages = Json::array({"a"});
    refused("a", "message: expected an object", empty);
}

TEST_CASE("chat templates: a hostile one ends at a limit, and takes neither the stack nor the memory") {
    refused("{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}", "steps, got more");
    refused("{{ 'aaaaaaaaaaaaaaaa' * 9999999999 }}", "bytes of text and lists");
    refused("{{ [1] * 9223372036854775807 }}", "bytes of text and lists");
    refused("{% set ns = namespace(t='aaaaaaaa') %}{% for i in range(99) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}",
            "bytes of text");
    refused("{% set ns = namespace(l=[]) %}{% for i in range(999) %}{% set ns.l = [ns.l] %}{% endfor %}",
            "within each other");
    refused("{% set ns = namespace(l=[]) %}{% for i in range(999) %}{% set ns.l = [ns.l.index] %}{% endfor %}",
            "within each other");
    refused(
        "{% set ns = namespace(l=[1, 1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
        "got more");
    refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "calls and expressions within each other");
    refused("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "calls and expressions within each other");
    refused("{{ " + times("(", 5000) + "1" + times(")", 5000) + " }}", "expressions within each other");
    refused("{{ " + times("[", 5000) + times("]", 5000) + " }}", "expressions within each other");
    refused("{{ " + times("-", 5000) + "1 }}", "expressions within each other");
    refused("{{ " + times("not ", 5000) + "1 }}", "expressions within each other");
    refused("{{ 1" + times("|abs", 5000) + " }}", "expressions within each other");
    refused("{{ messages" + times("[0]", 5000) + " }}", "expressions within each other");
    refused("{{ 1" + times(" if 1 else 1", 5000) + " }}", "expressions within each other");
    refused(times("{% if 1 %}", 5000), "blocks within each other");
    refused("{{ 1" + times("+1", 5000) + " }}", "expressions within each other");
    CHECK(rendered("{{ 1" + times("~1", 5000) + " }}") == times("1", 5001));
    CHECK(rendered(times("{% if 0 %}a{% elif 1 %}b{% endif %}", 3000)) == times("b", 3000));
    refused("{{ range(100001) }}", "at most 100000 numbers");
    refused("{{ 9223372036854775807 + 1 }}", "64 bits");
    refused("{{ -9223372036854775807 - 2 }}", "64 bits");
    refused("{{ (-9223372036854775807 - 1) // -1 }}", "64 bits");
    CHECK(rendered("{{ (-9223372036854775807 - 1)[:1] }}").starts_with("!"));
    CHECK(rendered("{{ 'abc'[::-9223372036854775807 - 1] }}") == "c");
    CHECK(rendered("{{ 'abc'[-9223372036854775807:9223372036854775807] }}") == "abc");
    refused("{{ strftime_now('%Y' * 200) }}", "at most 256 bytes");
    // What outlives the block it was made in is still there.
    CHECK(rendered(
              "{% set ns = namespace() %}{% for i in [1, 2] %}{% set v = i %}{% macro m() %}{{ v }}{{ loop.index }}{% "
              "endmacro %}"
              "{% set ns.m = m %}{% set ns.loop = loop %}{% endfor %}{{ ns.m() }}{{ ns.loop.nextitem is defined }}") ==
          "22False");
    CHECK(rendered("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns.me.me.me is defined }}{{ ns }}") ==
          "True<namespace>");
}

TEST_CASE(
    "chat templates: a conversation's own depth and bytes are bounded, and bytes that are no UTF-8 pass through") {
    ChatInput deep = one_message();
    Json value = 1;
    for (int i = 0; i < 300; ++i) value = Json::array({value});
    deep.extra["deep"] = std::move(value);
    refused("a", "within each other", deep);
    ChatInput large = one_message();
    large.extra["n"] = 18446744073709551615ull;
    refused("a", "one of 64 bits", large);
    CHECK(rendered("{{ messages[0].content | trim }}{{ messages[0].content | length }}",
                   one_message(" \xff\xc3 \xe2\x82 ")) ==
          "\xff\xc3 \xe2\x82"
          "7");
    ChatInput small = one_message(std::string(5000, 'a'));
    small.limits.n_bytes = 4000;
    refused("{{ messages[0].content }}", "bytes of text", small);
    small.limits = {};
    small.limits.n_steps = 9;
    refused("{{ messages[0].content }}", "steps", small);
}

TEST_CASE("chat templates: a copy shares the template, which many threads render at once") {
    const ChatTemplate chat = ChatTemplate::chatml();
    const std::string want = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
    std::vector<std::string> texts(4);
    std::vector<std::thread> threads;
    for (std::string& text : texts)
        threads.emplace_back([chat, &text] {
            for (int i = 0; i < 50; ++i) text = chat.render(one_message()).text();
        });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& text : texts) CHECK(text == want);
    ChatInput told = one_message();
    told.add_generation_prompt = false;
    CHECK(chat.render(told).text() == "<|im_start|>user\nHello<|im_end|>\n");
}

}  // namespace
}  // namespace fovea::testing
