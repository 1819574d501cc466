// Forms that answers must have, compiled for a model's vocabulary, and the last ones kept.
#pragma once
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "fovea/tokenizer.h"
#include "host/grammar/grammar.h"
#include "serve/jobs/job.h"

namespace fovea::serve {

struct CompiledForm;

/// The forms of one model. Used by one thread; what it hands out is used by another.
class Forms {
public:
    explicit Forms(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

    /// What Job::constrain is to be. A form that was asked for lately is not compiled again.
    ///   text     a GBNF grammar, a regular expression, or of other forms a JSON schema
    ///   make     the grammar of a form that has no text of its own, which `text` names
    ///   compact  no space between the parts of JSON
    /// Throws grammar::GrammarError.
    [[nodiscard]] Constrain find(Form form, const std::string& text, bool compact,
                                 const std::function<grammar::Grammar()>& make = {});

private:
    struct Kept {
        Form form;
        bool compact;
        std::string text;
        std::shared_ptr<const CompiledForm> compiled;
    };

    const Tokenizer& tokenizer_;
    std::shared_ptr<const std::vector<std::byte>> index_;  // of the vocabulary; made for the first form
    std::list<Kept> kept_;                                 // the last used first
};

}  // namespace fovea::serve
