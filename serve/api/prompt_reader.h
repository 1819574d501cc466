// Prompts as the engine takes them: tokens of a text, or of a conversation by the model's chat template.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/host/arena.h"
#include "host/chat/model_chat.h"
#include "host/model/text_prompts.h"
#include "host/translate/target_writer.h"
#include "serve/api/request.h"
#include "serve/jobs/worker.h"

namespace fovea::serve {

/// Of one model. Its memory is taken once, here. Used by one thread.
class PromptReader {
public:
    /// Texts that give at most `context` tokens, one of them left for the answer where there is one. Of a model that
    /// host::Kind::translation a prompt's tokens are a source's, beside which its answer has a context of its own.
    PromptReader(const host::Opened& served, std::uint32_t context, bool has_answer);

    /// The prompts of a request, each of 1 to context tokens, and whether a conversation's ends inside the model's
    /// reasoning. Throws RequestError.
    struct Prompted {
        std::vector<std::vector<Token>> prompts;
        bool in_thought = false;
        std::vector<std::vector<Token>> types = {};  ///< of a pair's tokens; empty: all are 0
        std::shared_ptr<const TargetRules> rules =
            {};  ///< by which texts are written from the prompts; null: they go on
    };
    [[nodiscard]] Prompted read(const Request& request);
    /// The tokens of a text that is no prompt. Throws RequestError, which names `param`.
    [[nodiscard]] std::vector<Token> read_text(const std::string& text, const TokenizeOptions& options,
                                               const char* param);
    /// The conversation as the text that the model continues.
    [[nodiscard]] std::string render(const Request& request) const;
    /// Whether a request is a conversation, for whose prompt the template is asked.
    [[nodiscard]] static bool is_chat(const Request& request) {
        return request.api == Api::chat || request.api == Api::response || request.api == Api::ollama_chat ||
               (request.api == Api::ollama_generate && !request.raw);
    }
    /// The model's way to talk; null where it answers one text at a time.
    [[nodiscard]] const ModelChat* chat() const { return chat_ ? &*chat_ : nullptr; }
    [[nodiscard]] std::uint64_t memory_bytes() const { return scratch_.size(); }

private:
    [[nodiscard]] std::vector<Token> tokens_of(const std::string& text, const TokenizeOptions& options,
                                               const char* param, bool cuts);
    [[nodiscard]] std::vector<Token> checked(const std::vector<Token>& tokens, const char* param) const;
    [[nodiscard]] Prompted read_sources(const Request& request);
    [[nodiscard]] std::shared_ptr<const ToldLanguages> told(const Languages& languages);
    [[nodiscard]] Prompted read_pairs(const Request& request);
    /// What stands before each text of a request for vectors.
    [[nodiscard]] std::string prompt_of(const Request& request) const;
    [[noreturn]] void refuse_length(const char* param, const std::string& got) const;

    const host::Opened& served_;
    const std::uint32_t context_, most_;
    std::size_t most_bytes_ = 0;
    std::optional<ModelChat> chat_;
    std::string no_chat_;               // why there is none
    Prompts prompts_;                   // of an encoder
    std::optional<TargetRules> rules_;  // of a model that writes texts from others
    std::map<std::pair<std::string, std::string>, std::shared_ptr<const ToldLanguages>> told_;
    Arena scratch_;
};

}  // namespace fovea::serve
