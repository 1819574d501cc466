// What may be asked, and by whom.
#include <algorithm>

#include "host/base/ascii.h"
#include "serve/http/server.h"

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
    return lower(value.substr(0, scheme.size())) == lower(scheme);
}

/// Names of this machine, as containers and local sites have them.
bool means_this_machine(std::string_view given) {
    const std::string name = lower(given.substr(0, given.size() - given.ends_with('.')));  // which ends a whole name
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

BodyKind body_kind(const Endpoint* endpoint) {
    return endpoint && endpoint->access == Access::upload ? BodyKind::upload : BodyKind::ordinary;
}

}  // namespace

std::string address_words(const std::string& host, std::uint16_t port) {
    return (host.find(':') == host.npos ? host : '[' + host + ']') + ":" + std::to_string(port);
}

bool is_this_machine(std::string_view host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

void Server::refuse(Route& route, int status, const std::string& message, const std::string& param,
                    const std::string& code) {
    route.refusal = message;
    answer(route, {.status = status, .body = error_body(route.request.path, status, message, param, code)});
}

void Server::answer(Route& route, Reply reply) {
    route.headers.insert(route.headers.end(), reply.headers.begin(), reply.headers.end());
    if (reply.job && http_.draining()) return refuse(route, 503, "server: it is stopping");
    const ModelUse use = std::move(route.call.use);  // to this reply's end, or its job's
    if (reply.job) reply.job->use = use;
    if (const JobPtr job = reply.job; job && job->prepare)
        return prepare(preparer_, job, std::make_shared<std::pair<Route, Reply>>(std::move(route), std::move(reply)),
                       &Server::queue);
    if (reply.job) return queue(route, std::move(reply));
    if (log_) log_->write(logged(route), reply.status, route.refusal);
    route.exchange->answer(
        {reply.status, std::move(reply.content_type), std::move(reply.body), std::move(route.headers)});
}

/// What the log has of a request from the start.
LoggedRequest Server::logged(const Route& route) const {
    LoggedRequest request{.id = route.call.id,
                          .method = route.request.method,
                          .path = route.request.path,
                          .user = route.call.user,
                          .arrived = route.call.arrived};
    if (!route.asked.empty()) {
        request.asked = route.asked;
        request.taken = route.request.taken;
    }
    return request;
}

/// Throws RequestError where this client may not ask at all. Sets whose request it is, and what browsers want to hear.
void Server::check_allowed(Route& route) {
    // A page of another site whose name now means this machine (DNS rebinding) gives itself away by that name.
    const bool local = is_this_machine(options_.host);
    const std::string_view host = route.request.header("host"), name = without_port(host);
    const bool named = std::find(options_.hosts.begin(), options_.hosts.end(), name) != options_.hosts.end();
    if ((local || !options_.hosts.empty()) && !name.empty() && !named && !means_this_machine(name) && !is_address(name))
        throw RequestError(403, "Host: expected localhost, an address or what --allow-host names, got another name");
    const std::string_view origin = route.request.header("origin");
    const bool own =
        !host.empty() && (origin == "http://" + std::string(host) || origin == "https://" + std::string(host));
    const auto known = [&](const std::string& allowed) { return allowed == "*" || allowed == origin; };
    if (!origin.empty() && !own) {
        if (std::none_of(options_.origins.begin(), options_.origins.end(), known))
            throw RequestError(403, "Origin: expected one that --cors names, got another");
        const bool all = std::find(options_.origins.begin(), options_.origins.end(), "*") != options_.origins.end();
        route.headers.emplace_back("Access-Control-Allow-Origin", all ? "*" : std::string(origin));
        route.headers.emplace_back("Access-Control-Expose-Headers",
                                   "X-Request-Id, X-Fovea-Logits-Hash, X-Fovea-Seed, X-Fovea-Ignored");
        route.headers.emplace_back("Vary", "Origin");
    }
    route.call.user = route.request.peer;
    const bool open = route.endpoint && route.endpoint->access == Access::open;
    if (options_.api_keys.empty() || route.request.method == "OPTIONS" || open) return;
    std::string_view given = route.request.header("authorization");
    constexpr std::string_view kScheme = "Bearer ";
    given = starts_with_scheme(given, kScheme) ? given.substr(kScheme.size()) : route.request.header("x-api-key");
    bool right = false;
    for (std::size_t i = 0; i < options_.api_keys.size(); ++i) {
        if (!same_secret(given, options_.api_keys[i])) continue;
        right = true;
        route.call.user = "key " + std::to_string(i);
    }
    if (right) return;
    route.headers.emplace_back("WWW-Authenticate", "Bearer");
    throw RequestError(401, "Authorization: expected Bearer and an API key, got none that is known", {},
                       "invalid_api_key");
}

BodyKind Server::admits(const HttpRequest& headers) {
    Route route{.request = headers, .exchange = nullptr, .endpoint = find_endpoint(headers.path)};
    try {
        check_allowed(route);
    } catch (const RequestError&) {
        return BodyKind::none;
    }
    return body_kind(route.endpoint);
}

/// What HTTP itself refuses.
void Server::refuse_http(Route& route, int status) {
    if (status == 429) route.headers.emplace_back("Retry-After", "1");
    const HttpLimits& limits = options_.http;
    const BodyLimits& body = limits.of(body_kind(route.endpoint));
    refuse(route, status,
           status == 413   ? "body: expected at most " + std::to_string(body.bytes) + " bytes, got more"
           : status == 431 ? "headers: expected at most " + std::to_string(limits.header_bytes) + " bytes, got more"
           : status == 429 ? "server: busy with the bodies of other requests, " + std::to_string(body.all_bytes) +
                                 " bytes at most, half of them of one address; try again later"
           : status == 501
               ? "Transfer-Encoding: expected chunked, got another"
               : "request: expected HTTP/1.1 with one Host and one good length of the body, got something else");
}

void Server::handle(HttpRequest request, const ExchangePtr& exchange, int refused) {
    Route route{.request = std::move(request), .exchange = exchange};
    route.endpoint = find_endpoint(route.request.path);
    route.call.id = "fovea-" + std::to_string(service_.started) + "-" + std::to_string(++n_requests_);
    route.call.user = route.request.peer;
    if (refused) return refuse_http(route, refused);
    try_to(route, &Server::handle);
}

/// A step of a request: whatever it throws is answered, and a model that it wants is awaited.
void Server::try_to(Route& route, void (Server::*step)(Route&)) {
    try {
        (this->*step)(route);
    } catch (const AwaitedModel& model) {
        await(route, model);
    } catch (...) {
        refuse(route, current_failure());
    }
}

/// What browsers ask before a page of another origin may.
void Server::answer_options(Route& route) {
    // Clients in browsers send headers of their own beside these, and name them here.
    const std::string_view named = route.request.header("access-control-request-headers");
    answer(route,
           {.status = 204,
            .content_type = "",
            .headers = {{"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"},
                        {"Access-Control-Allow-Headers",
                         named.empty() ? "Authorization, Content-Type, X-Fovea-Logits-Hash" : std::string(named)},
                        {"Access-Control-Max-Age", "86400"}}});
}

void Server::handle(Route& route) {
    check_allowed(route);
    if (route.request.method == "OPTIONS") return answer_options(route);
    HttpRequest& request = route.request;
    const Endpoint* endpoint = route.endpoint;
    if (const std::string_view coding = request.header("content-encoding"); !coding.empty() && coding != "identity")
        return refuse(route, 415, "Content-Encoding: expected none, got " + std::string(coding.substr(0, 40)));
    if (!endpoint)
        return refuse(
            route, 404,
            "path: expected an endpoint such as /v1/chat/completions or /api/chat, got " + request.path.substr(0, 100));
    const bool posts = endpoint->access == Access::post || endpoint->access == Access::upload;
    const bool is_item = endpoint->access == Access::item, deletes = is_item && request.method == "DELETE";
    const bool fits = posts ? request.method == "POST" : request.method == "GET" || request.method == "HEAD" || deletes;
    if (!fits) {
        route.headers.emplace_back("Allow", posts ? "POST" : is_item ? "GET, HEAD, DELETE" : "GET, HEAD");
        return refuse(route, 405,
                      std::string("method: expected ") +
                          (posts     ? "POST"
                           : is_item ? "GET or DELETE"
                                     : "GET") +
                          ", got " + request.method);
    }
    Call& call = route.call;
    call.deletes = deletes;
    call.path = request.path;
    call.query = std::move(request.query);
    call.content_type = request.header("content-type");
    call.wants_hash = !request.header("x-fovea-logits-hash").empty();
    call.stopping = http_.draining();
    call.deadline = call.arrived + options_.time;
    call.taken = request.taken;
    if (endpoint->access == Access::upload) call.body = std::move(request.body);
    ask(route);
}

/// Asks the endpoint. A request whose model is awaited comes here again.
void Server::ask(Route& route) {
    constexpr std::size_t kShort = 16 << 10;  // bytes of a body that this thread reads itself
    const std::string& body = route.request.body;
    const bool is_long = body.size() > kShort || body.find("previous_response_id") != body.npos ||
                         body.find("item_reference") != body.npos;  // as what they name
    const Access access = route.endpoint->access;
    if ((access == Access::post && is_long) || access == Access::item) return read(route);
    answer(route, begin(route));
    loader_.settle();
}

}  // namespace fovea::serve
