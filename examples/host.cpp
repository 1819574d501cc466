// The host library in C++: a model of any source answers a message, in a form that a JSON schema gives.
//
//     fovea_example_host MODEL "turn on the kitchen lights" [SCHEMA]      # a Fovea file, a GGUF file or a folder
#include <algorithm>
#include <cstdio>
#include <memory>

#include "fovea/host/chat.h"
#include "fovea/host/form.h"
#include "fovea/host/generation.h"
#include "fovea/host/opened.h"

using namespace fovea;

namespace {

/// `text` as a JSON string.
std::string quoted(std::string_view text) {
    std::string json = "\"";
    for (const char c : text) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned char>(c));
        json += c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20 ? escaped : std::string(1, c);
    }
    return json + "\"";
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 3) return std::fprintf(stderr, "usage: %s MODEL MESSAGE [SCHEMA]\n", argv[0]), 2;
    const host::Opened opened = host::open(argv[1]);
    opened.need_logits();
    const ModelChat chat = ModelChat::of(opened.model, opened.tokenizer);
    const std::string messages = "[{\"role\": \"user\", \"content\": " + quoted(argv[2]) + "}]";
    const std::vector<Token> prompt = chat.tokens({.messages = messages});

    const std::uint32_t context = std::min(opened.config().decoder.max_positions, 4096u);
    host::Generation session(opened, {.max_kv_len = context, .n_threads = default_threads()});
    const host::Forms forms(opened);
    std::unique_ptr<host::FormPlace> place;
    GenerateOptions options{.n_new = 256, .end_tokens = chat.end_tokens()};
    if (argc > 3) {
        place = std::make_unique<host::FormPlace>(forms.compile(host::FormKind::json_schema, argv[3]));
        options.filter = place->start();
    }
    const host::Generated made = session.generate(prompt, options, [](std::string_view text) {
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
    });
    std::printf("\n%u tokens, %.0f per second\n", made.figures.n_tokens, made.tokens_per_second());
    return 0;
} catch (const host::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
}
