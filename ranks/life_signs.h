// What tells a rank that works or waits for long from one that is lost: each sends the others a sign while it lives.
#pragma once
#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "fovea/ranks.h"

namespace fovea::ranks {

/// By a thread of its own, for passes, files and people take as long as they take.
class LifeSigns {
public:
    static constexpr std::chrono::seconds kLongest{6};  ///< silence of a rank

    /// `mpi` is held in every call of MPI, here and elsewhere. `on_silence` is called by the thread, once, with the rank that
    /// was silent; where several ranks see it, by one after the other. On all ranks at once.
    LifeSigns(std::mutex& mpi, std::function<void(std::uint32_t)> on_silence);
    /// Waits until the others end theirs.
    ~LifeSigns();
    LifeSigns(const LifeSigns&) = delete;
    LifeSigns& operator=(const LifeSigns&) = delete;

    /// Something came from the rank, which is a sign as well.
    void heard(std::uint32_t rank) noexcept { heard_[rank] = Clock::now(); }

private:
    using Clock = std::chrono::steady_clock;

    void watch();
    /// Sleeps until the next look. Whether this rank ends its signs.
    [[nodiscard]] bool rest(bool ended);
    void send(bool is_last);
    void receive();
    /// The rank that is silent for too long, or n_.
    [[nodiscard]] int silent() const;

    std::mutex& mpi_;
    std::function<void(std::uint32_t)> on_silence_;
    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0, n_ = 1;
    std::array<std::atomic<Clock::time_point>, kMaxRanks> heard_{};
    std::array<bool, kMaxRanks> gone_{};  // said that they end
    std::array<MPI_Request, kMaxRanks> sent_{};
    std::mutex mutex_;
    std::condition_variable end_;
    bool ends_ = false;
    std::thread thread_;
};

}  // namespace fovea::ranks
