#include "tools/options/adapters.h"

#include "fovea/adapter.h"
#include "host/base/error.h"
#include "tools/terminal/usage_error.h"

namespace fovea {

void add_loras(CLI::App& verb, std::vector<ScaledPath>& loras) {
    add_scaled_paths(verb, "--lora", loras,
                     "an adapter's file (convert ADAPTER --base MODEL); maybe several, each maybe with a scale");
}

void check_sessions(const std::string& session, const std::vector<ScaledPath>& loras) {
    if (session == "-") throw UsageError("--session: expected a file's name, got -");
    if (!session.empty() && !loras.empty()) throw UsageError("--session, --lora: expected one of them, got both");
}

Adapters::Adapters(const std::vector<ScaledPath>& loras, const OpenOptions& options) {
    files_.reserve(loras.size());  // so that none moves
    for (const ScaledPath& lora : loras) {
        host::Opened& file = files_.emplace_back();
        file.name = lora.path;
        require(map_file(lora.path.c_str(), file.mapping), lora.path);
        require(open_model(file.mapping.bytes(), file.model, options), lora.path);
        if (!adapter_rank(file.model))
            throw host::Error(lora.path +
                              ": expected an adapter's file, got a model; convert ADAPTER --base MODEL makes one");
        list_.push_back({lora.path, {&file.model, lora.scale}});
    }
}

void Adapters::use(Session& session) const {
    Workspace workspace = session.workspace();
    serve::use_adapters(list_, workspace);
}

}  // namespace fovea
