#include "host/text/conversation.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "host/base/error.h"
#include "host/base/output_file.h"
#include "host/text/session_file.h"

namespace fovea::host {
namespace {

// A saved conversation: this line, the messages' bytes as a u64, the messages as JSON, a session's file.
constexpr std::string_view kMagic = "fovea chat 1\n";

bool has_system(const Json& messages) { return !messages.empty() && messages[0]["role"] == "system"; }

Json message(const char* role, const std::string& text) { return {{"role", role}, {"content", text}}; }

bool are_calls(const Json& calls) {
    return calls.is_array() && std::all_of(calls.begin(), calls.end(), [](const Json& call) {
               return call.is_object() && call.value("id", Json()).is_string() &&
                      call.value("function", Json()).is_object() && call["function"].value("name", Json()).is_string();
           });
}

/// The messages of a saved conversation, or a Error.
Json read_messages(std::string_view text, const std::string& path) {
    Json messages = read_json(text);
    const auto is_message = [](const Json& one) {
        return one.is_object() && one.contains("role") && one["role"].is_string() && one.contains("content") &&
               one["content"].is_string() && (!one.contains("tool_calls") || are_calls(one["tool_calls"]));
    };
    if (!messages.is_array() || !std::all_of(messages.begin(), messages.end(), is_message))
        throw Error(path + ": messages: expected those of a saved conversation, got others");
    return messages;
}

}  // namespace

ChatInput Conversation::input() const {
    ChatInput input;
    input.messages = messages_;
    input.extra = extra_;
    input.tools = tools_;
    return input;
}

std::vector<Token> Conversation::tokens_of(const TaintedText& prompt) const {
    const std::string_view text = prompt.text();
    if (!known_text_.empty() && text.starts_with(known_text_)) {
        // Only where a special token follows: other text may be tokenized otherwise at a beginning.
        const std::vector<Token> rest = chat_.read(prompt.part(text.substr(known_text_.size())));
        if (!rest.empty() && opened_.tokenizer.is_special(rest.front())) {
            std::vector<Token> tokens = known_tokens_;
            tokens.insert(tokens.end(), rest.begin(), rest.end());
            return tokens;
        }
    }
    return chat_.read(prompt);
}

std::vector<Token> Conversation::fitting_prompt(Answer& answer) {
    const std::uint32_t most = generation_.session().max_kv_len();
    const std::uint32_t room = std::min(options_.n_new, most / 4);  // for the answer
    for (;;) {
        const TaintedText prompt = chat_.render(input());
        answer.prompt = prompt.text();
        std::vector<Token> tokens = tokens_of(prompt);
        if (tokens.empty()) throw Error("prompt: expected 1 token or more, got none");
        if (tokens.size() + std::max(room, 1u) <= most) return tokens;
        const std::size_t first = has_system(messages_) ? 1 : 0;
        // The oldest turn: a message, its answer, and results of calls with the answers to them.
        const auto at = messages_.begin() + static_cast<std::ptrdiff_t>(first);
        const auto next = std::find_if(at + 1, messages_.end(), [](const Json& one) { return one["role"] == "user"; });
        if (next == messages_.end()) {  // the last turn: nothing to leave out
            if (tokens.size() + 1 <= most) return tokens;
            throw Error("message: expected one that a context of " + std::to_string(most) +
                        " tokens has room for, got " + std::to_string(tokens.size()) + " tokens");
        }
        answer.n_forgotten += static_cast<std::size_t>(next - at);
        messages_.erase(at, next);
    }
}

Answer Conversation::say(const std::string& text, const AnswerReader::OnText& on_text,
                         const std::atomic<bool>* cancel) {
    Answer answer;
    const Json before = messages_;
    const Json calls = open_calls();
    messages_.push_back(calls.empty() ? message("user", text) : message("tool", text));
    if (!calls.empty()) {
        messages_.back()["tool_call_id"] = calls[0]["id"];
        messages_.back()["name"] = calls[0]["function"]["name"];
    }
    if (calls.size() > 1) return answer;  // others want their results, too
    std::vector<Token> prompt;
    try {
        prompt = fitting_prompt(answer);
    } catch (const ChatTemplateError& error) {
        messages_ = before;
        throw Error("chat template: " + std::string(error.what()));
    } catch (...) {
        messages_ = before;
        throw;
    }
    GenerateOptions options = options_;
    options.end_tokens = chat_.end_tokens();
    options.shown = chat_.marks();
    AnswerReader reader({.dialect = chat_.dialect(),
                         .begun = std::string(begun_answer(chat_.dialect(), answer.prompt)),
                         .reads_calls = !tools_.empty(),
                         .tools = tools_});
    const auto on_part = [&](std::string_view part, bool is_thought) {
        (is_thought ? answer.thought : answer.said) += part;
        on_text(part, is_thought);
    };
    options.n_new = std::min<std::uint32_t>(
        options.n_new, generation_.session().max_kv_len() - static_cast<std::uint32_t>(prompt.size()));
    answer.made = generation_.generate_until(
        prompt, options,
        [&](const Piece& piece) {
            answer.text += piece.text;
            reader.add(piece.text, on_part);
            return true;
        },
        cancel);
    answer.ended = answer.made.finish == FinishReason::end_token || answer.made.finish == FinishReason::stop_text;
    reader.finish(on_part);
    messages_.push_back(message("assistant", answer.text));
    if (chat_.dialect().calls->syntax == CallSyntax::channels) {  // its template wants the parts
        messages_.back()["content"] = answer.said;
        messages_.back()["thinking"] = answer.thought;
    }
    answer.calls = reader.calls();
    if (!answer.calls.empty()) messages_.back()["content"] = answer.said;
    for (std::size_t i = 0; i < answer.calls.size(); ++i) {
        char id[10];  // nine letters and digits, as Mistral's templates want them
        std::snprintf(id, sizeof id, "call%05zu", (messages_.size() + i) % 100000);
        messages_.back()["tool_calls"].push_back(
            {{"id", id},
             {"type", "function"},
             {"function", {{"name", answer.calls[i].name}, {"arguments", answer.calls[i].arguments}}}});
    }
    known_text_ = answer.prompt + answer.text;
    const std::span<const Token> all = generation_.all_tokens();
    known_tokens_.assign(all.begin(), all.end());
    if (answer.made.finish == FinishReason::stop_text) known_text_.clear();  // has fewer characters than its tokens
    return answer;
}

Json Conversation::open_calls() const {
    std::size_t last = messages_.size();
    while (last > 0 && messages_[last - 1]["role"] == "tool") --last;
    Json open = Json::array();
    if (last == 0 || !messages_[last - 1].contains("tool_calls")) return open;
    const Json& calls = messages_[last - 1]["tool_calls"];
    for (std::size_t i = messages_.size() - last; i < calls.size(); ++i) open.push_back(calls[i]);
    return open;
}

void Conversation::set_system(const std::string& text) {
    if (has_system(messages_)) messages_.erase(messages_.begin());
    if (!text.empty()) messages_.insert(messages_.begin(), message("system", text));
}

void Conversation::reset() {
    const std::string system = has_system(messages_) ? messages_[0]["content"].get<std::string>() : "";
    messages_ = Json::array();
    set_system(system);
}

std::string Conversation::undo() {
    std::size_t last = messages_.size();
    while (last > 0 && messages_[last - 1]["role"] != "user") --last;
    if (last == 0) return {};
    const std::string text = messages_[last - 1]["content"];
    messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(last - 1), messages_.end());
    return text;
}

void Conversation::save(const std::string& path) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored) && std::filesystem::file_size(path, ignored) > 0) {
        std::string front(kMagic.size(), '\0');
        std::ifstream(path, std::ios::binary).read(front.data(), static_cast<std::streamsize>(front.size()));
        if (front != kMagic) throw Error(path + ": expected a new file or a saved conversation, got another file");
    }
    const std::vector<std::byte> session =
        session_file_bytes(path, generation_.session(), generation_.tokens(), opened_.adapters_checksum());
    const std::string messages = json_text(messages_);
    const std::uint64_t n = messages.size();
    OutputFile file(path);
    file.stream().write(kMagic.data(), kMagic.size());
    file.stream().write(reinterpret_cast<const char*>(&n), sizeof n);
    file.stream().write(messages.data(), static_cast<std::streamsize>(messages.size()));
    file.stream().write(reinterpret_cast<const char*>(session.data()), static_cast<std::streamsize>(session.size()));
    file.close();
}

void Conversation::load(const std::string& path) {
    Mapping mapping;
    require(map_file(path.c_str(), mapping), path);
    const std::span<const std::byte> bytes = mapping.bytes();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::uint64_t n = 0;
    const std::size_t front = kMagic.size() + sizeof n;
    if (text.starts_with(kMagic) && bytes.size() >= front) std::memcpy(&n, bytes.data() + kMagic.size(), sizeof n);
    if (!text.starts_with(kMagic) || bytes.size() < front || n > bytes.size() - front)
        throw Error(path + ": expected a saved conversation, got another file");
    Json messages = read_messages(text.substr(front, static_cast<std::size_t>(n)), path);
    const SavedText file =
        split_session_file(bytes.subspan(front + static_cast<std::size_t>(n)), path, opened_.adapters_checksum());
    generation_.resume(file, path);
    messages_ = std::move(messages);
    known_text_.clear();
}

}  // namespace fovea::host
