// Whether proposals pay.
#pragma once
#include <cstdint>

#include "fovea/generator.h"

namespace fovea {

/// The place where the text's last tokens came before, and how many of them match.
struct Match {
    std::uint32_t next = 0;    ///< the position that followed them
    std::uint32_t length = 0;  ///< 0: nowhere
};

/// How often proposals of one kind were right, the last ones counting most.
struct Odds {
    std::uint8_t n_right = 0, n_tried = 0;

    void count(bool right) noexcept {
        n_right = static_cast<std::uint8_t>(n_right + right);
        if (++n_tried < 64) return;
        n_right /= 2;
        n_tried /= 2;
    }
    /// The share that is right. `guess` counts as much as four tries.
    [[nodiscard]] float share(float guess) const noexcept {
        return (static_cast<float>(n_right) + 4 * guess) / (static_cast<float>(n_tried) + 4);
    }
};

/// Says how many proposals are worth their rows. Deterministic, but for the clock.
///
/// A proposal counts only if all before it are right: its probability is the product of their odds, and it is worth its
/// row while that exceeds the row's cost. A balance of the passes that proposals saved and cost, in passes of one row,
/// bounds the loss by wrong odds.
class Economy {
public:
    /// Starts a new text. The odds learned from earlier texts stay.
    void start(const Speculation& options, float draft_cost) noexcept;

    /// How many of `most` tokens that followed a match to propose.
    [[nodiscard]] std::uint32_t worth(const Match& match, std::uint32_t most) const noexcept;
    /// The same for a draft model, which first has to read `n_missed` tokens.
    [[nodiscard]] std::uint32_t worth_drafting(std::uint32_t n_missed, std::uint32_t most) const noexcept;

    void begin_pass() noexcept { began_ = ticks(); }
    /// Measures it: proposing, and the pass of the last token and n_proposed more.
    void end_pass(std::uint32_t n_proposed) noexcept;
    /// The first n_right proposals were right, and the next, if `refused`, was not. match.length 0: a draft model's
    /// proposals.
    void settle(const Match& match, std::uint32_t n_proposed, std::uint32_t n_right, bool refused) noexcept;
    /// A token that could have been proposed would have been right or wrong.
    void learn(const Match& match, bool right) noexcept { odds_[kind(match.length)].count(right); }

private:
    /// By how many tokens matched: none (a draft model's), 1, 2, 3, 4 to 7, 8 or more.
    static constexpr std::uint32_t kKinds = 6;
    [[nodiscard]] static std::uint32_t kind(std::uint32_t length) noexcept;
    [[nodiscard]] float share(std::uint32_t kind) const noexcept;
    [[nodiscard]] std::uint32_t affordable(std::uint32_t n, float spent) const noexcept;
    [[nodiscard]] std::uint64_t ticks() const noexcept { return options_.clock ? options_.clock() : 0; }

    Speculation options_{};
    Odds odds_[kKinds]{};
    std::uint64_t began_ = 0;
    float plain_ticks_ = 0;  // of a pass of one row; 0: not measured
    float cost_ = 0;         // of one proposal, as a share of that pass
    float draft_cost_ = 0;   // of one token by the draft model; 0: there is none
    float balance_ = 0;
    bool measured_ = false;  // cost_, not guessed
};

}  // namespace fovea
