#include "tools/terminal/line_editor.h"

#include <poll.h>
#include <unistd.h>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <string_view>

#include "tools/terminal/interrupt.h"

#if FOVEA_LIBEDIT
#include <histedit.h>
#endif

namespace fovea {
namespace {

/// The next byte of standard input, or false at its end, if Ctrl-C comes first, and if none comes in time.
bool next_byte(char& byte, int milliseconds = -1) {
    pollfd inputs[] = {{CatchInterrupt::descriptor(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    while (poll(inputs, 2, milliseconds) < 0)
        if (errno != EINTR || CatchInterrupt::came()) return false;
    return !inputs[0].revents && inputs[1].revents && ::read(STDIN_FILENO, &byte, 1) == 1;
}

#if FOVEA_LIBEDIT
/// The bytes of a terminal, which marks what is pasted into it (xterm's bracketed paste). In there, line breaks and
/// tabs are preceded by the key that makes the editor take the next byte as it is; other control characters are left
/// out.
class PasteReader {
public:
    /// As next_byte.
    bool next(char& byte) {
        while (ready_.empty())
            if (!fill()) return false;
        byte = ready_.front();
        ready_.erase(0, 1);
        return true;
    }

private:
    static constexpr char kQuote = '\x16';    // Ctrl-V
    static constexpr int kMilliseconds = 50;  // within which a terminal sends the rest of a key

    bool fill() {
        char byte = 0;
        if (!next_byte(byte)) return false;
        if (byte == '\x1b') {
            const std::string_view mark = pasting_ ? "\x1b[201~" : "\x1b[200~";
            std::string key(1, byte);
            while (key.size() < mark.size() && mark.starts_with(key) && next_byte(byte, kMilliseconds)) key += byte;
            if (key == mark)
                pasting_ = !pasting_;
            else if (!pasting_)
                ready_ += key;
        } else if (!pasting_ || static_cast<unsigned char>(byte) >= 0x20) {
            ready_ += byte;
        } else if (byte == '\n' || byte == '\r' || byte == '\t') {
            ready_ += {kQuote, byte == '\t' ? byte : '\n'};
        }
        return true;
    }

    std::string ready_;
    bool pasting_ = false;
};
#endif

}  // namespace

#if FOVEA_LIBEDIT
struct LineEditor::Library {
    EditLine* line = nullptr;
    History* history = nullptr;
    HistEvent event{};
    const char* prompt = "";
    PasteReader input;
    bool marks_pasted = false, had_text = false;

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
        const char* term = std::getenv("TERM");
        marks_pasted = term && *term && std::strcmp(term, "dumb") != 0;
    }
    ~Library() {
        if (history) history_end(history);
        if (line) el_end(line);
        (void)std::setlocale(LC_CTYPE, "C");
    }
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    static auto history_function() -> int (*)(::History*, HistEvent*, int, ...) { return &::history; }

    /// The library's own function reads on after a signal; this one ends.
    static int read_character(EditLine* of, wchar_t* out) {
        Library* self = nullptr;
        el_get(of, EL_CLIENTDATA, &self);
        std::mbstate_t state{};
        for (int i = 0; i < 8; ++i) {
            char byte = 0;
            if (!self->input.next(byte)) {  // the line so far is dropped, and a paste that never ended
                self->input = {};
                const LineInfo* info = el_line(of);
                self->had_text = info->lastchar != info->buffer;
                return i ? -1 : 0;
            }
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
        library_->had_text = false;
        el_resize(library_->line);
        // The library shows its prompt first and then takes the terminal. Keys typed between the two would be the
        // terminal's own: Ctrl-D would become a zero, and Ctrl-C would throw away the keys before it.
        el_set(library_->line, EL_PREP_TERM, 1);
        int n = 0;
        if (library_->marks_pasted) std::fputs("\x1b[?2004h", stderr);  // pasted text is marked from here on,
        const char* line = el_gets(library_->line, &n);
        if (library_->marks_pasted) std::fputs("\x1b[?2004l", stderr);  // and no longer
        had_text_ = library_->had_text;
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
    had_text_ = !text.empty();
    if (!more && text.empty()) return std::nullopt;
    if (text.ends_with('\r')) text.pop_back();
    return text;
}

}  // namespace fovea
