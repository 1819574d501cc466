// The parser of requests: Boost.Beast's, with our bounds. For the files that speak HTTP alone.
//
// Its defaults that a client could use, and what stands in their place:
//   a body of 1 MB is read before anybody asks whose   its bound is the endpoint's, once the headers are allowed
//   8 KB of headers                                    16 KB; trailers and extensions of chunks have that bound, too
//   no time for anything                               a deadline for headers, body, answer, silence (connection.cpp)
//   all bodies and answers together have no bound      held_bytes.h; bound_answers; the system's send buffers
//   a trailer's fields join the headers                the request is what its headers say, before the body is read
//   several Hosts, or none                             400; of "http://host/path" that host counts (RFC 9112, 3.2)
//   codings beside chunked                             501, and 400 where chunked is not the last
//   empty lines before a request are an error          skipped (2.2)
// What it refuses by itself: Content-Length beside chunked, twice with different values, or no number; chunked twice; spaces before a
// colon; bare CR, LF and NUL. Folded lines are joined by a space (5.2). tests/serve/refusals.py sends these.
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
/// What its line and headers ask for.
[[nodiscard]] HttpRequest request_of(const Message& message);
/// The status for headers that RFC 9112 has refused: not one Host (section 3.2), or a length that is unknown (6.1). 0: none.
[[nodiscard]] int refusal_of(const Message& message, bool chunked);
[[nodiscard]] int refusal_of(const beast::error_code& error);

}  // namespace fovea::serve
