// Several ranks, each a thread here: the bits of one, in arenas of their own shares.
#include "fovea/ranks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "fovea/encode.h"
#include "tests/support/encoded.h"
#include "tests/support/encoder_models.h"
#include "tests/support/rank_group.h"
#include "tests/support/rank_session.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// Limits of a rank's share.
Limits rank_of(std::uint32_t rank, std::uint32_t n_ranks, const RankSplit* split = nullptr) {
    return {.rank = static_cast<std::uint8_t>(rank), .n_ranks = static_cast<std::uint8_t>(n_ranks), .split = split};
}

}  // namespace

TEST_CASE("ranks: logits have the bits of one, for every model and number of ranks") {
    std::vector<NamedConfig> all_configs = decoder_configs();
    std::ranges::copy(recurrent_configs(), std::back_inserter(all_configs));
    for (const NamedConfig& named : all_configs)
        for (const Type type : {Type::f32, Type::q8, Type::q4_k}) {
            if (kSanitized && type != Type::f32) continue;
            CAPTURE(named.name);
            CAPTURE(static_cast<int>(type));
            const SmallModel small(named.config, type);
            const std::vector<float> want = logits_of(small.model, {.max_batch = 32}, nullptr);
            REQUIRE(!want.empty());
            for (const std::uint32_t n_ranks : {2u, 3u, 8u}) {
                CAPTURE(n_ranks);
                Group group(n_ranks);
                std::vector<std::vector<float>> got(n_ranks);
                for_all_ranks(group, [&](const Ranks& ranks) {
                    const Limits limits{.max_batch = 32, .n_threads = ranks.rank % 2 + 1};
                    got[ranks.rank] = logits_of(small.model, limits, &ranks);
                });
                for (const std::vector<float>& of_rank : got) CHECK(same_bits(want, of_rank));
                CHECK(group.n_gathers > 7 * n_ranks);
            }
        }
}

TEST_CASE("ranks: shares of any size have the same bits") {
    std::vector<NamedConfig> all_configs = decoder_configs();
    std::ranges::copy(recurrent_configs(), std::back_inserter(all_configs));
    const std::vector<std::vector<std::uint8_t>> all_shares{{3, 1}, {1, 255}, {1, 5, 2}, {1, 1, 9, 1, 1, 1}};
    for (const NamedConfig& named : all_configs) {
        CAPTURE(named.name);
        const SmallModel small(named.config, Type::q8);
        const std::vector<float> want = logits_of(small.model, {.max_batch = 32}, nullptr);
        REQUIRE(!want.empty());
        for (const std::vector<std::uint8_t>& shares : all_shares) {
            CAPTURE(shares.size());
            const RankSplit split{shares.data()};
            Group group(static_cast<std::uint32_t>(shares.size()));
            std::vector<std::vector<float>> got(shares.size());
            for_all_ranks(group, [&](const Ranks& ranks) {
                got[ranks.rank] = logits_of(small.model, {.max_batch = 32, .split = &split}, &ranks);
            });
            for (const std::vector<float>& of_rank : got) CHECK(same_bits(want, of_rank));
        }
    }
}

TEST_CASE("ranks: a plan is of the rank's share, and each rank has a head where there are as many") {
    const SmallModel small(llama_config(2, 64, 8, 8, 16, 96, 4096), Type::q8);
    const auto keys = [&](const Limits& limits) {
        Plan plan;
        REQUIRE(make_plan(small.model.config(), limits, plan).ok());
        for (std::uint32_t i = 0; i < plan.n_parts; ++i)
            if (plan.parts[i].name == std::string_view("keys")) return plan.parts[i].bytes;
        return std::uint64_t{0};
    };
    const std::uint64_t head = keys({}) / 8, whole = rank_bytes(small.model, {});
    const std::uint8_t three_one[] = {3, 1}, small_ones[] = {200, 55, 1, 1};
    const RankSplit by_three{three_one}, small_last{small_ones};
    CHECK(keys(rank_of(0, 2, &by_three)) == 6 * head);
    CHECK(keys(rank_of(1, 2, &by_three)) == 2 * head);
    std::uint64_t n_heads = 0;
    for (std::uint32_t r = 0; r < 4; ++r) {
        const std::uint64_t n = keys(rank_of(r, 4, &small_last)) / head;
        CHECK(n >= 1);
        n_heads += n;
    }
    CHECK(n_heads == 8);
    const std::uint64_t larger = rank_bytes(small.model, rank_of(0, 2, &by_three));
    CHECK(larger + rank_bytes(small.model, rank_of(1, 2, &by_three)) == whole);
    CHECK(static_cast<double>(larger) == doctest::Approx(0.75 * static_cast<double>(whole)).epsilon(0.15));
    const std::uint8_t one_none[] = {1, 0};
    const RankSplit none{one_none};
    Plan plan;
    CHECK(make_plan(small.model.config(), rank_of(0, 2, &none), plan).code == Code::bad_limits);
}

TEST_CASE("ranks: an encoder's vectors have the bits of one") {
    for (const Config& config : {bert_config(), disentangled_config(8, 12)}) {
        const SmallModel small(config, Type::f16);
        const Stack& stack = small.model.config().encoder;
        const auto tokens = some_tokens(30, stack.vocab_size);
        const std::vector<std::uint32_t> lengths{17, 13};
        const EncodeInput in{.source = {.ids = tokens, .lengths = lengths}};
        const std::size_t n_out = 30 * std::size_t{stack.d_model};
        const std::vector<float> want = encoded(small.model, in, n_out);
        Group group(3);
        std::vector<std::vector<float>> got(3, std::vector<float>(n_out));
        std::atomic<int> n_ok = 0;
        for_all_ranks(group, [&](const Ranks& ranks) {
            RankSession own(small.model, {.max_batch = 60, .max_sequences = 3}, &ranks);
            n_ok += own.status.ok() && encode(own.session, in, got[ranks.rank]).ok();
        });
        CHECK(n_ok == 3);
        for (const std::vector<float>& of_rank : got) CHECK(same_bits(want, of_rank));
    }
}

TEST_CASE("ranks: each plan holds its own heads, and a byte less is refused") {
    const SmallModel small(llama_config(2, 64, 8, 4, 16, 96, 4096), Type::q8);
    Plan alone, of_rank;
    REQUIRE(make_plan(small.model.config(), {}, alone).ok());
    const auto bytes_of = [](const Plan& plan, std::string_view name) {
        for (std::uint32_t i = 0; i < plan.n_parts; ++i)
            if (plan.parts[i].name == name) return plan.parts[i].bytes;
        return std::uint64_t{0};
    };
    for (std::uint8_t rank = 0; rank < 4; ++rank) {
        const Limits limits{.rank = rank, .n_ranks = 4};
        REQUIRE(make_plan(small.model.config(), limits, of_rank).ok());
        CHECK(bytes_of(of_rank, "keys") * 4 == bytes_of(alone, "keys"));
        CHECK(bytes_of(of_rank, "values") * 4 == bytes_of(alone, "values"));
        const Ranks ranks{.rank = rank,
                          .n_ranks = 4,
                          .gather = [](void*, RankGroup, std::byte*, std::span<const std::uint64_t>) { return true; }};
        AlignedBytes arena(of_rank.arena_bytes);
        Session session;
        const std::span<std::byte> bytes = arena;
        CHECK(make_session(small.model, limits, bytes.first(bytes.size() - 1), session, {.ranks = &ranks}).code ==
              Code::arena_too_small);
        CHECK(make_session(small.model, limits, bytes, session, {.ranks = &ranks}).ok());
        CHECK(make_session(small.model, limits, bytes, session).code == Code::bad_argument);
    }
    for (const auto& [rank, n_ranks] : {std::pair{4, 4}, std::pair{1, 1}, std::pair{0, 65}}) {
        const Limits bad{.rank = static_cast<std::uint8_t>(rank), .n_ranks = static_cast<std::uint8_t>(n_ranks)};
        CHECK(make_plan(small.model.config(), bad, of_rank).code == Code::bad_limits);
    }
}

TEST_CASE("ranks: together they read every matrix, and one twice only where heads share a panel or a key-value head") {
    for (const NamedConfig& named : decoder_configs()) {
        CAPTURE(named.name);
        const SmallModel small(named.config, Type::q8);
        const std::uint64_t whole = rank_bytes(small.model, {});
        CHECK(whole > 0);
        for (const std::uint32_t n_ranks : {2u, 3u, 8u}) {
            std::uint64_t sum = 0, most = 0;
            for (std::uint32_t rank = 0; rank < n_ranks; ++rank) {
                const std::uint64_t bytes = rank_bytes(small.model, rank_of(rank, n_ranks));
                sum += bytes;
                most = std::max(most, bytes);
            }
            CHECK(sum >= whole);
            CHECK(most < whole);
        }
    }
    const SmallModel aligned(llama_config(2, 64, 8, 4, 16, 96, 64), Type::q8);
    for (const std::uint32_t n_ranks : {2u, 3u, 4u}) {
        std::uint64_t sum = 0;
        for (std::uint32_t rank = 0; rank < n_ranks; ++rank) sum += rank_bytes(aligned.model, rank_of(rank, n_ranks));
        CHECK(sum == rank_bytes(aligned.model, {}));
    }
}

TEST_CASE("ranks: a saved session has the bytes of one process, and goes on with any number of ranks") {
    std::vector<NamedConfig> all_configs{{"llama", llama_config(2, 64, 8, 4, 16, 96, 4096)},
                                         {"shared keys", shared_keys_config()}};
    std::ranges::copy(recurrent_configs(), std::back_inserter(all_configs));
    for (const NamedConfig& named : all_configs)
        for (const Type kv_type : {Type::f32, Type::q8}) {
            CAPTURE(named.name);
            const SmallModel small(named.config, Type::q8);
            const Limits limits{.max_batch = 16, .kv_type = kv_type};
            const SavedText want(small.model, limits, nullptr);
            REQUIRE(!want.bytes.empty());
            REQUIRE(!want.rest.empty());
            for (const std::uint32_t n_ranks : {2u, 3u, 8u}) {
                CAPTURE(n_ranks);
                Group group(n_ranks);
                std::vector<SavedText> got(n_ranks);
                for_all_ranks(group, [&](const Ranks& ranks) {
                    got[ranks.rank] = SavedText(small.model, limits, &ranks, want.bytes);
                });
                for (const SavedText& of_rank : got) {
                    CHECK(of_rank.bytes == want.bytes);
                    CHECK(same_bits(want.rest, of_rank.rest));
                }
            }
        }
}

TEST_CASE("ranks: different passes, lost ranks and a flag end the call on all, and what ranks don't do is refused") {
    const SmallModel small(llama_config(), Type::q8);
    const auto tokens = some_tokens(40, small.model.config().decoder.vocab_size);
    Group group(2);
    const auto all_end_with = [&](Code code, const auto& call) {
        std::vector<Code> codes(2);
        for_all_ranks(group, [&](const Ranks& ranks) {
            RankSession own(small.model, {.max_batch = 20}, &ranks);
            codes[ranks.rank] = call(own.session, ranks).code;
        });
        CHECK(codes[0] == code);
        CHECK(codes[1] == code);
    };
    all_end_with(Code::session_mismatch, [&](Session& s, const Ranks& r) {
        return forward(s, std::span<const Token>(tokens).subspan(r.rank, 5), {});
    });
    all_end_with(Code::cancelled, [&](Session& s, const Ranks& r) {
        const std::atomic<bool> flag = r.rank == 1;
        set_cancel(s, &flag);
        const Status status = forward(s, tokens, {});
        set_cancel(s, nullptr);
        CHECK(s.kv_len() == 0);
        CHECK((forward(s, tokens, {}).ok() && s.kv_len() == 40));
        return status;
    });
    all_end_with(Code::unsupported, [&](Session& s, const Ranks&) {
        std::vector<std::byte> bytes(1 << 16);
        std::size_t written = 0;
        return save_cache(s.cache(), bytes, written);
    });
    all_end_with(Code::unsupported, [&](Session& s, const Ranks&) {
        std::vector<float> out(1);
        return capture_attention(s, {.n_queries = 1, .n_keys = 1, .out = out});
    });
    group.lost = true;
    all_end_with(Code::io_error, [&](Session& s, const Ranks&) { return forward(s, tokens, {}); });
}
