// The kernels of recurrent parts: every instruction set has the scalar bits, at every tail and over guard pages.
#include <doctest/doctest.h>

#include <cstring>

#include "tests/support/kernel_cases.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

[[nodiscard]] bool same(const Guarded<float>& a, const Guarded<float>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct ConvolveCase {
    std::uint32_t n_rows, n_channels, n_taps;
    bool bias, gated, past;
};

void compare(const Kernels& k, const ConvolveCase& c, Fill fill, std::uint32_t seed) {
    Random random(seed);
    const std::size_t stride = c.n_channels + seed % 3, kept = (c.n_taps - 1) * std::size_t{c.n_channels};
    const std::size_t rows = (c.n_rows - 1) * stride + c.n_channels;
    Guarded<float> x(rows), factor(rows), after(rows), kernel(c.n_taps * std::size_t{c.n_channels}), bias(c.n_channels);
    Guarded<float> past(kept), want_kept(kept), got_kept(kept), want(rows), got(rows);
    for (Guarded<float>* each : {&x, &factor, &after, &kernel, &bias, &past}) random.fill(*each, fill);
    std::fill(want.begin(), want.end(), 0.5f), std::fill(got.begin(), got.end(), 0.5f);
    Convolve call{.x = x.data(),
                  .factor = c.gated ? factor.data() : nullptr,
                  .output_factor = c.gated ? after.data() : nullptr,
                  .x_stride = stride,
                  .n_rows = c.n_rows,
                  .n_channels = c.n_channels,
                  .n_taps = c.n_taps,
                  .kernel = kernel.data(),
                  .kernel_stride = c.n_channels,
                  .bias = c.bias ? bias.data() : nullptr,
                  .past = c.past ? past.data() : nullptr,
                  .kept = want_kept.data(),
                  .out = want.data(),
                  .out_stride = stride};
    kernels_scalar.floats.convolve(call);
    call.kept = got_kept.data(), call.out = got.data();
    k.floats.convolve(call);
    CHECK(same(want, got));
    CHECK(same(want_kept, got_kept));
    if (!c.past) return;
    std::copy(past.begin(), past.end(), got_kept.begin());  // what is kept may lie where the past is
    call.past = got_kept.data();
    k.floats.convolve(call);
    CHECK(same(want, got));
    CHECK(same(want_kept, got_kept));
}

enum class Rule : std::uint8_t { space, delta, delta_by_dim, selective };

struct StateCase {
    std::uint32_t n_rows, key_dim, n_values;
    Rule rule;
    bool from;
};

void compare(const Kernels& k, const StateCase& c, Fill fill, std::uint32_t seed) {
    Random random(seed);
    const std::size_t stride = c.key_dim + c.n_values + seed % 2, rows = (c.n_rows - 1) * stride;
    const bool selective = c.rule == Rule::selective, by_dim = c.rule == Rule::delta_by_dim;
    const std::size_t own = selective ? c.n_values
                            : by_dim  ? c.key_dim
                                      : 1,
                      exponents = (c.key_dim - 1) * stride + c.n_values;
    Guarded<float> query(rows + c.key_dim), key(rows + c.key_dim), value(rows + c.n_values), decay(c.n_rows * own),
        rate(c.n_rows * own), skip(own), exponent(exponents);
    const std::size_t n_state = std::size_t{c.key_dim} * kLanes;
    Guarded<float> from(n_state, Flush::end, 64), want_state(n_state, Flush::end, 64),
        got_state(n_state, Flush::end, 64);
    Guarded<float> want(rows + c.n_values), got(rows + c.n_values);
    for (Guarded<float>* each : {&query, &key, &value, &decay, &rate, &skip, &exponent, &from})
        random.fill(*each, fill);
    for (std::size_t i = 0; i < n_state; ++i)
        if (i % kLanes >= c.n_values) from[i] = 0.0f;
    std::fill(want.begin(), want.end(), 0.5f), std::fill(got.begin(), got.end(), 0.5f);
    UpdateState call{.query = query.data(),
                     .key = key.data(),
                     .value = value.data(),
                     .stride = stride,
                     .decay = selective ? nullptr : decay.data(),
                     .rate = rate.data(),
                     .scalar_stride = own,
                     .skip = c.rule == Rule::delta || by_dim ? nullptr : skip.data(),
                     .exponent = selective ? exponent.data() : nullptr,
                     .exponent_stride = stride,
                     .decays_dims = by_dim,
                     .from = c.from ? from.data() : nullptr,
                     .state = want_state.data(),
                     .out = want.data(),
                     .out_stride = stride,
                     .n_rows = c.n_rows,
                     .key_dim = c.key_dim,
                     .n_values = c.n_values};
    kernels_scalar.floats.update_state(call);
    call.state = got_state.data(), call.out = got.data();
    k.floats.update_state(call);
    CHECK(same(want, got));
    for (std::size_t i = 0; i < n_state; ++i) {  // a NaN of a state may be any
        if (want_state[i] != want_state[i] && got_state[i] != got_state[i]) continue;
        CHECK(std::memcmp(&want_state[i], &got_state[i], sizeof(float)) == 0);
    }
}

}  // namespace

TEST_CASE("recurrence: every instruction set convolves and updates states as scalar does") {
    std::size_t n = 0;
    const Kernels* const* tables = usable_kernels(n);
    std::uint32_t seed = 0;
    for (std::size_t i = 0; i + 1 < n; ++i) {
        CAPTURE(tables[i]->isa);
        for (const Fill fill : {Fill::plain, Fill::wide})
            for (const std::uint32_t width : {1u, 15u, 16u, 17u, 40u})
                for (const std::uint32_t n_rows : {1u, 2u, 5u}) {
                    for (const std::uint32_t n_taps : {1u, 2u, 4u, 7u})
                        for (unsigned bits = 0; bits < 8; ++bits)
                            compare(
                                *tables[i],
                                ConvolveCase{n_rows, width, n_taps, bits % 2 != 0, bits / 2 % 2 != 0, bits / 4 != 0},
                                fill, ++seed);
                    if (width > kLanes) continue;
                    for (const std::uint32_t key_dim : {1u, 3u, 4u, 6u, 7u, 33u})
                        for (const Rule rule : {Rule::space, Rule::delta, Rule::delta_by_dim, Rule::selective})
                            for (const bool from : {false, true})
                                compare(*tables[i], StateCase{n_rows, key_dim, width, rule, from}, fill, ++seed);
                }
    }
}
