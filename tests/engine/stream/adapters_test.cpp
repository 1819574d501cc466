// Adapters at run time: what they compute, that it has the same bits whatever runs it, exact plans, refusals.
#include "fovea/adapter.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "convert/sources/lora.h"
#include "tests/support/convert_fixtures.h"
#include "tests/support/rank_group.h"
#include "tests/support/same_bits.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"
#include "tests/support/small_pool.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr std::uint32_t kRank = 5;

Config adapter_of(Config config, std::uint32_t rank = kRank, std::uint32_t adapted = kAllAdapted) {
    config.decoder.adapter_rank = rank;
    config.decoder.adapted = adapted;
    return config;
}

std::uint32_t bits(std::initializer_list<Adapted> matrices) {
    std::uint32_t all = 0;
    for (const Adapted matrix : matrices) all |= static_cast<std::uint32_t>(matrix);
    return all;
}

/// The config of decoder_configs() whose attention is latent.
Config latent_config() {
    for (const NamedConfig& named : decoder_configs())
        if (named.config.decoder.blocks[0].latent.query_dim) return named.config;
    FAIL("no latent attention among decoder_configs()");
    return {};
}

Limits with_adapters(Limits limits, std::uint32_t n = 2, std::uint32_t rank = kRank) {
    limits.max_adapters = n;
    limits.max_adapter_rank = rank;
    return limits;
}

/// Logits after every token, with the prompt given in pieces of `split` tokens.
std::vector<float> logits_of(const Model& model, std::span<const Adapter> adapters, std::span<const Token> tokens,
                             std::size_t split, const Limits& limits, const char* isa = nullptr) {
    SmallSession s(model, limits, isa);
    REQUIRE(set_adapters(s.session, adapters).ok());
    const std::size_t vocab_size = model.config().decoder.vocab_size;
    std::vector<float> logits(tokens.size() * vocab_size);
    for (std::size_t at = 0; at < tokens.size(); at += split) {
        const std::size_t n = std::min(split, tokens.size() - at);
        REQUIRE(
            forward(s.session, tokens.subspan(at, n), std::span(logits).subspan(at * vocab_size, n * vocab_size)).ok());
    }
    return logits;
}

float difference(const std::vector<float>& a, const std::vector<float>& b) {
    float most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    return most;
}

fs::path golden() { return FOVEA_GOLDEN_DIR; }

fs::path base_of(const fs::path& adapter) {
    std::string name = read_text(adapter / "base.txt");
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return golden() / name;
}

/// A model of f32 and an adapter of it, by way of files.
struct Pair {
    TemporaryFolder folder;
    Converted model, adapter;

    explicit Pair(const fs::path& adapter_folder) : Pair(base_of(adapter_folder), adapter_folder) {}
    Pair(const fs::path& base, const fs::path& source)
        : model(made({.source = base, .output = folder / "m.fovea", .type = Type::f32})),
          adapter(made({.source = source, .output = folder / "a.fovea", .base = base})) {}

    static fs::path made(const ConvertOptions& options) {
        convert_source(options);
        return options.output;
    }
};

}  // namespace

TEST_CASE("adapters: a file beside the model makes the logits of the sums") {
    struct Case {
        fs::path base, adapter, expected;
    };
    std::vector<Case> cases;
    for (const char* name : {"llama", "gpt_neox", "phi3", "deepseek_v2", "deepseek_v3", "gemma3"}) {
        const fs::path folder = golden() / "lora" / name;
        cases.push_back({base_of(folder), folder, folder / "expected_logits.npy"});
    }
    for (const std::string name : {"llama_q8_0", "qwen2_q4_0"})
        cases.push_back({golden() / "gguf" / (name + ".gguf"), golden() / "lora_gguf" / (name + ".gguf"),
                         golden() / "lora_gguf" / (name + "_logits.npy")});
    for (const Case& files : cases) {
        CAPTURE(files.adapter.string());
        const Pair pair(files.base, files.adapter);
        const NpyArray expected = read_npy(files.expected.string());
        const std::vector<float> want = numbers_of<float>(expected);
        std::vector<Token> tokens(expected.shape[0]);
        for (std::uint32_t i = 0; i < tokens.size(); ++i)
            tokens[i] = (7 * i + 3) % pair.model.model.config().decoder.vocab_size;
        const Limits limits = with_adapters({}, 2, adapter_rank(pair.adapter.model));
        const Adapter one[] = {{&pair.adapter.model, 1.0f}};
        CHECK(difference(want, logits_of(pair.model.model, one, tokens, tokens.size(), limits)) < 1e-4f);
        CHECK(difference(want, logits_of(pair.model.model, one, tokens, 1, limits)) < 1e-4f);
        const Adapter halves[] = {{&pair.adapter.model, 0.25f}, {&pair.adapter.model, 0.75f}};
        CHECK(difference(want, logits_of(pair.model.model, halves, tokens, tokens.size(), limits)) < 1e-4f);
        CHECK(difference(want, logits_of(pair.model.model, {}, tokens, tokens.size(), limits)) > 0.1f);
    }
}

TEST_CASE("adapters: the same bits on every instruction set, thread count, prompt split and batch") {
    for (const NamedConfig& named : decoder_configs())
        for (const Type type : {Type::f32, Type::f16, Type::q8, Type::q4}) {
            if (kSanitized && type != Type::q8) continue;  // nothing new
            CAPTURE(named.name);
            CAPTURE(static_cast<int>(type));
            const SmallModel small(named.config, type), first(adapter_of(named.config), Type::f32),
                second(adapter_of(named.config, 3, bits({Adapted::value, Adapted::up, Adapted::latent})), Type::f16);
            const Adapter both[] = {{&first.model, 0.5f}, {&second.model, 1.0f}};
            const Stack& stack = small.model.config().decoder;
            const auto tokens = some_tokens(std::min<std::size_t>(stack.max_positions, 40), stack.vocab_size);
            const auto want = logits_of(small.model, both, tokens, tokens.size(), with_adapters({}), "scalar");
            CHECK(!same_bits(want, logits_of(small.model, {}, tokens, tokens.size(), with_adapters({}))));
            for (const char* isa : model_isas()) {
                CAPTURE(isa);
                CHECK(same_bits(want, logits_of(small.model, both, tokens, tokens.size(), with_adapters({}), isa)));
            }
            for (const std::uint32_t n_threads : {2u, 3u})
                CHECK(same_bits(want, logits_of(small.model, both, tokens, tokens.size(),
                                                with_adapters({.n_threads = n_threads}))));
            for (const std::size_t split : {std::size_t{1}, std::size_t{7}})
                CHECK(same_bits(want, logits_of(small.model, both, tokens, split, with_adapters({}))));
            for (const std::uint32_t max_batch : {1u, 13u})
                CHECK(same_bits(want, logits_of(small.model, both, tokens, tokens.size(),
                                                with_adapters({.max_batch = max_batch}))));
        }
}

TEST_CASE("adapters: ranks have the bits of one process") {
    for (const NamedConfig& named : decoder_configs()) {
        CAPTURE(named.name);
        const SmallModel small(named.config, Type::q8), first(adapter_of(named.config), Type::f32),
            second(adapter_of(named.config, 3, bits({Adapted::value, Adapted::up, Adapted::latent})), Type::f16);
        const Adapter both[] = {{&first.model, 0.5f}, {&second.model, 1.0f}};
        const Stack& stack = small.model.config().decoder;
        const auto tokens = some_tokens(std::min<std::size_t>(stack.max_positions, 40), stack.vocab_size);
        const auto want = logits_of(small.model, both, tokens, tokens.size(), with_adapters({}));
        for (const std::uint32_t n_ranks : {2u, 3u, 8u}) {
            CAPTURE(n_ranks);
            Group group(n_ranks);
            std::vector<std::vector<float>> got(n_ranks);
            for_all_ranks(group, [&](const Ranks& ranks) {
                Limits limits = with_adapters({.max_batch = 13});
                limits.rank = static_cast<std::uint8_t>(ranks.rank);
                limits.n_ranks = static_cast<std::uint8_t>(n_ranks);
                Plan plan;
                Session session;
                if (!make_plan(small.model.config(), limits, plan).ok()) return;
                AlignedBytes arena(plan.arena_bytes, std::byte{0xee});
                std::vector<float> logits(tokens.size() * stack.vocab_size);
                if (make_session(small.model, limits, arena, session, {.ranks = &ranks}).ok() &&
                    set_adapters(session, both).ok() && forward(session, tokens, logits).ok())
                    got[ranks.rank] = logits;
            });
            for (const std::vector<float>& of_rank : got) CHECK(same_bits(want, of_rank));
        }
    }
}

TEST_CASE("adapters: a team shares a wide model's products, with the bits of one thread") {
    const Config config = llama_config(2, 768, 6, 2, 128, 1024, 256);
    const SmallModel small(config, Type::q8), adapter(adapter_of(config, 24), Type::bf16);
    const Adapter one[] = {{&adapter.model, 0.75f}};
    const auto tokens = some_tokens(70, small.model.config().decoder.vocab_size);
    const auto want = logits_of(small.model, one, tokens, tokens.size(), with_adapters({}, 1, 24));
    for (const std::uint32_t n_threads : {2u, 3u})
        CHECK(same_bits(want, logits_of(small.model, one, tokens, 9, with_adapters({.n_threads = n_threads}, 1, 24))));
}

TEST_CASE("adapters: without any, or planned and not set, a model's logits are what they were") {
    const SmallModel small(llama_config(), Type::q8), adapter(adapter_of(llama_config()), Type::f32);
    const auto tokens = some_tokens(20, small.model.config().decoder.vocab_size);
    SmallSession plain(small.model, {}, nullptr);
    std::vector<float> want(tokens.size() * small.model.config().decoder.vocab_size);
    REQUIRE(forward(plain.session, tokens, want).ok());
    CHECK(same_bits(want, logits_of(small.model, {}, tokens, tokens.size(), with_adapters({}))));

    SmallSession s(small.model, with_adapters({}), nullptr);
    const Adapter one[] = {{&adapter.model, 1.0f}};
    REQUIRE(set_adapters(s.session, one).ok());
    std::vector<float> got(want.size());
    REQUIRE(forward(s.session, tokens, got).ok());
    CHECK(!same_bits(want, got));
    CHECK(set_adapters(s.session, {}).code == Code::bad_argument);  // its cache has positions
    REQUIRE(rewind(s.session, 0).ok());
    REQUIRE(set_adapters(s.session, {}).ok());
    REQUIRE(forward(s.session, tokens, got).ok());
    CHECK(same_bits(want, got));
}

TEST_CASE("adapters: those whose scale is 0 change no bit, whatever the activation") {
    for (int activation = 0; activation < kActivationCount; ++activation)
        for (const bool gated : {false, true}) {
            Config config = llama_config();
            config.decoder.blocks[0].feed.activation = static_cast<Activation>(activation);
            config.decoder.blocks[0].feed.gated = gated;
            CAPTURE(activation);
            CAPTURE(gated);
            const SmallModel small(config, Type::q8), adapter(adapter_of(config), Type::f32);
            const Adapter none[] = {{&adapter.model, 0.0f}};
            const auto tokens = some_tokens(20, config.decoder.vocab_size);
            CHECK(same_bits(logits_of(small.model, {}, tokens, tokens.size(), with_adapters({})),
                            logits_of(small.model, none, tokens, tokens.size(), with_adapters({}))));
        }
}

TEST_CASE("adapters: exactly the planned bytes do, a byte less is refused, and plans without adapters have not grown") {
    for (const NamedConfig& named : decoder_configs()) {
        CAPTURE(named.name);
        const SmallModel small(named.config, Type::q8);
        Plan plain, plan;
        REQUIRE(make_plan(small.model.config(), {}, plain).ok());
        REQUIRE(make_plan(small.model.config(), with_adapters({}), plan).ok());
        CHECK(plan.arena_bytes > plain.arena_bytes);
        for (std::uint32_t i = 0; i < plain.n_parts; ++i)
            CHECK(std::string(plain.parts[i].name).find("adapt") == std::string::npos);
        AlignedBytes arena(plan.arena_bytes);
        Session session;
        CHECK(make_session(small.model, plan.limits, std::span(arena).first(plan.arena_bytes - 1), session).code ==
              Code::arena_too_small);
        CHECK(make_session(small.model, plan.limits, arena, session).ok());
    }
}

TEST_CASE("adapters: limits and adapters that do not fit are refused, and change nothing") {
    const SmallModel small(llama_config(), Type::f32), adapter(adapter_of(llama_config()), Type::f32),
        wider(adapter_of(llama_config(2, 64)), Type::f32), longer(adapter_of(llama_config(3)), Type::f32),
        quantized(adapter_of(llama_config()), Type::q8), high(adapter_of(llama_config(), 6), Type::f32);
    Plan plan;
    CHECK(make_plan(small.model.config(), {.max_adapter_rank = 1}, plan).code == Code::bad_limits);
    CHECK(make_plan(small.model.config(), with_adapters({}, 1, 0), plan).code == Code::bad_limits);
    CHECK(make_plan(small.model.config(), with_adapters({}, 65), plan).code == Code::bad_limits);
    CHECK(make_plan(small.model.config(), with_adapters({}, 1, 4097), plan).code == Code::bad_limits);
    CHECK(make_plan(adapter.model.config(), {}, plan).code == Code::unsupported);
    Session none;
    CHECK(set_adapters(none, {}).code == Code::bad_argument);

    SmallSession s(small.model, with_adapters({}), nullptr);
    const auto refused = [&](std::initializer_list<Adapter> adapters) {
        return set_adapters(s.session, {adapters.begin(), adapters.size()}).code;
    };
    const Adapter good{&adapter.model, 1.0f};
    REQUIRE(refused({good}) == Code::ok);
    CHECK(refused({good, good, good}) == Code::bad_limits);
    CHECK(refused({good, {&high.model, 1.0f}}) == Code::bad_limits);
    CHECK(refused({good, {&wider.model, 1.0f}}) == Code::bad_shape);
    CHECK(refused({good, {&longer.model, 1.0f}}) == Code::bad_shape);
    CHECK(refused({good, {&quantized.model, 1.0f}}) == Code::unsupported);
    CHECK(refused({good, {&small.model, 1.0f}}) == Code::bad_argument);
    CHECK(refused({good, {nullptr, 1.0f}}) == Code::bad_argument);
    CHECK(refused({{&adapter.model, std::numeric_limits<float>::infinity()}}) == Code::bad_argument);
    CHECK(refused({{&adapter.model, std::numeric_limits<float>::quiet_NaN()}}) == Code::bad_argument);
    const auto tokens = some_tokens(9, small.model.config().decoder.vocab_size);
    std::vector<float> got(tokens.size() * small.model.config().decoder.vocab_size);
    REQUIRE(forward(s.session, tokens, got).ok());
    const Adapter one[] = {good};
    CHECK(same_bits(got, logits_of(small.model, one, tokens, tokens.size(), with_adapters({}))));
}

TEST_CASE("adapters: of latent attention, one of other heads or widths is refused") {
    const Config config = latent_config();
    const SmallModel small(config, Type::q8);
    SmallSession s(small.model, with_adapters({}), nullptr);
    const auto refused = [&](const Config& other, std::uint32_t adapted, Type type = Type::f32) {
        const SmallModel adapter(adapter_of(other, kRank, adapted), type);
        const Adapter one[] = {{&adapter.model, 1.0f}};
        return set_adapters(s.session, one).code;
    };
    CHECK(refused(config, kAllAdapted) == Code::ok);
    const std::uint32_t latent = bits({Adapted::latent});
    const auto changed = [&](auto change) {
        Config other = config;
        for (std::uint32_t i = 0; i < other.decoder.n_blocks; ++i) change(other.decoder.blocks[i]);
        return other;
    };
    CHECK(refused(changed([](Block& b) { ++b.latent.query_dim; }), latent) == Code::bad_shape);
    CHECK(refused(changed([](Block& b) { ++b.latent.value_dim; }), latent) == Code::bad_shape);
    CHECK(refused(changed([](Block& b) { ++b.attention.n_heads; }), latent) == Code::bad_shape);
    CHECK(refused(changed([](Block& b) { ++b.attention.value_head_dim, ++b.attention.head_dim; }), latent) ==
          Code::bad_shape);
    CHECK(refused(config, latent, Type::q8) == Code::unsupported);
    if (config.decoder.blocks[0].latent.query_rank)
        CHECK(refused(changed([](Block& b) { ++b.latent.query_rank; }), bits({Adapted::query_down})) ==
              Code::bad_shape);
    const Config plain = llama_config(config.decoder.n_layers, config.decoder.d_model);
    CHECK(refused(plain, bits({Adapted::query})) == Code::bad_shape);
}

TEST_CASE("adapters: a workspace's steps have the bits of each sequence alone") {
    const SmallModel small(llama_config(), Type::q8), adapter(adapter_of(llama_config()), Type::f32);
    const std::uint32_t vocab_size = small.model.config().decoder.vocab_size;
    const Adapter one[] = {{&adapter.model, 0.5f}};
    SmallSteps both(small.model, with_adapters({.max_batch = 8}), {.max_sequences = 2});
    REQUIRE(set_adapters(both.workspace, one).ok());
    const auto tokens = some_tokens(12, vocab_size);
    std::vector<float> of_a(5 * vocab_size), of_b(12 * vocab_size);
    const Step steps[] = {{both.make(), std::span(tokens).first(5), of_a}, {both.make(), tokens, of_b}};
    REQUIRE(forward(both.workspace, steps).ok());
    const auto want = logits_of(small.model, one, tokens, tokens.size(), with_adapters({}));
    CHECK(same_bits(want, of_b));
    CHECK(same_bits({want.begin(), want.begin() + 5 * vocab_size}, of_a));
}

TEST_CASE("adapters: a file serves its model in every type of weights, and no other of the same shape") {
    TemporaryFolder folder;
    const fs::path adapter_folder = golden() / "lora/llama", base = base_of(adapter_folder);
    const Pair pair(adapter_folder);
    const Adapter one[] = {{&pair.adapter.model, 1.0f}};
    const Limits limits = with_adapters({}, 1, adapter_rank(pair.adapter.model));
    CHECK(pair.adapter.model.config().decoder.adapter_base != 0);
    convert_source({.source = base, .output = folder / "bf16.fovea", .type = Type::bf16});
    const Converted narrow(folder / "bf16.fovea");
    SmallSession of_narrow(narrow.model, limits, nullptr);
    CHECK(set_adapters(of_narrow.session, one).ok());

    fs::copy(base, folder / "other");
    auto tensors = SafetensorsText::read(folder / "other/model.safetensors");
    const std::size_t at = tensors.header.at("model.norm.weight")["data_offsets"][0].get<std::size_t>();
    tensors.data[at] = static_cast<char>(tensors.data[at] ^ 1);
    write_text(folder / "other/model.safetensors", tensors.text());
    convert_source({.source = folder / "other", .output = folder / "other.fovea", .type = Type::f32});
    const Converted other(folder / "other.fovea");
    SmallSession of_other(other.model, limits, nullptr);
    CHECK(set_adapters(of_other.session, one).code == Code::checksum_mismatch);
}

TEST_CASE("adapters: what only a merge can do is refused by name") {
    TemporaryFolder folder;
    const auto line = [&](ConvertOptions options) {
        options.output = folder / "a.fovea";
        return refusal_of([&] { convert_source(options); });
    };
    const fs::path lora = golden() / "lora", llama = golden() / "models/llama_tied";
    CHECK(contains(line({.source = lora / "llama"}), "expected a model, got an adapter of one; --base MODEL"));
    CHECK(contains(line({.source = lora / "gpt2", .base = base_of(lora / "gpt2")}),
                   "adapter_config.json: expected products alone, got transformer.h.0.attn.c_attn.bias"));
    CHECK(contains(line({.source = lora / "llama", .type = Type::q8, .base = llama}), "--base: expected --type f32"));
    CHECK(contains(line({.source = lora / "llama", .base = llama, .loras = {{lora / "llama"}}}), "--lora, --base: "));
    CHECK(contains(line({.source = lora / "phi3", .base = llama}), "expected a tensor that the model's files have"));
    fs::copy(lora / "embedding", folder / "embedding");
    auto tensors = SafetensorsText::read(folder / "embedding/adapter_model.safetensors");
    tensors.header.erase("base_model.model.lm_head.weight");
    write_text(folder / "embedding/adapter_model.safetensors", tensors.text());
    CHECK(contains(line({.source = folder / "embedding", .base = base_of(lora / "embedding")}),
                   "expected a matrix of a layer's attention or feed-forward part, got model.embed_tokens.weight"));
    CHECK(!fs::exists(folder / "a.fovea"));
}

TEST_CASE("adapters: an adapter's file changed anywhere is refused or safe to use") {
    // Each byte would take minutes under sanitizers; a step that divides no record's size meets all fields.
    constexpr std::size_t kStep = kSanitized ? 19 : 1;
    for (const Config& config : {llama_config(), latent_config()}) {
        const SmallModel small(config, Type::f32);
        const AlignedBytes good = write_bytes(random_model(adapter_of(config), 3), {});
        const auto tokens = some_tokens(3, small.model.config().decoder.vocab_size);
        for (std::size_t at = 0; at < std::min<std::size_t>(good.size(), 8192); at += kStep) {
            AlignedBytes bytes = good;
            bytes[at] ^= std::byte{0x41};
            Model model;
            if (!open_model(bytes, model).ok()) continue;
            SmallSession s(small.model, with_adapters({}), nullptr);
            const Adapter one[] = {{&model, 1.0f}};
            if (!set_adapters(s.session, one).ok()) continue;
            std::vector<float> logits(small.model.config().decoder.vocab_size);
            CHECK(forward(s.session, tokens, logits).ok());
        }
    }
}
