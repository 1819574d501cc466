// Prompts as jobs take them, of what a request says.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fovea/host/chat.h"
#include "host/chat/tainted_text.h"
#include "host/model/late_interaction.h"
#include "host/model/prompt_tokens.h"
#include "host/model/text_prompts.h"
#include "host/text/forced_call.h"
#include "host/translate/translation.h"
#include "serve/api/request.h"
#include "serve/jobs/token_rules.h"
#include "serve/jobs/worker.h"

namespace fovea::serve {

/// Reads the prompts of one model. Its memory is taken once, here. Threads take turns with it.
class PromptReader {
public:
    /// Texts that give at most `context` tokens, one of them left for the answer if there is one. A translating
    /// model's prompts are sources, beside which its answers have a context of their own.
    PromptReader(const host::Opened& served, std::uint32_t context, bool has_answer);

    struct Prompted {
        std::vector<std::vector<Token>> prompts;     ///< each of 1 to context tokens
        std::string begun = {};                      ///< what a conversation's has of the answer, for who reads that
        std::string form_mark = {};                  ///< behind which the answer's form begins; empty: at once
        std::vector<std::vector<Token>> types = {};  ///< of a pair's tokens; empty: all are 0
        std::shared_ptr<const TargetRules> rules =
            {};                                      ///< by which texts are written from the prompts; null: they go on
        std::vector<std::uint32_t> n_unpooled = {};  ///< of each prompt, tokens that its vector leaves out; empty: none
        std::vector<std::uint32_t> n_unseen = {};    ///< of each prompt, last tokens that no other attends to
    };
    /// The prompts of a request. All throw RequestError.
    [[nodiscard]] Prompted read(const Request& request);
    [[nodiscard]] Prompted read(const VectorRequest& request);
    /// Pairs of the query and each of the documents; errors name `query_field`.
    [[nodiscard]] Prompted read_pairs(const std::string& query, const std::vector<std::string>& documents,
                                      const char* query_field);
    /// Adds texts as queries or as documents of late interaction; errors name `field`.
    void add_late(const std::vector<std::string>& texts, bool are_queries, const char* field, Prompted& read);
    /// The model's late interaction; null: another model.
    [[nodiscard]] const LateModel* late() const { return late_ ? &*late_ : nullptr; }
    /// The tokens of a text that is no prompt; errors name `param`.
    [[nodiscard]] std::vector<Token> read_text(const std::string& text, const TokenizeOptions& options,
                                               const char* param);
    /// The conversation as the text that the model continues, and the tokens of such a text.
    [[nodiscard]] TaintedText render(const Request& request) const;
    [[nodiscard]] std::vector<Token> read_rendered(const TaintedText& prompt, const Request& request);
    /// Tokens that the request's answers may not have; null: none is said.
    [[nodiscard]] std::shared_ptr<const TokenRules> token_rules(const Request& request);
    /// The model's way to talk; null where it answers one text at a time.
    [[nodiscard]] const ModelChat* chat() const { return chat_ ? &*chat_ : nullptr; }
    /// How it fills in texts.
    [[nodiscard]] const Infill& infill() const { return infill_; }
    [[nodiscard]] std::uint64_t memory_bytes() const { return tokens_.memory_bytes(); }
    /// What memory_bytes() will be, before any is taken.
    [[nodiscard]] static std::uint64_t planned_bytes(const host::Opened& served, std::uint32_t context) {
        return host::PromptTokens::planned_bytes(served, context);
    }

private:
    [[nodiscard]] TaintedText render_template(const Request& request) const;
    [[nodiscard]] std::vector<Token> fitted(std::vector<Token> tokens, const Request& request) const;
    void check_ids(const char* name, std::span<const Token> ids) const;
    [[nodiscard]] Prompted read_conversation(const Request& request);
    [[nodiscard]] FormPlace form_place(const Request& request, TaintedText& prompt) const;
    [[nodiscard]] std::vector<Token> read_infill(const Prompt& prompt, const Request& request);
    [[nodiscard]] Prompted read_sources(const Request& request);
    [[nodiscard]] std::shared_ptr<const ToldLanguages> told(const Languages& languages);

    const host::Opened& served_;
    host::PromptTokens tokens_;
    std::optional<ModelChat> chat_;
    Infill infill_;
    std::string no_chat_;  // why there is none
    Prompts prompts_;      // of an encoder
    std::optional<LateModel> late_;
    std::optional<TargetRules> rules_;  // of a model that writes texts from others
    std::map<std::pair<std::string, std::string>, std::shared_ptr<const ToldLanguages>> told_;
    std::unique_ptr<std::mutex> telling_ = std::make_unique<std::mutex>();  // told_ is one thread's at a time
};

}  // namespace fovea::serve
