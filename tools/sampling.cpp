#include "sampling.h"

#include "options.h"

namespace fovea {

SamplerOptions SamplingOptions::settled() const {
    SamplerOptions made = sampler;
    if (!has_temperature && others) made.temperature = 1;
    return made;
}

void add_sampling(CLI::App& verb, SamplingOptions& options) {
    SamplerOptions& sampler = options.sampler;
    const auto given = [&options](const std::string&) { options.others = true; };
    add_real(verb, "--temp", sampler.temperature, 0, 1e30f,
             "temperature; 0, the default, takes the likeliest; 1 where one of the next four is given")
        ->each([&options](const std::string&) { options.has_temperature = true; });
    add_count(verb, "--top-k", sampler.top_k, 0, 0xffffffffu, "sample among the K likeliest (0: all)")->each(given);
    add_real(verb, "--top-p", sampler.top_p, 0, 1, "sample among the fewest that reach this probability")->each(given);
    add_real(verb, "--min-p", sampler.min_p, 0, 1, "leave out what is less than this times as likely as the first")
        ->each(given);
    verb.add_option_function<std::string>(
            "--seed",
            [&options](const std::string& text) {
                options.sampler.seed = read_count("--seed", text, 0, ~0ull);
                options.others = true;
            },
            "of the random numbers (default 0); the same seed gives the same text")
        ->type_name("N")
        ->take_last();
    add_real(verb, "--repeat-penalty", sampler.repeat_penalty, 0.01f, 100, "above 1: recent tokens become less likely");
}

}  // namespace fovea
