// A line from the user: with libedit's keys and history if it is built in and this is a terminal, else as it comes.
#pragma once
#include <memory>
#include <optional>
#include <string>

namespace fovea {

class LineEditor {
public:
    /// Only if `interactive` there is a prompt, on standard error.
    explicit LineEditor(bool interactive);
    ~LineEditor();
    LineEditor(const LineEditor&) = delete;
    LineEditor& operator=(const LineEditor&) = delete;

    /// A line without its line break; nothing at the end of the input, and if a signal came. A paste, as the terminal
    /// marks it, is one line with the line breaks that are in it.
    std::optional<std::string> read(const char* prompt);
    /// Whether the last line had begun when a signal ended it.
    [[nodiscard]] bool had_text() const { return had_text_; }

private:
    struct Library;
    std::unique_ptr<Library> library_;
    bool interactive_, had_text_ = false;
};

}  // namespace fovea
