// The ranks of a model as processes that mpirun, srun or another launcher of MPI started.
#pragma once
#include <cstdint>

#include "fovea/ranks.h"

namespace fovea::ranks {

/// What this rank has sent to the others.
struct Traffic {
    std::uint64_t n_messages = 0, n_bytes = 0;
};

/// The process's part in MPI, from its construction to its end. There is one.
class MpiRanks {
public:
    /// Throws std::runtime_error where MPI cannot be started.
    MpiRanks();
    ~MpiRanks();
    MpiRanks(const MpiRanks&) = delete;
    MpiRanks& operator=(const MpiRanks&) = delete;

    [[nodiscard]] const Ranks& ranks() const noexcept { return ranks_; }
    /// Ranks on this machine.
    [[nodiscard]] std::uint32_t n_here() const noexcept { return n_here_; }
    [[nodiscard]] Traffic sent() const noexcept { return sent_; }
    /// Ends all ranks. Does not return.
    [[noreturn]] static void end_all(int status) noexcept;

private:
    bool gather(std::byte* data, std::span<const std::uint64_t> ends) noexcept;

    Ranks ranks_;
    std::uint32_t n_here_ = 1;
    Traffic sent_;
};

}  // namespace fovea::ranks
