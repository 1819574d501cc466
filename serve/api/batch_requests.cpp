#include "serve/api/batch_requests.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>

#include "fovea/checksum.h"
#include "fovea/host/opened.h"
#include "host/base/error.h"
#include "host/base/input_file.h"
#include "host/base/nearest.h"
#include "host/base/text_file.h"
#include "serve/api/text_fields.h"

namespace fovea::serve {
namespace {

constexpr std::uint32_t kUnlimited = 0xffffffffu;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Every field is one of a line's, and of its kind's: a chat's or a completion's.
void check_fields(const Json& line, unsigned kind) {
    const auto rows = text_fields();
    const auto has = [&](const std::string& name, unsigned of) {
        return std::any_of(rows.begin(), rows.end(),
                           [&](const auto& row) { return row.of & kBatch && row.of & of && name == row.name; });
    };
    std::vector<std::string> names;
    for (const auto& row : rows)
        if (row.of & kBatch && *row.as && std::find(names.begin(), names.end(), row.name) == names.end())
            names.emplace_back(row.name);
    for (const auto& [name, value] : line.items()) {
        if (has(name, kind | kLine)) continue;
        if (has(name, ~0u)) throw host::Error(name + ": expected none, for only other requests have this field");
        std::string all;
        for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
        const std::string meant = nearest(name, names);
        throw host::Error("field: expected one of " + all + ", got " + name.substr(0, 60) +
                          (meant.empty() ? "" : "; did you mean " + meant + "?"));
    }
}

/// The fields of a request, checked, with the server's defaults.
Request read_fields(const Json& line) {
    const Fields fields(line);
    if (fields.find("tokens") && line.contains("prompt"))
        throw host::Error("tokens: expected no prompt beside it, got one");
    const bool has_prompt = fields.find("prompt") || fields.find("tokens"), has_messages = fields.find("messages");
    if (has_prompt == has_messages)
        throw host::Error(std::string("request: expected a prompt, tokens or messages, got ") +
                          (has_prompt ? "both" : "neither"));
    const unsigned kind = has_messages ? kChat : kCompletion;
    check_fields(line, kind);
    Request request;
    request.is_chat = has_messages;
    read_text_fields(fields, kind | kLine, request);
    if (!request.ignored.empty()) throw host::Error(request.ignored + ": expected members that are known, got others");
    if (has_prompt && request.prompts.size() != 1)
        throw host::Error("prompt: expected one text, got " + std::to_string(request.prompts.size()));
    if (request.random_seed) throw host::Error("seed: expected a number from 0, got -1");
    return request;
}

/// A token of the answer has room behind a prompt of ids, too, where a model without a tokenizer has no conversations.
std::uint32_t room_of_prompts(const host::Opened& served, std::uint32_t context) {
    return served.tokenizer.valid() || (served.kind() == host::Kind::translation) ? context : context - 1;
}

/// What a text of the request needs.
void check_tokenizer(const host::Opened& served, const Request& request, bool is_tokens) {
    if (served.tokenizer.valid()) return;
    const char* text = !is_tokens                  ? "prompt"
                       : !request.stop.empty()     ? "stop"
                       : request.form != Form::any ? "response_format"
                                                   : nullptr;
    if (text) throw host::Error(std::string(text) + ": expected a model with a tokenizer, got one without");
}

/// "got a parse error at line 1, column 7" is about the line that is named already.
std::string without_line(std::string message) {
    constexpr std::string_view kFirst = "at line 1, ";
    const std::size_t at = message.find(kFirst);
    if (at != message.npos) message.replace(at, kFirst.size(), "at ");
    return message;
}

}  // namespace

BatchLines::BatchLines(const std::string& path) : path_(input_name(path)) {
    constexpr std::size_t kMostBytes = std::numeric_limits<std::size_t>::max();  // of what memory holds
    std::error_code ignored;
    std::string_view text;
    if (std::filesystem::is_regular_file(path, ignored) && std::filesystem::file_size(path, ignored) > 0) {
        require(map_file(path.c_str(), mapping_), path);
        const std::span<const std::byte> bytes = mapping_.bytes();
        text = without_byte_order_mark({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    } else {
        text_ = read_text_file(path, kMostBytes);
        text = text_;
    }
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        if (line.find_first_not_of(" \t\r") != line.npos) lines_.push_back({line, number});
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (lines_.empty()) throw host::Error(path_ + ": requests: expected a JSON object a line, got none");
}

std::string BatchLines::place(std::size_t i) const { return path_ + ": line " + std::to_string(lines_[i].number); }

std::string BatchDefaults::text() const {
    const TextSampler s = sampling.settled();
    Json biases = Json::array();
    for (const LogitBias& b : sampling.biases)
        biases.push_back({b.id, std::isinf(b.bias) ? Json("-inf") : Json(b.bias)});
    Json all = {{"n_new", n_new}, {"stop", stop}};
#define FOVEA_SAMPLER_REAL(field, neutral, least, most, draws, flag, help, openai, openai_default, ollama, \
                           ollama_default, key)                                                            \
    all[key] = s.field;
#define FOVEA_SAMPLER_COUNT(field, ...) all[#field] = s.field;
#define FOVEA_SAMPLER_SEED FOVEA_SAMPLER_COUNT
// Younger than files of answers: they are there only where they are asked for.
#define FOVEA_SAMPLER_MORE_REAL(field, neutral, ...) \
    if (s.field != 0 && s.field != float{neutral}) all[#field] = s.field;
#define FOVEA_SAMPLER_MORE_COUNT(field, neutral, ...) \
    if (s.field != 0 && s.field != neutral) all[#field] = s.field;
#include "fovea/sampler_options.inc"
    all["recent"] = sampling.n_recent;
    all["biases"] = biases;
    if (!(languages.from + languages.to).empty()) all["languages"] = {languages.from, languages.to};
    all["form"] = form.form;
    all["schema"] = form.schema;
    all["grammar"] = form.grammar;
    all["compact"] = form.compact;
    return json_text(all);
}

BatchReader::BatchReader(const BatchLines& lines, const host::Opened& served, const BatchDefaults& defaults,
                         Type kv_type, std::uint32_t context)
    : lines_(lines),
      served_(served),
      defaults_(defaults),
      context_(context),
      prompts_(served, room_of_prompts(served, context), served.tokenizer.valid()),
      forms_(served.tokenizer) {
    const std::uint32_t ids[] = {served.model.fingerprint(), kNumericsVersion, static_cast<std::uint32_t>(kv_type),
                                 context};
    hash_ = served.adapters_checksum(crc32c(bytes_of(defaults.text()), crc32c(std::as_bytes(std::span(ids)))));
}

/// What the line does not say is as the options have it.
void BatchReader::settle(const Json& line, Request& request) const {
    const auto has = [&](const char* name) { return line.contains(name) && !line[name].is_null(); };
    SamplingOptions settled = defaults_.sampling;
#define FOVEA_SAMPLER_REAL(field, ...) \
    if (request.said.field) settled.sampler.field = request.sampler.field, settled.said.field = true;
#define FOVEA_SAMPLER_COUNT FOVEA_SAMPLER_REAL
#define FOVEA_SAMPLER_SEED FOVEA_SAMPLER_COUNT
#include "fovea/sampler_options.inc"
    request.sampler = settled.settled();
    if (!request.said.repeat_last_n) request.penalized.n_recent = settled.n_recent;
    if (!has("frequency_penalty") &&
        !has("presence_penalty")) {  // a line that has one means OpenAI's: of the answer alone
        request.penalized.n_counted = settled.n_recent;
        request.penalized.counts_prompt = true;
    }
    if (!has("logit_bias")) request.penalized.biases = settled.biases;
    const std::string foreign = foreign_bias(request.penalized.biases, served_.model.config().decoder.vocab_size);
    if (!foreign.empty()) throw host::Error("logit_bias: expected token " + foreign);
    if (!request.n_new) request.n_new = defaults_.n_new == kUnlimited ? std::nullopt : std::optional(defaults_.n_new);
    if (!has("stop")) request.stop = defaults_.stop;
    if (!has("from")) request.languages.from = defaults_.languages.from, request.languages.from_name = "--from";
    if (!has("to")) request.languages.to = defaults_.languages.to, request.languages.to_name = "--to";
    if (request.form == Form::any && !has("response_format") && !has("grammar") && !has("regex")) {
        request.form = defaults_.form.form;
        request.schema = defaults_.form.schema;
        request.grammar = defaults_.form.grammar;
    }
    request.compact |= defaults_.form.compact;
    // As `run -p` has it: a model may want a text behind each prompt.
    for (Prompt& prompt : request.prompts)
        if (!prompt.is_tokens) prompt.text += served_.model.info().prompt_suffix;
}

BatchRequest BatchReader::read(std::size_t i) {
    try {
        const Json line = read_body(lines_[i]);
        if (!line.is_object()) throw host::Error("request: expected a JSON object, got another value");
        check_fields(line, ~0u);
        BatchRequest read;
        if (line.contains("id")) read.id = line["id"];
        read.request = read_fields(line);
        settle(line, read.request);
        const std::vector<Prompt>& given = read.request.prompts;
        read.is_tokens = !given.empty() && given.front().is_tokens;
        check_tokenizer(served_, read.request, read.is_tokens);
        read.request.splits = true;
        read.request.parts_thought = false;  // an answer is one text
        PromptReader::Prompted prompted = prompts_.read(read.request);
        read.prompts = std::move(prompted.prompts);
        read.token_rules = prompts_.token_rules(read.request);
        read.rules = std::move(prompted.rules);
        const auto room = read.rules ? read.rules->most_new(served_.model.config().decoder.max_positions)
                                     : context_ - static_cast<std::uint32_t>(read.prompts.front().size());
        read.n_new = std::min(read.request.n_new.value_or(kUnlimited), room);
        read.hash = crc32c(bytes_of(lines_[i]), hash_);
        return read;
    } catch (const RequestError& error) {
        throw host::Error(lines_.place(i) + ": " + without_line(error.what()));
    } catch (const host::Error& refusal) {
        throw host::Error(lines_.place(i) + ": " + refusal.what());
    }
}

Constrain BatchReader::form(std::size_t i, const BatchRequest& request) {
    try {
        return form_of(form_text_of(request.request), prompts_.chat(), forms_);
    } catch (const RequestError& error) {
        throw host::Error(lines_.place(i) + ": " + error.what());
    }
}

}  // namespace fovea::serve
