// The models that requests may name, each with what reads requests for it.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "serve/api/answer.h"
#include "serve/api/prompt_reader.h"
#include "serve/jobs/forms.h"
#include "serve/jobs/metrics.h"
#include "serve/jobs/scheduler.h"

namespace fovea::serve {

/// The seed of requests that say none.
struct DefaultSeed {
    std::uint64_t seed = 0;
    bool is_random = false;  ///< a new one for each
};

struct ModelEntry {
    const host::Opened& served;
    std::size_t index;  ///< among the scheduler's
    Work work;
    std::uint32_t context;       ///< tokens of a prompt and its answer
    std::uint64_t memory_bytes;  ///< of what computes it, without its weights
    PromptReader prompts;
    Forms forms;           ///< used by the thread that prepares jobs
    OwnSampling sampling;  ///< of what requests do not say
    DefaultSeed seed;
};

/// What endpoints answer from, for the thread that speaks HTTP and the one that reads long requests.
class Service {
public:
    /// Takes the memory of reading prompts. Throws host::Error. All three must outlive it.
    Service(const std::vector<host::Opened>& models, const Scheduler& scheduler, const Metrics& metrics,
            const WorkerOptions& options, const DefaultSeed& seed);

    /// The model of this name, or where none is named the only one for this work, of several the only one that suits. No
    /// work: for any. Throws RequestError.
    [[nodiscard]] ModelEntry& find(const std::string& name, std::optional<Work> work,
                                   bool (*suits)(const ModelEntry&) = nullptr);
    [[nodiscard]] const std::deque<ModelEntry>& models() const { return models_; }
    [[nodiscard]] std::uint64_t memory_bytes() const;  ///< taken, exactly

    const Metrics& metrics;
    const std::int64_t started = unix_seconds();
    const std::uint32_t n_viewed;     ///< tokens of a text whose attention is shown, at most
    const std::uint32_t n_sequences;  ///< answers of a model that are computed at once

private:
    std::deque<ModelEntry> models_;  // that cannot move
};

}  // namespace fovea::serve
