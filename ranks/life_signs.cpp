#include "ranks/life_signs.h"

#include <algorithm>
#include <utility>

namespace fovea::ranks {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{100}, kLookAtEnd{1}, kBetweenSigns{1000};
// Who has not looked for so long was stopped itself, and knows nothing of the others.
constexpr milliseconds kStopped{2000};
// So much later does the next rank say who was silent: what the first says ends the others, on a busy machine too. Beyond the
// fifth all say it at once, within ten seconds of the last sign.
constexpr milliseconds kTurn{600};
constexpr int kMostTurns = 5;
constexpr char kGoesOn = 0, kEnds = 1;

}  // namespace

LifeSigns::LifeSigns(std::mutex& mpi, std::function<void(std::uint32_t)> on_silence)
    : mpi_(mpi), on_silence_(std::move(on_silence)) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &n_);
    for (auto& heard : heard_) heard = Clock::now();
    sent_.fill(MPI_REQUEST_NULL);
    thread_ = std::thread([this] { watch(); });
}

LifeSigns::~LifeSigns() {
    {
        const std::lock_guard held(mutex_);
        ends_ = true;
    }
    end_.notify_one();
    thread_.join();
    MPI_Waitall(n_, sent_.data(), MPI_STATUSES_IGNORE);
    MPI_Comm_free(&comm_);
}

void LifeSigns::watch() {
    Clock::time_point looked = Clock::now(), sent{};
    for (bool said_end = false; !said_end || std::count(gone_.begin(), gone_.end(), true) < n_ - 1;) {
        const bool ends = rest(said_end) && !said_end;
        const Clock::time_point now = Clock::now();
        if (now - std::exchange(looked, now) > kStopped)
            for (auto& heard : heard_) heard = now;
        {
            const std::lock_guard held(mpi_);
            if (!said_end && (ends || now - sent >= kBetweenSigns)) {
                send(ends);
                sent = now;
                said_end = ends;
            }
            receive();
        }
        if (const int lost = silent(); lost < n_) {
            std::this_thread::sleep_for(kTurn * std::min(rank_, kMostTurns));
            return on_silence_(static_cast<std::uint32_t>(lost));
        }
    }
}

bool LifeSigns::rest(bool ended) {
    std::unique_lock held(mutex_);
    if (ended)
        end_.wait_for(held, kLookAtEnd, [] { return false; });
    else
        end_.wait_for(held, kLook, [this] { return ends_; });
    return ends_;
}

/// Where the sign before has not left yet, another one helps nobody; the last is sent all the same.
void LifeSigns::send(bool is_last) {
    for (int r = 0; r < n_; ++r) {
        if (r == rank_) continue;
        int left = 0;
        MPI_Request& request = sent_[static_cast<std::size_t>(r)];
        MPI_Test(&request, &left, MPI_STATUS_IGNORE);
        if (!left && !is_last) continue;
        if (!left) MPI_Request_free(&request);
        MPI_Isend(is_last ? &kEnds : &kGoesOn, 1, MPI_CHAR, r, 0, comm_, &request);
    }
}

void LifeSigns::receive() {
    for (;;) {
        int there = 0;
        MPI_Status status;
        if (MPI_Iprobe(MPI_ANY_SOURCE, 0, comm_, &there, &status) != MPI_SUCCESS || !there) return;
        char sign = kGoesOn;
        if (MPI_Recv(&sign, 1, MPI_CHAR, status.MPI_SOURCE, 0, comm_, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
        const auto from = static_cast<std::size_t>(status.MPI_SOURCE);
        heard_[from] = Clock::now();
        gone_[from] = gone_[from] || sign == kEnds;
    }
}

int LifeSigns::silent() const {
    const Clock::time_point now = Clock::now();
    int lost = n_;
    for (int r = n_ - 1; r >= 0; --r)
        if (const auto i = static_cast<std::size_t>(r); r != rank_ && !gone_[i] && now - heard_[i].load() > kLongest)
            lost = r;
    return lost;
}

}  // namespace fovea::ranks
