// Every kernel of every table gives the scalar bits, and stays inside its buffers.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/support/matmul_cases.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr Flush kFlushes[] = {Flush::begin, Flush::end};
constexpr Fill kFills[] = {Fill::plain, Fill::wide, Fill::hostile};

/// Whether this one of the many products and attentions is computed: of seven one in an emulator and under sanitizers.
[[nodiscard]] bool is_taken([[maybe_unused]] std::uint32_t seed) {
#if defined(FOVEA_EMULATED) || defined(FOVEA_SANITIZED)
    return seed % 7 == 0;
#else
    return true;
#endif
}

std::vector<const Kernels*> tables() {
    std::size_t n = 0;
    const Kernels* const* first = usable_kernels(n);
    return {first, first + n};
}

/// Whether two tables have a kernel for the same types: `of` gives that of one.
template<class Of>
bool has_same_types(const Kernels& a, const Kernels& b, Of of) {
    return std::ranges::all_of(kTypes, [&](Type type) { return !of(a, type) == !of(b, type); });
}

Guarded<float> random_floats(std::size_t n, Fill fill, std::uint32_t seed, Flush flush = Flush::end) {
    Guarded<float> x(n, flush);
    Random(seed).fill(x, fill);
    return x;
}

Guarded<float> copy_of(const Guarded<float>& x, Flush flush) {
    Guarded<float> copy(x.size(), flush);
    std::memcpy(copy.data(), x.data(), x.size() * sizeof(float));
    return copy;
}

// ---- matmul --------------------------------------------------------------------------------------------------------

std::string words(const MatmulCase& c, Type type) {
    const auto n = [](auto x) { return std::to_string(static_cast<unsigned>(x)); };
    return "type " + n(type) + ", " + n(c.n_rows) + " rows, " + n(c.n_cols) + " cols, seq_len " + n(c.seq_len) +
           ", finish " + n(c.epilogue) + ", activation " + n(c.activation) + ", bias " + n(c.bias) + ", canonical " +
           n(c.canonical) + ", skip " + n(c.skip_front) + " and " + n(c.skip_back) + ", fill " + n(c.fill);
}

void check_matmul(const Kernels& k, const MatmulCase& c, Type type, std::uint32_t seed) {
    if (!is_taken(seed)) return;
    const MatmulRun run(c, type, seed);
    CAPTURE(words(c, type));
    const Guarded<float> want = run.run(kernels_scalar);
    for (const Flush flush : kFlushes) {
        const Guarded<float> got = run.run(k, flush);
        CHECK((c.canonical ? same_bits(want, got) : same_bits_or_nan(want, got)));
    }
}

void check_matmul(const Kernels& k) {
    std::uint32_t seed = 0;
    for (const Type type : kTypes) {
        REQUIRE((k.of(type).matmul != nullptr));
        // Widths around the column block; heights around panels and groups of panels; every count of operand rows.
        for (const std::uint32_t n_cols : {1u, 2u, 3u, 15u, 64u, 511u, 512u, 513u, 1023u, 1024u, 1025u, 1600u})
            for (const std::uint32_t n_rows : {1u, 16u, 17u, 96u, 145u})
                check_matmul(k, {.n_rows = n_rows, .n_cols = n_cols, .seq_len = 1 + n_cols % 3}, type, ++seed);
        for (std::uint32_t n_rows = 1; n_rows <= 160; n_rows += 7)
            for (const std::uint32_t seq_len : {1u, 2u, 13u})
                check_matmul(k, {.n_rows = n_rows, .n_cols = 40, .seq_len = seq_len, .extra_stride = n_rows % 5}, type,
                             ++seed);
        for (std::uint32_t seq_len = 1; seq_len <= 25; ++seq_len)
            check_matmul(k, {.n_rows = 100, .n_cols = 33, .seq_len = seq_len, .extra_stride = 3}, type, ++seed);
        // Tiles of rows that share weights, over more columns than they take at a time; and blocks of rows beyond them.
        for (const std::uint32_t seq_len : {5u, 7u, 11u, 13u, 16u, 19u, 23u, 24u, 26u, 37u, 49u})
            check_matmul(k, {.n_rows = 72, .n_cols = 601 + seq_len, .seq_len = seq_len, .bias = true}, type, ++seed);
        check_matmul(k, {.n_rows = 40, .n_cols = 150, .seq_len = 205, .extra_stride = 1}, type, ++seed);
        // Every way to finish.
        for (const Epilogue epilogue : {Epilogue::store, Epilogue::add, Epilogue::gate})
            for (int number = 0; number < kActivationCount; ++number)
                for (const bool bias : {false, true})
                    for (const Fill fill : kFills) {
                        const auto activation = static_cast<Activation>(number);
                        if (epilogue == Epilogue::add && activation != Activation::none) continue;
                        for (const std::uint32_t seq_len : {1u, 14u})
                            for (const bool canonical : {false, true})
                                check_matmul(k,
                                             {.n_rows = 77,
                                              .n_cols = 50,
                                              .seq_len = seq_len,
                                              .epilogue = epilogue,
                                              .activation = activation,
                                              .bias = bias,
                                              .canonical = canonical,
                                              .extra_stride = 9,
                                              .fill = fill},
                                             type, ++seed);
                    }
        // What several threads, each with panels of its own, are given; few rows of long panels read one after another.
        for (const Epilogue epilogue : {Epilogue::store, Epilogue::add, Epilogue::gate})
            for (const bool is_long : {false, true})
                for (std::uint32_t front = 0; front <= 9; ++front)
                    for (std::uint32_t back = 0; back <= 9 - front; ++back)
                        check_matmul(k,
                                     {.n_rows = 16 * 10 - 3,
                                      .n_cols = is_long ? 300u : 20u,
                                      .seq_len = is_long ? 1 + front % 3 : 1 + 5 * (front % 3),
                                      .epilogue = epilogue,
                                      .bias = true,
                                      .skip_front = front,
                                      .skip_back = back},
                                     type, ++seed);
    }
}

void check_pack(const Kernels& k) {
    for (std::uint32_t n_rows = 1; n_rows <= kRowBlock; ++n_rows)
        for (const std::uint32_t n_cols : {1u, 2u, 7u, 8u, 15u, 16u, 17u, 31u, 33u, 64u, 100u, 515u})
            for (const Flush flush : kFlushes) {
                CAPTURE(n_rows);
                CAPTURE(n_cols);
                // The last row ends with the buffer: its padding is not the kernel's to read.
                const std::size_t stride = round_up(n_cols, kLanes);
                const Guarded<float> x = random_floats((n_rows - 1) * stride + n_cols, Fill::hostile, n_cols, flush);
                Guarded<float> want(std::size_t{n_rows} * n_cols, flush), got(want.size(), flush);
                kernels_scalar.floats.pack(x.data(), stride, n_rows, n_cols, want.data());
                k.floats.pack(x.data(), stride, n_rows, n_cols, got.data());
                CHECK(same_bits(want, got));
            }
}

/// Rows of ordinary numbers, of odd ones, and groups that are all tiny, all zero, or hold one infinity or NaN.
void check_pack_quants(const Kernels& k, Type type) {
    const std::uint32_t broad[] = {1u, 17u, 63u, 64u, 65u, 100u, 127u, 128u, 129u, 143u, 192u, 193u, 256u, 515u};
    const std::uint32_t others[] = {1u, 3u, 15u, 16u, 17u, 31u, 32u, 33u, 48u, 63u, 64u, 65u, 100u, 515u};
    for (std::uint32_t n_rows = 1; n_rows <= kRowBlock; ++n_rows)
        for (const std::uint32_t n_cols : type == Type::q8_128 ? broad : others)
            for (const Fill fill : kFills)
                for (const Flush flush : kFlushes) {
                    CAPTURE(n_rows);
                    CAPTURE(n_cols);
                    const std::size_t stride = round_up(n_cols, kLanes);
                    Guarded<float> x = random_floats((n_rows - 1) * stride + n_cols, fill, n_cols, flush);
                    for (std::size_t i = 0; i < n_cols; ++i) {
                        if (n_rows > 1) x[stride + i] = 0x1p-101f * static_cast<float>(i % 3);
                        if (n_rows > 2) x[2 * stride + i] = 1.0f;
                        if (n_rows > 3) x[3 * stride + i] = 0x1p-100f * static_cast<float>(i % 2);
                        if (n_rows > 4) x[4 * stride + i] = static_cast<float>(i) + 0.5f;  // ties
                    }
                    if (n_rows > 2) x[2 * stride + n_cols / 2] = n_rows % 2 ? kInfinity : kNanFloat;
                    // Two thirds of the shapes have scales; products overflow, and sink below the smallest normal
                    // number.
                    Guarded<float> scales(n_cols, flush);
                    for (std::size_t i = 0; i < n_cols; ++i)
                        scales[i] = std::ldexp(1.0f, i % 11 == 10   ? 127
                                                     : i % 13 == 12 ? -126
                                                                    : static_cast<int>(i % 7) - 3);
                    const float* columns = (n_rows + n_cols) % 3 == 0 ? nullptr : scales.data();
                    const auto n_bytes = static_cast<std::size_t>(operand_bytes(type, n_rows, n_cols));
                    Guarded<std::byte> want(n_bytes, flush, 4), got(n_bytes, flush, 4);
                    kernels_scalar.pack(type, x.data(), stride, columns, {0, n_rows, n_rows}, n_cols, want.data());
                    k.pack(type, x.data(), stride, columns, {0, n_rows, n_rows}, n_cols, got.data());
                    CHECK(same_bits(want, got));
                    if (!columns) continue;
                    for (std::size_t i = 0; i < x.size(); ++i)
                        x[i] = i % stride < n_cols ? x[i] * scales[i % stride] : x[i];
                    kernels_scalar.pack(type, x.data(), stride, nullptr, {0, n_rows, n_rows}, n_cols, want.data());
                    CHECK(same_bits(want, got));
                }
}

// ---- norms and positions -------------------------------------------------------------------------------------------

void check_norms(const Kernels& k) {
    for (std::uint32_t n = 1; n <= 1100; n += n < 70 ? 1 : 57)
        for (const Fill fill : kFills)
            for (const Flush flush : kFlushes)
                for (const bool in_place : {false, true}) {
                    CAPTURE(n);
                    CAPTURE(static_cast<int>(fill));
                    CAPTURE(in_place);
                    const Guarded<float> x = random_floats(n, fill, n, flush),
                                         weight = random_floats(n, fill, n + 1, flush),
                                         bias = random_floats(n, fill, n + 2, flush);
                    const auto check = [&](auto norm) {
                        Guarded<float> want = copy_of(x, flush), got = copy_of(x, flush);
                        Guarded<float> fresh(n, flush);
                        norm(kernels_scalar, want.data(), want.data());
                        norm(k, got.data(), in_place ? got.data() : fresh.data());
                        CHECK(same_bits_or_nan(want, in_place ? got : fresh));
                    };
                    check([&](const Kernels& t, const float* from, float* to) {
                        t.floats.rms_norm(from, n, weight.data(), 1e-5f, to);
                    });
                    check([&](const Kernels& t, const float* from, float* to) {
                        t.floats.layer_norm(from, n, weight.data(), bias.data(), 1e-12f, to);
                    });
                    check([&](const Kernels& t, const float* from, float* to) {
                        t.floats.layer_norm(from, n, weight.data(), nullptr, 1e-5f, to);
                    });
                }
}

void check_rope_table(const Kernels& k) {
    for (std::uint32_t n_pairs = 1; n_pairs <= 70; ++n_pairs)
        for (const std::uint32_t pos : {0u, 1u, 77u, 4096u, 1000003u, 16777217u, 0xffffffffu})
            for (const Flush flush : kFlushes) {
                CAPTURE(n_pairs);
                CAPTURE(pos);
                const Guarded<float> frequency =
                    random_floats(n_pairs, pos == 77 ? Fill::hostile : Fill::plain, n_pairs, flush);
                Guarded<float> want_cos(2 * n_pairs, flush), want_sin(2 * n_pairs, flush);
                Guarded<float> cos(2 * n_pairs, flush), sin(2 * n_pairs, flush);
                kernels_scalar.floats.rope_table(pos, frequency.data(), n_pairs, 1.25f, want_cos.data(),
                                                 want_sin.data());
                k.floats.rope_table(pos, frequency.data(), n_pairs, 1.25f, cos.data(), sin.data());
                CHECK(same_bits_or_nan(want_cos, cos));
                CHECK(same_bits_or_nan(want_sin, sin));
            }
}

void check_rotate(const Kernels& k) {
    for (std::uint32_t n = 2; n <= 140; n += 2)
        for (const Fill fill : kFills)
            for (const Flush flush : kFlushes) {
                CAPTURE(n);
                const Guarded<float> x = random_floats(n, fill, n, flush), cos = random_floats(n, fill, n + 1, flush),
                                     sin = random_floats(n, fill, n + 2, flush);
                Guarded<float> want = copy_of(x, flush), got = copy_of(x, flush);
                kernels_scalar.floats.rotate(want.data(), cos.data(), sin.data(), n);
                k.floats.rotate(got.data(), cos.data(), sin.data(), n);
                CHECK(same_bits_or_nan(want, got));
            }
}

// ---- the cache -----------------------------------------------------------------------------------------------------

void check_writes(const Kernels& k) {
    const auto index = [](Type type) { return static_cast<int>(type); };
    REQUIRE(has_same_types(k, kernels_scalar, [&](auto& t, Type type) { return t.floats.write_key[index(type)]; }));
    REQUIRE(has_same_types(k, kernels_scalar, [&](auto& t, Type type) { return t.floats.write_value[index(type)]; }));
    for (const Type type : kCacheTypes)
        for (std::uint32_t n = 1; n <= 100; n += n < 35 ? 1 : 13)
            for (const Flush flush : kFlushes) {
                const auto t = static_cast<int>(type);
                CAPTURE(t);
                CAPTURE(n);
                const Guarded<float> x = random_floats(n, Fill::hostile, n, flush);
                const auto bytes = static_cast<std::size_t>(key_panel_bytes(type, n));
                Guarded<std::byte> want(bytes, flush, kCacheAlignment), got(bytes, flush, kCacheAlignment);
                const auto value_bytes = static_cast<std::size_t>(value_panel_bytes(type, n));
                Guarded<std::byte> want_values(value_bytes, flush, kCacheAlignment);
                Guarded<std::byte> got_values(value_bytes, flush, kCacheAlignment);
                // Not in order: lane 0 must clear what the others hold, and the others must leave it.
                for (const std::uint32_t lane : {3u, 15u, 0u, 1u, 8u, 15u}) {
                    kernels_scalar.floats.write_key[t](x.data(), n, lane, want.data());
                    k.floats.write_key[t](x.data(), n, lane, got.data());
                    CHECK(same_bits(want, got));
                    kernels_scalar.floats.write_value[t](x.data(), n, lane, want_values.data());
                    k.floats.write_value[t](x.data(), n, lane, got_values.data());
                    CHECK(same_bits(want_values, got_values));
                }
            }
}

// ---- attention -----------------------------------------------------------------------------------------------------

/// n rows as in a prompt: row i sees its own position and those before it, `window` of them at most.
std::vector<Window> causal(std::uint32_t pos, std::uint32_t n, std::uint32_t window = ~0u) {
    std::vector<Window> rows;
    for (std::uint32_t last = pos + 1; last <= pos + n; ++last)
        rows.push_back({last > window ? last - window : 0, last});
    return rows;
}

std::vector<AttendCase> attend_cases() {
    std::vector<AttendCase> cases, masked;
    for (std::uint32_t n_rows = 1; n_rows <= kRowBlock; ++n_rows)
        for (const std::uint32_t pos : {0u, 9u, 60u, 200u}) cases.push_back({causal(pos, n_rows), 20, 24});
    for (const std::uint32_t last :
         {1u, 15u, 16u, 17u, 63u, 64u, 65u, 127u, 128u, 511u, 512u, 513u, 576u, 577u, 1025u, 1300u})
        for (const std::uint32_t first : {0u, 1u, 40u, 64u, 500u, 512u, 575u})
            if (first < last) cases.push_back({{{first, last}, {0, last}, {first, last}}, 16, 16});
    for (const std::uint32_t head_dim : {1u, 2u, 8u, 17u, 64u, 100u, 513u, 600u})
        for (const std::uint32_t value_head_dim : {1u, 15u, 16u, 33u, 64u, 128u})
            cases.push_back({causal(70, 5), head_dim, value_head_dim});
    for (const std::uint32_t window : {1u, 3u, 64u, 100u, 512u})
        for (const std::uint32_t pos : {5u, 63u, 130u, 700u}) cases.push_back({causal(pos, 12, window), 32, 32});
    // Rows that see nothing, nothing here, or a tile apart from one another.
    cases.push_back({{{0, 0}}, 16, 16});
    cases.push_back({{{30, 30}, {200, 100}}, 16, 16});
    cases.push_back({{{30, 30}, {0, 70}, {90, 20}}, 16, 16});
    cases.push_back({{{0, 10}, {300, 310}, {510, 515}, {600, 700}, {0, 1}}, 16, 16});
    const std::size_t shapes = cases.size();
    for (std::size_t i = 0; i < shapes; i += 3) {
        AttendCase c = cases[i];
        c.softcap = i % 2 ? 30.0f : 0.5f;
        cases.push_back(c);
        c.softcap = 0.0f;
        c.score_size = 100.0f;  // some weights underflow to 0
        cases.push_back(c);
        c.fill = Fill::wide;
        cases.push_back(c);
        c.fill = Fill::hostile;
        cases.push_back(c);
    }
    for (std::size_t i = 0; i < cases.size(); i += 2) {
        AttendCase c = cases[i];
        c.masked = true;
        if (i < shapes || i % 10 == 0) masked.push_back(c);
    }
    cases.insert(cases.end(), masked.begin(), masked.end());
    for (std::size_t i = 0, n = cases.size(); i < n; i += 5) {
        cases.push_back(cases[i]);
        cases.back().sloped = true;
    }
    // NaN that only the later rows see: the earlier ones must not be touched by it.
    cases.push_back({causal(60, 12), 16, 32, 0.0f, Fill::plain, 1.0f, {66}, {}});
    cases.push_back({causal(60, 12), 16, 32, 0.0f, Fill::plain, 1.0f, {}, {66}});
    cases.push_back({causal(60, 12), 16, 32, 50.0f, Fill::plain, 1.0f, {3}, {66, 70}});
    // NaN values under weights that underflow to 0.
    cases.push_back({causal(500, 12), 16, 32, 0.0f, Fill::plain, 4000.0f, {}, {1, 64, 65, 300}});
    return cases;
}

void check_attend(const Kernels& k) {
    REQUIRE(has_same_types(k, kernels_scalar, [](auto& t, Type type) { return t.of(type).attend; }));
    REQUIRE(has_same_types(k, kernels_scalar, [](auto& t, Type type) { return t.of(type).attend_weights; }));
    std::uint32_t seed = 0;
    for (const Type type : kCacheTypes)
        for (const AttendCase& c : attend_cases()) {
            if (!is_taken(++seed)) continue;
            const AttendRun run(c, type, seed);
            CAPTURE(seed);
            CAPTURE(static_cast<int>(type));
            CAPTURE(c.rows.size());
            CAPTURE(c.rows[0].first);
            CAPTURE(c.rows[0].last);
            CAPTURE(c.head_dim);
            CAPTURE(c.value_head_dim);
            CAPTURE(c.softcap);
            CAPTURE(static_cast<int>(c.fill));
            for (std::uint32_t i = 0; i < run.n_chunks(); ++i) {
                CAPTURE(i);
                const Flush flush = kFlushes[seed % 2];
                const AttendState want = run.chunk(kernels_scalar, i), got = run.chunk(k, i, flush);
                CHECK(same_bits_or_nan(want.m, got.m));
                CHECK(same_bits_or_nan(want.l, got.l));
                CHECK(same_bits_or_nan(want.o, got.o));
                CHECK(same_bits(run.finished(kernels_scalar, want), run.finished(k, got)));
            }
            AttendState want = run.merged(kernels_scalar), got = run.merged(k);
            CHECK(same_bits_or_nan(want.m, got.m));
            CHECK(same_bits_or_nan(want.l, got.l));
            CHECK(same_bits_or_nan(want.o, got.o));
            CHECK(same_bits(run.finished(kernels_scalar, want, 5), run.finished(k, got, 5)));
            CHECK(same_bits(run.weights(kernels_scalar, want), run.weights(k, got, kFlushes[seed % 2])));
        }
}

/// Merge and finish on states of their own making: zeros, infinities and NaN in every place.
void check_merge_and_finish(const Kernels& k) {
    for (std::uint32_t n_rows = 1; n_rows <= kRowBlock; ++n_rows)
        for (const std::uint32_t dim : {1u, 16u, 31u, 64u, 128u})
            for (const Fill fill : kFills)
                for (std::uint32_t seed = 0; seed < 8; ++seed) {
                    CAPTURE(n_rows);
                    CAPTURE(dim);
                    CAPTURE(seed);
                    const auto stride = static_cast<std::uint32_t>(round_up(dim, kLanes));
                    const auto floats = [&](std::size_t n, std::uint32_t which) {
                        return random_floats(n, fill, 100 * seed + which);
                    };
                    Guarded<float> chunk_m = floats(n_rows, 0), chunk_l = floats(n_rows, 1);
                    const Guarded<float> chunk_o = floats(n_rows * stride, 2);
                    Guarded<float> m = floats(n_rows, 3), l = floats(n_rows, 4);
                    const Guarded<float> o = floats(n_rows * stride, 5);
                    if (seed % 4 == 1) l[n_rows / 2] = 0.0f, m[n_rows / 2] = -kInfinity;
                    if (seed % 4 == 2) chunk_l[n_rows / 2] = 0.0f, chunk_m[n_rows / 2] = -kInfinity;
                    const auto run = [&](const Kernels& t, AttendState& s) {
                        std::memcpy(s.m.data(), m.data(), n_rows * sizeof(float));
                        std::memcpy(s.l.data(), l.data(), n_rows * sizeof(float));
                        std::memcpy(s.o.data(), o.data(), o.size() * sizeof(float));
                        t.floats.attend_merge(AttendMerge{.n_rows = n_rows,
                                                          .value_stride = stride,
                                                          .m = s.m.data(),
                                                          .l = s.l.data(),
                                                          .o = s.o.data(),
                                                          .chunk_m = chunk_m.data(),
                                                          .chunk_l = chunk_l.data(),
                                                          .chunk_o = chunk_o.data()});
                    };
                    AttendState want(n_rows, stride, Flush::end), got(n_rows, stride, kFlushes[seed % 2]);
                    run(kernels_scalar, want);
                    run(k, got);
                    CHECK(same_bits_or_nan(want.m, got.m));
                    CHECK(same_bits_or_nan(want.l, got.l));
                    CHECK(same_bits_or_nan(want.o, got.o));
                    const std::size_t out_stride = dim + seed;
                    Guarded<float> want_out((n_rows - 1) * out_stride + dim), out(want_out.size(), kFlushes[seed % 2]);
                    kernels_scalar.floats.attend_finish(l.data(), o.data(), n_rows, dim, stride, want_out.data(),
                                                        out_stride);
                    k.floats.attend_finish(l.data(), o.data(), n_rows, dim, stride, out.data(), out_stride);
                    CHECK(same_bits(want_out, out));
                }
}

// ---- one value at a time (every float: unary_test.cpp) -------------------------------------------------------------

void check_unary_sizes(const Kernels& k) {
    for (std::size_t n = 0; n <= 70; ++n)
        for (const Flush flush : kFlushes) {
            const Guarded<float> x = random_floats(n, Fill::hostile, static_cast<std::uint32_t>(n), flush);
            CAPTURE(n);
            for (int f = 0; f < kUnaryCount; ++f) {
                CAPTURE(f);
                Guarded<float> want(n, flush), got(n, flush), in_place = copy_of(x, flush);
                kernels_scalar.floats.unary[f](x.data(), n, want.data());
                k.floats.unary[f](x.data(), n, got.data());
                k.floats.unary[f](in_place.data(), n, in_place.data());
                CHECK(same_bits(want, got));
                CHECK(same_bits(want, in_place));
            }
            for (const float cap : {30.0f, 0.1f, kInfinity}) {
                Guarded<float> want = copy_of(x, flush), got = copy_of(x, flush);
                kernels_scalar.floats.softcap(want.data(), n, cap);
                k.floats.softcap(got.data(), n, cap);
                CHECK(same_bits(want, got));
            }
        }
}

/// A kernel that is added to the struct does not compile here until it has a line of its own.
void check_table(const Kernels& k) {
    const auto& [isa, needs, floats, quants, tiles] = k;
    const auto& [types, pack, pack_q8, pack_broad, rms_norm, layer_norm, rope_table, rotate, write_key, write_value,
                 attend_merge, attend_finish, unary, softcap, convolve, update_state] = floats;
    const auto& [matmul, attend, attend_weights] = types[0];
    CAPTURE(std::string(k.isa));
    CHECK(covers(detect_features(), needs));
    REQUIRE((matmul && attend && attend_weights));
    for (const TypeKernels& of : quants.types) REQUIRE(bool(of.matmul != nullptr));
    REQUIRE((pack && pack_q8 && pack_broad && rms_norm && layer_norm && rope_table && rotate));
    REQUIRE((write_key[0] && write_value[0] && attend_merge && attend_finish && unary[0] && softcap && convolve &&
             update_state));
    check_matmul(k);
    check_pack(k);
    check_pack_quants(k, Type::q8);
    check_pack_quants(k, Type::q8_128);
    check_norms(k);
    check_rope_table(k);
    check_rotate(k);
    check_writes(k);
    check_attend(k);
    check_merge_and_finish(k);
    check_unary_sizes(k);
}

}  // namespace

TEST_CASE("row_block: as few blocks as can be, none larger than kRowBlock, none empty, of one size but for the last") {
    for (std::uint32_t n_rows = 1; n_rows <= 2000; ++n_rows) {
        CAPTURE(n_rows);
        const std::uint32_t block = row_block(n_rows), n_blocks = (n_rows + kRowBlock - 1) / kRowBlock;
        CHECK(block <= kRowBlock);
        CHECK(block * n_blocks >= n_rows);
        CHECK(block * (n_blocks - 1) < n_rows);
        if (n_rows <= kFewRows) CHECK(block * n_blocks - n_rows < n_blocks);
    }
}

TEST_CASE("kernels: every instruction set gives the scalar bits") {
    for (const Kernels* k : tables())
        if (!k->tiles) check_table(*k);  // else the next table's functions, beside those of tiles_test.cpp
}

TEST_CASE("kernels: tables are listed best first and found by name") {
    const auto all = tables();
    REQUIRE_FALSE(all.empty());
    CHECK(all.back() == &kernels_scalar);
    CHECK(find_kernels(nullptr, true) == all.front());
    for (const Kernels* k : all) CHECK(find_kernels(k->isa) == k);
    for (const char* none : {"", "scala", "scalars", "avx1024"}) CHECK(find_kernels(none) == nullptr);
    const CpuFeatures nothing;
    CHECK(covers(nothing, kernels_scalar.needs));
    for (const Kernels* k : all)
        if (k != &kernels_scalar) CHECK_FALSE(covers(nothing, k->needs));
}
