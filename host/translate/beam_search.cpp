#include "host/translate/beam_search.h"

#include <algorithm>
#include <limits>

#include "host/base/exact_math.h"

namespace fovea {
namespace {

/// Takes a beam out of the race: no text's score is as low. A search begins with one beam and with copies that are this far
/// behind, which come in only if the one has too few continuations.
constexpr float kBehind = -1e9f;
constexpr float kNone = -std::numeric_limits<float>::infinity();

bool is_allowed(const BeamSearch::Row& row, std::size_t id) {
    return row.allowed.empty() || (row.allowed[id / 32] >> id % 32 & 1) != 0;
}

/// ln Σ e^logit; minus infinity if there is nothing to sum. False if a logit is NaN or +∞.
bool log_sum(const BeamSearch::Row& row, bool of_allowed, double& log) {
    constexpr double kLeast = -60;  // a 2^-86th of the largest, too little to count
    float largest = kNone;
    for (std::size_t id = 0; id < row.logits.size(); ++id) {
        const float logit = row.logits[id];
        if (!(logit <= std::numeric_limits<float>::max())) return false;
        if (logit > largest && (!of_allowed || is_allowed(row, id))) largest = logit;
    }
    if (largest == kNone) return log = kNone, true;
    double sums[8] = {};  // which need not wait for one another
    for (std::size_t id = 0; id < row.logits.size(); ++id) {
        const double below = static_cast<double>(row.logits[id]) - static_cast<double>(largest);
        if (!of_allowed || is_allowed(row, id)) sums[id % 8] += quick_exp(below > kLeast ? below : kLeast);
    }
    double sum = 0;
    for (const double part : sums) sum += part;
    log = static_cast<double>(largest) + exact_log(sum);
    return true;
}

float power(std::uint32_t n_tokens, float exponent) {
    return static_cast<float>(exact_exp(static_cast<double>(exponent) * exact_log(n_tokens)));
}

}  // namespace

std::size_t BeamSearch::most_candidates(const BeamOptions& options) {
    return std::max<std::size_t>(2, 1 + options.ends.size()) * options.n_beams;
}

BeamSearch::BeamSearch(const BeamOptions& options) : options_(options), n_candidates_(most_candidates(options)) {
    beams_.reserve(options.n_beams);
    history_.resize(std::size_t{options.most_tokens} * options.n_beams);
    candidates_.reserve(n_candidates_ + 1);
    ranked_.reserve(n_candidates_ + 1);
    logs_.resize(options.n_beams);
    whole_.reserve(std::size_t{options.n_beams} + 1);
}

std::uint64_t BeamSearch::n_bytes(const BeamOptions& options) {
    const std::uint64_t n_beams = options.n_beams;
    return n_beams * (sizeof(Beam) + sizeof(double) + sizeof(Hypothesis)) + sizeof(Hypothesis) +
           n_beams * options.most_tokens * sizeof(Beam) + 2 * (most_candidates(options) + 1) * sizeof(Candidate) +
           options.ends.size() * sizeof(Token);
}

void BeamSearch::start(std::uint32_t n_given, std::uint32_t n_most) {
    n_given_ = n_tokens_ = n_given;
    n_most_ = n_most;
    beams_.assign(options_.n_beams, Beam{.score = kBehind});
    beams_[0].score = 0;
    whole_.assign(options_.n_beams, Hypothesis{.score = kBehind});
    done_ = n_given >= n_most;
}

/// Keeps the best, in order; the first of equal ones.
void BeamSearch::offer(std::vector<Candidate>& candidates, const Beam& beam) const {
    const bool is_full = candidates.size() == n_candidates_;
    if (is_full && !(beam.score > candidates.back().beam.score)) return;
    if (is_full) candidates.pop_back();
    const auto place = std::upper_bound(candidates.begin(), candidates.end(), beam.score,
                                        [](float score, const Candidate& c) { return score > c.beam.score; });
    candidates.insert(place, Candidate{beam});
}

Status BeamSearch::take(std::span<const Row> rows) {
    if (rows.size() != beams_.size()) return {Code::bad_shape, "rows of logits", beams_.size(), rows.size()};
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (!log_sum(rows[i], options_.renormalized, logs_[i])) return {Code::bad_argument, "logits: finite", 0, 0};
    candidates_.clear();
    float least = kNone;  // what a candidate must exceed
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t id = 0; id < rows[i].logits.size(); ++id) {
            const auto log = static_cast<float>(static_cast<double>(rows[i].logits[id]) - logs_[i]);
            const float score = beams_[i].score + log;
            if (!(score > least) || !is_allowed(rows[i], id)) continue;
            offer(candidates_, {static_cast<std::uint32_t>(i), static_cast<Token>(id), score});
            if (candidates_.size() == n_candidates_) least = candidates_.back().beam.score;
        }
    if (!candidates_.empty()) {
        settle();
        return {};
    }
    if (!whole_[0].is_text) return {Code::bad_argument, "tokens that are allowed", 1, 0};
    beams_.clear();  // none can go on, and the best whole text is the best of all
    done_ = true;
    return {};
}

void BeamSearch::take_end() {
    candidates_.clear();
    for (std::size_t i = 0; i < beams_.size(); ++i)
        offer(candidates_,
              {static_cast<std::uint32_t>(i), options_.ends.empty() ? 0 : options_.ends[0], beams_[i].score});
    settle();
}

void BeamSearch::keep(const Candidate& candidate, float divisor) {
    const bool ended =
        std::find(options_.ends.begin(), options_.ends.end(), candidate.beam.token) != options_.ends.end();
    const Hypothesis text{.score = candidate.beam.score / divisor,
                          .n_before = n_tokens_,
                          .last = candidate.beam,
                          .ended = ended,
                          .is_text = true};
    const auto place = std::upper_bound(whole_.begin(), whole_.end(), text.score,
                                        [](float score, const Hypothesis& h) { return score > h.score; });
    whole_.insert(place, text);
    whole_.pop_back();
}

/// The candidates become whole texts and the next beams.
void BeamSearch::settle() {
    const bool at_limit = n_tokens_ + 1 >= n_most_;
    const float divisor = power(n_tokens_ + 1, options_.length_penalty);
    bool all_whole = at_limit || candidates_.size() == n_candidates_;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
        Candidate& c = candidates_[i];
        c.whole =
            at_limit || std::find(options_.ends.begin(), options_.ends.end(), c.beam.token) != options_.ends.end();
        all_whole &= c.whole;
        if (c.whole && i < options_.n_beams) keep(c, divisor);  // the others were only there to go on
    }
    ranked_.clear();
    for (const Candidate& c : candidates_)
        offer(ranked_, {c.beam.parent, c.beam.token, static_cast<float>(c.beam.score + (c.whole ? kBehind : 0.0f))});
    beams_.clear();
    for (std::size_t i = 0; i < ranked_.size() && i < options_.n_beams; ++i) beams_.push_back(ranked_[i].beam);
    std::copy(beams_.begin(), beams_.end(),
              history_.begin() + static_cast<std::ptrdiff_t>(std::size_t{n_tokens_ - n_given_} * options_.n_beams));
    ++n_tokens_;
    const bool by_longest = options_.early_stopping == EarlyStopping::never && options_.length_penalty > 0;
    const float best = beams_[0].score / (by_longest ? power(n_most_, options_.length_penalty) : divisor);
    const bool is_full = whole_.back().is_text;
    done_ = all_whole || !(best > whole_.back().score) || (is_full && options_.early_stopping == EarlyStopping::yes);
}

/// The first n tokens of the beam that was there when it had so many.
void BeamSearch::walk(std::uint32_t n, std::uint32_t beam, std::vector<Token>& tokens) const {
    const std::size_t first = tokens.size(), n_new = n - n_given_;
    tokens.resize(first + n_new);
    for (std::size_t i = n_new; i-- > 0;) {
        const Beam& at = history_[i * options_.n_beams + beam];
        tokens[first + i] = at.token;
        beam = at.parent;
    }
}

void BeamSearch::tokens_of(std::size_t beam, std::vector<Token>& tokens) const {
    walk(n_tokens_, static_cast<std::uint32_t>(beam), tokens);
}

void BeamSearch::tokens_of(const Hypothesis& text, std::vector<Token>& tokens) const {
    if (!text.is_text) return;
    walk(text.n_before, text.last.parent, tokens);
    if (!text.ended) tokens.push_back(text.last.token);
}

}  // namespace fovea
