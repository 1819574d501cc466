// The models that requests may name, each with what reads requests for it.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "serve/api/answer.h"
#include "serve/api/prompt_reader.h"
#include "serve/api/stored_responses.h"
#include "serve/jobs/forms.h"
#include "serve/jobs/metrics.h"
#include "serve/jobs/scheduler.h"

namespace fovea::serve {

/// The seed of requests that say none.
struct DefaultSeed {
    std::uint64_t seed = 0;
    bool is_random = false;  ///< a new one for each
};

/// What a model is and what it takes, before it has taken any.
struct PlannedModel {
    const host::Opened& served;
    Work work;
    std::uint32_t context;       ///< tokens of a prompt and its answer
    std::uint64_t memory_bytes;  ///< of what computes it, without its weights

    PlannedModel(const host::Opened& served_, const Worker& worker)
        : served(served_), work(worker.work()), context(worker.context()), memory_bytes(worker.memory_bytes()) {}
};

/// A model that is ready for requests.
struct ModelEntry : PlannedModel {
    std::size_t index;  ///< among the scheduler's
    PromptReader prompts;
    Forms forms;           ///< used by the thread that prepares jobs
    OwnSampling sampling;  ///< of what requests do not say
    DefaultSeed seed;

    /// Takes the memory of reading prompts. Throws host::Error. `served_` must outlive it.
    ModelEntry(const host::Opened& served_, const Worker& worker, std::size_t index_, const DefaultSeed& seed_)
        : PlannedModel(served_, worker),
          index(index_),
          prompts(served_, worker.max_prompt(), work == Work::text),
          forms(served_.tokenizer),
          sampling(OwnSampling::of(served_.model, served_.name)),
          seed(seed_) {}
};

/// What a model makes of texts or recordings.
enum class ModelTask { writes, hears, embeds, weighs, ranks, classifies };

/// What the APIs tell of a model, loaded or not.
struct ModelFacts {
    ModelTask task = {};
    Json openai, ollama, shown;  ///< an object of /v1/models, of /api/tags, and the answer of /api/show
};

enum class ModelState { unloaded, loading, loaded, unloading };

/// Whoever has a copy of a model's use computes with it, or is about to: it is not unloaded before.
using ModelUse = std::shared_ptr<const void>;

/// A model that requests may name. One that is on offer comes and goes while the server runs. Its name, its index and whether it is
/// on offer never change.
struct ModelSlot {
    std::string name;
    std::size_t index;                                ///< among the scheduler's
    std::optional<Work> work = {};                    ///< none: it could not be read yet
    std::shared_ptr<const host::Opened> opened = {};  ///< of one on offer: what the entry is of
    std::unique_ptr<ModelEntry> entry = {};           ///< null unless it is loaded
    ModelFacts facts = {};                            ///< as it was read last; empty: it could not be
    ModelUse use = {};                                ///< the first of all copies
    ModelState state = ModelState::unloaded;          ///< of one on offer
    std::string error = {};                           ///< why it could not be loaded the last time
    std::uint64_t n_bytes = 0;                        ///< its file and all its memory, as planned last
    std::uint64_t last_used = 0;                      ///< by the count of all uses
    bool is_offered = false;                          ///< may be loaded and unloaded
    bool is_closed = false;                           ///< takes no new requests: it is to be unloaded
    bool leaves = false;                              ///< is unloaded once nobody uses it, unless somebody asks before

    [[nodiscard]] bool is_idle() const { return use.use_count() == 1; }
};

/// Thrown for a request that is to be read again once its model is loaded, or unloaded.
struct AwaitedModel {
    std::size_t index;
    bool loaded;
    bool waits_for_room = true;  ///< that models in use have; else it fails without
};

struct Call;  // serve/api/endpoint.h

/// What endpoints answer from, for the thread that speaks HTTP and the one that reads long requests. The former alone loads and
/// unloads; it holds `changes` while it changes slots. The latter holds it while it looks for a model, whose use it has from then on,
/// so neither waits for the other's longer work.
class Service {
public:
    /// Takes the memory of reading prompts. Throws host::Error. All three must outlive it.
    Service(const std::vector<host::Opened>& models, const Scheduler& scheduler, const Metrics& metrics,
            const WorkerOptions& options, const DefaultSeed& seed, std::uint64_t stored_bytes);

    /// The model of this name, or where none is named the only one for this work, of several the only one for this task, whether
    /// it is loaded or not. No work: for any. The call has its use from now on. Throws RequestError; AwaitedModel where it is not
    /// loaded, or is to be unloaded and the call has not had its use before.
    [[nodiscard]] ModelEntry& find(Call& call, const std::string& name, std::optional<Work> work,
                                   std::optional<ModelTask> task = {});
    /// The same, loaded or not. `changes` is to be held as long as what may change is looked at.
    [[nodiscard]] ModelSlot& find_slot(const std::string& name, std::optional<Work> work,
                                       std::optional<ModelTask> task = {});
    /// The model of this name, once it is unloaded, if it is on offer. Throws as find does.
    [[nodiscard]] const ModelSlot& let_go(const std::string& name, std::optional<Work> work,
                                          std::optional<ModelTask> task = {});
    /// It is unloaded after what uses it now, if it is on offer and nobody asks before.
    void let_go_later(const ModelEntry& entry);
    /// It is used now. `changes` is to be held.
    void count_use(ModelSlot& slot) { slot.last_used = ++n_uses_; }
    /// The first that is loaded and does this work; else the first that is loaded. Throws RequestError where none is. By the thread
    /// that speaks HTTP.
    [[nodiscard]] const ModelEntry& first_of(Work work) const;
    /// Whether some models are on offer, so that each has a state.
    [[nodiscard]] bool offers() const { return !slots.empty() && slots.back().is_offered; }
    [[nodiscard]] std::uint64_t memory_bytes() const;  ///< taken, exactly

    const Metrics& metrics;
    const std::int64_t started = unix_seconds();
    const std::uint32_t n_viewed;                   ///< tokens of a text whose attention is shown, at most
    const std::uint32_t n_sequences;                ///< answers of a model that are computed at once
    std::deque<ModelSlot> slots;                    ///< by the scheduler's numbers; those on offer are the last
    std::mutex changes;                             ///< of slots
    const std::shared_ptr<StoredResponses> stored;  ///< an answer may outlive the service

private:
    std::uint64_t n_uses_ = 0;
};

}  // namespace fovea::serve
