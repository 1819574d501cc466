// GGUF files that are wrong: one line each that names the file, the place, what was wanted and what was there; and
// files changed at random, which are refused or read, never more.
#include <doctest/doctest.h>

#include <limits>
#include <random>

#include "convert/formats/gguf.h"
#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// A golden file to spoil, and what converting it then says.
class Spoiled {
public:
    explicit Spoiled(const char* name = "llama_q8_0.gguf", const char* folder = "gguf")
        : bytes_(read_text(fs::path(FOVEA_GOLDEN_DIR) / folder / name)) {}

    template<class T>
    Spoiled& put(std::size_t at, T value) {
        REQUIRE(at + sizeof value <= bytes_.size());
        std::memcpy(bytes_.data() + at, &value, sizeof value);
        return *this;
    }
    Spoiled& rename(const std::string& from, const std::string& to) {
        REQUIRE(from.size() == to.size());
        bytes_.replace(after(from) - from.size(), from.size(), to);
        return *this;
    }
    /// Where what follows the first place that has this text begins.
    [[nodiscard]] std::size_t after(const std::string& text) const {
        const std::size_t at = bytes_.find(text);
        REQUIRE(at != std::string::npos);
        return at + text.size();
    }
    /// A number of the metadata: its kind comes between the key and it.
    template<class T>
    Spoiled& value(const std::string& key, T number) {
        return put(after(key) + 4, number);
    }
    /// Another pair of the metadata, and a text so long that what follows is aligned as it was.
    Spoiled& add(const std::string& key, GgufKind kind, const std::string& value) {
        const std::string pair = pair_of(key, kind, value);
        bytes_.insert(24, pair);
        put(16, n_pairs() + 1);
        return pad(pair.size());
    }
    /// A text behind which all is aligned as it was before so many bytes came.
    Spoiled& pad(std::size_t n_bytes) {
        const auto text_of = [](std::size_t n) { return raw(std::uint64_t{n}) + std::string(n, ' '); };
        const std::size_t n = n_bytes + pair_of("pad", GgufKind::text, text_of(0)).size();
        bytes_.insert(24, pair_of("pad", GgufKind::text, text_of((32 - n % 32) % 32)));
        return put(16, n_pairs() + 1);
    }
    [[nodiscard]] ModelSource source() const {
        write_text(folder_ / "model.gguf", bytes_);
        return read_source({.source = folder_ / "model.gguf"});
    }
    std::string line() const {
        write_text(folder_ / "model.gguf", bytes_);
        ConvertOptions options;
        options.source = folder_ / "model.gguf";
        options.output = folder_ / "out.fovea";
        options.type = Type::f32;
        return refusal_of([&] { convert_source(options); });
    }
    std::string& bytes() { return bytes_; }

private:
    template<class T>
    static std::string raw(T number) {
        return {reinterpret_cast<const char*>(&number), sizeof number};
    }
    static std::string pair_of(const std::string& key, GgufKind kind, const std::string& value) {
        return raw(std::uint64_t{key.size()}) + key + raw(static_cast<std::uint32_t>(kind)) + value;
    }
    [[nodiscard]] std::uint64_t n_pairs() const {
        std::uint64_t n;
        std::memcpy(&n, bytes_.data() + 16, sizeof n);
        return n;
    }

    TemporaryFolder folder_;
    std::string bytes_;
};

void check_has(const std::string& line, std::initializer_list<const char*> parts) {
    CAPTURE(line);
    CHECK(contains(line, "model.gguf: "));
    for (const std::string part : parts) {
        CAPTURE(part);
        CHECK(contains(line, part));
    }
}

constexpr std::uint64_t kHuge = std::uint64_t{1} << 62;
constexpr const char* kQuery = "blk.1.attn_q.weight";

}  // namespace

TEST_CASE("gguf refusals: the header") {
    check_has(Spoiled().put<std::uint32_t>(4, 1).line(), {"expected GGUF version 2 or 3, got 1"});
    check_has(Spoiled().put<std::uint32_t>(4, 4).line(), {"expected GGUF version 2 or 3, got 4"});
    check_has(Spoiled().put<std::uint32_t>(4, 0x03000000).line(), {"little-endian", "big-endian"});
    for (const std::uint64_t n : {kHuge, ~std::uint64_t{0}, std::uint64_t{1} << 32}) {
        check_has(Spoiled().put(8, n).line(), {"tensor ", "expected "});
        check_has(Spoiled().put(16, n).line(), {"expected "});
    }
    Spoiled two;
    CHECK(two.put<std::uint32_t>(4, 2).line() == "");  // version 2 differs in nothing that is used here
}

TEST_CASE("gguf: what a file does not say is what llama.cpp takes it for, and what is not computed is refused") {
    const auto gemma = [] { return Spoiled("gemma2/model.gguf", "families_gguf"); };
    CHECK(gemma().source().config.decoder.blocks[0].attention.window == 7);
    CHECK(gemma()
              .rename("gemma2.attention.sliding_window", "gemma2.attention.sliding_wind__")
              .source()
              .config.decoder.blocks[0]
              .attention.window == 4096);
    const auto turns = [](const char* flag) {
        Spoiled file("granite/model.gguf", "families_gguf");
        file.add("granite.rope.scaling.finetuned", GgufKind::boolean, std::string(flag, 1));
        return file.source().config.decoder.blocks[0].attention.position == Position::rope;
    };
    CHECK(turns("\1"));
    CHECK(!turns("\0"));
    Spoiled warm("deepseek_v2/model.gguf", "families_gguf");
    CHECK(warm.line() == "");
    const float scale = 0.1f;
    warm.add("deepseek2.attention.temperature_scale", GgufKind::f32,
             std::string(reinterpret_cast<const char*>(&scale), sizeof scale));
    check_has(warm.line(), {"deepseek2.attention.temperature_scale: expected none, got 0.1"});
}

TEST_CASE("gguf: what an architecture must say, and where its positions end") {
    const auto jais = [] { return Spoiled("jais/model.gguf", "slopes"); };
    CHECK(jais().line() == "");
    check_has(jais().rename("jais.attention.max_alibi_bias", "jais.attention.max_alibi_____").line(),
              {"jais.attention.max_alibi_bias: expected a number"});
    check_has(
        Spoiled("minicpm/model.gguf", "families_gguf").rename("minicpm.logit_scale", "minicpm.logit_sc___").line(),
        {"minicpm.logit_scale: expected a number"});
    const auto baichuan = [] { return Spoiled("baichuan/model.gguf", "families_gguf"); };
    CHECK(baichuan().source().config.decoder.blocks[0].attention.position == Position::rope);
    check_has(baichuan().value("baichuan.block_count", 33u).line(),
              {"baichuan.block_count: expected 32 or 40, got 33"});
    check_has(Spoiled("qwen/model.gguf", "families_gguf").value("qwen.feed_forward_length", 27u).line(),
              {"qwen.feed_forward_length: expected an even number, got 27"});
    const auto mistral = [] { return Spoiled("ministral3/model.gguf", "families_gguf"); };
    const ModelSource grows = mistral().source();
    CHECK(grows.config.decoder.max_positions == 44);
    REQUIRE(!grows.notes.empty());
    CHECK(grows.notes.front() ==
          "attention.temperature_scale: positions end where it begins to multiply queries; the model has 44 positions");
    CHECK(mistral().value("mistral3.attention.temperature_scale", 0.0f).source().config.decoder.max_positions == 64);
}

TEST_CASE("gguf refusals: a tensor's scale that is not finite; one that float16 does not hold is rounded") {
    const fs::path path = fs::path(FOVEA_GOLDEN_DIR) / "gguf/bitnet_i2_s.gguf";
    Mapping mapping;
    REQUIRE(map_file(path.string().c_str(), mapping).ok());
    const std::byte* const begin = mapping.bytes().data();
    const Gguf file(path, std::move(mapping));
    const std::byte* const query = file.tensors().find("blk.0.attn_q.weight")->second.data;
    const auto at = static_cast<std::size_t>(query - begin) + 128 * 128 / 4;
    const auto with = [&](float scale) { return Spoiled("bitnet_i2_s.gguf").put(at, scale).line(); };
    check_has(with(std::numeric_limits<float>::quiet_NaN()),
              {"tensor blk.0.attn_q.weight: expected a finite scale, got nan"});
    check_has(with(std::numeric_limits<float>::infinity()), {"expected a finite scale, got inf"});
    CHECK(with(0.1f) == "");
    CHECK(with(0.0f) == "");
}

TEST_CASE("gguf refusals: matrices behind an encoder's pooling") {
    const auto embedding = [] { return Spoiled("gemma_embedding/model.gguf", "encoders_gguf"); };
    const std::size_t rows = embedding().after("dense_2.weight") + 12;  // behind the count of sizes and the columns
    CHECK(embedding().line() == "");
    check_has(embedding().put<std::uint64_t>(rows, 39).line(),
              {"tensor dense_3.weight: expected shape [31, 39], got [31, 40]"});
    check_has(embedding().put<std::uint64_t>(rows - 8, 11).line(),
              {"tensor dense_2.weight: expected shape [40, 12], got [40, 11]"});
    check_has(embedding().put<std::uint32_t>(rows - 12, 3).line(), {"dense_2.weight"});
    check_has(embedding().rename("dense_2.weight", "dense_4.weight").line(),
              {"tensor dense_3.weight: expected only tensors that the metadata calls for"});
    check_has(embedding().rename("dense_3.weight", "dense_4.weight").line(),
              {"tensor dense_4.weight: expected only tensors that the metadata calls for"});
}

TEST_CASE("gguf refusals: metadata") {
    const auto u32 = [](const char* key, std::uint32_t number) { return Spoiled().value(key, number).line(); };
    check_has(u32("llama.block_count", 0), {"llama.block_count: expected a whole number from 1 to", "got 0"});
    check_has(u32("llama.block_count", 0xffffffffu), {"llama.block_count", "got 4294967295"});
    check_has(u32("llama.block_count", 3), {"tensor blk.2.", "got none"});
    check_has(u32("llama.block_count", 1), {"tensor blk.1.", "expected only tensors that the metadata calls for"});
    check_has(u32("llama.embedding_length", 63), {"expected shape", "63", "64"});
    check_has(u32("llama.attention.head_count", 0), {"llama.attention.head_count: expected", "got 0"});
    check_has(u32("llama.attention.head_count_kv", 3), {"n_kv_heads"});
    check_has(u32("llama.attention.head_count_kv", 5), {"head_count_kv: expected a whole number from 1 to 4, got 5"});
    check_has(u32("llama.attention.key_length", 15), {"head_dim, even"});
    check_has(u32("llama.rope.dimension_count", 18), {"rotary_dim"});
    check_has(u32("llama.context_length", 0), {"context_length"});
    check_has(Spoiled().value("llama.rope.freq_base", -1.0f).line(),
              {"llama.rope.freq_base: expected a number", "got -1"});
    check_has(Spoiled().value("layer_norm_rms_epsilon", std::numeric_limits<float>::quiet_NaN()).line(),
              {"layer_norm_rms_epsilon: expected a number from 0 to 1"});
    check_has(Spoiled("llama_linear.gguf").rename("linear", "spiral").line(),
              {"llama.rope.scaling.type: expected none, linear or yarn, got \"spiral\""});
    check_has(Spoiled().rename("llama.attention.value_length", "llama.attn_logit_softcapping").line(),
              {"llama.attn_logit_softcapping: expected none, got 16"});
    check_has(Spoiled().rename("general.architecture", "general.architectura").line(),
              {"general.architecture: expected a text, got nothing"});
    Spoiled other;
    const std::size_t architecture = other.after("general.architecture") + 12;
    other.bytes().replace(architecture, 5, "rwkv6");
    check_has(other.line(), {"general.architecture: expected llama, qwen2", "got \"rwkv6\""});
    check_has(
        Spoiled().rename("llama.attention.layer_norm_rms_epsilon", "llama.attention.layer_norm_rms_epsilom").line(),
        {"llama.attention.layer_norm_rms_epsilon: expected a number from 0 to 1, got nothing"});
}

TEST_CASE("gguf refusals: encoders") {
    const auto t5 = [] { return Spoiled("../encoders_gguf/t5/model.gguf"); };
    const auto modern = [] { return Spoiled("../encoders_gguf/modernbert/model.gguf"); };
    const char* buckets = "t5encoder.attention.relative_buckets_count";
    check_has(t5().value(buckets, std::uint32_t{6}).line(), {buckets, "a multiple of 4, got 6"});
    check_has(t5().value(buckets, std::uint32_t{512}).line(), {buckets, "a whole number from 4 to 256, got 512"});
    check_has(t5().value(buckets, std::uint32_t{12}).line(),
              {"tensor enc.blk.0.attn_rel_b.weight: expected shape [12, "});
    check_has(t5().rename("enc.blk.0.attn_o.weight", "enc.blk.0.attn_p.weight").line(),
              {"tensor enc.blk.0.attn_o.weight: expected [", "got none"});
    check_has(modern().rename("blk.1.attn_norm.weight", "blk.0.attn_norm.weight").line(),
              {"tensor blk.1.attn_norm.weight: expected [12], got none"});
    check_has(modern().value("modern-bert.attention.causal", true).line(),
              {"attention.causal: expected false, got true"});
}

TEST_CASE("gguf refusals: experts") {
    const auto u32 = [](const char* key, std::uint32_t number) {
        return Spoiled("../families_gguf/qwen2_moe/model.gguf").value(key, number).line();
    };
    check_has(u32("qwen2moe.expert_count", 5),
              {"tensor blk.0.ffn_gate_inp.weight", "expected shape [5, 12], got [4, 12]"});
    check_has(u32("qwen2moe.expert_count", 0xffffffffu), {"expert_count: expected a whole number from 1 to 1024"});
    check_has(u32("qwen2moe.expert_count", 0), {"tensor blk.0.", "expected "});
    check_has(u32("qwen2moe.expert_used_count", 0), {"expert_used_count: expected a whole number from 1 to 4, got 0"});
    check_has(u32("qwen2moe.expert_used_count", 5), {"expert_used_count: expected a whole number from 1 to 4, got 5"});
    check_has(u32("qwen2moe.expert_feed_forward_length", 8),
              {"blk.0.ffn_gate_exps.weight", "expected shape [4, 8, 12], got [4, 9, 12]"});
    check_has(
        Spoiled("../families_gguf/mixtral/alone.gguf").rename("blk.1.ffn_up.3.weight", "blk.1.ffn_up.4.weight").line(),
        {"tensor blk.1.ffn_up.3.weight: expected [", "got none"});
    check_has(Spoiled("../families_gguf/olmo3/model.gguf").value("olmo2.block_count", std::uint32_t{3}).line(),
              {"olmo2.attention.sliding_window_pattern: expected a flag for each layer"});
    const auto biased = [] { return Spoiled("../families_gguf/gpt_oss/model.gguf"); };
    check_has(biased().rename("blk.1.ffn_up_exps.bias", "blk.1.ffn_up_exps.bios").line(),
              {"tensor blk.1.ffn_up_exps.bias: expected [4, 14], got none"});
    check_has(biased().rename("blk.0.attn_sinks.weight", "blk.0.attn_sinks.weighs").line(),
              {"tensor blk.0.attn_sinks.weighs: expected only tensors that the metadata calls for"});
    check_has(u32("qwen2moe.expert_shared_feed_forward_length", 1u << 30), {"shared_d_ff"});
}

TEST_CASE("gguf refusals: latent attention, and how rows choose experts") {
    const auto u32 = [](const char* key, std::uint32_t number, const char* model = "deepseek_v3") {
        return Spoiled((std::string("../families_gguf/") + model + "/model.gguf").c_str()).value(key, number).line();
    };
    for (const char* model : {"deepseek_v2", "deepseek_v3"}) {
        CHECK(u32("deepseek2.expert_shared_count", 1u << 20, model).ends_with("expected at most 1024, got 1048576"));
        check_has(u32("deepseek2.attention.kv_lora_rank", 0, model), {"kv_lora_rank: expected ", "got 0"});
        check_has(u32("deepseek2.attention.kv_lora_rank", 12, model),
                  {"tensor blk.0.attn_kv_a_mqa.weight", "expected shape [16, 12], got [14, 12]"});
        check_has(u32("deepseek2.rope.dimension_count", 10, model),
                  {"rope.dimension_count: expected less than a head's "});
        check_has(u32("deepseek2.rope.dimension_count", 0xffffffffu, model), {"rope.dimension_count: expected "});
    }
    check_has(u32("deepseek2.attention.q_lora_rank", 12), {"tensor blk.0.attn_q_b.weight", "expected shape [18, 12]"});
    check_has(u32("deepseek2.attention.key_length_mla", 11),
              {"tensor blk.0.attn_q_b.weight", "expected shape [22, 11]"});
    check_has(u32("deepseek2.attention.value_length_mla", 7), {"tensor blk.0.attn_", "expected shape "});
    check_has(u32("deepseek2.attention.value_length", 6, "deepseek_v2"), {"tensor blk.0.attn_", "expected shape "});
    check_has(u32("deepseek2.expert_gating_func", 3),
              {"expert_gating_func: expected 1 (softmax) or 2 (sigmoid), got 3"});
    check_has(u32("deepseek2.expert_group_count", 3),
              {"expert_group_count: expected a divisor of the 4 experts, got 3"});
    check_has(u32("deepseek2.expert_group_used_count", 3),
              {"expert_group_used_count: expected a whole number from 1 to 2"});
    check_has(u32("deepseek2.leading_dense_block_count", 0), {"tensor blk.0.ffn_", "got none"});
    check_has(u32("deepseek2.leading_dense_block_count", 2), {"tensor blk.1.ffn_", "got none"});
    check_has(Spoiled("../families_gguf/deepseek_v3/model.gguf")
                  .rename("blk.1.attn_v_b.weight", "blk.1.attn_x_b.weight")
                  .line(),
              {"tensor blk.1.attn_v_b.weight: expected [2, 6, 10], got none"});
}

TEST_CASE("gguf refusals: Kimi Linear's layers, MiMo 2's, and a next-token head's") {
    const auto kimi = [] { return Spoiled("kimi_linear/model.gguf", "families_gguf"); };
    check_has(kimi().rename("blk.0.ssm_conv1d_k.weight", "blk.0.ssm_conv1d_x.weight").line(),
              {"tensor blk.0.ssm_conv1d_k.weight: expected [12, 1, 4], got none"});
    check_has(kimi().value("kimi-linear.kda.head_dim", std::uint32_t{7}).line(), {"expected", "[14"});
    check_has(kimi().value("kimi-linear.ssm.conv_kernel", std::uint32_t{0}).line(),
              {"kimi-linear.ssm.conv_kernel: expected a whole number from 1"});
    check_has(kimi().rename("kimi-linear.kda.head_dim", "kimi-linear.kda.head_dix").line(),
              {"kimi-linear.kda.head_dim: expected a whole number", "got nothing"});
    const auto mimo = [] { return Spoiled("mimo_v2_flash/model.gguf", "families_gguf"); };
    check_has(mimo().value("mimo2.block_count", std::uint32_t{3}).line(),
              {"mimo2.attention.head_count_kv: expected 3 numbers, one for each layer"});
    check_has(mimo().rename("blk.1.attn_sinks.weight", "blk.1.attn_sinkx.weight").line(),
              {"blk.1.attn_sinkx.weight: expected only tensors that the metadata calls for"});
    Spoiled scaled;
    scaled.add("llama.attention.value_scale", GgufKind::f32, std::string("\0\0\0\x3f", 4));
    check_has(scaled.line(), {"llama.attention.value_scale: expected none, got 0.5"});
    const auto head = [](const std::string& from, const std::string& to) {
        Spoiled file("next_heads/glm4_moe/model.gguf", ".");
        file.rename(from, to);
        TemporaryFolder folder;
        write_text(folder / "model.gguf", file.bytes());
        return refusal_of(
            [&] { convert_source({.source = folder / "model.gguf", .output = folder / "head.fovea", .mtp = true}); });
    };
    check_has(head("blk.2.nextn.hnorm.weight", "blk.2.nextn.xnorm.weight"),
              {"tensor blk.2.nextn.hnorm.weight: expected [12], got none"});
    check_has(head("blk.2.nextn.eh_proj.weight", "blk.2.nextn.xx_proj.weight"),
              {"--mtp: expected a next-token head (blk.2.nextn.eh_proj), got none"});
    check_has(head("blk.2.attn_q.weight", "blk.2.attn_x.weight"), {"tensor blk.2.attn_q.weight: expected ["});
}

TEST_CASE("gguf refusals: values that are not what they say") {
    Spoiled kind, text, list, nested;
    check_has(kind.put<std::uint32_t>(kind.after("llama.block_count"), 13).line(), {"block_count", "from 0 to 12"});
    check_has(text.put<std::uint32_t>(text.after("llama.block_count"), 8).line(), {"llama.block_count", "expected "});
    list.put<std::uint32_t>(list.after("general.name"), 9).put<std::uint32_t>(list.after("general.name") + 4, 4);
    list.put(list.after("general.name") + 8, kHuge);
    check_has(list.line(), {"general.name: expected 4611686018427387904 numbers"});
    nested.put<std::uint32_t>(nested.after("general.name"), 9).put<std::uint32_t>(nested.after("general.name") + 4, 9);
    check_has(nested.line(), {"general.name: expected a list of numbers or texts, got one of lists"});
    check_has(Spoiled().rename("llama.rope.freq_base", "llama.context_length").line(),
              {"llama.context_length: expected once, got twice"});
    check_has(Spoiled().rename("blk.0.attn_q.weight", "blk.1.attn_q.weight").line(), {kQuery, "expected once"});
    Spoiled key;
    check_has(key.put(key.after("general.name") - 20, kHuge).line(), {"expected at most 65535 bytes"});
}

TEST_CASE("gguf refusals: tensors") {
    const auto tensor = [](std::size_t offset, auto number) {
        Spoiled spoiled;
        return spoiled.put(spoiled.after(kQuery) + offset, number).line();
    };
    // After the name: u32 dimensions, u64 columns, u64 rows, u32 type, u64 offset.
    for (const std::uint32_t n : {0u, 5u, 0xffffffffu}) check_has(tensor(0, n), {kQuery, "expected 1 to 4 dimensions"});
    check_has(tensor(4, std::uint64_t{0}), {kQuery, "expected sizes of at least 1, got 0"});
    check_has(tensor(4, std::uint64_t{65}), {kQuery, "whole Q8_0 blocks of 32, got 65 columns"});
    check_has(tensor(4, kHuge), {kQuery, "below 2^64"});
    check_has(tensor(12, kHuge), {kQuery, "below 2^64"});
    check_has(tensor(12, std::uint64_t{1} << 40), {kQuery, "expected bytes within"});
    check_has(tensor(12, std::uint64_t{1}), {kQuery, "expected shape [64, 64], got [64]"});
    check_has(tensor(20, 9u), {kQuery, "got type 9"});
    check_has(tensor(20, 0xffffffffu), {kQuery, "got type 4294967295"});
    check_has(tensor(24, std::uint64_t{33}), {kQuery, "a multiple of 32, got 33"});
    check_has(tensor(24, ~std::uint64_t{0} - 31), {kQuery, "2^64"});
    check_has(tensor(24, kHuge), {kQuery, "expected bytes within"});
    check_has(tensor(24, std::uint64_t{0}), {"expected tensors that do not overlap"});
    check_has(Spoiled().rename("rope_freqs.weight", "rope_freqz.weight").line(),
              {"tensor rope_freqz.weight: expected only tensors"});
    check_has(Spoiled().rename("output_norm.weight", "output_form.weight").line(),
              {"tensor output_norm.weight: expected [64], got none"});
}

TEST_CASE("gguf refusals: encoders") {
    const auto bert = [](const char* key, auto number) { return Spoiled("bert.gguf").value(key, number).line(); };
    CHECK(Spoiled("bert.gguf").line() == "");
    check_has(bert("bert.attention.causal", '\1'), {"bert.attention.causal: expected false, got true"});
    for (const std::uint32_t pooling : {4u, 0xffffffffu})
        check_has(bert("bert.pooling_type", pooling), {"bert.pooling_type: expected 0 (none), 1 (mean), 2", "got 4"});
    check_has(bert("bert.block_count", 3u), {"tensor blk.2.attn_", "expected [36", "got none"});
    check_has(bert("bert.context_length", 41u), {"tensor position_embd.weight: expected shape [41, 36], got [40, 36]"});
    check_has(bert("bert.attention.head_count", 5u),
              {"bert.embedding_length: expected a multiple of the 5 heads, got 36"});
    for (const std::string name : {"blk.1.attn_output_norm.bias", "blk.0.layer_output_norm.weight", "blk.0.ffn_up.bias",
                                   "position_embd.weight", "token_embd_norm.bias", "blk.1.attn_q.bias"})
        check_has(Spoiled("bert.gguf").rename(name, "x" + name.substr(1)).line(),
                  {("tensor " + name + ": expected [").c_str(), "got none"});
    check_has(Spoiled("bert.gguf").rename("token_types.weight", "xoken_types.weight").line(),
              {"tensor xoken_types.weight: expected only tensors that the metadata calls for"});
    check_has(
        Spoiled("bert.gguf").rename("bert.attention.layer_norm_epsilon", "bert.attention.layer_norm_epsilom").line(),
        {"bert.attention.layer_norm_epsilon: expected a number from 0 to 1, got nothing"});
    check_has(Spoiled("bert_qkv.gguf").rename("blk.1.attn_qkv.bias", "blk.1.attn_qkw.bias").line(),
              {"tensor blk.1.attn_q.bias: expected [64], got none"});
}

TEST_CASE("gguf refusals: a file cut short anywhere") {
    Spoiled spoiled;
    const std::string whole = spoiled.bytes();
    const std::size_t header = spoiled.after(kQuery) + 1000;
    for (std::size_t n = 0; n < whole.size(); n += n < header ? 61 : 4099) {
        CAPTURE(n);
        spoiled.bytes() = whole.substr(0, n);
        CHECK(spoiled.line() != "");
    }
    spoiled.bytes() = whole.substr(0, whole.size() - 32);
    check_has(spoiled.line(), {"expected bytes within"});
}

TEST_CASE("gguf: bytes changed at random give a refusal or a model") {
    std::mt19937 random(5);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const std::uint64_t extremes[] = {0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, kHuge, ~std::uint64_t{0}};
    int n_refused = 0;
    for (const char* name : {"llama_yarn.gguf", "qwen2_q4_0.gguf", "gpt2.gguf", "bert.gguf", "bert_qkv.gguf",
                             "bitnet_i2_s.gguf", "../encoders_gguf/t5/model.gguf",
                             "../encoders_gguf/modernbert/model.gguf", "../families_gguf/gpt_oss/model.gguf",
                             "../families_gguf/deepseek_v2/model.gguf", "../families_gguf/deepseek_v3/model.gguf"}) {
        Spoiled spoiled(name);
        const std::string whole = spoiled.bytes();
        const std::size_t header = spoiled.after("output_norm.weight");
        for (int i = 0; i < 200; ++i) {
            spoiled.bytes() = whole;
            for (std::size_t n = 1 + below(3); n > 0; --n) {
                const std::size_t at = below(i % 4 ? header : whole.size() - 8);
                if (below(2))
                    spoiled.bytes()[at] = static_cast<char>(random());
                else
                    spoiled.put(at, extremes[below(std::size(extremes))]);
            }
            n_refused += spoiled.line() != "";
        }
    }
    CHECK(n_refused > 700);
}

TEST_CASE("gguf refusals: experts that are chosen as DeepSeek 3's, and layers for further tokens") {
    const auto u32 = [](const char* key, std::uint32_t number, const char* model = "glm4_moe") {
        return Spoiled((std::string("../families_gguf/") + model + "/model.gguf").c_str()).value(key, number).line();
    };
    check_has(u32("glm4moe.leading_dense_block_count", 0), {"tensor blk.0.ffn_gate_inp.weight", "got none"});
    check_has(u32("glm4moe.leading_dense_block_count", 2), {"tensor blk.1.ffn_", "got none"});
    check_has(u32("glm4moe.expert_shared_count", 2), {"ffn_up_shexp.weight: expected shape [18, 12], got [9, 12]"});
    check_has(u32("ernie4_5-moe.interleave_moe_layer_step", 2, "ernie4_5_moe"),
              {"interleave_moe_layer_step: expected 1, got 2"});
    CHECK(u32("glm4moe.nextn_predict_layers", 1).empty());  // the second layer
    check_has(u32("glm4moe.nextn_predict_layers", 2), {"nextn_predict_layers: expected a whole number from 0 to 1"});
    check_has(u32("hunyuan-moe.expert_shared_feed_forward_length", 8, "hunyuan_v1_moe"),
              {"ffn_up_shexp.weight: expected shape [8, 12], got [14, 12]"});
    check_has(u32("llama4.interleave_moe_layer_step", 0, "llama4_text"),
              {"tensor blk.1.ffn_up.weight: expected [19, 12], got none"});
    check_has(u32("afmoe.leading_dense_block_count", 2, "afmoe"), {"tensor blk.1.ffn_", "got none"});
    check_has(u32("afmoe.expert_gating_func", 3, "afmoe"), {"expert_gating_func: expected 1 (softmax) or 2 (sigmoid)"});
    check_has(u32("minicpm3.attention.kv_lora_rank", 9, "minicpm3"), {"attn_kv_a_mqa.weight: expected shape [13, 12]"});
    check_has(
        Spoiled("../families_gguf/hunyuan_v1_dense/model.gguf").rename("blk.0.attn_q_norm", "blk.0.attn_q_nerm").line(),
        {"tensor blk.0.attn_q_norm.weight: expected a vector"});
    check_has(u32("exaone-moe.expert_shared_feed_forward_length", 8, "exaone_moe"),
              {"ffn_up_shexp.weight: expected shape [8, 12], got [9, 12]"});
    check_has(u32("exaone-moe.attention.sliding_window", 0, "exaone_moe"),
              {"sliding_window: expected a whole number from 1 to"});
    check_has(u32("granitemoe.expert_shared_feed_forward_length", 12, "granitemoeshared"),
              {"ffn_up_shexp.weight: expected shape [12, 12], got [11, 12]"});
    check_has(u32("granitemoe.expert_shared_feed_forward_length", 0, "granitemoeshared"),
              {"_shexp.weight: expected only tensors that the metadata calls for"});
}

TEST_CASE("gguf: outer sizes of 1, which writers leave out or not, say nothing") {
    for (const char* name : {"llama_q8_0.gguf", "gpt2.gguf", "qwen2_q4_0.gguf"}) {
        CAPTURE(name);
        const fs::path path = fs::path(FOVEA_GOLDEN_DIR) / "gguf" / name;
        Mapping mapping;
        REQUIRE(map_file(path.c_str(), mapping).ok());
        const Gguf file(path, std::move(mapping));
        Spoiled spoiled(name);
        std::string& bytes = spoiled.bytes();
        const std::size_t before = bytes.size();
        for (const auto& [tensor, unused] : file.tensors()) {
            std::uint64_t n_name = tensor.size();
            const std::string spelled = std::string(reinterpret_cast<const char*>(&n_name), sizeof n_name) + tensor;
            const std::size_t at = spoiled.after(spelled);
            std::uint32_t n_sizes;
            std::memcpy(&n_sizes, bytes.data() + at, sizeof n_sizes);
            spoiled.put(at, std::uint32_t{4});
            constexpr std::uint64_t kOnes[4] = {1, 1, 1, 1};
            bytes.insert(at + 4 + n_sizes * 8, reinterpret_cast<const char*>(kOnes), (4 - n_sizes) * 8);
        }
        spoiled.pad(bytes.size() - before);
        const auto converted = [](const ModelSource& source) {
            const AlignedBytes made = write_bytes(source, write_options({}, source));
            return std::string(reinterpret_cast<const char*>(made.data()), made.size());
        };
        CHECK(converted(spoiled.source()) == converted(read_source({.source = path})));
    }
}
