// Any logits and options: an error that changes nothing, or a token of the vocabulary, the same for the same seed.
#include "fovea/sampler.h"

#include <vector>

#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(sampler) {
    using namespace fovea;
    fuzz::Input input(data, size);
    SamplerOptions options;
    options.temperature = input.take<float>();
    options.top_k = input.take<std::uint16_t>();
    options.top_p = input.take<float>();
    options.min_p = input.take<float>();
    options.repeat_penalty = input.take<float>();
    options.seed = input.take<std::uint64_t>();
    std::vector<Token> recent(input.take<std::uint8_t>() % 16);
    for (Token& id : recent) id = input.take<std::uint16_t>();
    const auto n = input.take<std::uint8_t>();
    std::vector<float> logits(n < 250 ? n % 48 : 270);  // the sampler goes by pieces of 256
    for (float& logit : logits) logit = input.take<float>();
    // At the input's end, so that inputs from before these options mean what they meant.
    std::vector<std::uint32_t> allowed(input.take<std::uint8_t>() % 2 * ((logits.size() + 31) / 32));
    for (std::uint32_t& word : allowed) word = input.take<std::uint32_t>();
    const auto pos = input.take<std::uint32_t>();
    options.frequency_penalty = input.take<float>();
    options.presence_penalty = input.take<float>();
    std::vector<LogitBias> biases(input.take<std::uint8_t>() % 16);
    for (LogitBias& b : biases) b = {input.take<std::uint16_t>(), input.take<float>()};
    options.bias = biases;
    std::vector<Token> counted(input.take<std::uint8_t>() % 16);
    for (Token& id : counted) id = input.take<std::uint16_t>();
    MoreSamplers more{.dry_multiplier = input.take<float>(),
                      .dry_base = input.take<float>(),
                      .dry_allowed_length = input.take<std::uint8_t>(),
                      .top_n_sigma = input.take<float>(),
                      .typical_p = input.take<float>(),
                      .xtc_probability = input.take<float>(),
                      .xtc_threshold = input.take<float>(),
                      .mirostat = input.take<std::uint8_t>(),
                      .mirostat_tau = input.take<float>(),
                      .mirostat_eta = input.take<float>()};
    options.more = &more;
    Sampler sampler;
    if (!make_sampler(options, sampler).ok()) return 0;
    std::vector<Candidate> candidates(logits.size());
    Token first = 0, second = 0;
    const bool ok = sample(sampler, pos, logits, recent, candidates, first, allowed, counted).ok();
    fuzz::promise(sample(sampler, pos, logits, recent, candidates, second, allowed, counted).ok() == ok,
                  "the same seed, the same end");
    fuzz::promise(!ok || allowed.empty() || (allowed[first / 32] >> first % 32 & 1), "an allowed token");
    fuzz::promise(!ok || (first < logits.size() && first == second), "a token of the vocabulary, the same again");
    return 0;
}
