// Frames become rows (Radford et al. 2022, section 2.2): gelu(W · [x(t−1), x(t), x(t+1)] + b) of every frame, then the same of
// every other row that leaves, zeros lying before and behind each sequence. Three neighbours side by side are one row of an
// operand, so that a convolution is a product like any other, with the same sums on every instruction set.
#include "engine/blocks/block.h"

#include <cstring>

namespace fovea {
namespace {

constexpr std::uint32_t kTaps = 3;  // rows that one is made of

/// Which sequence a made row is in, for rows that ascend.
class Walk {
public:
    Walk(std::span<const std::uint32_t> lengths, std::uint32_t step) noexcept : lengths_(lengths), step_(step) {}

    /// The number of a made row's middle row in its sequence. `first` becomes the number of the sequence's first row
    /// among all, `n` how many rows it has.
    std::uint32_t middle(std::uint32_t made) noexcept {
        for (; made - made_before_ >= n_made(); ++number_) {
            made_before_ += n_made();
            first += lengths_[number_];
        }
        n = lengths_[number_];
        return (made - made_before_) * step_;
    }
    std::uint32_t first = 0, n = 0;

private:
    [[nodiscard]] std::uint32_t n_made() const noexcept { return (lengths_[number_] - 1) / step_ + 1; }

    std::span<const std::uint32_t> lengths_;
    std::uint32_t step_, made_before_ = 0;
    std::size_t number_ = 0;
};

/// One convolution: of `rows`, which are `width` wide, those around every step-th.
struct Convolution {
    const Matrix& matrix;
    VectorOffset bias;
    ConstRows rows;
    std::uint32_t width, step;

    /// [kTaps·width]
    void gather(Walk& walk, std::uint32_t made, float* out) const noexcept {
        const std::uint32_t middle = walk.middle(made);
        for (std::uint32_t tap = 0; tap < kTaps; ++tap, out += width) {
            const std::uint32_t behind = middle + tap;  // its number and 1, for it may be that before the first
            if (behind == 0 || behind > walk.n)
                std::memset(out, 0, width * sizeof(float));
            else
                std::memcpy(out, rows[walk.first + behind - 1], width * sizeof(float));
        }
    }
};

void run_convolution(Pass& pass, const Convolution& c, std::uint32_t n_made, const Rows& out) noexcept {
    const std::uint32_t n_cols = kTaps * c.width, d_model = pass.stack().d_model;
    const std::uint64_t stride = round_up(n_cols, kLanes);
    std::byte* operand = pass.workspace.arena + pass.workspace.map.operand;
    const RowBlocks blocks(n_made);
    pass.phase("operand", {}, in_parts(blocks.n), [&](Pass::Share mine) {
        Walk walk(pass.frame_lengths, c.step);
        for (std::uint32_t block = mine.begin; block < mine.end; ++block) {
            const auto [first, n] = blocks[block];
            for (std::uint32_t i = 0; i < n; ++i) c.gather(walk, first + i, pass.scratch() + i * stride);
            pass.pack({c.matrix.type, n_made, n_cols}, pass.scratch(), stride, {first, n}, operand);
        }
    });
    const Linear linear{
        .matrix = c.matrix, .bias = c.bias, .out = out, .n_stored = d_model, .activation = Activation::gelu};
    pass.multiply("convolution", {out, n_made, d_model}, {&linear, 1}, operand, n_made);
}

}  // namespace

/// What the first convolution leaves, a row of each frame, takes two rows of `inner` for each of the stack's; its operand
/// has as many rows, of three frames each.
void SoundTensors::plan(const Planning& p) noexcept {
    if (!p.stack.sound.is_speech()) return;
    const std::uint64_t n_first = kTaps * std::uint64_t{p.stack.sound.n_mels},
                        n_second = kTaps * std::uint64_t{p.stack.d_model};  // columns
    grow_to(p.map.inner_stride, 2 * pad(p.stack.d_model));
    grow_to(p.widest.operand, n_second);
    grow_to(p.widest.operand_row_bytes, 2 * operand_bytes(Type::f32, 1, n_first),
            2 * operand_bytes(Type::q8, 1, n_first));
    grow_to(p.map.scratch_stride, kRowBlock * pad(at_least(n_first, n_second)));
}

void Hearing::convolve(Pass& pass) noexcept {
    const Stack& stack = pass.stack();
    const SoundTensors& t = *pass.workspace.sound();
    const std::span<const std::uint32_t> lengths = pass.frame_lengths;
    std::uint32_t n_frames = 0;
    for (const std::uint32_t n : lengths) n_frames += n;
    const Rows between{pass.inner().data, round_up(stack.d_model, kLanes)};  // two for each row of `inner`
    const std::uint32_t n_mels = stack.sound.n_mels;
    run_convolution(pass, {t.first, t.first_bias, {pass.vectors, n_mels}, n_mels, 1}, n_frames, between);
    run_convolution(pass, {t.second, t.second_bias, between, stack.d_model, 2}, pass.seq_len, pass.hidden());
}

}  // namespace fovea
