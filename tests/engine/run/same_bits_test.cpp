// The first promise: logits do not depend, in any bit, on the instruction set, the number of threads, the split of the
// prompt into calls, or the session's batch.
#include <doctest/doctest.h>

#include <algorithm>
#include <cfenv>
#include <cstring>
#include <iterator>
#include <vector>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "tests/support/executors.h"
#include "tests/support/same_bits.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

#if defined(FOVEA_EMULATED) || defined(FOVEA_SANITIZED)  // where threads that wait for each other cost most
constexpr std::uint32_t kThreadCounts[] = {2, 3}, kTeams[] = {3};
constexpr std::size_t kSplits[] = {7}, kMost = 40;
#else
constexpr std::uint32_t kThreadCounts[] = {2, 3, 4, 8}, kTeams[] = {2, 3, 5};
constexpr std::size_t kSplits[] = {1, 7, 64}, kMost = 150;
#endif
constexpr std::uint32_t kOneThreadCount[] = {3};
constexpr std::size_t kOneSplit[] = {7};

/// Logits after every token, with the prompt given in pieces of `split` tokens.
std::vector<float> logits_of(const Model& model, std::span<const Token> tokens, std::size_t split, const Limits& limits,
                             const char* isa, const Executor& executor = kOwnThreads) {
    SmallSession s(model, limits, {.isa = isa, .executor = executor});
    const std::size_t vocab_size = model.config().decoder.vocab_size;
    std::vector<float> logits(tokens.size() * vocab_size);
    for (std::size_t at = 0; at < tokens.size(); at += split) {
        const std::size_t n = std::min(split, tokens.size() - at);
        const Status status =
            forward(s.session, tokens.subspan(at, n), std::span(logits).subspan(at * vocab_size, n * vocab_size));
        REQUIRE(status.ok());
    }
    return logits;
}

}  // namespace

TEST_CASE("logits have the same bits on every instruction set, thread count, prompt split and batch") {
    std::vector<NamedConfig> all_configs = decoder_configs();
    std::ranges::copy(recurrent_configs(), std::back_inserter(all_configs));
    for (const NamedConfig& named : all_configs)
        for (const Type type : kTypes)
            for (const Type kv_type : {Type::f32, Type::f16, Type::q8, Type::q4}) {
                const bool has_own = type == Type::f16 || type == Type::q8 || type == Type::q4;
                const bool first_config = &named == all_configs.data();
                if ((kSanitized || type >= Type::bf16) && kv_type != (has_own ? type : Type::f32))
                    continue;  // nothing new
                // For sanitizers the first shape has every type, the other shapes have the four main ones.
                if (kSanitized && !first_config && !has_own && type != Type::f32) continue;
                CAPTURE(named.name);
                CAPTURE(static_cast<int>(type));
                CAPTURE(static_cast<int>(kv_type));
                const SmallModel small(named.config, type);
                const Stack& stack = small.model.config().decoder;
                // Past the first chunk of attention once per shape; scalar without fma instructions is slow.
                const bool past_chunk =
                    type == Type::f32 && kv_type == Type::f32 && (!kSanitized || named.name == "sliding");
                const std::size_t most = past_chunk ? 540 : kMost;
                const auto tokens = some_tokens(std::min<std::size_t>(stack.max_positions, most), stack.vocab_size);
                const auto want = logits_of(small.model, tokens, tokens.size(), {.kv_type = kv_type}, "scalar");
                for (const char* isa : isa_names().first(isa_names().size() - 1)) {  // all but scalar
                    CAPTURE(isa);
                    CHECK(same_bits(want, logits_of(small.model, tokens, tokens.size(), {.kv_type = kv_type}, isa)));
                }
                // Threads and splits share the work of every type in the same ways, so one of each will do for most.
                const bool all = type == Type::f32 || type == Type::q8 || type == Type::q4;
                const auto thread_counts = all ? std::span<const std::uint32_t>(kThreadCounts) : kOneThreadCount;
                const auto splits = all ? std::span<const std::size_t>(kSplits) : kOneSplit;
                for (const NamedExecutor& by : executors())
                    for (const std::uint32_t n_threads : thread_counts) {
                        CAPTURE(by.name);
                        CAPTURE(n_threads);
                        const Limits limits{.n_threads = n_threads, .kv_type = kv_type};
                        CHECK(same_bits(want,
                                        logits_of(small.model, tokens, tokens.size(), limits, nullptr, by.executor)));
                    }
                for (const std::size_t split : splits) {
                    CAPTURE(split);
                    CHECK(same_bits(
                        want, logits_of(small.model, tokens, split, {.n_threads = 2, .kv_type = kv_type}, nullptr)));
                }
                for (const std::uint32_t max_batch : {1u, 13u}) {
                    CAPTURE(max_batch);
                    CHECK(same_bits(want, logits_of(small.model, tokens, tokens.size(),
                                                    {.max_batch = max_batch, .kv_type = kv_type}, nullptr)));
                }
            }
}

TEST_CASE("a team that shares every phase gives the bits of one thread") {
    // Wide enough that forward does not choose to run it on one thread, token by token.
    Config config = llama_config(2, 768, 6, 2, 128, 1024, 1100);
    const SmallModel small(config, Type::f16);
    const auto tokens = some_tokens(1060, small.model.config().decoder.vocab_size);
    const auto want = logits_of(small.model, tokens, tokens.size(), {.max_batch = 256}, nullptr);
    const std::size_t vocab_size = small.model.config().decoder.vocab_size;
    for (const NamedExecutor& by : executors())
        for (const std::uint32_t n_threads : kTeams) {
            CAPTURE(by.name);
            CAPTURE(n_threads);
            // A prompt of 1030 tokens, then one by one: attention then splits its chunks over the team.
            SmallSession s(small.model, {.max_batch = 103, .n_threads = n_threads}, {.executor = by.executor});
            std::vector<float> got(want.size());
            const std::span<const Token> text(tokens);
            const std::span<float> out(got);
            REQUIRE(forward(s.session, text.first(1030), out.first(1030 * vocab_size)).ok());
            for (std::size_t i = 1030; i < tokens.size(); ++i)
                REQUIRE(forward(s.session, text.subspan(i, 1), out.subspan(i * vocab_size, vocab_size)).ok());
            CHECK(same_bits(want, got));
        }
}

TEST_CASE("the last row alone equals the last of all rows, and no logits change nothing") {
    const SmallModel small(llama_config(), Type::f32);
    const std::size_t vocab_size = small.model.config().decoder.vocab_size;
    const auto tokens = some_tokens(40, static_cast<std::uint32_t>(vocab_size));
    const auto all = logits_of(small.model, tokens, tokens.size(), {}, nullptr);
    SmallSession s(small.model, {});
    std::vector<float> last(vocab_size);
    REQUIRE(forward(s.session, std::span(tokens).first(25), {}).ok());
    REQUIRE(forward(s.session, std::span(tokens).subspan(25), last).ok());
    CHECK(std::memcmp(last.data(), all.data() + 39 * vocab_size, vocab_size * sizeof(float)) == 0);
}

TEST_CASE("rewind: what is computed again has the same bits as what was never computed otherwise") {
    const SmallModel small(decoder_configs()[3].config, Type::f16);  // sliding windows
    const std::size_t vocab_size = small.model.config().decoder.vocab_size;
    const auto tokens = some_tokens(300, static_cast<std::uint32_t>(vocab_size));
    const auto want = logits_of(small.model, tokens, tokens.size(), {}, nullptr);
    SmallSession s(small.model, {.n_threads = 2});
    auto other = tokens;
    for (Token& token : other) token = (token + 1) % vocab_size;
    REQUIRE(forward(s.session, std::span(tokens).first(130), {}).ok());
    REQUIRE(forward(s.session, std::span(other).first(150), {}).ok());
    CHECK(rewind(s.session, 281).code == Code::bad_argument);
    CHECK(s.session.kv_len() == 280);
    REQUIRE(rewind(s.session, 121).ok());
    std::vector<float> got(vocab_size);
    REQUIRE(forward(s.session, std::span(tokens).subspan(121), got).ok());
    CHECK(std::memcmp(got.data(), want.data() + 299 * vocab_size, vocab_size * sizeof(float)) == 0);
}

TEST_CASE("a host that flushes denormals or rounds otherwise gets the same bits, and keeps its own mode") {
    // Squares of the first norm's input are subnormal, and a machine that flushes them divides by zero.
    Config config = llama_config(2, 768, 6, 2, 128, 1024, 300);
    config.decoder.embedding_scale = 1e-19f;
    config.decoder.final_norm_epsilon = 0.0f;
    config.decoder.blocks[0].norm_epsilon = 0.0f;
    const SmallModel small(config, Type::f32);
    const auto tokens = some_tokens(6, small.model.config().decoder.vocab_size);
    for (const char* isa : isa_names())
        for (const std::uint32_t n_threads : {1u, 2u}) {
            CAPTURE(isa);
            CAPTURE(n_threads);
            const Limits limits{.n_threads = n_threads};
            const auto want = logits_of(small.model, tokens, 3, limits, isa);
            CHECK(want.front() == want.front());  // no NaN, which would be equal whatever happened
            std::fesetround(FE_UPWARD);
            const auto upward = logits_of(small.model, tokens, 3, limits, isa);
            const bool kept = std::fegetround() == FE_UPWARD;
            std::fesetround(FE_TONEAREST);
            CHECK(kept);
            CHECK(same_bits(want, upward));
#if defined(__x86_64__) && !defined(FOVEA_EMULATED)  // valgrind's processor never flushes
            const unsigned control = _mm_getcsr();
            _mm_setcsr(control | 0x8040);  // flush to zero, denormals are zero
            const auto flushed = logits_of(small.model, tokens, 3, limits, isa);
            const unsigned after = _mm_getcsr();
            _mm_setcsr(control);
            CHECK((after & 0xffc0) == ((control | 0x8040) & 0xffc0));
            CHECK(same_bits(want, flushed));
#endif
        }
}
