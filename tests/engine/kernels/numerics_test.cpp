// The results of a numerics version, as hashes: any change in an order of operations shows here, even one that all the
// instruction sets make together. Such a change raises kNumericsVersion, and these hashes are then made anew: the test
// prints what it found.
#include <doctest/doctest.h>

#include <string>

#include "fovea/session.h"
#include "tests/support/matmul_cases.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// FNV-1a (Fowler, Noll and Vo) over the words of the outputs, every NaN counted as the same.
class Hash {
public:
    void add(const Guarded<float>& x) {
        for (const float v : x) {
            const std::uint32_t word = v != v ? 0x7fc00000u : std::bit_cast<std::uint32_t>(v);
            for (int shift = 0; shift < 32; shift += 8) value_ = (value_ ^ (word >> shift & 0xff)) * 0x100000001b3u;
        }
    }
    [[nodiscard]] std::uint64_t value() const { return value_; }

private:
    std::uint64_t value_ = 0xcbf29ce484222325u;
};

Guarded<float> random_floats(std::size_t n, std::uint32_t seed) {
    Guarded<float> x(n);
    Random(seed).fill(x, Fill::wide);
    return x;
}

void hash_types(Hash& h, std::initializer_list<Type> types) {
    for (const Type type : types)
        for (const Epilogue epilogue : {Epilogue::store, Epilogue::add, Epilogue::gate})
            for (const Activation f :
                 {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
                const MatmulCase c{.n_rows = 40,
                                   .n_cols = 1100,
                                   .seq_len = 14,
                                   .epilogue = epilogue,
                                   .activation = epilogue == Epilogue::add ? Activation::none : f,
                                   .bias = true,
                                   .fill = Fill::wide};
                h.add(MatmulRun(c, type).run(kernels_scalar));
            }
}

void hash_matmul(Hash& h) { hash_types(h, {Type::f32, Type::f16, Type::bf16}); }

void hash_matmul_q(Hash& h) { hash_types(h, {Type::q8, Type::q4}); }

/// The packed bytes: quants, scales, and where sums start.
void hash_pack_q8(Hash& h) {
    for (const std::uint32_t n_cols : {7u, 64u, 172u, 1100u}) {
        const std::uint32_t n_rows = 1 + n_cols % kRowBlock;
        const Guarded<float> x = random_floats(std::size_t{n_rows} * n_cols, n_cols);
        Guarded<float> packed(static_cast<std::size_t>(operand_bytes(Type::q8, n_rows, n_cols)) / sizeof(float));
        kernels_scalar.floats.pack_q8(x.data(), n_cols, nullptr, n_rows, n_cols,
                                      reinterpret_cast<std::byte*>(packed.data()));
        h.add(packed);
    }
}

void hash_norms(Hash& h) {
    for (const std::uint32_t n : {5u, 16u, 100u, 1000u}) {
        Guarded<float> x(n), y(n), weight(n), bias(n);
        Random random(n);
        for (Guarded<float>* v : {&x, &weight, &bias}) random.fill(*v, Fill::plain);
        kernels_scalar.floats.rms_norm(x.data(), n, weight.data(), 1e-5f, y.data());
        h.add(y);
        kernels_scalar.floats.layer_norm(x.data(), n, weight.data(), bias.data(), 1e-5f, y.data());
        h.add(y);
        kernels_scalar.floats.layer_norm(x.data(), n, weight.data(), nullptr, 1e-5f, y.data());
        h.add(y);
    }
}

void hash_positions(Hash& h) {
    const std::uint32_t n_pairs = 64;
    const Guarded<float> frequency = random_floats(n_pairs, 3);
    Guarded<float> cos(2 * n_pairs), sin(2 * n_pairs), x = random_floats(2 * n_pairs, 4);
    for (const std::uint32_t pos : {0u, 1u, 1000u, 100003u, 20000001u}) {
        kernels_scalar.floats.rope_table(pos, frequency.data(), n_pairs, 1.1f, cos.data(), sin.data());
        kernels_scalar.floats.rotate(x.data(), cos.data(), sin.data(), 2 * n_pairs);
        for (const Guarded<float>* v : {&cos, &sin, &x}) h.add(*v);
    }
}

void hash_attention_over(Hash& h, std::initializer_list<Type> types) {
    for (const Type type : types)
        for (const float softcap : {0.0f, 20.0f})
            for (const std::uint32_t head_dim : {48u, 520u}) {
                const AttendCase c{{{0, 1}, {0, 700}, {3, 80}, {400, 1400}, {7, 7}}, head_dim, 24, softcap};
                const AttendRun run(c, type);
                const AttendState s = run.merged(kernels_scalar);
                for (const Guarded<float>* v : {&s.m, &s.l, &s.o}) h.add(*v);
                h.add(run.finished(kernels_scalar, s));
            }
}

void hash_attention(Hash& h) { hash_attention_over(h, {Type::f32, Type::f16, Type::q8}); }
void hash_attention_q4(Hash& h) { hash_attention_over(h, {Type::q4}); }

void hash_unary(Hash& h) {
    const Guarded<float> x = random_floats(20000, 6);
    Guarded<float> y(x.size());
    for (int f = 0; f < static_cast<int>(unary_of(Activation::tanh)); ++f) {
        kernels_scalar.floats.unary[f](x.data(), x.size(), y.data());
        h.add(y);
    }
    std::memcpy(y.data(), x.data(), x.size() * sizeof(float));
    kernels_scalar.floats.softcap(y.data(), y.size(), 30.0f);
    h.add(y);
}

/// As an activation: later than the others.
void hash_tanh(Hash& h) {
    const Guarded<float> x = random_floats(20000, 7);
    Guarded<float> y(x.size());
    kernels_scalar.floats.unary[static_cast<int>(unary_of(Activation::tanh))](x.data(), x.size(), y.data());
    h.add(y);
}

void hash_squared(Hash& h) {
    const Guarded<float> x = random_floats(20000, 8);
    Guarded<float> y(x.size());
    for (const Activation f : {Activation::relu2, Activation::quick_gelu}) {
        kernels_scalar.floats.unary[static_cast<int>(unary_of(f))](x.data(), x.size(), y.data());
        h.add(y);
    }
}

struct Golden {
    const char* what;
    void (*hash)(Hash&);
    std::uint64_t value;
};

constexpr std::uint32_t kGoldenVersion = 1;  // the kNumericsVersion that these belong to
constexpr Golden kGolden[] = {
    {"matmul", hash_matmul, 9691826245724270609u},
    {"norms", hash_norms, 16606440433378860096u},
    {"positions", hash_positions, 16029263975363803177u},
    {"attention", hash_attention, 14516452316011059178u},
    {"attention_q4", hash_attention_q4, 16880279610740024918u},
    {"unary", hash_unary, 13602548799849657278u},
    {"matmul_q", hash_matmul_q, 11998844870652915138u},
    {"pack_q8", hash_pack_q8, 9072107090720295866u},
    {"tanh", hash_tanh, 8639937238622630229u},
    {"squared", hash_squared, 10065445735983357656u},
};

}  // namespace

TEST_CASE("numerics: results are those of this numerics version") {
    CHECK(kNumericsVersion == kGoldenVersion);
    for (const Golden& golden : kGolden) {
        Hash hash;
        golden.hash(hash);
        CAPTURE(std::string(golden.what));
        CHECK(hash.value() == golden.value);
    }
}
