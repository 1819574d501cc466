#include "convert/sources/hf_target.h"

#include <algorithm>
#include <utility>

#include "host/base/json.h"
#include "host/model/target_rules.h"

namespace fovea {
namespace {

constexpr const char* kTargetMembers[] = {"decoder_start_token_id",
                                          "forced_bos_token_id",
                                          "forced_eos_token_id",
                                          "eos_token_id",
                                          "pad_token_id",
                                          "bos_token_id",
                                          "max_length",
                                          "max_new_tokens",
                                          "min_length",
                                          "min_new_tokens",
                                          "suppress_tokens",
                                          "begin_suppress_tokens",
                                          "bad_words_ids",
                                          "no_repeat_ngram_size",
                                          "encoder_no_repeat_ngram_size",
                                          "num_beams",
                                          "length_penalty",
                                          "early_stopping",
                                          "renormalize_logits"};

/// What changes the text unless it has this value or is not there.
constexpr std::pair<const char*, double> kNeutral[] = {{"repetition_penalty", 1.0},
                                                       {"encoder_repetition_penalty", 1.0},
                                                       {"num_beam_groups", 1.0},
                                                       {"guidance_scale", 1.0},
                                                       {"diversity_penalty", 0.0}};
constexpr const char* kUnread[] = {"sequence_bias", "forced_decoder_ids", "exponential_decay_length_penalty",
                                   "force_words_ids", "constraints"};

}  // namespace

std::string target_info(const Fields& config, const std::filesystem::path& generation, std::uint32_t vocab_size) {
    std::error_code error;
    const bool has_own = std::filesystem::exists(generation, error);
    const Fields said = has_own ? Fields::read(generation) : config;
    SortedJson members = SortedJson::object();
    for (const char* name : kTargetMembers)
        if (said.has(name)) members[name] = said.json()[name];
    for (const auto& [name, value] : kNeutral)
        if (said.number_or(name, 0, 1e9, value) != value) said.refuse(name, std::to_string(static_cast<int>(value)));
    for (const char* name : kUnread)
        if (said.has(name)) said.refuse(name, "none");
    const std::string text = json_text(members, true);
    const TargetRules checked = TargetRules::read(text, vocab_size, said.place());
    if (checked.forced && std::find(checked.ends.begin(), checked.ends.end(), *checked.forced) != checked.ends.end())
        said.refuse("forced_bos_token_id", "another token than those that end a text");
    if (checked.beams.n_beams > 1 && said.flag_or("do_sample", false))
        said.refuse("do_sample", "false beside num_beams " + std::to_string(checked.beams.n_beams));
    return text;
}

}  // namespace fovea
