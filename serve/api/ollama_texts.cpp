// What Ollama's requests for texts have in common, and the answers to them.
#include "serve/api/ollama_texts.h"

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
    read_reals(options, reals.through(&SamplerOptions::temperature), SamplingNames::ollama, s);
    s.top_k = static_cast<std::uint32_t>(std::max<std::int64_t>(options.whole("top_k", 40, -1, 1 << 30), 0));
    read_reals(options, reals.through(&SamplerOptions::repeat_penalty), SamplingNames::ollama, s);
    const std::int64_t n_recent = options.whole("repeat_last_n", 64, -1, 1 << 30);
    request.penalized.n_recent = n_recent < 0 ? 0xffffffffu : static_cast<std::uint32_t>(n_recent);
    request.penalized.n_counted = request.penalized.n_recent;
    request.penalized.counts_prompt = true;
    read_reals(options, reals.rest(), SamplingNames::ollama, s);
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
    request.form_field = "format";
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

}  // namespace

void read_ollama_text(const Fields& fields, Request& request) {
    read_options(fields, request);
    read_format(fields, request);
    read_think(fields, request);
    request.stream = fields.flag("stream", true);
}

std::string OllamaAnswer::end() {
    return failure().status ? error_body("/api/", failure().status, failure().message) + '\n' : "";
}

Json OllamaAnswer::head() const { return {{"model", options_.model}, {"created_at", utc_time(options_.created)}}; }

void OllamaAnswer::add_figures(Json& json, const Written& written) const {
    const auto nanoseconds = [](Clock::duration time) {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    };
    const Clock::time_point now = Clock::now(), first = written.first.value_or(now);
    json["done"] = true;
    json["done_reason"] = finish_word(written.finish);
    json["total_duration"] = nanoseconds(now - options_.arrived);
    json["load_duration"] = 0;
    json["prompt_eval_count"] = written.n_prompt;
    json["prompt_eval_duration"] = nanoseconds(first - options_.arrived);
    json["eval_count"] = written.n_new;
    json["eval_duration"] = nanoseconds(now - first);
}

std::string OllamaAnswer::piece(Written& written, const Event& event, const Part& part) {
    const std::size_t n_calls = written.calls.calls().size();
    const bool is_empty = part.text.empty() && part.thought.empty() && n_calls == written.n_calls_shown;
    std::string lines;
    if (!is_empty) {
        Json json = head();
        add_part(json, written, part, written.n_calls_shown);
        json["done"] = false;
        lines = serve::written(json) + '\n';
    }
    written.n_calls_shown = n_calls;
    if (!event.ended) return lines;
    Json last = head();
    add_part(last, written, {}, n_calls);  // the last object has no text: clients do not look for any
    add_figures(last, written);
    return lines + serve::written(last) + '\n';
}

std::string OllamaAnswer::whole() const {
    Json json = head();
    const Written& written = choices_.front();
    add_part(json, written, {written.text, written.thought}, 0);
    add_figures(json, written);
    return serve::written(json);
}

Reply loaded(const ModelEntry& entry, const char* field, Json nothing) {
    return reply_of({{"model", entry.served.name},
                     {"created_at", utc_time(unix_seconds())},
                     {field, std::move(nothing)},
                     {"done", true},
                     {"done_reason", "load"}});
}

}  // namespace fovea::serve
