// Plan, then memory, then tokens: how a model is run.
//
//     Plan plan;                        // 1. the size, before any memory is taken
//     make_plan(model.config(), limits, plan);
//     Session session;                  // 2. the caller's bytes, at least plan.arena_bytes of them
//     make_session(model, limits, arena, session);
//     forward(session, tokens, logits); // 3. as often as there are tokens; allocates nothing
//
// What a model computes follows from its configuration: logits of a decoder with a vocabulary (forward), vectors of
// encoders and of decoders that take vectors (encode), or a lone attention (attend). The last two: fovea/encode.h.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fovea/config.h"
#include "fovea/export.h"
#include "fovea/model.h"
#include "fovea/status.h"

namespace fovea FOVEA_API {

/// What a session must be able to hold. The defaults work for every model.
struct Limits {
    std::uint32_t max_kv_len = 0;  ///< positions in the cache; 0: the model's max_positions. For forward alone
    std::uint32_t max_batch = 0;   ///< tokens computed together; 0: min(192, max_kv_len). Longer prompts go in pieces.
                                   ///< encode, attend: rows of all sequences of a stack; 0: max_positions, or 512
    std::uint32_t n_threads = 1;   ///< 1 to kMaxThreads; the size of the team, fixed for the session's life
    Type kv_type = Type::f32;      ///< f32, f16 or q8: how keys and values are cached
    std::uint32_t max_sequences = 0;  ///< encode, attend: sequences in one call; 0: 1
    std::uint32_t max_memory = 0;     ///< encode, attend: rows of the memory, or keys, past ones too, of all sequences;
                                      ///< 0: max_batch
};

inline constexpr std::uint32_t kMaxThreads = 256;
/// A good Limits::n_threads: the fast cores this thread may run on; 1 in a build without threads. Never above kMaxThreads.
[[nodiscard]] std::uint32_t default_threads() noexcept;
inline constexpr std::size_t kArenaAlignment = 64;

/// One named stretch of the arena.
struct PlanPart {
    const char* name = "";
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// Exact memory for (config, limits): the same on every machine and instruction set.
struct Plan {
    Limits limits{};                ///< with the zeros replaced by what they stand for
    std::uint64_t arena_bytes = 0;  ///< exactly what make_session needs
    std::array<PlanPart, 24> parts{};
    std::uint32_t n_parts = 0;
};

/// A pure function of its arguments. Errors, `plan` unchanged: config_invalid, bad_limits, unsupported.
[[nodiscard]] Status make_plan(const Config& config, const Limits& limits, Plan& plan) noexcept;

struct SessionState;  // lives at the start of the arena; engine/session.cpp

/// A handle to state inside the caller's arena; trivially copyable, frees nothing. All but valid() is for one that
/// make_session has made.
class Session {
public:
    [[nodiscard]] std::uint32_t kv_len() const noexcept;      ///< positions cached so far
    [[nodiscard]] std::uint32_t max_kv_len() const noexcept;  ///< capacity
    [[nodiscard]] const char* isa() const noexcept;           ///< the instruction set that runs it
    [[nodiscard]] const Model& model() const noexcept;
    [[nodiscard]] const Limits& limits() const noexcept;
    [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }

private:
    friend struct SessionAccess;
    SessionState* state_ = nullptr;
};

/// A host's own threads for a session, in place of the engine's. Called once or several times in each call of forward or
/// encode whose work is worth sharing, n_members being Limits::n_threads:
///
///     void run(void* context, std::uint32_t n_members, void (*work)(void* argument, std::uint32_t member),
///              void* argument);
///
/// It calls work(argument, member) once for each member from 0 to n_members − 1 and returns when all calls have returned.
/// All n_members must run at the same time, each on a thread of its own, for they wait for one another inside: a pool of
/// fewer threads that runs them one after the other waits for ever. Member 0 may be any thread. What the caller wrote
/// before is seen by every member, and what members wrote by the caller after. `work` neither throws nor allocates.
/// With OpenMP, in a host that has it anyway (-fopenmp; it may end the process where the system gives no thread):
///
///     void run_by_openmp(void*, std::uint32_t n_members, void (*work)(void*, std::uint32_t), void* argument) {
///     #pragma omp parallel num_threads(n_members)
///         work(argument, omp_get_thread_num());
///     }
struct Executor {
    void (*run)(void* context, std::uint32_t n_members, void (*work)(void* argument, std::uint32_t member),
                void* argument) = nullptr;  ///< nullptr: the engine's own threads
    void* context = nullptr;                ///< handed to run; must outlive the session
};

/// How a session is run. Nothing here changes a bit of any result, or the plan.
struct SessionOptions {
    const char* isa = nullptr;  ///< one of isa_names(); nullptr: the best that this CPU has
    Executor executor{};        ///< the host's threads; by default the engine makes its own
};

/// Carves `arena` (kArenaAlignment-aligned, at least plan.arena_bytes long) into a session and starts its threads.
/// The arena and the model's bytes must outlive the session. There is nothing to close: release the arena.
/// Threads: with n_threads above 1 and no executor, the calling thread gets n_threads − 1 threads, which all its
/// sessions share, which sleep between calls, and which end with it. No later call makes any. A session may be used by
/// another thread than its maker's, by one at a time: it then runs on that thread and those made for it, so perhaps on it
/// alone. A forked child has its parent's sessions and none of their threads; sessions made there get new ones.
/// With an executor no thread is made here.
/// Errors, `session` and what the arena holds unchanged: those of make_plan, arena_too_small, misaligned,
/// isa_unavailable, threads_unavailable (the system gives fewer threads, or this build makes none).
[[nodiscard]] Status make_session(const Model& model, const Limits& limits, std::span<std::byte> arena,
                                  Session& session, const SessionOptions& options = {}) noexcept;

/// The same with an instruction set's name, nullptr for the best.
[[nodiscard]] inline Status make_session(const Model& model, const Limits& limits, std::span<std::byte> arena,
                                         Session& session, const char* isa) noexcept {
    return make_session(model, limits, arena, session, SessionOptions{.isa = isa});
}

/// Appends `tokens` to the session and computes logits.
///
///   tokens  [seq_len]                ids in [0, vocab_size); 1 <= seq_len <= max_kv_len - kv_len
///   logits  [vocab_size]             those that follow the last token, or
///           [seq_len, vocab_size]    those after every token, or
///           empty                    none: the prompt's earlier part needs none
///                                    float32, unnormalised; NaN only as 0x7fc00000
///
/// On success kv_len grows by seq_len. The result does not depend, in any bit, on how tokens are split into calls, on
/// the number of threads, or on the instruction set. Allocates nothing.
/// Errors, session unchanged: bad_shape, context_full, token_out_of_range, unsupported (not a model for logits),
/// cancelled (see set_cancel).
/// Source: Vaswani et al. 2017, eq. 1 (attention); Su et al. 2021, eq. 34 (rotary positions).
[[nodiscard]] Status forward(Session& session, std::span<const Token> tokens, std::span<float> logits) noexcept;

/// Forgets every position from kv_len on: the session is as it was when it had that many. Errors: bad_argument.
[[nodiscard]] Status rewind(Session& session, std::uint32_t kv_len) noexcept;

/// Exact bytes that save_session writes at the present kv_len; 0 for models that cache nothing between calls.
[[nodiscard]] std::uint64_t session_bytes(const Session& session) noexcept;

/// Writes what forward has cached: positions, keys and values, a checksum, and what model and cache they belong to.
/// The bytes depend on no capacity, number of threads or instruction set, and may be unaligned.
/// Errors, `written` unchanged: buffer_too_small (nothing is written then), unsupported (no model for forward).
[[nodiscard]] Status save_session(const Session& session, std::span<std::byte> out, std::size_t& written) noexcept;

/// The session becomes what the saved one was, whatever it held: what forward computes from here on is the same in
/// every bit. `saved`, exactly what save_session wrote, may be anything at all, and is checked before the first change. The
/// checksum finds damage; it does not tell who wrote the bytes.
/// Errors, session unchanged: truncated, bad_shape (too long), version_unsupported, checksum_mismatch, unsupported,
/// session_mismatch (no saved session, or of another model, cache type or numerics version), context_full (no room).
[[nodiscard]] Status restore_session(Session& session, std::span<const std::byte> saved) noexcept;

/// `to` becomes what `from` is: a shared prompt is computed once. Neither's capacity or threads matter otherwise.
/// Errors, `to` unchanged: session_mismatch, context_full, unsupported.
[[nodiscard]] Status copy_session(const Session& from, Session& to) noexcept;

/// From here on forward and encode look at `*flag` before every layer and, where it is true, end there with
/// `cancelled`: the session is as before the call, and usable; outputs hold nothing of use. The caller owns the flag, and may set it
/// from any thread. nullptr: no longer. Costs the team two meetings per layer.
void set_cancel(Session& session, const std::atomic<bool>* flag) noexcept;

/// The instruction sets that are built in and that this CPU has, best first; the last is always "scalar".
[[nodiscard]] std::span<const char* const> isa_names() noexcept;

/// Raised whenever an order of operations, and with it any bit of any result, changes.
inline constexpr std::uint32_t kNumericsVersion = 1;

/// Where attention weights go on request: those of one layer, as exp(score − maximum) / sum, by a second pass over the
/// scores of rows that have their maximum and sum. Slows that layer, and changes no other result.
struct AttentionWeights {
    std::uint32_t layer = 0;
    bool in_encoder = false;      ///< a layer of the encoder, where the model has both stacks
    bool cross = false;           ///< its attention over the memory
    bool per_head = false;        ///< else the mean over the query heads, summed in their order
    std::uint32_t n_queries = 0;  ///< rows of each matrix; forward: at least the positions, for row i is position i
    std::uint32_t n_keys = 0;     ///< columns, at least those that there are; appended keys come last; the rest is 0
    /// [n_sequences][n_heads, if per_head][n_queries][n_keys], n_sequences as in the calls to come; empty: no weights.
    /// Rows that no call computes stay as they are.
    std::span<float> out;
};
/// Asks for weights of every call from here on or, with {}, no longer. `out` must stay. Calls refuse, with bad_shape,
/// where they have more queries, keys or sequences than it has room for. Errors: bad_argument (no such layer).
[[nodiscard]] Status set_weights(Session& session, const AttentionWeights& weights) noexcept;

/// A tap on intermediate results: called by member 0, without an executor the calling thread, between phases, one row at a time, with the row's
/// position (for encode its number among all sequences' rows), the layer's number (n_layers for what follows the last),
/// the operation's name and the row in float32. Slows a pass; meant for finding differences.
struct Trace {
    void (*call)(void* context, std::uint32_t pos, std::uint32_t layer, const char* operation,
                 std::span<const float> row) = nullptr;
    void* context = nullptr;
};
/// Sets or, with {}, removes the session's tap. Changes no result.
void set_trace(Session& session, const Trace& trace) noexcept;

}  // namespace fovea
