// Reasoning in an answer: <think>...</think> before the text, as DeepSeek-R1, Qwen 3 and their like write it.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace fovea {

/// Whether a prompt ends with the mark that opens the reasoning: the answer then begins inside it.
[[nodiscard]] bool begins_in_thought(std::string_view prompt);

/// Parts an answer that comes in pieces into reasoning and text. Reasoning comes first or not at all: anywhere else its
/// marks are text. Space between its end and the first word is left out.
class ThinkingFilter {
public:
    /// thinking: the answer begins inside the reasoning.
    explicit ThinkingFilter(bool thinking = false) : at_(thinking ? Place::thought : Place::start) {}
    /// Calls on_text(text, is_thought) for what is decided; what could begin a mark waits.
    void add(std::string_view piece, const std::function<void(std::string_view, bool)>& on_text);
    /// No more comes: hands out what waits.
    void finish(const std::function<void(std::string_view, bool)>& on_text);

private:
    enum class Place { start, thought, after_thought, said };
    std::string waiting_;
    Place at_;
};

}  // namespace fovea
