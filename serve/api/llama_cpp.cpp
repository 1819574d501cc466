// POST /completion, /embedding, GET /props and /slots: what llama.cpp's server has beside OpenAI's forms.
#include <cstdio>

#include "fovea/version.h"
#include "serve/api/model_facts.h"
#include "serve/api/other_fields.h"
#include "serve/api/text_answer.h"
#include "serve/api/text_fields.h"
#include "serve/api/vector_answer.h"

namespace fovea::serve {
namespace {

/// Its own fields by OpenAI's names, and without what is read here. An answer has all that there is room for where the request does
/// not say.
Json as_completion(Json body) {
    (void)Fields(body);  // an object
    body.erase("return_tokens");
    if (!body.contains("max_tokens") && !body.contains("n_predict")) body["max_tokens"] = -1;
    const auto probabilities = body.find("n_probs");
    if (probabilities == body.end()) return body;
    if (*probabilities != 0) body["logprobs"] = *probabilities;  // 0: none, and not those of the tokens
    body.erase("n_probs");
    return body;
}

/// How a request's answers are worded.
struct ContinuationForm {
    std::string prompt;
    bool returns_tokens = false, returns_chances = false;
    Json settings;
};

class ContinuationAnswer final : public TextAnswer {
public:
    ContinuationAnswer(TextAnswerOptions options, ContinuationForm form)
        : TextAnswer(std::move(options)), form_(std::move(form)) {}
    [[nodiscard]] std::string end() override { return failure().status ? openai_failure() : ""; }
    [[nodiscard]] std::string whole() const override { return serve::written(last(choices_.front(), true)); }
    [[nodiscard]] std::size_t n_kept() const override { return TextAnswer::n_kept() + form_.prompt.size(); }

private:
    [[nodiscard]] Json last(const Written& written, bool is_whole) const;
    [[nodiscard]] Json timings(const Written& written) const;
    void add_tokens(Json& json, const std::vector<ChosenToken>& tokens) const {
        json["tokens"] = Json::array();
        if (form_.returns_tokens)
            for (const ChosenToken& token : tokens) json["tokens"].push_back(token.id);
        if (form_.returns_chances) json["completion_probabilities"] = chances_of(tokens, true);
    }
    [[nodiscard]] std::string piece(Written& written, const Event& event, const Part& part) override;

    const ContinuationForm form_;
};

std::string ContinuationAnswer::piece(Written& written, const Event& event, const Part& part) {
    std::string out;
    if (!part.text.empty() || !event.tokens.empty()) {
        Json json = {{"index", event.choice}, {"content", part.text}, {"stop", false}};
        add_tokens(json, event.tokens);
        out = as_event(json);
    }
    return event.ended ? out + as_event(last(written, false)) : out;
}

Json ContinuationAnswer::timings(const Written& written) const {
    const auto milliseconds = [](Clock::duration time) {
        return std::chrono::duration<double, std::milli>(time).count();
    };
    const Clock::time_point now = Clock::now(), first = written.first.value_or(now);
    Json json = {{"cache_n", written.last.n_shared}};
    const auto add = [&](const std::string& name, std::uint32_t n, Clock::duration time) {
        const double spent = milliseconds(time);
        json[name + "_n"] = n;
        json[name + "_ms"] = spent;
        json[name + "_per_token_ms"] = n ? spent / n : 0.0;
        json[name + "_per_second"] = spent > 0 ? 1000.0 * n / spent : 0.0;
    };
    add("prompt", written.last.n_prompt - written.last.n_shared, first - options_.arrived);
    add("predicted", written.last.n_new, now - first);
    if (written.last.n_proposed) {
        json["draft_n"] = written.last.n_proposed;
        json["draft_n_accepted"] = written.last.n_accepted;
    }
    return json;
}

/// A whole answer, or the last object of a stream, whose text has gone before.
Json ContinuationAnswer::last(const Written& written, bool is_whole) const {
    const Event& event = written.last;
    const bool is_limit = event.finish == FinishReason::length || event.finish == FinishReason::context;
    const bool is_word = event.finish == FinishReason::stop_text;
    Json json = {{"index", 0},
                 {"content", is_whole ? written.text : ""},
                 {"stop", true},
                 {"model", options_.model},
                 {"tokens_predicted", event.n_new},
                 {"tokens_evaluated", event.n_prompt},
                 {"tokens_cached", event.n_prompt + event.n_new},
                 {"generation_settings", form_.settings},
                 {"prompt", form_.prompt},
                 {"has_new_line", written.text.find('\n') != written.text.npos},
                 {"truncated", false},
                 {"stop_type", is_limit  ? "limit"
                               : is_word ? "word"
                                         : "eos"},
                 {"stopping_word", is_word ? event.stop : ""},
                 {"timings", timings(written)}};
    add_tokens(json, is_whole ? written.tokens : std::vector<ChosenToken>{});
    return json;
}

Json settings_of(Request request, const ModelEntry& entry) {
    entry.sampling.fill(request.said, request.sampler, request.penalized.n_recent);
    Json json = {{"n_predict", request.n_new && *request.n_new < kMostNew ? Json(*request.n_new) : Json(-1)},
                 {"stop", request.stop},
                 {"stream", request.stream}};
#define FOVEA_SAMPLER_REAL(field, ...) json[#field] = request.sampler.field;
#define FOVEA_SAMPLER_COUNT FOVEA_SAMPLER_REAL
#define FOVEA_SAMPLER_SEED FOVEA_SAMPLER_REAL
#include "fovea/sampler_options.inc"
    return json;
}

Reply continuation(Call& call, Service& service, Request request) {
    if (request.prompts.size() * request.n_each != 1) refuse("prompt", "one text, or the ids of one", "several");
    if (request.echo) refuse("echo", "none, for an answer has the prompt in a field of its own", "true");
    ModelEntry& entry = service.find(call, request.model, Work::text);
    ContinuationForm form{.prompt = {},
                          .returns_tokens = Fields(call.json).flag("return_tokens", false),
                          .returns_chances = request.n_likeliest >= 0,
                          .settings = settings_of(request, entry)};
    const Prompt& prompt = request.prompts.front();
    form.prompt = prompt.is_tokens ? host::detokenize(entry.served.tokenizer, prompt.tokens) : prompt.text;
    if (form.returns_tokens) request.n_likeliest = std::max(request.n_likeliest, 0);
    return text_reply<ContinuationAnswer>(call, entry, request, kAsManyAsFit, std::move(form));
}

/// Other files that a text to be filled in is beside.
std::vector<InfillFile> read_files(const Fields& fields) {
    std::vector<InfillFile> files;
    const Json* extra = fields.find("input_extra");
    if (extra && !extra->is_array()) fields.refuse("input_extra", "an array of files", *extra);
    for (std::size_t i = 0; extra && i < extra->size(); ++i) {
        const Fields file((*extra)[i], at("input_extra", i));
        files.push_back({file.text("filename"), file.text("text")});
    }
    return files;
}

}  // namespace

Reply endpoints::continue_prompt(Call& call, Service& service) {
    return continuation(call, service, read_completion(Fields(as_completion(call.json))));
}

Reply endpoints::fill_in(Call& call, Service& service) {
    Json body = as_completion(call.json);
    const Fields fields(body);
    const std::string beginning = fields.text("input_prefix"), end = fields.text("input_suffix");
    std::string begun = fields.text("prompt");
    std::vector<InfillFile> files = read_files(fields);
    for (const char* name : {"input_prefix", "input_suffix", "input_extra"}) body.erase(name);
    body["prompt"] = beginning;
    Request request = read_completion(Fields(body));
    check_members(call.json, kInfill, request.ignored);
    request.infills = true;
    request.suffix = end;
    request.begun = std::move(begun);
    request.files = std::move(files);
    return continuation(call, service, std::move(request));
}

Reply endpoints::embed_contents(Call& call, Service& service) {
    const Fields fields =
        fields_of(call, {"model", "content", "input", "prompt_name", "dimensions", "truncate", "embd_normalize"});
    VectorRequest request;
    request.model = fields.text("model");
    request.field = fields.find("content") ? "content" : "input";
    request.prompts = read_prompts(fields.need(request.field, "a text"), request.field, kMostTexts);
    read_vector_options(fields, request, false);
    ModelEntry& entry = service.find(call, request.model, Work::vectors, ModelTask::embeds);
    const std::int64_t norm = fields.whole("embd_normalize", 2, -1, 2);  // 0 and 1: the largest value, their sum
    if (norm == 0 || norm == 1) refuse("embd_normalize", "-1 or 2", std::to_string(norm));
    return vector_reply(call, entry, request, norm == 2, [](const Vectors& vectors) {
        Json list = Json::array();
        for (const std::vector<float>& vector : vectors.all)
            list.push_back({{"index", list.size()}, {"embedding", Json::array({vector})}});
        return list;
    });
}

Reply endpoints::tell_props(Call&, Service& service) {
    const ModelEntry& entry = service.first_of(Work::text);
    const Tokenizer& tokenizer = entry.served.tokenizer;
    const Json nothing = {{"prompt", ""}};
    const std::string bos(tokenizer.bos() == Tokenizer::kNoToken ? "" : token_bytes(tokenizer, tokenizer.bos()));
    const bool hears = entry.work != Work::text && entry.work != Work::vectors;
    return reply_of(
        {{"default_generation_settings",
          {{"id", 0}, {"n_ctx", entry.context}, {"params", settings_of(read_completion(Fields(nothing)), entry)}}},
         {"total_slots", service.n_sequences},
         {"model_alias", entry.served.name},
         {"model_path", entry.served.name},
         {"modalities", {{"vision", false}, {"audio", hears}}},
         {"chat_template", entry.served.model.info().chat_template},
         {"bos_token", bos},
         {"capabilities", capabilities_of(entry)},
         {"meta", meta_of(entry)},
         {"build_info", "fovea " FOVEA_VERSION}});
}

Reply endpoints::tell_slots(Call&, Service& service) {
    const ModelEntry& entry = service.first_of(Work::text);
    const std::uint64_t n_running = service.metrics.models.at(entry.served.name).n_running;
    Json slots = Json::array();
    for (std::uint32_t i = 0; i < service.n_sequences; ++i)
        slots.push_back(
            {{"id", i}, {"n_ctx", entry.context}, {"speculative", false}, {"is_processing", i < n_running}});
    return reply_of(slots);
}

}  // namespace fovea::serve
