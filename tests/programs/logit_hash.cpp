// The hash of a model's logits after every token, by the engine alone: for builds whose compiler or flags are in question,
// where a command line would take most of the time. Every instruction set must give it, on one thread and on two, whether
// the tokens come at once or seven at a time. Sanitizers have time for the best set alone, once.
//
//     fovea_logit_hash MODEL [TEXT]      prints what `fovea certify MODEL [-p TEXT]` prints first
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "fovea/mapping.h"
#include "fovea/session.h"
#include "fovea/tokenizer.h"
#include "host/base/aligned_bytes.h"
#include "tests/support/sanitized.h"
#include "tools/measure/trace_hash.h"

using namespace fovea;
using fovea::testing::kSanitized;

namespace {

constexpr std::size_t kTokens = 80;  // certify's, of a model without a tokenizer

void require(const Status& status, const char* what) {
    if (status.ok()) return;
    std::fprintf(stderr, "logit_hash: %s: %s\n", what, StatusLine(status).c_str());
    std::exit(1);
}

std::vector<Token> tokens_of(const Model& model, std::string_view text) {
    const Stack& s = model.config().decoder;
    std::vector<Token> tokens;
    if (model.tokenizer_bytes().empty()) {
        const std::size_t n = std::min<std::size_t>(kTokens, s.max_positions);
        for (std::size_t i = 0; i < n; ++i) tokens.push_back(static_cast<Token>(i * 7919 % s.vocab_size));
        return tokens;
    }
    Tokenizer tokenizer;
    require(open_tokenizer(model.tokenizer_bytes(), tokenizer), "tokenizer");
    std::vector<std::byte> scratch(tokenize_scratch_bytes(tokenizer, text.size()));
    tokens.resize(max_tokens(tokenizer, text.size()));
    std::size_t n_tokens = 0;
    require(tokenize(tokenizer, text, {}, scratch, tokens, n_tokens), "text");
    tokens.resize(n_tokens);
    return tokens;
}

std::uint64_t hash_logits(const Model& model, std::span<const Token> tokens, const char* isa, std::uint32_t n_threads,
                          std::size_t piece) {
    const Limits limits{.max_kv_len = static_cast<std::uint32_t>(tokens.size()), .n_threads = n_threads};
    Plan plan;
    require(make_plan(model.config(), limits, plan), "plan");
    AlignedBytes arena(plan.arena_bytes);
    Session session;
    require(make_session(model, limits, arena, session, isa), "session");
    const std::size_t n_vocab = model.config().decoder.vocab_size;
    std::vector<float> logits(tokens.size() * n_vocab);
    for (std::size_t done = 0; done < tokens.size(); done += piece) {
        const std::size_t n = std::min(piece, tokens.size() - done);
        require(forward(session, tokens.subspan(done, n), std::span(logits).subspan(done * n_vocab, n * n_vocab)),
                "forward");
    }
    return hash_bits(logits);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: fovea_logit_hash MODEL [TEXT]\n"), 2;
    Mapping file;
    require(map_file(argv[1], file), argv[1]);
    Model model;
    require(open_model(file.bytes(), model), argv[1]);
    const std::vector<Token> tokens = tokens_of(model, argc > 2 ? argv[2] : "");
    if (tokens.empty()) return std::fprintf(stderr, "logit_hash: expected a text of 1 token or more, got none\n"), 2;

    const std::uint64_t specified = hash_logits(model, tokens, kSanitized ? nullptr : "scalar", 1, tokens.size());
    for (const char* isa : isa_names().first(kSanitized ? 0 : isa_names().size())) {
        for (const std::uint32_t n_threads : {1u, 2u}) {
            for (const std::size_t piece : {tokens.size(), std::size_t{7}}) {
                if (hash_logits(model, tokens, isa, n_threads, piece) == specified) continue;
                std::fprintf(stderr,
                             "logit_hash: expected the bits of scalar code, got others from %s, %u threads, %zu tokens "
                             "at once\n",
                             isa, n_threads, piece);
                return 1;
            }
        }
    }
    std::printf("%016llx\n", static_cast<unsigned long long>(specified));
}
