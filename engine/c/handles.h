// The handles of the C interface, and the reading and writing of its structs.
#pragma once
#include <atomic>
#include <bit>

#include "fovea/fovea.h"
#include "fovea/sampler.h"
#include "fovea/session.h"
#include "fovea/tokenizer.h"

struct fovea_model {
    const fovea::Model* model;
    fovea::Tokenizer tokenizer;  // not valid if the model has none
};

struct fovea_workspace {
    fovea::Workspace workspace;
    fovea::Cache* memories;  // [max_steps] what fovea_cache_memory makes of a caller's
    std::uint32_t max_steps;
    bool cancellable;
    std::atomic<bool> cancelled;
};

struct fovea_session {
    fovea_model model;
    fovea_workspace workspace;
    fovea::Session session;
    fovea::Sampler sampler;
    std::span<float> logits;
    std::span<std::byte> scratch;
};

namespace fovea {

// Not inline, for every function of the interface has one, and boards have little flash.
[[nodiscard]] fovea_status to_c(const Status& s) noexcept;

[[nodiscard]] inline Status is_null(const char* what) noexcept { return {Code::bad_argument, what, 0, 0}; }
[[nodiscard]] fovea_status refuse_null(const char* what) noexcept;
[[nodiscard]] fovea_status success() noexcept;

/// Reads a caller's struct into one of out_bytes. A struct of an older library lacks the last fields. One of a newer
/// library has further fields; unless they are zero, they ask for what is not known here.
[[nodiscard]] Status read_struct(const void* given, void* out, std::uint32_t out_bytes) noexcept;
template<class Struct>
[[nodiscard]] Status read_struct(const Struct* given, Struct& out) noexcept {
    return read_struct(given, &out, sizeof out);
}

/// Whether a caller's struct may be written to; its fields need not be set.
[[nodiscard]] Status check_struct(const void* out) noexcept;
/// Writes as much as a struct that check_struct accepted has room for; bytes beyond ours become zero.
void write_struct(const void* made, std::uint32_t made_bytes, void* out) noexcept;

/// A caller's limits, as both interfaces know them.
struct RequestedLimits {
    fovea_limits c;
    Limits limits;

    [[nodiscard]] Status read(const fovea_limits* given) noexcept;
    [[nodiscard]] SessionOptions options() const noexcept {
        return {.isa = c.isa, .executor = {.run = c.run, .context = c.run_context}};
    }
};

/// Writes a session's or a workspace's plan. Errors: those of check_struct.
[[nodiscard]] Status write_plan(const fovea_model& model, const RequestedLimits& requested, const Plan& plan,
                                std::uint64_t arena_bytes, fovea_plan* out) noexcept;

/// How many steps a workspace or session for logits has room for, and bytes of as many caches, the same on every machine.
[[nodiscard]] inline std::uint32_t max_steps(const Limits& limits) noexcept {
    return limits.max_sequences ? limits.max_sequences : 1;
}
[[nodiscard]] std::uint64_t memories_bytes(std::uint32_t n_steps) noexcept;
/// Fills `place` in, whose memories are at `memories`.
void start_workspace(fovea_workspace& place, const Workspace& made, const RequestedLimits& requested,
                     std::uint32_t n_steps, std::byte* memories) noexcept;

[[nodiscard]] inline fovea_cache to_c(const Cache& cache) noexcept { return std::bit_cast<fovea_cache>(cache); }

[[nodiscard]] inline Cache from_c(const fovea_cache* cache) noexcept {
    return cache ? std::bit_cast<Cache>(*cache) : Cache{};
}

[[nodiscard]] Status read_sampler(const fovea_sampler* given, SamplerOptions& options) noexcept;

/// Opens a file and its tokenizer.
[[nodiscard]] Status open_bytes(const void* file, std::size_t file_bytes, bool verify, Model& model,
                                Tokenizer& tokenizer) noexcept;

}  // namespace fovea
