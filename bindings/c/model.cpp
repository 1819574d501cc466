// Models, their metadata and tokens, for fovea_host.h.
#include "bindings/c/handles.h"
#include "fovea/host/runtime.h"

using namespace fovea;
using namespace fovea::host_c;

EngineModel::EngineModel(const host::OpenedFile& file) {
    const std::span<const std::byte> bytes = file.model.bytes();
    check(fovea_open_model(bytes.data(), bytes.size(), 0, memory, sizeof memory, &model), file.name);
}

fovea_host_model::fovea_host_model(host::Opened made) : opened(std::move(made)), engine(opened) {
    for (const host::OpenedAdapter& adapter : opened.adapters) adapters.emplace_back(adapter);
    if (opened.kind() != host::Kind::vectors || !opened.has_task()) return;
    try {
        head = head_of(opened);
    } catch (const host::Error&) {  // it is asked for nothing then
    }
}

const ModelChat& fovea_host_model::chat() const {
    std::call_once(chat_made_, [this] { chat_ = ModelChat::of(opened.model, opened.need_tokenizer()); });
    return *chat_;
}

extern "C" {

int fovea_host_open(const char* path, const fovea_host_open_options* options, fovea_host_model** model) {
    return run([&] {
        need(model, "model");
        const auto given = read_struct(options);
        const OpenOptions how{.verify_checksums = given.verify != 0};
        const auto progress = [&](std::uint64_t done, std::uint64_t total) {
            if (given.progress && given.progress(given.context, done, total)) throw Cancelled{};
        };
        host::Opened opened = host::open(need(path, "path"), how, progress);
        for (const fovea_host_adapter& adapter : need_array(given.adapters, given.n_adapters, "adapters"))
            opened.add_adapter(need(adapter.path, "path"), adapter.scale, how);
        if (given.n_adapters)
            static_cast<void>(host::start_workspace(opened, {.max_batch = 1}));  // are they the model's?
        *model = new fovea_host_model(std::move(opened));
    });
}

void fovea_host_close(fovea_host_model* model) { delete model; }

uint32_t fovea_host_kind(const fovea_host_model* model) {
    if (!model) return FOVEA_HOST_OTHER;
    switch (model->opened.kind()) {
        case host::Kind::text: return FOVEA_HOST_TEXT;
        case host::Kind::translation: return FOVEA_HOST_TRANSLATION;
        case host::Kind::speech: return FOVEA_HOST_SPEECH;
        case host::Kind::vectors:
            if (model->head) return model->head->task == HeadTask::classes ? FOVEA_HOST_CLASSES : FOVEA_HOST_FINDINGS;
            if (model->opened.makes_sparse()) return FOVEA_HOST_SPARSE;
            if (model->opened.has_late_interaction()) return FOVEA_HOST_LATE;
            return model->opened.has_task() ? FOVEA_HOST_OTHER : FOVEA_HOST_VECTORS;
        case host::Kind::layers: break;
    }
    return FOVEA_HOST_OTHER;
}

const struct fovea_model* fovea_host_engine_model(const fovea_host_model* model) {
    return model ? model->engine.model : nullptr;
}

int fovea_host_metadata(const fovea_host_model* model, const char* key, char** value) {
    return run([&] {
        need(value, "value");
        const std::string_view found = find_info(need(model, "model")->opened.model, need(key, "key"));
        *value = found.data() ? copy_of(found) : nullptr;
    });
}

int fovea_host_tokenize(const fovea_host_model* model, const char* text, int how, uint32_t** tokens, size_t* n_tokens) {
    return run([&] {
        need(tokens, "tokens"), need(n_tokens, "n_tokens");
        if (how & ~(FOVEA_READ_SPECIAL | FOVEA_NO_SPECIAL))
            throw host::ArgumentError("how: expected flags of fovea.h, got " + std::to_string(how));
        const std::vector<Token> ids =
            need(model, "model")
                ->opened.tokens(need(text, "text"), {.add_special = (how & FOVEA_NO_SPECIAL) == 0,
                                                     .parse_special = (how & FOVEA_READ_SPECIAL) != 0});
        *tokens = copy_of(std::span(ids));
        *n_tokens = ids.size();
    });
}

int fovea_host_detokenize(const fovea_host_model* model, const uint32_t* tokens, size_t n_tokens, int with_special,
                          char** text) {
    return run([&] {
        need(text, "text");
        const host::Opened& opened = need(model, "model")->opened;
        const std::span<const Token> ids = need_array(tokens, n_tokens, "tokens");
        const std::uint32_t most = opened.need_tokenizer().vocab_size();
        for (const Token id : ids)
            if (id >= most)
                throw host::ArgumentError("tokens: expected ids below " + std::to_string(most) + ", got " +
                                          std::to_string(id));
        *text = copy_of(opened.text(ids, {.show_special = with_special != 0}));
    });
}

size_t fovea_host_width(const fovea_host_model* model) {
    if (!model || model->opened.kind() != host::Kind::vectors) return 0;
    return model->head ? model->head->labels.size() : model->opened.vector_width();
}

const char* fovea_host_label(const fovea_host_model* model, size_t i) {
    return model && model->head && i < model->head->labels.size() ? model->head->labels[i].c_str() : nullptr;
}

uint32_t fovea_host_sample_rate(const fovea_host_model* model) {
    return model ? model->opened.config().encoder.sound.sample_rate : 0;
}
}
