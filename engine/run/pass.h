// One forward pass as one member of the team sees it. Every member runs the same phases; each phase shares its work out
// by member number and ends with sync() where the next needs all of it. Work is shared by rows, panels, heads and
// chunks, never within a sum, so that the number of members changes no bit.
#pragma once
#include "fovea/encode.h"
#include "workspace.h"

namespace fovea {

/// Rows of float32 activations: at a stride or, with `each`, wherever that says.
struct Rows {
    float* data = nullptr;
    std::uint64_t stride = 0;  // elements
    float* const* each = nullptr;
    [[nodiscard]] float* operator[](std::uint64_t row) const noexcept { return each ? each[row] : data + row * stride; }
};
/// The same, to be read alone.
struct ConstRows {
    const float* data = nullptr;
    std::uint64_t stride = 0;
    const float* const* each = nullptr;
    ConstRows() = default;
    ConstRows(const float* at, std::uint64_t elements) noexcept : data(at), stride(elements) {}
    ConstRows(const Rows& rows) noexcept : data(rows.data), stride(rows.stride), each(rows.each) {}
    [[nodiscard]] const float* operator[](std::uint64_t row) const noexcept {
        return each ? each[row] : data + row * stride;
    }
};

/// W and what to do with its product, for multiply().
struct Linear {
    Matrix matrix;
    VectorOffset bias = 0;
    Rows out;
    std::uint32_t n_stored = 0;  // columns of out
    Epilogue epilogue = Epilogue::store;
    Activation activation = Activation::none;
    bool canonical = false;
};

struct NormWeights {
    Norm kind = Norm::none;
    VectorOffset weight = 0, bias = 0;
    float epsilon = 0;
};

/// What a pass computes with; the same for every member.
struct PassInput {
    StackIndex index = StackIndex::decoder;          // of the stack
    std::span<const Token> tokens = {}, types = {};  // [seq_len], or vectors
    const float* vectors = nullptr;                  // [seq_len][d_model]
    std::uint32_t n_logits = 0;                      // rows of which logits are made: the last of all, or
    ConstRows logit_rows = {};                       // these, where `each` is set
    Rows logits = {};                                // [n_logits][vocab_size]
    Rows out = {};              // encode: what is left of each row, or of each sequence where the stack pools
    std::uint32_t pos = 0;      // of a single sequence: absolute position of the first row
    std::uint32_t seq_len = 0;  // rows
    std::span<const Sequence> self = {}, cross = {};  // the rows as sequences, beside themselves and the memory
    std::span<const KvPages> kv = {};                 // each sequence's, or one for all
    bool positions_go_on = false;                     // rows continue what is cached: forward
    ConstRows memory = {};
    std::uint32_t n_memory = 0;         // its rows
    const Masks* self_masks = nullptr;  // null: none
    const Masks* cross_masks = nullptr;
    const AttendInput* heads = nullptr;  // a lone attention's inputs
};

struct Pass : PassInput {
    WorkspaceState& workspace;
    std::uint32_t member, n_members;
    std::uint32_t layer = 0;

    Pass(const PassInput& input, WorkspaceState& w, std::uint32_t m, std::uint32_t n) noexcept
        : PassInput(input), workspace(w), member(m), n_members(n) {}

    struct Share {
        std::uint32_t begin, end;
    };
    /// Share i of n_shares of n pieces of work; this member's.
    [[nodiscard]] static Share share(std::uint32_t n, std::uint32_t i, std::uint32_t n_shares) noexcept {
        return {static_cast<std::uint32_t>(std::uint64_t{n} * i / n_shares),
                static_cast<std::uint32_t>(std::uint64_t{n} * (i + 1) / n_shares)};
    }
    [[nodiscard]] Share share(std::uint32_t n) const noexcept { return share(n, member, n_members); }
    /// The piece of work that is this member's next after n_done, where they are taken as members come: see claim_work.
    [[nodiscard]] std::uint32_t take(std::uint32_t n_done) const noexcept {
        return n_members > 1 ? claim_work(*workspace.team) : n_done;
    }
    void sync() const noexcept {
        if (n_members > 1) barrier(*workspace.team);
    }

    [[nodiscard]] const Stack& stack() const noexcept { return stack_of(workspace.model.config(), index); }
    [[nodiscard]] const StackTensors& tensors() const noexcept { return workspace.stacks[static_cast<int>(index)]; }
    [[nodiscard]] Rows rows(ArenaOffset at, std::uint64_t stride) const noexcept {
        return {workspace.floats(at), stride};
    }
    [[nodiscard]] Rows hidden() const noexcept { return rows(workspace.map.hidden, workspace.map.hidden_stride); }
    [[nodiscard]] Rows projected() const noexcept {
        return rows(workspace.map.projected, workspace.map.projected_stride);
    }
    [[nodiscard]] Rows attended() const noexcept { return rows(workspace.map.attended, workspace.map.attended_stride); }
    [[nodiscard]] Rows inner() const noexcept { return rows(workspace.map.inner, workspace.map.inner_stride); }
    /// This member's own scratch_stride floats.
    [[nodiscard]] float* scratch() const noexcept {
        return workspace.floats(workspace.map.scratch) + member * workspace.map.scratch_stride;
    }
    /// Cosines of one row for one block shape; its sines follow at rotation_stride.
    [[nodiscard]] float* rotation(std::uint32_t block, std::uint32_t row) const noexcept {
        return workspace.floats(workspace.map.rotations) +
               (std::uint64_t{block} * workspace.limits.max_batch + row) * 2 * workspace.map.rotation_stride;
    }

    /// y = norm(x) over n elements; a copy where there is no norm.
    void norm(const NormWeights& norm, const float* x, std::uint32_t n, float* y) const noexcept;

    /// Up to kRowBlock rows as the operand of products with what is stored as `type`: see Kernels::pack and pack_q8.
    void pack(Type type, const float* x, std::uint64_t stride, std::uint32_t n_rows, std::uint32_t n_cols,
              void* packed) const noexcept;

    /// Rows as the operand of a matmul with weights of that type, normed first where `weights` asks for it. For one row
    /// each member makes its own, so nothing waits; for more they share the work and meet. Valid until the next call.
    [[nodiscard]] const void* operand(Type type, const ConstRows& rows, std::uint32_t n_rows, std::uint32_t width,
                                      const NormWeights& weights = {}) const noexcept;

    /// All products of one operand of n_rows rows, their panels shared out as if they were one matrix; of many rows piece
    /// by piece, as members come.
    /// Their types differ by no more than their operands allow, see layers.cpp.
    void multiply(std::span<const Linear> products, const void* operand, std::uint32_t n_rows) const noexcept;
    void multiply(std::span<const Linear> products, const void* operand, std::uint32_t n_rows,
                  Share pairs) const noexcept;

    /// rows = norm(rows), shared out; meets after. Nothing where there is no norm.
    void norm_rows(const NormWeights& weights, const Rows& rows) const noexcept;

    /// Whether the caller wants no more, the same for every member. Where there is a flag: meets before and after.
    [[nodiscard]] bool cancelled() const noexcept;

    /// Shows the tap, if there is one, n_rows finished rows from position `first` on. Meets before and after.
    void trace(const char* operation, const Rows& rows, std::uint32_t n_rows, std::uint32_t width,
               std::uint32_t first) const noexcept;
};

void embed(const Pass& pass) noexcept;  // position.cpp
/// A head's rotation at the position of one row of the pass, in place.
void rotate_head(const Pass& pass, const Layer& layer, std::uint32_t row, float* head) noexcept;  // position.cpp
void run_block(const Pass& pass, const Layer& layer) noexcept;                                    // block.cpp
void run_pass(Pass& pass) noexcept;                                                               // pass.cpp

/// Runs `input` on the workspace's team, or on this thread where `macs` multiplications are too few to wake it.
/// Errors: cancelled.
[[nodiscard]] Status run(WorkspaceState& workspace, const PassInput& input, std::uint64_t macs) noexcept;

}  // namespace fovea
