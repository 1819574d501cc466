// The real numbers that a request may set of SamplerOptions, as data for all who read, settle or hash them.
#pragma once
#include <algorithm>
#include <span>

#include "fovea/sampler.h"

namespace fovea::serve {

/// Whose names and defaults are meant.
enum class SamplingNames { openai, ollama };

struct SamplingField {
    const char *openai, *ollama;  ///< its name in the two forms of requests
    const char* hashed;           ///< its key in BatchDefaults::text()
    float SamplerOptions::*to;
    double least, most;
    double openai_default, ollama_default;
    bool draws;  ///< it means nothing at temperature 0
};

/// In the order in which they are read, so that of several wrong ones the first is refused.
inline constexpr SamplingField kSamplingFields[] = {
#define FOVEA_SAMPLER_REAL(field, neutral, least, most, draws, flag, help, openai, openai_default, ollama, \
                           ollama_default, key)                                                            \
    {openai, ollama, key, &SamplerOptions::field, least, most, openai_default, ollama_default, draws},
#include "fovea/sampler_options.inc"
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
