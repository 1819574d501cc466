// GET /v1/models, /v1/models/NAME, /api/tags and /api/ps, POST /api/show: which models there are, and what they are. POST /models/load
// and /models/unload.
#include "serve/api/other_fields.h"
#include "serve/api/query.h"

namespace fovea::serve {
namespace {

/// The name behind "models/" in a path.
std::string name_in(std::string_view path) {
    constexpr std::string_view kBefore = "models/";
    return unescaped(path.substr(path.find(kBefore) + kBefore.size()));
}

/// A model's state, as llama.cpp's server words it, with the bytes that it takes of the budget.
Json status_of(const ModelSlot& slot) {
    const bool is_there = slot.state == ModelState::loaded || slot.state == ModelState::unloading;
    const char* value = is_there ? "loaded" : slot.state == ModelState::loading ? "loading" : "unloaded";
    Json status = {{"value", value}, {"bytes", slot.n_bytes}};
    if (!slot.error.empty()) status.update({{"failed", true}, {"error", slot.error}});
    return status;
}

Json description(const ModelSlot& slot, const Service& service) {
    Json json = slot.facts.openai;
    if (json.is_null())
        json = {{"id", slot.name},
                {"object", "model"},
                {"created", service.started},
                {"owned_by", "fovea"},
                {"capabilities", Json::array()}};
    if (service.offers()) json["status"] = status_of(slot);
    return json;
}

Json ollama_list(const Service& service, bool only_loaded) {
    Json list = Json::array();
    for (const ModelSlot& slot : service.slots)
        if (!slot.facts.ollama.is_null() && (slot.entry || !only_loaded)) list.push_back(slot.facts.ollama);
    return {{"models", std::move(list)}};
}

}  // namespace

Reply endpoints::list_models(Call&, Service& service) {
    Json list = Json::array();
    for (const ModelSlot& slot : service.slots) list.push_back(description(slot, service));
    return reply_of({{"object", "list"}, {"data", std::move(list)}});
}

Reply endpoints::describe_model(Call& call, Service& service) {
    const std::string name = name_in(call.path);
    for (const ModelSlot& slot : service.slots)
        if (slot.name == name) return reply_of(description(slot, service));
    throw RequestError(404, "model: expected one that /v1/models lists, got another", "model", "model_not_found");
}

Reply endpoints::load_model(Call& call, Service& service) {
    const std::string name = fields_of(call, {"model"}).text("model");
    const std::lock_guard lock(service.changes);
    const ModelSlot& slot = service.find_slot(name, std::nullopt);
    if (!slot.entry) throw AwaitedModel{.index = slot.index, .loaded = true, .waits_for_room = false};
    return reply_of({{"success", true}});
}

Reply endpoints::unload_model(Call& call, Service& service) {
    const ModelSlot& slot = service.let_go(fields_of(call, {"model"}).text("model"), std::nullopt);
    if (!slot.is_offered) refuse("model", "one of the folder that --models names", slot.name);
    return reply_of({{"success", true}});
}

Reply endpoints::ollama_tags(Call&, Service& service) { return reply_of(ollama_list(service, false)); }
Reply endpoints::ollama_ps(Call&, Service& service) { return reply_of(ollama_list(service, true)); }

Reply endpoints::ollama_show(Call& call, Service& service) {
    const Fields fields = fields_of(call, {"model", "name", "verbose"});
    const std::string name = fields.text("model", fields.text("name"));
    const std::lock_guard lock(service.changes);
    const ModelSlot& slot = service.find_slot(name, std::nullopt);
    if (slot.facts.shown.is_null())
        throw AwaitedModel{.index = slot.index, .loaded = true};  // which says what is wrong
    return reply_of(slot.facts.shown);
}

}  // namespace fovea::serve
