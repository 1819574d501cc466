// Tools for templates that know none: a text lists them, calls and results are texts, and calls that a model writes so are read.
#include "host/chat/told_tools.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "fovea/host/chat.h"
#include "host/chat/answer_reader.h"
#include "host/text/forced_call.h"
#include "tests/support/opened_tokenizer.h"

namespace fovea::testing {
namespace {

const Json kTools = Json::parse(R"([
    {"type": "function", "function": {"name": "play", "description": "Plays music.", "parameters": {"type": "object",
        "properties": {"what": {"type": "string"}}, "required": ["what"]}}},
    {"type": "function", "function": {"name": "stop", "parameters": {"type": "object", "properties": {}}}}])");

// As templates write them.
const std::string kFirst =
    R"({"type": "function", "function": {"name": "play", "description": "Plays music.", "parameters": {"type": "object", )"
    R"("properties": {"what": {"type": "string"}}, "required": ["what"]}}})";
const std::string kSecond =
    R"({"type": "function", "function": {"name": "stop", "parameters": {"type": "object", "properties": {}}}})";

/// A question, two calls, what they gave, and another question.
Json conversation() {
    return Json::parse(R"([
        {"role": "user", "content": "play jazz"},
        {"role": "assistant", "content": "so", "tool_calls": [
            {"id": "abcdefghi", "type": "function", "function": {"name": "play", "arguments": {"what": "jazz"}}},
            {"id": "bcdefghij", "type": "function", "function": {"name": "stop", "arguments": "{\"a\": 1}"}}]},
        {"role": "tool", "tool_call_id": "abcdefghi", "name": "play", "content": "on"},
        {"role": "tool", "tool_call_id": "bcdefghij", "name": "stop", "content": "off"},
        {"role": "assistant", "content": "done"}, {"role": "user", "content": "thanks"}])");
}

constexpr ShownParts kNothing{.tools = false, .calls = false, .results = false, .system = false};

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

const Tokenizer& plain_tokenizer() {
    static const OpenedTokenizer opened(golden_text("tokenizer_qwen2.json"));
    return opened.tokenizer();
}

std::string prompt_of(const std::string& chat_template, Json messages, Json tools) {
    ChatInput input;
    input.messages = std::move(messages);
    input.tools = std::move(tools);
    input.bos_token = "<s>";
    input.eos_token = "</s>";
    input.now = 0;
    return ModelChat::with(Model{}, plain_tokenizer(), chat_template).render(std::move(input)).text();
}

TEST_CASE("told tools: templates that know none show all of a conversation, others are as they were") {
    std::size_t n_told = 0;
    for (const auto& file : std::filesystem::directory_iterator(FOVEA_GOLDEN_DIR "/chat/templates")) {
        const std::string text = read_text(file.path());
        CAPTURE(file.path().stem().string());
        ChatInput input;
        input.messages = Json::array({conversation()[0]});
        input.tools = kTools;
        input.bos_token = "<s>";
        input.eos_token = "</s>";
        input.now = 0;
        const std::string by_itself = ChatTemplate::parse(text).render(input).text();
        const std::string asked = prompt_of(text, input.messages, kTools);
        CHECK(has(asked, "Plays music."));
        if (has(by_itself, "Plays music.")) {
            CHECK(asked == by_itself);
            input.messages = conversation();
            input.messages.erase(input.messages.begin() + 3);  // some take one call at a time
            input.messages[1]["tool_calls"].erase(1);
            input.messages[1]["content"] = "";
            const std::string known = ChatTemplate::parse(text).render(input).text();
            const std::string told = prompt_of(text, input.messages, kTools);
            CHECK((told == known || (!has(known, "jazz\"}") && has(told, "{\"what\": \"jazz\"}"))));
            continue;
        }
        ++n_told;
        CHECK(has(asked, "<tools>\n" + kFirst + '\n' + kSecond + "\n</tools>"));
        const std::string whole = prompt_of(text, conversation(), kTools);
        CHECK(has(whole,
                  "so\n\n<tool_call>\n{\"name\": \"play\", \"arguments\": {\"what\": \"jazz\"}}\n</tool_call>\n"
                  "<tool_call>\n{\"name\": \"stop\", \"arguments\": {\"a\": 1}}\n</tool_call>"));
        CHECK(has(whole, "<tool_response>\non\n</tool_response>\n<tool_response>\noff\n</tool_response>"));
        CHECK(!has(prompt_of(text, Json::array({conversation()[0]}), nullptr), "<tools>"));
    }
    CHECK(n_told >= 6);
}

TEST_CASE("told tools: they stand in the system's text, or in the user's where there is no system") {
    const std::string chatml = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
    const std::string mute =
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('none') }}{% endif %}"
        "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns') }}{% endif %}"
        "<{{ m.role }}>{{ m.content }}{% endfor %}";
    const Json asks = Json::array({conversation()[0]});
    const Json beside = Json::array({{{"role", "system"}, {"content", "Be brief."}}, conversation()[0]});
    const std::string in_system = prompt_of(chatml, beside, kTools);
    CHECK(in_system.starts_with("<system>Be brief.\n\nYou may call functions."));
    CHECK(in_system.ends_with("<user>play jazz"));
    CHECK(prompt_of(chatml, asks, kTools).starts_with("<system>You may call functions."));
    CHECK(prompt_of(mute, asks, kTools).starts_with("<user>You may call functions."));
    CHECK(prompt_of(mute, asks, kTools).ends_with("\n\nplay jazz"));
    CHECK(has(prompt_of(mute, conversation(), kTools), "<assistant>so"));  // whose turns alternate
    CHECK_THROWS_AS(prompt_of(mute, beside, kTools), ChatTemplateError);
    Json answered = conversation();
    answered.erase(4);
    CHECK(has(prompt_of(mute, answered, kTools), "off\n</tool_response>\n\nthanks"));
    Json parts = asks;
    parts[0]["content"] = Json::array({{{"type", "text"}, {"text", "play"}}});
    const Json told = tell_tools(parts, kTools, *find_dialect("hermes"), kNothing);
    CHECK(told[0]["content"].size() == 2);
    CHECK(told[0]["content"][1]["text"] == "play");
}

TEST_CASE("told tools: results of a template that shows tools and refuses them are texts") {
    const std::string half =
        "{{ tools }}{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no') }}{% endif %}"
        "<{{ m.role }}>{{ m.content }}{% endfor %}";
    const std::string prompt = prompt_of(half, conversation(), kTools);
    CHECK(!has(prompt, "<tools>"));
    CHECK(has(prompt, "<user><tool_response>\non\n</tool_response>"));
}

TEST_CASE("told tools: a call in the words of any dialect is read as that call") {
    for (const Dialect& dialect : all_dialects()) {
        if (dialect.syntax == CallSyntax::channels) continue;
        CAPTURE(dialect.name);
        const Json messages = tell_tools(conversation(), nullptr, dialect, kNothing);
        AnswerDialect how = dialect_of({});
        how.calls = &dialect;
        const std::string said = messages[1]["content"];
        for (const std::string& text : {said, said.substr(4)}) {
            const bool is_bare = !dialect.bare.empty();  // such calls stand alone
            if (is_bare && text == said) continue;
            AnswerReader reader({.dialect = how, .reads_calls = true, .tools = kTools});
            std::string rest;
            const auto on_text = [&](std::string_view part, bool) { rest += part; };
            for (const char c : text) reader.add({&c, 1}, on_text);
            reader.finish(on_text);
            CAPTURE(text);
            REQUIRE(reader.calls().size() == 2);
            CHECK(reader.calls()[0].name == "play");
            CHECK(reader.calls()[0].arguments == Json{{"what", "jazz"}});
            CHECK(reader.calls()[1].name == "stop");
            CHECK(reader.calls()[1].arguments == Json{{"a", 1}});
        }
    }
}

TEST_CASE("told tools: what stands in messages does no harm") {
    const Json odd = Json::parse(R"([3, {"role": 7}, {"role": "assistant", "content": null, "tool_calls": {"a": 1}},
        {"role": "assistant", "content": 5, "tool_calls": [3, {}, {"function": 1}, {"function": {"name": 2}}]},
        {"role": "tool"}, {"role": "tool", "content": [1, {"text": 2}, {"text": "x"}]}, {"role": "user", "content": [1]}])");
    for (const bool in_system : {false, true}) {
        ShownParts shown = kNothing;
        shown.system = in_system;
        const Json told = tell_tools(odd, kTools, *find_dialect("hermes"), shown);
        CHECK(has(json_text(told), "</tool_response>"));
    }
    const ShownParts shown = shown_parts(ChatTemplate::parse("{{ raise_exception('tools') }}"), "tools", {});
    CHECK((shown.tools && !shown.system));
}

}  // namespace
}  // namespace fovea::testing
