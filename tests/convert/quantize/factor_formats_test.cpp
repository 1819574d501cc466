// Weights of any source in the formats beyond q8 and q4: what is lost, where it lies, and what has no number.
#include "convert/quantize/factor_formats.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "convert/quantize/format_lanes.h"
#include "host/model/listing.h"
#include "tests/convert/quantize/format_by_row.h"
#include "tests/convert/quantize/nasty_weights.h"
#include "tests/support/panel_element.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

struct Bound {
    Type type;
    double most;  // relative error of weights that are normally distributed
};
constexpr Bound kBounds[] = {{Type::q6_k, 0.02},  {Type::q5_k, 0.04}, {Type::q4_k, 0.08}, {Type::iq4_nl, 0.08},
                             {Type::mxfp4, 0.13}, {Type::q3_k, 0.16}, {Type::q2_k, 0.32}, {Type::iq4_xs, 0.08},
                             {Type::tq2_0, 0.5},  {Type::q5, 0.042},  {Type::q4_1, 0.08}, {Type::q5_1, 0.04}};

std::vector<float> normal_rows(std::uint32_t n_cols, std::uint32_t seed) {
    std::mt19937 engine(seed);
    std::vector<float> rows(std::size_t{kLanes} * n_cols);
    for (float& value : rows) {  // a sum of twelve uniform numbers
        value = -6;
        for (int i = 0; i < 12; ++i) value += static_cast<float>(engine() >> 8) * 0x1p-24f;
    }
    return rows;
}

double relative_error(Type type, const std::vector<float>& rows, std::uint32_t n_cols) {
    std::vector<std::byte> panel(panel_bytes(type, n_cols));
    const QuantLoss loss = quantize_panel(type, rows.data(), n_cols, panel.data());
    return std::sqrt(loss.error / loss.total);
}

/// Groups of 256 columns, of one row among rows of zeros.
std::vector<QuantizedGroup> quantized(Type type, const float (&x)[kFactorColumns]) {
    float columns[kFactorColumns][kLanes] = {};
    for (std::uint32_t i = 0; i < kFactorColumns; ++i) columns[i][5] = x[i];
    FormatLanes lanes;
    format_quantizers().front().quantize(type, columns, kFactorColumns, lanes);
    std::vector<QuantizedGroup> groups;
    for (const auto& group : lanes.groups) groups.push_back(group[5]);
    return groups;
}

}  // namespace

TEST_CASE("formats: a panel holds each weight where the format says, and zeros in what is missing") {
    for (const Bound& bound : kBounds)
        for (const std::uint32_t n_cols : {1u, 31u, 32u, 40u, 64u, 100u, 172u, 256u, 257u, 320u, 520u}) {
            const Type type = bound.type;
            CAPTURE(static_cast<int>(type));
            CAPTURE(n_cols);
            const std::vector<float> rows = normal_rows(n_cols, n_cols);
            std::vector<std::byte> panel(panel_bytes(type, n_cols));
            const QuantLoss loss = quantize_panel(type, rows.data(), n_cols, panel.data());
            CHECK_FALSE(loss.overflow);
            if (n_cols >= 32) CHECK(std::sqrt(loss.error / loss.total) < bound.most);
            double error = 0;
            for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                for (std::uint32_t col = 0; col < n_cols; ++col)
                    error += std::pow(rows[lane * n_cols + col] - panel_element(type, panel.data(), lane, col), 2);
                for (std::uint32_t col = static_cast<std::uint32_t>(round_up(n_cols, kGroup));
                     col < round_up(n_cols, kSuperblock); ++col) {
                    if (type != Type::tq2_0)  // bits of zeros, which stand for −1 there, beside rows that have zeros
                        REQUIRE(panel_element(type, panel.data(), lane, col) == 0.0f);
                }
            }
            CHECK(error == doctest::Approx(loss.error).epsilon(1e-4));
        }
}

TEST_CASE("formats: four bits with minima or a codebook lose less than q4") {
    const std::vector<float> rows = normal_rows(1024, 7);
    const double q4 = relative_error(Type::q4, rows, 1024);
    CHECK(relative_error(Type::q4_k, rows, 1024) < 0.93 * q4);
    CHECK(relative_error(Type::iq4_nl, rows, 1024) < 0.95 * q4);
    CHECK(relative_error(Type::q5_k, rows, 1024) < 0.5 * q4);
}

TEST_CASE("formats: weights far from zero cost a minimum nothing") {
    std::vector<float> rows = normal_rows(256, 9);
    for (float& value : rows) value = 0.01f * value - 1.0f;
    CHECK(relative_error(Type::q4_k, rows, 256) < 0.005);
    CHECK(relative_error(Type::q4_k, rows, 256) < 0.1 * relative_error(Type::iq4_nl, rows, 256));
}

TEST_CASE("formats: groups that are zero, tiny, too large or not finite") {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (const Bound& bound : kBounds) {
        const Type type = bound.type;
        CAPTURE(static_cast<int>(type));
        float x[kFactorColumns] = {};
        auto groups = quantized(type, x);
        for (std::uint32_t i = 0; i < kFactorColumns; ++i) CHECK(element_of(type, groups[i / kGroup], i % kGroup) == 0);
        x[5] = 1e-40f;
        x[40] = -1e-42f;
        groups = quantized(type, x);
        for (std::uint32_t i = 0; i < kFactorColumns; ++i)
            CHECK(std::fabs(element_of(type, groups[i / kGroup], i % kGroup)) < 1e-4);
        for (const float odd : {kInfinity, -kInfinity, std::nanf("")}) {
            x[70] = odd;
            groups = quantized(type, x);
            CHECK(std::isnan(element_of(type, groups[70 / kGroup], 70 % kGroup)));
            for (const std::int8_t quant : groups[70 / kGroup].quants) CHECK(quant == 0);
        }
        if (type == Type::mxfp4) continue;  // reaches as far as float32
        std::vector<float> rows(std::size_t{kLanes} * 32, 3e30f);
        std::vector<std::byte> panel(panel_bytes(type, 32));
        CHECK(quantize_panel(type, rows.data(), 32, panel.data()).overflow);
        if (!format_of(type).minima) continue;
        std::fill(panel.begin(), panel.end(), std::byte{0});
        std::fill(rows.begin(), rows.end(), -1e7f);  // a minimum that no factor reaches
        CHECK(quantize_panel(type, rows.data(), 32, panel.data()).overflow);
    }
}

TEST_CASE("formats: sixteen rows side by side come out as each alone, whatever is in them") {
    Weights weights{29};
    const auto random = [&] { return weights.state = weights.state * 1664525u + 1013904223u; };
    const auto same = [](double a, double b) {
        return a == b || a == doctest::Approx(b).epsilon(1e-12) || (a != a && b != b);
    };
    for (int n = 0; n < 40; ++n)
        for (int t = 2; t < kQuantTypeCount; ++t) {
            const Type type = quant_type(t);
            const std::uint32_t n_cols = n % 4 ? 1 + random() % kFactorColumns : kFactorColumns;
            CAPTURE(n);
            CAPTURE(static_cast<int>(type));
            CAPTURE(n_cols);
            float x[kFactorColumns][kLanes];
            for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                std::uint32_t kind = random() >> 28;
                const float size = std::ldexp(1.0f, static_cast<int>(random() >> 24) - 150);
                for (std::uint32_t i = 0; i < n_cols; ++i) {
                    if (i % kGroup == 0 && random() % 4 == 0) kind = random() >> 28;
                    x[i][lane] = nasty_weight(kind, size, weights);
                }
            }
            for (const FormatQuantizer& quantizer : format_quantizers()) {
                CAPTURE(quantizer.isa);
                FormatLanes lanes;
                quantizer.quantize(type, x, n_cols, lanes);
                bool overflow = false;
                for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                    CAPTURE(lane);
                    float alone[kFactorColumns];
                    for (std::uint32_t i = 0; i < n_cols; ++i) alone[i] = x[i][lane];
                    QuantizedGroup want[kFactorColumns / kGroup];
                    quantize_row(type, alone, n_cols, want);
                    double error = 0, total = 0;
                    for (std::uint32_t i = 0; i < n_cols; ++i) {
                        const QuantizedGroup& group = lanes.groups[i / kGroup][lane];
                        if (i % kGroup == 0) {
                            REQUIRE(group.scale == want[i / kGroup].scale);
                            REQUIRE(group.minimum_factor == want[i / kGroup].minimum_factor);
                            REQUIRE(group.scales == want[i / kGroup].scales);
                            REQUIRE(group.minima == want[i / kGroup].minima);
                            REQUIRE(group.quants == want[i / kGroup].quants);
                        }
                        const double element = element_of(type, group, i % kGroup), d = alone[i] - element;
                        error += d * d;
                        total += double{alone[i]} * alone[i];
                        overflow |= std::isfinite(alone[i]) && !std::isfinite(element);
                    }
                    if (!lanes.overflow) REQUIRE(same(lanes.errors[lane], error));
                    REQUIRE(same(lanes.totals[lane], total));
                }
                REQUIRE(lanes.overflow == overflow);
            }
        }
}

TEST_CASE("formats: of a codebook a weight takes the nearest entry, the first of two as near") {
    QuantizedGroup group;
    group.scale = 0x3c00;  // 1
    group.scales = {1, 1};
    const auto by_search = [](const std::int8_t* codebook, double x) {
        int best = 0;
        for (int i = 1; i < 16; ++i)
            if (std::fabs(x - codebook[i]) < std::fabs(x - codebook[best])) best = i;
        return best;
    };
    std::vector<double> numbers = {0, -0.0, 1e-300, -1e-20, 1e6, -1e6};
    for (int eighth = -8 * 140; eighth <= 8 * 140; ++eighth) {
        const double x = eighth / 8.0;  // every entry and every middle are among them
        numbers.insert(numbers.end(), {x, std::nextafter(x, -1e9), std::nextafter(x, 1e9)});
    }
    for (const Type type : {Type::iq4_nl, Type::iq4_xs}) {
        CAPTURE(static_cast<int>(type));
        for (const double x : numbers) {
            CAPTURE(x);
            CHECK(nearest_quant(type, group, 0, x) == by_search(format_of(type).codebook, x));
        }
        CHECK(nearest_quant(type, group, 0, 1e300) == 15);
        CHECK(nearest_quant(type, group, 0, -1e300) == 0);
    }
    for (const double x : numbers) {  // without a codebook the nearest whole number, halves upwards
        CAPTURE(x);
        CHECK(nearest_quant(Type::q8, group, 0, x) == std::clamp(std::floor(x + 0.5), -127.0, 127.0));
        CHECK(nearest_quant(Type::q3_k, group, 0, x) == std::clamp(std::floor(x + 0.5), -4.0, 3.0));
    }
}

TEST_CASE("formats: which tensors of a file are of which type") {
    for (const Bound& bound : kBounds) {
        const Type type = bound.type;
        const SmallModel small(llama_config(), type);
        for (const TensorInfo& tensor : tensors(small.model)) {
            const std::string role = tensor.role, layout = tensor.layout;
            CAPTURE(role);
            const Type want = layout == "vector"                              ? Type::f32
                              : layout == "rows"                              ? Type::f16
                              : role == "output" || role == "token_embedding" ? Type::q6_k
                                                                              : type;
            CHECK(tensor.type == want);
        }
    }
}
