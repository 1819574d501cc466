// What of a request is read, and by which bounds.
#include "serve/http/http_message.h"

#include <algorithm>
#include <limits>

#include "host/base/ascii.h"

namespace fovea::serve {

std::string_view HttpRequest::header(std::string_view name) const {
    for (const auto& [key, value] : headers)
        if (key == name) return value;
    return {};
}

namespace {

/// What a target names, and asks of it: of "http://host/path/?query", as a client of a proxy sends it, "/path" and "query". The host
/// that it names; empty: none.
std::string_view read_target(std::string_view target, HttpRequest& request) {
    const std::size_t n_path = std::min(target.find('?'), target.size());
    request.query = target.substr(std::min(n_path + 1, target.size()));
    target = target.substr(0, n_path);
    std::string_view host;
    for (const std::string_view scheme : {"http://", "https://"})
        if (target.starts_with(scheme)) {
            host = target.substr(scheme.size(), target.find('/', scheme.size()) - scheme.size());
            target.remove_prefix(scheme.size() + host.size());
            if (target.empty()) target = "/";
        }
    while (target.size() > 1 && target.ends_with('/')) target.remove_suffix(1);
    request.path = target;
    return host;
}

}  // namespace

HttpRequest request_of(const Message& message) {
    HttpRequest request;
    request.method = std::string(message.method_string());
    const std::string_view host = read_target({message.target().data(), message.target().size()}, request);
    if (!host.empty()) request.headers.emplace_back("host", host);  // before what the header says
    for (const auto& field : message) {
        const auto name = field.name_string();
        request.headers.emplace_back(lower({name.data(), name.size()}), std::string(field.value()));
    }
    return request;
}

int refusal_of(const Message& message, bool chunked) {
    const auto n_hosts = message.count(http::field::host);
    if (n_hosts > 1 || (n_hosts == 0 && message.version() >= 11)) return 400;
    const bool encoded = message.count(http::field::transfer_encoding) > 0;
    if (encoded && !chunked) return 400;
    return encoded && !beast::iequals(message[http::field::transfer_encoding], "chunked") ? 501 : 0;
}

int refusal_of(const beast::error_code& error) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow) return 431;
    if (error == http::error::body_limit) return 413;
    return 400;
}

void prepare(Parser& parser, const HttpLimits& limits) {
    parser.header_limit(static_cast<std::uint32_t>(limits.header_bytes));
    parser.body_limit(std::numeric_limits<std::uint64_t>::max());  // it depends on the headers
}

std::string_view status_words(int status) {
    const auto words = http::obsolete_reason(static_cast<http::status>(status));
    return {words.data(), words.size()};
}

}  // namespace fovea::serve
