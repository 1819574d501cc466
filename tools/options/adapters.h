// Adapters that a verb's --lora names.
#pragma once
#include <string>
#include <vector>

#include "fovea/host/opened.h"
#include "tools/options/options.h"

namespace fovea {

/// --lora FILE[:SCALE], maybe several.
void add_loras(const Verb& verb, std::vector<ScaledPath>& loras);

/// Refuses --session beside them: what a session's file has was computed with some, and it does not know which.
void check_sessions(const std::string& session, const std::vector<ScaledPath>& loras);

/// Opens each beside the model, whose sessions use it from here on. Throws host::Error for a file that is no adapter.
void open_loras(host::Opened& opened, const std::vector<ScaledPath>& loras, const OpenOptions& options);

}  // namespace fovea
