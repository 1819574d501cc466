// What `fovea run` was asked for, and what answers it by a model of two stacks.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/host/generation.h"
#include "fovea/host/opened.h"
#include "fovea/host/translator.h"
#include "tools/options/adapters.h"
#include "tools/options/answer_form.h"
#include "tools/options/options.h"
#include "tools/options/sampling.h"
#include "tools/options/workers.h"
#include "tools/show/view.h"

namespace fovea {

inline constexpr std::uint32_t kUnlimited = 0xffffffffu;

struct RunOptions {
    CommonOptions common;
    ViewOptions view;
    FormOptions form;
    SamplingOptions sampling;
    std::string model, prompt, prompt_file, session, draft, batch, output;
    std::vector<Token> tokens;  // of --tokens
    std::vector<ScaledPath> loras;
    std::shared_ptr<const SharedWork> shared;
    std::vector<std::string> stop;
    std::vector<std::string_view> stop_views;  // of the above
    bool has_prompt = false, echo = false, special = false, quiet = false, has_n_new = false;
    std::uint32_t n_new = 128, context = 0, n_proposed = 0, n_sequences = 16;
    std::uint32_t n_beams = 0;  // 0: what the model says
    Type kv_type = Type::f32;
    Languages languages;

    [[nodiscard]] GenerateOptions generate() const {
        GenerateOptions made{
            .n_new = n_new, .stop = stop_views, .show_special = special, .speculation = {.n_proposed = n_proposed}};
        sampling.apply(made);
        return made;
    }
    [[nodiscard]] GeneratorLimits limits() const {
        std::size_t n_stop_bytes = 0;
        for (const std::string& text : stop) n_stop_bytes += text.size();
        return {.max_stop_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(n_stop_bytes, kUnlimited)),
                .max_proposed = form.wanted() ? std::max(n_proposed, host::kForced) : n_proposed};
    }
};

/// Answers the requests of --batch.
void answer_batch(const RunOptions& options, const host::Opened& opened);

/// Writes a text from the prompt by a model of host::Kind::translation.
void write_target(RunOptions& options, const host::Opened& opened);

}  // namespace fovea
