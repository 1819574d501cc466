// Attention's kernels on one thread, heads of 64, every instruction set and cache type: a causal prefill of one head
// beside the FMA peak, one token of a model of 90 key-value heads (SmolLM2-135M's 30 layers of 3, each with 3 query
// heads) beside the read bandwidth over its cache.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "bench/suites/suites.h"
#include "host/base/words.h"

namespace fovea {
namespace {

constexpr std::uint32_t kHeadDim = 64;
constexpr std::uint32_t kModelHeads = 90;
constexpr std::uint32_t kGroup = 3;
constexpr std::uint32_t kLengths[] = {512, 2048};

/// Running state of up to kRowBlock rows.
struct State {
    alignas(64) std::array<float, kRowBlock * kHeadDim> o;
    std::array<float, kRowBlock> m, l;
};

/// n_heads caches of n_positions, and what goes over them.
class Cache {
public:
    Cache(Type type, std::uint32_t n_heads, std::uint32_t n_positions)
        : type_(type),
          n_positions_(n_positions),
          n_panels_((n_positions + kLanes - 1) / kLanes),
          keys_(n_heads * n_panels_ * key_panel_bytes(type, kHeadDim)),
          values_(n_heads * n_panels_ * value_panel_bytes(type, kHeadDim)),
          query_(kRowBlock * kHeadDim),
          out_(kRowBlock * kHeadDim) {
        Numbers numbers;
        AlignedFloats row(kHeadDim);
        for (std::size_t i = 0; i < n_heads * n_panels_ * kLanes; ++i) {
            const std::size_t panel = i / kLanes;
            const auto t = static_cast<int>(type);
            const auto lane = static_cast<std::uint32_t>(i % kLanes);
            fill_elements(Type::f32, numbers, std::as_writable_bytes(std::span(row)));
            kernels_scalar.floats.write_key[t](row.data(), kHeadDim, lane,
                                               keys_.data() + panel * key_panel_bytes(type, kHeadDim));
            kernels_scalar.floats.write_value[t](row.data(), kHeadDim, lane,
                                                 values_.data() + panel * value_panel_bytes(type, kHeadDim));
        }
        fill_elements(Type::f32, numbers, std::as_writable_bytes(std::span(query_)));
    }

    [[nodiscard]] std::span<const std::byte> keys() const { return keys_; }
    [[nodiscard]] double n_bytes() const { return static_cast<double>(keys_.size() + values_.size()); }

    /// n_rows queries that see `last` positions, or, where successive, one more each; all chunks, merged.
    void attend(const Kernels& kernels, std::uint32_t head, std::uint32_t n_rows, std::uint32_t last, bool successive) {
        std::array<std::uint32_t, kRowBlock> begins{}, ends{};
        for (std::uint32_t i = 0; i < n_rows; ++i) ends[i] = last + (successive ? i : 0);
        if (is_quantized(type_))
            kernels.floats.pack_q8(query_.data(), kHeadDim, nullptr, n_rows, kHeadDim, packed_.data());
        else
            kernels.floats.pack(query_.data(), kHeadDim, n_rows, kHeadDim, reinterpret_cast<float*>(packed_.data()));
        const std::uint32_t n_chunks = (ends[n_rows - 1] + kChunk - 1) / kChunk;
        for (std::uint32_t chunk = 0; chunk < n_chunks; ++chunk) {
            State& state = chunk ? next_ : state_;
            Attend call{.query = reinterpret_cast<const float*>(packed_.data()),
                        .n_rows = n_rows,
                        .head_dim = kHeadDim,
                        .value_head_dim = kHeadDim,
                        .keys = {},
                        .values = {},
                        .value_stride = kHeadDim,
                        .first = begins.data(),
                        .last = ends.data(),
                        .masks = nullptr,
                        .scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim)),
                        .softcap = 0,
                        .chunk = chunk,
                        .second_level = detect_features().fetches_to_second_level,
                        .m = state.m.data(),
                        .l = state.l.data(),
                        .o = state.o.data()};
            for (std::size_t tile = 0; tile < kChunkTiles; ++tile) {
                const std::size_t panel = head * n_panels_ + (chunk * kChunkTiles + tile) * (kTile / kLanes);
                call.keys[tile] = keys_.data() + panel * key_panel_bytes(type_, kHeadDim);
                call.values[tile] = values_.data() + panel * value_panel_bytes(type_, kHeadDim);
            }
            kernels.of(type_).attend(call);
            if (chunk)
                kernels.floats.attend_merge({n_rows, kHeadDim, state_.m.data(), state_.l.data(), state_.o.data(),
                                             next_.m.data(), next_.l.data(), next_.o.data()});
        }
        kernels.floats.attend_finish(state_.l.data(), state_.o.data(), n_rows, kHeadDim, kHeadDim, out_.data(),
                                     kHeadDim);
    }

    void prefill(const Kernels& kernels) {
        for (std::uint32_t row = 0; row < n_positions_; row += kRowBlock)
            attend(kernels, 0, std::min(kRowBlock, n_positions_ - row), row + 1, true);
    }

    void decode(const Kernels& kernels) {
        for (std::uint32_t head = 0; head < kModelHeads; ++head) attend(kernels, head, kGroup, n_positions_, false);
    }

private:
    Type type_;
    std::uint32_t n_positions_;
    std::size_t n_panels_;
    alignas(64) std::array<std::byte, operand_bytes(Type::f32, kRowBlock, kHeadDim)> packed_;
    AlignedBytes keys_, values_;
    AlignedFloats query_, out_;
    State state_, next_;
};

/// Operations of seen pairs: a multiply-add per dim for the score and one for the weighted sum.
void prefill(benchmark::State& state, const Kernels& kernels, Type type, std::uint32_t n_positions) {
    Cache cache(type, 1, n_positions);
    const double n_pairs = 0.5 * n_positions * (n_positions + 1.0);
    run_rounds(state, fma_ceiling(kernels.isa, 1), 4.0 * kHeadDim * n_pairs, [&] { cache.prefill(kernels); });
}

void decode(benchmark::State& state, const Kernels& kernels, Type type, std::uint32_t n_positions) {
    Cache cache(type, kModelHeads, n_positions);
    run_rounds(state, read_ceiling(kernels.isa, cache.keys(), 1), cache.n_bytes(), [&] { cache.decode(kernels); });
}

}  // namespace

void add_attention_suite() {
    for_each_table([](const Kernels& kernels) {
        if (std::string_view(kernels.isa) == "scalar") return;  // minutes where its fma is emulated
        for (const Type type : {Type::f32, Type::f16, Type::q8, Type::q4})
            for (const std::uint32_t n : kLengths) {
                const std::string what = std::string(kernels.isa) + "/kv_" + type_name(type) + "/" + std::to_string(n);
                add("attend_prefill/" + what, [&kernels, type, n](auto& state) { prefill(state, kernels, type, n); });
                add("attend_decode/" + what, [&kernels, type, n](auto& state) { decode(state, kernels, type, n); });
            }
    });
}

}  // namespace fovea
