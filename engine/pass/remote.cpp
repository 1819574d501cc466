// Products shared with other machines: cutting them up, and computing parts that others have cut.
#include "engine/pass/remote.h"

#include <algorithm>
#include <cstring>

namespace fovea {

bool may_be_shared(std::span<const Linear> products) noexcept {
    if (products.size() > kMostParts) return false;
    return std::none_of(products.begin(), products.end(),
                        [](const Linear& p) { return has(Part::adapters) && static_cast<const std::byte*>(p.file); });
}

RemoteJob job_of(const RemoteState& state, std::uint32_t n_rows, std::uint32_t n_units) noexcept {
    std::uint64_t bytes = 0;
    for (const Linear& p : state.products) bytes += p.matrix.n_panels() * p.matrix.panel_stride;
    const Matrix& first = state.products[0].matrix;
    const auto n_bytes = static_cast<std::size_t>(operand_bytes(first.type, n_rows, first.n_cols));
    return {{static_cast<const std::byte*>(state.operand), n_bytes}, n_rows, n_units, bytes / n_units, &state};
}

namespace {

/// Calls each(product, first panel, number of panels) for every product that has some of units [begin, end).
template<class Each>
void for_each_part(const RemoteJob& job, std::uint32_t begin, std::uint32_t end, Each each) noexcept {
    std::uint32_t first = 0;
    for (const Linear& p : job.state->products) {
        const std::uint32_t n = n_pairs(p.matrix);
        const Pass::Share mine = Pass::Share{begin, end}.within(first, n);
        first += n;
        if (mine.begin == mine.end) continue;
        const std::uint32_t panel = mine.begin * kPair;
        each(p, panel, std::min(mine.end * kPair, p.matrix.n_panels()) - panel);
    }
}

}  // namespace

OutputColumns columns_of(const Linear& p, std::uint32_t begin, std::uint32_t n_panels) noexcept {
    const std::uint32_t panels_each = p.epilogue == Epilogue::gate ? 2 : 1;
    const std::uint32_t first = std::min(begin / panels_each * kLanes, p.n_stored);
    return {first, std::min(n_panels / panels_each * kLanes, p.n_stored - first)};
}

std::size_t cut(const RemoteJob& job, std::uint32_t begin, std::uint32_t end,
                std::span<MatrixPart, kMostParts> parts) noexcept {
    std::size_t n = 0;
    for_each_part(job, begin, end, [&](const Linear& p, std::uint32_t panel, std::uint32_t n_panels) {
        const Matrix& m = p.matrix;
        parts[n++] = {.panels = m.offset + panel * m.panel_stride,
                      .panel_stride = m.panel_stride,
                      .bias = p.bias ? p.bias + std::uint64_t{panel} * kLanes * sizeof(float) : 0,
                      .n_panels = n_panels,
                      .n_cols = m.n_cols,
                      .n_outputs = columns_of(p, panel, n_panels).n,
                      .type = static_cast<std::uint8_t>(m.type),
                      .epilogue = static_cast<std::uint8_t>(p.epilogue),
                      .activation = static_cast<std::uint8_t>(p.activation),
                      .canonical = p.canonical};
    });
    return n;
}

void give_addends(const RemoteJob& job, std::uint32_t begin, std::uint32_t end, float* out) noexcept {
    for_each_part(job, begin, end, [&](const Linear& p, std::uint32_t panel, std::uint32_t n_panels) {
        if (p.epilogue != Epilogue::add) return;
        const OutputColumns columns = columns_of(p, panel, n_panels);
        for (std::uint32_t row = 0; row < job.n_rows; ++row, out += columns.n)
            std::memcpy(out, p.out[row] + columns.first, columns.n * sizeof(float));
    });
}

void take_results(const RemoteJob& job, std::uint32_t begin, std::uint32_t end, const float* results) noexcept {
    for_each_part(job, begin, end, [&](const Linear& p, std::uint32_t panel, std::uint32_t n_panels) {
        const OutputColumns columns = columns_of(p, panel, n_panels);
        for (std::uint32_t row = 0; row < job.n_rows; ++row, results += columns.n)
            std::memcpy(p.out[row] + columns.first, results, columns.n * sizeof(float));
    });
}

void multiply_here(const RemoteJob& job, std::uint32_t begin, std::uint32_t end) noexcept {
    job.state->pass.multiply(job.state->products, job.state->operand, job.n_rows, Pass::Share{begin, end});
}

namespace {

constexpr std::uint32_t kMostRows = 1 << 20, kMostUnits = 0x7fffffff;

[[nodiscard]] constexpr std::uint64_t n_units(const MatrixPart& part) noexcept {
    return (std::uint64_t{part.n_panels} + kPair - 1) / kPair;
}

/// Whether some matrix of the file can have that part; a file has any bytes, so what lies there does not matter.
[[nodiscard]] Status check_part(const WorkspaceState& w, const MatrixPart& part) noexcept {
    const std::uint64_t file_bytes = w.model.bytes().size();
    if (part.type >= kTypeCount) return {Code::bad_argument, "part: type at most", kTypeCount - 1, part.type};
    const Type type = static_cast<Type>(part.type);
    const bool is_built = (has(Part::bf16) || type != Type::bf16) && (has(Part::gguf_types) || type <= Type::q4);
    if (!is_built) return {Code::unsupported, "weights of that type", 0, part.type};
    if (part.n_panels == 0 || part.n_cols == 0) return {Code::bad_argument, "part: panels and columns at least", 1, 0};
    const std::uint64_t least = panel_bytes(type, part.n_cols);
    if (part.panel_stride < least || part.panel_stride > least + 65536 || part.panel_stride % kSectionAlignment != 0)
        return {Code::bad_argument, "part: panel stride", round_up(least, kSectionAlignment), part.panel_stride};
    if (part.panels % kSectionAlignment != 0 || part.panels > file_bytes ||
        part.n_panels > (file_bytes - part.panels) / part.panel_stride)
        return {Code::bad_argument, "part: panels within the file's bytes", file_bytes, part.panels};
    const std::uint64_t bias_bytes = std::uint64_t{part.n_panels} * kLanes * sizeof(float);
    if (part.bias && (part.bias % alignof(float) != 0 || part.bias > file_bytes || bias_bytes > file_bytes - part.bias))
        return {Code::bad_argument, "part: bias within the file's bytes", file_bytes, part.bias};
    constexpr auto kGate = static_cast<std::uint8_t>(Epilogue::gate), kAdd = static_cast<std::uint8_t>(Epilogue::add);
    if (part.epilogue > kGate) return {Code::bad_argument, "part: epilogue at most", kGate, part.epilogue};
    const bool gated = part.epilogue == kGate;
    if (gated && part.n_panels % 2 != 0) return {Code::bad_argument, "part: panels in pairs", 2, part.n_panels};
    if (part.activation >= kActivationsBuilt || (part.epilogue == kAdd && part.activation != 0))
        return {Code::bad_argument, "part: activation", 0, part.activation};
    if (part.canonical > 1) return {Code::bad_argument, "part: canonical at most", 1, part.canonical};
    const std::uint64_t n_most = std::uint64_t{part.n_panels} * kLanes / (gated ? 2 : 1);
    if (part.n_outputs == 0 || part.n_outputs > n_most || n_most - part.n_outputs >= kLanes)
        return {Code::bad_argument, "part: outputs", n_most, part.n_outputs};
    return {};
}

struct RemoteParts {
    const WorkspaceState& w;
    std::span<const MatrixPart> parts;
    const std::byte* operand;
    std::uint32_t n_rows, n_all_units;
    float* results;

    /// Units [begin, end) of all parts' pairs of panels.
    void multiply(Pass::Share units) const noexcept {
        std::uint32_t first = 0;
        float* out = results;
        for (const MatrixPart& part : parts) {
            const auto n = static_cast<std::uint32_t>(n_units(part));
            const Pass::Share mine = units.within(first, n);
            first += n;
            if (mine.begin != mine.end) {
                const Matmul product{.panels = w.weights(part.panels),
                                     .panel_stride = static_cast<std::size_t>(part.panel_stride),
                                     .n_rows = part.n_outputs,
                                     .n_cols = part.n_cols,
                                     .panel_begin = mine.begin * kPair,
                                     .panel_end = std::min(mine.end * kPair, part.n_panels),
                                     .operand = operand,
                                     .seq_len = n_rows,
                                     .bias = w.vector(part.bias),
                                     .out = out,
                                     .out_stride = part.n_outputs,
                                     .epilogue = static_cast<Epilogue>(part.epilogue),
                                     .activation = static_cast<Activation>(part.activation),
                                     .canonical = part.canonical != 0,
                                     .second_level = w.fetches_to_second_level};
                w.kernels->of(static_cast<Type>(part.type)).matmul(product);
            }
            out += static_cast<std::size_t>(n_results(part, n_rows));
        }
    }
};

void multiply_member(void* context, std::uint32_t member) noexcept {
    const RemoteParts& all = *static_cast<const RemoteParts*>(context);
    const std::uint32_t n_members = team_size(*all.w.team);
    if (n_members == 1) return all.multiply({0, all.n_all_units});
    if (all.n_rows <= kFewRows) return all.multiply(Pass::share(all.n_all_units, member, n_members));
    const std::uint32_t n_pieces = std::min(n_members * kPieces, all.n_all_units);
    for (std::uint32_t i; (i = claim_work(*all.w.team)) < n_pieces;)
        all.multiply(Pass::share(all.n_all_units, i, n_pieces));
}

}  // namespace

Status check_parts(const Workspace& workspace, std::span<const MatrixPart> parts, std::uint64_t bytes,
                   std::uint32_t n_rows, std::uint64_t n_floats) noexcept {
    if (!has(Part::teams)) return {Code::unsupported, "products of others: left out of this build", 0, 0};
    if (!workspace.valid()) return {Code::bad_argument, "workspace: not made", 0, 0};
    const WorkspaceState& w = *WorkspaceAccess::state(workspace);
    if (n_rows == 0 || n_rows > kMostRows) return {Code::bad_shape, "rows at most", kMostRows, n_rows};
    if (parts.empty() || parts.size() > kMostParts) return {Code::bad_shape, "parts at most", kMostParts, parts.size()};
    std::uint64_t n_all = 0, n_all_units = 0;
    for (const MatrixPart& part : parts) {
        if (Status status = check_part(w, part); !status.ok()) return status;
        // One operand is for all: of one kind and width.
        const Type type = static_cast<Type>(part.type), first = static_cast<Type>(parts[0].type);
        if (part.n_cols != parts[0].n_cols || operand_kind(type) != operand_kind(first))
            return {Code::bad_argument, "part: columns", parts[0].n_cols, part.n_cols};
        if (const std::uint64_t wanted = operand_bytes(type, n_rows, part.n_cols); wanted != bytes)
            return {Code::bad_shape, "bytes of the operand", wanted, bytes};
        n_all += n_results(part, n_rows);
        n_all_units += n_units(part);
    }
    if (n_all != n_floats) return {Code::bad_shape, "results", n_all, n_floats};
    if (n_all_units > kMostUnits) return {Code::bad_shape, "units at most", kMostUnits, n_all_units};
    return {};
}

Status multiply_parts(Workspace& workspace, std::span<const MatrixPart> parts, std::span<const std::byte> operand,
                      std::uint32_t n_rows, std::span<float> results) noexcept {
    if (Status status = check_parts(workspace, parts, operand.size(), n_rows, results.size()); !status.ok())
        return status;
    if (reinterpret_cast<std::uintptr_t>(operand.data()) % alignof(float) != 0)
        return {Code::bad_argument, "operand: alignment", alignof(float), 1};
    const WorkspaceState& w = *WorkspaceAccess::state(workspace);
    std::uint64_t n_all_units = 0;
    for (const MatrixPart& part : parts) n_all_units += n_units(part);
    RemoteParts all{w, parts, operand.data(), n_rows, static_cast<std::uint32_t>(n_all_units), results.data()};
    run_team(*w.team, multiply_member, &all);
    return {};
}

}  // namespace fovea
