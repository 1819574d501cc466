#include "line_editor.h"

#include <poll.h>
#include <unistd.h>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <cwchar>

#if FOVEA_LIBEDIT
#include <histedit.h>
#endif

namespace fovea {
namespace {

/// The next byte of standard input, or false at its end and where a signal comes first.
bool next_byte(char& byte) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, -1) == 1 && ::read(STDIN_FILENO, &byte, 1) == 1;
}

}  // namespace

#if FOVEA_LIBEDIT
struct LineEditor::Library {
    EditLine* line = nullptr;
    History* history = nullptr;
    HistEvent event{};
    const char* prompt = "";

    Library() {
        // Characters, not bytes; only while it exists.
        if (!std::setlocale(LC_CTYPE, "") || std::strcmp(std::setlocale(LC_CTYPE, nullptr), "C") == 0)
            (void)std::setlocale(LC_CTYPE, "C.UTF-8");
        line = el_init("fovea", stdin, stderr, stderr);
        history = history_init();
        if (!line || !history) return;
        constexpr int kLines = 1000;
        ::history(history, &event, H_SETSIZE, kLines);
        el_set(line, EL_EDITOR, "emacs");
        el_set(line, EL_HIST, history_function(), history);
        el_set(line, EL_CLIENTDATA, this);
        el_set(
            line, EL_PROMPT, +[](EditLine* of) {
                Library* self = nullptr;
                el_get(of, EL_CLIENTDATA, &self);
                return const_cast<char*>(self->prompt);
            });
        el_set(line, EL_GETCFN, read_character);
    }
    ~Library() {
        if (history) history_end(history);
        if (line) el_end(line);
        (void)std::setlocale(LC_CTYPE, "C");
    }
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    static auto history_function() -> int (*)(::History*, HistEvent*, int, ...) { return &::history; }

    /// The library's own reads on where a signal came; this one ends there.
    static int read_character(EditLine*, wchar_t* out) {
        std::mbstate_t state{};
        for (int i = 0; i < 8; ++i) {
            char byte = 0;
            if (!next_byte(byte)) return i ? -1 : 0;
            const std::size_t n = std::mbrtowc(out, &byte, 1, &state);
            if (n == static_cast<std::size_t>(-1)) {
                *out = L'?';
                return 1;
            }
            if (n != static_cast<std::size_t>(-2)) return 1;
        }
        return -1;
    }
};
#else
struct LineEditor::Library {};
#endif

LineEditor::LineEditor(bool interactive) : interactive_(interactive) {
#if FOVEA_LIBEDIT
    if (interactive_ && isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) library_ = std::make_unique<Library>();
    if (library_ && (!library_->line || !library_->history)) library_.reset();
#endif
}

LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::read(const char* prompt) {
    std::string text;
#if FOVEA_LIBEDIT
    if (library_) {
        library_->prompt = prompt;
        int n = 0;
        const char* line = el_gets(library_->line, &n);
        if (!line || n <= 0) return std::nullopt;
        text.assign(line, static_cast<std::size_t>(n));
        if (text.find_first_not_of(" \t\r\n") != text.npos)
            ::history(library_->history, &library_->event, H_ENTER, text.c_str());
        while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
        return text;
    }
#endif
    if (interactive_) std::fputs(prompt, stderr);
    char byte = 0;
    bool more = true;
    while ((more = next_byte(byte)) && byte != '\n') text += byte;
    if (!more && text.empty()) return std::nullopt;
    if (text.ends_with('\r')) text.pop_back();
    return text;
}

}  // namespace fovea
