// How a beam search (host/translate/beam_search.h) chooses among texts: a model's metadata has some of these.
#pragma once
#include <cstdint>
#include <vector>

#include "fovea/config.h"

namespace fovea {

/// When a search ends that has as many whole texts as beams.
enum class EarlyStopping : std::uint8_t {
    no,     ///< once the best beam, were it to end now, is no better than the worst of them
    yes,    ///< at once
    never,  ///< once no beam can become better; where longer texts are preferred, judged by the longest there can be
};

inline constexpr std::uint32_t kMostBeams = 64;

struct BeamOptions {
    std::uint32_t n_beams = 1;  ///< up to kMostBeams
    float length_penalty = 1;   ///< −20 to 20: scores are divided by n_tokens^this; above 0 prefers longer texts
    EarlyStopping early_stopping = EarlyStopping::no;
    bool renormalized = false;      ///< probabilities are renormalised over the allowed tokens
    std::vector<Token> ends;        ///< tokens that end a text
    std::uint32_t most_tokens = 0;  ///< that start is ever given
};

}  // namespace fovea
