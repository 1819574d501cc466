// Models with recurrent layers: their states are forked, marked, rewound and saved, and every logit is that of the sequence
// computed alone; a plan's bytes are enough, and one fewer is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/support/same_bits.h"
#include "tests/support/small_models.h"
#include "tests/support/small_pool.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

using Logits = std::vector<float>;

struct Computer : SmallSteps {
    explicit Computer(const Model& model)
        : SmallSteps(model, {.max_batch = 5, .n_threads = 2, .max_sequences = 3},
                     {.max_kv_len = 64, .max_sequences = 4, .page_len = 64}),
          vocab_size(model.config().decoder.vocab_size) {}
    const std::size_t vocab_size;

    /// Logits of each token.
    Logits append(const Cache& cache, std::span<const Token> tokens) {
        Logits logits(tokens.size() * vocab_size);
        const Step step{.cache = cache, .tokens = tokens, .logits = logits};
        REQUIRE(forward(workspace, {&step, 1}).ok());
        return logits;
    }
};

}  // namespace

TEST_CASE("recurrent: forks, marks, rewinds and saved caches leave every logit as the sequence alone has it") {
    for (const NamedConfig& named : recurrent_configs()) {
        CAPTURE(named.name);
        const SmallModel small(named.config, Type::q8);
        const std::uint32_t vocab_size = small.model.config().decoder.vocab_size;
        const std::vector<Token> first = some_tokens(40, vocab_size);
        std::vector<Token> second = first;
        std::reverse(second.begin() + 20, second.end());
        const auto alone = [&](std::span<const Token> tokens) {
            SmallSession s(small.model, {.max_batch = 64});
            Logits logits(tokens.size() * vocab_size);
            REQUIRE(forward(s.session, tokens, logits).ok());
            return logits;
        };
        const Logits want_first = alone(first), want_second = alone(second);
        const auto part = [&](const Logits& all, std::size_t begin, std::size_t end) {
            return std::span(all).subspan(begin * vocab_size, (end - begin) * vocab_size);
        };

        Computer c(small.model);
        Cache text = c.make();
        CHECK(same_bits(c.append(text, std::span(first).first(20)), part(want_first, 0, 20)));
        REQUIRE(mark(text).ok());
        Cache fork;
        REQUIRE(fork_cache(text, fork).ok());
        CHECK(same_bits(c.append(text, std::span(first).subspan(20, 7)), part(want_first, 20, 27)));
        CHECK(same_bits(c.append(fork, std::span(second).subspan(20)), part(want_second, 20, 40)));
        CHECK(same_bits(c.append(text, std::span(first).subspan(27)), part(want_first, 27, 40)));

        std::uint32_t reached = 0;  // 33 has no state: the mark at 20 is the last before it
        REQUIRE(rewind(text, 33, &reached).ok());
        CHECK(reached == 20);
        CHECK(same_bits(c.append(text, std::span(second).subspan(20)), part(want_second, 20, 40)));

        REQUIRE(rewind(text, 20, &reached).ok());
        REQUIRE(reached == 20);
        std::vector<std::byte> saved(cache_bytes(text));
        std::size_t written = 0;
        REQUIRE(save_cache(text, saved, written).ok());
        Cache restored = c.make();
        REQUIRE(restore_cache(restored, std::span(saved).first(written)).ok());
        CHECK(same_bits(c.append(restored, std::span(first).subspan(20)), part(want_first, 20, 40)));
        REQUIRE(rewind(restored, 0, &reached).ok());
        CHECK(same_bits(c.append(restored, second), want_second));
    }
}

TEST_CASE("recurrent: several sequences in one pass have the logits of each alone") {
    for (const NamedConfig& named : recurrent_configs()) {
        CAPTURE(named.name);
        const SmallModel small(named.config, Type::f32);
        const std::uint32_t vocab_size = small.model.config().decoder.vocab_size;
        const std::vector<Token> tokens = some_tokens(30, vocab_size);
        Computer c(small.model);
        Cache caches[3] = {c.make(), c.make(), c.make()};
        std::vector<Logits> together(3);
        for (std::size_t at = 0; at < 9; at += 3) {  // of lengths 3, 2 and 1 at a time
            Step steps[3];
            std::vector<Logits> now;
            for (std::size_t i = 0; i < 3; ++i) now.emplace_back((3 - i) * vocab_size);
            for (std::size_t i = 0; i < 3; ++i)
                steps[i] = {.cache = caches[i],
                            .tokens = std::span(tokens).subspan(10 * i + at / 3 * (3 - i), 3 - i),
                            .logits = now[i]};
            REQUIRE(forward(c.workspace, steps).ok());
            for (std::size_t i = 0; i < 3; ++i) together[i].insert(together[i].end(), now[i].begin(), now[i].end());
        }
        for (std::size_t i = 0; i < 3; ++i) {
            SmallSession s(small.model, {});
            Logits alone(together[i].size());
            REQUIRE(forward(s.session, std::span(tokens).subspan(10 * i, alone.size() / vocab_size), alone).ok());
            CHECK(same_bits(together[i], alone));
        }
    }
}

TEST_CASE("recurrent: a configuration that cannot be is refused by name") {
    const auto refused = [](const char* what, auto change) {
        CAPTURE(what);
        Config config = recurrent_configs()[2].config;  // the delta rule
        change(config.decoder, config.decoder.recurrent);
        CHECK(std::string(check(config).what) == what);
    };
    refused("n_key_heads that divides recurrent n_heads", [](Stack&, RecurrentShape& r) { r.n_key_heads = 3; });
    refused("recurrent n_heads", [](Stack&, RecurrentShape& r) { r.n_heads = 0; });
    refused("n_taps", [](Stack&, RecurrentShape& r) { r.n_taps = 17; });
    refused("elements of a state", [](Stack&, RecurrentShape& r) { r.key_dim = r.value_dim = 1u << 12; });
    refused("step_most", [](Stack&, RecurrentShape& r) { r.step_most = 1.0f; });
    refused("n_norm_groups that divides values", [](Stack&, RecurrentShape& r) { r.n_norm_groups = 7; });
    refused("recurrence", [](Stack&, RecurrentShape& r) { r.kind = Recurrence{6}; });
    refused("step_rank", [](Stack&, RecurrentShape& r) { r.step_rank = 1; });
    refused("inner_norm_epsilon", [](Stack&, RecurrentShape& r) {
        r.n_norm_groups = 0, r.shared_norm = false;
        r.inner_norm_epsilon = 1.0f;
    });
    refused("step_least", [](Stack&, RecurrentShape& r) {
        r.kind = Recurrence::delta_by_dim;
        r.step_least = 0.5f, r.step_most = 1.0f;
    });
    refused("double_rate", [](Stack&, RecurrentShape& r) { r.kind = Recurrence::state_space, r.double_rate = true; });
    refused("sigmoid_gate", [](Stack&, RecurrentShape& r) {
        r = recurrent_configs()[0].config.decoder.recurrent;
        r.sigmoid_gate = true;
    });
    refused("step_rank", [](Stack&, RecurrentShape& r) { r.kind = Recurrence::selective, r.shared_norm = false; });
    refused("a selective state space with what it cannot have",
            [](Stack&, RecurrentShape& r) { r.kind = Recurrence::selective, r.step_rank = 3; });
    refused("a recurrent part of the stack", [](Stack&, RecurrentShape& r) { r = {}; });
    for (const auto change :
         {+[](Block& b) { b.attention.output_gate = OutputGate::sigmoid; },
          +[](Block& b) { b.norm_place = NormPlace::both; }, +[](Block& b) { b.residual_scale = 2.0f; }})
        refused("a recurrent block with what it cannot have", [&](Stack& s, RecurrentShape&) {
            s.blocks[0].recurrent = true;
            s.blocks[0].attention.output_gate = OutputGate::none;
            change(s.blocks[0]);
        });
    refused("n_taps of a short convolution", [](Stack& s, RecurrentShape& r) {
        r = recurrent_configs()[0].config.decoder.recurrent;
        s.blocks[1].recurrent = true;
        r.n_taps = 1;
    });
    refused("output_gate", [](Stack& s, RecurrentShape&) { s.blocks[1].attention.output_gate = OutputGate::sigmoid; });
}
