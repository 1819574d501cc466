// From text to text: generate MODEL PROMPT [N] continues the prompt by up to N tokens. All memory is taken first; the
// loop allocates nothing.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "fovea/generator.h"
#include "fovea/host/arena.h"
#include "fovea/mapping.h"
#include "fovea/session.h"

namespace {

void check(const fovea::Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "generate: %s\n", fovea::StatusLine(status).c_str());
    std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: generate MODEL PROMPT [N]\n");
        return 2;
    }
    char* end = nullptr;
    const long n_new = argc > 3 ? std::strtol(argv[3], &end, 10) : 64;
    if (n_new < 0 || (end && *end)) {
        std::fprintf(stderr, "generate: N: expected a number from 0, got %s\n", argv[3]);
        return 2;
    }

    fovea::Mapping file;
    fovea::Model model;
    fovea::Tokenizer tokenizer;
    check(fovea::map_file(argv[1], file));
    check(fovea::open_model(file.bytes(), model));
    check(fovea::open_tokenizer(model.tokenizer_bytes(), tokenizer));

    const std::string prompt =
        argv[2] + std::string(model.info().prompt_suffix);  // what the model was trained to see behind it

    fovea::Plan plan;
    fovea::Session session;
    check(fovea::make_plan(model.config(), {.n_threads = fovea::default_threads()}, plan));
    fovea::Arena arena(plan.arena_bytes);
    check(fovea::make_session(model, plan.limits, arena, session));

    fovea::GeneratorPlan texts;
    fovea::Generator generator;
    check(fovea::make_generator_plan(model, tokenizer, {.max_proposed = 8}, texts));
    fovea::Arena memory(texts.arena_bytes);
    check(fovea::make_generator(model, tokenizer, session.cache(), texts.limits, memory, generator));

    fovea::Arena scratch(fovea::tokenize_scratch_bytes(tokenizer, prompt.size()));
    std::vector<fovea::Token> tokens(fovea::max_tokens(tokenizer, prompt.size()));
    std::size_t n_tokens = 0;
    check(fovea::tokenize(tokenizer, prompt, {}, scratch, tokens, n_tokens));

    fovea::GenerateOptions options;
    options.n_new = static_cast<std::uint32_t>(n_new);
    options.sampler = {.temperature = 0.8f, .top_p = 0.95f, .seed = 1};
    options.speculation.n_proposed = 8;
    check(fovea::start(generator, std::span(tokens).first(n_tokens), options));
    fovea::Workspace workspace = session.workspace();
    for (fovea::Piece piece; piece.finish == fovea::FinishReason::none;) {
        check(fovea::generate(generator, workspace, piece));
        std::fwrite(piece.text.data(), 1, piece.text.size(), stdout);
        std::fflush(stdout);
    }
    std::puts("");
}
