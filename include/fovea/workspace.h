// Threads and the rows of one pass: a workspace computes. Any number of sequences, each with a cache of its own, go
// through the weights together.
//
//     Plan plan;                                            // 1. the size, before any memory is taken
//     make_workspace_plan(model.config(), {.max_batch = 64, .n_threads = 2}, plan);
//     Workspace workspace;                                  // 2. the caller's bytes, at least plan.arena_bytes of them
//     make_workspace(model, plan.limits, arena, workspace);
//     const Step steps[] = {{a, prompt, {}}, {b, {&token, 1}, logits}};
//     forward(workspace, steps);                            // 3. as often as there are tokens; allocates nothing
//
// For one sequence fovea/session.h is simpler: a session is a workspace and a cache in one arena.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fovea/cache.h"
#include "fovea/config.h"
#include "fovea/model.h"
#include "fovea/plan.h"
#include "fovea/status.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

inline constexpr std::uint32_t kMaxThreads = 256;
/// A good Limits::n_threads: the fast cores this thread may run on; 1 in a build without threads. Never above kMaxThreads.
[[nodiscard]] std::uint32_t default_threads() noexcept;
/// Ends the threads that the engine has made for the calling thread, which else end with it. Call it on each thread that made
/// sessions before a library with the engine in it is unloaded. Sessions stay: calls run on the calling thread alone until it
/// makes another session or workspace. Other threads may run theirs meanwhile. Does nothing within a call of the engine's.
void end_threads() noexcept;

struct WorkspaceState;  // lives at the start of the arena; engine/pass/workspace.h

/// A handle to state inside the caller's arena; trivially copyable. There is no destructor: release the arena.
class Workspace {
public:
    [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }

private:
    friend struct WorkspaceAccess;
    WorkspaceState* state_ = nullptr;
};

/// A host's own threads for a session or a workspace, in place of the engine's. Called once or several times in each call of forward or
/// encode whose work is worth sharing, n_members being Limits::n_threads:
///
///     void run(void* context, std::uint32_t n_members, void (*work)(void* argument, std::uint32_t member),
///              void* argument);
///
/// It calls work(argument, member) once for each member from 0 to n_members − 1 and returns when all calls have returned.
/// All n_members must run at the same time, each on a thread of its own, for they wait for one another inside: a pool of
/// fewer threads that runs them one after the other waits for ever. Member 0 may be any thread. Every member must
/// see what the caller wrote before, and the caller must see afterwards what the members wrote. `work` neither throws nor allocates.
/// OpenMP's team is there by name: openmp_executor in fovea/executors.h. A host's pool, with a thread for each member:
///
///     void run_on_pool(void* context, std::uint32_t n_members, void (*work)(void*, std::uint32_t), void* argument) {
///         Pool& pool = *static_cast<Pool*>(context);
///         for (std::uint32_t member = 1; member < n_members; ++member) pool.start([=] { work(argument, member); });
///         work(argument, 0);
///         pool.wait();
///     }
struct Executor {
    void (*run)(void* context, std::uint32_t n_members, void (*work)(void* argument, std::uint32_t member),
                void* argument) = nullptr;  ///< nullptr: the engine's own threads
    void* context = nullptr;                ///< handed to run; must outlive the session or workspace
};

struct Ranks;  // fovea/ranks.h

/// How a session or a workspace is run. Nothing here changes a bit of any result, or the plan.
struct SessionOptions {
    const char* isa = nullptr;  ///< one of isa_names(); nullptr: the best of them for the model
    Executor executor{};        ///< the host's threads; by default the engine makes its own
    /// The other ranks, where the limits have several. It must outlive the session or workspace.
    const Ranks* ranks = nullptr;
};

/// Carves `arena` (kArenaAlignment-aligned, at least plan.arena_bytes long) into a workspace and starts its threads.
/// The arena and the model's bytes must outlive it. Threads and errors are those of make_session.
[[nodiscard]] Status make_workspace(const Model& model, const Limits& limits, std::span<std::byte> arena,
                                    Workspace& workspace, const SessionOptions& options = {}) noexcept;

/// The same with an instruction set's name, nullptr for the best.
[[nodiscard]] inline Status make_workspace(const Model& model, const Limits& limits, std::span<std::byte> arena,
                                           Workspace& workspace, const char* isa) noexcept {
    return make_workspace(model, limits, arena, workspace, SessionOptions{.isa = isa});
}

/// Rows [first, end) of a step that see each other, as those of one image do in Gemma 3.
struct RowSpan {
    std::uint32_t first = 0, end = 0;
};

/// Tokens, or rows in their place, for one sequence. Steps of both kinds may follow each other in a cache.
struct Step {
    Cache cache;
    std::span<const Token> tokens;  ///< [n] ids in [0, vocab_size), at least 1; or empty, and there are rows
    std::span<float> logits;        ///< [vocab_size]: after the last; [n, vocab_size]: after each; empty: none
    /// Of a model whose decoder reads a memory: what cache_memory filled. Steps may share it. Else none.
    Cache memory = {};
    /// [n, d_model] vectors in place of the tokens' embeddings: of an image, say. [n, embedding_width] if a map widens those.
    /// They join the stream as they are, behind embedding_scale: a token's embedding times the scale gives the token's logits.
    /// Learned positions and norms of embeddings follow. `inputs_embeds` of transformers 5 are such rows, Gemma's too; but
    /// Granite and Marian's decoder multiply those: multiply by embedding_scale what you have for them.
    /// Where Stack::joins_rows, tokens and as many rows.
    std::span<const float> rows = {};
    /// [n, 3] time, height and width of each token or row, below 2^22, for models whose rotary positions have three
    /// dimensions (AttentionShape::rope_plane; Wang et al. 2024); others refuse them. Empty: all three are the position after
    /// the largest so far, which a cache remembers: a text goes on after an image's largest.
    std::span<const std::uint32_t> positions = {};
    /// Ascending, apart. A row of a span sees the rows behind it in its span, too. A pass ends before a span that has no room in it.
    /// To rewind into a span leaves keys and values that have seen what was forgotten.
    std::span<const RowSpan> spans = {};
    /// Gets what the final norm makes of the step's last rows, [k, d_model], k at most n: the output head reads it. Empty: none.
    std::span<float> vectors = {};
};

/// Appends each step's tokens or rows to its cache and computes its logits, all steps together: the weights are read once for
/// max_batch rows, whichever sequences they belong to. More rows than that take several passes, in order.
///
/// On success each kv_len grows by its n. A sequence's logits are the same as alone, in every bit: they do not
/// depend on the other steps, their order, the pages' places, forks, threads or instruction set, nor on how tokens and rows are
/// split into steps; only a span must be within one. Allocates nothing; takes pages from the caches' pools.
/// Errors, nothing changed: bad_argument (not made; a cache that is not valid, or comes twice; a memory that the model
/// does not read; tokens and rows), session_mismatch (a cache of another model), bad_shape (no steps, more than
/// max_sequences, no tokens, part of a row, logits, vectors or positions of another size, a position too large, an empty memory,
/// spans that are not within the step or have more than max_batch rows), token_out_of_range, context_full, pool_full
/// (pages needed), unsupported (not a model for logits; positions of a model without three dimensions; rows of a model
/// whose tokens give each layer an input; rows or vectors left out of this build). On `cancelled` the caches are as before the call
/// and the logits of no use.
/// Source: Vaswani et al. 2017, eq. 1 (attention); Su et al. 2021, eq. 34 (rotary positions); Kwon et al. 2023 (pages).
[[nodiscard]] Status forward(Workspace& workspace, std::span<const Step> steps) noexcept;

/// Keys from here on are no token's.
inline constexpr Token kFirstRowKey = 1u << 31;
/// Keys of a step's rows, by which a text with rows is told from another as tokens tell it: see resume of fovea/generator.h. Each
/// depends on every bit of the step's rows, positions and spans, so that texts with two images differ from the first row on.
///
///   keys  [n]  one for each row, at least kFirstRowKey
///
/// They are hashes of 31 bits from one of 64: against accidents, not against who looks for two rows of one key.
void row_keys(const Step& step, std::span<Token> keys) noexcept;

/// From here on forward, encode and attend look at `*flag` after every phase of a pass (a product, an attention) and,
/// if it is true, end there with `cancelled`: caches are as before the call, and usable; outputs hold nothing of use. A
/// flag that is set during the last phase may come too late. The caller owns the flag, and may set it from any thread.
/// nullptr: no longer.
void set_cancel(Workspace& workspace, const std::atomic<bool>* flag) noexcept;

/// The instruction sets that are built in and that this CPU has, best first; the last is always "scalar".
[[nodiscard]] std::span<const char* const> isa_names() noexcept;

/// Raised whenever an order of operations, and with it any bit of any result, changes.
inline constexpr std::uint32_t kNumericsVersion = 1;

/// Receives one layer's attention weights on request, as exp(score − maximum) / sum, by a second pass over the scores
/// of rows that have their maximum and sum. Slows that layer, and changes no other result.
struct AttentionWeights {
    std::uint32_t layer = 0;
    bool in_encoder = false;      ///< a layer of the encoder, if the model has both stacks
    bool cross = false;           ///< its attention over the memory
    bool per_head = false;        ///< else the mean over the query heads, summed in their order
    std::uint32_t n_queries = 0;  ///< rows of each matrix; forward: at least the positions, for row i is position i
    std::uint32_t n_keys = 0;     ///< columns, at least as many as keys; appended keys come last; the rest is 0
    /// [n_sequences][n_heads, if per_head][n_queries][n_keys], n_sequences as in the calls to come; empty: no weights.
    /// Rows that no call computes stay as they are.
    std::span<float> out;
};
/// Captures weights in every call from here on; with {} in none. `out` must stay valid. A call is refused with bad_shape
/// if it has more queries, keys or sequences than `out` has room for, or if it has several sequences and more rows than
/// one pass takes. Errors: bad_argument (no such layer).
[[nodiscard]] Status capture_attention(Workspace& workspace, const AttentionWeights& weights) noexcept;

/// A tap on intermediate results, for finding differences; it slows a pass. Called between phases with one row in float32 at
/// a time, by member 0: without an executor that is the calling thread. `pos` is the row's position; in encode, and
/// with several steps, its number among all sequences' rows. `layer` is n_layers for what follows the last layer.
struct Trace {
    void (*call)(void* context, std::uint32_t pos, std::uint32_t layer, const char* operation,
                 std::span<const float> row) = nullptr;
    void* context = nullptr;
};
/// Sets or, with {}, removes the tap. Changes no result.
void set_trace(Workspace& workspace, const Trace& trace) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
