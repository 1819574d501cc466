// The real numbers that a request may set of SamplerOptions, in one table for all who read, settle or hash them.
#pragma once
#include <algorithm>
#include <span>

#include "fovea/sampler.h"

namespace fovea::serve {

/// Whose names and defaults are meant.
enum class SamplingNames { openai, ollama };

struct SamplingField {
    const char *openai, *ollama;  ///< its name in the two forms of requests
    const char* hashed;           ///< its key in BatchDefaults::text(): a new row gives every request another hash
    float SamplerOptions::*to;
    double least, most;
    double openai_default, ollama_default;
    bool draws;  ///< it means nothing at temperature 0
};

/// In the order in which they are read, so that of several wrong ones the first is refused.
inline constexpr SamplingField kSamplingFields[] = {
    {"temperature", "temperature", "temperature", &SamplerOptions::temperature, 0, 100, 1, 0.8, false},
    {"top_p", "top_p", "top_p", &SamplerOptions::top_p, 0, 1, 1, 0.9, true},
    {"min_p", "min_p", "min_p", &SamplerOptions::min_p, 0, 1, 0, 0, true},
    {"repetition_penalty", "repeat_penalty", "penalty", &SamplerOptions::repeat_penalty, 0.01, 100, 1, 1.1, false},
    {"frequency_penalty", "frequency_penalty", "frequency", &SamplerOptions::frequency_penalty, -1000, 1000, 0, 0,
     false},
    {"presence_penalty", "presence_penalty", "presence", &SamplerOptions::presence_penalty, -1000, 1000, 0, 0, false},
};

/// Gives the table in runs. Between two runs a reader has its place for a field that is not in the table.
class SamplingFields {
public:
    /// The fields that have not been given yet, up to this one.
    [[nodiscard]] std::span<const SamplingField> through(float SamplerOptions::*last) {
        const auto found =
            std::find_if(rest_.begin(), rest_.end(), [&](const SamplingField& field) { return field.to == last; });
        return take(static_cast<std::size_t>(found - rest_.begin()) + (found != rest_.end()));
    }
    [[nodiscard]] std::span<const SamplingField> rest() { return take(rest_.size()); }

private:
    std::span<const SamplingField> take(std::size_t n) {
        const auto taken = rest_.first(n);
        rest_ = rest_.subspan(n);
        return taken;
    }
    std::span<const SamplingField> rest_{kSamplingFields};
};

}  // namespace fovea::serve
