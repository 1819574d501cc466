// Answers to Ollama's requests for texts: an object a line.
#pragma once
#include <string>

#include "serve/api/text_answer.h"

namespace fovea::serve {

class OllamaAnswer : public TextAnswer {
public:
    using TextAnswer::TextAnswer;
    [[nodiscard]] std::string end() override;
    [[nodiscard]] std::string whole() const override;
    [[nodiscard]] const char* stream_type() const override { return "application/x-ndjson"; }

protected:
    /// What was thought, what is said and, of a chat, calls from the given one on.
    virtual void add_part(Json& json, const Written& written, const Part& part, std::size_t from_call) const = 0;

private:
    [[nodiscard]] Json head() const;
    void add_figures(Json& json, const Written& written) const;
    [[nodiscard]] std::string piece(Written& written, const Event& event, const Part& part) override;
};

/// What is told where the model was to be loaded, and no more: an answer of nothing, in its field.
[[nodiscard]] Reply loaded(const ModelEntry& entry, const char* field, Json nothing);

}  // namespace fovea::serve
