// What requests ask for, read from their JSON and checked: OpenAI's and Ollama's in one shape.
#pragma once
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config.h"
#include "fovea/sampler.h"
#include "host/base/json.h"
#include "host/base/words.h"
#include "host/model/penalized.h"
#include "host/model/sampling_options.h"
#include "host/translate/translation.h"
#include "serve/api/infill.h"
#include "serve/jobs/job.h"

namespace fovea::serve {

/// A request that is refused: a status of HTTP, one line that says what was expected, whatever the client wrote, and in OpenAI's
/// terms the parameter and a code (both may be empty).
struct RequestError : std::runtime_error {
    RequestError(int status_, const std::string& message, std::string param_ = {}, std::string code_ = {})
        : std::runtime_error(fovea::printable(message)),
          status(status_),
          param(std::move(param_)),
          code(std::move(code_)) {}
    int status;
    std::string param, code;
};

/// Refuses a parameter's value, with status 400.
[[noreturn]] inline void refuse(const std::string& param, const std::string& expected, const std::string& got,
                                const std::string& code = {}) {
    throw RequestError(400, param + ": expected " + expected + ", got " + got, param, code);
}

/// A text, or the tokens that a client has made of one.
struct Prompt {
    std::string text;
    std::vector<Token> tokens;
    bool is_tokens = false;
};

/// Texts are asked for: the answers to a conversation, or what follows prompts.
struct Request {
    std::string model;
    bool is_chat = false;  ///< `messages` by the model's template, else `prompts` as they are
    Json messages = Json::array();
    std::string previous;  ///< a stored response that the messages go on from; empty: none
    bool stores = true;    ///< a response is kept
    Json tools;            ///< null: none
    Json template_extra = Json::object();
    Json documents;                 ///< null: none
    bool opens_answer = true;       ///< of a chat: its prompt ends with what begins an answer,
    bool continues_answer = false;  ///< or goes on to the end of the last message, the assistant's
    std::vector<Prompt> prompts;
    bool infills = false;                      ///< answers are between prompts and a suffix,
    std::string suffix;                        ///< which may be empty
    std::string begun;                         ///< of an answer that is filled in,
    std::vector<InfillFile> files;             ///< and other files beside it
    std::optional<bool> adds_special;          ///< start and end tokens around prompts; none: as their kind has them
    std::optional<std::uint32_t> most_prompt;  ///< tokens of a prompt, whose last ones are kept
    Languages languages{.from = {}, .to = {}, .from_name = "from", .to_name = "to"};  ///< of texts written from others
    bool splits = false;        ///< a source that is too long is read in parts, each a prompt of its own
    bool parts_thought = true;  ///< of a chat's answer: the model's reasoning is a field of its own
    bool only_loads = false;    ///< Ollama's requests without a prompt ask for the model to be loaded, and no more

    std::optional<std::uint32_t> n_new;
    TextSampler sampler;
    SaidOptions said;  ///< of the sampler's options, those that it has
    Penalized penalized;
    bool random_seed = false;
    std::vector<std::string> stop;
    std::vector<Token> end_tokens;              ///< beside the model's
    std::optional<std::vector<Token>> allowed;  ///< none: all tokens
    std::vector<std::string> bad_words;         ///< texts that the answer has not
    bool shows_special = false;                 ///< the text has special tokens,
    bool shows_stop = false;                    ///< and the stop text that ended it
    std::uint32_t n_each = 1;
    int n_likeliest = -1;  ///< -1: no probabilities
    bool echo = false, stream = false;
    bool with_usage = false, counts_pieces = false;  ///< a stream ends with its usage; each piece has it, too

    Form form = Form::any;
    Json schema;                                 ///< Form::schema
    bool compact = false;                        ///< of JSON: no space between its parts
    std::string grammar;                         ///< Form::grammar, or the expression of Form::regex
    std::string form_field = "response_format";  ///< that names the form
    std::string tool;                            ///< Form::tool: its name; empty: any of them
    bool calls_once = false;                     ///< of several calls of tools only the first is one

    std::string ignored;  ///< names of fields that are not known, with commas between them
};

/// Vectors of texts are asked for.
struct VectorRequest {
    std::string model;
    std::vector<Prompt> prompts;
    const char* field = "input";             ///< that has them
    std::optional<std::string> prompt_name;  ///< of what stands before each text; none: the model's choice
    std::uint32_t n_dimensions = 0;          ///< of each vector; 0: all
    bool cuts = false;                       ///< texts that are too long
    bool in_base64 = false;
};

inline constexpr std::size_t kMostChoices = 32;      // of one request
inline constexpr std::size_t kMostTexts = 2048;      // of an embeddings request
inline constexpr std::size_t kMostStops = 16;        // stop strings,
inline constexpr std::size_t kMostStopBytes = 1024;  // together
inline constexpr std::size_t kMostBiases = 1024;     // of tokens
inline constexpr std::size_t kMostBadWords = 256;    // texts that an answer has not,
inline constexpr std::size_t kMostBadBytes = 16384;  // together
inline constexpr std::ptrdiff_t kMostUnknown = 16;   // fields
inline constexpr int kMostLikeliest = 20;
inline constexpr std::size_t kMostDepth = 100;  // of arrays and objects in each other

/// Gives a request's job what the request says of how its tokens are chosen and where its answers end. `job` may have end tokens.
void set_choices(const Request& request, Job& job);

/// JSON of any bytes, or RequestError: what is not JSON, or is too deep.
[[nodiscard]] Json read_body(std::string_view body);

}  // namespace fovea::serve
