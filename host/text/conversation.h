// A conversation with a model: messages, and the session that remembers what was computed of them.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "fovea/host/chat.h"
#include "fovea/host/generation.h"
#include "fovea/host/opened.h"
#include "fovea/host/runtime.h"
#include "host/base/json.h"
#include "host/chat/answer_reader.h"
#include "host/chat/chat_template.h"

namespace fovea::host {

struct Answer {
    std::string prompt, text;          ///< what the template gave; all of the answer, reasoning and its marks too
    std::string said, thought;         ///< its parts,
    std::vector<ToolCall> calls = {};  ///< and the calls of tools in it
    Generated made;
    bool ended = false;           ///< by the model: a token or a text that ends a turn
    std::size_t n_forgotten = 0;  ///< messages that were left out, for the context was full
};

class Conversation {
public:
    /// Borrows all of them. `options` has the sampler, n_new and stop texts of every answer.
    Conversation(const Opened& opened, const ModelChat& chat, Generation& generation, const GenerateOptions& options)
        : opened_(opened), chat_(chat), generation_(generation), options_(options) {
        generation_.keep_turns();
    }

    /// The model's answer to `text`, which is what a call of a tool gave while calls() has any, handed out as it is made. Where `*cancel` becomes true it ends there, and what there is
    /// of it stays in the conversation. Throws Error where the template refuses or the message is too long; the
    /// conversation is then as before.
    Answer say(const std::string& text, const AnswerReader::OnText& on_text, const std::atomic<bool>* cancel);

    /// Replaces the system's message, or takes it out where `text` is empty.
    void set_system(const std::string& text);
    /// Forgets everything but the system's message.
    void reset();
    /// Forgets the last message and its answer, and returns that message; empty where there is none.
    std::string undo();

    [[nodiscard]] const Json& messages() const { return messages_; }
    void set_extra(Json extra) { extra_ = std::move(extra); }
    /// Functions that answers may call, as OpenAI's API has them.
    void set_tools(Json tools) { tools_ = std::move(tools); }
    /// Calls of the last answer that have no result yet. say() runs the model once all have theirs.
    [[nodiscard]] Json open_calls() const;

    /// Replaces the file at `path`, a saved conversation if there is one, by the messages and the session, or leaves it as it
    /// is and throws Error.
    void save(const std::string& path);
    /// Becomes what was saved. Throws Error; the conversation is then as before.
    void load(const std::string& path);

private:
    /// The prompt's tokens with as many of the oldest turns left out as its context needs.
    std::vector<Token> fitting_prompt(Answer& answer);
    ChatInput input() const;
    /// Those of a prompt. Where it goes on from the last prompt and answer, their tokens stay as they were generated, so that
    /// the cache has them; tokenized anew, an answer may have others.
    std::vector<Token> tokens_of(const TaintedText& prompt) const;

    const Opened& opened_;
    const ModelChat& chat_;
    Generation& generation_;
    GenerateOptions options_;
    std::string known_text_;           // the last prompt and its answer
    std::vector<Token> known_tokens_;  // theirs
    Json messages_ = Json::array(), extra_ = Json::object(), tools_;
};

}  // namespace fovea::host
