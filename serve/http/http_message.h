// The parser of requests: Boost.Beast's, with our bounds. For the files that speak HTTP alone.
#pragma once
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "serve/http/http.h"

namespace fovea::serve {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using Message = http::request<http::string_body>;
using Parser = http::request_parser<http::string_body>;

void prepare(Parser& parser, const HttpLimits& limits);
[[nodiscard]] HttpRequest request_of(Message&& message);
/// A Transfer-Encoding that is not chunked leaves the length of a request unknown (RFC 9112, section 6.3).
[[nodiscard]] bool has_unknown_length(const Message& message, bool chunked);
[[nodiscard]] int refusal_of(const beast::error_code& error);

}  // namespace fovea::serve
