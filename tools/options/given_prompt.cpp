#include "tools/options/given_prompt.h"

#include <poll.h>
#include <unistd.h>

#include <filesystem>

#include "fovea/host/opened.h"
#include "host/base/error.h"
#include "host/base/output_file.h"
#include "host/base/text_file.h"

namespace fovea {
namespace {

std::string read_prompt(const std::string& path) {
    std::string text = read_text_file(path);
    if (text.ends_with('\n')) text.pop_back();
    return text;
}

/// Whether standard input is there and has begun, or ended, in time.
bool input_speaks() {
    constexpr int kMilliseconds = 2000;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return has_input() && !isatty(STDIN_FILENO) && poll(&input, 1, kMilliseconds) != 0;
}

}  // namespace

std::optional<std::string> asked_prompt(bool given, const std::string& text, const std::string& file) {
    if (given && !file.empty()) return read_prompt(file);
    if (given ? text == "-" : input_speaks()) return read_prompt("-");
    if (!given) return std::nullopt;
    if (text.starts_with("@@")) return text.substr(1);
    if (!text.starts_with('@')) return text;
    std::error_code ignored;
    if (!std::filesystem::exists(text.substr(1), ignored))
        throw host::Error("-p " + text +
                          ": expected a file after @, got none; a text that starts with @ is given with @@");
    keep_from_writing(text.substr(1));
    return read_prompt(text.substr(1));
}

void refuse_text_as_model(const std::string& model) {
    std::error_code ignored;
    const bool is_text = model.find_first_of("./") == model.npos || model.find(' ') != model.npos;
    if (is_text && !model.empty() && !std::filesystem::exists(model, ignored))
        throw host::Error(model + ": no such file; a text for the built-in model is given by -p TEXT");
}

}  // namespace fovea
