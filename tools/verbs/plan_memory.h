// What `fovea plan` adds up: all that the verb for a model takes beside its file.
#pragma once
#include <string>

#include "fovea/host/opened.h"
#include "host/base/json.h"
#include "tools/options/options.h"

namespace fovea {

struct PlanOptions {
    CommonOptions common;
    std::string model, preset, picture, form;
    Limits limits;
    std::uint32_t n_beams = 0;  ///< 0: as many as the model says
    float seconds = 0;          ///< of a recording; 0: a window
    bool words = false;
    std::uint64_t flash = 0, ram = 0;  ///< what a board has; 0: not asked
    std::uint32_t max_text_bytes = 64;
};

struct MemoryPlan {
    Plan plan;                       ///< parts one after the other
    std::string heading;             ///< for what
    Json settings = Json::object();  ///< beside the limits
};

/// A session's. Throws host::Error.
[[nodiscard]] MemoryPlan plan_session(const std::string& name, const Config& config, const Limits& limits);
/// What `run` takes of a model that writes one text from another, `transcribe` of one that hears, and of others a session.
/// Throws host::Error, also for options that do nothing for such a model.
[[nodiscard]] MemoryPlan plan_memory(const host::Opened& opened, const PlanOptions& options);

}  // namespace fovea
