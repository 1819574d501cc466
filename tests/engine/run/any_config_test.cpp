// Configurations changed at random, a few fields at a time: refused, or a model that is written, opened, planned and
// run, with the same bits on every instruction set. Damaged files seldom get this far: their tensors no longer fit.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>
#include <type_traits>

#include "tests/fuzz/run_model.h"
#include "tests/fuzz/tiny_models.h"

namespace fovea::testing {
namespace {

/// Gives the field of that number, counted through a record, another value.
struct Change {
    std::uint32_t number, value;

    void operator()(const char*, auto& field, auto...) {
        using T = std::remove_reference_t<decltype(field)>;
        if (number-- != 0) return;
        if constexpr (std::is_same_v<T, float>)
            field = static_cast<float>(value) / 4;
        else if constexpr (std::is_enum_v<T>)
            field = static_cast<T>(value % 7);
        else
            field = static_cast<T>(value);
    }
    void wide(const char* name, auto& field, auto...) { (*this)(name, field); }
    void flags(auto&... flag) { ((number-- == 0 ? void(flag = value % 2) : void()), ...); }
    void skip(std::size_t) {}
};

class AnyConfig {
public:
    explicit AnyConfig(std::uint32_t seed) : random_(seed) {
        static const std::vector<fuzz::Tiny> models = fuzz::tinier_models();
        const fuzz::Tiny& model = models[below(static_cast<std::uint32_t>(models.size()))];
        config = model.config;
        type = model.type;
        if (below(8) == 0) std::swap(config.encoder, config.decoder);
        if (below(8) == 0) (below(2) ? config.encoder : config.decoder) = model.config.decoder;
        for (Stack* stack : {&config.encoder, &config.decoder})
            if (stack->n_layers && below(2)) repeat(*stack);
        for (std::uint32_t n = below(6); n > 0; --n) change(below(2) ? config.encoder : config.decoder);
        scale_columns();
        if (below(6) == 0) give_layer_inputs(config.decoder);
        if (below(4) == 0) give_last_fields(config.decoder);
        if (below(4) == 0) give_recurrence(below(8) ? config.decoder : config.encoder);
    }

    Config config;
    Type type;

private:
    [[nodiscard]] std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

    /// Some of what is quantized has column scales, though a random field seldom gives them; floats have none.
    void scale_columns() {
        for (Stack* stack : {&config.encoder, &config.decoder}) {
            if (!is_quantized(type))
                stack->output_columns = false;
            else if (stack->has_output_head && !stack->tied_output && below(3) == 0)
                stack->output_columns = true;
            for (Block& block : stack->blocks) {
                if (!is_quantized(type))
                    block.column_scales = false;
                else if (stack->n_layers && below(3) == 0)
                    block.column_scales = true;
            }
        }
    }

    /// What tokens give each layer, and the rest of that part, mostly as it can be.
    void give_layer_inputs(Stack& stack) {
        const auto width = static_cast<std::uint16_t>(below(2) * (1 + below(40)));
        for (std::uint32_t i = 0; i < stack.n_blocks && i < kMaxBlocks; ++i) {
            Block& b = stack.blocks[i];
            b.inputs.width = width;
            b.inputs.layer_scale = below(2) != 0;
            b.attention.shared_keys = i > 0 && below(2);
            b.attention.value_norm = b.attention.n_heads && !b.attention.shared_keys && below(2);
            if (b.attention.shared_keys) b.attention.key_bias = b.attention.value_bias = false;
        }
    }

    /// What the last fields of a block's record say, as it can be.
    void give_last_fields(Stack& stack) {
        for (Block& b : stack.blocks) {
            AttentionShape& a = b.attention;
            ExpertShape& e = b.experts;
            a.chunked = a.window && a.causal && below(2);
            a.norm_turned = a.query_key_norm != Norm::none && a.head_norm != HeadNorm::together &&
                            a.position == Position::rope && below(2);
            const bool grows = a.n_heads && !a.cross_attention && !a.no_projections && !b.latent.query_dim && below(2);
            a.query_growth = grows ? 0.25f : 0.0f, a.growth_period = grows ? 1 + below(9) : 0;
            b.latent.norm_epsilon = (b.latent.query_rank || b.latent.query_dim) && below(2) ? 0.25f : 0.0f;
            e.weigh_inputs = e.n && !e.shared_gate && below(2);
            e.own_norms = e.shared_d_ff && b.norm_place == NormPlace::both && b.norm == Norm::rms && !b.feed.parallel &&
                          !e.shared_gate && !e.weigh_inputs && below(2);
            if (b.feed.d_ff && !b.feed.gated && !e.n && below(4) == 0)
                b.feed.activation = Activation::none, b.feed.xielu = true;
            if (!e.n || e.normalize || e.choice_bias || e.n_groups || below(2)) continue;
            e.router_score = RouterScore::sparse_mixer, e.margin = below(2) ? 0.5f : 0.0f;
        }
    }

    /// A recurrent part that can be, mostly, in place of one block's attention or beside it; maybe a gate for the others'.
    void give_recurrence(Stack& stack) {
        if (!stack.n_blocks || stack.n_blocks > kMaxBlocks) return;
        RecurrentShape& r = stack.recurrent;
        r.kind = static_cast<Recurrence>(1 + below(5));
        r.n_key_heads = 1 + below(3), r.n_heads = r.n_key_heads * (1 + below(3));
        r.key_dim = 1 + below(20), r.value_dim = 1 + below(40);
        r.n_taps = static_cast<std::uint8_t>(1 + below(5));
        r.input_bias = below(2) != 0, r.kernel_bias = below(2) != 0, r.output_bias = below(2) != 0;
        if (r.kind == Recurrence::selective) {
            r.n_heads = r.n_key_heads = 1;
            r.step_rank = 1 + below(20);
            if (below(2)) r.inner_norm_epsilon = 0.25f;
        } else if (r.has_states()) {
            r.n_norm_groups = below(2) * r.n_heads;
            r.shared_norm = r.n_norm_groups && below(2);
            r.gate_first = below(2) != 0, r.keys_in_turn = below(2) != 0;
            r.sigmoid_gate = below(2) != 0, r.double_rate = r.is_delta() && below(2);
            if (r.n_norm_groups && below(2)) r.inner_norm_epsilon = 0.25f;
            if (r.kind == Recurrence::delta_by_dim) {
                r.step_rank = below(3) ? 1 + below(20) : 0;
                if (below(2)) r.step_most = 5.0f;
            }
            if (r.kind == Recurrence::state_space && below(2)) r.step_least = 0.25f, r.step_most = 1.5f;
        } else {
            r.n_heads = r.n_key_heads = 1, r.key_dim = r.value_dim = stack.d_model % 64 + 1;
        }
        for (Block& gated : stack.blocks)
            if (below(4) == 0) gated.attention.output_gate = static_cast<OutputGate>(1 + below(4));
        Block& b = stack.blocks[below(stack.n_blocks)];
        b.recurrent = true;
        if (below(3) || !b.attention.n_heads)
            b.attention = {.causal = true};
        else
            b.attention.output_gate = OutputGate::none, b.attention.cross_attention = false;
        b.latent = {}, b.inputs = {};
        b.feed.parallel = b.feed.shared_norm = false;
        if (b.attention.n_heads && b.feed.d_ff && below(2)) {
            b.inputs.joins_embedding = true;
            b.attention.query_width = b.attention.key_width = b.attention.value_width = 2 * stack.d_model;
            b.experts = {}, b.feed.xielu = b.column_scales = false;
        }
        if (below(8)) return;
        Change field{below(18), below(10)};
        for_each_recurrent_field(r, field);
    }

    /// Up to three layers, of as many shapes at most.
    void repeat(Stack& stack) {
        stack.n_layers = 1 + below(3);
        stack.n_blocks = 1 + below(stack.n_layers);
        for (std::uint32_t i = 1; i < stack.n_blocks; ++i) stack.blocks[i] = stack.blocks[0];
        std::vector<std::uint8_t>& layers = layers_.emplace_back(stack.n_layers);
        for (std::uint8_t& layer : layers) layer = static_cast<std::uint8_t>(below(stack.n_blocks));
        stack.layer_blocks = layers;
    }

    void change(Stack& stack) {
        const std::uint32_t kind = below(8);
        const std::uint32_t value = kind == 0   ? 1u << below(32)
                                    : kind == 1 ? 0u - below(3)
                                    : kind == 2 ? 4 * below(10)
                                                : below(10);
        Change field{below(64), value};
        if (Block& b = stack.blocks[below(3)];
            below(8) == 0 && b.feed.d_ff) {  // experts that can be: one field alone seldom is
            b.experts.n = static_cast<std::uint16_t>(1 + below(6));
            b.experts.n_used = static_cast<std::uint8_t>(1 + below(b.experts.n));
            b.experts.shared_d_ff = below(2) * (1 + below(40));
            b.experts.shared_gate = b.experts.shared_d_ff && below(2);
            b.experts.normalize = below(2) != 0;
            b.experts.router_bias = below(2) != 0;
            b.feed.up_bias = b.feed.gate_bias = b.feed.gated && !b.experts.shared_d_ff && below(2);
            b.feed.down_bias = !b.experts.shared_d_ff && below(2);
            b.feed.activation = static_cast<Activation>(below(kActivationCount));
            b.experts.router_score = below(2) ? RouterScore::sigmoid : RouterScore::softmax;
            b.experts.choice_bias = below(2) != 0;
            b.experts.n_groups = below(2) ? b.experts.n : 0;
            b.experts.n_groups_used = b.experts.n_groups ? b.experts.n_used : 0;
            b.experts.routed_scale = below(2) ? 1.5f : 0.0f;
            b.feed.parallel = below(4) == 0, b.feed.shared_norm = false;
        }
        if (Block& b = stack.blocks[below(3)]; below(10) == 0 && b.attention.n_heads) {  // latent attention that can be
            b.latent.query_rank = below(2) * (1 + below(30));
            b.attention.query_width = 0;
            b.attention.query_bias = b.attention.key_bias = b.attention.value_bias = false;
            if (below(3) != 0) {
                b.attention.n_kv_heads = 1;
                b.attention.position = Position::rope;
                b.attention.rotary_dim = 2 * (1 + below(4));
                b.attention.value_head_dim = 1 + below(30);
                b.attention.head_dim = b.attention.rotary_dim + b.attention.value_head_dim;
                b.latent.query_dim = 1 + below(20), b.latent.value_dim = 1 + below(20);
                b.attention.query_key_norm = Norm::none;
                b.attention.head_norm = HeadNorm::shared;
                b.attention.projection_clip = 0.0f;
                b.attention.has_output_map = true;
                b.feed.parallel = b.feed.shared_norm = b.attention.cross_attention = b.attention.bias_kv =
                    b.attention.zero_attn = false;
            }
        }
        if (Sound& sound = stack.sound; sound.is_speech() && below(4) == 0) {
            field.number = below(5);
            for_each_sound_field(sound, field);
            if (below(2)) sound = {1, 2 + below(9), 1, 1 + below(30), 1 + below(24)};
        }
        if (below(6) == 0) {  // a map of the head: mostly one that can be, and then one field of it
            HeadMap& map = stack.head[below(2)];
            if (!map.width) map.width = 1 + below(40);
            field.number = below(8);
            for_each_head_map_field(map, field);
        } else if (below(3) == 0)
            for_each_stack_field(stack, field);
        else {
            Block& b = stack.blocks[below(3)];
            for_each_block_field(b, field);
            if (below(8) == 0) return;  // else dimensions of positions that can be
            const bool turns = b.attention.position == Position::rope && below(4) == 0;
            b.attention.rope_plane = turns ? static_cast<std::uint8_t>(below(b.attention.rotary_dim / 4 % 64 + 1)) : 0;
            b.attention.rope_interleaved = b.attention.rope_plane && below(2);
        }
    }

    std::mt19937 random_;
    std::vector<std::vector<std::uint8_t>> layers_;
};

TEST_CASE("any configuration is refused, or has a model that runs with the same bits on every instruction set") {
    unsigned n = 4000, first = 0;
    const char* asked = std::getenv("FOVEA_ANY_CONFIGS");  // how many, and the first's number
    if (asked) {
        char comma = 0;
        std::istringstream text(asked);
        text >> n >> comma >> first;
        REQUIRE(!text.fail());
    }
    int counts[fuzz::kOutcomes] = {};
    unsigned n_adapted = 0, n_heard = 0, n_recurrent = 0;
    for (unsigned seed = first; seed != first + n; ++seed) {
        CAPTURE(seed);
        const AnyConfig any(seed);
        if (!check(any.config).ok()) {
            ++counts[static_cast<int>(fuzz::Outcome::refused)];
            continue;
        }
        Plan plan;
        (void)make_plan(any.config, {}, plan);
        if (count_parameters(any.config).total > 1 << 15 || any.config.encoder.n_layers > 3 ||
            any.config.decoder.n_layers > 3) {
            ++counts[static_cast<int>(fuzz::Outcome::too_large)];
            continue;
        }
        AlignedBytes file;
        try {
            file = write_bytes(random_model(any.config, 1), {.type = any.type, .weights_alignment = 64});
        } catch (const host::Error& refusal) {
            FAIL("seed ", seed, ": ", refusal.what());
        }
        // Every third one uses two adapters, which are one file.
        std::mt19937 random(seed);
        const std::uint32_t rank = 1 + static_cast<std::uint32_t>(random() % 9);
        const Config adapted =
            fuzz::adapter_of(any.config, rank, 1 + static_cast<std::uint32_t>(random() % kAllAdapted));
        AlignedBytes adapter;
        if (seed % 3 == 0 && make_plan(any.config, {.max_adapters = 2, .max_adapter_rank = rank}, plan).ok() &&
            check(adapted).ok() && count_parameters(adapted).total <= 1 << 15) {
            constexpr Type kFloats[] = {Type::f32, Type::f16, Type::bf16};
            adapter = write_bytes(random_model(adapted, 2), {.type = kFloats[random() % 3], .weights_alignment = 64});
            ++n_adapted;
        }
        constexpr Type kKvTypes[] = {Type::f32, Type::f16, Type::q8, Type::q4};
        const fuzz::Outcome outcome = fuzz::run_model(file, {.arena_bytes = 4 << 20,
                                                             .parameters = 1 << 15,
                                                             .kv_type = kKvTypes[seed % 4],
                                                             .weights = seed % 5 == 0,
                                                             .adapter = adapter});
        CHECK(outcome != fuzz::Outcome::refused);
        ++counts[static_cast<int>(outcome)];
        n_heard += outcome == fuzz::Outcome::ran && any.config.encoder.sound.is_speech();
        n_recurrent += outcome == fuzz::Outcome::ran && any.config.decoder.recurrent.kind != Recurrence::none;
    }
    for (int i = 0; asked && i < fuzz::kOutcomes; ++i) MESSAGE(counts[i], " ", std::string(fuzz::kOutcomeNames[i]));
    CHECK((asked || n_adapted > n / 100));
    CHECK((asked || n_heard > n / 100));
    CHECK((asked || n_recurrent > n / 100));
    CHECK(counts[static_cast<int>(fuzz::Outcome::ran)] > counts[static_cast<int>(fuzz::Outcome::refused)] / 10);
}

}  // namespace
}  // namespace fovea::testing
