// Answers as OpenAI's responses: items (reasoning, a message, calls of functions), whole or as a stream of typed events.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "fovea/generator.h"
#include "serve/api/request.h"
#include "serve/api/tool_calls.h"

namespace fovea::serve {

struct Failure;

/// Takes an answer's parts as they come. What a stream would send is handed out each time.
class ResponseItems {
public:
    static constexpr std::string_view kMessage = "message", kReasoning = "reasoning";

    /// `echoed`: the request's settings, which the response repeats.
    ResponseItems(const std::string& id, const std::string& model, std::int64_t created, Json echoed);

    [[nodiscard]] std::string opening();
    [[nodiscard]] std::string think(std::string_view text) { return write(text, kReasoning); }
    [[nodiscard]] std::string say(std::string_view text) { return write(text, kMessage); }
    [[nodiscard]] std::string call(const ToolCall& call);
    /// The end. `usage` is in the form of responses.
    [[nodiscard]] std::string finish(FinishReason finish, Json usage);
    [[nodiscard]] std::string fail(const Failure& failure);
    [[nodiscard]] const Json& whole() const { return response_; }

private:
    [[nodiscard]] std::string event(const std::string& type, Json members);
    [[nodiscard]] std::string write(std::string_view text, std::string_view type);
    [[nodiscard]] std::string open_text(std::string_view type);
    [[nodiscard]] std::string open(Json item);
    [[nodiscard]] std::string close(const char* status);
    [[nodiscard]] std::string next_id(const char* prefix) const;
    [[nodiscard]] Json& item() { return response_["output"].back(); }
    [[nodiscard]] Json place() const;

    std::string id_;
    Json response_;
    bool is_open_ = false;  // the last item may go on
    std::uint64_t n_events_ = 0;
};

}  // namespace fovea::serve
