// Texts to vectors with a sentence encoder, and how alike they are.
//   fovea_example_encode MODEL.fovea TEXT TEXT...
#include <cstdio>
#include <string>
#include <vector>

#include "fovea/encode.h"
#include "fovea/host/arena.h"
#include "fovea/mapping.h"
#include "fovea/tokenizer.h"

int main(int argc, char** argv) {
    if (argc < 4) return std::fprintf(stderr, "usage: fovea_example_encode MODEL.fovea TEXT TEXT...\n"), 2;
    const auto fail = [](const fovea::Status& status) {
        std::fprintf(stderr, "encode: %s\n", fovea::StatusLine(status).c_str());
        return 1;
    };
    fovea::Mapping file;
    fovea::Model model;
    fovea::Tokenizer tokenizer;
    if (auto s = fovea::map_file(argv[1], file); !s.ok()) return fail(s);
    if (auto s = fovea::open_model(file.bytes(), model); !s.ok()) return fail(s);
    if (auto s = fovea::open_tokenizer(model.tokenizer_bytes(), tokenizer); !s.ok()) return fail(s);
    const fovea::Stack& encoder = model.config().encoder;

    // All texts' ids one after the other; no text is padded to another's length.
    std::vector<fovea::Token> ids;
    std::vector<std::uint32_t> lengths;
    for (int i = 2; i < argc; ++i) {
        const std::string text = argv[i];
        std::vector<fovea::Token> some(max_tokens(tokenizer, text.size()));
        fovea::Arena scratch(tokenize_scratch_bytes(tokenizer, text.size()));
        std::size_t n = 0;
        if (auto s = fovea::tokenize(tokenizer, text, {}, scratch, some, n); !s.ok()) return fail(s);
        n = n < encoder.max_positions ? n : encoder.max_positions;
        ids.insert(ids.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(n));
        lengths.push_back(static_cast<std::uint32_t>(n));
    }

    // A session for exactly this batch: its size first, then the memory.
    const fovea::Limits limits{.max_batch = static_cast<std::uint32_t>(ids.size()),
                               .n_threads = fovea::default_threads(),
                               .max_sequences = static_cast<std::uint32_t>(lengths.size())};
    fovea::Plan plan;
    if (auto s = make_plan(model.config(), limits, plan); !s.ok()) return fail(s);
    fovea::Arena arena(plan.arena_bytes);
    fovea::Session session;
    if (auto s = make_session(model, limits, arena, session); !s.ok()) return fail(s);

    // A model that pools gives one vector for each text; this one's have length 1, so a product is a cosine.
    if (encoder.pooling == fovea::Pooling::none || !encoder.normalize_pooled)
        return std::printf("expected a model that pools and normalizes its vectors\n"), 1;
    const std::size_t width = encoder.result_width();
    std::vector<float> vectors(lengths.size() * width);
    if (auto s = encode(session, {.source = {.ids = ids, .lengths = lengths}}, vectors); !s.ok()) return fail(s);

    for (std::size_t i = 1; i < lengths.size(); ++i) {
        float cosine = 0;
        for (std::size_t j = 0; j < width; ++j) cosine += vectors[j] * vectors[i * width + j];
        std::printf("%.4f  %s\n", static_cast<double>(cosine), argv[2 + i]);
    }
}
