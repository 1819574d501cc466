// Small models of many shapes with random weights, in memory.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "convert/weights/random_model.h"
#include "convert/writer/writer.h"
#include "fovea/model.h"
#include "fovea/session.h"

namespace fovea::testing {

/// A Llama-shaped decoder: RMSNorm, rotary positions, gated SiLU.
[[nodiscard]] inline Config llama_config(std::uint32_t n_layers = 2, std::uint32_t d_model = 48,
                                         std::uint32_t n_heads = 6, std::uint32_t n_kv_heads = 2,
                                         std::uint32_t head_dim = 8, std::uint32_t d_ff = 88,
                                         std::uint32_t max_positions = 160) {
    Config config;
    Stack& s = config.decoder;
    s.n_layers = n_layers;
    s.d_model = d_model;
    s.vocab_size = 71;
    s.max_positions = max_positions;
    s.n_blocks = 1;
    s.has_output_head = true;
    s.tied_output = true;
    s.final_norm = Norm::rms;
    Block& b = s.blocks[0];
    b.attention.n_heads = n_heads;
    b.attention.n_kv_heads = n_kv_heads;
    b.attention.head_dim = b.attention.value_head_dim = b.attention.rotary_dim = head_dim;
    b.feed.d_ff = d_ff;
    b.norm = Norm::rms;
    b.attention.position = Position::rope;
    b.feed.activation = Activation::silu;
    b.feed.gated = true;
    b.attention.causal = true;
    return config;
}

/// A GPT-2-shaped decoder: LayerNorm with biases, learned positions, GELU, biases everywhere.
[[nodiscard]] inline Config gpt2_config() {
    Config config = llama_config(2, 48, 3, 3, 16, 192, 100);
    Stack& s = config.decoder;
    s.position = Position::learned;
    s.final_norm = Norm::layer;
    s.final_norm_bias = true;
    Block& b = s.blocks[0];
    b.attention.rotary_dim = 0;
    b.attention.position = Position::none;
    b.norm = Norm::layer;
    b.norm_bias = true;
    b.feed.activation = Activation::gelu_tanh;
    b.feed.gated = false;
    b.attention.query_bias = b.attention.key_bias = b.attention.value_bias = b.attention.output_bias = b.feed.up_bias =
        b.feed.down_bias = true;
    return config;
}

/// A Gemma-4-shaped decoder: windows and full layers with heads of their own, normed values, a vector of each token for every
/// layer; the last three layers read keys and values of the second and third.
[[nodiscard]] inline Config shared_keys_config() {
    Config config = llama_config(6, 40, 4, 2, 8, 56, 90);
    Stack& s = config.decoder;
    s.n_blocks = 4;
    Block& windowed = s.blocks[0];
    windowed.norm_place = NormPlace::both;
    windowed.attention.query_key_norm = Norm::rms;
    windowed.feed.activation = Activation::gelu_tanh;
    windowed.attention.value_norm = windowed.inputs.layer_scale = true;
    windowed.inputs.width = 6;
    Block& full = s.blocks[1] = windowed;
    windowed.attention.window = 13;
    full.attention.n_kv_heads = 1;
    full.attention.head_dim = full.attention.value_head_dim = full.attention.rotary_dim = 20;
    for (std::uint32_t i = 0; i < 2; ++i) {
        Block& shares = s.blocks[2 + i] = s.blocks[i];
        shares.attention.shared_keys = true, shares.attention.value_norm = false;
        shares.feed.d_ff = 112;
    }
    static constexpr std::uint8_t kLayers[] = {0, 1, 0, 2, 3, 2};
    s.layer_blocks = kLayers;
    return config;
}

struct NamedConfig {
    std::string name;
    Config config;
};

/// One of everything a decoder can be in this version.
[[nodiscard]] inline std::vector<NamedConfig> decoder_configs() {
    std::vector<NamedConfig> all{{"llama", llama_config()}, {"gpt2", gpt2_config()}};
    Config wide = llama_config(1, 528, 4, 1, 80, 600, 1100);  // sums of several column blocks, chunks of attention
    wide.decoder.tied_output = false;
    all.push_back({"wide", wide});
    Config sliding = llama_config(3, 64, 4, 2, 16, 96, 700);
    sliding.decoder.n_blocks = 2;
    sliding.decoder.blocks[1] = sliding.decoder.blocks[0];
    sliding.decoder.blocks[1].attention.window = 37;
    static constexpr std::uint8_t kLayers[] = {1, 0, 1};
    sliding.decoder.layer_blocks = kLayers;
    all.push_back({"sliding", sliding});
    all.push_back({"shared keys", shared_keys_config()});
    Config normed = llama_config(2, 40, 5, 5, 20, 56, 90);  // heads that end within a panel
    normed.decoder.blocks[0].attention.query_key_norm = Norm::rms;
    normed.decoder.blocks[0].attention.rotary_dim = 12;
    normed.decoder.blocks[0].attention.score_softcap = 20.0f;
    normed.decoder.logit_softcap = 15.0f;
    all.push_back({"query and key norms, partial rotation, soft caps", normed});
    Config narrow = llama_config(2, 32, 30, 2, 4, 48, 64);  // groups of more heads than a row block, values narrower
    narrow.decoder.blocks[0].attention.value_head_dim = 2;
    narrow.decoder.embedding_norm = Norm::rms;
    narrow.decoder.embedding_scale = 3.0f;
    narrow.decoder.final_norm = Norm::none;
    all.push_back({"many heads", narrow});
    Config alibi = llama_config(2, 40, 6, 3, 10, 56, 1100);  // chunks of attention
    Block& a = alibi.decoder.blocks[0];
    a.attention.position = Position::alibi;
    a.attention.rotary_dim = 0;
    a.feed.parallel = a.feed.shared_norm = a.attention.attention_sinks = true;
    a.attention.score_softcap = 30.0f;
    alibi.decoder.logit_scale = 0.5f;
    alibi.decoder.n_blocks = 2;
    alibi.decoder.blocks[1] = a;
    alibi.decoder.blocks[1].attention.position = Position::relative;
    alibi.decoder.blocks[1].attention.relative_max_distance = 50;
    static constexpr std::uint8_t kRelativeLayers[] = {0, 1};
    alibi.decoder.layer_blocks = kRelativeLayers;
    all.push_back({"ALiBi and relative positions, sinks, parts in parallel behind one norm", alibi});
    Config outputs = llama_config(2, 40, 5, 5, 20, 56, 90);
    Block& o = outputs.decoder.blocks[0];
    o.norm_place = NormPlace::output;
    o.attention.query_key_norm = Norm::rms;
    o.attention.head_norm = HeadNorm::together;
    o.attention.projection_clip = 0.75f;
    o.residual_scale = 0.5f;
    all.push_back({"norms of outputs, queries and keys together, clipped, scaled", outputs});
    Config within = llama_config(2, 40, 6, 3, 10, 150, 90);  // heads and inner layer wider than the stream
    within.decoder.blocks[0].norm_place = NormPlace::within;
    within.decoder.blocks[0].feed.activation = Activation::relu2;
    all.push_back({"norms before and within each part", within});
    Config both = llama_config(3, 48, 6, 2, 8, 88, 90);
    both.decoder.n_blocks = 2;
    Block& b = both.decoder.blocks[0];
    b.norm_place = NormPlace::both;
    b.attention.query_key_norm = Norm::rms;
    b.attention.head_norm = HeadNorm::each;
    both.decoder.blocks[1] = llama_config().decoder.blocks[0];
    both.decoder.blocks[1].feed.parallel = true;
    both.decoder.blocks[1].attention.position = Position::none;
    static constexpr std::uint8_t kBothLayers[] = {0, 1, 0};
    both.decoder.layer_blocks = kBothLayers;
    all.push_back({"norms on both sides and each head's own, parts in parallel, layers without positions", both});
    Config routed = llama_config(2, 48, 6, 2, 8, 40, 600);
    Block& r = routed.decoder.blocks[0];
    r.experts.n = 5, r.experts.n_used = 2;
    r.experts.normalize = true;
    all.push_back({"experts", routed});
    Config shared = llama_config(3, 80, 4, 2, 20, 24, 90);
    shared.decoder.n_blocks = 2;
    shared.decoder.blocks[1] = shared.decoder.blocks[0];
    Block& e = shared.decoder.blocks[0];
    e.experts.n = 33, e.experts.n_used = 6;  // most of them without a row
    e.experts.shared_d_ff = 72;
    e.experts.shared_gate = true;
    e.norm_place = NormPlace::both;
    e.residual_scale = 0.5f;
    shared.decoder.layer_blocks = kBothLayers;
    all.push_back({"experts and a shared one, among layers without", shared});
    Config every = llama_config(2, 300, 4, 4, 16, 19, 90);  // sums in several parts
    Block& u = every.decoder.blocks[0];
    u.experts.n = u.experts.n_used = 3;
    u.experts.shared_d_ff = 7;
    u.feed.gated = false;
    u.feed.activation = Activation::gelu;
    u.norm_place = NormPlace::post;
    all.push_back({"experts without gates, all of them used, a shared one without a gate", every});
    Config biased = llama_config(3, 44, 4, 2, 12, 37, 70);
    Block& g = biased.decoder.blocks[0];
    g.experts.n = 6, g.experts.n_used = 3;
    g.experts.normalize = g.experts.router_bias = g.feed.up_bias = g.feed.gate_bias = g.feed.down_bias =
        g.attention.attention_sinks = true;
    g.feed.activation = Activation::silu_clamped;
    g.residual_scale = 0.5f;
    all.push_back({"experts with biases and a clamped activation, beside sinks", biased});
    Config latent = llama_config(3, 52, 6, 1, 28, 40, 600);  // 8 dims that turn, 20 shared by keys and values
    latent.decoder.n_blocks = 2;
    Block& l = latent.decoder.blocks[0];
    l.attention.value_head_dim = 20, l.attention.rotary_dim = 8;
    l.latent.query_dim = 11, l.latent.value_dim = 9, l.latent.norm_epsilon = 1e-3f;
    l.attention.softmax_scale = 0.3f;
    latent.decoder.blocks[1] = l;
    l.latent.query_rank = 70;
    l.feed.d_ff = 18;
    l.experts.n = 12, l.experts.n_used = 3, l.experts.n_groups = 4, l.experts.n_groups_used = 2;
    l.experts.router_score = RouterScore::sigmoid;
    l.experts.choice_bias = l.experts.normalize = true;
    l.experts.routed_scale = 2.5f;
    l.experts.shared_d_ff = 23;
    latent.decoder.layer_blocks = kBothLayers;
    all.push_back({"latent attention, and groups of experts", latent});
    Config ranked = llama_config(2, 44, 4, 2, 12, 37, 70);
    Block& q = ranked.decoder.blocks[0];
    q.latent.query_rank = 19;
    q.attention.query_key_norm = Norm::rms;
    q.experts.n = 6, q.experts.n_used = 2, q.experts.n_groups = 3, q.experts.n_groups_used = 1;
    q.experts.routed_scale = 16.0f;
    all.push_back({"queries by way of a narrower row, experts of one group of three", ranked});
    Config chunked = llama_config(3, 48, 6, 2, 8, 40, 600);
    chunked.decoder.n_blocks = 3;
    Block* c = chunked.decoder.blocks.data();
    c[1] = c[2] = c[0];
    c[0].attention.window = 37, c[0].attention.chunked = true;
    c[0].attention.query_key_norm = Norm::rms, c[0].attention.norm_turned = true;
    c[0].experts = {.shared_d_ff = 24, .n = 5, .n_used = 2, .router_score = RouterScore::sigmoid, .weigh_inputs = true};
    c[1].attention.position = Position::none, c[1].attention.rotary_dim = 0;
    c[1].attention.query_growth = 0.3f, c[1].attention.growth_period = 5;
    c[1].feed.parallel = c[1].feed.shared_norm = true;
    c[1].experts = {.shared_d_ff = 16, .margin = 0.5f, .n = 4, .n_used = 2, .router_score = RouterScore::sparse_mixer};
    c[2].feed.parallel = true;
    c[2].residual_scale = 0.5f;
    c[2].experts = {.n = 7, .n_used = 3, .normalize = true};
    static constexpr std::uint8_t kChunkedLayers[] = {0, 1, 2};
    chunked.decoder.layer_blocks = kChunkedLayers;
    chunked.decoder.head[0] = {.width = 48, .activation = Activation::gelu, .norm = Norm::layer, .bias = true};
    all.push_back(
        {"chunks, queries that grow, experts whose inputs are weighted, one by one, in parallel, a map before logits",
         chunked});
    Config apart = llama_config(3, 44, 4, 2, 12, 37, 70);
    apart.decoder.n_blocks = 2;
    apart.decoder.blocks[1] = apart.decoder.blocks[0];
    Block& n = apart.decoder.blocks[0];
    n.norm_place = NormPlace::both;
    n.experts = {.shared_d_ff = 23, .n = 6, .n_used = 2, .normalize = true, .own_norms = true};
    n.attention.output_gate = OutputGate::softplus_of_heads;
    apart.decoder.blocks[1].feed = {.d_ff = 600, .xielu = true};
    apart.decoder.blocks[1].attention.output_gate = OutputGate::softplus;
    static constexpr std::uint8_t kApart[] = {0, 1, 0};
    apart.decoder.layer_blocks = kApart;
    all.push_back({"experts with norms of their own, xIELU, gates by softplus", apart});
    return all;
}

/// One of each recurrent part, among layers that attend, whose output is gated.
[[nodiscard]] inline std::vector<NamedConfig> recurrent_configs() {
    static constexpr std::uint8_t kLayers[] = {1, 0, 1};
    const auto with = [](const RecurrentShape& r) {
        Config config = llama_config(3, 40, 4, 2, 10, 56, 90);
        Stack& s = config.decoder;
        s.n_blocks = 2;
        s.layer_blocks = kLayers;
        s.recurrent = r;
        s.blocks[1] = s.blocks[0];
        s.blocks[1].attention = {.causal = true};
        s.blocks[1].recurrent = true;
        s.blocks[0].attention.output_gate = OutputGate::sigmoid;
        return config;
    };
    const RecurrentShape convolution{.n_heads = 1,
                                     .n_key_heads = 1,
                                     .key_dim = 40,
                                     .value_dim = 40,
                                     .kind = Recurrence::convolution,
                                     .n_taps = 3,
                                     .input_bias = true,
                                     .kernel_bias = true,
                                     .output_bias = true};
    const RecurrentShape space{.n_heads = 6,
                               .n_key_heads = 2,
                               .key_dim = 18,
                               .value_dim = 9,
                               .n_norm_groups = 2,
                               .step_least = 0.3f,
                               .step_most = 0.9f,
                               .kind = Recurrence::state_space,
                               .n_taps = 4,
                               .gate_first = true,
                               .kernel_bias = true};
    const RecurrentShape delta{.n_heads = 4,
                               .n_key_heads = 2,
                               .key_dim = 17,
                               .value_dim = 20,
                               .n_norm_groups = 4,
                               .kind = Recurrence::delta,
                               .n_taps = 2,
                               .shared_norm = true};
    const RecurrentShape selective{.n_heads = 1,
                                   .n_key_heads = 1,
                                   .key_dim = 5,
                                   .value_dim = 37,
                                   .kind = Recurrence::selective,
                                   .n_taps = 3,
                                   .input_bias = true,
                                   .kernel_bias = true,
                                   .step_rank = 19};
    RecurrentShape normed = selective;
    normed.inner_norm_epsilon = 1e-6f;
    RecurrentShape by_dim = delta;
    by_dim.kind = Recurrence::delta_by_dim;
    by_dim.step_rank = 11;
    by_dim.inner_norm_epsilon = 1e-3f;
    by_dim.sigmoid_gate = by_dim.double_rate = true;
    RecurrentShape bounded = by_dim;
    bounded.step_rank = 0;
    bounded.step_most = 5.0f;
    Config beside = with(space);
    beside.decoder.blocks[1].attention = beside.decoder.blocks[0].attention;
    beside.decoder.blocks[1].attention.output_gate = OutputGate::none;
    Config joined = beside;
    Block& leads = joined.decoder.blocks[1];
    leads.inputs.joins_embedding = true;
    leads.attention.query_width = leads.attention.key_width = leads.attention.value_width = 80;
    Config experts = with(delta);
    experts.decoder.blocks[1].experts.n = 5, experts.decoder.blocks[1].experts.n_used = 2;
    experts.decoder.blocks[1].norm_place = NormPlace::both;
    experts.decoder.recurrent.keys_in_turn = true;
    return {{"short convolutions", with(convolution)},
            {"state space", with(space)},
            {"delta rule", with(delta)},
            {"delta rule, experts, norms on both sides", experts},
            {"delta rule by dims", with(by_dim)},
            {"selective state space", with(selective)},
            {"selective state space with inner norms", with(normed)},
            {"state space beside attention", beside},
            {"state space behind attention to embeddings too", joined},
            {"delta rule by dims of the row, bounded", with(bounded)}};
}

/// A model in memory and the file it is in.
struct SmallModel {
    AlignedBytes file;
    Model model;

    SmallModel(const Config& config, Type type, std::uint64_t seed = 1)
        : SmallModel(random_model(config, seed), {.type = type}) {}
    SmallModel(const ModelSource& source, const WriteOptions& options) : file(write_bytes(source, options)) {
        const Status status = open_model(file, model);
        if (!status.ok()) throw std::runtime_error(std::string("open_model: ") + StatusLine(status).c_str());
    }
};

/// A session with an arena of exactly the planned size.
struct SmallSession {
    AlignedBytes arena;
    Session session;

    SmallSession(const Model& model, const Limits& limits, const char* isa = nullptr)
        : SmallSession(model, limits, SessionOptions{.isa = isa}) {}
    SmallSession(const Model& model, const Limits& limits, const SessionOptions& options) {
        Plan plan;
        Status status = make_plan(model.config(), limits, plan);
        if (status.ok()) {
            arena.resize(plan.arena_bytes, std::byte{0xee});
            status = make_session(model, limits, arena, session, options);
        }
        if (!status.ok()) throw std::runtime_error(std::string("session: ") + StatusLine(status).c_str());
    }
};

/// Ids that visit the whole vocabulary in no order a model could like.
[[nodiscard]] inline std::vector<Token> some_tokens(std::size_t n, std::uint32_t vocab_size) {
    std::vector<Token> tokens(n);
    std::uint32_t state = 12345;
    for (Token& token : tokens) token = (state = state * 1664525u + 1013904223u) / 65536u % vocab_size;
    return tokens;
}

/// Logits of 40 tokens, as many as `split` at a time.
[[nodiscard]] inline std::vector<float> logits_by(const Model& model, std::size_t split, const char* isa = nullptr,
                                                  std::uint32_t n_threads = 1) {
    const std::size_t vocab_size = model.config().decoder.vocab_size;
    const auto tokens = some_tokens(40, static_cast<std::uint32_t>(vocab_size));
    SmallSession s(model, {.n_threads = n_threads}, isa);
    std::vector<float> logits(tokens.size() * vocab_size);
    for (std::size_t at = 0; at < tokens.size(); at += split) {
        const std::size_t n = std::min(split, tokens.size() - at);
        const Status status = forward(s.session, std::span(tokens).subspan(at, n),
                                      std::span(logits).subspan(at * vocab_size, n * vocab_size));
        if (!status.ok()) throw std::runtime_error(std::string("forward: ") + StatusLine(status).c_str());
    }
    return logits;
}

}  // namespace fovea::testing
