#include "convert/calibrate/matrix_loss.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "convert/quantize/error_feedback.h"
#include "host/base/elements.h"
#include "host/base/ordered_work.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMeasuredPanels = 16;  // of a matrix: enough for one part in ten of its error

[[nodiscard]] std::uint32_t n_panels(const TensorSpec& spec) noexcept {
    return static_cast<std::uint32_t>(round_up(spec.n_rows, kLanes) / kLanes);
}

}  // namespace

void store_weight(Type type, float value, std::byte* at) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint16_t half = type == Type::f16 ? to_f16(value) : to_bf16(value);
    if (type == Type::f32)
        std::memcpy(at, &bits, sizeof bits);
    else
        std::memcpy(at, &half, sizeof half);
}

std::vector<Type> candidate_types(const ModelSource& source, const TensorSpec& spec) {
    std::vector<Type> types;
    for (int i = 0; i < kQuantTypeCount; ++i) {
        const Type type = quant_type(i);
        // Broad groups are for speed, and beside others cost an operand of their own.
        const bool special = type == Type::mxfp4 || type == Type::tq2_0 || type == Type::q8_128;
        if (!special || (source.type_of && source.type_of(spec) == type)) types.push_back(type);
    }
    return types;
}

QuantLoss panel_loss(const ModelSource& source, const Calibration* calibration, const TensorSpec& spec, Type type,
                     std::uint32_t row, const std::vector<float>& rows, std::vector<std::byte>& panel) {
    const std::uint32_t n_rows = std::min(kLanes, spec.n_rows - row);
    const InputMoments* inputs = calibration ? calibration->of(spec) : nullptr;
    panel.assign(panel_bytes(type, spec.n_cols), std::byte{0});
    if (source.read_groups) {
        const std::uint32_t n_groups = spec.n_cols / kGroup;
        std::vector<QuantizedGroup> groups(std::size_t{kLanes} * n_groups);
        if (source.read_groups(spec, type, row, n_rows, groups.data())) {
            put_panel(type, groups.data(), n_groups, panel.data());
            return {0, 1, false};
        }
    }
    return inputs ? quantize_panel(type, rows.data(), spec.n_cols, *inputs, panel.data())
                  : quantize_panel(type, rows.data(), spec.n_cols, panel.data());
}

std::vector<std::vector<double>> relative_losses(const ModelSource& source, const Calibration* calibration,
                                                 const std::vector<TensorSpec>& matrices, std::uint32_t n_threads) {
    struct Piece {
        std::size_t matrix;
        std::uint32_t row;
        bool last;
    };
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
        const std::uint64_t n = n_panels(matrices[i]), taken = std::min<std::uint64_t>(n, kMeasuredPanels);
        for (std::uint64_t k = 0; k < taken; ++k)
            pieces.push_back({i, static_cast<std::uint32_t>(k * n / taken * kLanes), k + 1 == taken});
    }
    std::vector<std::vector<QuantLoss>> made(n_slots(n_threads));
    std::vector<QuantLoss> sums;
    std::vector<std::vector<double>> losses(matrices.size());
    OrderedWork work;
    work.n_pieces = pieces.size();
    work.make = [&](std::uint64_t at, std::size_t slot, std::size_t) {
        const Piece& piece = pieces[at];
        const TensorSpec& spec = matrices[piece.matrix];
        std::vector<float> rows(std::size_t{kLanes} * spec.n_cols);
        std::vector<std::byte> panel;
        const std::uint32_t n_rows = std::min(kLanes, spec.n_rows - piece.row);
        source.read_rows(spec, piece.row, n_rows, rows.data());
        divide_columns(calibration, spec, n_rows, rows.data());
        made[slot].clear();
        for (const Type type : candidate_types(source, spec))
            made[slot].push_back(panel_loss(source, calibration, spec, type, piece.row, rows, panel));
    };
    work.take = [&](std::uint64_t at, std::size_t slot) {
        sums.resize(made[slot].size());
        for (std::size_t i = 0; i < sums.size(); ++i) {
            sums[i].error += made[slot][i].error;
            sums[i].total += made[slot][i].total;
            sums[i].overflow |= made[slot][i].overflow;
        }
        if (!pieces[at].last) return;
        for (const QuantLoss& sum : sums)
            losses[pieces[at].matrix].push_back(sum.overflow ? HUGE_VAL : sum.total > 0 ? sum.error / sum.total : 0);
        sums.clear();
    };
    work_in_order(work, n_threads);
    return losses;
}

}  // namespace fovea
