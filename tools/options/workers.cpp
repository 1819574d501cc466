#include "tools/options/workers.h"

#include <cstdio>
#include <vector>

#include "host/base/error.h"
#include "tools/terminal/usage_error.h"

#if FOVEA_CLUSTER
#include "cluster/workers.h"
#endif

namespace fovea {

void add_workers(const Verb& verb, CommonOptions& common) {
    verb.text("--workers", common.workers,
              "machines that compute a part of every product, for which fovea worker runs there",
              "HOST:PORT[,HOST:PORT]");
}

void refuse_without_boost(const char* what) {
    throw host::Error(
        std::string(what) +
        ": expected a build with Boost 1.74 or newer (Debian and Ubuntu: libboost-dev; then configure and "
        "build again), got one without");
}

#if FOVEA_CLUSTER

namespace {

std::vector<std::string> addresses(const std::string& list) {
    std::vector<std::string> all;
    for (std::size_t from = 0; from <= list.size();) {
        const std::size_t end = std::min(list.find(',', from), list.size());
        all.push_back(list.substr(from, end - from));
        try {
            (void)cluster::Address(all.back());
        } catch (const cluster::Error&) {
            throw UsageError("--workers: expected HOST:PORT, or several with commas between, got " + list);
        }
        from = end + 1;
    }
    return all;
}

}  // namespace

SharedWork::SharedWork(const CommonOptions& common, const host::Opened& opened) try {
    if (common.workers.empty()) return;
    const auto note = [](const std::string& line) { std::fprintf(stderr, "note: %s\n", line.c_str()); };
    workers_ = std::make_shared<cluster::Workers>(addresses(common.workers), opened.model, common.n_threads, note);
} catch (const cluster::Error& error) {
    throw host::Error(error.what());
}

const Remote* SharedWork::remote() const { return workers_ ? workers_->remote() : nullptr; }
std::uint32_t SharedWork::n_workers() const { return workers_ ? workers_->n_there() : 0; }

#else

SharedWork::SharedWork(const CommonOptions& common, const host::Opened&) {
    if (!common.workers.empty()) refuse_without_boost("--workers");
}

const Remote* SharedWork::remote() const { return nullptr; }
std::uint32_t SharedWork::n_workers() const { return 0; }

#endif

}  // namespace fovea
