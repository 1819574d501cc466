// Every operation on one float over a sample of all of them (`./dev exhaustive` takes all), and those of several floats
// over a grid: the same bits on every instruction set.
#include "tests/support/every_float.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>

#include "tests/support/kernel_cases.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// Both zeros, subnormals, powers of two, what is next to them, infinities, NaN, and random bits.
std::vector<float> grid(std::size_t n, std::uint32_t seed) {
    std::vector<float> x{
        0.0f,           0x1p-149f,       0x1.fffffcp-127f, 0x1p-126f, 1.0f,
        0x1.fffffep-1f, 0x1.fffffep127f, kInfinity,        kNanFloat, std::bit_cast<float>(0xffd23456u)};
    for (int power = -140; power <= 127 && x.size() < n / 3; power += 13) x.push_back(std::ldexp(1.0f, power));
    for (std::size_t i = 0, signs = x.size(); i < signs; ++i) x.push_back(-x[i]);
    std::mt19937 random(seed);
    while (x.size() < n) x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    return x;
}

/// Runs `run(table, out)` for every table and compares its n floats with scalar's; returns how many were compared.
template<class Run>
std::size_t compare(std::size_t n, bool any_nan, Run run) {
    Guarded<float> want(n), got(n);
    run(kernels_scalar, want.data());
    std::size_t n_tables = 0;
    const Kernels* const* tables = usable_kernels(n_tables);
    for (std::size_t i = 0; i < n_tables; ++i) {
        CAPTURE(std::string(tables[i]->isa));
        run(*tables[i], got.data());
        CHECK((any_nan ? same_bits_or_nan(want, got) : same_bits(want, got)));
    }
    return n;
}

using Floats = std::vector<float, Aligned64<float>>;

}  // namespace

TEST_CASE("every float: each operation on a sample of all floats, the same bits on every instruction set") {
    constexpr std::uint32_t kStride = 509;  // the exponents with their signs, and all low bits
    for (const FloatOperation& operation : every_float::kOperations) {
        CAPTURE(std::string(operation.name));
        FloatComparison comparison(operation);
        Floats x(kBlockFloats);
        std::uint64_t next = 0;
        while (next <= 0xffffffffu) {
            for (float& value : x) {
                value = std::bit_cast<float>(static_cast<std::uint32_t>(next));
                next += kStride * 16;
            }
            const char* isa = comparison.first_difference(x.data());
            const std::string differs = isa ? isa : "none";
            CHECK(differs == "none");
        }
    }
}

TEST_CASE("every half is the same float on every instruction set") {
    constexpr std::size_t kHalves = 1u << 16;
    std::vector<std::uint16_t, Aligned64<std::uint16_t>> halves(kHalves);
    for (std::size_t i = 0; i < kHalves; ++i) halves[i] = static_cast<std::uint16_t>(i);
    const float one = 1.0f;
    for (const Type type : {Type::f16, Type::bf16}) {
        const auto matmul = [&](const Kernels& k, float* out) {
            k.of(type).matmul({.panels = reinterpret_cast<const std::byte*>(halves.data()),
                               .panel_stride = kLanes * 2,
                               .n_rows = kHalves,
                               .n_cols = 1,
                               .panel_begin = 0,
                               .panel_end = kHalves / kLanes,
                               .operand = &one,
                               .seq_len = 1,
                               .bias = nullptr,
                               .out = out,
                               .out_stride = kHalves,
                               .epilogue = Epilogue::store,
                               .activation = Activation::none,
                               .canonical = true});
        };
        compare(kHalves, false, matmul);
        Guarded<float> got(kHalves);
        matmul(kernels_scalar, got.data());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < kHalves; ++i) {
            const double want = value_of(reinterpret_cast<const std::byte*>(halves.data()), i, type);
            wrong += std::isnan(want) ? !std::isnan(got[i]) : got[i] != want;
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("fused multiply-add, gates and residual sums over a grid of three floats") {
    const std::vector<float> a = grid(96, 1), b = grid(96, 2), c = grid(64, 3);
    // Row (i, j) of the matrix is (c[j], a[i]), a token (1, b[k]): c·1 is exact, and a·b is then added by one fma.
    const std::size_t n_rows = a.size() * c.size(), n_panels = n_rows / kLanes;
    Floats panels(n_rows * 2), rows(b.size() * kLanes), packed(b.size() * 2);
    for (std::size_t row = 0; row < n_rows; ++row) {
        float* const at = panels.data() + row / kLanes * 2 * kLanes + row % kLanes;
        at[0] = c[row % c.size()];
        at[kLanes] = a[row / c.size()];
    }
    for (std::size_t k = 0; k < b.size(); ++k) rows[k * kLanes] = 1.0f, rows[k * kLanes + 1] = b[k];
    std::size_t n = 0;
    for (const Epilogue epilogue : {Epilogue::store, Epilogue::add, Epilogue::gate})
        for (const Activation activation : {Activation::none, Activation::relu, Activation::silu}) {
            if (epilogue == Epilogue::add && activation != Activation::none) continue;
            const std::size_t n_out = epilogue == Epilogue::gate ? n_rows / 2 : n_rows;
            n += compare(n_out * b.size(), false, [&](const Kernels& k, float* out) {
                for (std::size_t i = 0; i < n_out * b.size(); ++i) out[i] = b[i % b.size()];
                for (std::uint32_t row = 0; row < b.size(); row += kRowBlock)
                    k.floats.pack(rows.data() + row * kLanes, kLanes, kRowBlock, 2, packed.data() + row * 2);
                k.of(Type::f32).matmul({.panels = reinterpret_cast<const std::byte*>(panels.data()),
                                        .panel_stride = 2 * kLanes * sizeof(float),
                                        .n_rows = static_cast<std::uint32_t>(n_out),
                                        .n_cols = 2,
                                        .panel_begin = 0,
                                        .panel_end = static_cast<std::uint32_t>(n_panels),
                                        .operand = packed.data(),
                                        .seq_len = static_cast<std::uint32_t>(b.size()),
                                        .bias = nullptr,
                                        .out = out,
                                        .out_stride = n_out,
                                        .epilogue = epilogue,
                                        .activation = activation,
                                        .canonical = true});
            });
        }
    CHECK(n == (4 * n_rows + 3 * (n_rows / 2)) * b.size());
}

TEST_CASE("divisions, merges, rotations, soft caps and norms over a grid of floats") {
    const std::vector<float> a = grid(240, 4), b = grid(240, 5), few = grid(36, 6);
    const auto n_a = static_cast<std::uint32_t>(a.size());
    for (const float cap : b)
        if (cap > 0 && cap < kInfinity)
            compare(a.size(), false, [&](const Kernels& k, float* out) {
                std::copy(a.begin(), a.end(), out);
                k.floats.softcap(out, a.size(), cap);
            });
    // o / l: rows of the same numerators, a denominator each.
    Floats o;
    for (std::uint32_t row = 0; row < kRowBlock; ++row) o.insert(o.end(), a.begin(), a.end());
    for (std::size_t row = 0; row + kRowBlock <= b.size(); row += kRowBlock)
        compare(o.size(), false, [&](const Kernels& k, float* out) {
            k.floats.attend_finish(b.data() + row, o.data(), kRowBlock, n_a, n_a, out, n_a);
        });
    // Two states of attention become one.
    for (const float m : few)
        for (const float chunk_m : few) {
            Floats ms(kRowBlock, m), chunk_ms(kRowBlock, chunk_m), ls(b.begin(), b.begin() + kRowBlock);
            const Floats chunk_ls(b.begin() + kRowBlock, b.begin() + 2 * kRowBlock), chunk_o(o.rbegin(), o.rend());
            compare(o.size() + 2 * kRowBlock, true, [&](const Kernels& k, float* out) {
                Floats m_now = ms, l_now = ls, o_now = o;
                k.floats.attend_merge({kRowBlock, n_a, m_now.data(), l_now.data(), o_now.data(), chunk_ms.data(),
                                       chunk_ls.data(), chunk_o.data()});
                std::copy(o_now.begin(), o_now.end(), out);
                std::copy(m_now.begin(), m_now.end(), out + o.size());
                std::copy(l_now.begin(), l_now.end(), out + o.size() + kRowBlock);
            });
        }
    // Pairs apply_sign by any "sine" and "cosine".
    Floats pairs, cosines(2 * few.size() * few.size()), sines(cosines.size());
    for (const float x0 : few)
        for (const float x1 : few) pairs.insert(pairs.end(), {x0, x1});
    for (const float cosine : few)
        for (const float sine : few) {
            std::fill(cosines.begin(), cosines.end(), cosine);
            std::fill(sines.begin(), sines.end(), sine);
            compare(pairs.size(), true, [&](const Kernels& k, float* out) {
                std::copy(pairs.begin(), pairs.end(), out);
                k.floats.rotate(out, cosines.data(), sines.data(), static_cast<std::uint32_t>(pairs.size()));
            });
        }
    // Norms of rows of one and of two elements.
    for (const float epsilon : {0.0f, 1e-5f, 0x1p-149f, 3e38f})
        for (const std::uint32_t n : {1u, 2u}) {
            compare(2 * a.size(), true, [&](const Kernels& k, float* out) {
                alignas(64) float x[kLanes] = {}, weight[kLanes] = {}, y[kLanes] = {};
                for (std::size_t i = 0; i < a.size(); ++i) {
                    x[0] = a[i], x[1] = b[i], weight[0] = b[i], weight[1] = 1.0f;
                    k.floats.rms_norm(x, n, weight, epsilon, y);
                    out[2 * i] = y[0];
                    k.floats.layer_norm(x, n, weight, weight, epsilon, y);
                    out[2 * i + 1] = y[0];
                }
            });
        }
    // Angles from positions and frequencies.
    for (const std::uint32_t pos : {0u, 1u, 3u, 511u, 65535u, (1u << 22) - 1})
        compare(4 * a.size(), false, [&](const Kernels& k, float* out) {
            k.floats.rope_table(pos, a.data(), n_a, 1.5f, out, out + 2 * a.size());
        });
}
