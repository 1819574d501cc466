// What may be asked, and by whom.
#include <algorithm>
#include <cctype>
#include <charconv>

#include "fovea/version.h"
#include "host/model/stacks.h"
#include "serve/api/fields.h"
#include "serve/http/call.h"

namespace fovea::serve {
namespace {

/// Equal, in a time that does not tell how far: keys are compared so.
bool same_secret(std::string_view a, std::string_view b) {
    unsigned difference = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < a.size(); ++i)
        difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
    return difference == 0;
}

/// "bearer x" starts with "Bearer ": the names of schemes have no case.
bool starts_with_scheme(std::string_view value, std::string_view scheme) {
    return value.size() >= scheme.size() &&
           std::equal(scheme.begin(), scheme.end(), value.begin(),
                      [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

/// "org%2Fname" is "org/name"; what is no such spelling stays.
std::string unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned code = 0;
        const char* digits = text.data() + i + 1;
        const bool is_escape =
            text[i] == '%' && text.size() - i > 2 && std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2;
        out += is_escape ? static_cast<char>(code) : text[i];
        if (is_escape) i += 2;
    }
    return out;
}

/// Names of this machine, as containers and local sites have them.
bool means_this_machine(std::string_view given) {
    std::string name(given.substr(0, given.size() - given.ends_with('.')));  // which ends a name that is whole
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return name == "localhost" || name.ends_with(".localhost") || name == "host.docker.internal";
}

/// A host's name without its port: "[::1]:8080" gives "[::1]".
std::string_view without_port(std::string_view host) {
    if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
    return host.substr(0, host.find(':'));
}

bool is_address(std::string_view host) {
    return host.starts_with('[') || host.find_first_not_of("0123456789.") == host.npos;
}

/// What is computed, by the path that asks for it.
struct Post {
    const char* path;
    Api api;
};
constexpr Post kPosts[] = {{"/v1/chat/completions", Api::chat},
                           {"/v1/responses", Api::response},
                           {"/v1/completions", Api::completion},
                           {"/v1/embeddings", Api::embedding},
                           {"/v1/rerank", Api::rerank},
                           {"/rerank", Api::rerank},
                           {"/v1/audio/transcriptions", Api::transcription},
                           {"/v1/audio/translations", Api::translation},
                           {"/api/chat", Api::ollama_chat},
                           {"/api/generate", Api::ollama_generate},
                           {"/api/embed", Api::ollama_embed},
                           {"/api/embeddings", Api::ollama_embedding}};

BodyKind body_kind(std::string_view path) {
    const bool uploads = std::any_of(std::begin(kPosts), std::end(kPosts), [&](const Post& post) {
        return path == post.path && work_of(post.api) == Work::speech;
    });
    return uploads ? BodyKind::upload : BodyKind::ordinary;
}

const char* words_of(Work work) { return work == Work::text ? "text" : work == Work::vectors ? "vectors" : "speech"; }

}  // namespace

void Server::refuse(Call& call, int status, const std::string& message, const std::string& param,
                    const std::string& code) {
    call.exchange->answer(
        {status, "application/json", error_body(call.ollama, status, message, param, code), std::move(call.headers)});
}

void Server::answer(Call& call, Json body) {
    call.exchange->answer({200, "application/json", written(body), std::move(call.headers)});
}

/// Throws RequestError where this client may not ask at all. Sets whose request it is, and what browsers want to hear.
void Server::check_allowed(Call& call) {
    // A page of another site whose name now means this machine (DNS rebinding) gives itself away by that name.
    const bool local = options_.host == "localhost" || options_.host == "::1" || options_.host.starts_with("127.");
    const std::string_view host = call.request.header("host"), name = without_port(host);
    if (local && !name.empty() && !means_this_machine(name) && !is_address(name))
        throw RequestError(
            403, "Host: expected localhost or an address, got another name; with --host 0.0.0.0 any is taken");
    const std::string_view origin = call.request.header("origin");
    const bool own =
        !host.empty() && (origin == "http://" + std::string(host) || origin == "https://" + std::string(host));
    const auto known = [&](const std::string& allowed) { return allowed == "*" || allowed == origin; };
    if (!origin.empty() && !own) {
        if (std::none_of(options_.origins.begin(), options_.origins.end(), known))
            throw RequestError(403, "Origin: expected one that --cors names, got another");
        const bool all = std::find(options_.origins.begin(), options_.origins.end(), "*") != options_.origins.end();
        call.headers.emplace_back("Access-Control-Allow-Origin", all ? "*" : std::string(origin));
        call.headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, X-Fovea-Logits-Hash, X-Fovea-Seed");
        call.headers.emplace_back("Vary", "Origin");
    }
    call.user = call.request.peer;
    const std::string& path = call.request.path;
    if (options_.api_keys.empty() || call.request.method == "OPTIONS" || path == "/health" || path == "/") return;
    std::string_view given = call.request.header("authorization");
    constexpr std::string_view kScheme = "Bearer ";
    given = starts_with_scheme(given, kScheme) ? given.substr(kScheme.size()) : std::string_view{};
    bool right = false;
    for (std::size_t i = 0; i < options_.api_keys.size(); ++i) {
        if (!same_secret(given, options_.api_keys[i])) continue;
        right = true;
        call.user = "key " + std::to_string(i);
    }
    if (right) return;
    call.headers.emplace_back("WWW-Authenticate", "Bearer");
    throw RequestError(401, "Authorization: expected Bearer and an API key, got none that is known", {},
                       "invalid_api_key");
}

BodyKind Server::admits(const HttpRequest& headers) {
    Call call{.request = headers, .exchange = nullptr};
    try {
        check_allowed(call);
    } catch (const RequestError&) {
        return BodyKind::none;
    }
    return body_kind(headers.path);
}

void Server::handle(HttpRequest request, const ExchangePtr& exchange, int refused) {
    Call call{.request = std::move(request), .exchange = exchange};
    call.ollama = call.request.path.starts_with("/api/");
    call.id = "fovea-" + std::to_string(started_) + "-" + std::to_string(++n_requests_);
    try {
        if (refused) {
            if (refused == 429) call.headers.emplace_back("Retry-After", "1");
            const HttpLimits& limits = options_.http;
            const BodyLimits& body = limits.of(body_kind(call.request.path));
            const std::string why =
                refused == 413 ? "body: expected at most " + std::to_string(body.bytes) + " bytes, got more"
                : refused == 431
                    ? "headers: expected at most " + std::to_string(limits.header_bytes) + " bytes, got more"
                : refused == 429 ? "server: busy with the bodies of other requests, " + std::to_string(body.all_bytes) +
                                       " bytes at most; try again later"
                                 : "request: expected HTTP/1.1 with one good length of the body, got something else";
            return refuse(call, refused, why);
        }
        check_allowed(call);
        route(call);
    } catch (const RequestError& error) {
        refuse(call, error.status, error.what(), error.param, error.code);
    } catch (const std::bad_alloc&) {
        refuse(call, 503, "server: out of memory");
    } catch (const std::exception& error) {
        refuse(call, 500, error.what());
    }
}

void Server::route(Call& call) {
    const HttpRequest& request = call.request;
    if (request.method == "OPTIONS") {
        call.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
        // Clients in browsers send headers of their own beside these, and name them here.
        const std::string_view named = request.header("access-control-request-headers");
        call.headers.emplace_back(
            "Access-Control-Allow-Headers",
            named.empty() ? "Authorization, Content-Type, X-Fovea-Logits-Hash" : std::string(named));
        call.headers.emplace_back("Access-Control-Max-Age", "86400");
        return call.exchange->answer({204, "", "", std::move(call.headers)});
    }
    if (const std::string_view coding = request.header("content-encoding"); !coding.empty() && coding != "identity")
        return refuse(call, 415, "Content-Encoding: expected none, got " + std::string(coding.substr(0, 40)));
    struct Other {
        const char* path;
        void (Server::*answer)(Call&);
    };
    static constexpr Other kOthers[] = {{"/v1/attention", &Server::show_attention},
                                        {"/api/show", &Server::show},
                                        {"/tokenize", &Server::tokenize},
                                        {"/detokenize", &Server::detokenize},
                                        {"/apply-template", &Server::apply_template}};
    const auto names = [&](const auto& entry) { return request.path == entry.path; };
    const Post* post = std::find_if(std::begin(kPosts), std::end(kPosts), names);
    const Other* other = std::find_if(std::begin(kOthers), std::end(kOthers), names);
    if (post == std::end(kPosts) && other == std::end(kOthers)) return route_get(call);
    if (request.method != "POST") {
        call.headers.emplace_back("Allow", "POST");
        return refuse(call, 405, "method: expected POST, got " + request.method);
    }
    if (post != std::end(kPosts)) return submit(call, post->api);
    (this->*other->answer)(call);
}

void Server::show(Call& call) {
    const Json body = read_json(call.request.body);
    const Fields fields(body);
    const std::size_t model = find_model(fields.text("model", fields.text("name")), std::nullopt);
    const ModelInfo& info = models_[model].model.info();
    const std::string architecture(info.architecture);
    const auto mentions = [&](const char* word) { return info.chat_template.find(word) != std::string_view::npos; };
    const Work work = scheduler_.worker(model).work();
    Json capabilities = Json::array({work == Work::text      ? "completion"
                                     : work == Work::vectors ? "embedding"
                                                             : "transcription"});
    if (mentions("tools") || !find_info(models_[model].model, "chat_template_tool_use").empty())
        capabilities.push_back("tools");
    if (mentions("enable_thinking") || mentions("<think>")) capabilities.push_back("thinking");
    answer(call,
           {{"details", {{"format", "fovea"}, {"family", architecture}, {"families", Json::array({architecture})}}},
            {"template", info.chat_template},
            {"model_info",
             {{"general.architecture", architecture},
              {architecture + ".context_length", scheduler_.worker(model).context()},
              {architecture + ".embedding_length", input_stack(models_[model].model.config()).d_model}}},
            {"capabilities", std::move(capabilities)}});
}

void Server::route_get(Call& call) {
    const std::string& path = call.request.path;
    const bool known = path == "/" || path == "/health" || path == "/metrics" || path == "/v1/models" ||
                       path == "/api/tags" || path == "/api/ps" || path == "/api/version" ||
                       path.starts_with("/v1/models/");
    if (!known)
        return refuse(
            call, 404,
            "path: expected an endpoint such as /v1/chat/completions or /api/chat, got " + path.substr(0, 100));
    if (call.request.method != "GET" && call.request.method != "HEAD") {
        call.headers.emplace_back("Allow", "GET, HEAD");
        return refuse(call, 405, "method: expected GET, got " + call.request.method);
    }
    if (path == "/") {
        call.headers.emplace_back("Content-Security-Policy",
                                  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
                                  "connect-src 'self'; img-src data:; frame-ancestors 'none'");
        return call.exchange->answer({200, "text/html; charset=utf-8", std::string(page()), std::move(call.headers)});
    }
    if (path == "/health") {
        const bool draining = http_.draining();
        return call.exchange->answer({draining ? 503 : 200, "application/json",
                                      written({{"status", draining ? "stopping" : "ok"}}), std::move(call.headers)});
    }
    if (path == "/metrics")
        return call.exchange->answer({200, "text/plain; version=0.0.4", metrics_.text(), std::move(call.headers)});
    if (path == "/api/version") return answer(call, {{"version", FOVEA_VERSION}});
    if (path == "/api/tags" || path == "/api/ps") return answer(call, tag_list());
    const Json models = model_list();
    if (path == "/v1/models") return answer(call, models);
    constexpr std::string_view kModels = "/v1/models/";
    const std::string name = path.starts_with(kModels) ? unescaped(path.substr(kModels.size())) : "";
    for (const Json& model : models["data"])
        if (model["id"].get<std::string>() == name) return answer(call, model);
    refuse(call, 404, "model: expected one that /v1/models lists, got another", "model", "model_not_found");
}

/// The model of this name, or where none is named the only one of its kind. No api: of any kind.
std::size_t Server::find_model(const std::string& name, std::optional<Api> api) const {
    std::string names;
    std::size_t n_kind = 0, of_kind = 0;
    for (std::size_t i = 0; i < models_.size(); ++i) {
        const Work work = scheduler_.worker(i).work();
        const bool is_named = models_[i].name == name || models_[i].name + ":latest" == name;
        const bool fits = !api || work == work_of(*api);
        if (is_named && !fits)
            throw RequestError(400,
                               std::string("model: expected one for ") + words_of(work_of(*api)) + ", got " + name +
                                   ", which is for " + words_of(work),
                               "model");
        if (is_named) return i;
        names += (names.empty() ? "" : ", ") + models_[i].name;
        if (!fits) continue;
        ++n_kind;
        of_kind = i;
    }
    if (name.empty() && n_kind == 1) return of_kind;
    const std::string expected =
        n_kind || !api ? "one of " + names
                       : std::string("one for ") + words_of(work_of(*api)) + ", which none of " + names + " is";
    throw RequestError(404, "model: expected " + expected + ", got " + (name.empty() ? "none" : name.substr(0, 100)),
                       "model", "model_not_found");
}

Json Server::model_list() const {
    Json list = Json::array();
    for (const host::Opened& served : models_)
        list.push_back({{"id", served.name}, {"object", "model"}, {"created", started_}, {"owned_by", "fovea"}});
    return {{"object", "list"}, {"data", std::move(list)}};
}

Json Server::tag_list() const {
    Json list = Json::array();
    for (const host::Opened& served : models_) {
        char digest[65];
        std::snprintf(digest, sizeof digest, "%064x", served.model.fingerprint());
        list.push_back({{"name", served.name},
                        {"model", served.name},
                        {"modified_at", utc_time(started_)},
                        {"size", served.model.bytes().size()},
                        {"digest", digest},
                        {"details", {{"format", "fovea"}, {"family", served.model.info().architecture}}}});
    }
    return {{"models", std::move(list)}};
}

}  // namespace fovea::serve
