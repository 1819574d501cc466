// Bytes that come over a connection: a refusal with its status, or a request within its bounds. What its body asks for is
// read as every kind of request.
#include "serve/api/field_readers.h"
#include "serve/api/forms_of.h"
#include "serve/api/query.h"
#include "serve/api/response_items.h"
#include "serve/http/http_message.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace fovea;
using namespace fovea::serve;

void check_prompts(const std::vector<Prompt>& prompts, std::size_t most) {
    fuzz::promise(prompts.size() <= most, "a number of prompts");
}

void check(const Request& request) {
    fuzz::promise(request.n_each >= 1 && request.n_each <= kMostChoices, "a number of choices");
    fuzz::promise(request.stop.size() <= kMostStops, "a number of stop strings");
    fuzz::promise(request.n_likeliest >= -1 && request.n_likeliest <= kMostLikeliest, "a number of alternatives");
    fuzz::promise(request.bad_words.size() <= kMostBadWords, "a number of texts that an answer has not");
    check_prompts(request.prompts, kMostChoices);
    Sampler sampler;
    fuzz::promise(make_sampler(request.sampler.options(), sampler).ok(), "options that the sampler takes");
    for (const Json& message : request.messages)
        fuzz::promise(message.at("role").is_string() && message.at("content").is_string(), "a role and a text");
    if (request.form == Form::tool) (void)forced_call_of(request, nullptr);
}

void check(const VectorRequest& request) { check_prompts(request.prompts, kMostTexts); }

/// Reads; a refusal is for what the client did.
template<class Read>
void allow_refusal(const Read& read) try {
    read();
} catch (const RequestError& error) {
    fuzz::promise(error.status >= 400 && error.status < 500, "a status for what the client did");
    fuzz::promise(std::string_view(error.what()).find('\n') == std::string_view::npos, "one line");
}

/// What is kept of a response's input has the same messages.
void keep_items(const Fields& fields) {
    (void)read_response(fields);
    Request request, kept;
    read_items(fields, "input", *fields.find("input"), request);
    Json items = Json::array();
    add_items(*fields.find("input"), new_response_id(), items);
    read_items(fields, "input", read_json(written(items)), kept);
    fuzz::promise(request.messages == kept.messages, "the messages of kept items");
}

/// A body, parsed once, as every kind of request.
void read_all(std::string_view body) {
    allow_refusal([&] {
        const Json json = read_body(body);
        const Fields fields(json);
        for (const auto read :
             {read_chat, read_response, read_completion, read_message_request, read_ollama_chat, read_ollama_generate})
            allow_refusal([&] { check(read(fields)); });
        for (const auto read : {read_embeddings, read_ollama_embed}) allow_refusal([&] { check(read(fields)); });
        allow_refusal([&] { keep_items(fields); });
    });
}

void read_asked(std::string_view query) try {
    fuzz::promise(read_query(query).is_object(), "an object of fields");
} catch (const RequestError& error) {
    fuzz::promise(error.status == 400, "a status for what the client did");
}

/// The request in `bytes`, which hold it whole, or the status that refuses it. Connections read by the same rules.
struct ParsedHttp {
    int refused = 0;  ///< a status, or 0
    HttpRequest request;
};
ParsedHttp parse_http(std::string_view bytes, const HttpLimits& limits) {
    Parser parser;
    prepare(parser, limits);
    parser.body_limit(limits.body.bytes);
    parser.eager(true);
    beast::error_code error;
    while (!bytes.empty() && !parser.is_done()) {
        const std::size_t n = parser.put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
        if (error == http::error::need_more && n) error = {};
        if (error) break;
        bytes.remove_prefix(n);
    }
    if (!error && !parser.is_done() && parser.got_some()) parser.put_eof(error);  // it wants a byte before the end
    if (error || !parser.is_done()) return {error ? refusal_of(error) : 400, {}};
    if (const int status = refusal_of(parser.get(), parser.chunked())) return {status, {}};
    ParsedHttp parsed{0, request_of(parser.get())};
    parsed.request.body = std::move(parser.get().body());
    return parsed;
}

}  // namespace

FOVEA_FUZZ_TARGET(http_request) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    HttpLimits limits;
    limits.header_bytes = 512;
    limits.body.bytes = 2048;
    const ParsedHttp parsed = parse_http(bytes, limits);
    if (parsed.refused) {
        fuzz::promise(parsed.refused == 400 || parsed.refused == 413 || parsed.refused == 431, "a status");
    } else {
        fuzz::promise(parsed.request.body.size() <= limits.body.bytes, "a body within its bound");
        read_all(parsed.request.body);
        read_asked(parsed.request.query);
    }
    read_all(bytes);
    return 0;
}
