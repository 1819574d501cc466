// Conversations: what of them is computed again.
#include <doctest/doctest.h>

#include "host/text/conversation.h"
#include "tests/support/chat_model.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

/// Leaves answers out.
constexpr char kForgetful[] =
    "{% for m in messages %}{{ '<|im_start|>' + (m.content if m.role == 'user' else '-') + '<|im_end|>' }}{% endfor %}"
    "{{ '<|im_start|>' }}";
constexpr const char* kTurns[] = {"What is the sea, and what lies beyond it?", "Who has been there?", "Why?"};

TEST_CASE("conversation: with recurrent layers a turn goes on from before an answer that its template leaves out") {
    for (const NamedConfig& named : recurrent_configs()) {
        CAPTURE(named.name);
        const ChatModel model(kForgetful, 400, true, {}, {}, named.config);
        const host::Opened opened = open_path(model.path);
        const ModelChat chat = ModelChat::of(opened.model, opened.tokenizer);
        host::Generation generation(opened, {.max_kv_len = 400});
        host::Conversation conversation(opened, chat, generation, {.n_new = 9});
        const auto say = [&](const char* text) {
            return conversation.say(
                text, [](auto, bool) {}, nullptr);
        };
        std::uint32_t n_before = 8;
        for (const char* turn : kTurns) {
            const host::Answer first = say(turn);
            CHECK(first.made.figures.n_kept == n_before - 8);
            n_before = first.made.figures.n_prompt;

            Json asked = conversation.messages();
            asked.erase(asked.size() - 1);
            host::Generation anew(opened, {.max_kv_len = 400});
            std::string text;
            const auto made =
                anew.generate(chat.tokens({.messages = asked.dump()}), {.n_new = 9, .end_tokens = chat.end_tokens()},
                              [&](std::string_view piece) { text += piece; });
            CHECK(made.figures.n_prompt == n_before);
            CHECK(made.figures.n_kept == 0);
            CHECK(text == first.text);

            CHECK(conversation.undo() == turn);
            const host::Answer again = say(turn);
            CHECK(again.made.figures.n_kept == n_before - 8);
            CHECK(again.text == first.text);
        }
    }
}

}  // namespace
}  // namespace fovea::testing
