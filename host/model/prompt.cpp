#include "fovea/host/prompt.h"

#include <algorithm>

#include "host/base/error.h"
#include "host/model/stacks.h"

namespace fovea::host {
namespace {

const char* name_of(PromptPart::Kind kind) {
    static constexpr const char* kNames[] = {"text", "an image", "sound"};
    return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace

Prompt::Prompt(std::span<const Token> text) : keys_(text.begin(), text.end()) {
    if (!text.empty()) parts_.push_back({{.tokens = keys_}, 0, static_cast<std::uint32_t>(text.size())});
}

void Prompt::add(const Opened& opened, PromptPart part) {
    const Stack& stack = output_stack(opened.config());
    const bool is_text = part.kind == PromptPart::Kind::text;
    if (!is_text && (opened.kind() != Kind::text || stack.blocks[0].inputs.width))
        throw Error(std::string("prompt: expected text, got ") + name_of(part.kind) + ": " + opened.name +
                    " reads text alone");
    const std::size_t width = stack.embedding_width ? stack.embedding_width : stack.d_model;
    const std::size_t n = is_text ? part.tokens.size() : part.rows.size() / width;
    if (n == 0 || (!is_text && part.rows.size() % width))
        throw Error(std::string("prompt: expected ") + (is_text ? "1 token" : "1 row of " + std::to_string(width)) +
                    " or more, got " + std::to_string(is_text ? n : part.rows.size()));
    const auto first = static_cast<std::uint32_t>(keys_.size());
    keys_.resize(first + n);
    parts_.push_back({std::move(part), first, static_cast<std::uint32_t>(n)});
    const Placed& placed = parts_.back();
    if (is_text) {
        std::copy(placed.tokens.begin(), placed.tokens.end(), keys_.begin() + first);
    } else {
        row_keys({{}, {}, {}, {}, placed.rows, placed.positions, placed.spans}, std::span(keys_).last(n));
        n_with_rows_ = static_cast<std::uint32_t>(keys_.size());
    }
}

const Prompt::Placed& Prompt::part_at(std::uint32_t position) const {
    return *std::find_if(parts_.begin(), parts_.end(), [&](const Placed& p) { return position < p.first + p.n; });
}

std::uint32_t Prompt::whole(std::uint32_t n) const {
    if (n >= keys_.size()) return static_cast<std::uint32_t>(keys_.size());
    const Placed& part = part_at(n);
    return part.kind == PromptPart::Kind::text ? n : part.first;
}

Step Prompt::step(const Cache& cache, std::uint32_t most) const {
    const std::uint32_t at = cache.kv_len();
    const Placed& part = part_at(at);
    if (part.kind != PromptPart::Kind::text) return {cache, {}, {}, {}, part.rows, part.positions, part.spans};
    const std::span<const Token> left = std::span(part.tokens).subspan(at - part.first);
    return {cache, left.first(std::min<std::size_t>(left.size(), most)), {}};
}

}  // namespace fovea::host
