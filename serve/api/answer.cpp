#include "serve/api/answer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace fovea::serve {
namespace {

std::string as_event(const Json& json) { return "data: " + written(json) + "\n\n"; }

std::string hex16(std::uint64_t number) {
    char text[20];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
    return text;
}

}  // namespace

Answer::Answer(AnswerOptions options) : options_(std::move(options)), choices_(options_.n_choices) {
    for (std::size_t i = 0; i < options_.echo.size() && i < choices_.size(); ++i) {
        choices_[i].text = options_.echo[i];
        choices_[i].n_chars = n_characters(options_.echo[i]);
    }
    for (Choice& choice : choices_) {
        choice.thinking = ThinkingFilter(options_.in_thought);
        choice.heard.translated = options_.api == Api::translation;
        choice.heard.times = options_.times;
        if (options_.must_call) (void)choice.calls.push(kCallMark);
    }
    if (options_.api == Api::response)
        items_.emplace(options_.id, options_.model, options_.created, std::move(options_.echoed));
}

Json Answer::head(const char* object) const {
    return {{"id", options_.id},
            {"object", object},
            {"created", options_.created},
            {"model", options_.model},
            {"system_fingerprint", "fovea"}};
}

std::string Answer::opening() {
    if (items_) return items_->opening();
    std::string out;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        if (options_.api == Api::chat) {
            Json json = head("chat.completion.chunk");
            json["choices"] = {{{"index", i},
                                {"delta", {{"role", "assistant"}, {"content", ""}}},
                                {"logprobs", nullptr},
                                {"finish_reason", nullptr}}};
            out += as_event(json);
        } else if (options_.api == Api::completion && !choices_[i].text.empty()) {
            out += openai_piece(choices_[i], i, {}, {choices_[i].text, {}});
        }
    }
    return out;
}

/// Of an event's text what is reasoning, and what is no call. Where all of it must be one, the reader was given its mark.
Answer::Part Answer::visible(Choice& choice, const Event& event) const {
    Part part;
    if (options_.parts_thought) {
        const auto on_text = [&](std::string_view text, bool is_thought) {
            (is_thought ? part.thought : part.text) += text;
        };
        choice.thinking.add(event.text, on_text);
        if (event.ended) choice.thinking.finish(on_text);
    } else {
        part.text = event.text;
    }
    if (!options_.may_call) return part;
    part.text = choice.calls.push(part.text);
    if (!event.ended) return part;
    std::string rest = choice.calls.finish();
    if (options_.must_call && rest.starts_with(kCallMark)) rest.erase(0, kCallMark.size());
    part.text += rest;
    return part;
}

std::string Answer::add(const std::vector<Event>& events) {
    std::string out;
    for (const Event& event : events) {
        if (event.failure.status) {
            if (!failure_.status) failure_ = event.failure;
            n_ended_ = choices_.size();
            continue;
        }
        Choice& choice = choices_[event.choice];
        if (!choice.first) choice.first = Clock::now();
        if (event.ended) {
            choice.finish = event.finish;
            choice.n_prompt = event.n_prompt;
            choice.n_shared = event.n_shared;
            choice.n_new = event.n_new;
            choice.hash = event.logits_hash;
            choice.heard.language = event.language;
            choice.heard.seconds = event.seconds;
            choice.vector = shortened(event.vector, options_.n_dimensions);
            if (options_.unit_length) choice.vector = with_length_1(std::move(choice.vector));
            ++n_ended_;
        }
        const Part part = visible(choice, event);
        if (items_)
            out += response_piece(choice, event, part);
        else if (options_.stream)
            out += is_ollama(options_.api)                 ? ollama_piece(choice, event, part)
                   : work_of(options_.api) == Work::speech ? heard_piece(choice, event)
                                                           : openai_piece(choice, event.choice, event, part);
        choice.heard.segments.insert(choice.heard.segments.end(), event.segments.begin(), event.segments.end());
        choice.text += part.text;
        choice.thought += part.thought;
        if (!options_.stream) choice.tokens.insert(choice.tokens.end(), event.tokens.begin(), event.tokens.end());
    }
    return out;
}

std::string Answer::openai_piece(Choice& choice, std::size_t index, const Event& event, const Part& part) {
    std::string out;
    const bool is_chat = options_.api == Api::chat;
    const std::vector<ToolCall>& calls = choice.calls.calls();
    const auto chunk = [&](Json content, const char* finish) {
        Json json = head(is_chat ? "chat.completion.chunk" : "text_completion");
        Json one = {{"index", index}};
        if (is_chat)
            one["delta"] = std::move(content);
        else
            one["text"] = std::move(content);
        one["logprobs"] = nullptr;
        if (options_.with_chances && !event.tokens.empty() && !finish)
            one["logprobs"] = is_chat ? chat_logprobs(event.tokens) : completion_logprobs(event.tokens, choice.n_chars);
        one["finish_reason"] = finish ? Json(finish) : Json();
        json["choices"] = Json::array({std::move(one)});
        if (finish && options_.with_hash) json["fovea_logits_hash"] = hex16(choice.hash);
        if (options_.with_usage) json["usage"] = nullptr;
        out += as_event(json);
    };
    if (!part.thought.empty() || !part.text.empty() || !event.tokens.empty()) {
        Json delta = Json::object();
        if (!part.thought.empty()) delta["reasoning_content"] = part.thought;
        if (!part.text.empty() || part.thought.empty()) delta["content"] = part.text;
        chunk(is_chat ? std::move(delta) : Json(part.text), nullptr);
    }
    for (const ChosenToken& token : event.tokens) choice.n_chars += n_characters(token.bytes);
    if (calls.size() > choice.n_calls_shown) {
        const Json list = openai_calls(options_.id, index, calls, choice.n_calls_shown, true);
        choice.n_calls_shown = calls.size();
        chunk({{"tool_calls", list}}, nullptr);
    }
    if (event.ended)
        chunk(is_chat ? Json::object() : Json(""), calls.empty() ? finish_word(event.finish) : "tool_calls");
    return out;
}

/// The items are made of the pieces of whole answers, too.
std::string Answer::response_piece(Choice& choice, const Event& event, const Part& part) {
    const std::vector<ToolCall>& calls = choice.calls.calls();
    std::string out = items_->think(part.thought);
    std::string_view rest = part.text;
    std::size_t at = choice.text.size();
    while (choice.n_calls_shown < calls.size()) {  // each where it stands in the text, however that comes
        const ToolCall& call = calls[choice.n_calls_shown++];
        const std::size_t n = std::min(call.at - std::min(call.at, at), rest.size());
        out += items_->say(rest.substr(0, n));
        out += items_->call(call);
        rest.remove_prefix(n);
        at += n;
    }
    out += items_->say(rest);
    if (!event.ended) return out;
    Json used = usage();
    return out + items_->finish(event.finish, {{"input_tokens", used["prompt_tokens"]},
                                               {"input_tokens_details", used["prompt_tokens_details"]},
                                               {"output_tokens", used["completion_tokens"]},
                                               {"output_tokens_details", {{"reasoning_tokens", 0}}},
                                               {"total_tokens", used["total_tokens"]}});
}

std::string Answer::heard_piece(const Choice& choice, const Event& event) {
    std::string out;
    bool is_first = choice.heard.segments.empty();
    for (const SpeechSegment& segment : event.segments) {
        out += as_event(transcript_delta(segment, is_first));
        is_first = false;
    }
    return event.ended ? out + as_event(transcript_done(choice.heard)) : out;
}

std::string Answer::closing() {
    if (items_) return failure_.status ? items_->fail(failure_) : "";
    if (is_ollama(options_.api))
        return failure_.status ? error_body(true, failure_.status, failure_.message) + '\n' : "";
    if (failure_.status) return "data: " + error_body(false, failure_.status, failure_.message) + "\n\n";
    if (work_of(options_.api) == Work::speech) return {};  // its last event says that it is
    std::string out;
    if (options_.with_usage) {
        Json json = head(options_.api == Api::chat ? "chat.completion.chunk" : "text_completion");
        json["choices"] = Json::array();
        json["usage"] = usage();
        out += as_event(json);
    }
    return out + "data: [DONE]\n\n";
}

Json Answer::usage() const {
    std::uint64_t n_prompt = 0, n_shared = 0, n_new = 0;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        n_new += choices_[i].n_new;
        if (i % options_.n_each) continue;  // a prompt counts once
        n_prompt += choices_[i].n_prompt;
        n_shared += choices_[i].n_shared;
    }
    Json json = {{"prompt_tokens", n_prompt}};
    if (!makes_vectors(options_.api)) json["completion_tokens"] = n_new;
    json["total_tokens"] = n_prompt + n_new;
    if (!makes_vectors(options_.api)) json["prompt_tokens_details"] = {{"cached_tokens", n_shared}};
    return json;
}

Json Answer::chat_choice(const Choice& choice, std::size_t index) const {
    const std::vector<ToolCall>& calls = choice.calls.calls();
    Json message = {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
    if (!choice.thought.empty()) message["reasoning_content"] = choice.thought;
    if (!calls.empty()) {
        if (choice.text.empty()) message["content"] = nullptr;
        message["tool_calls"] = openai_calls(options_.id, index, calls, 0, false);
    }
    return {{"index", index},
            {"message", std::move(message)},
            {"logprobs", options_.with_chances ? chat_logprobs(choice.tokens) : Json()},
            {"finish_reason", calls.empty() ? finish_word(choice.finish) : "tool_calls"}};
}

Json Answer::ranked() const {
    const auto score_of = [&](const Choice& choice) {
        const double logit = choice.vector.at(0);
        return options_.through_sigmoid ? 1.0 / (1.0 + std::exp(-logit)) : logit;
    };
    std::vector<std::size_t> order(choices_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return choices_[a].vector.at(0) > choices_[b].vector.at(0); });
    if (options_.n_best && options_.n_best < order.size()) order.resize(options_.n_best);
    Json results = Json::array();
    for (const std::size_t i : order) {
        results.push_back({{"index", i}, {"relevance_score", score_of(choices_[i])}});
        if (!options_.documents.empty()) results.back()["document"] = {{"text", options_.documents[i]}};
    }
    return {{"id", options_.id},
            {"object", "list"},
            {"model", options_.model},
            {"results", std::move(results)},
            {"usage", usage()}};
}

Json Answer::vectors() const {
    if (options_.api == Api::rerank) return ranked();
    if (options_.api == Api::ollama_embedding) return {{"embedding", choices_.front().vector}};
    Json list = Json::array();
    if (options_.api == Api::ollama_embed) {
        for (const Choice& choice : choices_) list.push_back(choice.vector);
        return {{"model", options_.model},
                {"embeddings", std::move(list)},
                {"prompt_eval_count", usage()["prompt_tokens"]}};
    }
    for (std::size_t i = 0; i < choices_.size(); ++i)
        list.push_back(
            {{"object", "embedding"},
             {"index", i},
             {"embedding", options_.in_base64 ? Json(base64(choices_[i].vector)) : Json(choices_[i].vector)}});
    return {{"object", "list"}, {"data", std::move(list)}, {"model", options_.model}, {"usage", usage()}};
}

/// What was thought, what is said and, of a chat, calls from the given one on.
void Answer::add_ollama_part(Json& json, const Choice& choice, const Part& part, std::size_t from_call) const {
    if (options_.api != Api::ollama_chat) {
        json["response"] = part.text;
        if (!part.thought.empty()) json["thinking"] = part.thought;
        return;
    }
    Json message = {{"role", "assistant"}, {"content", part.text}};
    if (!part.thought.empty()) message["thinking"] = part.thought;
    for (std::size_t i = from_call; i < choice.calls.calls().size(); ++i) {
        const ToolCall& call = choice.calls.calls()[i];
        message["tool_calls"].push_back({{"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    }
    json["message"] = std::move(message);
}

void Answer::add_ollama_figures(Json& json, const Choice& choice) const {
    const auto nanoseconds = [](Clock::duration time) {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    };
    const Clock::time_point now = Clock::now(), first = choice.first.value_or(now);
    json["done"] = true;
    json["done_reason"] = finish_word(choice.finish);
    json["total_duration"] = nanoseconds(now - options_.arrived);
    json["load_duration"] = 0;
    json["prompt_eval_count"] = choice.n_prompt;
    json["prompt_eval_duration"] = nanoseconds(first - options_.arrived);
    json["eval_count"] = choice.n_new;
    json["eval_duration"] = nanoseconds(now - first);
}

std::string Answer::ollama_piece(Choice& choice, const Event& event, const Part& part) const {
    const std::size_t n_calls = choice.calls.calls().size();
    if (!event.ended && part.text.empty() && part.thought.empty() && n_calls == choice.n_calls_shown) return {};
    Json json = {{"model", options_.model}, {"created_at", utc_time(options_.created)}}, end = json;
    add_ollama_part(json, choice, part, choice.n_calls_shown);
    json["done"] = false;
    const bool is_empty = part.text.empty() && part.thought.empty() && n_calls == choice.n_calls_shown;
    choice.n_calls_shown = n_calls;
    std::string lines = is_empty ? "" : written(json) + '\n';
    if (!event.ended) return lines;
    add_ollama_part(end, choice, {}, n_calls);  // the last object has no text: clients do not look for any
    add_ollama_figures(end, choice);
    return lines + written(end) + '\n';
}

const char* Answer::content_type() const {
    return work_of(options_.api) == Work::speech ? transcript_type(options_.transcript) : "application/json";
}

std::string Answer::whole() const {
    if (items_) return written(items_->whole());
    if (work_of(options_.api) == Work::speech) return transcript_body(choices_.front().heard, options_.transcript);
    if (makes_vectors(options_.api)) return written(vectors());
    if (is_ollama(options_.api)) {
        Json json = {{"model", options_.model}, {"created_at", utc_time(options_.created)}};
        const Choice& choice = choices_.front();
        add_ollama_part(json, choice, {choice.text, choice.thought}, 0);
        add_ollama_figures(json, choice);
        return written(json);
    }
    const bool is_chat = options_.api == Api::chat;
    Json json = head(is_chat ? "chat.completion" : "text_completion"), list = Json::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        const Choice& choice = choices_[i];
        if (is_chat)
            list.push_back(chat_choice(choice, i));
        else
            list.push_back(
                {{"index", i},
                 {"text", choice.text},
                 {"logprobs", options_.with_chances ? completion_logprobs(choice.tokens, choice.n_chars) : Json()},
                 {"finish_reason", finish_word(choice.finish)}});
    }
    json["choices"] = std::move(list);
    json["usage"] = usage();
    return written(json);
}

std::string Answer::hashes() const {
    std::string text;
    for (const Choice& choice : choices_) text += (text.empty() ? "" : ",") + hex16(choice.hash);
    return text;
}

}  // namespace fovea::serve
