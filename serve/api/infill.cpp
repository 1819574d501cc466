#include "serve/api/infill.h"

#include <algorithm>

#include "fovea/tokenizer.h"

namespace fovea::serve {
namespace {

constexpr InfillMarks kMarks[] = {
#include "serve/api/infill_marks.inc"
};

/// Tokens that models write behind what they filled in.
constexpr std::string_view kEnds[] = {"<|endoftext|>",   "<|fim_pad|>", "<|file_separator|>",
                                      "<|end_of_text|>", "<fim_pad>",   "\xe2\x96\x81<EOT>",
                                      "<EOT>",           "<|EOT|>"};

}  // namespace

Infill::Infill(const host::Opened& served) {
    if (served.kind() != host::Kind::text || !served.tokenizer.valid()) return;
    const auto token_of = [&](std::string_view text) {
        const std::vector<Token> tokens = served.tokens(text, {.add_special = false, .parse_special = true});
        return tokens.size() == 1 && token_bytes(served.tokenizer, tokens[0]) == text ? tokens[0] : Tokenizer::kNoToken;
    };
    const auto has = [&](std::string_view mark) { return token_of(mark) != Tokenizer::kNoToken; };
    const auto found = std::find_if(std::begin(kMarks), std::end(kMarks), [&](const InfillMarks& marks) {
        return has(marks.prefix) && has(marks.suffix) && (marks.middle.empty() || has(marks.middle));
    });
    if (found == std::end(kMarks)) return;
    marks_ = &*found;
    names_repository_ = !marks_->repository.empty() && has(marks_->repository);
    names_files_ = !marks_->file.empty() && has(marks_->file);
    std::vector<std::string_view> ends{marks_->prefix, marks_->suffix, marks_->middle, marks_->repository,
                                       marks_->file};
    ends.insert(ends.end(), std::begin(kEnds), std::end(kEnds));
    for (const std::string_view end : ends)
        if (!end.empty() && has(end)) end_tokens_.push_back(token_of(end));
}

TaintedText Infill::prompt(const InfillText& text) const {
    TaintedText prompt;
    const auto mark = [&](std::string_view own) { prompt.add(std::string(own)); };
    const auto data = [&](const std::string& given) { prompt.add(TaintedText(given, true)); };
    if (!text.files.empty() && names_files_ && names_repository_) {
        mark(marks_->repository);
        mark("repository\n");
    }
    for (const InfillFile& file : text.files) {
        if (names_files_) mark(marks_->file);
        data(file.name + '\n' + file.text + '\n');
    }
    if (!text.files.empty() && names_files_) {
        mark(marks_->file);
        mark("file\n");
    }
    const auto beginning = [&] {
        mark(marks_->prefix);
        data(text.beginning);
    };
    if (!marks_->suffix_first) beginning();
    mark(marks_->suffix);
    data(text.end);
    if (marks_->suffix_first) beginning();
    mark(marks_->middle);
    data(text.begun);
    return prompt;
}

}  // namespace fovea::serve
