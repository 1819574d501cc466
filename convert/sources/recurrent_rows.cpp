#include "convert/sources/recurrent_rows.h"

#include <algorithm>
#include <cmath>

#include "host/base/exact_math.h"

namespace fovea {
namespace {

/// The map that a bias belongs to.
Role map_of(Role role) {
    switch (role) {
        case Role::recurrent_query_bias: return Role::recurrent_query;
        case Role::recurrent_key_bias: return Role::recurrent_key;
        case Role::recurrent_value_bias: return Role::recurrent_value;
        case Role::recurrent_gate_bias: return Role::recurrent_gate;
        case Role::recurrent_step_bias: return Role::recurrent_step;
        default: return role;
    }
}

/// Our decays [key_dim][value_dim] of the source's [value_dim][key_dim].
std::vector<float> turned_decays(const RecurrentShape& r, const std::vector<float>& source) {
    std::vector<float> ours(source.size());
    for (std::size_t value = 0; value < r.value_dim; ++value)
        for (std::size_t key = 0; key < r.key_dim; ++key)
            ours[key * r.value_dim + value] = source[value * r.key_dim + key];
    return ours;
}

/// A row that is normed so has length 1.
std::vector<float> over_root(std::vector<float> values) {
    const auto root = static_cast<float>(1.0 / std::sqrt(static_cast<double>(values.size())));
    for (float& x : values) x *= root;
    return values;
}

/// Our channels in the source's order.
std::vector<std::uint32_t> channel_order(const RecurrentShape& r, std::span<const RecurrentRows> all) {
    std::vector<std::uint32_t> order;
    const auto add = [&](std::uint32_t first, std::uint32_t n) {
        for (std::uint32_t i = 0; i < n; ++i) order.push_back(first + i);
    };
    for (const RecurrentRows& rows : all)
        for (const Role map : rows.maps) {
            if (map == Role::recurrent_value) add(r.n_channels() - r.value_width(), r.value_width());
            if (!r.convolves_keys()) continue;
            if (map == Role::recurrent_query) add(0, r.query_width());
            if (map == Role::recurrent_key) add(r.query_width(), r.query_width());
        }
    return order;
}

}  // namespace

std::uint32_t recurrent_width(const RecurrentShape& r, Role role) {
    switch (map_of(role)) {
        case Role::recurrent_query:
        case Role::recurrent_key: return r.query_width();
        case Role::recurrent_step_down: return r.step_rank;
        case Role::recurrent_step: return r.n_steps();
        case Role::recurrent_rate: return r.n_heads;
        default: return r.value_width();
    }
}

SourceRows recurrent_part(const RecurrentShape& r, std::span<const RecurrentRows> all, Role role) {
    const Role map = map_of(role);
    for (const RecurrentRows& rows : all) {
        if (std::ranges::find(rows.maps, map) == rows.maps.end()) continue;
        const std::uint32_t n_parts = rows.by_key_head ? r.n_key_heads : 1;
        SourceRows part;
        for (const Role other : rows.maps) {
            if (other == map) part.begin = part.n_all;
            part.n_all += recurrent_width(r, other) / n_parts;
        }
        if (n_parts > 1) {
            part.run = recurrent_width(r, map) / n_parts;
            part.stride = static_cast<std::uint32_t>(part.n_all);
        }
        part.n_all *= n_parts;
        return part;
    }
    return {.n_all = recurrent_width(r, map)};
}

SourceRows beside_gate(const AttentionShape& a, Role role) {
    const std::uint32_t head = a.head_dim;
    return {.n_all = std::uint64_t{2} * a.n_heads * head,
            .begin = role == Role::attention_gate ? head : 0,
            .run = head,
            .stride = 2 * head};
}

std::vector<float> in_our_channels(const RecurrentShape& r, std::span<const RecurrentRows> all,
                                   std::span<const float> source) {
    const std::vector<std::uint32_t> order = channel_order(r, all);
    std::vector<float> ours(r.n_channels());
    for (std::size_t i = 0; i < order.size(); ++i) ours[order[i]] = source[i];
    return ours;
}

std::vector<float> kernel_of(const RecurrentShape& r, std::span<const RecurrentRows> all,
                             std::span<const float> source) {
    const std::vector<std::uint32_t> order = channel_order(r, all);
    std::vector<float> ours(std::size_t{r.n_taps} * r.n_channels());
    for (std::size_t i = 0; i < order.size(); ++i)
        for (std::uint32_t tap = 0; tap < r.n_taps; ++tap)
            ours[std::size_t{tap} * r.n_channels() + order[i]] = source[i * r.n_taps + tap];
    return ours;
}

std::vector<float> remade(const HfConfig& config, Role role, std::vector<float> values) {
    const RecurrentShape& r = config.stack().recurrent;
    if (role == Role::router_norm) return over_root(std::move(values));
    if (role == Role::recurrent_kernel) return kernel_of(r, config.recurrent_rows, values);
    if (role == Role::recurrent_kernel_bias) return in_our_channels(r, config.recurrent_rows, values);
    if (role == Role::recurrent_decay)
        for (float& a : values) a = static_cast<float>(-exact_exp(a));
    return has_decays_of_values(r, role) ? turned_decays(r, values) : values;
}

std::vector<float> recurrent_vector(const RecurrentShape& r, std::span<const RecurrentRows> all, const TensorSpec& spec,
                                    const TensorView& found) {
    const std::uint32_t n_cols = row_length(r, spec.role);
    std::vector<float> values(spec.n_cols);
    for (std::uint32_t i = 0; i < spec.n_cols / n_cols; ++i)
        read_row(found, i, n_cols, values.data() + std::size_t{i} * n_cols);
    if (spec.role == Role::router_norm) return over_root(std::move(values));
    if (spec.role == Role::recurrent_kernel) return kernel_of(r, all, values);
    if (has_decays_of_values(r, spec.role)) return turned_decays(r, values);
    return spec.role == Role::recurrent_kernel_bias ? in_our_channels(r, all, values) : values;
}

std::vector<std::uint64_t> shape_before(const RecurrentShape& r, Role role, std::uint64_t n) {
    if (role == Role::recurrent_kernel) return {r.n_channels(), 1, r.n_taps};
    if (has_decays_of_values(r, role)) return {r.value_dim, r.key_dim};
    return {n};
}

}  // namespace fovea
