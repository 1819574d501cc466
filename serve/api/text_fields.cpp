// The fields of requests for texts: the readers of most rows of text_fields.inc, and what becomes of fields that it has not.
#include "serve/api/text_fields.h"

#include <algorithm>
#include <charconv>

#include "host/base/nearest.h"
#include "serve/api/field_readers.h"

namespace fovea::serve {
namespace {

// ---- how tokens are chosen -------------------------------------------------------------------------------------------

/// 0 and -1 mean `neutral`.
std::uint32_t count_of(const Fields& fields, const char* name, std::uint32_t neutral, std::int64_t most) {
    const std::int64_t count = fields.whole(name, 0, -1, std::min<std::int64_t>(most, 1 << 30));
    return count > 0 ? static_cast<std::uint32_t>(count) : neutral;
}

void read_seed(const Fields& fields, const char* name, const Json&, Request& request) {
    const std::int64_t seed = fields.whole(name, 0, INT64_MIN, INT64_MAX);
    request.random_seed = seed == -1;
    request.sampler.seed = static_cast<std::uint64_t>(seed);
}

/// {"15043": 2.5}: what each token's logit gets.
void read_biases(const Fields&, const char* name, const Json& said, Request& request) {
    if (said.size() > kMostBiases)
        refuse(name, "at most " + std::to_string(kMostBiases) + " tokens", std::to_string(said.size()));
    Json given = said;
    if (said.is_array()) {  // llama.cpp's pairs
        given = Json::object();
        for (const Json& pair : said) {
            if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned())
                refuse(name, "pairs of a token id and a number", "another value");
            given[std::to_string(pair[0].get<std::uint64_t>())] = pair[1];
        }
    }
    const Fields fields(given, name);
    for (const auto& [key, value] : given.items()) {
        Token id = 0;
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
        if (error != std::errc() || end != key.data() + key.size()) refuse(name, "token ids", key.substr(0, 40));
        request.penalized.biases.push_back({id, static_cast<float>(fields.real(key.c_str(), 0, -100, 100))});
    }
}

/// Tokens that penalties look back.
std::uint32_t recent_of(const Fields& fields, const char* name, Request& request) {
    const std::int64_t n_recent = fields.whole(name, 0, -1, 1 << 30);
    request.said.repeat_last_n = true;
    return n_recent < 0 ? 0xffffffffu : static_cast<std::uint32_t>(n_recent);
}

std::vector<Token> ids_of(const Fields& fields, const char* name, const Json& list,
                          std::size_t most = ~std::size_t{0}) {
    if (!list.is_array()) fields.refuse(name, "an array of token ids", list);
    if (list.size() > most) fields.refuse(name, "at most " + std::to_string(most) + " token ids", list);
    return read_token_ids(list, name);
}

/// A text or an array of them. Throws where there are more, or of more bytes together.
void read_texts(const Fields& fields, const char* name, const Json& given, std::size_t most, std::size_t most_bytes,
                std::vector<std::string>& texts) {
    std::size_t n_bytes = 0;
    for (const Json& text : given.is_array() ? given : Json::array({given})) {
        if (!text.is_string()) fields.refuse(name, "a string or an array of strings", text);
        if (text.get_ref<const std::string&>().empty()) continue;
        texts.push_back(text.get<std::string>());
        n_bytes += texts.back().size();
    }
    if (texts.size() > most || n_bytes > most_bytes)
        refuse(fields.path(name),
               "at most " + std::to_string(most) + " strings of " + std::to_string(most_bytes) + " bytes together",
               "more");
}

void read_bad_words(const Fields& fields, const char* name, const Json& words, Request& request) {
    read_texts(fields, name, words, kMostBadWords, kMostBadBytes, request.bad_words);
}

// ---- where an answer ends --------------------------------------------------------------------------------------------

void read_length(const Fields& fields, const char* name, const Json& value, Request& request) {
    const std::string_view field = name;
    if (request.is_chat && field != "max_completion_tokens" && fields.find("max_completion_tokens")) return;
    if (field == "n_predict" && fields.find("max_tokens")) return;
    request.n_new = value == -1 ? kMostNew  // as llama.cpp's server has it
                                : static_cast<std::uint32_t>(fields.whole(name, 0, request.is_chat ? 1 : 0, kMostNew));
}

void read_num_predict(const Fields& fields, const char* name, const Json&, Request& request) {
    const std::int64_t n_new = fields.whole(name, -1, -2, kMostNew);
    if (n_new >= 0) request.n_new = static_cast<std::uint32_t>(n_new);
}

void read_stops(const Fields& fields, const char* name, const Json& stop, Request& request) {
    read_texts(fields, name, stop, kMostStops, kMostStopBytes, request.stop);
}

// ---- conversations and their templates -------------------------------------------------------------------------------

/// A prompt of ids, as --tokens has them.
void read_tokens(const Fields&, const char* name, const Json& value, Request& request) {
    const auto is_id = [](const Json& id) { return id.is_number_unsigned(); };
    if (!value.is_array() || value.empty() || !std::all_of(value.begin(), value.end(), is_id))
        refuse(name, "a list of token ids", "another value");
    request.prompts.push_back({{}, read_token_ids(value, name), true});
}

/// A last message that says it is the beginning of the answer, as Mistral's and Moonshot's clients have it, is.
void read_chat_messages(const Fields&, const char* name, const Json& value, Request& request) {
    request.messages = read_messages(value);
    const Fields last(value.back(), at(name, value.size() - 1));
    request.continues_answer = last.flag("prefix", false) || last.flag("partial", false);
}

/// Without a message, or with an empty prompt, the model is to be loaded.
void read_ollama_messages(const Fields&, const char*, const Json& value, Request& request) {
    if (value.is_array() && value.empty()) return;
    request.only_loads = false;
    request.messages = read_messages(value);
}

void read_ollama_prompt(const Fields& fields, const char* name, const Json&, Request& request) {
    const std::string prompt = fields.text(name);
    request.only_loads = prompt.empty();
    if (request.is_chat)
        request.messages.push_back({{"role", "user"}, {"content", prompt}});
    else
        request.prompts.push_back({prompt, {}, false});
}

/// The answer is between the prompt and this.
void read_suffix(const Fields& fields, const char* name, const Json&, Request& request) {
    request.suffix = fields.text(name);
    if (request.suffix.empty()) return;
    request.infills = true;
    for (const Json& message : request.messages)  // of Ollama's: no conversation is filled in
        if (message["role"] == "user") request.prompts.push_back({message["content"].get<std::string>(), {}, false});
    request.is_chat = false;
}

void read_system(const Fields& fields, const char* name, const Json&, Request& request) {
    if (const std::string text = fields.text(name); !text.empty())
        request.messages.push_back({{"role", "system"}, {"content", text}});
}

/// How much the model is to reason.
void read_effort(const Fields& fields, const char* name, const Json&, Request& request) {
    if (fields.text(name).empty()) return;
    const std::string effort = fields.one_of(name, {"none", "minimal", "low", "medium", "high", "xhigh"});
    request.template_extra.emplace("reasoning_effort", effort);
    if (effort == "none") request.template_extra.emplace("enable_thinking", false);
}

void read_reasoning(const Fields&, const char* name, const Json& reasoning, Request& request) {
    const Fields members(reasoning, name);
    if (const Json* effort = members.find("effort")) read_effort(members, "effort", *effort, request);
}

/// Whether the model is to reason before it answers, and how much; what it thought is a field of its own.
void read_think(const Fields& fields, const char* name, const Json& think, Request& request) {
    if (!think.is_boolean() && think != "low" && think != "medium" && think != "high")
        fields.refuse(name, "true, false, \"low\", \"medium\" or \"high\"", think);
    request.template_extra[think.is_boolean() ? "enable_thinking" : "reasoning_effort"] = think;
}

/// {"type": "enabled"} or "disabled", as Anthropic's clients and others have it.
void read_thinking(const Fields&, const char* name, const Json& thinking, Request& request) {
    const std::string type = Fields(thinking, name).one_of("type", {"adaptive", "enabled", "disabled"});
    if (type != "adaptive") request.template_extra["enable_thinking"] = type == "enabled";
}

void read_output_config(const Fields& fields, const char* name, const Json& config, Request& request) {
    const Fields members(config, name);
    if (const Json* format = members.find("format"))
        read_output_format(fields, "output_config.format", *format, request);
    if (members.find("effort"))
        request.template_extra.emplace("reasoning_effort",
                                       members.one_of("effort", {"low", "medium", "high", "xhigh", "max"}));
}

/// Edits that change nothing of what is read: what was thought stays where it is.
void read_context_management(const Fields&, const char* name, const Json& management, Request&) {
    const Fields members(management, name);
    const Json* edits = members.find("edits");
    if (edits && !edits->is_array()) members.refuse("edits", "an array", *edits);
    for (std::size_t i = 0; edits && i < edits->size(); ++i) {
        const Fields edit((*edits)[i], at(members.path("edits"), i));
        (void)edit.one_of("type", {"clear_thinking_20251015"});
        (void)edit.need("keep", "all");
        edit.only("keep", "all");
    }
}

void read_documents(const Fields& fields, const char* name, const Json& documents, Request& request) {
    if (!documents.is_array()) fields.refuse(name, "an array of objects", documents);
    for (std::size_t i = 0; i < documents.size(); ++i) (void)Fields(documents[i], at(name, i));
    if (!documents.empty()) request.documents = documents;
}

void read_continuation(const Fields& fields, const char* name, const Json& value, Request& request) {
    if (!fields.flag(name, false)) return;
    if (fields.flag("add_generation_prompt", false)) fields.refuse(name, "no add_generation_prompt beside it", value);
    request.continues_answer = true;
}

void read_truncation(const Fields& fields, const char* name, const Json&, Request& request) {
    const std::int64_t most = fields.whole(name, 0, -1, kMostNew);
    if (most == 0) refuse(fields.path(name), "-1 or a number from 1", "0");
    request.most_prompt = most < 0 ? kMostNew : static_cast<std::uint32_t>(most);
}

// ---- what comes beside a text ----------------------------------------------------------------------------------------

void read_included(const Fields& fields, const char* name, const Json& include, Request&) {
    if (include.is_array() &&
        std::find(include.begin(), include.end(), "message.output_text.logprobs") != include.end())
        fields.refuse(name, "no logprobs", "message.output_text.logprobs");
}

void read_stream_options(const Fields&, const char* name, const Json& options, Request& request) {
    const Fields members(options, name);
    request.with_usage = members.flag("include_usage", false);
    request.counts_pieces = request.with_usage && members.flag("continuous_usage_stats", false);
}

void check_id(const Fields&, const char* name, const Json& id, Request&) {
    if (!id.is_string() && !id.is_number()) refuse(name, "a text or a number", "another value");
}

using Row = FieldRow<Request>;
using Only = Row::Only;
using Ignored = Row::Ignored;
// A field's place in the request; and what reads a field that has none.
#define IN(place) \
    [](Request & request) -> auto& { return request.place; }
#define AS(...)                                                                                                      \
    [](const Fields& fields [[maybe_unused]], const char* name [[maybe_unused]], const Json& value [[maybe_unused]], \
       Request& request [[maybe_unused]]) { __VA_ARGS__; }

const Row kRows[] = {
#include "serve/api/text_fields.inc"
};
#undef IN
#undef AS

/// A field's name as a header may have it.
std::string printable(const std::string& name) {
    constexpr std::size_t kLongest = 64;
    std::string text = name.substr(0, kLongest);
    for (char& c : text)
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.') c = '?';
    return text.empty() ? "?" : text;
}

/// A field that this object has no row for.
void read_unknown(const Fields& fields, const std::string& name, unsigned of, Request& request) {
    constexpr unsigned kAnywhere = kAll | kOllamaOptions;
    std::vector<std::string> obeyed;
    bool is_known = false;
    for (const Row& row : kRows) {
        const bool is_ignored = std::holds_alternative<Ignored>(row.to);
        if (name == row.name && is_ignored) return;
        is_known |= name == row.name && row.of & kAnywhere;
        if (row.of & of && !is_ignored && !std::holds_alternative<Only>(row.to)) obeyed.emplace_back(row.name);
    }
    if (is_known) {
        const std::string path = fields.path(printable(name).c_str());
        throw RequestError(400, path + ": expected none, for only other requests have this field", path,
                           "unsupported_parameter");
    }
    add_unknown(fields, name, obeyed, request.ignored);
}

bool has_row(const std::string& name, unsigned of) {
    return std::any_of(std::begin(kRows), std::end(kRows),
                       [&](const Row& row) { return row.of & of && name == row.name; });
}

}  // namespace

std::span<const Row> text_fields() { return kRows; }

void add_unknown(const Fields& fields, const std::string& name, const std::vector<std::string>& obeyed,
                 std::string& ignored) {
    const std::string path = fields.path(printable(name).c_str());
    if (const std::string meant = nearest(name, obeyed); !meant.empty())
        throw RequestError(400, path + ": expected the name of a field, got one that looks like " + meant, path,
                           "unsupported_parameter");
    if (std::ranges::count(ignored, ',') + 1 >= kMostUnknown)
        refuse(fields.path(""), "at most " + std::to_string(kMostUnknown) + " fields that are not known", "more");
    ignored += (ignored.empty() ? "" : ", ") + path;
}

void read_text_fields(const Fields& fields, unsigned of, Request& request) {
    read_rows<Request>(fields, kRows, of, request);
    for (const auto& [name, value] : fields.object().items())
        if (!(of & kLine) && !value.is_null() && !has_row(name, of)) read_unknown(fields, name, of, request);
    check_members(fields.object(), of, request.ignored);
    if (!(of & (kSampled | kOllamaOptions))) return;
#define FOVEA_SAMPLER_REAL(field, neutral, least, most, draws, flag, help, openai, openai_default, ollama, ...) \
    request.said.field |= fields.find(of & kOllamaOptions ? ollama : openai) != nullptr;
#define FOVEA_SAMPLER_COUNT(field, ...) request.said.field |= fields.find(#field) != nullptr;
#define FOVEA_SAMPLER_SEED FOVEA_SAMPLER_COUNT
#include "fovea/sampler_options.inc"
}

}  // namespace fovea::serve
