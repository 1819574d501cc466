#include "convert/quantize/calibration.h"

namespace fovea {

std::size_t Calibration::number_of(const TensorSpec& spec) const noexcept {
    const auto input = [&](InputOf of) {
        const std::size_t i = std::size_t{spec.layer} * kInputCount + static_cast<std::uint32_t>(of);
        return spec.stack != stack || i >= moments.size() || moments[i].n != spec.n_cols ? moments.size() : i;
    };
    switch (spec.role) {
        case Role::query:
        case Role::key:
        case Role::value:
        case Role::projections_columns: return input(InputOf::projections);
        case Role::attention_output:
        case Role::attention_output_columns: return input(InputOf::attention_output);
        case Role::up:
        case Role::up_columns: return input(InputOf::up);
        case Role::down:
        case Role::down_columns: return input(InputOf::down);
        default: return moments.size();
    }
}

const InputMoments* Calibration::of(const TensorSpec& spec) const noexcept {
    const std::size_t i = number_of(spec);
    return i < moments.size() ? &moments[i] : nullptr;
}

const float* Calibration::columns_of(const TensorSpec& spec) const noexcept {
    if (spec.stack == stack && spec.n_cols == head_columns.size() &&
        (spec.role == head || spec.role == Role::output_columns))
        return head_columns.data();
    const std::size_t i = number_of(spec);
    return i < columns.size() && !columns[i].empty() ? columns[i].data() : nullptr;
}

std::vector<std::uint32_t> Calibration::outliers_of(const TensorSpec& spec) const {
    std::vector<std::uint32_t> outliers;
    const float* scales = is_columns(spec.role) ? nullptr : columns_of(spec);
    for (std::uint32_t col = 0; scales && col < spec.n_cols; ++col)
        if (scales[col] == 0.0f) outliers.push_back(col);
    return outliers;
}

void divide_columns(const Calibration* calibration, const TensorSpec& spec, std::uint32_t n_rows,
                    float* rows) noexcept {
    const float* columns = calibration ? calibration->columns_of(spec) : nullptr;
    for (std::uint32_t row = 0; columns && row < n_rows; ++row, rows += spec.n_cols)
        for (std::uint32_t col = 0; col < spec.n_cols; ++col)
            if (columns[col] != 0.0f) rows[col] /= columns[col];
}

}  // namespace fovea
