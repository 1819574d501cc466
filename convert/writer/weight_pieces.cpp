#include "convert/writer/weight_pieces.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "convert/quantize/calibration.h"
#include "convert/quantize/error_feedback.h"
#include "fovea/checksum.h"
#include "host/base/elements.h"
#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {
namespace {

constexpr std::uint64_t kPieceElements = 1u << 16;  // a millisecond's work or so; of wide matrices one panel or row

/// How many rows of it a piece has.
std::uint32_t rows_of_piece(const TensorSpec& spec) noexcept {
    const std::uint32_t unit = spec.layout == Layout::panels ? kLanes : 1;
    return unit * static_cast<std::uint32_t>(std::max<std::uint64_t>(1, kPieceElements / unit / spec.n_cols));
}

std::string place_of(const TensorSpec& spec) {
    return role_name(static_cast<std::uint16_t>(spec.role)) + std::string(" in layer ") + std::to_string(spec.layer);
}

[[noreturn]] void refuse_odd(const TensorSpec& spec) {
    throw host::Error("weights of tensor " + place_of(spec) + ": expected finite numbers, got NaN or infinity");
}

/// What isn't finite makes every later number NaN: the source is damaged.
void need_finite(const TensorSpec& spec, const std::vector<float>& rows) {
    bool odd = false;  // without a branch, so that it costs next to nothing
    for (const float value : rows) odd |= !(std::fabs(value) <= std::numeric_limits<float>::max());
    if (odd) refuse_odd(spec);
}

void need_finite(const TensorSpec& spec, const QuantFormat& format, const std::vector<QuantizedGroup>& groups) {
    for (const QuantizedGroup& group : groups) {
        const float scale = format.scale == QuantScale::bf16 ? from_bf16(group.scale) : from_f16(group.scale);
        if (!std::isfinite(scale) || !std::isfinite(from_f16(group.minimum_factor))) refuse_odd(spec);
    }
}

void store(const TensorSpec& spec, Type type, const std::vector<float>& from, std::byte* to) {
    if (type == Type::f32) {
        std::memcpy(to, from.data(), from.size() * 4);
        return;
    }
    for (const float value : from) {
        const std::uint16_t half = type == Type::f16 ? to_f16(value) : to_bf16(value);
        if ((half & 0x7fff) == (type == Type::f16 ? 0x7c00 : 0x7f80))
            throw host::Error("a weight of tensor " + place_of(spec) + " is " + std::to_string(value) + ", beyond " +
                              type_name(type) + "'s range; use --type " + (type == Type::f16 ? "bf16 or f32" : "f32"));
        std::memcpy(to, &half, sizeof half);
        to += sizeof half;
    }
}

}  // namespace

WeightPieces::WeightPieces(const ModelSource& source, const FileHead& head, const Calibration* calibration)
    : source_(source), head_(head), calibration_(calibration) {
    first_.reserve(head.specs.size() + 1);
    first_.push_back(0);
    for (const TensorSpec& spec : head.specs) {
        const std::uint32_t n_rows = rows_of_piece(spec);
        first_.push_back(first_.back() + spec.n_rows / n_rows + (spec.n_rows % n_rows != 0));
    }
}

void WeightPieces::make(std::uint64_t piece, PieceScratch& scratch, MadePiece& made) const {
    const auto behind = std::upper_bound(first_.begin(), first_.end(), piece);
    const auto tensor = static_cast<std::size_t>(behind - first_.begin()) - 1;
    const TensorSpec& spec = head_.specs[tensor];
    const TensorRecord& record = head_.records[tensor];
    const auto type = static_cast<Type>(record.type);
    const std::uint64_t before = tensor ? head_.records[tensor - 1].offset + head_.records[tensor - 1].bytes : 0;
    const std::uint32_t step = rows_of_piece(spec);
    const auto row = static_cast<std::uint32_t>((piece - first_[tensor]) * step);
    const std::uint32_t n_rows = std::min(step, spec.n_rows - row);
    made = {std::move(made.bytes), 0, tensor, piece + 1 == *behind, {}};
    const bool panels = spec.layout == Layout::panels;
    const std::uint64_t row_bytes = std::uint64_t{spec.n_cols} * (type == Type::f32 ? 4 : 2);
    const std::uint64_t begin = panels ? row / kLanes * record.panel_stride : row * row_bytes;
    const std::uint64_t bytes = panels ? round_up(n_rows, kLanes) / kLanes * record.panel_stride : n_rows * row_bytes;
    const std::uint64_t zeros = row == 0 ? record.offset - before : 0;
    made.bytes.assign(zeros + (made.last ? record.bytes - begin : bytes), std::byte{0});  // a vector has padding behind
    std::byte* at = made.bytes.data() + zeros;
    if (!panels) {
        scratch.rows.resize(std::uint64_t{n_rows} * spec.n_cols);
        if (const float* columns = is_columns(spec.role) && calibration_ ? calibration_->columns_of(spec) : nullptr)
            std::copy_n(columns, spec.n_cols, scratch.rows.data());
        else
            source_.read_rows(spec, row, n_rows, scratch.rows.data());
        need_finite(spec, scratch.rows);
        store(spec, type, scratch.rows, at);
    } else {
        for (std::uint32_t r = row; r < row + n_rows; r += kLanes, at += record.panel_stride)
            if (is_quantized(type))
                make_quantized_panel(spec, type, r, scratch, at, made.loss);
            else
                make_panel(spec, type, r, scratch, at);
    }
    made.crc = crc32c(made.bytes);
}

void WeightPieces::make_panel(const TensorSpec& spec, Type type, std::uint32_t row, PieceScratch& scratch,
                              std::byte* panel) const {
    const std::uint64_t n_cols = spec.n_cols;
    scratch.rows.assign(kLanes * n_cols, 0.0f);
    source_.read_rows(spec, row, std::min(kLanes, spec.n_rows - row), scratch.rows.data());
    need_finite(spec, scratch.rows);
    scratch.panel.resize(kLanes * n_cols);
    for (std::uint64_t col = 0; col < n_cols; ++col)
        for (std::uint32_t lane = 0; lane < kLanes; ++lane)
            scratch.panel[col * kLanes + lane] = scratch.rows[lane * n_cols + col];
    store(spec, type, scratch.panel, panel);
}

void WeightPieces::put_outliers(const TensorSpec& spec, Type type, std::uint32_t row, PieceScratch& scratch,
                                std::byte* panel) const {
    if (!calibration_) return;
    const std::vector<std::uint32_t> outliers = calibration_->outliers_of(spec);
    if (outliers.empty()) return;
    scratch.rows.assign(std::uint64_t{kLanes} * spec.n_cols, 0.0f);
    source_.read_rows(spec, row, std::min(kLanes, spec.n_rows - row), scratch.rows.data());
    need_finite(spec, scratch.rows);
    std::vector<float> weights;
    for (const std::uint32_t col : outliers)
        for (std::uint32_t lane = 0; lane < kLanes; ++lane)
            weights.push_back(scratch.rows[std::uint64_t{lane} * spec.n_cols + col]);
    store(spec, Type::f16, weights, panel + outliers_at(type, spec.n_cols));
}

void WeightPieces::make_quantized_panel(const TensorSpec& spec, Type type, std::uint32_t row, PieceScratch& scratch,
                                        std::byte* panel, QuantLoss& loss) const {
    const std::uint32_t n_rows = std::min(kLanes, spec.n_rows - row), n_groups = spec.n_cols / kGroup;
    put_outliers(spec, type, row, scratch, panel);
    const InputMoments* inputs = calibration_ ? calibration_->of(spec) : nullptr;
    if (source_.read_groups) {
        scratch.groups.assign(std::size_t{kLanes} * n_groups, {});
        if (source_.read_groups(spec, type, row, n_rows, scratch.groups.data())) {
            need_finite(spec, format_of(type), scratch.groups);
            put_panel(type, scratch.groups.data(), n_groups, panel);
            return;
        }
    }
    scratch.rows.assign(std::uint64_t{kLanes} * spec.n_cols, 0.0f);
    source_.read_rows(spec, row, n_rows, scratch.rows.data());
    need_finite(spec, scratch.rows);
    divide_columns(calibration_, spec, n_rows, scratch.rows.data());
    const bool weighted = inputs && !inputs->lower.empty();  // of outlier columns alone nothing else is known
    const QuantLoss panel_loss = weighted ? quantize_panel(type, scratch.rows.data(), spec.n_cols, *inputs, panel)
                                          : quantize_panel(type, scratch.rows.data(), spec.n_cols, panel);
    if (panel_loss.overflow)
        throw host::Error("weights of tensor " + place_of(spec) + ": expected finite numbers within " +
                          type_name(type) + "'s range, got others; --type bf16 and f32 hold any");
    loss.error += panel_loss.error;
    loss.total += panel_loss.total;
}

}  // namespace fovea
