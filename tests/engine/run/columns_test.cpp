// Column scales: a model that has them, against one whose norms, biases and matrices have the same powers of two multiplied
// in, which changes no rounding: the bits are the same. Each impossible file and configuration is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>

#include "fovea/adapter.h"
#include "fovea/encode.h"
#include "tests/support/encoder_models.h"
#include "tests/support/not_finite.h"
#include "tests/support/same_bits.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"
#include "tools/show/explain.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr Type kQuantized[] = {Type::q8, Type::q8_128,
                               Type::q4};  // whose rounding is the same for a power of two times a row

/// Every head has values of its own, so that what multiplies a head's output can be multiplied into them.
Config text() {
    Config config = llama_config(2, 52, 4, 4, 12, 88, 160);
    Stack& s = config.decoder;
    s.tied_output = false;
    s.output_columns = s.blocks[0].column_scales = true;
    return config;
}

Config biased_text() {
    Config config = gpt2_config();
    Stack& s = config.decoder;
    s.tied_output = false;
    s.output_columns = s.blocks[0].column_scales = true;
    s.blocks[0].feed.activation = Activation::relu;
    return config;
}

/// Two kinds of layers in turn, of which one has none.
Config alternating_text() {
    Config config = text();
    Stack& s = config.decoder;
    s.n_layers = 3;
    s.n_blocks = 2;
    s.blocks[1] = s.blocks[0];
    s.blocks[0].column_scales = false;
    static constexpr std::uint8_t kLayers[] = {1, 0, 1};
    s.layer_blocks = kLayers;
    return config;
}

Config parallel_text() {
    Config config = text();
    config.decoder.blocks[0].feed.parallel = true;
    return config;
}

/// An encoder of vectors and one layer that reads what it leaves; behind it a map to classes.
Config vectors() {
    Config config = both_config(NormPlace::pre);
    config.decoder.n_layers = 1;
    for (Stack* s : {&config.encoder, &config.decoder}) {
        s->blocks[0].column_scales = true;
        s->blocks[0].feed.activation = Activation::relu;
    }
    return config;
}

/// An encoder of ids with a map to classes.
Config classes() {
    Config config = vectors();
    config.decoder = {};
    Stack& s = config.encoder;
    s.vocab_size = 60, s.max_positions = 70;
    s.has_output_head = s.output_columns = true;
    return config;
}

/// What a tensor's rows, or a vector's elements, are multiplied by, if anything: the scales of another role, layer and stack.
struct Folding {
    Role columns = Role::projections_columns;
    StackIndex stack = StackIndex::decoder;
    std::uint32_t layer = 0;
    bool any = false, alternating = false;  // of rows of gate and up those of up alone
};

Folding folding_of(const Config& config, const TensorSpec& spec) {
    const Stack& s = spec.stack == StackIndex::encoder ? config.encoder : config.decoder;
    const auto by = [&](Role role, bool alternating = false) {
        return Folding{role, spec.stack, spec.layer, true, alternating};
    };
    switch (spec.role) {
        case Role::final_norm:
        case Role::final_norm_bias:
            if (spec.stack == StackIndex::encoder && config.decoder.n_layers)
                return {Role::memory_columns, StackIndex::decoder, 0, true, false};
            return s.output_columns ? by(Role::output_columns) : Folding{};
        default: break;
    }
    if (spec.role < Role::attention_norm || !s.block(spec.layer).column_scales) return {};
    const bool gated = s.block(spec.layer).feed.gated;
    switch (spec.role) {
        case Role::attention_norm:
        case Role::attention_norm_bias: return by(Role::projections_columns);
        case Role::value:
        case Role::value_bias: return by(Role::attention_output_columns);
        case Role::cross_norm:
        case Role::cross_norm_bias: return by(Role::cross_query_columns);
        case Role::cross_value:
        case Role::cross_value_bias: return by(Role::cross_output_columns);
        case Role::feed_forward_norm:
        case Role::feed_forward_norm_bias: return by(Role::up_columns);
        case Role::up:
        case Role::up_bias: return by(Role::down_columns, gated);
        default: return {};
    }
}

/// The model of the same seed without column scales.
ModelSource folded(const Config& config, std::uint64_t seed) {
    Config plain = config;
    for (Stack* s : {&plain.encoder, &plain.decoder}) {
        s->output_columns = false;
        for (Block& b : s->blocks) b.column_scales = false;
    }
    ModelSource source = random_model(plain, seed);
    const auto scaled = std::make_shared<const ModelSource>(random_model(config, seed));  // which its reader looks into
    source.read_rows = [=](const TensorSpec& spec, std::uint32_t row_begin, std::uint32_t n_rows, float* out) {
        scaled->read_rows(spec, row_begin, n_rows, out);
        const Folding folding = folding_of(config, spec);
        if (!folding.any) return;
        const bool vector = spec.layout == Layout::vector;
        std::vector<float> scales(vector ? spec.n_cols : spec.n_rows);
        scaled->read_rows({folding.columns, folding.stack, folding.layer, Layout::vector, 1,
                           static_cast<std::uint32_t>(scales.size())},
                          0, 1, scales.data());
        for (std::uint32_t r = 0; r < n_rows; ++r)
            for (std::uint32_t c = 0; c < spec.n_cols; ++c) {
                const std::uint32_t i = vector ? c : row_begin + r;
                const UpRow up = up_row(i);
                if (folding.alternating && up.gate) continue;
                out[std::size_t{r} * spec.n_cols + c] *= scales[folding.alternating ? up.row : i];
            }
    };
    return source;
}

std::vector<float> vectors_of(const Model& model, const char* isa = nullptr, std::uint32_t n_threads = 1) {
    static constexpr std::uint32_t kSource[] = {9, 3}, kTarget[] = {5, 1};
    const Config& config = model.config();
    const bool reads = config.decoder.n_layers != 0;
    const Stack& last = reads ? config.decoder : config.encoder;
    const std::vector<float> source = some_floats(std::size_t{12} * last.d_model, 5),
                             target = some_floats(std::size_t{6} * last.d_model, 6);
    const auto ids = some_tokens(12, 60);
    EncodeInput in{.source = {.lengths = kSource}};
    if (config.encoder.vocab_size)
        in.source.ids = ids;
    else
        in.source.vectors = source;
    if (reads) in.target = {.vectors = target, .lengths = kTarget};
    SmallSession session(model, {.max_batch = 12, .n_threads = n_threads, .max_sequences = 2}, isa);
    std::vector<float> out(std::size_t{reads ? 6u : 12u} * last.result_width(), NAN);
    const Status status = encode(session.session, in, out);
    CAPTURE(status.what);
    REQUIRE(status.ok());
    return out;
}

}  // namespace

TEST_CASE("column scales: logits have the bits of a model with the same powers of two multiplied in") {
    for (const Config& config : {text(), biased_text(), alternating_text(), parallel_text()})
        for (const Type type : kQuantized) {
            CAPTURE(static_cast<int>(type));
            CAPTURE(config.decoder.n_layers);
            const SmallModel scaled(config, type, 3), multiplied(folded(config, 3), {.type = type});
            const std::vector<float> want = logits_by(multiplied.model, 40, "scalar");
            for (const float x : want) REQUIRE(std::isfinite(x));
            for (const std::size_t split : {std::size_t{1}, std::size_t{7}, std::size_t{40}})
                CHECK(same_bits(want, logits_by(scaled.model, split)));
            for (const char* isa : model_isas())
                for (const std::uint32_t n_threads : {1u, 3u}) {
                    CAPTURE(isa);
                    CAPTURE(n_threads);
                    CHECK(same_bits(want, logits_by(scaled.model, 40, isa, n_threads)));
                }
            Config without = config;
            without.decoder.output_columns = false;
            for (Block& b : without.decoder.blocks) b.column_scales = false;
            const SmallModel ignoring(without, type, 3);
            CHECK(!same_bits(want, logits_by(ignoring.model, 40)));
        }
}

TEST_CASE("column scales: an encoder's vectors, those that a decoder makes of its memory, and classes") {
    for (const Config& config : {vectors(), classes()})
        for (const Type type : kQuantized) {
            CAPTURE(static_cast<int>(type));
            const SmallModel scaled(config, type, 4), multiplied(folded(config, 4), {.type = type});
            const std::vector<float> want = vectors_of(multiplied.model, "scalar");
            for (const float x : want) REQUIRE(std::isfinite(x));
            for (const char* isa : model_isas())
                for (const std::uint32_t n_threads : {1u, 3u}) {
                    CAPTURE(isa);
                    CAPTURE(n_threads);
                    CHECK(same_bits(want, vectors_of(scaled.model, isa, n_threads)));
                }
        }
}

TEST_CASE("column scales: a lone attention's inputs have one vector between them") {
    Config config = vectors();
    config.decoder = {};
    Stack& s = config.encoder;
    s.n_layers = 1;
    s.final_norm = Norm::none, s.final_norm_bias = false;
    Block& b = s.blocks[0];
    b.norm = Norm::none, b.norm_bias = false;
    b.feed.d_ff = 0, b.feed.activation = Activation::none, b.feed.up_bias = b.feed.down_bias = false;
    const SmallModel scaled(config, Type::q8, 5), multiplied(folded(config, 5), {.type = Type::q8});
    std::vector<float> scales(s.d_model);
    random_model(config, 5).read_rows({Role::projections_columns, StackIndex::encoder, 0, Layout::vector, 1, s.d_model},
                                      0, 1, scales.data());
    constexpr std::uint32_t kQueries = 5, kKeys = 7;
    const std::vector<float> queries = some_floats(kQueries * s.d_model, 1), keys = some_floats(kKeys * s.d_model, 2);
    const auto input = [&](const std::vector<float>& query, const std::vector<float>& key) {
        return AttendInput{.query = {.data = query},
                           .key = {.data = key},
                           .value = {.data = key},
                           .n_queries = kQueries,
                           .n_keys = kKeys};
    };
    const auto attended = [&](const Model& model, bool by_scales) {
        std::vector<float> query = queries, key = keys, out(queries.size(), NAN);
        for (std::vector<float>* x : {&query, &key})
            for (std::size_t i = 0; by_scales && i < x->size(); ++i) (*x)[i] *= scales[i % s.d_model];
        SmallSession session(model, {.max_batch = 8});
        const Status status = attend(session.session, input(query, key), out);
        CAPTURE(status.what);
        REQUIRE(status.ok());
        return out;
    };
    CHECK(same_bits(attended(scaled.model, false), attended(multiplied.model, true)));
    CHECK(!same_bits(attended(scaled.model, false), attended(multiplied.model, false)));
    std::vector<float> explained;
    (void)explain(scaled.model, input(queries, keys), Type::f32, nullptr, explained);
    CHECK(same_bits(explained, attended(scaled.model, false)));
}

TEST_CASE("column scales: adapters read rows that are not scaled") {
    for (const Config& config : {text(), biased_text()}) {
        Config of_adapter = config;
        of_adapter.decoder.adapter_rank = 5;
        of_adapter.decoder.adapted = kAllAdapted;
        const SmallModel scaled(config, Type::q8, 3), multiplied(folded(config, 3), {.type = Type::q8});
        // That of the model with folded norms and matrices reads inputs which have the scales, and adds to what has them.
        const RowReader read = random_model(config, 3).read_rows;
        ModelSource source = random_model(of_adapter, 7), its = random_model(of_adapter, 7);
        its.read_rows = [&](const TensorSpec& spec, std::uint32_t row_begin, std::uint32_t n_rows, float* out) {
            source.read_rows(spec, row_begin, n_rows, out);
            const auto scales_of = [&](Role role, std::uint32_t n) {
                std::vector<float> scales(n);
                read({role, spec.stack, spec.layer, Layout::vector, 1, n}, 0, 1, scales.data());
                return scales;
            };
            const Role input = spec.role == Role::adapter_attention_output_in ? Role::attention_output_columns
                               : spec.role == Role::adapter_up_in             ? Role::up_columns
                               : spec.role == Role::adapter_down_in           ? Role::down_columns
                                                                              : Role::projections_columns;
            const bool reads = (static_cast<int>(spec.role) - static_cast<int>(Role::adapter_query_in)) % 2 == 0;
            const bool of_value = spec.role == Role::adapter_value_out, of_up = spec.role == Role::adapter_up_out;
            const std::vector<float> columns = reads ? scales_of(input, spec.n_cols) : std::vector<float>();
            std::vector<float> rows;
            if (of_value) rows = scales_of(Role::attention_output_columns, spec.n_rows);
            if (of_up) rows = scales_of(Role::down_columns, config.decoder.blocks[0].feed.d_ff);
            for (std::uint32_t r = 0; r < n_rows; ++r)
                for (std::uint32_t c = 0; c < spec.n_cols; ++c) {
                    float& x = out[std::size_t{r} * spec.n_cols + c];
                    const std::uint32_t row = row_begin + r;
                    const UpRow up = config.decoder.blocks[0].feed.gated ? up_row(row) : UpRow{false, row};
                    if (reads) x /= columns[c];
                    if (of_value) x *= rows[row];
                    if (of_up && !up.gate && up.row < rows.size()) x *= rows[up.row];
                }
        };
        const SmallModel adapter(source, {.type = Type::f32}), of_multiplied(its, {.type = Type::f32});
        const auto tokens = some_tokens(12, config.decoder.vocab_size);
        const auto adapted = [&](const Model& model, const Model& by, float scale) {
            const Adapter used[] = {{&by, scale}};
            SmallSession s(model, {.max_adapters = 1, .max_adapter_rank = 5});
            REQUIRE(set_adapters(s.session, used).ok());
            std::vector<float> logits(tokens.size() * config.decoder.vocab_size, NAN);
            REQUIRE(forward(s.session, tokens, logits).ok());
            return logits;
        };
        const std::vector<float> want = adapted(multiplied.model, of_multiplied.model, 0.5f);
        CHECK(same_bits(want, adapted(scaled.model, adapter.model, 0.5f)));
        CHECK(!same_bits(want, adapted(multiplied.model, of_multiplied.model, 0.0f)));
    }
}

TEST_CASE("column scales: a layer's place takes 64 bytes more, and a byte less than the plan is refused") {
    for (const Config& config : {text(), vectors()}) {
        Plan plan;
        REQUIRE(make_plan(config, {}, plan).ok());
        Config without = config;
        for (Stack* s : {&without.encoder, &without.decoder}) {
            s->output_columns = false;
            for (Block& b : s->blocks) b.column_scales = false;
        }
        Plan plain;
        REQUIRE(make_plan(without, {}, plain).ok());
        const auto columns = [](const Plan& p) {
            for (std::uint32_t i = 0; i < p.n_parts; ++i)
                if (std::string_view(p.parts[i].name) == "columns") return p.parts[i].bytes;
            return std::uint64_t{0};
        };
        CHECK(columns(plan) == 64 * (config.encoder.n_layers + config.decoder.n_layers));
        CHECK(columns(plain) == 0);
        CHECK(plan.arena_bytes == plain.arena_bytes + columns(plan));
        const SmallModel opened(config, Type::q8, 1);
        AlignedBytes arena(plan.arena_bytes);
        Session session;
        CHECK(make_session(opened.model, {}, std::span(arena).first(arena.size() - 1), session).code ==
              Code::arena_too_small);
        CHECK(make_session(opened.model, {}, arena, session).ok());
    }
}

TEST_CASE("column scales: whatever is no power of two is refused, at every place") {
    struct Case {
        float value;
        bool ok;
    };
    constexpr Case kCases[] = {{1.0f, true},       {0x1p-126f, true}, {0x1p127f, true}, {0.0f, false},
                               {-0.0f, false},     {-2.0f, false},    {3.0f, false},    {0x1.000002p0f, false},
                               {0x1p-127f, false}, {INFINITY, false}, {NAN, false}};
    const Config config = text();
    ModelSource source = random_model(config, 1);
    const RowReader read = source.read_rows;
    for (const Role role : {Role::projections_columns, Role::attention_output_columns, Role::up_columns,
                            Role::down_columns, Role::output_columns})
        for (const Case& c : kCases) {
            CAPTURE(role_name(static_cast<std::uint16_t>(role)));
            CAPTURE(c.value);
            source.read_rows = [&](const TensorSpec& spec, std::uint32_t first, std::uint32_t n, float* out) {
                read(spec, first, n, out);
                if (spec.role == role) out[spec.n_cols - 1] = kMarked;
            };
            const AlignedBytes file = with_number(c.value, source, {.type = Type::q8});
            Model model;
            const Status status = open_model(file, model);
            CHECK(status.code == (c.ok ? Code::ok : Code::tensor_invalid));
            if (c.ok) continue;
            const bool is_zero = c.value == 0 && !std::signbit(c.value);  // that is for outlier columns
            CHECK(std::string_view(status.what) ==
                  (is_zero ? "outlier columns" : "column scales that are powers of two"));
            CHECK(status.had + 1 == status.wanted);
        }
}

TEST_CASE("column scales: beside floats, and where the configuration cannot have them, they are refused by name") {
    Model model;
    for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
        const AlignedBytes file = write_bytes(random_model(text(), 1), {.type = type});
        const Status status = open_model(file, model);
        CHECK(status.code == Code::unsupported);
        CHECK(std::string_view(status.what) == "type of a matrix with column scales at least");
        CHECK(status.had == static_cast<std::uint64_t>(type));
    }
    const auto refusal = [](auto change) {
        Config config = text();
        change(config.decoder);
        const Status status = check(config);
        CHECK(status.code == Code::config_invalid);
        return std::string(status.what);
    };
    CHECK(check(text()).ok());
    CHECK(refusal([](Stack& s) { s.has_output_head = false; }) == "output_columns");
    CHECK(refusal([](Stack& s) { s.blocks[0].latent.query_rank = 8; }) == "column scales of latent attention");
    const auto lone = [&](auto change) {
        return refusal([&](Stack& s) { s.n_layers = 1, s.blocks[0].feed.d_ff = 0, change(s.blocks[0]); });
    };
    CHECK(lone([](Block& b) { b.attention.key_width = 8; }) == "key_width with column scales");
    CHECK(lone([](Block& b) { b.attention.value_width = 8; }) == "value_width with column scales");
}
