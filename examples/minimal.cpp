// From a file to logits in twenty lines: minimal MODEL prints the token that most likely comes first.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "fovea/host/arena.h"
#include "fovea/mapping.h"
#include "fovea/session.h"

int main(int argc, char** argv) {
    const auto fail = [](const fovea::Status& status) {
        std::fprintf(stderr, "minimal: %s\n", fovea::StatusLine(status).c_str());
        return 1;
    };
    fovea::Mapping file;
    if (auto s = fovea::map_file(argc > 1 ? argv[1] : "model.fovea", file); !s.ok()) return fail(s);
    fovea::Model model;
    if (auto s = fovea::open_model(file.bytes(), model); !s.ok()) return fail(s);

    const fovea::Limits limits{.max_kv_len = 64};
    fovea::Plan plan;  // the exact size, before any memory is taken
    if (auto s = fovea::make_plan(model.config(), limits, plan); !s.ok()) return fail(s);
    fovea::Arena arena(plan.arena_bytes);
    fovea::Session session;
    if (auto s = fovea::make_session(model, limits, arena, session); !s.ok()) return fail(s);

    std::vector<float> logits(model.config().decoder.vocab_size);
    const fovea::Token prompt[] = {0, 1, 2};  // ids; fovea/tokenizer.h makes them from text
    if (auto s = fovea::forward(session, prompt, logits); !s.ok()) return fail(s);
    std::printf("%td\n", std::max_element(logits.begin(), logits.end()) - logits.begin());
}
