// Ollama's requests: /api/chat, /api/generate, /api/embed, /api/embeddings.
#include <algorithm>

#include "serve/api/fields.h"

namespace fovea::serve {
namespace {

/// Ollama's own defaults, so that an answer does not change with the server.
void read_options(const Fields& fields, Request& request) {
    static const Json kNone = Json::object();
    const Json* given = fields.find("options");
    const Fields options(given ? *given : kNone, "options");
    SamplerOptions& s = request.sampler;
    SamplingFields reals;
    read_reals(options, reals.through(&SamplerOptions::temperature), request);
    s.top_k = static_cast<std::uint32_t>(std::max<std::int64_t>(options.whole("top_k", 40, -1, 1 << 30), 0));
    read_reals(options, reals.through(&SamplerOptions::repeat_penalty), request);
    const std::int64_t n_recent = options.whole("repeat_last_n", 64, -1, 1 << 30);
    request.penalized.n_recent = n_recent < 0 ? 0xffffffffu : static_cast<std::uint32_t>(n_recent);
    request.penalized.n_counted = request.penalized.n_recent;
    request.penalized.counts_prompt = true;
    read_reals(options, reals.rest(), request);
    const std::int64_t seed = options.whole("seed", 0, INT64_MIN, INT64_MAX);
    request.random_seed = seed == -1;
    s.seed = static_cast<std::uint64_t>(seed);
    const std::int64_t n_new = options.whole("num_predict", -1, -2, 1 << 30);
    if (n_new >= 0) request.n_new = static_cast<std::uint32_t>(n_new);
    request.stop = read_stops(options);
}

void read_format(const Fields& fields, Request& request) {
    const Json* format = fields.find("format");
    if (!format || *format == "") return;
    if (*format == "json") {
        request.form = Form::json;
    } else if (format->is_object()) {
        request.form = Form::schema;
        request.schema = *format;
    } else {
        fields.refuse("format", "\"json\" or a JSON schema", *format);
    }
}

/// Whether the model is to reason before it answers, and how much; what it thought is a field of its own.
void read_think(const Fields& fields, Request& request) {
    const Json* think = fields.find("think");
    if (!think) return;
    if (think->is_boolean()) {
        request.template_extra["enable_thinking"] = *think;
    } else if (*think == "low" || *think == "medium" || *think == "high") {
        request.template_extra["reasoning_effort"] = *think;
    } else {
        fields.refuse("think", "true, false, \"low\", \"medium\" or \"high\"", *think);
    }
}

void read_generate(const Fields& fields, Request& request) {
    const std::string prompt = fields.text("prompt"), system = fields.text("system");
    request.raw = fields.flag("raw", false);
    request.only_loads = prompt.empty();
    for (const char* name : {"suffix", "template"}) fields.only(name, "");
    for (const char* name : {"images", "context"}) fields.only(name, Json::array());
    if (request.raw) {
        request.prompts.push_back({prompt, {}, false});
        return;
    }
    if (!system.empty()) request.messages.push_back({{"role", "system"}, {"content", system}});
    request.messages.push_back({{"role", "user"}, {"content", prompt}});
}

void read_embed(const Fields& fields, Request& request) {
    const bool is_one = request.api == Api::ollama_embedding;
    const bool by_prompt = is_one || (!fields.find("input") && fields.find("prompt"));  // older clients' name
    const Json& input = fields.need(by_prompt ? "prompt" : "input", "a text");
    if (is_one && !input.is_string()) fields.refuse("prompt", "a text", input);
    const Json list = input.is_array() ? input : Json::array({input});
    if (list.size() > kMostTexts) fields.refuse("input", "at most 2048 texts", input);
    for (const Json& text : list) {
        if (!text.is_string()) fields.refuse("input", "a text or an array of texts", text);
        request.prompts.push_back({text.get<std::string>(), {}, false});
    }
    request.only_loads = list.empty();
    read_vector_options(fields, request, true);
}

}  // namespace

void read_ollama(const Fields& fields, Request& request) {
    if (makes_vectors(request.api)) return read_embed(fields, request);
    read_options(fields, request);
    read_format(fields, request);
    read_think(fields, request);
    request.stream = fields.flag("stream", true);
    if (request.api == Api::ollama_generate) return read_generate(fields, request);
    const Json* messages = fields.find("messages");
    request.only_loads = !messages || *messages == Json::array();
    if (!request.only_loads) request.messages = read_messages(*messages);
    const Json* tools = fields.find("tools");
    if (tools && !tools->empty()) {
        check_tools(fields, *tools);
        request.tools = *tools;
    }
}

}  // namespace fovea::serve
