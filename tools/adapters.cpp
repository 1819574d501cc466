#include "adapters.h"

#include <algorithm>

#include "convert/refusal.h"
#include "fovea/adapter.h"

namespace fovea {

void add_loras(CLI::App& verb, std::vector<ScaledPath>& loras) {
    add_scaled_paths(verb, "--lora", loras,
                     "an adapter's file (convert ADAPTER --base MODEL); maybe several, each maybe with a scale");
}

void check_sessions(const std::string& session, const std::vector<ScaledPath>& loras) {
    if (!session.empty() && !loras.empty()) throw Refusal("--session, --lora: expected one of them, got both", 2);
}

Adapters::Adapters(const std::vector<ScaledPath>& loras, const OpenOptions& options) {
    for (const ScaledPath& lora : loras) {
        OpenedModel file;
        file.name = lora.path;
        require(map_file(lora.path.c_str(), file.mapping), lora.path);
        require(open_model(file.mapping.bytes(), file.model, options), lora.path);
        if (!adapter_rank(file.model))
            throw Refusal(lora.path +
                          ": expected an adapter's file, got a model; convert ADAPTER --base MODEL makes one");
        files_.push_back(std::move(file));
        scales_.push_back(lora.scale);
    }
}

void Adapters::plan(Limits& limits) const {
    limits.max_adapters = static_cast<std::uint32_t>(files_.size());
    for (const OpenedModel& file : files_)
        limits.max_adapter_rank = std::max(limits.max_adapter_rank, adapter_rank(file.model));
}

void Adapters::use(Session& session) const {
    std::vector<Adapter> adapters;
    for (std::size_t i = 0; i < files_.size(); ++i) {
        adapters.push_back({&files_[i].model, scales_[i]});
        require(set_adapters(session, {&adapters.back(), 1}), files_[i].name);  // by itself, so that a refusal names it
    }
    if (!adapters.empty()) require(set_adapters(session, adapters));
}

}  // namespace fovea
