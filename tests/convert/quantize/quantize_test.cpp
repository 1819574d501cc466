// Quantized weights: what the converter makes of a group, where the file holds it, and what is lost.
#include "convert/quantize/quantize.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "convert/quantize/quantize_lanes.h"
#include "host/base/elements.h"
#include "host/model/listing.h"
#include "tests/convert/quantize/nasty_weights.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

double squared_error(const float (&x)[kGroup], const QuantizedGroup& group) {
    double sum = 0;
    for (std::size_t i = 0; i < kGroup; ++i) sum += std::pow(x[i] - double{from_f16(group.scale)} * group.quants[i], 2);
    return sum;
}

/// q4 with the scale that brings the extreme to −8, as is usual.
double plain_q4_error(const float (&x)[kGroup]) {
    float most = 0;
    for (const float value : x)
        if (std::fabs(value) > std::fabs(most)) most = value;
    QuantizedGroup group{to_f16(most / -8), {}};
    for (std::size_t i = 0; i < kGroup; ++i)
        group.quants[i] =
            static_cast<std::int8_t>(std::min(7.0, std::max(-8.0, std::round(x[i] / double{from_f16(group.scale)}))));
    return squared_error(x, group);
}

/// Element (lane, col) of a panel, read by the words of docs/format.md.
float stored(Type type, const std::vector<std::byte>& panel, std::uint32_t lane, std::uint32_t col) {
    const std::size_t superblock = col / 64 * (type == Type::q8 ? 1088 : 576), group = col % 64 / 32, i = col % 32;
    std::uint16_t scale;
    std::memcpy(&scale, panel.data() + superblock + group * 32 + lane * 2, 2);
    const std::size_t quants = superblock + 64 + group * (type == Type::q8 ? 512 : 256);
    if (type == Type::q8) {
        const auto byte = static_cast<std::int8_t>(panel[quants + i / 4 * 64 + lane * 4 + i % 4]);
        return from_f16(scale) * static_cast<float>(byte);
    }
    const auto byte = static_cast<int>(panel[quants + i / 8 * 64 + lane * 4 + i % 4]);
    return from_f16(scale) * static_cast<float>((i % 8 < 4 ? byte % 16 : byte / 16) - 8);
}

}  // namespace

TEST_CASE("quantize: q8 is within half a step everywhere, whatever the size of the weights") {
    Weights weights{7};
    for (int exponent = -30; exponent <= 20; ++exponent) {
        CAPTURE(exponent);
        float x[kGroup];
        weights.fill(x, std::ldexp(1.0f, exponent));
        const QuantizedGroup group = quantize_q8(x);
        const double step = from_f16(group.scale);
        for (std::size_t i = 0; i < kGroup; ++i)
            // The scale's own rounding may cut the extreme by half a step more.
            CHECK(std::fabs(x[i] - step * group.quants[i]) <= 0.5001 * step);
    }
}

TEST_CASE("quantize: q4 never loses more than the usual scale would, and mostly less") {
    Weights weights{11};
    double best = 0, plain = 0, total = 0;
    for (int n = 0; n < 2000; ++n) {
        float x[kGroup];
        weights.fill(x, n % 3 ? 0.05f : 1e-4f);
        const double error = squared_error(x, quantize_q4(x)), usual = plain_q4_error(x);
        REQUIRE(error <= usual * (1 + 1e-9));
        const double scale = n % 3 ? 1 : 250000;
        best += scale * error;
        plain += scale * usual;
        for (const float value : x) total += scale * value * value;
    }
    CHECK(best < 0.9 * plain);
    CHECK(std::sqrt(best / total) < 0.08);
}

TEST_CASE("quantize: groups that are zero, tiny, too large or not finite") {
    for (const bool q8 : {true, false}) {
        CAPTURE(q8);
        const auto quantize = [&](const float(&x)[kGroup]) { return q8 ? quantize_q8(x) : quantize_q4(x); };
        const auto is_zero = [](const QuantizedGroup& group) {
            for (const std::int8_t quant : group.quants)
                if (quant != 0 && from_f16(group.scale) != 0.0f) return false;
            return true;
        };
        float x[kGroup] = {};
        CHECK(is_zero(quantize(x)));
        CHECK(quantize(x).scale == 0);
        x[3] = -1e-40f;  // subnormal: below half of the least float16
        x[9] = 5e-41f;
        const QuantizedGroup tiny = quantize(x);
        CHECK(std::fabs(from_f16(tiny.scale) * static_cast<float>(tiny.quants[3]) - x[3]) <= 0x1p-25f);
        x[5] = 3e8f;
        CHECK(std::isinf(from_f16(quantize(x).scale)));
        for (const float odd : {kInfinity, -kInfinity, kNanFloat}) {
            x[5] = odd;
            CHECK(std::isnan(from_f16(quantize(x).scale)));
            for (const std::int8_t quant : quantize(x).quants) CHECK(quant == 0);
        }
    }
}

TEST_CASE("quantize: sixteen groups side by side come out as each alone, whatever is in them") {
    Weights weights{23};
    const auto random = [&] { return weights.state = weights.state * 1664525u + 1013904223u; };
    for (int n = 0; n < 2000; ++n) {
        CAPTURE(n);
        float x[kGroup][kLanes];
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            const std::uint32_t kind = random() >> 28;
            const float size = std::ldexp(1.0f, static_cast<int>(random() >> 24) - 150);
            for (std::uint32_t i = 0; i < kGroup; ++i) x[i][lane] = nasty_weight(kind, size, weights);
        }
        for (const LaneQuantizer& quantizer : lane_quantizers())
            for (const bool q8 : {true, false}) {
                CAPTURE(quantizer.isa);
                CAPTURE(q8);
                QuantizedLanes lanes;
                q8 ? quantizer.q8(x, lanes) : quantizer.q4(x, lanes);
                for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                    CAPTURE(lane);
                    float alone[kGroup];
                    for (std::uint32_t i = 0; i < kGroup; ++i) alone[i] = x[i][lane];
                    const QuantizedGroup want = q8 ? quantize_q8(alone) : quantize_q4(alone);
                    REQUIRE(lanes.scales[lane] == want.scale);
                    for (std::uint32_t i = 0; i < kGroup; ++i) REQUIRE(lanes.quants[i][lane] == want.quants[i]);
                    double error = 0, total = 0;
                    for (const float value : alone) total += static_cast<double>(value) * value;
                    for (std::uint32_t i = 0; i < kGroup; ++i) {
                        const double step = from_f16(want.scale), difference = alone[i] - want.quants[i] * step;
                        error += difference * difference;
                    }
                    REQUIRE((lanes.errors[lane] == error || (std::isnan(error) && std::isnan(lanes.errors[lane]))));
                    REQUIRE((lanes.totals[lane] == total || (std::isnan(total) && std::isnan(lanes.totals[lane]))));
                }
            }
    }
}

TEST_CASE("quantize: a panel holds each group where the format says, and zeros in what is missing") {
    for (const Type type : {Type::q8, Type::q4})
        for (const std::uint32_t n_cols : {1u, 31u, 32u, 40u, 64u, 65u, 100u, 172u}) {
            CAPTURE(static_cast<int>(type));
            CAPTURE(n_cols);
            Weights weights{n_cols};
            std::vector<float> rows(std::size_t{kLanes} * n_cols);
            for (float& value : rows) value = weights.next();
            std::vector<std::byte> panel(panel_bytes(type, n_cols));
            const QuantLoss loss = quantize_panel(type, rows.data(), n_cols, panel.data());
            CHECK_FALSE(loss.overflow);
            CHECK(std::sqrt(loss.error / loss.total) < (type == Type::q8 ? 0.006 : 0.1));
            double error = 0;
            for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                for (std::uint32_t col = 0; col < n_cols; ++col)
                    error += std::pow(rows[lane * n_cols + col] - stored(type, panel, lane, col), 2);
                for (std::uint32_t col = n_cols; col < round_up(n_cols, kSuperblock); ++col)
                    REQUIRE(stored(type, panel, lane, col) == 0.0f);
            }
            CHECK(error == doctest::Approx(loss.error).epsilon(1e-9));
        }
}

TEST_CASE("quantize: which tensors of a quantized file are of which type") {
    for (const bool tied : {false, true})
        for (const Type type : {Type::q8, Type::q4}) {
            Config config = llama_config();
            config.decoder.tied_output = tied;
            const SmallModel small(config, type);
            for (const TensorInfo& tensor : tensors(small.model)) {
                const std::string role = tensor.role, layout = tensor.layout;
                CAPTURE(role);
                const Type want = layout == "vector"                              ? Type::f32
                                  : layout == "rows"                              ? Type::f16
                                  : role == "output" || role == "token_embedding" ? Type::q8
                                                                                  : type;
                CHECK(tensor.type == want);
            }
        }
}

TEST_CASE("quantize: logits of quantized models stay near those of f32") {
    const Config config = llama_config(2, 128, 4, 2, 32, 344);
    const SmallModel exact(config, Type::f32);
    const auto tokens = some_tokens(60, config.decoder.vocab_size);
    const auto logits_of = [&](const SmallModel& small) {
        SmallSession s(small.model, {});
        std::vector<float> logits(tokens.size() * config.decoder.vocab_size);
        REQUIRE(forward(s.session, tokens, logits).ok());
        return logits;
    };
    const auto want = logits_of(exact);
    for (const Type type : {Type::q8, Type::q4}) {
        const auto got = logits_of(SmallModel(config, type));
        double error = 0, total = 0;
        for (std::size_t i = 0; i < want.size(); ++i) {
            error += std::pow(want[i] - got[i], 2);
            total += std::pow(want[i], 2);
        }
        const double relative = std::sqrt(error / total);
        CAPTURE(relative);
        // Each of some 14 roundings of weights and activations adds its own: 0.5 % in q8, 8 % in q4.
        CHECK(relative < (type == Type::q8 ? 0.04 : 0.4));
        CHECK(relative > 0);
    }
}
