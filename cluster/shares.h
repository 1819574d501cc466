// How large a part of a product each machine computes.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace fovea::cluster {

/// Kinds of products, by their number of rows, which sets their speed: one row reads weights, many rows compute.
enum Kind { one_row, few_rows, many_rows, kKinds };
[[nodiscard]] Kind kind_of(std::uint32_t n_rows) noexcept;

/// Speeds of machines, as passes measured them, and the shares that follow. The program is number 0. Work is bytes of
/// weights times rows; speed is work in a nanosecond.
class Shares {
public:
    /// Until a machine is measured, its threads say how fast it is. `overhead`: nanoseconds that a message and its answer take.
    Shares(std::span<const std::uint32_t> n_threads, double overhead);

    /// Fills `units` with each machine's part of a product's n_units, from machine 0 on. All of them are machine 0's if
    /// sharing would not gain. Any thread may ask; the answer changes only in settle.
    void divide(Kind kind, double work, std::uint32_t n_units, std::span<std::uint32_t> units) const;

    /// A machine's work in this pass, and the time that sharing a product took beyond its slowest part.
    void add(std::size_t machine, Kind kind, double work, double nanoseconds);
    void add_overhead(Kind kind, double nanoseconds);
    /// A machine that is gone has no share in later passes.
    void lose(std::size_t machine) { machines_[machine].there = false; }
    /// Between two passes: what was measured counts from here on.
    void settle();

    [[nodiscard]] std::size_t n_machines() const { return machines_.size(); }
    [[nodiscard]] double speed(std::size_t machine, Kind kind) const { return machines_[machine].of[kind].speed; }

private:
    struct Measured {
        double sum = 0, weight = 0;
    };
    struct Speed {
        double speed = 0;
        bool known = false;       // it was measured once
        std::uint32_t n_out = 0;  // passes in which it was too slow for a unit
        Measured measured;
    };
    struct Machine {
        std::array<Speed, kKinds> of;
        bool there = true, counts = true;  // now; in this pass
    };
    struct Overhead {
        double nanoseconds = 0;
        std::uint32_t n_kept = 0;  // passes that did not share, for it would not have gained
        Measured measured;
        mutable std::atomic<bool> asked = false, kept = false;  // by any thread, in this pass
    };

    std::vector<Machine> machines_;
    std::array<Overhead, kKinds> overhead_;
};

}  // namespace fovea::cluster
