#include "convert/weights/mapped_weights.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>

#include "host/base/elements.h"

namespace fovea {
namespace {

constexpr std::pair<Role, std::string_view> kWords[] = {
#define FOVEA_WORD(field, name, ...) {Role::name, #name},
    FOVEA_TENSORS(FOVEA_WORD)
#undef FOVEA_WORD
};

/// Calls `use` with a Type for each of the plain types.
template<class Use>
void with_type(Type type, Use use) {
    switch (type) {
        case Type::f16: use(std::integral_constant<Type, Type::f16>()); break;
        case Type::bf16: use(std::integral_constant<Type, Type::bf16>()); break;
        default: use(std::integral_constant<Type, Type::f32>());
    }
}

/// A transposed source is walked column by column, so that its cache lines are used whole. out [n_rows][n_cols]
void read_transposed(const TensorView& view, std::uint64_t row_begin, std::uint32_t n_rows, std::uint32_t n_cols,
                     float* out) {
    with_type(view.type, [&](auto type) {
        for (std::uint64_t col = 0; col < n_cols; ++col)
            for (std::uint64_t row = 0; row < n_rows; ++row) {
                const std::uint64_t at = (row_begin + row) * view.row_stride + col * view.col_stride;
                out[row * n_cols + col] = load_element(view.data, type, at);
            }
    });
}

/// Adjacent pair i of a head comes from dims i and i + rotary_dim / 2 of those that turn.
std::uint32_t unrotated(const RowOrder& order, std::uint32_t row) {
    const std::uint32_t start = row - row % order.head_dim;
    std::uint32_t dim = row - start;
    if (dim < order.rotary_dim) dim = dim / 2 + (dim % 2) * (order.rotary_dim / 2);
    return start + (dim < order.n_last ? order.head_dim - order.n_last + dim : dim - order.n_last);
}

/// The block by whose rotation the query and key rows of a layer are ordered: its own or, of layers without positions beside
/// others, the first that rotates heads of that width, so that a source's order is the same in every layer. None: there is
/// no such block.
std::optional<std::uint32_t> turning_block(const Stack& stack, std::uint32_t layer) {
    const std::uint32_t own = stack.layer_blocks.empty() ? 0 : stack.layer_blocks[layer];
    if (stack.blocks[own].attention.position == Position::rope) return own;
    for (std::uint32_t i = 0; i < stack.n_blocks; ++i)
        if (stack.blocks[i].attention.position == Position::rope &&
            stack.blocks[i].attention.head_dim == stack.blocks[own].attention.head_dim)
            return i;
    return std::nullopt;
}

}  // namespace

void read_row(const TensorView& view, std::uint64_t row, std::uint32_t n_cols, float* out) {
    if (view.dequantize)
        view.dequantize(row, out);
    else
        read_strided_row(view, row, n_cols, out);
}

void read_vector(const TensorView& view, std::uint32_t n, float* out) {
    for (std::uint32_t i = 0; i < n; ++i) read_row(view, i, 1, out + i);
}

std::string_view role_word(Role role) {
    const auto found = std::ranges::find(kWords, role, &std::pair<Role, std::string_view>::first);
    return found == std::end(kWords) ? std::string_view{} : found->second;
}

bool is_norm_weight(Role role) { return role_word(role).ends_with("_norm"); }

void read_strided_row(const TensorView& view, std::uint64_t row, std::uint32_t n_cols, float* out) {
    const std::uint64_t start = row * view.row_stride;
    with_type(view.type, [&](auto type) {
        for (std::uint32_t col = 0; col < n_cols; ++col)
            out[col] = load_element(view.data, type, start + col * view.col_stride);
    });
}

bool is_turned(Role role) {
    return role == Role::query || role == Role::query_bias || role == Role::query_norm ||
           role == Role::query_norm_bias || role == Role::key || role == Role::key_bias || role == Role::key_norm ||
           role == Role::key_norm_bias;
}

RowOrder rotary_order(const Stack& stack, const TensorSpec& spec, std::span<const Rope> ropes) {
    RowOrder order;
    if (!is_turned(spec.role)) return order;
    const Block& block = stack.block(spec.layer);
    if (const auto turning = turning_block(stack, spec.layer); turning && ropes[*turning].halves) {
        order.head_dim = block.attention.head_dim;
        order.rotary_dim = stack.blocks[*turning].attention.rotary_dim;
    }
    if (block.latent.query_dim) {  // dims that turn are the last of a head there
        order.head_dim = spec.role == Role::query ? query_head_dim(block) : block.attention.head_dim;
        order.n_last = block.attention.rotary_dim;
    }
    return order;
}

void MappedWeights::add_each(const TensorSpec& spec, std::uint32_t n, std::uint32_t n_rows, bool gated,
                             const std::function<TensorView(std::uint32_t i, bool up)>& view) {
    Entry entry{.views = {}, .n_rows = n_rows, .gated = gated};
    for (std::uint32_t i = 0; i < n; ++i) {
        entry.views.push_back(view(i, false));
        if (gated) entry.views.push_back(view(i, true));
    }
    entries_[key_of(spec)] = std::move(entry);
}

MappedWeights::Place MappedWeights::find_row(const Entry& entry, std::uint32_t row) {
    if (entry.n_rows) {
        const std::uint32_t n_kinds = entry.gated ? 2 : 1,
                            of_each = static_cast<std::uint32_t>(round_up(entry.n_rows, kLanes)) * n_kinds;
        const UpRow from = entry.gated ? up_row(row % of_each) : UpRow{true, row % of_each};
        if (from.row >= entry.n_rows) return {};
        return {&entry.views[row / of_each * n_kinds + (from.gate ? 0 : 1)], from.row};
    }
    if (entry.order.head_dim) row = unrotated(entry.order, row);
    if (entry.order.run) row = row / entry.order.run * entry.order.stride + row % entry.order.run;
    return {&entry.views.front(), row};
}

void MappedWeights::add_computed(const TensorSpec& spec, std::vector<float> values, RowOrder order) {
    computed_.push_back(std::move(values));  // its heap block stays where it is when the outer vector grows
    const std::uint32_t n_cols = spec.layout == Layout::vector ? 1 : spec.n_cols;
    add(spec, {reinterpret_cast<const std::byte*>(computed_.back().data()), Type::f32, n_cols}, order);
}

void MappedWeights::read_rows(const TensorSpec& spec, std::uint32_t row_begin, std::uint32_t n_rows, float* out) const {
    const Entry& entry = entries_.at(key_of(spec));
    const bool vector = spec.layout == Layout::vector;
    const std::uint32_t n_cols = vector ? 1 : spec.n_cols;
    if (vector) n_rows = spec.n_cols;
    if (!entry.n_rows && entry.views.front().col_stride > 1) {
        read_transposed(entry.views.front(), row_begin, n_rows, n_cols, out);
        return;
    }
    for (std::uint32_t i = 0; i < n_rows; ++i, out += n_cols) {
        const auto [view, row] = find_row(entry, row_begin + i);
        if (view == nullptr)
            std::fill_n(out, n_cols, 0.0f);
        else
            read_row(*view, row, n_cols, out);
    }
}

bool MappedWeights::read_groups(const TensorSpec& spec, Type type, std::uint32_t row_begin, std::uint32_t n_rows,
                                QuantizedGroup* out) const {
    const Entry& entry = entries_.at(key_of(spec));
    for (std::uint32_t i = 0; i < n_rows; ++i, out += spec.n_cols / kGroup) {
        const auto [view, row] = find_row(entry, row_begin + i);
        if (view == nullptr) continue;
        const bool as_they_are = view->group_type == type || (view->group_type == Type::q4 && type == Type::q8);
        if (!view->groups || !as_they_are) return false;
        view->groups(row, out);
    }
    return true;
}

Type MappedWeights::type_of(const TensorSpec& spec) const {
    const Entry& entry = entries_.at(key_of(spec));
    const auto of = [&](const TensorView& view) {
        if (!view.dequantize) return view.type;
        return view.groups || spec.layout != Layout::rows ? view.group_type : Type::f32;
    };
    const Type type = of(entry.views.front());
    const auto has_it = [&](const TensorView& view) { return of(view) == type; };
    return std::all_of(entry.views.begin(), entry.views.end(), has_it) ? type : Type::q8;
}

void set_readers(MappedWeights weights, ModelSource& source, bool each_type) {
    const auto kept = std::make_shared<const MappedWeights>(std::move(weights));
    source.read_rows = [kept](const TensorSpec& spec, std::uint32_t row_begin, std::uint32_t n_rows, float* out) {
        kept->read_rows(spec, row_begin, n_rows, out);
    };
    if (each_type) source.type_of = [kept](const TensorSpec& spec) { return kept->type_of(spec); };
    source.read_groups = [kept](const TensorSpec& spec, Type type, std::uint32_t row_begin, std::uint32_t n_rows,
                                QuantizedGroup* out) { return kept->read_groups(spec, type, row_begin, n_rows, out); };
}

}  // namespace fovea
