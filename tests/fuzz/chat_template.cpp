// A chat template and, behind a zero byte, a conversation: a prompt within its limits, or a ChatTemplateError of one line.
#include "host/chat/chat_template.h"

#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(chat_template) {
    using namespace fovea;
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    const std::size_t end = all.find('\0');
    ChatInput input;
    input.limits = {.n_steps = 20'000, .n_bytes = 1 << 20, .depth = 400};
    input.bos_token = "<s>";
    input.eos_token = "</s>";
    input.now = 0;
    if (end != all.npos) {
        auto given = nlohmann::ordered_json::parse(all.substr(end + 1), nullptr, false);
        if (given.is_object()) {
            if (given.contains("messages")) input.messages = given["messages"];
            if (given.contains("tools")) input.tools = given["tools"];
            if (given.contains("extra") && given["extra"].is_object()) input.extra = given["extra"];
        }
    }
    if (!input.messages.is_array() || input.messages.empty())
        input.messages = nlohmann::ordered_json::array({{{"role", "user"}, {"content", " a \xc3\xa9\n"}}});
    const auto refuses = [&](const ChatTemplateError& error) {
        fuzz::promise(error.what()[0] != '\0', "a refusal says something");
    };
    try {
        const ChatTemplate chat = ChatTemplate::parse(all.substr(0, end));
        try {
            const std::string text = chat.render(input).text();
            fuzz::promise(text.size() <= input.limits.n_bytes, "a prompt is within its limit");
            fuzz::promise(chat.render(input).text() == text, "the same conversation gives the same prompt");
        } catch (const ChatTemplateError& error) {
            refuses(error);
        }
    } catch (const ChatTemplateError& error) {
        refuses(error);
    }
    return 0;
}
