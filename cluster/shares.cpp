#include "cluster/shares.h"

#include <algorithm>
#include <cmath>

namespace fovea::cluster {
namespace {

constexpr std::uint32_t kFewRows = 24;  // up to which products read more than they compute

// A thread's presumed speed before it is measured. Most are slower: a program then shares too little at first, not too
// much.
constexpr double kFirstSpeed[] = {16, 40, 60};

constexpr double kOfStrangers = 0.125;  // share of the presumed speed: a machine that was never measured may be slow

constexpr double kNew = 0.25;  // how much of what a pass measures counts
// How far one pass may move a measured speed: a machine that stood still once is not slow.
constexpr double kMostChange = 4;
// A machine that was not worth it is tried again after so many passes: it or the network may be free by then.
constexpr std::uint32_t kPassesUntilTried = 64;

}  // namespace

Kind kind_of(std::uint32_t n_rows) noexcept {
    return n_rows == 1 ? one_row : n_rows <= kFewRows ? few_rows : many_rows;
}

Shares::Shares(std::span<const std::uint32_t> n_threads, double overhead) : machines_(n_threads.size()) {
    for (std::size_t i = 0; i < n_threads.size(); ++i)
        for (int kind = 0; kind < kKinds; ++kind)
            machines_[i].of[kind].speed = kFirstSpeed[kind] * std::max(n_threads[i], 1u);
    for (Overhead& o : overhead_) o.nanoseconds = overhead;
}

void Shares::divide(Kind kind, double work, std::uint32_t n_units, std::span<std::uint32_t> units) const {
    const auto speed_of = [&](std::size_t i) {
        const Speed& s = machines_[i].of[kind];
        return machines_[i].counts ? s.speed * (i && !s.known ? kOfStrangers : 1) : 0;
    };
    double all = 0, presumed = 0, least = 0;
    bool any_unknown = false;
    for (std::size_t i = 0; i < machines_.size(); ++i) {
        all += speed_of(i);
        presumed += machines_[i].counts ? machines_[i].of[kind].speed : 0;
    }
    // A machine with less than half a unit gets none: a whole one would hold up the others.
    least = all / n_units / 2, all = 0;
    for (std::size_t i = 0; i < machines_.size(); ++i) all += speed_of(i) >= least ? speed_of(i) : 0;
    std::uint32_t n_left = n_units;
    double slowest = 0;
    for (std::size_t i = machines_.size(); i-- > 1;) {  // the program has the rest
        const double part = speed_of(i) >= least ? n_units * speed_of(i) / all : 0;
        units[i] = std::min(part > 0 ? std::max(static_cast<std::uint32_t>(part), 1u) : 0, n_left);
        n_left -= units[i];
        any_unknown = any_unknown || (units[i] && !machines_[i].of[kind].known);
        if (units[i]) slowest = std::max(slowest, units[i] * work / n_units / speed_of(i));
    }
    units[0] = n_left;
    const double own = machines_[0].of[kind].speed, alone = work / own;
    slowest = any_unknown ? work / presumed : std::max(slowest, n_left * work / n_units / own);
    const bool gains = slowest + overhead_[kind].nanoseconds < alone;
    overhead_[kind].asked.store(true, std::memory_order_relaxed);
    if (gains && n_left < n_units) return;
    if (!gains) overhead_[kind].kept.store(true, std::memory_order_relaxed);
    std::fill(units.begin(), units.end(), 0);
    units[0] = n_units;
}

void Shares::add(std::size_t machine, Kind kind, double work, double nanoseconds) {
    Measured& m = machines_[machine].of[kind].measured;
    if (work <= 0) return;
    m.sum += work;
    m.weight += std::max(nanoseconds, 1.0);
}

void Shares::add_overhead(Kind kind, double nanoseconds) {
    Measured& m = overhead_[kind].measured;
    m.sum += std::max(nanoseconds, 1.0);
    m.weight += 1;
}

void Shares::settle() {
    const auto average = [](double known, double now) {
        return known + kNew * (std::clamp(now, known / kMostChange, known * kMostChange) - known);
    };
    for (int kind = 0; kind < kKinds; ++kind) {
        Overhead& o = overhead_[kind];
        const bool asked = o.asked.exchange(false), kept = o.kept.exchange(false);
        const bool shared = o.measured.weight > 0;
        if (shared) o.nanoseconds = average(o.nanoseconds, o.measured.sum / o.measured.weight);
        o.measured = {};
        o.n_kept = shared ? 0 : o.n_kept + kept;
        if (o.n_kept == kPassesUntilTried) o.nanoseconds /= kMostChange, o.n_kept = 0;
        for (Machine& machine : machines_) {
            Speed& s = machine.of[kind];
            const bool worked = s.measured.weight > 0;
            if (worked) {
                const double now = s.measured.sum / s.measured.weight;
                s.speed = s.known ? average(s.speed, now) : now;
                s.known = true;
            }
            s.measured = {};
            s.n_out = worked ? 0 : s.n_out + (asked && shared);
            if (s.n_out == kPassesUntilTried) s.speed *= 2, s.known = false, s.n_out = 0;
        }
    }
    for (Machine& machine : machines_) machine.counts = machine.there;
}

}  // namespace fovea::cluster
