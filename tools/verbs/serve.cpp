// fovea serve: models behind HTTP, for programs that speak OpenAI's or Ollama's forms, and a page that chats.
#include <charconv>
#include <filesystem>
#include <map>
#include <sstream>

#include "host/base/output_file.h"
#include "host/base/text_file.h"
#include "serve/jobs/worker.h"
#include "tools/measure/available_memory.h"
#include "tools/options/ranks.h"
#include "tools/verbs/verb.h"
#ifdef FOVEA_SERVE
#include "serve/http/server.h"
#endif

namespace fovea {
namespace {

constexpr std::uint32_t kViewed = 256;  // tokens of a text whose attention is shown; weights are their square

struct ServeOptions {
    CommonOptions common;
    std::vector<std::string> models, drafts, keys, origins, hosts;
    std::vector<ScaledPath> loras;
    std::string host = "127.0.0.1", key_file, seed, folder;
    std::uint64_t models_bytes = 0;
    std::uint32_t port = 8080, queue = 256, n_connections = 2048;
    std::uint32_t seconds = 600, drain_seconds = 30, silent_seconds = 10;
    std::string log_path;
    bool logs_texts = false;
    std::uint64_t body_bytes = 1 << 20, upload_bytes = 25 << 20, stored_bytes = 64 << 20;
    serve::WorkerOptions worker;
};

#ifdef FOVEA_SERVE

/// Where the = of NAME=FILE is; npos where there is none, or a file has that whole name.
std::size_t end_of_name(const std::string& argument) {
    const std::size_t equals = argument.find('=');
    std::error_code ignored;
    return equals == 0 || std::filesystem::exists(argument, ignored) ? argument.npos : equals;
}

/// NAME=FILE gives a model its name; else it is the file's, without folder and ending.
host::Opened open_served(const std::string& argument, const OpenOptions& how) {
    const std::size_t end = end_of_name(argument);
    const bool named = end != argument.npos;
    host::Opened opened = open_path_or_demo(named ? argument.substr(end + 1) : argument, how);
    opened.name = named ? argument.substr(0, end) : std::filesystem::path(opened.name).stem().string();
    return opened;
}

/// The adapter, if it is for this model: NAME=FILE, or FILE for every model. A name is taken off.
std::optional<ScaledPath> adapter_for(const std::string& name, ScaledPath lora) {
    const std::size_t end = end_of_name(lora.path);
    if (end == lora.path.npos) return lora;
    if (lora.path.compare(0, end, name) != 0) return std::nullopt;
    lora.path.erase(0, end + 1);
    return lora;
}

void open_adapters(const std::vector<ScaledPath>& loras, const OpenOptions& how, host::Opened& served) {
    for (const ScaledPath& lora : loras)
        if (const auto own = adapter_for(served.name, lora)) served.add_adapter(own->path, own->scale, how);
}

/// The file of a model in the folder, which nothing in there may lead out of.
std::string file_in(const std::filesystem::path& folder, const std::filesystem::path& name) {
    std::error_code error;
    const std::filesystem::path file = std::filesystem::canonical(folder / name, error);
    if (error) throw host::Error(name.string() + ": file: expected one that can be read, got none");
    if (file.parent_path() != folder)
        throw host::Error(name.string() + ": file: expected one in the folder, got a link out of it");
    if (!std::filesystem::is_regular_file(file, error))
        throw host::Error(name.string() + ": file: expected a regular file, got another");
    return file.string();
}

/// Whether an adapter has as many layers as a model, of its width: whether it is for that one, its use says.
bool may_be_for(const Config& model, const Config& adapter) {
    const auto is_like = [](const Stack& own, const Stack& its) {
        return own.n_layers == its.n_layers && (!own.n_layers || own.d_model == its.d_model);
    };
    return is_like(model.encoder, adapter.encoder) && is_like(model.decoder, adapter.decoder);
}

/// Opens a model of the folder, with an adapter beside it unless that has no name.
serve::OfferedModel offer(const ServeOptions& options, const std::filesystem::path& folder, const std::string& model,
                          const std::string& adapter = {}) {
    const std::string name = adapter.empty() ? model : model + "+" + adapter;
    return {name, [folder, model, adapter, name, loras = options.loras, how = options.common.opening()] {
                host::Opened opened = host::open_file(file_in(folder, model + ".fovea"), how, name);
                if (!adapter.empty()) opened.add_adapter(file_in(folder, adapter + ".fovea"), 1, how);
                open_adapters(loras, how, opened);
                return opened;
            }};
}

/// The .fovea files of a folder, by name, and each adapter among them with each model that it may be for.
std::vector<serve::OfferedModel> offered_in(const ServeOptions& options) {
    std::vector<serve::OfferedModel> offered;
    if (options.folder.empty()) return offered;
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::canonical(options.folder, error);
    std::filesystem::directory_iterator files(folder, error);
    if (error) throw host::Error(options.folder + ": expected a folder that can be read, got " + error.message());
    std::vector<std::pair<std::string, Config>> models, adapters;
    for (const auto end = std::filesystem::directory_iterator(); files != end && !error; files.increment(error)) {
        const std::filesystem::path file = files->path().filename();
        if (file.extension() != ".fovea" || file.stem().empty()) continue;
        keep_from_writing((folder / file).string());
        const std::string name = file.stem().string();
        try {
            const host::Opened opened = host::open_file(file_in(folder, file), options.common.opening());
            (adapter_rank(opened.model) ? adapters : models).emplace_back(name, opened.config());
            if (adapter_rank(opened.model)) continue;
        } catch (const host::Error&) {  // which its status tells
        }
        offered.push_back(offer(options, folder, name));
    }
    if (offered.empty()) throw host::Error(options.folder + ": expected .fovea files of models, got none");
    for (const auto& [adapter, its] : adapters)
        for (const auto& [model, own] : models)
            if (may_be_for(own, its)) offered.push_back(offer(options, folder, model, adapter));
    if (!options.log_path.empty()) check_outputs({&options.log_path, 1});
    std::sort(offered.begin(), offered.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return offered;
}

/// Models that are served from the start to the end, and the names of all with those on offer.
std::vector<host::Opened> open_models(const ServeOptions& options, const std::vector<serve::OfferedModel>& offered) {
    std::vector<std::string> names;
    std::vector<host::Opened> models;
    const auto add_name = [&](const std::string& name) {
        if (std::find(names.begin(), names.end(), name) != names.end())
            throw UsageError("MODEL: expected models of different names (NAME=FILE gives one), got two of " + name);
        names.push_back(name);
    };
    for (const std::string& argument : options.models) {
        models.push_back(open_served(argument, options.common.opening()));
        add_name(models.back().name);
    }
    for (const serve::OfferedModel& one : offered) add_name(one.name);
    for (host::Opened& model : models) open_adapters(options.loras, options.common.opening(), model);
    for (const ScaledPath& lora : options.loras)
        if (std::none_of(names.begin(), names.end(), [&](auto& name) { return adapter_for(name, lora).has_value(); }))
            throw UsageError("--lora: expected NAME=FILE with the name of a model that is served, got " + lora.path);
    return models;
}

/// The draft of each model that has one, by the model's name: NAME=FILE, or FILE for the only model.
std::map<std::string, host::Opened> open_drafts(const ServeOptions& options, const std::vector<host::Opened>& models) {
    std::map<std::string, host::Opened> drafts;
    for (const std::string& argument : options.drafts) {
        const std::size_t end = end_of_name(argument);
        const bool named = end != argument.npos;
        const auto is_meant = [&](const host::Opened& model) {
            return named ? argument.compare(0, end, model.name) == 0 : models.size() == 1;
        };
        const auto model = std::find_if(models.begin(), models.end(), is_meant);
        if (model == models.end())
            throw UsageError("--draft: expected NAME=FILE with the name of a MODEL, got " + argument);
        host::Opened draft = open_path(named ? argument.substr(end + 1) : argument, options.common.opening());
        if (!drafts.emplace(model->name, std::move(draft)).second)
            throw UsageError("--draft: expected one for " + model->name + ", got two");
    }
    return drafts;
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

serve::DefaultSeed read_seed(const std::string& text) {
    if (text == "random") return {.is_random = true};
    serve::DefaultSeed read;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, read.seed);
    if (!text.empty() && (error != std::errc() || stop != end))
        throw UsageError("--seed: expected a number from 0, or random, got " + text.substr(0, 40));
    return read;
}

void say_ready(const ServeOptions& options, const serve::Server& server, std::uint16_t port, std::size_t n_models) {
    const std::string url = "http://" + serve::address_words(options.host, port);
    const std::uint64_t memory_bytes = server.memory_bytes(), http_bytes = server.http_bytes();
    const std::size_t n_offered = server.n_offered();
    const std::uint64_t models_bytes = server.models_bytes();
    Json figures = {{"url", url}, {"port", port}, {"memory_bytes", memory_bytes}, {"http_bytes_at_most", http_bytes}};
    if (n_offered) figures["models_bytes_at_most"] = models_bytes;
    if (options.common.json)
        print_line(figures);
    else
        std::printf("%s\n", url.c_str());
    flush_output();
    std::fprintf(stderr, "serving %s: %s bytes taken, HTTP at most %s more; Ctrl-C ends\n",
                 counted(n_models, "model").c_str(), with_separators(memory_bytes).c_str(),
                 with_separators(http_bytes).c_str());
    if (n_offered)
        std::fprintf(stderr, "loads %s of %s when asked for; files and memory of all models: %s bytes at most\n",
                     counted(n_offered, "model").c_str(), options.folder.c_str(),
                     with_separators(models_bytes).c_str());
    if (!serve::is_this_machine(options.host) && options.keys.empty() && options.key_file.empty())
        std::fprintf(stderr, "warning: whoever reaches %s may ask; --api-key or --api-key-file asks for a key\n",
                     url.c_str());
}

/// Whether this is a rank that follows the first, which serves; then it has done so to the end.
bool follows(const ServeOptions& options, const std::vector<host::Opened>& models) {
    if (!joined_ranks()) return false;
    if (!options.folder.empty()) refuse_by_ranks("--models");
    if (models.size() > 1) refuse_by_ranks("several models");
    const host::Kind kind = models.front().kind();
    if (kind != host::Kind::text && kind != host::Kind::vectors && kind != host::Kind::translation)
        refuse_by_ranks("a model for neither texts nor vectors");
    lead_ranks();
    if (joined_ranks()->rank == 0) return false;
    serve::ModelMetrics metrics;
    const std::unique_ptr<serve::Worker> worker = serve::make_worker(models.front(), options.worker, metrics);
    worker->take_memory();
    worker->begin();
    worker->follow(follow_first_rank);
    return true;
}

void run_server(ServeOptions& options) {
    settle(options.common);
    if (std::find(options.models.begin(), options.models.end(), "") != options.models.end())
        throw UsageError("MODEL: expected a file, got an empty name");
    if (options.models.empty() && options.folder.empty()) options.models.emplace_back();  // the built-in one
    if (options.models_bytes && options.folder.empty())
        throw UsageError("--memory: expected --models FOLDER beside it, got none");
    const std::vector<serve::OfferedModel> offered = offered_in(options);
    const std::vector<host::Opened> models = open_models(options, offered);
    options.worker.n_threads = options.common.n_threads;
    options.worker.isa = options.common.isa_or_best();
    options.worker.n_viewed = joined_ranks() ? 0 : kViewed;
    options.worker.queue_capacity = options.queue;
    serve::ServerOptions server_options{
        .host = options.host,
        .port = static_cast<std::uint16_t>(options.port),
        .worker = options.worker,
        .http = {},
        .api_keys = read_keys(options),
        .origins = options.origins,
        .hosts = options.hosts,
        .seed = read_seed(options.seed),
        .stored_bytes = options.stored_bytes,
        .time = std::chrono::seconds(options.seconds),
        .drain_time = std::chrono::seconds(options.drain_seconds),
        .log_path = options.log_path,
        .logs_texts = options.logs_texts,
        .offered = offered,
        .models_bytes = options.models_bytes ? options.models_bytes : available_memory()};
    if (options.logs_texts && options.log_path.empty())
        throw UsageError("--log-texts: expected --log FILE beside it, got none");
    if (follows(options, models)) return;  // of ranks the first alone guesses
    const std::map<std::string, host::Opened> drafts = open_drafts(options, models);
    for (const auto& [name, draft] : drafts) server_options.worker.drafts.emplace(name, &draft);
    const auto allow = [](serve::BodyLimits& limits, std::uint64_t bytes) {
        limits.bytes = static_cast<std::size_t>(bytes);
        limits.all_bytes = std::max(limits.all_bytes, limits.bytes);
    };
    allow(server_options.http.body, options.body_bytes);
    allow(server_options.http.upload, options.upload_bytes);
    server_options.http.n_connections = options.n_connections;
    server_options.http.silence_time = std::chrono::seconds(options.silent_seconds);
    serve::Server server(models, server_options);
    server.run([&](std::uint16_t port) { say_ready(options, server, port, models.size()); });
}

#else

void run_server(ServeOptions&) {
    throw host::Error(
        "serve: expected a build with Boost 1.74 or newer (Debian and Ubuntu: libboost-dev; then configure and build "
        "again), "
        "got one without");
}

#endif

}  // namespace

void add_serve(CLI::App& app) {
    const auto declare = [](const Verb& verb, ServeOptions& o) {
        verb.input_arguments("MODEL", o.models, "Fovea files, each FILE or NAME=FILE (default: the built-in model)");
        verb.input("--models", o.folder, "a folder whose .fovea files are loaded when they are asked for", "FOLDER");
        verb.size("--memory", o.models_bytes,
                  "with --models: bytes that all models may take, their files too (default: what the machine has)");
        verb.count("--port", o.port, 0, 65535, "port (default 8080; 0: a free one, which is printed)");
        verb.text("--host", o.host, "address to listen on (default 127.0.0.1: this machine alone)", "ADDRESS");
        verb.count(
            "--context", o.worker.context, 1, kAny,
            "positions of a prompt and its answer, or of a text (default: the model's, at most 4096; of vectors 8192)");
        verb.count("--sequences", o.worker.n_sequences, 1, 256, "answers that are computed at once (default 8)");
        verb.count("--positions", o.worker.n_positions, 1, kAny,
                   "positions cached of all answers together (default: four contexts)");
        verb.count("--queue", o.queue, 1, 1 << 20, "requests that may wait; more get 429 (default 256)");
        verb.count("--connections", o.n_connections, 1, 1 << 20, "open connections at most (default 2048)");
        verb.size("--body", o.body_bytes, "bytes of a request's body at most (default 1M)");
        verb.size("--upload", o.upload_bytes, "bytes of a request with a recording at most (default 25M)");
        verb.size("--stored", o.stored_bytes,
                  "bytes of responses that are kept for previous_response_id at most (default 64M)");
        verb.text("--seed", o.seed,
                  "seed of requests that say none: a number (default 0), or random, a new one for each", "SEED");
        verb.count("--time", o.seconds, 1, 1 << 24, "seconds a request may take in all (default 600)");
        verb.count("--drain", o.drain_seconds, 0, 1 << 20,
                   "seconds that answers have to end after SIGTERM (default 30)");
        verb.count("--ping", o.silent_seconds, 1, 1 << 20,
                   "seconds after which a stream that has nothing to say gets a comment (default 10)");
        verb.output("--log", o.log_path,
                    "a line of JSON for each request goes to this file's end: times and tokens, no texts");
        verb.flag("--log-texts", o.logs_texts, "the log has requests and answers, too");
        verb.texts("--api-key", o.keys, "clients must send this key; may be repeated, each is a user of its own");
        verb.input("--api-key-file", o.key_file, "the same, a key per line");
        verb.texts(
            "--allow-host", o.hosts,
            "a name by which clients may call this server, beside this machine's own and addresses; may be repeated");
        verb.texts("--cors", o.origins, "pages of this origin may ask, such as https://a.example; *: all");
        verb.scaled_paths(
            "--lora", o.loras,
            "an adapter's file (convert ADAPTER --base MODEL) for every model, or NAME=FILE for one; maybe several");
        verb.texts("--draft", o.drafts,
                   "a smaller model with the same vocabulary, or the model's next-token head, that guesses tokens "
                   "ahead: the same answers, sooner; FILE, or NAME=FILE for one of several models");
        verb.kv(o.worker.kv_type);
        o.common.executor = "own";  // OpenMP's threads wait for the next pass on CPUs that clients and requests want
        verb.opening(o.common);
    };
    add_verb<ServeOptions>(app, "serve", "Answer requests over HTTP, as OpenAI's and Ollama's servers do", run_server,
                           declare);
}

}  // namespace fovea
