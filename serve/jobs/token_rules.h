// Tokens that an answer may not have, beside what its form says.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "serve/jobs/job.h"

namespace fovea::serve {

struct TokenRules {
    std::uint32_t vocab_size = 0;
    std::vector<std::uint32_t>
        allowed;  ///< a bit for each token, as TokenFilter::allow has them; empty: all are allowed
    std::vector<std::vector<Token>> banned;  ///< sequences that the answer has not, unless nothing else is allowed
};

/// What `inner` allows (it may be empty: all) and the rules do.
///   n_prompt  tokens of the text before the answer
[[nodiscard]] Constrained constrain_tokens(std::shared_ptr<const TokenRules> rules, std::size_t n_prompt,
                                           Constrained inner);

}  // namespace fovea::serve
