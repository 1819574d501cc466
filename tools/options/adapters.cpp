#include "tools/options/adapters.h"

#include "tools/terminal/usage_error.h"

namespace fovea {

void add_loras(const Verb& verb, std::vector<ScaledPath>& loras) {
    verb.scaled_paths("--lora", loras,
                      "an adapter's file (convert ADAPTER --base MODEL); maybe several, each maybe with a scale");
}

void check_sessions(const std::string& session, const std::vector<ScaledPath>& loras) {
    if (session == "-") throw UsageError("--session: expected a file's name, got -");
    if (!session.empty() && !loras.empty()) throw UsageError("--session, --lora: expected one of them, got both");
}

void open_loras(host::Opened& opened, const std::vector<ScaledPath>& loras, const OpenOptions& options) {
    for (const ScaledPath& lora : loras) opened.add_adapter(lora.path, lora.scale, options);
}

}  // namespace fovea
