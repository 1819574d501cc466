// A text written from another by beam search: what transformers' `generate(num_beams=N, do_sample=False)` writes.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fovea/generator.h"
#include "host/translate/beam_search.h"
#include "host/translate/source_memory.h"
#include "host/translate/target_filter.h"

namespace fovea {

/// All memory is taken by the constructor, exactly what the plans say; beams share the pages of what they have in common.
class BeamTranslation {
public:
    /// `opened` must outlive this. `rules` count here but for those of a language. Throws host::Error.
    BeamTranslation(const host::Opened& opened, const TargetLimits& limits, const TargetRules& rules);
    [[nodiscard]] static TargetPlan plan(const host::Opened& opened, TargetLimits limits, const TargetRules& rules);

    /// Reads the source and begins a text of at most n_new tokens; source and rules must outlive it. Throws host::Error.
    void start(std::span<const Token> source, const TargetRules& rules, std::uint32_t n_new);
    /// Goes on by one token. False: the text is whole. Throws host::Error.
    [[nodiscard]] bool next();

    struct Text {
        std::vector<Token> tokens = {};  ///< behind the given ones
        float score = 0;                 ///< log of its probability, divided by its length as the rules say
        FinishReason finish = FinishReason::none;
    };
    [[nodiscard]] Text best() const;
    [[nodiscard]] std::uint32_t max_source() const { return source_.max_source(); }
    [[nodiscard]] std::uint64_t n_bytes() const { return plan_.n_bytes(); }

private:
    void follow(std::span<const Beam> beams);
    void compute(std::span<const Token> prompt);
    void forbid(std::size_t beam, std::size_t row);

    const host::Opened& opened_;
    TargetPlan plan_;
    SourceMemory source_;
    std::size_t vocab_size_;
    std::vector<Cache> texts_, next_;  // of the beams
    std::vector<Step> steps_;
    std::vector<float> logits_;           // [n_beams, vocab_size]
    std::vector<std::uint32_t> allowed_;  // [n_beams, (vocab_size + 31) / 32]
    std::vector<BeamSearch::Row> rows_;
    std::vector<Token> prompt_, text_;  // text_: a beam's, with its prompt
    BeamSearch search_;
    std::optional<TargetFilter> filter_;
    bool ends_by_length_ = false;
    std::uint32_t n_most_ = 0;  // tokens behind the start, the end counted
};

}  // namespace fovea
