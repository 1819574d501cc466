// From text to text: generate MODEL PROMPT [N] continues the prompt by up to N tokens. All memory is taken first; the
// loop allocates nothing.
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "fovea/mapping.h"
#include "fovea/sampler.h"
#include "fovea/session.h"
#include "fovea/tokenizer.h"

namespace {

struct alignas(fovea::kArenaAlignment) Line {
    std::byte bytes[fovea::kArenaAlignment];
};

/// Zeroed bytes, aligned for arenas and scratch.
std::vector<Line> take(std::uint64_t bytes) { return std::vector<Line>((bytes + sizeof(Line) - 1) / sizeof(Line)); }

void check(const fovea::Status& status) {
    if (status.ok()) return;
    char line[160];
    const std::string_view text = fovea::describe(status, line);
    std::fprintf(stderr, "generate: %.*s\n", static_cast<int>(text.size()), text.data());
    std::exit(1);
}

void show(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: generate MODEL PROMPT [N]\n");
        return 2;
    }
    const std::string_view prompt = argv[2];
    const long n_new = argc > 3 ? std::strtol(argv[3], nullptr, 10) : 64;

    fovea::Mapping file;
    fovea::Model model;
    fovea::Tokenizer tokenizer;
    check(fovea::map_file(argv[1], file));
    check(fovea::open_model(file.bytes(), model));
    check(fovea::open_tokenizer(model.tokenizer_bytes(), tokenizer));

    const fovea::Limits limits{.n_threads = fovea::default_threads()};
    fovea::Plan plan;
    fovea::Session session;
    check(fovea::make_plan(model.config(), limits, plan));
    std::vector<Line> arena = take(plan.arena_bytes);
    check(fovea::make_session(model, limits, std::as_writable_bytes(std::span(arena)), session));

    std::vector<Line> scratch = take(fovea::encode_scratch_bytes(tokenizer, prompt.size()));
    std::vector<fovea::Token> tokens(fovea::max_tokens(tokenizer, prompt.size()));
    std::size_t n_tokens = 0;
    check(fovea::encode(tokenizer, prompt, {}, std::as_writable_bytes(std::span(scratch)), tokens, n_tokens));

    std::vector<float> logits(model.config().decoder.vocab_size);
    std::vector<fovea::Candidate> candidates(logits.size());
    std::vector<char> piece(fovea::max_piece_bytes(tokenizer));
    fovea::Sampler sampler;
    check(fovea::make_sampler({.temperature = 0.8f, .top_p = 0.95f, .seed = 1}, sampler));

    fovea::Decoder decoder;
    std::span<const fovea::Token> next(tokens.data(), n_tokens);
    fovea::Token token = 0;
    for (long i = 0; i < n_new && session.kv_len() + next.size() <= session.max_kv_len(); ++i) {
        check(fovea::forward(session, next, logits));
        check(fovea::sample(sampler, logits, {}, candidates, token));
        if (tokenizer.ends_text(token)) break;
        show(fovea::decode(tokenizer, decoder, token, false, piece));
        next = {&token, 1};
    }
    show(fovea::finish(decoder, piece));
    show("\n");
}
