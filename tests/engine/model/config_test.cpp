// Configurations: which are refused, by which name, and how many parameters the others have.
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>

#include "host/base/error.h"
#include "host/model/parameters.h"
#include "tests/support/encoder_models.h"
#include "tests/support/small_models.h"
#include "tools/options/presets.h"

namespace fovea::testing {
namespace {

void check_invalid(const char* name, const std::function<void(Stack&, Block&)>& spoil) {
    CAPTURE(name);
    Config config = llama_config();
    REQUIRE(check(config).ok());
    spoil(config.decoder, config.decoder.blocks[0]);
    const Status status = check(config);
    CHECK(status.code == Code::config_invalid);
    CHECK(std::string(status.what) == name);
}

TEST_CASE("config: each count outside its range is refused by name") {
    using S = Stack;
    using B = Block;
    constexpr std::uint32_t kMost = 0xffffffffu;
    check_invalid("n_layers", [](S& s, B&) { s.n_layers = kMost; });
    check_invalid("n_layers", [](S& s, B&) { s.n_layers = 0; });
    check_invalid("d_model", [](S& s, B&) { s.d_model = 0; });
    check_invalid("d_model", [](S& s, B&) { s.d_model = kMost; });
    check_invalid("vocab_size", [](S& s, B&) { s.vocab_size = kMost; });
    check_invalid("max_positions", [](S& s, B&) { s.max_positions = kMost; });
    check_invalid("max_positions", [](S& s, B&) { s.max_positions = 0; });
    check_invalid("n_token_types", [](S& s, B&) { s.n_token_types = kMost; });
    check_invalid("n_blocks", [](S& s, B&) { s.n_blocks = 0; });
    check_invalid("n_blocks", [](S& s, B&) { s.n_blocks = kMaxBlocks + 1; });
    check_invalid("n_blocks", [](S& s, B&) { s.n_blocks = s.n_layers + 1; });
    check_invalid("n_heads", [](S&, B& b) { b.attention.n_heads = kMost; });
    check_invalid("n_heads or d_ff", [](S&, B& b) { b.attention.n_heads = b.feed.d_ff = 0; });
    check_invalid("n_kv_heads", [](S&, B& b) { b.attention.n_kv_heads = 0; });
    check_invalid("n_kv_heads that divides n_heads",
                  [](S&, B& b) { b.attention.n_kv_heads = b.attention.n_heads - 1; });
    check_invalid("head_dim", [](S&, B& b) { b.attention.head_dim = 0; });
    check_invalid("head_dim", [](S&, B& b) { b.attention.head_dim = kMost; });
    check_invalid("value_head_dim", [](S&, B& b) { b.attention.value_head_dim = 0; });
    check_invalid("n_heads times head_dim", [](S&, B& b) { b.attention.head_dim = b.attention.rotary_dim = 1u << 20; });
    check_invalid("n_heads times value_head_dim", [](S&, B& b) { b.attention.value_head_dim = 1u << 20; });
    check_invalid("head_dim, even for rotary positions", [](S&, B& b) { b.attention.head_dim = 7; });
    check_invalid("rotary_dim, even", [](S&, B& b) { b.attention.rotary_dim = 3; });
    check_invalid("rotary_dim", [](S&, B& b) { b.attention.rotary_dim = 0; });
    check_invalid("rotary_dim", [](S&, B& b) { b.attention.rotary_dim = b.attention.head_dim + 2; });
    check_invalid("d_ff", [](S&, B& b) { b.feed.d_ff = kMost; });
    check_invalid("window", [](S&, B& b) { b.attention.window = kMost; });
    check_invalid("query_width", [](S&, B& b) { b.attention.query_width = 40; });
    check_invalid("output_width", [](S&, B& b) { b.attention.output_width = 40; });
    check_invalid("relative_max_distance", [](S&, B& b) { b.attention.position = Position::relative; });
    check_invalid("relative_buckets", [](S&, B& b) { b.attention.relative_buckets = 4; });
    check_invalid("width of a head's map", [](S& s, B&) { s.head[1].width = 3; });
    check_invalid("width of a head's map", [](S& s, B&) { s.head[0].width = s.head[1].width = kMost; });
    check_invalid("norm of a head's last map", [](S& s, B&) {
        s.head[0] = {.width = 3, .norm = Norm::layer};
        s.has_output_head = s.tied_output = false;
    });
}

TEST_CASE("config: words, numbers and flags that make no sense are refused by name") {
    using S = Stack;
    using B = Block;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    check_invalid("norm", [](S&, B& b) { b.norm = static_cast<Norm>(3); });
    check_invalid("norm_place", [](S&, B& b) { b.norm_place = static_cast<NormPlace>(5); });
    check_invalid("query_key_norm", [](S&, B& b) { b.attention.query_key_norm = static_cast<Norm>(255); });
    check_invalid("block position", [](S&, B& b) { b.attention.position = static_cast<Position>(7); });
    check_invalid("block position", [](S&, B& b) { b.attention.position = Position::learned; });
    check_invalid("activation", [](S&, B& b) { b.feed.activation = static_cast<Activation>(kActivationCount); });
    check_invalid("activation of a head's map",
                  [](S& s, B&) { s.head[0] = {.width = 3, .activation = static_cast<Activation>(99)}; });
    check_invalid("norm_bias of a head's map", [](S& s, B&) { s.head[0] = {.width = 3, .norm_bias = true}; });
    check_invalid("position", [](S& s, B&) { s.position = Position::rope; });
    check_invalid("final_norm", [](S& s, B&) { s.final_norm = static_cast<Norm>(3); });
    check_invalid("pooling", [](S& s, B&) { s.pooling = static_cast<Pooling>(7); });
    check_invalid("norm_epsilon", [](S&, B& b) { b.norm_epsilon = kNan; });
    check_invalid("norm_epsilon", [](S&, B& b) { b.norm_epsilon = -1e-5f; });
    check_invalid("softmax_scale", [](S&, B& b) { b.attention.softmax_scale = kInfinity; });
    check_invalid("score_softcap", [](S&, B& b) { b.attention.score_softcap = -1; });
    check_invalid("rope_scale", [](S&, B& b) { b.attention.rope_scale = kNan; });
    check_invalid("embedding_scale", [](S& s, B&) { s.embedding_scale = kInfinity; });
    check_invalid("logit_softcap", [](S& s, B&) { s.logit_softcap = kNan; });
    check_invalid("norm_bias", [](S&, B& b) {
        b.norm = Norm::none;
        b.norm_bias = true;
    });
    check_invalid("gate_bias", [](S&, B& b) {
        b.feed.gated = false;
        b.feed.gate_bias = true;
    });
    check_invalid("output_bias", [](S&, B& b) {
        b.attention.has_output_map = false;
        b.attention.output_bias = true;
    });
    check_invalid("final_norm_bias", [](S& s, B&) { s.final_norm_bias = true; });
    check_invalid("head_norm", [](S&, B& b) { b.attention.head_norm = static_cast<HeadNorm>(3); });
    check_invalid("head_norm", [](S&, B& b) { b.attention.head_norm = HeadNorm::each; });
    check_invalid("residual_scale", [](S&, B& b) { b.residual_scale = kNan; });
    check_invalid("projection_clip", [](S&, B& b) { b.attention.projection_clip = -1; });
    check_invalid("shared_norm", [](S&, B& b) { b.feed.shared_norm = true; });
    check_invalid("parallel", [](S&, B& b) {
        b.feed.parallel = true;
        b.norm_place = NormPlace::both;
    });
    check_invalid("experts with norms within", [](S&, B& b) {
        b.experts.n = b.experts.n_used = 1;
        b.norm_place = NormPlace::within;
    });
    check_invalid("parallel", [](S&, B& b) {
        b.feed.parallel = true;
        b.norm_place = NormPlace::within;
    });
    check_invalid("has_output_head", [](S& s, B&) { s.vocab_size = 0; });
    check_invalid("tied_output", [](S& s, B&) { s.has_output_head = false; });
    check_invalid("normalize_pooled", [](S& s, B&) { s.normalize_pooled = true; });
}

TEST_CASE("config: a stack that is not there has no blocks, a block without heads no keys and values") {
    Config config = llama_config();
    for (const std::uint32_t n_blocks : {1u, 9u, 0xffffffffu}) {
        config.encoder.n_blocks = n_blocks;
        CHECK(std::string(check(config).what) == "n_layers");
    }
    config.encoder = {};
    CHECK(check(config).ok());
    config.encoder.has_output_head = true;
    CHECK(std::string(check(config).what) == "n_layers");
    config.encoder = {};
    config.encoder.max_positions = 1;
    CHECK(std::string(check(config).what) == "n_layers");
    check_invalid("n_heads", [](Stack&, Block& b) { b.attention.n_heads = 0; });
    check_invalid("n_heads", [](Stack&, Block& b) { b.attention.n_heads = b.attention.n_kv_heads = 0; });
    check_invalid("n_heads",
                  [](Stack&, Block& b) { b.attention.n_heads = b.attention.n_kv_heads = b.attention.head_dim = 0; });
}

TEST_CASE("config: a session's logits come from a decoder that attends to no memory, a workspace's from others too") {
    Config config = llama_config();
    config.decoder.blocks[0].attention.cross_attention = true;
    REQUIRE(check(config).ok());
    Plan plan;
    CHECK(make_plan(config, {.max_kv_len = 4}, plan).code == Code::bad_limits);
    CHECK(plan.arena_bytes == 0);
    CHECK(make_workspace_plan(config, {.max_kv_len = 4}, plan).ok());
    PoolPlan pool;
    CHECK(make_pool_plan(config, {.memory = true}, pool).ok());
}

TEST_CASE("config: a pass's tasks are counted in 32 bits, and a plan refuses more") {
    Config config = llama_config(1, 48, 1u << 15, 1, 2, 88, 1u << 22);
    REQUIRE(check(config).ok());
    Plan plan;
    CHECK(make_plan(config, {.max_kv_len = 1u << 16, .max_batch = 1}, plan).ok());
    const Status status = make_plan(config, {.max_kv_len = 1u << 17, .max_batch = 1}, plan);
    CHECK(status.code == Code::bad_limits);
    CHECK(status.had == std::uint64_t{1} << 32);
}

TEST_CASE("config: the table of layers") {
    Config config = llama_config(3);
    std::uint8_t layers[] = {0, 0, 1};
    config.decoder.layer_blocks = layers;
    CHECK(std::string(check(config).what) == "a layer's block");
    config.decoder.n_blocks = 2;
    config.decoder.blocks[1] = config.decoder.blocks[0];
    CHECK(check(config).ok());
    config.decoder.blocks[1].attention.head_dim = 0;
    CHECK(std::string(check(config).what) == "head_dim");
    config.decoder.blocks[1] = config.decoder.blocks[0];
    config.decoder.layer_blocks = std::span(layers, 2);
    CHECK(std::string(check(config).what) == "layer_blocks");
}

TEST_CASE("config: a lone attention may have widths of its own") {
    Config config;
    Stack& s = config.encoder;
    s.n_layers = s.n_blocks = 1;
    s.d_model = 24;
    AttentionShape& b = s.blocks[0].attention;
    b.n_heads = b.n_kv_heads = 2;
    b.head_dim = 12;
    b.value_head_dim = 5;
    b.key_width = 17;
    b.value_width = 9;
    b.output_width = 31;
    b.output_bias = true;
    CHECK(check(config).ok());
    const ParameterCount count = count_parameters(config);
    CHECK(count.query_head == 12 * 24);
    CHECK(count.key_head == 12 * 17);
    CHECK(count.value_head == 5 * 9);
    CHECK(count.output_head == 5 * 31);
    CHECK(count.layer_attention == 2 * (12 * 24 + 12 * 17 + 5 * 9 + 5 * 31));
    CHECK(count.biases_and_norms == 31);
    CHECK(count.total == count.attention + 31);
    b.cross_attention = true;
    CHECK(std::string(check(config).what) == "cross_attention in the encoder");
}

TEST_CASE("config: a sound is an encoder's, of frames in place of ids, every field within its range") {
    const auto refused = [](auto spoil) {
        Config config = sound_config();
        REQUIRE(check(config).ok());
        spoil(config, config.encoder.sound);
        const Status status = check(config);
        CHECK(status.code == Code::config_invalid);
        return std::string(status.what);
    };
    constexpr std::uint32_t kMost = 0xffffffffu;
    for (const std::uint32_t wrong : {0u, kMost}) {
        CHECK(refused([&](Config&, Sound& s) { s.sample_rate = wrong; }) == "sample_rate");
        CHECK(refused([&](Config&, Sound& s) { s.n_fft = wrong; }) == "n_fft");
        CHECK(refused([&](Config&, Sound& s) { s.hop_length = wrong; }) == "hop_length");
        CHECK(refused([&](Config&, Sound& s) { s.n_mels = wrong; }) == "n_mels");
        CHECK(refused([&](Config&, Sound& s) { s.n_frames = wrong; }) == "n_frames");
    }
    CHECK(refused([](Config&, Sound& s) { s.n_frames = 81; }) == "n_frames");
    CHECK(refused([](Config&, Sound& s) { s.n_fft = 1 << 16, s.n_mels = 1 << 10; }) == "n_mels times frequencies");
    CHECK(refused([](Config& c, Sound&) { c.encoder.vocab_size = 3; }) == "vocab_size of a stack that hears");
    CHECK(refused([](Config& c, Sound& s) { c.decoder.sound = s; }) == "sound of the decoder");
    CHECK(refused([](Config& c, Sound& s) { c.encoder = {}, s.n_fft = 3; }) == "n_layers");
    const ParameterCount with = count_parameters(sound_config()), without = count_parameters(text_config(true));
    CHECK(with.embedding - without.embedding == 40 * 3 * 11 + 40 * 3 * 40 + 40 * 40);  // 40 positions among them
    CHECK(with.biases_and_norms - without.biases_and_norms == 2 * 40);
}

TEST_CASE("config: parameters of published models are the published ones") {
    const std::pair<const char*, std::uint64_t> totals[] = {
        {"gpt2", 124439808},
        {"gpt2-medium", 354823168},
        {"gpt2-large", 774030080},
        {"gpt2-xl", 1557611200},
        {"smollm2-135m", 134515008},
        {"smollm2-360m", 361821120},
        {"smollm2-1.7b", 1711376384},
        {"tinyllama-1.1b", 1100048384},
        {"llama2-7b", 6738415616},
        {"llama3-8b", 8030261248},
        {"llama3.2-1b", 1235814400},
        {"qwen2.5-0.5b", 494032768},
        {"qwen3-0.6b", 596049920},
        {"mistral-7b", 7241732096},
        {"stories260k", 260032},
        {"demo", 927104},
        {"gpt3", 174604259328},
        {"olmoe-1b-7b", 6919161856},
        {"mixtral-8x7b", 46702792704},
        {"qwen3-30b-a3b", 30532122624},
        {"bitnet-b1.58-2b", 2412820480},
        {"qwen3.5-0.8b", 752393024},
        {"lfm2-1.2b", 1170340608},
    };
    CHECK(std::size(totals) == preset_names().size());
    for (const auto& published : totals) {
        CAPTURE(published.first);
        const Config config = preset_config(published.first);
        CHECK(check(config).ok());
        CHECK(count_parameters(config).total == published.second);
    }
    CHECK_THROWS_AS((void)preset_config("gpt9"), host::Error);
}

TEST_CASE("config: disentangled positions are an encoder's, of heads that each have keys of their own") {
    const auto check_invalid_of = [](const char* name, const std::function<void(Config&, Block&)>& spoil) {
        CAPTURE(name);
        Config config = bert_config();
        Block& b = config.encoder.blocks[0];
        b.attention.position = Position::disentangled, b.attention.relative_buckets = 8,
        b.attention.relative_max_distance = 5;
        REQUIRE(check(config).ok());
        spoil(config, b);
        const Status status = check(config);
        CHECK(status.code == Code::config_invalid);
        CHECK(std::string(status.what) == name);
    };
    check_invalid_of("relative_buckets", [](Config&, Block& b) { b.attention.relative_buckets = 0; });
    check_invalid_of("relative_max_distance", [](Config&, Block& b) { b.attention.relative_max_distance = 0; });
    check_invalid_of("relative_max_distance",
                     [](Config&, Block& b) { b.attention.relative_max_distance = 0xffffffffu; });
    check_invalid_of("n_kv_heads of disentangled positions", [](Config&, Block& b) { b.attention.n_kv_heads = 1; });
    check_invalid_of("disentangled positions with what they cannot have",
                     [](Config&, Block& b) { b.attention.causal = true; });
    check_invalid_of("disentangled positions with what they cannot have",
                     [](Config&, Block& b) { b.attention.bias_kv = true; });
    check_invalid_of("n_heads times relative_buckets", [](Config&, Block& b) {
        b.attention.n_heads = b.attention.n_kv_heads = 1u << 16;
        b.attention.head_dim = b.attention.value_head_dim = 1;
        b.attention.relative_buckets = 100;
    });
    check_invalid_of("adapters of queries or keys, of which distances have been computed", [](Config& config, Block&) {
        config.encoder.adapter_rank = 2;
        config.encoder.adapted = static_cast<std::uint32_t>(Adapted::key);
    });
    check_invalid_of("disentangled positions in the decoder", [](Config& config, Block&) {
        config.decoder = config.encoder;
        config.encoder = {};
    });
}

TEST_CASE("config: the largest there may be still counts and plans without overflow") {
    Config config = llama_config(1u << 12, 1u << 20, 1u << 12, 1u << 12, 1u << 10, 1u << 20, 1u << 22);
    config.decoder.vocab_size = 1u << 24;
    REQUIRE(check(config).ok());
    const ParameterCount count = count_parameters(config);
    CHECK(count.layer_attention == std::uint64_t{1} << 44);  // 4 maps of 2^22 by 2^20
    CHECK(count.attention == std::uint64_t{1} << 56);
    Plan plan;
    Limits limits{.max_batch = 1u << 22, .n_threads = kMaxThreads};
    CHECK(make_plan(config, limits, plan).code == Code::bad_limits);  // 2^34 tasks
    limits.max_kv_len = limits.max_batch = (1u << 20) - 16;
    REQUIRE(make_plan(config, limits, plan).ok());
    CHECK(plan.arena_bytes > std::uint64_t{1} << 57);
    CHECK(plan.arena_bytes < std::uint64_t{1} << 59);
}

}  // namespace
}  // namespace fovea::testing
