// Plan, then memory, then tokens: how one sequence is run.
//
//     Plan plan;                        // 1. the size, before any memory is taken
//     make_plan(model.config(), limits, plan);
//     Session session;                  // 2. the caller's bytes, at least plan.arena_bytes of them
//     make_session(model, limits, arena, session);
//     forward(session, tokens, logits); // 3. as often as there are tokens; allocates nothing
//
// A session is a workspace and a cache in one arena. Many sequences at once: fovea/workspace.h and fovea/cache.h.
// What a model computes follows from its configuration: logits of a decoder with a vocabulary (forward), vectors of
// encoders and of decoders that take vectors (encode), or a lone attention (attend). The last two: fovea/encode.h.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fovea/cache.h"
#include "fovea/model.h"
#include "fovea/plan.h"
#include "fovea/status.h"
#include "fovea/workspace.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

struct SessionState;  // lives at the start of the arena; engine/run/session.h

/// A handle to state inside the caller's arena; trivially copyable. There is no destructor: release the arena. Until
/// make_session has made it, functions that return a Status refuse it with bad_argument.
class Session {
public:
    [[nodiscard]] std::uint32_t kv_len() const noexcept;      ///< positions cached so far
    [[nodiscard]] std::uint32_t max_kv_len() const noexcept;  ///< capacity
    [[nodiscard]] const char* isa() const noexcept;           ///< the instruction set that runs it; "" if not valid
    /// Only for a session that was made.
    [[nodiscard]] const Model& model() const noexcept;
    [[nodiscard]] const Limits& limits() const noexcept;
    /// Its workspace and its cache, for functions that take those. Not valid if the session is not; the cache is not valid
    /// either if the model gives no logits.
    [[nodiscard]] Workspace workspace() const noexcept;
    [[nodiscard]] Cache cache() const noexcept;
    [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }

private:
    friend struct SessionAccess;
    SessionState* state_ = nullptr;
};

/// Carves `arena` (kArenaAlignment-aligned, at least plan.arena_bytes long) into a session and starts its threads.
/// The arena and the model's bytes must outlive the session.
/// Threads: with n_threads above 1 and no executor, n_threads − 1 workers are made for the calling thread. All sessions of
/// that thread share them. They sleep between calls, and end with the thread. No later call makes threads. Another thread
/// may use the session, but only one at a time. Then its own workers run the call; it has some only if it has made a
/// session, else it runs alone. A forked child has its parent's sessions but none of their threads; sessions that it makes
/// get new ones. With an executor no thread is made here, except by OpenMP. Code that has made threads must stay loaded: a
/// plugin that links the static library wants -Wl,-z,nodelete, which CMake gives it.
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
/// Errors, session unchanged: bad_argument (not made), bad_shape, context_full, token_out_of_range, unsupported (not a
/// model for logits), cancelled (see set_cancel).
/// Source: Vaswani et al. 2017, eq. 1 (attention); Su et al. 2021, eq. 34 (rotary positions).
[[nodiscard]] Status forward(Session& session, std::span<const Token> tokens, std::span<float> logits) noexcept;

/// Forgets positions from the end: the session is as it was when it had as many as it has now, kv_len, or fewer where the model
/// has recurrent layers. See rewind, and mark for session.cache(), in fovea/cache.h. Errors, nothing changed: bad_argument.
[[nodiscard]] Status rewind(Session& session, std::uint32_t kv_len, std::uint32_t* reached = nullptr) noexcept;

/// As cache_bytes, save_cache, restore_cache and copy_cache of fovea/cache.h, of the session's cache; unsupported if
/// the model gives no logits. A session restores what a cache of a pool has saved, and the reverse.
[[nodiscard]] std::uint64_t session_bytes(const Session& session) noexcept;
[[nodiscard]] Status save_session(const Session& session, std::span<std::byte> out, std::size_t& written) noexcept;
[[nodiscard]] Status restore_session(Session& session, std::span<const std::byte> saved) noexcept;
[[nodiscard]] Status copy_session(const Session& from, Session& to) noexcept;

/// As in fovea/workspace.h. For a session that was not made set_cancel and set_trace do nothing, and capture_attention
/// is bad_argument.
void set_cancel(Session& session, const std::atomic<bool>* flag) noexcept;
[[nodiscard]] Status capture_attention(Session& session, const AttentionWeights& weights) noexcept;
void set_trace(Session& session, const Trace& trace) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
