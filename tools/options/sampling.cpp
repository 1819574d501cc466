#include "tools/options/sampling.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "host/base/error.h"
#include "host/model/penalized.h"
#include "tools/options/options.h"
#include "tools/options/ranks.h"
#include "tools/terminal/usage_error.h"

namespace fovea {
namespace {

/// "15043+2.5", "15043-1", "15043-inf".
LogitBias read_bias(const std::string& text) {
    const std::size_t sign = text.find_first_of("+-", 1);
    const std::string number = sign == text.npos ? "" : text.substr(sign);
    char* end = nullptr;
    const float bias = std::strtof(number.c_str(), &end);
    const bool is_one = number.size() > 1 && *end == 0 && number.find_first_of("xX") == number.npos &&
                        (std::fabs(bias) <= 1e30f || (std::isinf(bias) && bias < 0));
    if (!is_one) throw UsageError("--logit-bias: expected ID+NUMBER, ID-NUMBER or ID-inf, got " + text);
    return {static_cast<Token>(read_count("--logit-bias", text.substr(0, sign), 0, kAny)), bias};
}

void add_seed(const Verb& verb, SamplingOptions& options) {
    verb.option("--seed",
                "of the random numbers (default 0); the same seed gives the same text; -1: a random one, which is told",
                "N", [&options](const std::string& text) {
                    options.said.seed = true;
                    if (text != "-1") {
                        options.sampler.seed = read_count("--seed", text, 0, ~0ull);
                        return;
                    }
                    const auto drawn = from_first_rank(std::to_string(std::random_device()()));
                    options.sampler.seed = std::stoull(*drawn);
                    std::fprintf(stderr, "note: --seed %llu\n", static_cast<unsigned long long>(options.sampler.seed));
                });
}

}  // namespace

void check_biases(const SamplingOptions& options, const Model& model) {
    const std::string foreign = serve::foreign_bias(options.biases, model.config().decoder.vocab_size);
    if (!foreign.empty()) throw host::Error("--logit-bias: expected " + foreign);
}

void add_sampling(const Verb& verb, SamplingOptions& options) {
    TextSampler& sampler = options.sampler;
#define FOVEA_SAMPLER_TEMPERATURE(field, neutral, least, most, draws, flag, help, ...) \
    verb.real(flag, sampler.field, 0, 1e30f, help).each([&options] { options.said.field = true; });
#define FOVEA_SAMPLER_REAL(field, neutral, least, most, draws, flag, help, ...) \
    verb.real(flag, sampler.field, least, most, help).each([&options] { options.said.field = true; });
#define FOVEA_SAMPLER_COUNT(field, neutral, most, draws, flag, help) \
    verb.count(flag, sampler.field, 0, most, help).each([&options] { options.said.field = true; });
#define FOVEA_SAMPLER_SEED(field) add_seed(verb, options);
#include "fovea/sampler_options.inc"
    verb.flag("--ignore-eos", "no token ends the text").each([&sampler] { sampler.min_tokens = kNeverEnds; });
    verb.count_or_any("--repeat-last-n", options.n_recent, 0,
                      "recent tokens, the prompt's among them (default 64); -1: all")
        .each([&options] { options.said.repeat_last_n = true; });
    verb.repeated("--logit-bias", "what a token's logit gets, as 15043+2.5; 15043-inf forbids it; may be repeated",
                  "ID+BIAS", [&options](const std::string& text) { options.biases.push_back(read_bias(text)); });
}

}  // namespace fovea
