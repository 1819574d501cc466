// Other machines that compute a part of every product: --workers.
#pragma once
#include <memory>
#include <string>

#include "fovea/host/opened.h"
#include "fovea/remote.h"
#include "tools/options/options.h"

namespace fovea {

namespace cluster {
class Workers;
}

/// --workers HOST:PORT, maybe several, parted by commas.
void add_workers(const Verb& verb, CommonOptions& common);

/// Those workers, once the model is open. Made before the session or workspace that they work for, and outlives it.
class SharedWork {
public:
    /// Throws host::Error, or UsageError if the option is no list of addresses. Settle `common` first.
    SharedWork(const CommonOptions& common, const host::Opened& opened);

    /// Null without --workers.
    [[nodiscard]] const Remote* remote() const;
    /// The workers that are still connected.
    [[nodiscard]] std::uint32_t n_workers() const;

private:
    std::shared_ptr<cluster::Workers> workers_;
};

/// host::Error of a build that lacks what `what` needs.
[[noreturn]] void refuse_without_boost(const char* what);

}  // namespace fovea
