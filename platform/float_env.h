// IEEE 754 as the engine needs it: round to nearest even, gradual underflow, no traps.
#pragma once
#include <cstdint>

namespace fovea {

/// Sets this thread's floating-point control word (MXCSR, FPCR, FPSCR) for its scope and restores the caller's, flags
/// included, after. Make it first in an entry point and read the operands afterwards: the compiler knows nothing of
/// control words, but it does not move a read of memory across this constructor.
class FloatEnv {
public:
    FloatEnv() noexcept;
    ~FloatEnv();
    FloatEnv(const FloatEnv&) = delete;
    FloatEnv& operator=(const FloatEnv&) = delete;

private:
    std::uint64_t saved_;
};

}  // namespace fovea
