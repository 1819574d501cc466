// Sessions as bytes: saving, restoring and copying change no bit of what comes after; damage changes nothing.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>

#include "fovea/checksum.h"
#include "fovea/encode.h"
#include "tests/support/encoder_models.h"
#include "tests/support/same_bits.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

std::vector<std::byte> saved(const Session& session) {
    std::vector<std::byte> bytes(session_bytes(session));
    std::size_t written = 0;
    REQUIRE(save_session(session, bytes, written).ok());
    CHECK(written == bytes.size());
    return bytes;
}

/// Logits after each of `tokens`, one call each.
std::vector<float> continued(Session& session, std::span<const Token> tokens) {
    const std::size_t vocab_size = session.model().config().decoder.vocab_size;
    std::vector<float> logits(tokens.size() * vocab_size);
    for (std::size_t i = 0; i < tokens.size(); ++i)
        REQUIRE(forward(session, tokens.subspan(i, 1), std::span(logits).subspan(i * vocab_size, vocab_size)).ok());
    return logits;
}

/// Bytes 28 to 31 are the checksum of all others.
void make_right(std::vector<std::byte>& bytes) {
    const std::span<const std::byte> all(bytes);
    const std::uint32_t crc = crc32c(all.subspan(32), crc32c(all.first(28)));
    std::memcpy(bytes.data() + 28, &crc, sizeof crc);
}

std::vector<std::byte> changed(std::vector<std::byte> bytes, std::size_t at, std::uint32_t value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
    make_right(bytes);
    return bytes;
}

}  // namespace

TEST_CASE("save, restore, continue: the same bits from every instruction set to every other, in any plan") {
    for (const NamedConfig& named : decoder_configs()) {
        CAPTURE(named.name);
        const SmallModel small(named.config, Type::f32);
        const std::uint32_t room = std::min(60u, named.config.decoder.max_positions);
        const auto tokens = some_tokens(room, named.config.decoder.vocab_size);
        const std::span<const Token> all(tokens);
        for (const Type kv_type : {Type::f32, Type::f16, Type::q8, Type::q4})
            for (const std::uint32_t n : {0u, 1u, 15u, 16u, 39u}) {
                if (kSanitized && (n == 1 || n == 15)) continue;
                CAPTURE(n);
                std::vector<std::byte> first;
                std::vector<float> want;
                for (const char* isa : model_isas()) {
                    CAPTURE(isa);
                    SmallSession from(small.model, {.max_kv_len = room, .kv_type = kv_type}, isa);
                    if (n) REQUIRE(forward(from.session, all.first(n), {}).ok());
                    const auto bytes = saved(from.session);
                    if (first.empty()) {
                        first = bytes;
                        want = continued(from.session, all.subspan(n, 5));
                    }
                    CHECK(bytes == first);
                    // Another capacity, another number of threads, and other contents before.
                    SmallSession to(small.model, {.n_threads = 2, .kv_type = kv_type}, isa);
                    REQUIRE(forward(to.session, all.last(room - 7), {}).ok());
                    REQUIRE(restore_session(to.session, first).ok());
                    CHECK(to.session.kv_len() == n);
                    CHECK(saved(to.session) == first);
                    CHECK(same_bits(continued(to.session, all.subspan(n, 5)), want));
                }
            }
    }
}

TEST_CASE("a session that was rewound is saved as one that never went further") {
    for (const std::uint32_t head_dim : {8u, 96u}) {  // 96: a superblock and a half
        const SmallModel small(llama_config(2, 48, 2, 1, head_dim), Type::f32);
        const auto tokens = some_tokens(40, 71);
        const std::span<const Token> all(tokens);
        for (const Type kv_type : {Type::f32, Type::f16, Type::q8, Type::q4})
            for (const std::uint32_t n : {1u, 15u, 16u, 18u, 31u}) {
                CAPTURE(n);
                SmallSession rewound(small.model, {.kv_type = kv_type}), fresh(small.model, {.kv_type = kv_type});
                REQUIRE(forward(rewound.session, all, {}).ok());
                REQUIRE(rewind(rewound.session, n).ok());
                REQUIRE(forward(fresh.session, all.first(n), {}).ok());
                CHECK(saved(rewound.session) == saved(fresh.session));
                CHECK(same_bits(continued(rewound.session, all.subspan(n, 5)),
                                continued(fresh.session, all.subspan(n, 5))));
            }
    }
}

TEST_CASE("a saved session's bytes depend on nothing that was forgotten, whatever the model") {
    for (const NamedConfig& named : decoder_configs()) {
        CAPTURE(named.name);
        const SmallModel small(named.config, Type::f32);
        const std::uint32_t room = std::min(60u, named.config.decoder.max_positions);
        const auto tokens = some_tokens(room, named.config.decoder.vocab_size);
        const std::span<const Token> all(tokens);
        for (const Type kv_type : {Type::f32, Type::f16, Type::q8, Type::q4})
            for (const std::uint32_t n : {1u, 17u, 30u}) {
                CAPTURE(n);
                SmallSession fresh(small.model, {.max_kv_len = room, .kv_type = kv_type}),
                    rewound(small.model, {.max_kv_len = room, .kv_type = kv_type});
                REQUIRE(forward(fresh.session, all.first(n), {}).ok());
                std::uint32_t reached = n;
                REQUIRE(forward(rewound.session, all.last(room - 3), {}).ok());  // another text before
                REQUIRE(rewind(rewound.session, 0).ok());
                REQUIRE(forward(rewound.session, all.first(room - 1), {}).ok());
                REQUIRE(rewind(rewound.session, n, &reached).ok());
                if (reached < n) REQUIRE(forward(rewound.session, all.subspan(reached, n - reached), {}).ok());
                CHECK(saved(rewound.session) == saved(fresh.session));
            }
    }
}

TEST_CASE("a copied session goes on as its original does, and neither disturbs the other") {
    const SmallModel small(decoder_configs()[3].config, Type::q8);
    const auto tokens = some_tokens(50, 71);
    const std::span<const Token> all(tokens);
    for (const Type kv_type : {Type::f32, Type::f16, Type::q8, Type::q4}) {
        SmallSession from(small.model, {.max_kv_len = 64, .kv_type = kv_type});
        SmallSession to(small.model, {.max_kv_len = 640, .n_threads = 2, .kv_type = kv_type});
        REQUIRE(forward(from.session, all.first(41), {}).ok());
        REQUIRE(forward(to.session, all.last(7), {}).ok());
        REQUIRE(copy_session(from.session, to.session).ok());
        REQUIRE(copy_session(from.session, from.session).ok());
        const auto got = continued(to.session, all.last(9));
        CHECK(same_bits(continued(from.session, all.last(9)), got));
    }
    SmallSession from(small.model, {.max_kv_len = 64}), other(small.model, {.max_kv_len = 64, .kv_type = Type::f16});
    SmallSession narrow(small.model, {.max_kv_len = 9});
    REQUIRE(forward(from.session, all.first(10), {}).ok());
    CHECK(copy_session(from.session, other.session).code == Code::session_mismatch);
    CHECK(copy_session(from.session, narrow.session).code == Code::context_full);
    const SmallModel same(decoder_configs()[3].config, Type::q8);
    SmallSession elsewhere(same.model, {.max_kv_len = 64});
    CHECK(copy_session(from.session, elsewhere.session).code == Code::session_mismatch);
    CHECK(elsewhere.session.kv_len() == 0);
    CHECK(narrow.session.kv_len() == 0);
}

TEST_CASE("a saved session takes exactly what was promised, and a byte less is refused") {
    const SmallModel small(llama_config(), Type::f32);
    SmallSession s(small.model, {});
    REQUIRE(forward(s.session, some_tokens(18, 71), {}).ok());
    // 2 layers of 2 heads of 2 panels: 16 positions of 8 dims, and of 8 padded to 16.
    CHECK(session_bytes(s.session) == 32 + 2 * 2 * 2 * (16 * 8 + 16 * 16) * 4);
    std::vector<std::byte> out(session_bytes(s.session) + 1, std::byte{0x5a});
    std::size_t written = 7;
    const Status status = save_session(s.session, std::span(out).first(out.size() - 2), written);
    CHECK(status.code == Code::buffer_too_small);
    CHECK(status.wanted == out.size() - 1);
    CHECK(status.had == out.size() - 2);
    CHECK(written == 7);
    CHECK(out == std::vector<std::byte>(out.size(), std::byte{0x5a}));
    REQUIRE(save_session(s.session, out, written).ok());
    CHECK(written == out.size() - 1);
    CHECK(out.back() == std::byte{0x5a});
}

TEST_CASE("every truncation and every changed byte of a saved session is refused, and changes nothing") {
    for (const Type kv_type : {Type::f32, Type::q8, Type::q4}) {
        const SmallModel small(llama_config(1, 8, 1, 1, 4, 8, 40), Type::f32);
        const auto tokens = some_tokens(8, 71);
        SmallSession from(small.model, {.kv_type = kv_type}), to(small.model, {.kv_type = kv_type});
        REQUIRE(forward(from.session, std::span(tokens).first(5), {}).ok());
        REQUIRE(forward(to.session, std::span(tokens).last(3), {}).ok());
        const auto bytes = saved(from.session), before = saved(to.session);
        for (std::size_t n = 0; n < bytes.size(); ++n)
            REQUIRE(restore_session(to.session, std::span(bytes).first(n)).code == Code::truncated);
        for (std::size_t i = 0; i < bytes.size(); ++i)
            for (const unsigned flip : {0x01u, 0x80u, 0xffu}) {
                auto damaged = bytes;
                damaged[i] ^= static_cast<std::byte>(flip);
                REQUIRE_FALSE(restore_session(to.session, damaged).ok());
            }
        auto longer = bytes;
        longer.push_back({});
        CHECK(restore_session(to.session, longer).code == Code::bad_shape);
        CHECK(saved(to.session) == before);
        // Whoever mends the checksum gets a session that is safe, whatever the panels hold.
        std::vector<float> logits(71);
        for (const int fill : {0x00, 0x7f, 0x80, 0xff}) {
            auto forged = bytes;
            std::memset(forged.data() + 32, fill, forged.size() - 32);
            make_right(forged);
            for (const char* isa : model_isas()) {
                SmallSession any(small.model, {.kv_type = kv_type}, isa);
                REQUIRE(restore_session(any.session, forged).ok());
                CHECK(forward(any.session, std::span(tokens).first(1), logits).ok());
            }
        }
    }
}

TEST_CASE("a session of another model, cache or version, or one too long, is refused by name") {
    const SmallModel small(llama_config(), Type::f32), other(llama_config(), Type::f32, 2);
    const auto tokens = some_tokens(20, 71);
    SmallSession from(small.model, {}), wrong_model(other.model, {}), f16(small.model, {.kv_type = Type::f16});
    SmallSession fits(small.model, {.max_kv_len = 20}), narrow(small.model, {.max_kv_len = 19});
    REQUIRE(forward(from.session, tokens, {}).ok());
    const auto bytes = saved(from.session);
    CHECK(restore_session(wrong_model.session, bytes).code == Code::session_mismatch);
    CHECK(restore_session(f16.session, bytes).code == Code::session_mismatch);
    const Status full = restore_session(narrow.session, bytes);
    CHECK(full.code == Code::context_full);
    CHECK(full.wanted == 20);
    CHECK(full.had == 19);
    CHECK(restore_session(fits.session, changed(bytes, 0, 1)).code == Code::session_mismatch);
    CHECK(restore_session(fits.session, changed(bytes, 8, 2)).code == Code::version_unsupported);
    const Status numerics = restore_session(fits.session, changed(bytes, 12, kNumericsVersion + 1));
    CHECK(numerics.code == Code::session_mismatch);
    CHECK(numerics.had == kNumericsVersion + 1);
    CHECK(restore_session(fits.session, changed(bytes, 24, 0xffffffffu)).code == Code::context_full);
    CHECK(restore_session(fits.session, changed(bytes, 24, 1)).code == Code::bad_shape);
    CHECK(fits.session.kv_len() == 0);
    CHECK(restore_session(fits.session, bytes).ok());
    CHECK(fits.session.kv_len() == 20);

    const SmallModel encoder(bert_config(), Type::f32);
    SmallSession e(encoder.model, {});
    std::size_t written = 0;
    std::vector<std::byte> out(100);
    CHECK(session_bytes(e.session) == 0);
    CHECK(save_session(e.session, out, written).code == Code::unsupported);
    CHECK(restore_session(e.session, bytes).code == Code::unsupported);
    CHECK(copy_session(e.session, e.session).code == Code::unsupported);
}

TEST_CASE("a cancelled call leaves the session as it was, at whatever phase the flag is seen") {
    const SmallModel small(llama_config(3, 256, 4, 2, 64, 512, 100), Type::f32);
    const auto tokens = some_tokens(70, 71);
    const std::span<const Token> all(tokens);
    for (const std::uint32_t n_threads : {1u, 2u, 4u}) {
        const Limits limits{.max_batch = 16, .n_threads = n_threads};
        SmallSession plain(small.model, limits), s(small.model, limits);
        REQUIRE(forward(plain.session, all.first(21), {}).ok());
        const auto want = continued(plain.session, all.subspan(21, 3));
        std::atomic<bool> flag{false};
        set_cancel(s.session, &flag);
        REQUIRE(forward(s.session, all.first(21), {}).ok());
        // The tap sets it after so many blocks, somewhere in three pieces of tokens.
        struct Countdown {
            std::atomic<bool>& flag;
            int blocks;
        };
        for (const int blocks : {0, 1, 2, 3, 5, 7}) {
            CAPTURE(blocks);
            Countdown countdown{flag, blocks};
            flag = blocks == 0;
            set_trace(s.session, {[](void* context, std::uint32_t pos, std::uint32_t, const char* operation,
                                     std::span<const float>) {
                                      auto& c = *static_cast<Countdown*>(context);
                                      const bool ends_block = !std::strcmp(operation, "block") && (pos - 21) % 16 == 15;
                                      if (ends_block && --c.blocks == 0) c.flag = true;
                                  },
                                  &countdown});
            CHECK(forward(s.session, all.last(48), {}).code == Code::cancelled);
            CHECK(s.session.kv_len() == 21);
        }
        // Or after a phase of the second layer: then the pass ends with the next, which is no longer shown.
        struct Within {
            std::atomic<bool>& flag;
            std::string after, last;  // the phase after which it is set, and the last that was shown
        };
        for (const char* after : {"projected", "attended", "attention", "inner"}) {
            CAPTURE(after);
            Within within{flag, after, ""};
            flag = false;
            set_trace(s.session, {[](void* context, std::uint32_t, std::uint32_t layer, const char* operation,
                                     std::span<const float>) {
                                      auto& w = *static_cast<Within*>(context);
                                      w.last = operation;
                                      if (layer == 1 && operation == w.after) w.flag = true;
                                  },
                                  &within});
            CHECK(forward(s.session, all.last(48), {}).code == Code::cancelled);
            CHECK(s.session.kv_len() == 21);
            CHECK(within.last == after);
        }
        set_trace(s.session, {});
        flag = false;
        CHECK(same_bits(continued(s.session, all.subspan(21, 3)), want));
        flag = true;
        set_cancel(s.session, nullptr);
        CHECK(forward(s.session, all.first(1), {}).ok());
    }
    const SmallModel encoder(bert_config(), Type::f32);
    SmallSession e(encoder.model, {});
    const std::atomic<bool> set{true};
    set_cancel(e.session, &set);
    const Token ids[] = {1, 2, 3};
    const std::uint32_t lengths[] = {3}, types[] = {0, 0, 0};
    std::vector<float> out(3 * 40);
    EncodeInput input;
    input.source = {.ids = ids, .types = types, .lengths = lengths};
    CHECK(encode(e.session, input, out).code == Code::cancelled);

    AttentionShape heads;
    heads.n_heads = heads.n_kv_heads = 2, heads.head_dim = heads.value_head_dim = 4;
    Model lone;
    REQUIRE(attention_model(heads, lone).ok());
    SmallSession attending(lone, {.max_batch = 3, .max_sequences = 1, .max_key_rows = 5});
    const std::vector<float> x(5 * 8, 1.0f);
    AttendInput in;
    in.query = in.key = in.value = {x, {.row = 8, .head = 4}};
    in.n_queries = 3, in.n_keys = 5, in.out_strides = {.row = 8, .head = 4};
    std::vector<float> attended(3 * 8);
    set_cancel(attending.session, &set);
    CHECK(attend(attending.session, in, attended).code == Code::cancelled);
    set_cancel(attending.session, nullptr);
    CHECK(attend(attending.session, in, attended).ok());
}
