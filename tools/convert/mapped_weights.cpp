#include "convert/mapped_weights.h"

#include <cstring>
#include <memory>

#include "convert/elements.h"

namespace fovea {
namespace {

template<Type type>
float load(const std::byte* at) {
    if constexpr (type == Type::f32) {
        float value;
        std::memcpy(&value, at, sizeof value);
        return value;
    } else {
        std::uint16_t bits;
        std::memcpy(&bits, at, sizeof bits);
        return type == Type::f16 ? from_f16(bits) : from_bf16(bits);
    }
}

/// out [starts.size()][n_cols]. A transposed source is walked column by column, so that its cache lines are used whole.
template<Type type>
void gather(const std::vector<const std::byte*>& starts, std::uint64_t col_bytes, std::uint32_t n_cols, float* out) {
    const bool transposed = col_bytes > 4;
    const std::size_t n_outer = transposed ? n_cols : starts.size(), n_inner = transposed ? starts.size() : n_cols;
    for (std::size_t outer = 0; outer < n_outer; ++outer)
        for (std::size_t inner = 0; inner < n_inner; ++inner) {
            const std::size_t row = transposed ? inner : outer, col = transposed ? outer : inner;
            out[row * n_cols + col] = starts[row] ? load<type>(starts[row] + col * col_bytes) : 0.0f;
        }
}

/// Adjacent pair i of a head comes from dims i and i + rotary_dim / 2.
std::uint32_t unrotated(const RowOrder& order, std::uint32_t row) {
    const std::uint32_t dim = row % order.head_dim;
    if (dim >= order.rotary_dim) return row;
    return row - dim + dim / 2 + (dim % 2) * (order.rotary_dim / 2);
}

}  // namespace

void MappedWeights::add_computed(Role role, std::uint32_t layer, std::vector<float> values) {
    computed_.push_back(std::move(values));  // its heap block stays where it is when the outer vector grows
    add(role, layer, {reinterpret_cast<const std::byte*>(computed_.back().data()), Type::f32, 1, 1});
}

void MappedWeights::read_rows(const TensorSpec& spec, std::uint32_t row_begin, std::uint32_t n_rows, float* out) const {
    const Entry& entry = entries_.at({spec.role, spec.layer});
    const bool vector = spec.layout == Layout::vector;
    const std::uint32_t n_cols = vector ? 1 : spec.n_cols;
    if (vector) n_rows = spec.n_cols;
    const std::uint64_t element = entry.view.type == Type::f32 ? 4 : 2;
    std::vector<const std::byte*> starts(n_rows);
    for (std::uint32_t i = 0; i < n_rows; ++i) {
        const TensorView* view = &entry.view;
        std::uint32_t row = row_begin + i;
        if (entry.order.gated_rows) {
            const UpRow from = up_row(row);
            if (from.row >= entry.order.gated_rows) continue;
            view = from.gate ? &entry.view : &entry.up;
            row = from.row;
        } else if (entry.order.head_dim) {
            row = unrotated(entry.order, row);
        }
        if (view->data) starts[i] = view->data + row * view->row_stride * element;
    }
    const std::uint64_t col_bytes = entry.view.col_stride * element;
    switch (entry.view.type) {
        case Type::f16: gather<Type::f16>(starts, col_bytes, n_cols, out); break;
        case Type::bf16: gather<Type::bf16>(starts, col_bytes, n_cols, out); break;
        default: gather<Type::f32>(starts, col_bytes, n_cols, out);
    }
}

RowReader make_reader(MappedWeights weights) {
    const auto kept = std::make_shared<const MappedWeights>(std::move(weights));
    return [kept](const TensorSpec& spec, std::uint32_t row_begin, std::uint32_t n_rows, float* out) {
        kept->read_rows(spec, row_begin, n_rows, out);
    };
}

}  // namespace fovea
