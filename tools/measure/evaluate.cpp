#include "tools/measure/evaluate.h"

#include <algorithm>
#include <vector>

#include "host/base/error.h"

namespace fovea {
namespace {

/// Logarithms of a row's probabilities: logit − log Σ exp(logit).
void take_log_softmax(std::span<const float> logits, std::vector<double>& out) {
    out.assign(logits.begin(), logits.end());
    const double most = *std::max_element(out.begin(), out.end());
    double sum = 0;
    for (const double logit : out) sum += std::exp(logit - most);
    for (double& logit : out) logit -= most + std::log(sum);
}

/// The rows of one piece of a sequence. tokens[i] is what row i was to predict.
class LogitRows {
public:
    LogitRows(host::Runtime<Session>& running, std::uint32_t vocab_size)
        : running_(running),
          vocab_size_(vocab_size),
          logits_(std::size_t{running.plan.limits.max_batch} * vocab_size) {}

    void compute(std::span<const Token> tokens, const std::string& name) {
        require(forward(*running_, tokens, std::span(logits_).first(tokens.size() * vocab_size_)), name);
    }
    [[nodiscard]] const std::vector<double>& log_probabilities(std::size_t row) {
        take_log_softmax(std::span(logits_).subspan(row * vocab_size_, vocab_size_), row_);
        return row_;
    }

private:
    host::Runtime<Session>& running_;
    std::size_t vocab_size_;
    std::vector<float> logits_;
    std::vector<double> row_;
};

std::ptrdiff_t likeliest(const std::vector<double>& row) {
    return std::max_element(row.begin(), row.end()) - row.begin();
}

void compare(const std::vector<double>& q, const std::vector<double>& p, Token came, Evaluation& sum) {
    sum.against_surprise -= p[came];
    for (std::size_t i = 0; i < p.size(); ++i)
        if (const double probability = std::exp(p[i]); probability > 0) sum.divergence += probability * (p[i] - q[i]);
    sum.n_same_top += likeliest(p) == likeliest(q);
}

}  // namespace

void evaluate(const host::Opened& opened, host::Runtime<Session>& running, host::Runtime<Session>* against,
              std::span<const Token> tokens, Evaluation& sum, const std::function<void()>& pass_done) {
    if (tokens.size() < 2) return;
    const std::uint32_t vocab_size = opened.model.config().decoder.vocab_size;
    LogitRows rows(running, vocab_size), other(against ? *against : running, vocab_size);
    require(rewind(*running, 0), opened.name);
    if (against) require(rewind(**against, 0), opened.name);
    std::size_t most = running.plan.limits.max_batch;
    if (against) most = std::min<std::size_t>(most, against->plan.limits.max_batch);
    for (std::size_t begin = 0; begin + 1 < tokens.size(); begin += most) {
        const std::size_t n = std::min(most, tokens.size() - 1 - begin);
        rows.compute(tokens.subspan(begin, n), opened.name);
        if (against) other.compute(tokens.subspan(begin, n), opened.name);
        for (std::size_t i = 0; i < n; ++i) {
            const Token came = tokens[begin + i + 1];
            const std::vector<double>& q = rows.log_probabilities(i);
            sum.surprise -= q[came];
            if (against) compare(q, other.log_probabilities(i), came, sum);
        }
        sum.n_predicted += n;
        if (pass_done) pass_done();
    }
}

}  // namespace fovea
