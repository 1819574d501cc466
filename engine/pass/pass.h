// One forward pass as one member of the team sees it. Every member runs the same phases, one after another. Each shares
// its work out; then all meet, the caller's flag may end the pass, and the tap is shown what the phase leaves. Work is
// shared by rows, panels, heads and chunks, never within a sum, so that the number of members changes no bit. The phases
// and their order: docs/architecture.md, whose table a test compares with the names given here.
#pragma once
#include <type_traits>

#include "engine/format/parts.h"
#include "engine/pass/workspace.h"
#include "fovea/encode.h"

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

static_assert(has(Part::rows) || !has(Part::states), "a pass finds states by its steps");

/// Fields of builds with a part alone.
template<class T>
using OfAdapters = std::conditional_t<has(Part::adapters), T, LeftOut<T>>;
template<class T>
using OfColumns = std::conditional_t<has(Part::columns), T, LeftOut<T>>;
template<class T>
using OfVectors = std::conditional_t<has(Part::vectors), T, LeftOut<T>>;
template<class T>
using OfRows = std::conditional_t<has(Part::rows), T, LeftOut<T>>;

/// W and what to do with its product, for multiply().
struct Linear {
    Matrix matrix;
    VectorOffset bias = 0;
    Rows out;
    std::uint32_t n_stored = 0;  // columns of out
    Epilogue epilogue = Epilogue::store;
    Activation activation = Activation::none;
    bool canonical = false;
    [[no_unique_address]] OfAdapters<Adapted>
        adapted{};  // which of a layer's matrices it is, see engine/stream/stream.h
    [[no_unique_address]] OfAdapters<const std::byte*> file{};  // that the matrix is in; null: the model's
};

/// A product that adapters may add to, see add_adapters.
struct AdaptedProduct {
    Adapted matrix = Adapted::none;
    Rows out;
    std::uint32_t n_stored = 0;  // columns of out
};

// Panels are shared out in pairs: gate and up must stay together, and kernels work on several side by side.
inline constexpr std::uint32_t kPair = 2;
// A member takes so many pieces of many rows, one after another, and more where the others are slower. Few rows wait
// for memory, whose streams are best long.
inline constexpr std::uint32_t kPieces = 16;
[[nodiscard]] inline std::uint32_t n_pairs(const Matrix& m) noexcept { return (m.n_panels() + kPair - 1) / kPair; }

/// What a phase leaves, for the tap (see Trace): rows, the first of them being position `first`. Without rows: nothing.
struct Output {
    Rows rows = {};
    std::uint32_t n_rows = 0, width = 0, first = 0;
};

/// n units of work, and how members share them: in equal parts, or in n_pieces that go to members as they come for
/// them, so that a CPU that others use too holds nobody up.
struct Units {
    std::uint32_t n, n_pieces = 0;
};
[[nodiscard]] constexpr Units in_parts(std::uint32_t n) noexcept { return {n}; }
[[nodiscard]] constexpr Units as_they_come(std::uint32_t n, std::uint32_t n_pieces) noexcept { return {n, n_pieces}; }

/// The blocks in which the rows of an operand are packed, each by one call of Pass::pack. No rows make no block.
struct RowBlocks {
    std::uint32_t n_rows, rows_each, n;
    struct Block {
        std::uint32_t first, n_rows;
    };
    explicit constexpr RowBlocks(std::uint32_t rows) noexcept
        : n_rows(rows), rows_each(row_block(rows)), n((rows + kRowBlock - 1) / kRowBlock) {}
    [[nodiscard]] constexpr Block operator[](std::uint32_t i) const noexcept {
        const std::uint32_t first = i * rows_each, left = n_rows - first;
        return {first, left < rows_each ? left : rows_each};
    }
};

/// How rows become an operand of products with what is stored as `type`: see Kernels::pack.
struct Packing {
    Type type;
    std::uint32_t n_rows, n_cols;                                 // of the whole operand
    [[no_unique_address]] OfColumns<VectorOffset> columns{};      // what its columns are multiplied by; 0: nothing
    [[no_unique_address]] OfColumns<std::uint32_t> n_outliers{};  // those of them that are multiplied by 0
};

/// Whether members meet at a phase's end, or go on, because what follows does not need it, or nothing follows.
enum class Then : std::uint8_t { meet, go_on };

/// A norm; where it makes an operand, what the operand's columns are multiplied by, and how many of them by 0.
struct NormWeights {
    Norm kind = Norm::none;
    VectorOffset weight = 0, bias = 0;
    float epsilon = 0;
    [[no_unique_address]] OfColumns<VectorOffset> columns{};
    [[no_unique_address]] OfColumns<std::uint32_t> n_outliers{};

    /// For an operand of that matrix.
    template<bool kept = has(Part::columns)>
    [[nodiscard]] std::conditional_t<kept, NormWeights, const NormWeights&> with(VectorOffset its,
                                                                                 const Matrix& matrix) const noexcept {
        if constexpr (kept)
            return {kind, weight, bias, epsilon, its, matrix.n_outliers};
        else
            return *this;
    }
};

/// A step of which a pass, or one of its sequences, has rows from `first` on.
struct StepRows {
    Step step;
    std::size_t first = 0;
};

/// Rows of a step's input: elements of one, and how many there are.
[[nodiscard]] inline std::uint32_t row_width(const Stack& s) noexcept { return or_else(s.embedding_width, s.d_model); }
[[nodiscard]] inline std::size_t n_rows(const Stack& s, const Step& step) noexcept {
    return has(Part::rows) && step.tokens.empty() ? step.rows.size() / row_width(s) : step.tokens.size();
}

/// The steps of a pass, whose sequence i is of step `first` + i. Some have rows or spans.
struct PassSteps {
    const StepList* list = nullptr;     // null: there are tokens alone
    std::size_t first = 0, n_done = 0;  // rows of the first in passes before
};

/// What a pass computes with; the same for every member.
struct PassInput {
    StackIndex index = StackIndex::decoder;          // of the stack
    std::span<const Token> tokens = {}, types = {};  // [seq_len], or vectors
    const float* vectors = nullptr;                  // [seq_len][d_model]; of a stack that hears [frames][n_mels]
    [[no_unique_address]] OfRows<PassSteps> steps{};
    [[no_unique_address]] OfVectors<std::span<const std::uint32_t>> frame_lengths{};  // of each sequence; else none
    std::uint32_t n_logits = 0;  // rows of which logits are made: the last of all, or
    ConstRows logit_rows = {};   // these, where `each` is set
    Rows logits = {};            // [n_logits][vocab_size]
    Rows out = {};               // encode: the result of each row, or of each sequence where rows are pooled
    [[no_unique_address]] OfVectors<Pooling> pooling{};
    [[no_unique_address]] OfVectors<std::span<const std::uint32_t>> n_unpooled{};  // first rows of each; empty: none
    std::span<const std::uint32_t> chosen = {};                                    // of these rows; empty: of all
    bool before_head = false;                                                      // as if the stack had no head
    bool goes_on = false;                             // another pass of the same call was before it
    std::uint32_t pos = 0;                            // of a single sequence: absolute position of the first row
    std::uint32_t seq_len = 0;                        // rows
    std::span<const Sequence> self = {}, cross = {};  // the rows as sequences, beside themselves and the memory
    std::span<const KvPages> kv = {};                 // each sequence's, or one for all
    std::span<const KvPages> memory_kv = {};          // the same of memories whose keys and values are kept: read, or
    bool fills_memory = false;                        // written, and nothing else is computed
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
    bool stopped = false;     // by the caller's flag, at the same phase for every member: phases that follow do nothing
    std::uint32_t n_met = 0;  // phases that ended with a meeting

    Pass(const PassInput& input, WorkspaceState& w, std::uint32_t m, std::uint32_t n) noexcept
        : PassInput(input), workspace(w), member(m), n_members(n) {}

    [[nodiscard]] bool alone() const noexcept { return !has(Part::teams) || n_members == 1; }
    /// Whether other ranks compute a share of this one's layers; which share is this one's; and which layers.
    [[nodiscard]] bool by_ranks() const noexcept { return rank().several(); }
    [[nodiscard]] RankOf rank() const noexcept { return rank_of(workspace.limits); }
    [[nodiscard]] StageOf stage() const noexcept { return StageOf(workspace.limits); }
    [[nodiscard]] UnitShare layers() const noexcept { return layers_of(workspace.limits, stack().n_layers); }

    /// Units [begin, end) of a phase's work.
    struct Share {
        std::uint32_t begin, end;
        /// Those that are among [first, first + n), counted from first. Where there are none, begin is end.
        [[nodiscard]] constexpr Share within(std::uint32_t first, std::uint32_t n) const noexcept {
            const auto from_first = [&](std::uint32_t unit) {
                return unit < first ? 0 : unit - first < n ? unit - first : n;
            };
            return {from_first(begin), from_first(end)};
        }
    };
    /// Part i of n_parts of n units.
    [[nodiscard]] static Share share(std::uint32_t n, std::uint32_t i, std::uint32_t n_parts) noexcept;

    /// A phase: calls work(Share) for this member's units, as often as it has pieces of them, in ascending order; then
    /// ends as Then says, but with a meeting in any case where there is a tap for what it leaves.
    template<class Work>
    void phase(const char* name, const Output& output, const Units& units, const Work& work,
               Then then = Then::meet) noexcept {
        run_phase(name, output, units, {[](const void* w, Share mine) { (*static_cast<const Work*>(w))(mine); }, &work},
                  then);
    }

    /// All rows of the pass, as what a phase leaves.
    [[nodiscard]] Output all(const Rows& rows, std::uint32_t width) const noexcept {
        return {rows, seq_len, width, pos};
    }

    [[nodiscard]] const Stack& stack() const noexcept { return stack_of(workspace.model.config(), index); }
    [[nodiscard]] const StackTensors& tensors() const noexcept { return workspace.stacks[static_cast<int>(index)]; }
    /// Among the layers of both stacks, the number of the stack's first.
    [[nodiscard]] std::uint32_t first_layer() const noexcept {
        return has(Part::vectors) && index == StackIndex::decoder ? workspace.model.config().encoder.n_layers : 0;
    }
    /// What the rows of a sequence are, where the pass has steps.
    [[nodiscard]] StepRows step_of(const Sequence& s) const noexcept {
        const PassSteps its = steps;
        const auto number = static_cast<std::size_t>(&s - self.data());
        if (!has(Part::rows) || !its.list) return {};
        return {(*its.list)[its.first + number], number ? 0 : its.n_done};
    }
    /// A part's tensors of the layer: `all` is what the workspace has of it.
    template<class T>
    [[nodiscard]] const T& of_layer(const T* all) const noexcept {
        return all[first_layer() + layer];
    }
    /// Column scales of one input of the layer, by the field of ColumnTensors; the head's are layer 0's. 0: it has none.
    [[nodiscard]] VectorOffset columns(VectorOffset ColumnTensors::*input) const noexcept {
        const bool is_output = input == &ColumnTensors::output;
        if (!has(Part::columns) || !(is_output ? stack().output_columns : stack().block(layer).column_scales)) return 0;
        return workspace.columns()[first_layer() + (is_output ? 0 : layer)].*input;
    }
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

    /// Packs a block's rows, the first of which is at x, into their place in an operand.
    void pack(const Packing& packing, const float* x, std::uint64_t stride, RowBlocks::Block block,
              void* operand) const noexcept;

    /// Rows as the operand of a matmul with weights of that type, normed first where `weights` asks for it. For one row
    /// each member makes its own, so nothing waits; for more it is a phase. Valid until the next call.
    [[nodiscard]] const void* operand(Type type, const ConstRows& rows, std::uint32_t n_rows, std::uint32_t width,
                                      const NormWeights& weights = {}) noexcept;

    /// A phase: all products of one operand of n_rows rows, their panels shared out as if they were one matrix. Their types differ by no more than their operands allow, see layers.cpp.
    void multiply(const char* name, const Output& output, std::span<const Linear> products, const void* operand,
                  std::uint32_t n_rows, Then then = Then::meet) noexcept;

    /// The same for products that this rank alone needs: nothing is gathered.
    void multiply_here(const char* name, std::span<const Linear> products, const void* operand,
                       std::uint32_t n_rows) noexcept;

    /// The same products' pairs of panels [begin, end), without a phase; and how members share n of them, for n_rows rows.
    void multiply(std::span<const Linear> products, const void* operand, std::uint32_t n_rows,
                  Share pairs) const noexcept;
    [[nodiscard]] Units pairs(std::uint32_t n, std::uint32_t n_rows) const noexcept;

    /// Where each rank's part of rows ends, for gather: columns, of which the first rank's begin at 0.
    using RankEnds = std::uint32_t[kMaxRanks];
    /// A phase: all ranks get what each has made of n_rows rows, its columns of every one. The operand is of no use then. Does
    /// nothing where there are no others.
    void gather(const char* name, const Output& output, const Rows& rows, std::uint32_t n_rows,
                const RankEnds& ends) noexcept;
    /// The same of successive whole rows, `ends` being rows.
    void gather_rows(const Rows& rows, const RankEnds& ends) noexcept;
    /// The same of an attention's heads, width elements each.
    void gather_heads(const char* name, const Output& output, const Rows& rows, const AttentionShape& shape,
                      std::uint32_t width) noexcept;
    /// If the flag of any rank of the first stage is set, the pass ends on all. To be called before each layer, by all members.
    void agree() noexcept;
    /// Where ranks are in stages: the rows of the stream come from the stage before; they go to the next one, and behind the last
    /// layer to all, as far as results are made of them.
    void take_rows() noexcept;
    void hand_on_rows() noexcept;

    /// Shows the tap, if there is one, what the phases before have left. All have met.
    void show(const char* name, const Output& output) noexcept;

private:
    struct WorkCall {
        void (*call)(const void* work, Share mine);
        const void* work;
        void operator()(Share mine) const noexcept { call(work, mine); }
    };
    /// The operand of a single row, in this member's scratch: see OwnRow.
    [[nodiscard]] const void* own_operand(const Packing& packing, const float* row,
                                          const NormWeights& weights) const noexcept;
    void run_phase(const char* name, const Output& output, const Units& units, const WorkCall& work,
                   Then then) noexcept;
    void multiply_by_ranks(const char* name, const Output& output, std::span<const Linear> products,
                           const void* operand, std::uint32_t n_rows) noexcept;
    /// Member 0's call of other ranks, those of its stage unless others are named; `ends` in bytes. A failure ends the pass at
    /// the next meeting. Whether they were reached.
    bool exchange(std::byte* data, std::span<const std::uint64_t> ends) noexcept;
    bool exchange(RankGroup among, std::byte* data, std::span<const std::uint64_t> ends) noexcept;
    /// Member 0's: a word of the pass, then its rows, from the rank `before` to the one as far behind it as a stage has ranks. A
    /// word that says so ends the pass at the next meeting, and no rows follow.
    void pass_rows(std::uint8_t before) noexcept;
    /// Ends the pass at the next meeting, by the flag or for another reason.
    void stop(RanksEnd end = RanksEnd::none) noexcept;
    /// Rows that results are made of.
    [[nodiscard]] UnitShare rows_wanted() const noexcept;
    [[nodiscard]] bool is_shown(const Output& output) const noexcept { return output.n_rows && workspace.trace.call; }
    /// All wait for all; then the flag is obeyed, or the tap is shown the output.
    void meet(const char* name, const Output& output) noexcept;
};

void run_pass(Pass& pass) noexcept;  // run/order.cpp

/// Runs `input` on the workspace's team, or on this thread where `macs` multiplications are too few to wake it.
/// Errors: cancelled.
[[nodiscard]] Status run(WorkspaceState& workspace, const PassInput& input, std::uint64_t macs) noexcept;

}  // namespace fovea
