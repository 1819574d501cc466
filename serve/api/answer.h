// What a client reads: events of a job become an endpoint's answer, in pieces or whole.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "serve/api/request.h"
#include "serve/jobs/job.h"

namespace fovea::serve {

/// An answer under way: begin, then add until it has ended, then end or whole.
class Answer {
public:
    explicit Answer(std::uint32_t n_choices) : n_choices_(n_choices) {}
    virtual ~Answer() = default;

    /// What a stream begins with, before any event.
    [[nodiscard]] virtual std::string begin() { return {}; }
    /// Takes what a pass has added. For a stream: the bytes to send.
    [[nodiscard]] std::string add(const std::vector<Event>& events);
    [[nodiscard]] bool ended() const { return n_ended_ == n_choices_; }
    /// The first failure; status 0: none.
    [[nodiscard]] const Failure& failure() const { return failure_; }
    /// What a stream ends with.
    [[nodiscard]] virtual std::string end() { return {}; }
    /// The whole body, once all has ended, and what its bytes are.
    [[nodiscard]] virtual std::string whole() const = 0;
    [[nodiscard]] virtual const char* content_type() const { return "application/json"; }
    [[nodiscard]] virtual const char* stream_type() const { return "text/event-stream"; }
    /// Bytes of the request that it keeps.
    [[nodiscard]] virtual std::size_t n_kept() const { return 0; }
    /// "0123456789abcdef", of each choice in turn; empty where nobody asks for them.
    [[nodiscard]] virtual std::string hashes() const { return {}; }

protected:
    /// What an event adds; it is no failure. The bytes that a stream sends for it.
    [[nodiscard]] virtual std::string take(const Event& event) = 0;
    /// What a stream of OpenAI's ends with where it failed.
    [[nodiscard]] std::string openai_failure() const;

private:
    std::uint32_t n_choices_, n_ended_ = 0;
    Failure failure_;
};

/// An error's body as the path's API has it: OpenAI's, below /api/ Ollama's, below /v1/messages Anthropic's.
[[nodiscard]] std::string error_body(std::string_view path, int status, const std::string& message,
                                     const std::string& param = {}, const std::string& code = {});
/// JSON in one line; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string written(const Json& json);
/// A server-sent event, without and with a name.
[[nodiscard]] std::string as_event(const Json& json);
[[nodiscard]] std::string as_event(const std::string& name, const Json& json);

/// What endpoints share.
[[nodiscard]] const char* finish_word(FinishReason finish);
[[nodiscard]] std::int64_t unix_seconds();  ///< since 1970
[[nodiscard]] std::string utc_time(std::int64_t seconds);
[[nodiscard]] std::size_t n_characters(const std::string& text);
/// The id of a call of a tool: nine letters and digits, as Mistral's templates demand them.
///   answer  the answer's id;  choice, index  of the call's choice, and of the call among its calls
[[nodiscard]] std::string call_id(const std::string& answer, std::size_t choice, std::size_t index);

}  // namespace fovea::serve
