// Products shared with other machines. A machine with the same model file can compute some panels of a matrix; the rest
// of a pass stays where it is. No sum is split, so every result has the bits that it has without them.
//
//     the program                                       elsewhere
//     SessionOptions::remote                            a workspace of the same file
//       begin(job): cut(job, begin, end, parts) ─────►  multiply_parts(workspace, parts, operand, n_rows, results)
//       finish(job): take_results(job, …)       ◄─────
//
// The engine knows no network. cluster/ is a transport by TCP; a host may bring another.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "fovea/status.h"
#include "fovea/workspace.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

/// Some panels of 16 rows of a matrix in the model's file, and what becomes of their product with an operand. It holds
/// only numbers, which mean the same to everyone who has that file.
struct MatrixPart {
    std::uint64_t panels = 0;        ///< where the first of them begins in the file
    std::uint64_t panel_stride = 0;  ///< bytes from one to the next
    std::uint64_t bias = 0;          ///< where the bias of their first output begins in the file; 0: none
    std::uint32_t n_panels = 0;
    std::uint32_t n_cols = 0;     ///< of the matrix, and of the operand
    std::uint32_t n_outputs = 0;  ///< for each row of the operand
    std::uint8_t type = 0;        ///< Type
    std::uint8_t epilogue = 0;    ///< 0: store act(y); 1: add y to what is there; 2: act(gate)·up of panels in pairs
    std::uint8_t activation = 0;  ///< Activation
    std::uint8_t canonical = 0;   ///< 1: a NaN is stored as 0x7fc00000
};
static_assert(sizeof(MatrixPart) == 40);

/// Most parts of one machine's share of a product: one for each matrix that shares the operand.
inline constexpr std::size_t kMostParts = 8;

struct RemoteState;  // what the engine knows of a job; engine/pass/remote.h

/// A product of a pass: one operand, and one or several matrices that it is multiplied with. Its work comes in units, which are
/// numbered through all the matrices. Lives until finish returns.
struct RemoteJob {
    std::span<const std::byte> operand;  ///< the rows, packed as multiply_parts wants them
    std::uint32_t n_rows = 0;
    std::uint32_t n_units = 0;
    std::uint64_t unit_bytes = 0;  ///< of weights, on average
    const RemoteState* state = nullptr;
};

/// Callbacks that share products out. With them the best instruction set is the best without tiles (amx), which pack
/// rows in another way. Its functions are called within forward, encode and attend. They do not throw, and must outlive
/// the session or workspace.
struct Remote {
    void* context = nullptr;  ///< handed to each function
    /// Before each pass, by the thread that called forward, encode or attend.
    void (*settle)(void* context) = nullptr;
    /// How many units, from the first on, are computed here. n_units means that nothing is handed out. Every member of the team asks,
    /// so the answer for a job's numbers may change only in settle.
    std::uint32_t (*n_here)(const void* context, const RemoteJob& job) = nullptr;
    /// By one member, before the units here are computed: hands the others out.
    void (*begin)(void* context, const RemoteJob& job) = nullptr;
    /// By the same member, when its own units are done: waits for the others. multiply_here computes results that do
    /// not come, with the same bits.
    void (*finish)(void* context, const RemoteJob& job) = nullptr;
};

/// Writes the parts of units [begin, end) of a job; returns their number. Outputs of part i are columns of n_outputs
/// floats.
[[nodiscard]] std::size_t cut(const RemoteJob& job, std::uint32_t begin, std::uint32_t end,
                              std::span<MatrixPart, kMostParts> parts) noexcept;
/// Floats of a part's results, [n_rows][n_outputs].
[[nodiscard]] constexpr std::uint64_t n_results(const MatrixPart& part, std::uint32_t n_rows) noexcept {
    return std::uint64_t{n_rows} * part.n_outputs;
}
/// Copies the numbers that the parts with epilogue 1 add to, [n_rows][n_outputs] of each such part; `out` has room for
/// them.
void give_addends(const RemoteJob& job, std::uint32_t begin, std::uint32_t end, float* out) noexcept;
/// Puts the results of units [begin, end) in their place: [n_rows][n_outputs] of each part, one part after another.
void take_results(const RemoteJob& job, std::uint32_t begin, std::uint32_t end, const float* results) noexcept;
/// Computes those units here instead.
void multiply_here(const RemoteJob& job, std::uint32_t begin, std::uint32_t end) noexcept;

/// Whether multiply_parts would compute these parts, for an operand and results of those sizes: to be asked before memory is
/// taken for them. Errors: those of multiply_parts.
[[nodiscard]] Status check_parts(const Workspace& workspace, std::span<const MatrixPart> parts,
                                 std::uint64_t operand_bytes, std::uint32_t n_rows, std::uint64_t n_floats) noexcept;

/// Computes parts of the workspace's model on its team: the other side calls it. `results` takes [n_rows][n_outputs] of
/// each part, one part after another. A part with epilogue 1 adds to the numbers there.
/// Any numbers and any operand give results or a Status: nothing outside the file is read, and nothing is written but
/// results.
/// Errors: bad_argument (not made; a part that no matrix of the file can have; an operand that is not 4-byte aligned),
/// bad_shape (no rows, no parts, an operand or results of another size), unsupported (a build without threads, or
/// without that type).
[[nodiscard]] Status multiply_parts(Workspace& workspace, std::span<const MatrixPart> parts,
                                    std::span<const std::byte> operand, std::uint32_t n_rows,
                                    std::span<float> results) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
