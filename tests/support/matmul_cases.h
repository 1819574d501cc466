// Cases of matrix products: their operands, and their outputs by any table's kernel.
#pragma once
#include "tests/support/kernel_cases.h"

namespace fovea::testing {

struct MatmulCase {
    std::uint32_t n_rows, n_cols, seq_len;
    Epilogue epilogue = Epilogue::store;
    Activation activation = Activation::none;
    bool bias = false;
    bool canonical = true;
    std::uint32_t skip_front = 0, skip_back = 0;  // panels (gate: pairs) that another call would compute
    std::uint32_t extra_stride = 0;               // elements between a row's outputs and the next row
    Fill fill = Fill::plain;
    std::uint32_t n_outliers = 0;  // see Matmul
};

/// A case's operands, and its outputs by any table's kernel.
class MatmulRun {
public:
    MatmulRun(const MatmulCase& c, Type type, std::uint32_t seed = 1)
        : c_(c),
          type_(type),
          step_(c.epilogue == Epilogue::gate ? 2 : 1),
          n_panels_(static_cast<std::uint32_t>(round_up(c.n_rows, kLanes)) / kLanes * step_),
          used_(outliers_at(type, c.n_cols) + c.n_outliers * kOutlierBytes),
          stride_(round_up(used_, 64) + (seed % 2 ? 64 : 0)),
          panels_((n_panels_ - 1) * stride_ + used_, Flush::end, 64),
          rows_(is_quantized(type) ? std::size_t{c.seq_len} * c.n_cols : 0),
          operand_(static_cast<std::size_t>(operand_bytes(type, c.seq_len, c.n_cols)), Flush::end, 4),
          bias_(std::size_t{n_panels_} * kLanes),
          before_(std::size_t{c.seq_len - 1} * out_stride() + c.n_rows),
          outliers_(std::size_t{c.seq_len} * c.n_outliers) {
        Random random(seed);
        for (std::uint32_t p = 0; p < n_panels_; ++p) {
            std::byte* const panel = panels_.data() + p * stride_;
            if (is_quantized(type))
                random.fill_quants(panel, c.n_cols, type, c.fill);
            else
                random.fill(panel, std::size_t{c.n_cols} * kLanes, type, c.fill);
            if (c.n_outliers)
                random.fill(panel + outliers_at(type, c.n_cols), std::size_t{c.n_outliers} * kLanes, Type::f16, c.fill);
        }
        if (is_quantized(type))
            random.fill(rows_, c.fill);
        else
            pack_operand(random);
        random.fill(bias_, c.fill);
        if (c.epilogue == Epilogue::add) random.fill(before_, c.fill);
        if (c.n_outliers) random.fill(outliers_, c.fill);
    }

    [[nodiscard]] std::size_t out_stride() const { return c_.n_rows + c_.extra_stride; }
    [[nodiscard]] std::uint32_t panel_begin() const { return c_.skip_front * step_; }
    [[nodiscard]] std::uint32_t panel_end() const { return n_panels_ - c_.skip_back * step_; }
    [[nodiscard]] const Guarded<float>& before() const { return before_; }
    [[nodiscard]] float bias(std::uint32_t row) const { return bias_[row]; }
    /// What a row has of outlier column `i`, and that column's weight in a panel's row.
    [[nodiscard]] float outlier(std::uint32_t row, std::uint32_t i) const { return outliers_[row * c_.n_outliers + i]; }
    [[nodiscard]] double outlier_weight(std::uint32_t row, std::uint32_t i) const {
        const std::byte* panel = panels_.data() + row / kLanes * stride_;
        return value_of(panel + outliers_at(type_, c_.n_cols), std::size_t{i} * kLanes + row % kLanes, Type::f16);
    }

    /// Column `col` of panel-row `row` (in gate matrices, panels alternate).
    [[nodiscard]] double weight(std::uint32_t row, std::uint32_t col) const {
        return value_of(panels_.data() + row / kLanes * stride_, std::size_t{col} * kLanes + row % kLanes, type_);
    }
    [[nodiscard]] float input(std::uint32_t row, std::uint32_t col) const {
        const std::uint32_t block = row_block(c_.seq_len), first = row / block * block;
        const std::uint32_t n = c_.seq_len - first < block ? c_.seq_len - first : block;
        const std::size_t at = std::size_t{first} * c_.n_cols + std::size_t{col} * n + (row - first);
        float x;
        std::memcpy(&x, operand_.data() + 4 * at, 4);
        return x;
    }

    /// Not `whole`: without bias and outlier columns.
    [[nodiscard]] Guarded<float> run(const Kernels& k, Flush flush = Flush::end, bool whole = true) const {
        Guarded<float> out(before_.size(), flush);
        std::memcpy(out.data(), before_.data(), before_.size() * sizeof(float));
        const Guarded<std::byte> quants = quantized(k);
        k.matmul(type_, Matmul{.panels = panels_.data(),
                               .panel_stride = stride_,
                               .n_rows = c_.n_rows,
                               .n_cols = c_.n_cols,
                               .panel_begin = panel_begin(),
                               .panel_end = panel_end(),
                               .operand = is_quantized(type_) ? quants.data() : operand_.data(),
                               .seq_len = c_.seq_len,
                               .bias = whole && c_.bias ? bias_.data() : nullptr,
                               .out = out.data(),
                               .out_stride = out_stride(),
                               .epilogue = c_.epilogue,
                               .activation = c_.activation,
                               .canonical = c_.canonical,
                               .second_level = c_.n_rows % 2 != 0,
                               .n_outliers = whole ? c_.n_outliers : 0,
                               .outliers_at = static_cast<std::size_t>(outliers_at(type_, c_.n_cols))});
        return out;
    }

private:
    /// The numbers come twelve rows at a time, column by column, so that a row has the same ones however it is packed.
    void pack_operand(Random& random) {
        std::vector<std::byte> drawn(operand_.size());
        random.fill(drawn.data(), std::size_t{c_.seq_len} * c_.n_cols, Type::f32, c_.fill);
        const std::uint32_t block = row_block(c_.seq_len);
        const auto at = [&](std::uint32_t row, std::uint32_t col, std::uint32_t of) {
            const std::uint32_t first = row / of * of, n = c_.seq_len - first < of ? c_.seq_len - first : of;
            return 4 * (std::size_t{first} * c_.n_cols + std::size_t{col} * n + (row - first));
        };
        for (std::uint32_t row = 0; row < c_.seq_len; ++row)
            for (std::uint32_t col = 0; col < c_.n_cols; ++col)
                std::memcpy(operand_.data() + at(row, col, block), drawn.data() + at(row, col, kRowBlock), 4);
    }

    /// The operand of a quantized type in that table's order.
    [[nodiscard]] Guarded<std::byte> quantized(const Kernels& k) const {
        const std::size_t n_bytes = operand_.size(), outlier_bytes = outliers_.size() * sizeof(float);
        Guarded<std::byte> packed(is_quantized(type_) ? n_bytes + outlier_bytes : 0, Flush::end, 4);
        if (outlier_bytes) std::memcpy(packed.data() + n_bytes, outliers_.data(), outlier_bytes);
        for (std::uint32_t row = 0, block = row_block(c_.seq_len); row < c_.seq_len && packed.size(); row += block)
            k.pack(type_, rows_.data() + std::size_t{row} * c_.n_cols, c_.n_cols, nullptr,
                   {row, std::min(block, c_.seq_len - row), c_.seq_len}, c_.n_cols, packed.data());
        return packed;
    }

    MatmulCase c_;
    Type type_;
    std::uint32_t step_, n_panels_;
    std::size_t used_, stride_;  // bytes of a panel
    Guarded<std::byte> panels_;
    Guarded<float> rows_;  // that were quantized
    Guarded<std::byte> operand_;
    Guarded<float> bias_, before_;
    Guarded<float> outliers_;
};

}  // namespace fovea::testing
