// The ranks of a model as processes that mpirun, srun or another launcher of MPI started.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fovea/ranks.h"

namespace fovea::ranks {

class LifeSigns;

/// What this rank has sent to the others.
struct Traffic {
    std::uint64_t n_messages = 0, n_bytes = 0;
};

/// The process's part in MPI, from its construction to its end. There is one.
class MpiRanks {
public:
    /// Throws std::runtime_error where MPI cannot be started.
    ///
    ///   on_silence  called by a thread of its own with the number of a rank that has given no sign for silence_seconds
    explicit MpiRanks(std::function<void(std::uint32_t)> on_silence);
    ~MpiRanks();
    MpiRanks(const MpiRanks&) = delete;
    MpiRanks& operator=(const MpiRanks&) = delete;

    [[nodiscard]] const Ranks& ranks() const noexcept { return ranks_; }
    /// Ranks on this machine.
    [[nodiscard]] std::uint32_t n_here() const noexcept { return n_here_; }
    [[nodiscard]] Traffic sent() const noexcept { return sent_; }
    /// The machine that a rank is on.
    [[nodiscard]] const std::string& machine(std::uint32_t rank) const noexcept { return machines_[rank]; }
    [[nodiscard]] static int silence_seconds() noexcept;
    /// Ends all ranks. Does not return.
    [[noreturn]] static void end_all(int status) noexcept;

private:
    bool gather(RankGroup among, std::byte* data, std::span<const std::uint64_t> ends) noexcept;
    /// The bytes of each part from `first` on, as many as go together.
    bool gather_round(RankGroup among, std::byte* data, std::span<const std::uint64_t> ends,
                      std::uint64_t first) noexcept;
    void name_machines();

    std::mutex mpi_;  // held in every call of MPI
    Ranks ranks_;
    std::vector<std::string> machines_;
    std::unique_ptr<LifeSigns> signs_;
    std::uint32_t n_here_ = 1;
    Traffic sent_;
};

}  // namespace fovea::ranks
