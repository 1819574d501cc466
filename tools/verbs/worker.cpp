// fovea worker: a share of the products of programs elsewhere that run the same file.
#include <cstdio>
#include <memory>
#include <string>

#include "fovea/host/opened.h"
#include "fovea/host/runtime.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/output_file.h"
#include "tools/options/opened.h"
#include "tools/options/options.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/verbs.h"

#if FOVEA_CLUSTER
#include "cluster/worker.h"
#endif

namespace fovea {
namespace {

struct WorkerOptions {
    CommonOptions common;
    std::string model;
    std::string host = "127.0.0.1";
    std::uint32_t port = 0;
    bool once = false;
};

#if FOVEA_CLUSTER

void say_ready(const WorkerOptions& options, std::uint16_t port) {
    const std::string host = options.host.find(':') == std::string::npos ? options.host : '[' + options.host + ']';
    const std::string address = host + ":" + std::to_string(port);
    if (options.common.json)
        std::printf("%s\n", Json{{"address", address}, {"port", port}}.dump().c_str());
    else
        std::printf("%s\n", address.c_str());
    flush_output();
}

void work(WorkerOptions& options) try {
    need_model(options.model);
    settle(options.common);
    const host::Opened opened = open_path(options.model, options.common.opening());
    // Programs keep their rows themselves: a workspace of the least size has the team and the kernels.
    host::Runtime<Workspace> workspace = start_workspace(
        opened, {.max_batch = 1, .n_threads = options.common.n_threads}, {.isa = options.common.isa_or_best()});
    cluster::Listener listener(options.host, static_cast<std::uint16_t>(options.port));
    say_ready(options, listener.port());
    for (bool done = false; !done;) {
        std::string from;
        cluster::Link link = listener.accept(from);
        std::fprintf(stderr, "%s: connected\n", from.c_str());
        const cluster::Served served = cluster::serve_link(link, opened.model, *workspace, options.common.n_threads);
        std::fprintf(stderr, "%s: %s\n", from.c_str(), served.why.empty() ? "closed" : served.why.c_str());
        done = options.once && served.greeted;
    }
} catch (const cluster::Error& error) {
    if (error.of_usage) throw UsageError(error.what());
    throw host::Error(error.what());
}

#else

void work(WorkerOptions&) {
    throw host::Error(
        "worker: expected a build with Boost 1.74 or newer (Debian and Ubuntu: libboost-dev; then configure and build "
        "again), got one without");
}

#endif

}  // namespace

void add_worker(CLI::App& app) {
    auto options = std::make_shared<WorkerOptions>();
    CLI::App& verb = add_verb(app, "worker", "Compute a part of another machine's products (its --workers)");
    add_model(verb, options->model, "the Fovea file that the other machine runs too");
    add_count(verb, "--port", options->port, 0, 65535, "port (default: a free one, which is printed)");
    add_text(verb, "--host", options->host, "address to listen on (default 127.0.0.1: this machine alone)")
        .type_name("ADDRESS");
    add_flag(verb, "--once", options->once, "end when the first program that runs this file has closed its connection");
    add_verify(verb, options->common);
    add_common(verb, options->common);
    set_action(verb, [options] { work(*options); });
}

}  // namespace fovea
