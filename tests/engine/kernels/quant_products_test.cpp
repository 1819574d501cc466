// Products of quantized weights against exact rational arithmetic: tests/golden/make_quants.py.
#include <doctest/doctest.h>

#include <string>

#include "engine/kernels/kernels.h"
#include "host/base/npy.h"
#include "tests/support/guarded.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

NpyArray golden(const std::string& name) { return read_npy(std::string(FOVEA_GOLDEN_DIR "/quants/") + name + ".npy"); }

template<class T>
Guarded<T> copied(std::span<const std::byte> bytes, std::size_t alignment) {
    Guarded<T> copy(bytes.size() / sizeof(T), Flush::end, alignment);
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    return copy;
}

}  // namespace

TEST_CASE(
    "matmul of every quantized type: the bits of exact arithmetic in the promised order, on every instruction set") {
    const NpyArray x = golden("x");
    const auto seq_len = static_cast<std::uint32_t>(x.shape[0]), n_cols = static_cast<std::uint32_t>(x.shape[1]);
    const Guarded<float> rows = copied<float>(x.data, 4);
    std::size_t n_tables = 0;
    const Kernels* const* tables = usable_kernels(n_tables);
    const std::pair<Type, std::string> kNames[] = {
        {Type::q8, "q8"},     {Type::q4, "q4"},         {Type::q6_k, "q6_k"},   {Type::q5_k, "q5_k"},
        {Type::q4_k, "q4_k"}, {Type::iq4_nl, "iq4_nl"}, {Type::mxfp4, "mxfp4"}, {Type::q3_k, "q3_k"},
        {Type::q2_k, "q2_k"}, {Type::iq4_xs, "iq4_xs"}, {Type::tq2_0, "tq2_0"}, {Type::q8_128, "q8_128"},
        {Type::q5, "q5"},     {Type::q4_1, "q4_1"},     {Type::q5_1, "q5_1"}};
    REQUIRE(std::size(kNames) == kQuantTypeCount);
    for (const auto& entry : kNames) {
        const Type type = entry.first;
        const std::string& name = entry.second;
        const NpyArray weights = golden(name), out = golden(name + "_out");
        const Guarded<std::byte> panels = copied<std::byte>(weights.data, 64);
        const Guarded<float> want = copied<float>(out.data, 4);
        REQUIRE(weights.shape[1] == panel_bytes(type, n_cols));
        for (std::size_t i = 0; i < n_tables; ++i) {
            const Kernels& k = *tables[i];
            CAPTURE(std::string(k.isa));
            CAPTURE(name);
            Guarded<std::byte> operand(operand_bytes(type, seq_len, n_cols), Flush::end, 4);
            for (std::uint32_t row = 0, block = row_block(seq_len); row < seq_len; row += block)
                k.pack(type, rows.data() + std::size_t{row} * n_cols, n_cols, nullptr,
                       {row, std::min(block, seq_len - row), seq_len}, n_cols, operand.data());
            Guarded<float> got(want.size());
            k.matmul(type, Matmul{.panels = panels.data(),
                                  .panel_stride = static_cast<std::size_t>(weights.shape[1]),
                                  .n_rows = static_cast<std::uint32_t>(out.shape[1]),
                                  .n_cols = n_cols,
                                  .panel_begin = 0,
                                  .panel_end = static_cast<std::uint32_t>(weights.shape[0]),
                                  .operand = operand.data(),
                                  .seq_len = seq_len,
                                  .bias = nullptr,
                                  .out = got.data(),
                                  .out_stride = static_cast<std::size_t>(out.shape[1]),
                                  .epilogue = Epilogue::store,
                                  .activation = Activation::none,
                                  .canonical = true});
            CHECK(same_bits(want, got));
        }
    }
}
