// Any bytes that make a model: it plans, takes exactly its plan, runs, and its text is encoded and decoded.
#include <vector>

#include "fovea/session.h"
#include "fovea/tokenizer.h"
#include "fovea_file.h"
#include "parameters.h"

namespace {

constexpr std::uint64_t kMostArena = 16 << 20, kMostParameters = 1 << 20;

void speak(const fovea::Model& model) {
    using namespace fovea;
    Tokenizer tokenizer;
    if (!open_tokenizer(model.tokenizer_bytes(), tokenizer).ok()) return;
    constexpr std::string_view kText = "Turn \xc3\xa9 on,\n 12 <|a|> \xff";
    const std::uint64_t most_ids = max_tokens(tokenizer, kText.size());
    const std::uint64_t scratch_bytes = encode_scratch_bytes(tokenizer, kText.size());
    fuzz::promise(most_ids < kMostArena && scratch_bytes < kMostArena, "a text's memory is bounded by the text");
    std::vector<std::byte> scratch(scratch_bytes);
    std::vector<Token> ids(most_ids);
    std::vector<char> piece(max_piece_bytes(tokenizer));
    std::size_t n_ids = 0;
    if (!encode(tokenizer, kText, {true, true}, scratch, ids, n_ids).ok()) return;
    Decoder decoder;
    for (std::size_t i = 0; i < n_ids; ++i) (void)decode(tokenizer, decoder, ids[i], false, piece);
    (void)finish(decoder, piece);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fovea;
    const AlignedBytes bytes = fuzz::aligned(data, size);
    Model model;
    if (!open_model(bytes, model).ok()) return 0;
    speak(model);
    if (count_parameters(model.config()).total > kMostParameters) return 0;  // would run, but for long
    const Limits limits{.max_kv_len = model.config().decoder.max_positions < 9 ? 0u : 9u, .max_batch = 4};
    Plan plan;
    if (!make_plan(model.config(), limits, plan).ok() || plan.arena_bytes > kMostArena) return 0;
    const std::uint32_t vocab_size = model.config().decoder.vocab_size;
    std::vector<float> logits(vocab_size);
    AlignedBytes arena(plan.arena_bytes);
    Session session;
    for (const char* isa : isa_names()) {
        fuzz::promise(!make_session(model, limits, std::span(arena).first(arena.size() - 1), session, isa).ok(),
                      "a byte less than the plan is refused");
        if (!make_session(model, limits, arena, session, isa).ok()) return 0;  // types no kernel has
        std::vector<Token> tokens(session.max_kv_len() < 5 ? 1 : 5);
        for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(i * 7 % vocab_size);
        fuzz::promise(forward(session, tokens, logits).ok(), "a session takes its tokens");
    }
    return 0;
}
