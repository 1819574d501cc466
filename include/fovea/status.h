// What every fallible function of the engine returns: a code, and the numbers a person needs to act on it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "fovea/export.h"

namespace fovea FOVEA_API {

enum class Code : std::uint8_t {
    ok,
    truncated,            ///< the bytes end before what they announce
    bad_magic,            ///< not a Fovea file
    version_unsupported,  ///< written by a newer major version
    misaligned,           ///< the caller's bytes, or an offset, are not aligned as required
    checksum_mismatch,    ///< a section's CRC-32C differs
    section_missing,      ///< a section this operation needs is not in the file
    section_invalid,      ///< a section's contents contradict themselves
    config_invalid,       ///< a configuration value is outside its range
    tensor_missing,       ///< a tensor the configuration calls for is not in the directory
    tensor_invalid,       ///< a tensor's shape, type or place differs from what the configuration calls for
    unsupported,          ///< well formed, but this build does not compute it
    bad_limits,           ///< Limits outside what the model allows
    arena_too_small,      ///< fewer bytes than the plan says
    bad_shape,            ///< a span's length is not what the call calls for
    token_out_of_range,   ///< an id at or above vocab_size
    context_full,         ///< more positions than the session has room for
    buffer_too_small,     ///< an output span is too short; nothing was written past it
    bad_argument,         ///< a parameter outside its documented range
    isa_unavailable,      ///< the named instruction set is not built in, or this CPU lacks it
    io_error,             ///< the operating system refused; `had` is its error number
    threads_unavailable,  ///< the operating system did not give the threads
    session_mismatch,     ///< no saved session, or one of another model, cache type or numerics version
    cancelled,            ///< the caller's flag was set
    pool_full,            ///< a pool of caches has no page, or no sequence, left
};

/// The result of a call. Trivially copyable; `what` points at a string literal.
/// `wanted` and `had` are in the unit that `what` names; both 0 where a number says nothing.
struct [[nodiscard]] Status {
    Code code = Code::ok;
    const char* what = "";
    std::uint64_t wanted = 0;
    std::uint64_t had = 0;

    [[nodiscard]] constexpr bool ok() const noexcept { return code == Code::ok; }
};

/// The code's name in words: "arena too small".
[[nodiscard]] const char* name(Code code) noexcept;

/// Writes one line such as "arena too small: arena bytes: expected at least 1843200, got 1048576" into `line`, cut off where it does
/// not fit, and returns the part written. 160 bytes hold any of the engine's own lines.
std::string_view describe(const Status& status, std::span<char> line) noexcept;

/// The same as text that a zero ends: std::fprintf(stderr, "%s\n", StatusLine(status).c_str()).
class StatusLine {
public:
    explicit StatusLine(const Status& status) noexcept : size_(describe(status, {line_, kMost}).size()) {}
    [[nodiscard]] const char* c_str() const noexcept { return line_; }
    [[nodiscard]] std::string_view view() const noexcept { return {line_, size_}; }

private:
    static constexpr std::size_t kMost = 160;
    char line_[kMost + 1] = {};
    std::size_t size_;
};

}  // namespace FOVEA_API
