#include "serve/api/text_answer.h"

#include "fovea/host/tokens.h"
#include "host/base/words.h"
#include "serve/api/forms_of.h"

namespace fovea::serve {
namespace {

constexpr std::uint64_t kMostChances = 100'000;  // some 600 bytes each until they are written

/// Refuses more probabilities than an answer may have that is written as a whole.
void check_chances(const Job& job, std::uint32_t context) {
    if (job.n_likeliest < 0) return;
    std::uint64_t n = std::uint64_t{job.n_choices()} * std::min(job.n_new, context);
    for (const std::vector<Token>& prompt : job.prompts) n += job.scores_prompt ? prompt.size() * job.n_each : 0;
    n *= 1u + static_cast<std::uint32_t>(job.n_likeliest);
    if (n > kMostChances)
        refuse("logprobs",
               "at most " + std::to_string(kMostChances) +
                   " in an answer that is not streamed (choices × max_tokens × (1 + top_logprobs))",
               std::to_string(n));
}

/// The prompts of a request as texts, one for each choice; none where the request wants no echo.
std::vector<std::string> prompts_echoed(const Request& request, const Tokenizer& tokenizer, std::uint32_t n_choices) {
    std::vector<std::string> echo;
    if (!request.echo) return echo;
    for (std::uint32_t i = 0; i < n_choices; ++i) {
        const Prompt& prompt = request.prompts[i / request.n_each];
        echo.push_back(prompt.is_tokens ? host::detokenize(tokenizer, prompt.tokens, {.goes_on = true}) : prompt.text);
    }
    return echo;
}

/// How a conversation's answer is read.
std::optional<AnswerReading> reading_of(const ModelEntry& entry, const Request& request, const std::string& begun) {
    if (!request.is_chat) return std::nullopt;
    const ModelChat* chat = entry.prompts.chat();
    return AnswerReading{.dialect = chat ? chat->dialect() : dialect_of({}),
                         .begun = begun,
                         .parts_thought = request.parts_thought,
                         .reads_calls = !request.tools.is_null(),
                         .calls_once = request.calls_once,
                         .tools = request.tools};
}

Json chance_of(const TokenChance& chance, bool with_id) {
    Json bytes = Json::array();
    for (const char c : chance.bytes) bytes.push_back(static_cast<unsigned char>(c));
    Json one = {{"token", chance.bytes}, {"logprob", chance.logprob}, {"bytes", std::move(bytes)}};
    if (with_id) one["id"] = chance.id;
    return one;
}

}  // namespace

Json chances_of(const std::vector<ChosenToken>& tokens, bool with_ids) {
    Json all = Json::array();
    for (const ChosenToken& token : tokens) {
        Json one = chance_of(token, with_ids);
        one["top_logprobs"] = Json::array();
        for (const TokenChance& other : token.likeliest) one["top_logprobs"].push_back(chance_of(other, with_ids));
        all.push_back(std::move(one));
    }
    return all;
}

TextAnswer::TextAnswer(TextAnswerOptions options)
    : Answer(options.n_choices), options_(std::move(options)), choices_(options_.n_choices) {
    for (std::size_t i = 0; i < options_.echo.size() && i < choices_.size(); ++i) {
        choices_[i].text = options_.echo[i];
        if (!options_.with_chances) choices_[i].n_chars = n_characters(options_.echo[i]);
    }
    for (Written& written : choices_)
        if (options_.reading) written.reader = AnswerReader(*options_.reading);
}

std::string TextAnswer::hashes() const {
    std::string text;
    if (options_.with_hash)
        for (const Written& written : choices_) text += (text.empty() ? "" : ",") + hex(written.last.logits_hash);
    return text;
}

std::size_t TextAnswer::n_kept() const {
    std::size_t n = options_.reading ? options_.reading->tools.n_bytes() : 0;
    for (const std::string& text : options_.echo) n += 3 * text.size();  // the choice and a stream begin with it
    return n;
}

/// Reasoning in an event's text, and text that is no call.
TextAnswer::Part TextAnswer::visible(Written& written, const Event& event) const {
    if (!options_.reading) return {event.text, {}};
    Part part;
    const auto on_text = [&](std::string_view text, bool is_thought) {
        (is_thought ? part.thought : part.text) += text;
    };
    written.reader.add(event.text, on_text);
    if (event.ended) written.reader.finish(on_text);
    return part;
}

std::string TextAnswer::take(const Event& event) {
    Written& written = choices_[event.choice];
    if (!written.first) written.first = Clock::now();
    if (event.ended) written.last = event;
    written.last.n_prompt = event.n_prompt;
    written.last.n_shared = event.n_shared;
    written.last.n_new = event.n_new;
    const Part part = visible(written, event);
    if (!part.thought.empty()) written.n_thought = event.n_new;
    std::string out;
    if (options_.stream) out = piece(written, event, part);
    written.text += part.text;
    written.thought += part.thought;
    if (!options_.stream) written.tokens.insert(written.tokens.end(), event.tokens.begin(), event.tokens.end());
    return out;
}

Json TextAnswer::usage() const {
    std::uint64_t n_prompt = 0, n_shared = 0, n_new = 0, n_thought = 0;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        n_new += choices_[i].last.n_new;
        n_thought += choices_[i].n_thought;
        if (i % options_.n_each) continue;  // a prompt counts once
        n_prompt += choices_[i].last.n_prompt;
        n_shared += choices_[i].last.n_shared;
    }
    Json json = {{"prompt_tokens", n_prompt},
                 {"completion_tokens", n_new},
                 {"total_tokens", n_prompt + n_new},
                 {"prompt_tokens_details", {{"cached_tokens", n_shared}}}};
    if (options_.reading) json["completion_tokens_details"] = {{"reasoning_tokens", n_thought}};
    return json;
}

Json TextAnswer::head(const char* object) const {
    return {{"id", options_.id},
            {"object", object},
            {"created", options_.created},
            {"model", options_.model},
            {"system_fingerprint", "fovea"}};
}

Json TextAnswer::ended_choice(Json choice, Json logprobs, const char* finish) {
    choice["logprobs"] = std::move(logprobs);
    choice["finish_reason"] = finish ? Json(finish) : Json();
    return choice;
}

std::string TextAnswer::chunk(const char* object, Json choice, Json logprobs, const Written& written,
                              const char* finish) const {
    Json json = head(object);
    json["choices"] = Json::array({ended_choice(std::move(choice), std::move(logprobs), finish)});
    if (finish && options_.with_hash) json["fovea_logits_hash"] = hex(written.last.logits_hash);
    if (options_.counts_pieces && written.last.n_prompt) json["usage"] = usage();
    return as_event(json);
}

std::string TextAnswer::openai_end(const char* object) const {
    if (failure().status) return openai_failure();
    std::string out;
    if (options_.with_usage) {
        Json json = head(object);
        json["choices"] = Json::array();
        json["usage"] = usage();
        out += as_event(json);
    }
    return out + "data: [DONE]\n\n";
}

TextJob text_job(const Call& call, ModelEntry& entry, const Request& request, std::uint32_t n_unsaid) {
    const JobPtr job = job_of(call);
    PromptReader::Prompted read = entry.prompts.read(request);
    if (read.rules)
        job->write_from(std::move(read.prompts), std::move(read.rules));
    else
        job->prompts = std::move(read.prompts);
    const std::string foreign = foreign_bias(request.penalized.biases, entry.served.model.config().decoder.vocab_size);
    if (!foreign.empty()) throw RequestError(400, "logit_bias: expected token " + foreign, "logit_bias");
    job->n_each = request.n_each;
    set_choices(request, *job);
    job->token_rules = entry.prompts.token_rules(request);
    if (!job->rules)
        entry.sampling.fill(request.said, job->sampler, job->penalized.n_recent);
    else if (!request.said.temperature)
        job->sampler.temperature = 0;
    const std::uint32_t most = job->rules ? job->rules->most_new(entry.context) : 0xffffffffu;
    job->n_new = std::min(most, request.n_new.value_or(job->rules ? most : n_unsaid));
    job->n_likeliest = request.n_likeliest;
    job->scores_prompt = request.echo && request.n_likeliest >= 0;
    if (!request.stream) check_chances(*job, entry.context);
    if (const ModelChat* chat = entry.prompts.chat(); chat && request.is_chat) {
        job->stop.insert(job->stop.end(), chat->stops().begin(), chat->stops().end());
        job->end_tokens.insert(job->end_tokens.end(), chat->end_tokens().begin(), chat->end_tokens().end());
        job->shown = chat->marks();
    }
    if (request.infills) {
        const std::vector<Token>& ends = entry.prompts.infill().end_tokens();
        job->end_tokens.insert(job->end_tokens.end(), ends.begin(), ends.end());
    }
    job->hash_logits = call.wants_hash;
    if (request.form != Form::any) {
        FormText wanted = form_text_of(request);
        wanted.mark = read.form_mark;
        job->prepare = [&made = *job, &entry, form = std::move(wanted)] {
            try {
                made.constrain = form_of(form, entry.prompts.chat(), entry.forms);
                return Failure{};
            } catch (...) {
                return current_failure();
            }
        };
    }
    job->sampler.seed = request.said.seed ? drawn_seed(request.random_seed, request.sampler.seed)
                                          : drawn_seed(entry.seed.is_random, entry.seed.seed);
    return {job, std::move(read.begun)};
}

TextAnswerOptions text_options(const Call& call, const ModelEntry& entry, const Request& request, const TextJob& made) {
    const Job& job = *made.job;
    return {.id = call.id,
            .model = entry.served.name,
            .created = unix_seconds(),
            .n_choices = job.n_choices(),
            .n_each = job.n_each,
            .n_prompt = job.prompts.empty() ? 0 : static_cast<std::uint32_t>(job.prompts[0].size()),
            .stream = request.stream,
            .with_usage = request.with_usage,
            .counts_pieces = request.counts_pieces,
            .with_hash = job.hash_logits,
            .with_chances = request.n_likeliest >= 0,
            .reading = reading_of(entry, request, made.begun),
            .echo = prompts_echoed(request, entry.served.tokenizer, job.n_choices()),
            .arrived = call.arrived};
}

}  // namespace fovea::serve
