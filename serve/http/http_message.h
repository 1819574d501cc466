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
/// The status for headers that RFC 9112 has refused: not one Host (section 3.2), or a length that is unknown (6.1). 0: none.
[[nodiscard]] int refusal_of(const Message& message, bool chunked);
[[nodiscard]] int refusal_of(const beast::error_code& error);

}  // namespace fovea::serve
