// The result of every fallible function of the engine: a code, and the numbers a person needs to act on it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

/// Why a call failed: ok, truncated, bad_magic and so on, listed with their meaning in codes.inc. Others may be added.
enum class Code : std::uint8_t {
#define FOVEA_CODE(name, NAME, words) name,
#include "fovea/codes.inc"

#undef FOVEA_CODE
};

/// The result of a call. Trivially copyable; `what` points at a string literal.
/// `wanted` and `had` are in the unit that `what` names. Both are 0 if no number applies. If they are equal and not 0, they
/// are one number that says where, such as a tensor's number.
struct [[nodiscard]] Status {
    Code code = Code::ok;
    const char* what = "";
    std::uint64_t wanted = 0;
    std::uint64_t had = 0;

    [[nodiscard]] constexpr bool ok() const noexcept { return code == Code::ok; }
};

/// The code's name in words: "arena too small".
[[nodiscard]] const char* name(Code code) noexcept;

/// Writes one line such as "arena too small: arena bytes: expected at least 1843200, got 1048576" into `line`, cut off
/// if it does not fit, and returns the part written. 160 bytes hold any of the engine's own lines.
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

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
