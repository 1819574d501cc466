// fovea serve: models behind HTTP, for programs that speak OpenAI's or Ollama's forms, and a page that chats.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "fovea/host/opened.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/output_file.h"
#include "host/base/text_file.h"
#include "host/base/words.h"
#include "host/translate/source_memory.h"
#include "tools/options/adapters.h"
#include "tools/options/opened.h"
#include "tools/options/options.h"
#include "tools/options/workers.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/verbs.h"
#ifdef FOVEA_SERVE
#include "serve/http/server.h"
#endif

namespace fovea {
namespace {

constexpr std::uint32_t kViewed = 256;  // tokens of a text whose attention is shown; weights are their square

struct ServeOptions {
    CommonOptions common;
    std::vector<std::string> models, keys, origins;
    std::vector<ScaledPath> loras;
    std::string host = "127.0.0.1", key_file;
    std::uint32_t port = 8080, context = 0, n_sequences = 8, n_positions = 0, queue = 256, n_connections = 2048;
    std::uint32_t seconds = 600, drain_seconds = 30;
    std::uint64_t body_bytes = 1 << 20, upload_bytes = 25 << 20;
    Type kv_type = Type::f32;
};

#ifdef FOVEA_SERVE

/// NAME=FILE gives a model its name; else it is the file's, without folder and ending.
host::Opened open_served(const std::string& argument, const OpenOptions& how) {
    const std::size_t equals = argument.find('=');
    std::error_code ignored;
    const bool named = equals != argument.npos && equals > 0 && !std::filesystem::exists(argument, ignored);
    const std::string path = named ? argument.substr(equals + 1) : argument;
    host::Opened opened = open_path_or_demo(path, how);
    opened.name = named ? argument.substr(0, equals) : std::filesystem::path(opened.name).stem().string();
    return opened;
}

/// Whether an adapter is for this model: NAME=FILE, or FILE for every model. A name is taken off.
bool is_for(const std::string& name, ScaledPath& lora) {
    std::error_code ignored;
    const std::size_t equals = lora.path.find('=');
    if (equals == lora.path.npos || equals == 0 || std::filesystem::exists(lora.path, ignored)) return true;
    if (lora.path.compare(0, equals, name) != 0) return false;
    lora.path.erase(0, equals + 1);
    return true;
}

/// Opens the adapters of each model.
void open_adapters(const ServeOptions& options, std::vector<host::Opened>& models) {
    std::vector<bool> used(options.loras.size());
    for (host::Opened& served : models)
        for (std::size_t i = 0; i < used.size(); ++i)
            if (ScaledPath lora = options.loras[i]; is_for(served.name, lora)) {
                served.add_adapter(lora.path, lora.scale, options.common.opening());
                used[i] = true;
            }
    for (std::size_t i = 0; i < used.size(); ++i)
        if (!used[i])
            throw UsageError("--lora: expected NAME=FILE with the name of a model that is served, got " +
                             options.loras[i].path);
}

/// A key per line, so that no list of processes shows it.
std::vector<std::string> read_keys(const ServeOptions& options) {
    std::vector<std::string> keys = options.keys;
    if (!options.key_file.empty()) {
        std::istringstream file(read_text_file(options.key_file));
        constexpr const char* kBlanks = " \t\r";
        for (std::string line; std::getline(file, line);)
            if (const std::size_t first = line.find_first_not_of(kBlanks); first != line.npos)
                keys.push_back(line.substr(first, line.find_last_not_of(kBlanks) + 1 - first));
        if (keys.size() == options.keys.size())
            throw host::Error(options.key_file + ": keys: expected one a line, got none");
    }
    for (const std::string& key : keys)
        if (key.empty()) throw UsageError("--api-key: expected a text, got an empty one");
    return keys;
}

void say_ready(const ServeOptions& options, const serve::Server& server, std::uint16_t port, std::size_t n_models) {
    const std::string host = options.host.find(':') == std::string::npos ? options.host : '[' + options.host + ']';
    const std::string url = "http://" + host + ":" + std::to_string(port);
    if (options.common.json)
        std::printf("%s\n", Json{{"url", url},
                                 {"port", port},
                                 {"memory_bytes", server.memory_bytes()},
                                 {"http_bytes_at_most", server.http_bytes()}}
                                .dump()
                                .c_str());
    else
        std::printf("%s\n", url.c_str());
    flush_output();
    std::fprintf(stderr, "serving %zu %s: %s bytes taken, HTTP at most %s more; Ctrl-C ends\n", n_models,
                 n_models == 1 ? "model" : "models", with_separators(server.memory_bytes()).c_str(),
                 with_separators(server.http_bytes()).c_str());
}

void run_server(ServeOptions& options) {
    settle(options.common);
    if (std::find(options.models.begin(), options.models.end(), "") != options.models.end())
        throw UsageError("MODEL: expected a file, got an empty name");
    if (options.models.empty()) options.models.emplace_back();  // the built-in one
    std::vector<host::Opened> models;
    for (const std::string& argument : options.models) {
        host::Opened model = open_served(argument, options.common.opening());
        for (const host::Opened& other : models)
            if (other.name == model.name)
                throw UsageError("MODEL: expected models of different names (NAME=FILE gives one), got two of " +
                                 model.name);
        models.push_back(std::move(model));
    }
    open_adapters(options, models);
    if (!options.common.workers.empty() && (models.size() != 1 || models.front().kind() == host::Kind::speech ||
                                            models.front().kind() == host::Kind::translation))
        throw UsageError("--workers: expected one model that continues texts or makes vectors, got " +
                         std::string(models.size() != 1 ? "several" : "one that writes another text"));
    const SharedWork shared(options.common, models.front());
    serve::ServerOptions server_options{.host = options.host,
                                        .port = static_cast<std::uint16_t>(options.port),
                                        .worker = {.n_threads = options.common.n_threads,
                                                   .isa = options.common.isa_or_best(),
                                                   .remote = shared.remote(),
                                                   .context = options.context,
                                                   .n_sequences = options.n_sequences,
                                                   .n_positions = options.n_positions,
                                                   .n_viewed = kViewed,
                                                   .queue_capacity = options.queue,
                                                   .kv_type = options.kv_type},
                                        .http = {},
                                        .api_keys = read_keys(options),
                                        .origins = options.origins,
                                        .time = std::chrono::seconds(options.seconds),
                                        .drain_time = std::chrono::seconds(options.drain_seconds)};
    const auto allow = [](serve::BodyLimits& limits, std::uint64_t bytes) {
        limits.bytes = static_cast<std::size_t>(bytes);
        limits.all_bytes = std::max(limits.all_bytes, limits.bytes);
    };
    allow(server_options.http.body, options.body_bytes);
    allow(server_options.http.upload, options.upload_bytes);
    server_options.http.n_connections = options.n_connections;
    serve::Server server(models, server_options);
    server.run([&](std::uint16_t port) { say_ready(options, server, port, models.size()); });
}

#else

void run_server(ServeOptions&) {
    throw host::Error(
        "serve: expected a build with Boost 1.74 or newer (Debian and Ubuntu: libboost-dev; then configure and build "
        "again), got one without");
}

#endif

}  // namespace

void add_serve(CLI::App& app) {
    auto options = std::make_shared<ServeOptions>();
    CLI::App& verb = add_verb(app, "serve", "Answer requests over HTTP, as OpenAI's and Ollama's servers do");
    add_arguments(verb, "MODEL", options->models, "Fovea files, each FILE or NAME=FILE (default: the built-in model)");
    add_count(verb, "--port", options->port, 0, 65535, "port (default 8080; 0: a free one, which is printed)");
    add_text(verb, "--host", options->host, "address to listen on (default 127.0.0.1: this machine alone)")
        .type_name("ADDRESS");
    add_count(verb, "--context", options->context, 1, 0xffffffffu,
              "positions of a prompt and its answer (default: the model's, at most 4096)");
    add_count(verb, "--sequences", options->n_sequences, 1, 256, "answers that are computed at once (default 8)");
    add_count(verb, "--positions", options->n_positions, 1, 0xffffffffu,
              "positions cached of all answers together (default: four contexts)");
    add_count(verb, "--queue", options->queue, 1, 1 << 20, "requests that may wait; more get 429 (default 256)");
    add_count(verb, "--connections", options->n_connections, 1, 1 << 20, "open connections at most (default 2048)");
    add_size(verb, "--body", options->body_bytes, "bytes of a request's body at most (default 1M)");
    add_size(verb, "--upload", options->upload_bytes, "bytes of a request with a recording at most (default 25M)");
    add_count(verb, "--time", options->seconds, 1, 1 << 24, "seconds a request may take in all (default 600)");
    add_count(verb, "--drain", options->drain_seconds, 0, 1 << 20,
              "seconds that answers have to end after SIGTERM (default 30)");
    const auto add_many = [&](const char* name, std::vector<std::string>& values, const char* help) {
        add_texts(verb, name, values, help);
    };
    add_many("--api-key", options->keys, "clients must send this key; may be repeated, each is a user of its own");
    add_text(verb, "--api-key-file", options->key_file, "the same, a key per line").type_name("FILE");
    add_many("--cors", options->origins, "pages of this origin may ask, such as https://a.example; *: all");
    add_scaled_paths(
        verb, "--lora", options->loras,
        "an adapter's file (convert ADAPTER --base MODEL) for every model, or NAME=FILE for one; maybe several");
    add_kv(verb, options->kv_type);
    add_workers(verb, options->common);
    add_verify(verb, options->common);
    add_common(verb, options->common);
    set_action(verb, [options] { run_server(*options); });
}

}  // namespace fovea
