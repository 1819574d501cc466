// Models whose answer is several messages (OpenAI's Harmony and its kin): the end of one is not the end of all.
#pragma once
#include <string_view>

namespace fovea {

/// Ends a message, and the answer of a model that answers in one.
inline constexpr std::string_view kMessageEnd = "<|end|>";

/// Whether a model answers so, by the special tokens that it has: has(name) for each that is asked for.
[[nodiscard]] bool answers_in_messages(const auto& has) {
    const bool flushes = has("<|flush|>");
    return (has("<|call|>") && (flushes || has("<|return|>"))) || (has("<|calls|>") && flushes);
}

}  // namespace fovea
