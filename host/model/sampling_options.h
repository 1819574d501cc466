// How tokens are chosen, as far as somebody has said so: options of a command line, fields of a request, a model's file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fovea/generator.h"
#include "fovea/model.h"

namespace fovea {

/// All options of a sampler in one place.
struct TextSampler : SamplerOptions, MoreSamplers {
    /// What the engine takes: a view of this, which must stay as the text goes on.
    [[nodiscard]] SamplerOptions options() const {
        SamplerOptions made = *this;
        made.more = this;
        return made;
    }
};

/// Which options somebody has set.
struct SaidOptions {
#define FOVEA_SAMPLER_REAL(field, ...) bool field = false;
#define FOVEA_SAMPLER_COUNT FOVEA_SAMPLER_REAL
#define FOVEA_SAMPLER_SEED FOVEA_SAMPLER_REAL
#include "fovea/sampler_options.inc"
    bool repeat_last_n = false;
};

/// What a model's file says of its own texts: "sampling" of the metadata, a JSON object of options by their names, and
/// repeat_last_n, of which -1 means all.
struct OwnSampling {
    TextSampler sampler;
    SaidOptions said;
    std::uint32_t n_recent = 0;  ///< if repeat_last_n is said

    /// Throws host::Error: "NAME: sampling: FIELD: expected …, got …".
    [[nodiscard]] static OwnSampling of(const Model& model, const std::string& name);
    /// Sets the options that `already` has not.
    void fill(const SaidOptions& already, TextSampler& options, std::uint32_t& recent) const;
};

inline constexpr std::uint32_t kNeverEnds = 1u << 30;  ///< min_tokens of a text that no token ends

struct SamplingOptions {
    TextSampler sampler;  ///< of what was given so far
    SaidOptions said;

    /// Where only others were given, which mean nothing at temperature 0, the temperature is 1.
    [[nodiscard]] TextSampler settled() const;
    /// Whether the text may be another than that of the model's likeliest tokens.
    [[nodiscard]] bool wanted() const;
    /// What nobody said is as the model's file has it.
    void take(const OwnSampling& own);

    std::vector<LogitBias> biases;
    std::uint32_t n_recent = 64;  ///< tokens that penalties look back, the prompt's among them

    /// What a text is started with; views of `biases` and `sampler`.
    void apply(GenerateOptions& options) const;
};

}  // namespace fovea
