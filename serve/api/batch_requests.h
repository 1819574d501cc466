// Requests of `run --batch`: a JSON object a line, with the fields that the server's requests have.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/mapping.h"
#include "host/model/sampling_options.h"
#include "serve/api/forms_of.h"
#include "serve/api/prompt_reader.h"
#include "serve/api/request.h"

namespace fovea::serve {

/// The lines of a file that are not blank, read in place where it is a file; "-" is standard input.
class BatchLines {
public:
    explicit BatchLines(const std::string& path);
    BatchLines(const BatchLines&) = delete;
    BatchLines& operator=(const BatchLines&) = delete;

    [[nodiscard]] std::size_t size() const { return lines_.size(); }
    [[nodiscard]] std::string_view operator[](std::size_t i) const { return lines_[i].text; }
    /// "in.jsonl: line 3", to begin a message with.
    [[nodiscard]] std::string place(std::size_t i) const;

private:
    struct Line {
        std::string_view text;
        std::size_t number;  // from 1, blank ones counted
    };
    std::string path_, text_;
    Mapping mapping_;
    std::vector<Line> lines_;
};

/// What a line does not say itself.
struct BatchDefaults {
    SamplingOptions sampling;
    std::vector<std::string> stop;
    std::uint32_t n_new = 0;  ///< 0xffffffff: as many as the context has room for
    Languages languages{};    ///< of texts that are written from others
    Request form;             ///< its form, schema, grammar and compact

    /// All of it that changes an answer, for a request's hash.
    [[nodiscard]] std::string text() const;
};

struct BatchRequest {
    Json id;  ///< null: none
    Request request;
    std::vector<std::vector<Token>> prompts;  ///< one; or, where there are rules, the parts of a source
    bool is_tokens = false;                   ///< it was given as ids, and so is the answer
    std::shared_ptr<const TargetRules> rules;
    std::shared_ptr<const TokenRules> token_rules;  ///< null: none
    std::uint32_t n_new = 0;                        ///< that the context has room for
    /// Of the line, the defaults and the model: an answer carries it, so that no other request's is taken for it.
    std::uint32_t hash = 0;
};

/// Reads lines for one model.
class BatchReader {
public:
    /// Borrows all three. `context`: positions that a prompt and its answer may take; of a model that writes texts from others,
    /// that a source may.
    BatchReader(const BatchLines& lines, const host::Opened& served, const BatchDefaults& defaults, Type kv_type,
                std::uint32_t context);

    /// Throws host::Error, which names the line, what was expected and what was there.
    [[nodiscard]] BatchRequest read(std::size_t i);
    /// The form of answers that the request asks for, compiled; empty where any text will do. Throws host::Error.
    [[nodiscard]] Constrain form(std::size_t i, const BatchRequest& request);
    [[nodiscard]] const ModelChat* chat() const { return prompts_.chat(); }
    [[nodiscard]] std::uint64_t memory_bytes() const { return prompts_.memory_bytes(); }

private:
    void settle(const Json& line, Request& request) const;

    const BatchLines& lines_;
    const host::Opened& served_;
    const BatchDefaults& defaults_;
    std::uint32_t context_, hash_;
    PromptReader prompts_;
    Forms forms_;
};

}  // namespace fovea::serve
