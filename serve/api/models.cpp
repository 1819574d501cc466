// GET /v1/models, /v1/models/NAME, /api/tags and /api/ps, POST /api/show: which models there are, and what they are.
#include <charconv>
#include <cstdio>

#include "host/model/stacks.h"
#include "serve/api/endpoint.h"
#include "serve/api/fields.h"

namespace fovea::serve {
namespace {

/// The name behind an endpoint's path, "org/name" of "org%2Fname".
std::string name_behind(std::string_view path, std::string_view endpoint) {
    const std::string_view text = path.substr(endpoint.size());
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned code = 0;
        const char* digits = text.data() + i + 1;
        const bool is_escape =
            text[i] == '%' && text.size() - i > 2 && std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2;
        out += is_escape ? static_cast<char>(code) : text[i];
        if (is_escape) i += 2;
    }
    return out;
}

Json description(const ModelEntry& entry, const Service& service) {
    return {{"id", entry.served.name},
            {"object", "model"},
            {"created", service.started},
            {"owned_by", "fovea"},
            {"size", entry.served.model.bytes().size()},
            {"memory", entry.memory_bytes}};
}

}  // namespace

Reply endpoints::list_models(Call&, Service& service) {
    Json list = Json::array();
    for (const ModelEntry& entry : service.models()) list.push_back(description(entry, service));
    return reply_of({{"object", "list"}, {"data", std::move(list)}});
}

Reply endpoints::describe_model(Call& call, Service& service) {
    const std::string name = name_behind(call.path, "/v1/models/");
    for (const ModelEntry& entry : service.models())
        if (entry.served.name == name) return reply_of(description(entry, service));
    throw RequestError(404, "model: expected one that /v1/models lists, got another", "model", "model_not_found");
}

Reply endpoints::ollama_tags(Call&, Service& service) {
    Json list = Json::array();
    for (const ModelEntry& entry : service.models()) {
        const host::Opened& served = entry.served;
        char digest[65];
        std::snprintf(digest, sizeof digest, "%064x", served.model.fingerprint());
        list.push_back({{"name", served.name},
                        {"model", served.name},
                        {"modified_at", utc_time(service.started)},
                        {"size", served.model.bytes().size()},
                        {"digest", digest},
                        {"details", {{"format", "fovea"}, {"family", served.model.info().architecture}}}});
    }
    return reply_of({{"models", std::move(list)}});
}

Reply endpoints::ollama_show(Call& call, Service& service) {
    const Fields fields(call.json);
    const ModelEntry& entry = service.find(fields.text("model", fields.text("name")), std::nullopt);
    const Model& model = entry.served.model;
    const ModelInfo& info = model.info();
    const std::string architecture(info.architecture);
    const auto mentions = [&](const char* word) { return info.chat_template.find(word) != std::string_view::npos; };
    Json capabilities = Json::array({entry.work == Work::text      ? "completion"
                                     : entry.work == Work::vectors ? "embedding"
                                                                   : "transcription"});
    if (entry.served.kind() == host::Kind::translation) capabilities.push_back("translation");
    if (mentions("tools") || !find_info(model, "chat_template_tool_use").empty()) capabilities.push_back("tools");
    if (mentions("enable_thinking") || mentions("<think>")) capabilities.push_back("thinking");
    return reply_of(
        {{"details", {{"format", "fovea"}, {"family", architecture}, {"families", Json::array({architecture})}}},
         {"template", info.chat_template},
         {"model_info",
          {{"general.architecture", architecture},
           {architecture + ".context_length", entry.context},
           {architecture + ".embedding_length", input_stack(model.config()).d_model}}},
         {"capabilities", std::move(capabilities)}});
}

}  // namespace fovea::serve
