#include "host/model/prompt_tokens.h"

#include "host/base/tokens_around.h"
#include "host/base/words.h"
#include "host/model/stacks.h"
#include "host/model/text_prompts.h"

namespace fovea::host {
namespace {

constexpr std::size_t kBytesPerToken = 64;  // of a text that fills the context: ten times what languages have

}  // namespace

PromptTokens::PromptTokens(const Opened& opened, std::uint32_t context, std::uint32_t most)
    : tokenizer_(opened.tokenizer),
      vocab_size_(input_stack(opened.config()).vocab_size),
      context_(context),
      most_(most),
      most_bytes_(std::size_t{context} * kBytesPerToken),
      cut_at_(cut_at(opened.model)) {
    const std::uint64_t n_scratch = planned_bytes(opened, context);
    scratch_ = Arena(n_scratch);
    if (scratch_.size() < n_scratch)
        throw Error(opened.name + ": memory: expected " + with_separators(n_scratch) +
                    " bytes to read prompts, got less");
}

std::uint64_t PromptTokens::planned_bytes(const Opened& opened, std::uint32_t context) {
    return tokenize_scratch_bytes(opened.tokenizer, std::size_t{context} * kBytesPerToken);
}

void PromptTokens::refuse_length(const std::string& got) const {
    throw PromptError("expected at most " + std::to_string(most_) +
                          " tokens, for this model's maximum context length is " + std::to_string(context_) +
                          " tokens, got " + got,
                      true);
}

void PromptTokens::check(const std::vector<Token>& tokens) const {
    if (tokens.empty()) throw PromptError("expected 1 token or more, got none");
    if (tokens.size() > most_) refuse_length(std::to_string(tokens.size()));
    for (const Token token : tokens)
        if (token >= vocab_size_)
            throw PromptError("expected token ids below " + std::to_string(vocab_size_) + ", got " +
                              std::to_string(token));
}

std::vector<Token> PromptTokens::read(std::string_view text, const TokenizeOptions& options,
                                      std::span<const TextRange> plain) {
    if (text.size() > most_bytes_) refuse_length("a text of " + std::to_string(text.size()) + " bytes");
    const std::lock_guard lock(*turn_);
    return tokenize_around(tokenizer_, text, plain, options, scratch_);
}

std::vector<Token> PromptTokens::read_cut(std::string_view text, const TokenizeOptions& options) {
    if (cut_at_ == CutAt::front && text.size() > most_bytes_) text.remove_prefix(text.size() - most_bytes_);
    std::vector<Token> tokens = read(text.substr(0, most_bytes_), options);
    if (tokens.size() > most_) cut_text(read({}, options), most_, cut_at_, tokens);
    return tokens;
}

}  // namespace fovea::host
