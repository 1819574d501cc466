// Weights as they lie in another format's file, read in the order in which a Fovea file holds them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "convert/weights/model_source.h"
#include "convert/weights/rope.h"
#include "fovea/mapping.h"

namespace fovea {

/// A matrix [rows, columns] somewhere in memory, in any alignment. A vector is a matrix of one column.
struct TensorView {
    const std::byte* data = nullptr;
    Type type = Type::f32;         ///< f32, f16 or bf16
    std::uint64_t row_stride = 1;  ///< elements from one row to the next
    std::uint64_t col_stride = 1;  ///< and from one column to the next; a transposed matrix has 1 above, more here
    /// Where the elements are quantized: writes a row of them. `data` is then not null and otherwise unused.
    std::function<void(std::uint64_t row, float* out)> dequantize = {};
    /// Where they are groups that a quantized type holds as they are: writes those of a row. group_type is that type; without
    /// groups, what a matrix that is dequantized becomes where no type is chosen.
    std::function<void(std::uint64_t row, QuantizedGroup* out)> groups = {};
    Type group_type = Type::q8;
};

/// out [n]: the elements of a vector that is plain floats.
void read_vector(const TensorView& view, std::uint32_t n, float* out);

/// out [n_cols]: a row of plain floats, whatever its strides.
void read_strided_row(const TensorView& view, std::uint64_t row, std::uint32_t n_cols, float* out);

/// out [n_cols]: a row of plain floats or of others.
void read_row(const TensorView& view, std::uint64_t row, std::uint32_t n_cols, float* out);

/// How the rows of a source become those of the file.
struct RowOrder {
    /// Above 0: rows are heads of this many dims, of which the first rotary_dim rotate as halves (dim i with dim
    /// i + rotary_dim / 2) and become adjacent pairs.
    std::uint32_t head_dim = 0;
    std::uint32_t rotary_dim = 0;
    std::uint32_t n_last = 0;  ///< of each head so many last dims of the source are the first
    /// Above 0: after every `run` rows the source goes on `stride` rows after the run's first, for others lie between.
    std::uint32_t run = 0, stride = 0;
};

/// "query_bias" for Role::query_bias, whichever parts the engine is built with; empty for what is no role.
[[nodiscard]] std::string_view role_word(Role role);

/// Whether its rows, or the norm's weights, are of heads that positions turn: queries' and keys'.
[[nodiscard]] bool is_turned(Role role);

/// How a tensor's rows become those of heads that turn in adjacent pairs; of a role that is not turned, as they are. `ropes`
/// has the rotation of each of the stack's blocks.
[[nodiscard]] RowOrder rotary_order(const Stack& stack, const TensorSpec& spec, std::span<const Rope> ropes);

/// A model's tensors, each where it is found, and the files they are found in.
class MappedWeights {
public:
    void add(const TensorSpec& spec, TensorView view, RowOrder order = {}) {
        entries_[key_of(spec)] = {.views = {std::move(view)}, .order = order};
    }
    /// Gate and up of a gated feed-forward part, d_ff rows each.
    void add_gated(const TensorSpec& spec, TensorView gate, TensorView up, std::uint32_t d_ff) {
        entries_[key_of(spec)] = {.views = {std::move(gate), std::move(up)}, .n_rows = d_ff, .gated = true};
    }
    /// Matrices of n_rows rows each, which the file has below each other in whole panels: experts', or those of a gate and an up of
    /// each; or heads'. `view` is called for each in turn and, where `gated`, again for its up.
    void add_each(const TensorSpec& spec, std::uint32_t n, std::uint32_t n_rows, bool gated,
                  const std::function<TensorView(std::uint32_t i, bool up)>& view);
    /// What is in no file.
    void add_computed(const TensorSpec& spec, std::vector<float> values, RowOrder order = {});
    /// What was added as one role is another's.
    void rename(const TensorSpec& from, Role to) {
        auto entry = entries_.extract(key_of(from));
        std::get<Role>(entry.key()) = to;
        entries_.insert(std::move(entry));
    }
    /// Keeps the files that tensors are in for as long as this lives.
    void keep(Mapping mapping) { mappings_.push_back(std::move(mapping)); }
    void keep(std::vector<Mapping> mappings) {
        for (Mapping& mapping : mappings) keep(std::move(mapping));
    }
    /// The same of tensors that no file has as they are viewed.
    void keep(std::vector<std::vector<std::byte>> copies) {
        for (std::vector<std::byte>& copy : copies) copies_.push_back(std::move(copy));
    }

    /// As RowReader has it. The tensor must have been added and be as large as the spec says.
    void read_rows(const TensorSpec& spec, std::uint32_t row_begin, std::uint32_t n_rows, float* out) const;
    /// As GroupReader has it; q4's groups are q8's too.
    [[nodiscard]] bool read_groups(const TensorSpec& spec, Type type, std::uint32_t row_begin, std::uint32_t n_rows,
                                   QuantizedGroup* out) const;

    /// How that tensor is stored; where its blocks are of no type of ours, or of a gate and an up that differ, q8, and f32
    /// for a table.
    [[nodiscard]] Type type_of(const TensorSpec& spec) const;

private:
    using Key = std::tuple<StackIndex, Role, std::uint32_t>;
    [[nodiscard]] static Key key_of(const TensorSpec& spec) { return {spec.stack, spec.role, spec.layer}; }
    struct Entry {
        std::vector<TensorView> views;  // of each matrix, or its gate's and its up's
        RowOrder order = {};
        std::uint32_t n_rows = 0;  // above 0: of each, padded to whole panels
        bool gated = false;        // panels of a gate and of its up in turn
    };
    struct Place {
        const TensorView* view = nullptr;  // null: zeros
        std::uint32_t row = 0;
    };
    static Place find_row(const Entry& entry, std::uint32_t row);

    std::map<Key, Entry> entries_;
    std::vector<std::vector<float>> computed_;
    std::vector<Mapping> mappings_;
    std::vector<std::vector<std::byte>> copies_;
};

/// Makes `source` read from `weights`; with each_type it also says how each matrix is stored.
void set_readers(MappedWeights weights, ModelSource& source, bool each_type = false);

}  // namespace fovea
