// An answer while it comes: its reasoning, what it says, and the calls of tools in it, parted by the model's dialect.
//
// Marks that are special tokens must be in the text (ModelChat::marks, GenerateOptions::shown), so that they are seen. How the
// text is cut into pieces changes nothing.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/chat/call_stream.h"
#include "host/chat/call_syntax.h"
#include "host/chat/dialect.h"

namespace fovea {

/// How an answer is read.
struct AnswerReading {
    AnswerDialect dialect = dialect_of({});
    std::string begun = {};     ///< what the prompt has of the answer: begun_answer, or what forces a call
    bool parts_thought = true;  ///< reasoning is told apart; else it is text, marks too
    bool reads_calls = false;
    bool calls_once = false;     ///< calls behind the first are left out
    KnownTools tools = {};       ///< that calls may name
    bool streams_calls = false;  ///< arguments are handed out while they come; a call that is cut is no text then
};

/// Reasoning comes first or not at all, except in channels: anywhere else its marks are text. Space behind it is left out, and
/// so is space that stands alone before, between or behind calls. What looks like a call and is none comes out as text.
class AnswerReader {
public:
    using OnText = std::function<void(std::string_view text, bool is_thought)>;

    explicit AnswerReader(AnswerReading how = {});
    /// Hands out what is decided; what could begin a mark waits, and so does a call until it ends.
    void add(std::string_view piece, const OnText& on_text);
    /// No more comes: hands out what waits.
    void finish(const OnText& on_text);
    /// In order; more come with each add.
    [[nodiscard]] const std::vector<ToolCall>& calls() const { return calls_; }
    /// What came of the calls, in order: more with each add. Each call is one piece unless calls are streamed.
    [[nodiscard]] const std::vector<CallPiece>& pieces() const { return pieces_; }

private:
    enum class Place {
        start,  // of the answer: space, then reasoning or text
        thought,
        after_thought,  // and after a call: space, then text or a call
        said,
        call,          // from its mark on
        header,        // of a message, behind its mark
        message_call,  // a message to a tool
    };
    /// One move; false where more text is wanted.
    bool move(const OnText& on_text, bool is_end);
    bool start(bool is_end);
    bool skip_space(bool is_end);
    bool begin_text(bool is_end);
    bool read_text(const OnText& on_text, bool is_end);
    bool read_call(const OnText& on_text, bool is_end);
    bool read_header(bool is_end);
    bool read_message_call(const OnText& on_text, bool is_end);
    void read_pieces(std::string_view text);
    /// What looked like a call becomes text, unless some of it was handed out as a call.
    void give_up(std::size_t n, const OnText& on_text);
    void take_calls(std::vector<ToolCall> calls, std::size_t n_bytes);
    /// The first bytes of what is held, as text.
    void say(std::size_t n, bool is_thought, const OnText& on_text);
    void drop(std::size_t n);
    [[nodiscard]] bool in_channels() const { return how_.dialect.calls->syntax == CallSyntax::channels; }

    AnswerReading how_;
    std::vector<std::string_view> text_marks_, thought_marks_, message_marks_;  // what ends each
    Place place_ = Place::start;
    std::string held_;
    std::string tool_;            // that the present message is for
    std::size_t n_begun_ = 0;     // bytes of what is held that the prompt has
    std::size_t searched_ = 0;    // of a call that is held: bytes without its end
    std::size_t n_said_ = 0;      // bytes of text
    std::uint32_t n_inside_ = 0;  // ends that stand in its arguments
    bool is_bare_ = false;        // the call has no mark
    std::vector<ToolCall> calls_;
    CallStream stream_;  // of the present call
    std::vector<CallPiece> pieces_;
};

}  // namespace fovea
