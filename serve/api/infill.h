// Texts between a beginning and an end, for models that have tokens for that.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config.h"
#include "fovea/host/opened.h"
#include "host/chat/tainted_text.h"

namespace fovea::serve {

/// A family's marks: PREFIX beginning SUFFIX end MIDDLE, and the answer behind it.
struct InfillMarks {
    std::string_view prefix, suffix, middle;
    bool suffix_first = false;         ///< SUFFIX end PREFIX beginning MIDDLE
    std::string_view repository = {};  ///< before the name of a repository,
    std::string_view file = {};        ///< and before that of each of its files
};

/// Another file that the answer may be about.
struct InfillFile {
    std::string name, text;
};

/// What is to be filled in.
struct InfillText {
    std::string beginning, end;
    std::string begun = {};  ///< of the answer
    std::vector<InfillFile> files = {};
};

/// A model's way to fill in.
class Infill {
public:
    Infill() = default;
    /// By the tokens of its vocabulary.
    explicit Infill(const host::Opened& served);

    /// The model has it.
    [[nodiscard]] explicit operator bool() const { return marks_; }
    /// What was given is data: no mark in it is read as one.
    [[nodiscard]] TaintedText prompt(const InfillText& text) const;
    /// Tokens that end such an answer beside the model's own.
    [[nodiscard]] const std::vector<Token>& end_tokens() const { return end_tokens_; }

private:
    const InfillMarks* marks_ = nullptr;
    bool names_repository_ = false, names_files_ = false;
    std::vector<Token> end_tokens_;
};

}  // namespace fovea::serve
