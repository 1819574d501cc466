// A program of somebody else's that uses the host library from C++: what it links, and that errors cross the library's border.
//
//     host_consumer DEMO.fovea
#include <cstdio>
#include <string>
#include <vector>

#include "fovea/host/chat.h"
#include "fovea/host/form.h"
#include "fovea/host/generation.h"
#include "fovea/host/opened.h"
#include "fovea/host/sound_file.h"
#include "fovea/host/speech.h"
#include "fovea/host/texts.h"
#include "fovea/host/translator.h"

using namespace fovea;

namespace {

int n_failed = 0;

void check(bool good, const char* what) {
    if (good) return;
    std::printf("expected %s\n", what);
    ++n_failed;
}

template<class Work>
void refuses(const char* what, Work work) {
    try {
        work();
        check(false, what);
    } catch (const host::Error& error) {
        std::printf("%s: %s\n", what, error.what());
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const host::Opened opened = host::open(argv[1]);
    check(opened.kind() == host::Kind::text && opened.text(opened.tokens("the lamp")) == "the lamp", "a text's tokens");

    const ModelChat chat = ModelChat::of(opened.model, opened.tokenizer);
    const ChatText conversation{.messages = R"([{"role": "user", "content": "turn on the lights"}])"};
    check(chat.tokens(conversation) == chat.tokens_of(chat.prompt(conversation)), "a conversation's tokens");
    host::Generation generation(opened, {.max_kv_len = 128});
    const host::Forms forms(opened);
    host::FormPlace place(forms.compile(host::FormKind::regex, "yes|no"));
    std::string answer;
    const GenerateOptions options{.end_tokens = chat.end_tokens(), .filter = place.start()};
    (void)generation.generate(chat.tokens(conversation), options, [&](std::string_view text) { answer += text; });
    check((answer == "yes" || answer == "no") && place.complete(), "an answer of the form");

    host::Runtime<Session> session = host::start_session(opened, {.max_kv_len = 16});
    std::vector<float> logits(opened.config().decoder.vocab_size);
    check(forward(*session, opened.tokens("the"), logits).ok() && find_info(opened.model, "nothing").empty(), "logits");

    refuses("no file", [] { (void)host::open("no such file"); });
    refuses("no form", [&] { (void)forms.compile(host::FormKind::gbnf, "root ::= ("); });
    refuses("no JSON", [&] { (void)chat.prompt({.messages = "{"}); });
    refuses("no vectors", [&] { (void)host::embed(opened, std::vector<std::string>{"a"}); });
    refuses("no classes", [&] { (void)host::classify(opened, head_of(opened), {}); });
    refuses("no sound", [] { (void)read_sound("no such file", 16000); });
    refuses("no speech", [&] { host::Transcriber transcriber(opened); });
    refuses("no target", [&] { Translator translator(opened, {}); });
    return n_failed;
}
