// GET /v1/models, /v1/models/NAME, /api/tags and /api/ps, POST /api/show: which models there are, and what they are.
#include <charconv>

#include "host/model/parameters.h"
#include "host/model/stacks.h"
#include "serve/api/endpoint.h"
#include "serve/api/fields.h"
#include "serve/api/model_facts.h"

namespace fovea::serve {
namespace {

/// The name behind "models/" in a path, "org/name" of "org%2Fname".
std::string name_in(std::string_view path) {
    constexpr std::string_view kBefore = "models/";
    const std::string_view text = path.substr(path.find(kBefore) + kBefore.size());
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
    return {{"id", entry.served.name},        {"object", "model"},
            {"created", service.started},     {"owned_by", "fovea"},
            {"root", entry.served.name},      {"parent", nullptr},
            {"max_model_len", entry.context}, {"capabilities", capabilities_of(entry)},
            {"meta", meta_of(entry)},         {"size", entry.served.model.bytes().size()},
            {"memory", entry.memory_bytes}};
}

}  // namespace

Reply endpoints::list_models(Call&, Service& service) {
    Json list = Json::array();
    for (const ModelEntry& entry : service.models()) list.push_back(description(entry, service));
    return reply_of({{"object", "list"}, {"data", std::move(list)}});
}

Reply endpoints::describe_model(Call& call, Service& service) {
    const std::string name = name_in(call.path);
    for (const ModelEntry& entry : service.models())
        if (entry.served.name == name) return reply_of(description(entry, service));
    throw RequestError(404, "model: expected one that /v1/models lists, got another", "model", "model_not_found");
}

Reply endpoints::ollama_tags(Call&, Service& service) {
    Json list = Json::array();
    for (const ModelEntry& entry : service.models()) {
        const host::Opened& served = entry.served;
        list.push_back({{"name", served.name},
                        {"model", served.name},
                        {"modified_at", utc_time(service.started)},
                        {"size", served.model.bytes().size()},
                        {"digest", digest_of(entry)},
                        {"details", details_of(entry)},
                        {"context_length", entry.context}});
    }
    return reply_of({{"models", std::move(list)}});
}

Reply endpoints::ollama_show(Call& call, Service& service) {
    const Fields fields(call.json);
    const ModelEntry& entry = service.find(fields.text("model", fields.text("name")), std::nullopt);
    const Model& model = entry.served.model;
    const ModelInfo& info = model.info();
    const std::string architecture(info.architecture);
    const Stack& stack = input_stack(model.config());
    return reply_of({{"modelfile", "FROM " + entry.served.name},
                     {"parameters", ""},
                     {"template", info.chat_template},
                     {"details", details_of(entry)},
                     {"model_info",
                      {{"general.architecture", architecture},
                       {"general.parameter_count", count_parameters(model.config()).total},
                       {architecture + ".context_length", entry.context},
                       {architecture + ".block_count", stack.n_layers},
                       {architecture + ".embedding_length", stack.d_model},
                       {architecture + ".vocab_size", stack.vocab_size}}},
                     {"capabilities", capabilities_of(entry)},
                     {"modified_at", utc_time(service.started)}});
}

}  // namespace fovea::serve
