#include "engine/text/economy.h"

namespace fovea {
namespace {

constexpr float kGrant = 0.5f;                       // the most a text may lose, in passes of one row,
constexpr float kShare = 0.015f;                     // and as a share of its passes
constexpr float kMargin = 1.2f;                      // how far a proposal's probability must exceed its cost
constexpr float kMostSaved = 16;                     // the most of the gains that may be lost again
constexpr float kLeastCost = 0.005f, kMostCost = 2;  // of a proposal, if it is measured
constexpr float kForgotten = 1.0f / 64;              // of that, with each pass without proposals
constexpr float kReadShare = 0.2f;  // what reading a token costs a draft model beside making one: many share a pass

/// Follows noisy measurements, the lower ones faster: disturbances make a pass longer.
void follow(float& estimate, float measured, float up) noexcept {
    if (measured < estimate)
        estimate += 0.25f * (measured - estimate);
    else
        estimate += up * (measured > 2 * estimate ? estimate : measured - estimate);
}

}  // namespace

void Economy::start(const Speculation& options, float draft_cost) noexcept {
    const bool other = options.clock != options_.clock || options.row_cost != options_.row_cost ||
                       draft_cost != draft_cost_ || cost_ == 0.0f;
    options_ = options;
    draft_cost_ = draft_cost;
    balance_ = kGrant;
    if (!other) return;
    plain_ticks_ = 0;
    measured_ = false;
    cost_ = options.row_cost + draft_cost;
}

std::uint32_t Economy::kind(std::uint32_t length) noexcept { return length < 4 ? length : length < 8 ? 4 : 5; }

float Economy::share(std::uint32_t kind) const noexcept {
    constexpr float kGuesses[kKinds] = {0.6f, 0.1f, 0.3f, 0.5f, 0.65f, 0.8f};
    return odds_[kind].share(kGuesses[kind]);
}

/// The most of n proposals that may all turn out wrong, if `spent` is lost in any case.
std::uint32_t Economy::affordable(std::uint32_t n, float spent) const noexcept {
    while (n && static_cast<float>(n) * cost_ + spent > balance_) --n;
    return n;
}

std::uint32_t Economy::worth(const Match& match, std::uint32_t most) const noexcept {
    if (match.length == 0 || options_.always) return match.length ? most : 0;
    if (options_.clock && plain_ticks_ == 0) return 0;  // first what a pass costs without
    std::uint32_t n = 0;
    for (float chance = 1; n < most; ++n) {
        chance *= share(kind(match.length + n));
        if (chance <= kMargin * cost_) break;
    }
    return affordable(n, 0);
}

std::uint32_t Economy::worth_drafting(std::uint32_t n_missed, std::uint32_t most) const noexcept {
    if (options_.always) return most;
    if (options_.clock && plain_ticks_ == 0) return 0;
    std::uint32_t n = 0;
    for (float chance = share(0); n < most && chance > kMargin * cost_; ++n) chance *= share(0);
    // If it does not pay one is tried as often as the balance allows: nothing is learned without.
    return affordable(n || !most ? n : 1, kReadShare * draft_cost_ * static_cast<float>(n_missed));
}

void Economy::end_pass(std::uint32_t n_proposed) noexcept {
    if (!options_.clock) return;
    const auto passed = static_cast<float>(ticks() - began_);
    if (!(passed > 0)) return;
    if (n_proposed == 0) {
        if (plain_ticks_ == 0) plain_ticks_ = passed;
        follow(plain_ticks_, passed, 0.05f);
        // A cost that was measured high is measured again some day.
        if (const float guess = options_.row_cost + draft_cost_; cost_ > guess) cost_ += kForgotten * (guess - cost_);
    } else if (plain_ticks_ > 0) {
        float cost = (passed / plain_ticks_ - 1) / static_cast<float>(n_proposed);
        cost = cost < kLeastCost ? kLeastCost : cost > kMostCost ? kMostCost : cost;
        if (!measured_) cost_ = cost;
        measured_ = true;
        follow(cost_, cost, 0.15f);
    }
}

void Economy::settle(const Match& match, std::uint32_t n_proposed, std::uint32_t n_right, bool refused) noexcept {
    for (std::uint32_t i = 0; i < n_right + refused; ++i)
        odds_[match.length ? kind(match.length + i) : 0].count(i < n_right);
    balance_ += kShare + static_cast<float>(n_right) - static_cast<float>(n_proposed) * cost_;
    if (balance_ > kMostSaved) balance_ = kMostSaved;
}

}  // namespace fovea
