// Two lists of rotary frequencies: what a cache, or a text without one, has room for says which of them turns all its rows.
#include <doctest/doctest.h>

#include "fovea/encode.h"
#include "tests/support/same_bits.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"
#include "tests/support/small_pool.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr std::uint32_t kOriginal = 20;  // positions, of the first list

Config long_config() {
    Config config = llama_config();
    config.decoder.rope_original_positions = kOriginal;
    return config;
}

/// A decoder's block in an encoder that sees what is before each row.
Config encoder_config(std::uint32_t original) {
    Config config;
    config.encoder = llama_config().decoder;
    config.encoder.has_output_head = config.encoder.tied_output = false;
    config.encoder.rope_original_positions = original;
    return config;
}

std::vector<float> logits_of(const Model& model, std::span<const Token> tokens, const Limits& limits,
                             const char* isa = nullptr) {
    SmallSession s(model, limits, isa);
    std::vector<float> logits(tokens.size() * model.config().decoder.vocab_size);
    REQUIRE(forward(s.session, tokens, logits).ok());
    return logits;
}

std::vector<float> encoded(const Model& model, std::span<const Token> ids, std::span<const std::uint32_t> lengths) {
    SmallSession s(model, {.max_batch = 64, .max_sequences = 4});
    std::vector<float> out(ids.size() * model.config().encoder.d_model);
    REQUIRE(encode(s.session, {.source = {.ids = ids, .lengths = lengths}}, out).ok());
    return out;
}

}  // namespace

TEST_CASE(
    "two lists of frequencies: the first is a plain model's, the second is for all rows of a cache with more room") {
    const SmallModel two(long_config(), Type::f32), plain(llama_config(), Type::f32);
    const auto tokens = some_tokens(kOriginal, 71);
    const auto short_ones = logits_of(two.model, tokens, {.max_kv_len = kOriginal}, "scalar");
    CHECK(same_bits(short_ones, logits_of(plain.model, tokens, {})));
    const auto long_ones = logits_of(two.model, tokens, {.max_kv_len = kOriginal + 1}, "scalar");
    CHECK_FALSE(same_bits(short_ones, long_ones));
    for (const char* isa : model_isas()) {
        CAPTURE(isa);
        CHECK(same_bits(short_ones, logits_of(two.model, tokens, {.max_kv_len = kOriginal, .max_batch = 7}, isa)));
        CHECK(same_bits(long_ones, logits_of(two.model, tokens, {}, isa)));
        CHECK(same_bits(long_ones,
                        logits_of(two.model, tokens, {.max_kv_len = 90, .max_batch = 1, .n_threads = 2}, isa)));
    }
}

TEST_CASE("two lists of frequencies: caches of one pass have their own, and none takes what the other list turned") {
    const SmallModel two(long_config(), Type::q8);
    const auto tokens = some_tokens(kOriginal, 71);
    SmallSession near(two.model, {.max_kv_len = kOriginal}), far(two.model, {.max_kv_len = kOriginal + 1});
    const auto near_ones = logits_of(two.model, tokens, {.max_kv_len = kOriginal}),
               far_ones = logits_of(two.model, tokens, {.max_kv_len = 160});
    SmallWorkspace both(two.model, {.max_batch = 50, .max_sequences = 2});
    std::vector<float> of_near(near_ones.size()), of_far(far_ones.size());
    const Step steps[] = {{near.session.cache(), tokens, of_near}, {far.session.cache(), tokens, of_far}};
    REQUIRE(forward(both.workspace, steps).ok());
    CHECK(same_bits(of_near, near_ones));
    CHECK(same_bits(of_far, far_ones));

    std::vector<std::byte> saved(session_bytes(near.session));
    std::size_t n_saved = 0;
    REQUIRE(save_session(near.session, saved, n_saved).ok());
    const Status refused = restore_session(far.session, saved);
    CHECK(refused.code == Code::session_mismatch);
    CHECK(refused.wanted == 1);
    CHECK(refused.had == 0);
    CHECK(copy_session(near.session, far.session).code == Code::session_mismatch);
    CHECK(copy_session(far.session, near.session).code == Code::session_mismatch);
    CHECK(far.session.kv_len() == kOriginal);
    CHECK(restore_session(near.session, saved).ok());
}

TEST_CASE("two lists of frequencies: a text without a cache has that of its own length, whatever is beside it") {
    const SmallModel two(encoder_config(kOriginal), Type::f32), plain(encoder_config(0), Type::f32);
    const auto ids = some_tokens(kOriginal + 30, 71);
    const std::span<const Token> all(ids);
    const std::uint32_t lengths[] = {kOriginal, 30};
    const auto together = encoded(two.model, all, lengths);
    const std::size_t n_first = std::size_t{kOriginal} * two.model.config().encoder.d_model;
    const std::span<const float> first(together.data(), n_first),
        second(together.data() + n_first, together.size() - n_first);
    CHECK(same_bits(first, encoded(plain.model, all.first(kOriginal), {lengths, 1})));
    CHECK(same_bits(second, encoded(two.model, all.subspan(kOriginal), {lengths + 1, 1})));
    CHECK_FALSE(same_bits(second, encoded(plain.model, all.subspan(kOriginal), {lengths + 1, 1})));
}

TEST_CASE("two lists of frequencies: rows turn by one position") {
    Config config = llama_config();
    config.decoder.rope_original_positions = kOriginal;
    CHECK(check(config).ok());
    config.decoder.blocks[0].attention.rope_plane = 1;
    CHECK_FALSE(check(config).ok());
}
