#include "host/model/sampling_options.h"

#include "host/base/error.h"
#include "host/base/json.h"

namespace fovea {
namespace {

/// One object of numbers.
class SamplingNumbers {
public:
    SamplingNumbers(std::string_view text, std::string place) : place_(std::move(place)) {
        object_ = read_sorted_json(text);
        if (!object_.is_object()) throw host::Error(place_ + ": expected a JSON object, got something else");
    }
    /// Whether there is one of that name.
    bool read(const char* name, double least, double most, bool is_whole, double& number) const {
        const auto found = object_.find(name);
        if (found == object_.end()) return false;
        number = found->is_number() ? found->get<double>() : least - 1;
        const bool fits = number >= least && number <= most && (!is_whole || found->is_number_integer());
        if (!fits)
            throw host::Error(place_ + ": " + name + ": expected a " + (is_whole ? "whole " : "") + "number from " +
                              json_text(SortedJson(least)) + " to " + json_text(SortedJson(most)) + ", got " +
                              json_text(*found, true).substr(0, 60));
        return true;
    }

private:
    SortedJson object_;
    std::string place_;
};

}  // namespace

OwnSampling OwnSampling::of(const Model& model, const std::string& name) {
    OwnSampling own;
    const std::string_view text = find_info(model, "sampling");
    if (text.empty()) return own;
    const SamplingNumbers numbers(text, name + ": sampling");
    double number = 0;
#define FOVEA_SAMPLER_REAL(field, neutral, least, most, ...)                               \
    if (own.said.field = numbers.read(#field, least, most, false, number); own.said.field) \
        own.sampler.field = static_cast<float>(number);
#define FOVEA_SAMPLER_COUNT(field, neutral, most, ...)                                \
    if (own.said.field = numbers.read(#field, 0, most, true, number); own.said.field) \
        own.sampler.field = static_cast<std::uint32_t>(number);
#include "fovea/sampler_options.inc"
    own.said.repeat_last_n = numbers.read("repeat_last_n", -1, 0xffffffff, true, number);
    if (own.said.repeat_last_n) own.n_recent = number < 0 ? 0xffffffffu : static_cast<std::uint32_t>(number);
    Sampler sampler;
    if (const Status status = make_sampler(own.sampler.options(), sampler); !status.ok())
        throw host::Error(name + ": sampling: " + status.what);
    return own;
}

void OwnSampling::fill(const SaidOptions& already, TextSampler& options, std::uint32_t& recent) const {
#define FOVEA_SAMPLER_REAL(field, ...) \
    if (said.field && !already.field) options.field = sampler.field;
#define FOVEA_SAMPLER_COUNT FOVEA_SAMPLER_REAL
#include "fovea/sampler_options.inc"
    if (said.repeat_last_n && !already.repeat_last_n && !already.repeat_penalty) recent = n_recent;
}

TextSampler SamplingOptions::settled() const {
    bool draws_by = said.seed;
#define FOVEA_SAMPLER_REAL(field, neutral, least, most, draws, ...) draws_by |= draws && said.field;
#define FOVEA_SAMPLER_COUNT(field, neutral, most, draws, ...) draws_by |= draws && said.field;
#include "fovea/sampler_options.inc"
    TextSampler made = sampler;
    if (!said.temperature && draws_by) made.temperature = 1;
    return made;
}

bool SamplingOptions::wanted() const {
    bool penalizes = false;
#define FOVEA_SAMPLER_TEMPERATURE(...)
#define FOVEA_SAMPLER_REAL(field, neutral, least, most, draws, ...) \
    penalizes |= !draws && sampler.field != 0 && sampler.field != float{neutral};
#define FOVEA_SAMPLER_COUNT(field, neutral, most, draws, ...) \
    penalizes |= !draws && sampler.field != 0 && sampler.field != neutral;
#include "fovea/sampler_options.inc"
    return settled().temperature > 0 || penalizes || !biases.empty();
}

void SamplingOptions::take(const OwnSampling& own) {
    own.fill(said, sampler, n_recent);
#define FOVEA_SAMPLER_REAL(field, ...) said.field |= own.said.field;
#define FOVEA_SAMPLER_COUNT FOVEA_SAMPLER_REAL
#include "fovea/sampler_options.inc"
}

void SamplingOptions::apply(GenerateOptions& options) const {
    options.sampler = settled();
    options.sampler.more = &sampler;
    options.sampler.bias = biases;
    options.n_recent = options.n_counted = n_recent;
    options.counts_prompt = true;
}

}  // namespace fovea
