// A conversation as `fovea chat` holds it; `fovea run MODEL` on a terminal does so too, with models that are made for it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/options/adapters.h"
#include "tools/options/options.h"
#include "tools/options/sampling.h"

namespace fovea {

/// What `run` and `chat` are both asked for.
struct TextOptions {
    CommonOptions common;
    SamplingOptions sampling;
    std::string model, session, prompt;
    std::vector<std::string> stop;
    std::vector<ScaledPath> loras;
    bool has_prompt = false, quiet = false;
    std::optional<std::uint32_t> n_new;
    std::uint32_t context = 0;  ///< 0: the model's

    /// Throws UsageError for stop texts that are empty.
    void check_stop() const;
    /// Bytes of all stop texts.
    [[nodiscard]] std::uint32_t n_stop_bytes() const;
};

struct ChatOptions : TextOptions {
    std::string system, template_path, tools;
    bool show_thinking = false, no_thinking = false;
};

/// Until the user ends it; with a prompt, one answer. Throws host::Error.
void hold_conversation(const ChatOptions& options, const host::Opened& opened);

}  // namespace fovea
