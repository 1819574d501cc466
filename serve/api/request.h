// What a request's JSON asks for, read and checked: OpenAI's forms and Ollama's, in one shape.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config.h"
#include "fovea/sampler.h"
#include "host/model/penalized.h"
#include "host/translate/target_writer.h"
#include "serve/jobs/job.h"

namespace fovea::serve {

using Json = nlohmann::ordered_json;  // templates print objects, keys in the client's order

enum class Api {
    chat,
    response,
    completion,
    embedding,
    rerank,
    transcription,
    translation,
    ollama_chat,
    ollama_generate,
    ollama_embed,
    ollama_embedding
};
[[nodiscard]] inline bool is_ollama(Api api) { return api >= Api::ollama_chat; }

[[nodiscard]] inline Work work_of(Api api) {
    if (api == Api::transcription || api == Api::translation) return Work::speech;
    return api == Api::embedding || api == Api::rerank || api >= Api::ollama_embed ? Work::vectors : Work::text;
}
[[nodiscard]] inline bool makes_vectors(Api api) { return work_of(api) == Work::vectors; }

/// A request that is refused: a status of HTTP, one line that says what was expected, and in OpenAI's terms the
/// parameter and a code (both may be empty).
struct RequestError : std::runtime_error {
    RequestError(int status_, const std::string& message, std::string param_ = {}, std::string code_ = {})
        : std::runtime_error(message), status(status_), param(std::move(param_)), code(std::move(code_)) {}
    int status;
    std::string param, code;
};

/// A text, or the tokens that a client has made of one.
struct Prompt {
    std::string text;
    std::vector<Token> tokens;
    bool is_tokens = false;
};

/// How a transcript is written.
enum class TranscriptForm { json, text, srt, verbose_json, vtt };

/// What a verbose transcript gives the times of.
struct TimesOf {
    bool segments = true, words = false;
};

struct Request {
    Api api = Api::chat;
    std::string model;
    Json messages = Json::array();  ///< chats
    Json tools;                     ///< null: none
    Json template_extra = Json::object();
    std::vector<Prompt> prompts;                                                      ///< completions and embeddings
    Languages languages{.from = {}, .to = {}, .from_name = "from", .to_name = "to"};  ///< of texts written from others
    Json echoed = Json::object();  ///< responses: settings that the answer repeats
    bool raw = false;              ///< the prompt as it is, without a template
    bool parts_thought = true;     ///< of a chat's answer: the model's reasoning is a field of its own
    bool only_loads = false;       ///< Ollama's requests without a prompt ask for the model to be loaded, and no more
    std::optional<std::string>
        prompt_name{};               ///< of what stands before each text of embeddings; none: the model's choice
    std::uint32_t n_dimensions = 0;  ///< of each vector; 0: all
    std::string query;               ///< reranking: what each of the prompts, its documents, is scored for
    std::uint32_t n_best = 0;        ///< of those; 0: all
    bool shows_documents = false;    ///< in the answer, too

    std::optional<std::uint32_t> n_new;
    SamplerOptions sampler;
    bool has_temperature = false;  ///< it says one
    Penalized penalized;
    bool random_seed = false;
    std::vector<std::string> stop;
    std::uint32_t n_each = 1;
    int n_likeliest = -1;  ///< -1: no probabilities
    bool echo = false, stream = false, with_usage = false, in_base64 = false, cuts = false;

    std::string sound;        ///< speech: a file's bytes
    std::string language;     ///< that is spoken; empty: the likeliest
    std::string said_before;  ///< a text before the recording's own
    TranscriptForm transcript = TranscriptForm::json;
    TimesOf times;

    Form form = Form::any;
    Json schema;             ///< Form::schema
    bool compact = false;    ///< of JSON: no space between its parts
    std::string grammar;     ///< Form::grammar, or the expression of Form::regex
    std::string form_field;  ///< that names it; empty: the one that the request's kind has for forms
    std::string tool;        ///< Form::tool: its name; empty: any of them
};

inline constexpr std::size_t kMostChoices = 32;      // of one request
inline constexpr std::size_t kMostTexts = 2048;      // of an embeddings request
inline constexpr std::size_t kMostStops = 16;        // stop strings,
inline constexpr std::size_t kMostStopBytes = 1024;  // together
inline constexpr std::size_t kMostBiases = 1024;     // of tokens
inline constexpr int kMostLikeliest = 20;
inline constexpr int kMostDepth = 100;  // of arrays and objects in each other

/// Reads a request's body. Any bytes give a Request whose fields are within the bounds above, or RequestError.
[[nodiscard]] Request read_request(Api api, std::string_view body);

/// Reads a form with a recording (multipart/form-data), of a Content-Type and a body, in the same way. The body becomes the
/// request's sound.
[[nodiscard]] Request read_upload(Api api, std::string_view content_type, std::string&& body);

/// JSON of any bytes, or RequestError: what is not JSON, or is too deep.
[[nodiscard]] Json read_json(std::string_view body);

}  // namespace fovea::serve
