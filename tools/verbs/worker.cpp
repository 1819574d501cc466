// fovea worker: a share of the products of programs elsewhere that run the same file.
#include "fovea/host/runtime.h"
#include "host/base/output_file.h"
#include "tools/options/workers.h"
#include "tools/verbs/verb.h"

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
    const std::string address = cluster::address_words(options.host, port);
    if (options.common.json)
        print_line({{"address", address}, {"port", port}});
    else
        std::printf("%s\n", address.c_str());
    flush_output();
}

void work(WorkerOptions& options) try {
    need_model(options.model);
    const host::Opened opened = open_model(options.common, options.model);
    // Programs keep their rows themselves: a workspace of the least size has the team and the kernels.
    host::Runtime<Workspace> workspace =
        start_workspace(opened, {.max_batch = 1, .n_threads = options.common.n_threads}, options.common.session());
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

void work(WorkerOptions&) { refuse_without_boost("worker"); }

#endif

}  // namespace

void add_worker(CLI::App& app) {
    const auto declare = [](const Verb& verb, WorkerOptions& o) {
        verb.model(o.model, "the Fovea file that the other machine runs too");
        verb.count("--port", o.port, 0, 65535, "port (default: a free one, which is printed)");
        verb.text("--host", o.host, "address to listen on (default 127.0.0.1: this machine alone)", "ADDRESS");
        verb.flag("--once", o.once, "end when the first program that runs this file has closed its connection");
        verb.opening(o.common);
    };
    add_verb<WorkerOptions>(app, "worker", "Compute a part of another machine's products (its --workers)", work,
                            declare);
}

}  // namespace fovea
