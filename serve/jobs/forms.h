// Forms that answers must have, compiled for a model's vocabulary, and the last ones kept.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "fovea/tokenizer.h"
#include "host/grammar/grammar.h"
#include "serve/jobs/job.h"

namespace fovea::serve {

struct CompiledForm;

/// Answers under way are held to as many bytes of forms as there may be.
struct FormsBusy : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Bytes of a form's text.
inline constexpr std::size_t kMostFormText = 64 << 10;

/// Bytes of compiled forms of one model, with those that answers under way are held to.
inline constexpr std::size_t kMostFormBytes = 256 << 20;

/// The forms of one model. Used by one thread; what it hands out is used by another.
class Forms {
public:
    explicit Forms(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

    /// What Job::constrain is to be. A form that was asked for lately is not compiled again, nor refused anew.
    ///   text     a GBNF grammar, a regular expression, or of other forms a JSON schema; at most kMostFormText bytes
    ///   make     the grammar of a form that has no text of its own, which `text` names
    ///   compact  no space between the parts of JSON
    ///   mark     the form begins behind it, and any text stands before it; empty: at once
    /// Throws grammar::GrammarError, FormsBusy.
    [[nodiscard]] Constrain find(Form form, const std::string& text, bool compact, const std::string& mark,
                                 const std::function<grammar::Grammar()>& make = {});

private:
    struct Kept {
        Form form;
        bool compact;
        std::string text, mark;
        std::shared_ptr<const CompiledForm> compiled;  ///< null: it was refused
        std::string refusal;
    };
    [[nodiscard]] std::shared_ptr<const CompiledForm> compiled(const grammar::Grammar& grammar);

    const Tokenizer& tokenizer_;
    std::shared_ptr<const std::vector<std::byte>> index_;  // of the vocabulary; made for the first form
    std::list<Kept> kept_;                                 // the last used first
    const std::shared_ptr<std::atomic<std::size_t>> n_bytes_ =
        std::make_shared<std::atomic<std::size_t>>(0);  // of all that live
};

}  // namespace fovea::serve
