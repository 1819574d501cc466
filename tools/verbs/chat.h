// A conversation as `fovea chat` holds it; `fovea run MODEL` on a terminal does so too, with models that are made for it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/options/adapters.h"
#include "tools/options/options.h"
#include "tools/options/sampling.h"

namespace fovea {

struct ChatOptions {
    CommonOptions common;
    SamplingOptions sampling;
    std::string model, system, session, prompt, template_path;
    std::vector<std::string> stop;
    std::vector<ScaledPath> loras;
    bool has_prompt = false, show_thinking = false, no_thinking = false, quiet = false;
    std::uint32_t n_new = 0xffffffffu, context = 0;  ///< as many tokens as there is room for; the model's, at most 4096
    Type kv_type = Type::f32;
};

/// Until the user ends it; with a prompt, one answer. Throws host::Error.
void hold_conversation(const ChatOptions& options, const host::Opened& opened);

}  // namespace fovea
