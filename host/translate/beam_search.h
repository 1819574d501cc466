// Beam search: several beginnings of a text go on side by side, and the likeliest whole text is kept. Only the
// algorithm, over rows of logits from any model.
//
//     BeamSearch search(options);                    // takes its memory
//     search.start(0, 100);
//     while (!search.done()) {
//         ... a row of logits for each of search.beams(), after its tokens
//         search.take(rows);                         // the beams are others now; each has a parent among those before
//     }
//     search.hypotheses()[0]                         // the best, with its score
//
// Source: Graves 2012, section 2.5, and Sutskever et al. 2014, section 3.2 (beam search); Wu et al. 2016, eq. 14 (scores divided
// by a power of the length, here of the number of tokens itself). Its end and its lengths are those of transformers'
// `generate(num_beams=N, do_sample=False)`.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fovea/status.h"
#include "host/model/beam_options.h"

namespace fovea {

/// A beginning that goes on: one of the beams before, and the token that followed.
struct Beam {
    std::uint32_t parent = 0;
    Token token = 0;
    float score = 0;  ///< log of its probability
};

/// A whole text.
struct Hypothesis {
    float score = 0;             ///< log of its probability, divided by the power of its length
    std::uint32_t n_before = 0;  ///< its tokens before the last
    Beam last = {};
    bool ended = false;    ///< its last token is an end token, no part of the text
    bool is_text = false;  ///< else a place that no text has taken
};

class BeamSearch {
public:
    explicit BeamSearch(const BeamOptions& options);

    /// Starts a text whose first n_given tokens are settled, and which has at most n_most, its end counted; done if
    /// those are equal.
    void start(std::uint32_t n_given, std::uint32_t n_most);

    /// A beam's next tokens: their logits, and which are allowed.
    struct Row {
        std::span<const float> logits;           ///< [vocab_size], of all tokens
        std::span<const std::uint32_t> allowed;  ///< bit id % 32 of word id / 32; empty: all
    };
    /// Goes on by one token: a row for each of beams(). At equal scores an earlier beam comes first, then a smaller id.
    /// Errors, nothing changed: bad_argument (a logit is NaN or +∞, no token is allowed), bad_shape.
    [[nodiscard]] Status take(std::span<const Row> rows);
    /// The same if only an end may follow, whose probability is 1.
    void take_end();

    [[nodiscard]] bool done() const { return done_; }
    [[nodiscard]] std::span<const Beam> beams() const { return beams_; }
    /// As many as beams, best first.
    [[nodiscard]] std::span<const Hypothesis> hypotheses() const { return whole_; }
    [[nodiscard]] std::uint32_t n_tokens() const { return n_tokens_; }  ///< of each beam, given ones too

    /// A beam's tokens behind the given ones, into `tokens`, whose room suffices.
    void tokens_of(std::size_t beam, std::vector<Token>& tokens) const;
    void tokens_of(const Hypothesis& text, std::vector<Token>& tokens) const;

    /// The constructor's memory; nothing is taken later.
    [[nodiscard]] static std::uint64_t n_bytes(const BeamOptions& options);

private:
    struct Candidate {
        Beam beam;
        bool whole = false;
    };
    void offer(std::vector<Candidate>& candidates, const Beam& beam) const;
    void settle();
    void keep(const Candidate& candidate, float divisor);
    void walk(std::uint32_t n, std::uint32_t beam, std::vector<Token>& tokens) const;

    [[nodiscard]] static std::size_t most_candidates(const BeamOptions& options);

    BeamOptions options_;
    std::size_t n_candidates_;
    std::uint32_t n_given_ = 0, n_most_ = 0, n_tokens_ = 0;
    bool done_ = true;
    std::vector<Beam> beams_, history_;  // history_: [n_tokens - n_given][n_beams]
    std::vector<Candidate> candidates_, ranked_;
    std::vector<double> logs_;  // of each row
    std::vector<Hypothesis> whole_;
};

}  // namespace fovea
