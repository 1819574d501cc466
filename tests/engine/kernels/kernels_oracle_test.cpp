// The scalar kernels compute what they say: against double precision, within bounds that follow from the number of
// roundings. u = 2⁻²⁴ is the error of one; k of them in a row lose at most k·u/(1 − k·u) (Higham 2002, lemma 3.1), and
// the margin that `roundings` adds covers that denominator and the oracle's own error.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "tests/support/matmul_cases.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

double roundings(double k) { return k * 0x1p-24 * 1.001; }

struct Bounded {
    double value, error;
};

/// Roundings in the sum of n products, in blocks of kColumnBlock.
double chain(double n) { return std::min<double>(n, kColumnBlock) + std::ceil(n / kColumnBlock); }

Bounded dot(std::uint32_t n, const std::function<double(std::uint32_t)>& a,
            const std::function<double(std::uint32_t)>& b) {
    double sum = 0, size = 0;
    for (std::uint32_t i = 0; i < n; ++i) sum += a(i) * b(i), size += std::abs(a(i) * b(i));
    return {sum, size * roundings(chain(n))};
}

Bounded activate(Activation f, Bounded x) {
    const double v = x.value;
    // No activation is steeper than 1.13; its own error is at most 2⁻²³·|x| (docs/numerics.md).
    const double error = 1.13 * x.error + 0x1p-23 * (std::abs(v) + x.error);
    switch (f) {
        case Activation::none: return x;
        case Activation::relu: return {std::max(v, 0.0), x.error};
        case Activation::gelu: return {0.5 * v * std::erfc(-v * std::sqrt(0.5)), error};
        case Activation::gelu_tanh:
            return {v / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))), error};
        case Activation::silu: return {v / (1 + std::exp(-v)), error};
        case Activation::tanh: return {std::tanh(v), x.error + 0x1.8p-23 * (std::abs(v) + x.error)};
        case Activation::sigmoid: {
            const double y = 1 / (1 + std::exp(-v));
            return {y, 0.25 * x.error + 0x1p-22 * y + 0x1p-127};
        }
        case Activation::softplus: {
            const double y = std::max(v, 0.0) + std::log1p(std::exp(-std::abs(v)));
            return {y, x.error + 0x1p-22 * (y + x.error) + 0x1p-115};
        }
        case Activation::quick_gelu: return {v / (1 + std::exp(-1.702 * v)), error};
        case Activation::relu2: {  // steeper the larger it is
            const double y = std::max(v, 0.0), most = y + x.error;
            return {y * y, most * most - y * y + 0x1p-24 * most * most};
        }
        case Activation::silu_clamped: return {std::min(v, 7.0) / (1 + std::exp(-1.702 * std::min(v, 7.0))), error};
    }
    return x;
}

/// One output of a matmul, or what was there before where the call does not compute it.
Bounded expected(const MatmulCase& c, const MatmulRun& run, std::uint32_t row, std::uint32_t i) {
    const std::uint32_t step = c.epilogue == Epilogue::gate ? 2 : 1;
    const std::uint32_t panel = i / kLanes * step;
    const double before = run.before()[row * run.out_stride() + i];
    if (panel < run.panel_begin() || panel >= run.panel_end()) return {before, 0};
    const auto product = [&](std::uint32_t p) {
        const std::uint32_t weight_row = p * kLanes + i % kLanes;
        Bounded y = dot(
            c.n_cols, [&](auto col) { return run.weight(weight_row, col); },
            [&](auto col) { return static_cast<double>(run.input(row, col)); });
        if (!c.bias) return y;
        y.value += run.bias(weight_row);
        return Bounded{y.value, y.error + roundings(1) * (std::abs(y.value) + y.error)};
    };
    const Bounded y = product(panel);
    if (c.epilogue == Epilogue::add) {
        const double sum = before + y.value;
        return {sum, y.error + roundings(1) * (std::abs(sum) + y.error)};
    }
    const Bounded a = activate(c.activation, y);
    if (c.epilogue == Epilogue::store) return a;
    Bounded up = product(panel + 1);
    if (c.activation == Activation::silu_clamped) {
        up.value = std::clamp(up.value, -7.0, 7.0) + 1;
        up.error += roundings(1) * (std::abs(up.value) + up.error);
    }
    const double value = a.value * up.value;
    const double error = a.error * std::abs(up.value) + up.error * std::abs(a.value) + a.error * up.error;
    return {value, error + roundings(1) * (std::abs(value) + error)};
}

void check(const MatmulCase& c, Type type, std::uint32_t seed) {
    const MatmulRun run(c, type, seed);
    const Guarded<float> out = run.run(kernels_scalar);
    for (std::uint32_t row = 0; row < c.seq_len; ++row)
        for (std::uint32_t i = 0; i < (row + 1 < c.seq_len ? run.out_stride() : c.n_rows); ++i) {
            const std::size_t at = row * run.out_stride() + i;
            CAPTURE(row);
            CAPTURE(i);
            const Bounded want = i < c.n_rows ? expected(c, run, row, i) : Bounded{run.before()[at], 0};
            if (std::isnan(want.value))  // untouched
                CHECK(std::memcmp(&out[at], &run.before()[at], sizeof(float)) == 0);
            else
                CHECK(std::abs(out[at] - want.value) <= want.error);
        }
}

}  // namespace

TEST_CASE("scalar matmul: within the bound of its roundings") {
    std::uint32_t seed = 0;
    for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
        for (const std::uint32_t n_cols : {1u, 2u, 100u, 512u, 513u, 1300u})
            check({.n_rows = 35, .n_cols = n_cols, .seq_len = 3}, type, ++seed);
        for (const Epilogue epilogue : {Epilogue::store, Epilogue::add, Epilogue::gate})
            for (const Activation f : {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh,
                                       Activation::silu, Activation::tanh, Activation::silu_clamped, Activation::relu2,
                                       Activation::quick_gelu, Activation::sigmoid, Activation::softplus})
                for (const bool bias : {false, true})
                    check({.n_rows = 50,
                           .n_cols = 30,
                           .seq_len = 14,
                           .epilogue = epilogue,
                           .activation = epilogue == Epilogue::add ? Activation::none : f,
                           .bias = bias,
                           .skip_front = 1,
                           .skip_back = 1,
                           .extra_stride = 3},
                          type, ++seed);
    }
}

TEST_CASE("scalar matmul: columns are summed in blocks of 512") {
    // 2²⁴ + 1 is lost where the 1 is added to it, and kept where the 1 starts a block of its own with another.
    const auto sum = [](std::uint32_t n_cols, std::initializer_list<std::pair<std::uint32_t, float>> parts) {
        Guarded<float> panel(std::size_t{n_cols} * kLanes, Flush::end, 64), operand(n_cols), out(1);
        std::fill(panel.begin(), panel.end(), 1.0f);
        std::fill(operand.begin(), operand.end(), 0.0f);
        for (const auto& [col, value] : parts) operand[col] = value;
        kernels_scalar.of(Type::f32).matmul(Matmul{.panels = reinterpret_cast<const std::byte*>(panel.data()),
                                                   .panel_stride = panel.size() * 4,
                                                   .n_rows = 1,
                                                   .n_cols = n_cols,
                                                   .panel_begin = 0,
                                                   .panel_end = 1,
                                                   .operand = operand.data(),
                                                   .seq_len = 1,
                                                   .bias = nullptr,
                                                   .out = out.data(),
                                                   .out_stride = 1,
                                                   .epilogue = Epilogue::store,
                                                   .activation = Activation::none,
                                                   .canonical = true});
        return out[0];
    };
    CHECK(sum(512, {{0, 0x1p24f}, {510, 1.0f}, {511, 1.0f}}) == 0x1p24f);
    CHECK(sum(514, {{0, 0x1p24f}, {512, 1.0f}, {513, 1.0f}}) == 0x1p24f + 2);
    CHECK(sum(514, {{0, 0x1p24f}, {511, 1.0f}, {512, 1.0f}}) == 0x1p24f);
    CHECK(sum(1026, {{0, 0x1p24f}, {600, 1.0f}, {1025, 1.0f}}) == 0x1p24f);
}

TEST_CASE("scalar matmul: NaN is stored as 0x7fc00000 where that is asked for") {
    const MatmulCase c{.n_rows = 33, .n_cols = 5, .seq_len = 13, .epilogue = Epilogue::add, .fill = Fill::hostile};
    const Guarded<float> out = MatmulRun(c, Type::f32).run(kernels_scalar);
    int n_nan = 0;
    for (const float y : out) {
        if (!std::isnan(y)) continue;
        ++n_nan;
        CHECK(std::bit_cast<std::uint32_t>(y) == 0x7fc00000u);
    }
    CHECK(n_nan > 0);
}

TEST_CASE("scalar pack: columns of up to 12 rows, side by side") {
    for (const std::uint32_t n_rows : {1u, 5u, kRowBlock}) {
        const std::uint32_t n_cols = 37, stride = 48;
        Guarded<float> x(n_rows * stride), packed(n_rows * n_cols);
        Random(n_rows).fill(x, Fill::plain);
        kernels_scalar.floats.pack(x.data(), stride, n_rows, n_cols, packed.data());
        for (std::uint32_t row = 0; row < n_rows; ++row)
            for (std::uint32_t col = 0; col < n_cols; ++col) CHECK(packed[col * n_rows + row] == x[row * stride + col]);
    }
}

TEST_CASE("scalar norms: within the bound of their roundings") {
    for (std::uint32_t n = 1; n <= 700; n += n < 40 ? 1 : 60) {
        CAPTURE(n);
        Random random(n);
        Guarded<float> x(n), weight(n), bias(n), y(n);
        random.fill(x, Fill::plain);
        random.fill(weight, Fill::plain);
        random.fill(bias, Fill::plain);
        double sum = 0, squares = 0, size = 0;
        for (const float v : x) sum += v, size += std::abs(v), squares += double{v} * v;
        const double lanes = std::ceil(n / 16.0) + 4;  // roundings of a sum across a row

        // The root halves the sum's relative error; then 1/n, its product, the sum with epsilon, root, reciprocal and
        // two products.
        kernels_scalar.floats.rms_norm(x.data(), n, weight.data(), 1e-5f, y.data());
        for (std::uint32_t i = 0; i < n; ++i) {
            const double want = x[i] / std::sqrt(squares / n + 1e-5f) * weight[i];
            CHECK(std::abs(y[i] - want) <= std::abs(want) * roundings(lanes / 2 + 6));
        }

        const double mean = sum / n, mean_error = roundings(lanes + 2) * size / n;
        double variance = 0;
        for (const float v : x) variance += (v - mean) * (v - mean) / n;
        const double spread = std::sqrt(variance + 1e-5f);
        // x − mean inherits the mean's error and is rounded; to the variance the mean's error adds its square.
        const double relative = roundings(lanes / 2 + 8) + mean_error * mean_error / (variance + 1e-5f);
        for (const bool with_bias : {false, true}) {
            kernels_scalar.floats.layer_norm(x.data(), n, weight.data(), with_bias ? bias.data() : nullptr, 1e-5f,
                                             y.data());
            for (std::uint32_t i = 0; i < n; ++i) {
                const double scaled = (x[i] - mean) / spread * weight[i];
                const double want = scaled + (with_bias ? bias[i] : 0);
                const double d_error = mean_error + roundings(1) * (std::abs(x[i] - mean) + mean_error);
                const double error =
                    d_error / spread * std::abs(weight[i]) * (1 + relative) + std::abs(scaled) * relative;
                CHECK(std::abs(y[i] - want) <= error + roundings(1) * (std::abs(want) + error));
            }
        }
    }
}

TEST_CASE("scalar rotary positions: angles, pairs and scale") {
    const std::uint32_t n_pairs = 32;
    Guarded<float> frequency(n_pairs), cos(2 * n_pairs), sin(2 * n_pairs), x(2 * n_pairs);
    for (std::uint32_t i = 0; i < n_pairs; ++i) frequency[i] = std::pow(10000.0f, -static_cast<float>(i) / n_pairs);
    for (const std::uint32_t pos : {0u, 1u, 100u, 8191u, 1000000u}) {
        CAPTURE(pos);
        kernels_scalar.floats.rope_table(pos, frequency.data(), n_pairs, 1.5f, cos.data(), sin.data());
        for (std::uint32_t i = 0; i < 2 * n_pairs; ++i) {
            // Sines err by less than 2⁻²³; the product with the scale is rounded once.
            const double angle = static_cast<float>(pos) * frequency[i / 2];
            CHECK(std::abs(cos[i] - 1.5 * std::cos(angle)) <= 1.5 * (0x1p-23 + 0x1p-24));
            CHECK(std::abs(sin[i] - 1.5 * std::sin(angle)) <= 1.5 * (0x1p-23 + 0x1p-24));
        }
        Random random(pos);
        random.fill(x, Fill::plain);
        std::vector<double> before(x.begin(), x.end());
        kernels_scalar.floats.rotate(x.data(), cos.data(), sin.data(), 2 * n_pairs);
        for (std::uint32_t i = 0; i < 2 * n_pairs; i += 2) {
            const double c = cos[i], s = sin[i], a = before[i], b = before[i + 1];
            CHECK(std::abs(x[i] - (a * c - b * s)) <= roundings(2) * (std::abs(a * c) + std::abs(b * s)));
            CHECK(std::abs(x[i + 1] - (b * c + a * s)) <= roundings(2) * (std::abs(b * c) + std::abs(a * s)));
        }
    }
}

TEST_CASE("scalar cache: keys go to their lane of a panel, values to their row") {
    for (const Type type : {Type::f32, Type::f16}) {
        const auto t = static_cast<int>(type);
        const std::uint32_t dim = 21, stride = 32;
        Guarded<float> x(dim);
        Random random(5);
        random.fill(x, Fill::plain);
        x[3] = kNanFloat;
        x[4] = -kNanFloat;
        x[5] = -0.0f;
        const auto holds = [&](const Guarded<std::byte>& bytes, std::size_t i, float want) {
            const double tolerance = type == Type::f32 ? 0 : std::abs(want) * 0x1p-11;
            const double got = value_of(bytes.data(), i, type);
            if (!std::isnan(want)) return std::abs(got - want) <= tolerance && std::signbit(got) == std::signbit(want);
            const std::uint32_t nan = type == Type::f32 ? 0x7fc00000u : 0x7e00u;
            return std::memcmp(bytes.data() + i * element_bytes(type), &nan, element_bytes(type)) == 0;
        };
        Guarded<std::byte> panel(dim * kLanes * element_bytes(type)), rows(kLanes * stride * element_bytes(type));
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            kernels_scalar.floats.write_key[t](x.data(), dim, lane, panel.data());
            for (std::uint32_t i = 0; i < dim; ++i)
                for (std::uint32_t other = 0; other < kLanes; ++other)
                    CHECK(holds(panel, i * kLanes + other, other <= lane ? x[i] : 0.0f));
        }
        for (const std::uint32_t lane : {0u, 9u, 15u}) {
            kernels_scalar.floats.write_value[t](x.data(), dim, lane, rows.data());
            for (std::uint32_t i = 0; i < stride; ++i) CHECK(holds(rows, lane * stride + i, i < dim ? x[i] : 0.0f));
        }
    }
}

TEST_CASE("scalar q8 cache: quants and scales as pack_q8 makes them, a group at a time, the scales as f16") {
    const auto q8 = static_cast<int>(Type::q8);
    for (const std::uint32_t dim : {1u, 31u, 32u, 64u, 80u, 130u}) {
        CAPTURE(dim);
        Guarded<float> x(dim);
        Random random(dim);
        random.fill(x, Fill::plain);
        x[0] = 1e-6f;                             // its scale, where it is alone, is a subnormal half
        if (dim > 40) x[40] = kNanFloat;          // its group is NaN
        if (dim > 64) x[64] = kInfinity;          // so is this one
        if (dim > 128) x[128] = x[129] = 1e-35f;  // too small: zeros
        Guarded<std::byte> keys(panel_bytes(Type::q8, dim)), values(value_panel_bytes(Type::q8, dim));
        for (const std::uint32_t lane : {0u, 5u}) {
            kernels_scalar.floats.write_key[q8](x.data(), dim, lane, keys.data());
            kernels_scalar.floats.write_value[q8](x.data(), dim, lane, values.data());
        }
        const QuantPanel panel{keys.data(), Type::q8};
        for (std::uint32_t i = 0; i < dim; ++i) {
            double amax = 0;
            for (std::uint32_t j = i / kGroup * kGroup; j < dim && j < (i / kGroup + 1) * kGroup; ++j)
                amax = std::isfinite(x[j]) ? std::max<double>(amax, std::abs(x[j])) : HUGE_VAL;
            const std::byte* group = values.data() + i / kGroup * value_group_bytes(Type::q8);
            for (const std::uint32_t lane : {0u, 5u}) {
                CAPTURE(i);
                const float scale = panel.scale(i, lane);
                const int quant = panel.quant(i, lane);
                CHECK(static_cast<std::int8_t>(group[2 * kLanes + lane * kGroup + i % kGroup]) == quant);
                CHECK(std::memcmp(group + 2 * lane,
                                  keys.data() + i / kSuperblock * panel_bytes(Type::q8, kSuperblock) +
                                      2 * (i / kGroup % 2 * kLanes + lane),
                                  2) == 0);
                if (!std::isfinite(amax)) {
                    CHECK(std::isnan(scale));
                    CHECK(quant == 0);
                } else if (amax < 0x1p-100) {
                    CHECK(scale == 0.0f);
                    CHECK(quant == 0);
                } else {
                    CHECK(std::abs(scale - amax / 127) <= amax / 127 * 0x1p-10 + 0x1p-25);
                    CHECK(std::abs(quant * amax / 127 - x[i]) <= amax / 127 * 0.5001);
                }
                CHECK(panel.quant(i, lane + 1) == 0);
                CHECK(panel.scale(i, lane + 1) == 0.0f);
            }
        }
    }
}

namespace {

/// softmax(scale·q·kᵀ)·v of one row, in double, and a bound of the kernel's error.
Bounded attention(const AttendCase& c, const AttendRun& run, std::uint32_t row, std::uint32_t i,
                  std::vector<double>* weights = nullptr) {
    const Window w = c.rows[row];
    std::vector<double> scores;
    double error = 0, top = -HUGE_VAL, low = HUGE_VAL;
    for (std::uint32_t pos = w.first; pos < w.last; ++pos) {
        const Bounded product = dot(
            c.head_dim, [&](auto d) { return static_cast<double>(run.query(row, d)); },
            [&](auto d) { return run.key(pos, d); });
        double s = product.value * run.scale();
        double e = (product.error + roundings(1) * std::abs(product.value)) * run.scale();
        // tanh is no steeper than 1; it and the products around it lose 1.4 ulp and 1 rounding each.
        if (c.softcap != 0) s = c.softcap * std::tanh(s / c.softcap), e += roundings(6) * std::abs(s);
        if (const double slope = run.slope(row, pos); c.sloped) s -= slope, e += roundings(1) * (std::abs(s) + slope);
        if (const double bias = run.bias(row, pos); bias == -HUGE_VAL) {
            scores.push_back(bias);
            continue;
        } else if (c.masked) {  // two numbers at most: one rounding each
            s += bias, e += roundings(2) * (std::abs(s) + std::abs(bias));
        }
        scores.push_back(s);
        error = std::max(error, e);
        top = std::max(top, s);
        low = std::min(low, s);
    }
    double sum = 0, weighted = 0, largest = 0;
    if (weights) weights->assign(w.last, 0.0);
    if (top == -HUGE_VAL) return {0, 0};
    for (std::uint32_t pos = w.first; pos < w.last; ++pos) {
        const double p = std::exp(scores[pos - w.first] - top);
        if (weights) (*weights)[pos] = p;
        if (p == 0) continue;
        sum += p;
        weighted += p * run.value(pos, i);
        largest = std::max(largest, std::abs(run.value(pos, i)));
    }
    // Every weight is off by the scores' errors (its own and the maximum's) and by the roundings of one exp and its
    // argument; then at most 512 fma in a row, and per tile and chunk a decay, whose exp errs likewise. The same holds
    // for the sum of weights, so the quotient loses twice that.
    if (weights)
        for (double& weight : *weights) weight /= sum;
    const double n_tiles = (w.last - w.first) / 64.0 + 2;
    const double per_exp = 2 + (top - low);
    if (weights) largest = 1;
    return {weighted / sum, 2 * largest * (2 * error + roundings(per_exp + kChunk + 2 * n_tiles * per_exp))};
}

}  // namespace

TEST_CASE("scalar attention: the softmax-weighted mean of what each row sees") {
    const std::vector<AttendCase> cases = {
        {{{0, 1}, {0, 2}, {0, 3}}, 8, 8},
        {{{0, 100}, {37, 101}, {64, 128}, {0, 1}}, 64, 64},
        {{{0, 700}, {511, 513}, {512, 600}, {690, 700}}, 32, 20},
        {{{0, 1100}, {1000, 1001}}, 600, 16},
        {{{0, 200}, {3, 180}}, 16, 16, 5.0f},
        {{{0, 900}, {100, 800}}, 16, 16, 0.0f, Fill::plain, 20.0f},
        {{{0, 90}, {37, 101}, {64, 128}, {0, 1}}, 24, 40, 0.0f, Fill::plain, 1.0f, {}, {}, true},
        {{{0, 900}, {100, 800}, {0, 600}, {512, 700}, {0, 900}}, 32, 16, 5.0f, Fill::plain, 1.0f, {}, {}, true},
        {{{0, 90}, {37, 101}, {64, 128}, {0, 700}}, 24, 40, 0.0f, Fill::plain, 1.0f, {}, {}, false, true},
        {{{0, 900}, {100, 800}, {0, 600}}, 32, 16, 5.0f, Fill::plain, 1.0f, {}, {}, true, true},
    };
    for (const Type type : kCacheTypes)
        for (const AttendCase& c : cases) {
            const AttendRun run(c, type);
            AttendState state = run.merged(kernels_scalar);
            const Guarded<float> out = run.finished(kernels_scalar, state);
            const Guarded<float> weights = run.weights(kernels_scalar, state);
            for (std::uint32_t row = 0; row < c.rows.size(); ++row) {
                std::vector<double> wanted;
                const double bound = attention(c, run, row, 0, &wanted).error;
                double sum = 0;
                for (std::uint32_t pos = 0; pos < wanted.size(); ++pos) {
                    const float got = weights[(pos / kTile * c.rows.size() + row) * kTile + pos % kTile];
                    CHECK(std::abs(got - wanted[pos]) <= bound * wanted[pos] + 0x1p-115);  // exp is 0 below −80
                    sum += got;
                }
                CHECK(std::abs(sum - (state.l[row] == 0.0f ? 0 : 1)) <= bound);
                for (std::uint32_t i = 0; i < c.value_head_dim; ++i) {
                    CAPTURE(row);
                    CAPTURE(i);
                    const Bounded want = attention(c, run, row, i);
                    CHECK(std::abs(out[row * c.value_head_dim + i] - want.value) <= want.error);
                }
            }
        }
}

TEST_CASE("scalar attention: rows that see nothing are zeros, and nobody sees another's NaN") {
    const AttendCase c{{{30, 30}, {0, 60}, {0, 70}, {90, 20}, {0, 61}}, 16, 16, 0.0f, Fill::plain, 1.0f, {65}, {60}};
    const AttendRun run(c, Type::f32);
    const AttendState state = run.chunk(kernels_scalar, 0);
    const Guarded<float> out = run.finished(kernels_scalar, state);
    for (std::uint32_t i = 0; i < 16; ++i) {
        for (const std::uint32_t row : {0u, 3u}) {
            const float zero = 0.0f;
            CHECK(std::memcmp(&out[row * 16 + i], &zero, sizeof zero) == 0);
            CHECK(state.m[row] == -kInfinity);
            CHECK(state.l[row] == 0.0f);
        }
        CHECK(std::isfinite(out[1 * 16 + i]));
        CHECK(std::isnan(out[2 * 16 + i]));
        CHECK(std::isnan(out[4 * 16 + i]));
    }
}

TEST_CASE("scalar attention: chunks that a row does not see leave it as it is, from whichever chunk it starts") {
    const AttendCase c{{{520, 700}, {600, 1500}}, 16, 16};
    const AttendRun run(c, Type::f32);
    const AttendState from_start = run.merged(kernels_scalar), from_second = run.merged(kernels_scalar, 1);
    CHECK(same_bits(from_start.m, from_second.m));
    CHECK(same_bits(from_start.l, from_second.l));
    CHECK(same_bits(run.finished(kernels_scalar, from_start), run.finished(kernels_scalar, from_second)));
}

TEST_CASE("scalar attention: a finished zero is positive, a finished NaN canonical") {
    const float l[] = {2.0f, 0.0f, 4.0f, -0.0f};
    Guarded<float> o(4 * kLanes), out(4 * kLanes);
    std::fill(o.begin(), o.end(), -0.0f);
    o[2 * kLanes] = -kNanFloat;
    o[kLanes] = kNanFloat;
    kernels_scalar.floats.attend_finish(l, o.data(), 4, kLanes, kLanes, out.data(), kLanes);
    for (std::size_t i = 0; i < out.size(); ++i)
        CHECK(std::bit_cast<std::uint32_t>(out[i]) == (i == 2 * kLanes ? 0x7fc00000u : 0u));
}

TEST_CASE("scalar softcap: cap·tanh(x / cap)") {
    Guarded<float> x(1000);
    Random random(3);
    random.fill(x, Fill::plain);
    for (const float cap : {0.5f, 30.0f}) {
        Guarded<float> y(x.size());
        std::copy(x.begin(), x.end(), y.begin());
        kernels_scalar.floats.softcap(y.data(), y.size(), cap);
        // One rounding before tanh, which is steepest relative to itself where it is x; 1.4 ulp in it; one after.
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double want = cap * std::tanh(static_cast<double>(x[i]) / cap);
            CHECK(std::abs(y[i] - want) <= std::abs(want) * roundings(1 + 2.8 + 1));
        }
    }
}
