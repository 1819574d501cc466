// What a client reads: events of the engine become the JSON of OpenAI's or Ollama's answers, in pieces or whole.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/chat/thinking.h"
#include "serve/api/request.h"
#include "serve/api/response.h"
#include "serve/api/tool_calls.h"
#include "serve/api/transcript.h"
#include "serve/jobs/job.h"

namespace fovea::serve {

/// What an answer needs to know of its request.
struct AnswerOptions {
    Api api = Api::chat;
    std::string id, model;
    std::int64_t created = 0;                 ///< seconds since 1970
    std::uint32_t n_choices = 1, n_each = 1;  ///< in all, and for each prompt
    bool stream = false, with_usage = false, with_hash = false, with_chances = false, in_base64 = false;
    std::uint32_t n_dimensions = 0;           ///< of each vector; 0: all
    bool unit_length = false;                 ///< each vector is divided by its length
    std::uint32_t n_best = 0;                 ///< of reranked texts; 0: all
    bool through_sigmoid = false;             ///< their scores
    std::vector<std::string> documents = {};  ///< those texts, where the answer shows them
    TranscriptForm transcript = TranscriptForm::json;
    TimesOf times = {};
    Json echoed = Json::object();   ///< of a response: the request's settings
    bool may_call = false;          ///< there are tools: the text may hold calls
    bool must_call = false;         ///< the text is a call; may_call is set too
    bool parts_thought = false;     ///< the model's reasoning is a field of its own
    bool in_thought = false;        ///< the answer begins inside it
    std::vector<std::string> echo;  ///< a text for each choice that comes before its own; empty: none
    Clock::time_point arrived;
};

/// An error's body, in OpenAI's form or Ollama's.
[[nodiscard]] std::string error_body(bool ollama, int status, const std::string& message, const std::string& param = {},
                                     const std::string& code = {});
/// JSON in one line; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string written(const Json& json);

class Answer {
public:
    explicit Answer(AnswerOptions options);

    /// What a stream begins with, before any event.
    [[nodiscard]] std::string opening();
    /// Takes what a pass has added. For a stream: the bytes to send.
    [[nodiscard]] std::string add(const std::vector<Event>& events);
    [[nodiscard]] bool ended() const { return n_ended_ == choices_.size(); }
    /// The first failure; status 0: none.
    [[nodiscard]] const Failure& failure() const { return failure_; }
    /// What a stream ends with.
    [[nodiscard]] std::string closing();
    /// The whole body, once all has ended, and what its bytes are.
    [[nodiscard]] std::string whole() const;
    [[nodiscard]] const char* content_type() const;
    /// "0123456789abcdef", of each choice in turn.
    [[nodiscard]] std::string hashes() const;

private:
    /// What one event adds to what a client sees.
    struct Part {
        std::string text, thought;
    };
    struct Choice {
        std::string text, thought;
        ThinkingFilter thinking;
        ToolCallReader calls;
        std::size_t n_calls_shown = 0;
        std::vector<ChosenToken> tokens;
        std::vector<float> vector;
        Heard heard;                             // of a recording
        std::optional<Clock::time_point> first;  // when the first event came
        FinishReason finish = FinishReason::none;
        std::uint32_t n_prompt = 0, n_shared = 0, n_new = 0;
        std::uint64_t hash = 0;
        std::size_t n_chars = 0;  // of the text before the next token, for completions' offsets
    };
    [[nodiscard]] std::string openai_piece(Choice& choice, std::size_t index, const Event& event, const Part& part);
    [[nodiscard]] std::string response_piece(Choice& choice, const Event& event, const Part& part);
    [[nodiscard]] static std::string heard_piece(const Choice& choice, const Event& event);
    [[nodiscard]] std::string ollama_piece(Choice& choice, const Event& event, const Part& part) const;
    [[nodiscard]] Part visible(Choice& choice, const Event& event) const;
    [[nodiscard]] Json head(const char* object) const;
    [[nodiscard]] Json chat_choice(const Choice& choice, std::size_t index) const;
    [[nodiscard]] Json usage() const;
    [[nodiscard]] Json vectors() const;
    [[nodiscard]] Json ranked() const;
    void add_ollama_part(Json& json, const Choice& choice, const Part& part, std::size_t from_call) const;
    void add_ollama_figures(Json& json, const Choice& choice) const;

    AnswerOptions options_;
    std::vector<Choice> choices_;
    std::optional<ResponseItems> items_;  // of a response
    std::size_t n_ended_ = 0;
    Failure failure_;
};

/// What the forms share. answer_parts.cpp
[[nodiscard]] const char* finish_word(FinishReason finish);
[[nodiscard]] Json chat_logprobs(const std::vector<ChosenToken>& tokens);
[[nodiscard]] Json completion_logprobs(const std::vector<ChosenToken>& tokens, std::size_t n_chars);
[[nodiscard]] Json openai_calls(const std::string& id, std::size_t choice, const std::vector<ToolCall>& calls,
                                std::size_t from, bool with_index);
/// The first n of a vector's values, divided by their length; all of them as they are where n is 0.
[[nodiscard]] std::vector<float> shortened(std::vector<float> vector, std::size_t n);
/// Divided by its Euclidean length; of zeros itself.
[[nodiscard]] std::vector<float> with_length_1(std::vector<float> vector);
[[nodiscard]] std::string base64(const std::vector<float>& values);
[[nodiscard]] std::string utc_time(std::int64_t seconds);
[[nodiscard]] std::size_t n_characters(const std::string& text);

}  // namespace fovea::serve
