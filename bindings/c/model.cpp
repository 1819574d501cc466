// Models, their metadata and tokens, for fovea_host.h.
#include <memory>

#include "bindings/c/handles.h"
#include "convert/open/open.h"
#include "fovea/fovea.h"
#include "host/grammar/grammar.h"

using namespace fovea;
using namespace fovea::host_c;

namespace {

/// The head of a model with labels; none of another.
std::optional<Head> class_head(const host::Opened& opened) {
    if (opened.kind() != host::Kind::vectors || find_info(opened.model, "task") != "text-classification") return {};
    return head_of(opened);
}

void finish_opening(fovea_host_model& model) {
    const std::span<const std::byte> bytes = model.opened.model.bytes();
    const fovea_status status = fovea_open_model(bytes.data(), bytes.size(), 0, model.engine_memory,
                                                 sizeof model.engine_memory, &model.engine_model);
    if (status.code != FOVEA_OK) throw host::Error(model.opened.name + ": " + status.what);
    model.head = class_head(model.opened);
}

}  // namespace

const ModelChat& fovea_host_model::chat() const {
    std::call_once(chat_made, [this] {
        static_cast<void>(opened.need_tokenizer());
        chat_ = ModelChat::of(opened.model, opened.tokenizer);
    });
    return *chat_;
}

const std::vector<std::byte>& fovea_host_model::vocabulary_index() const {
    std::call_once(index_made, [this] { index_ = grammar::index_vocabulary(opened.need_tokenizer()); });
    return index_;
}

extern "C" {

int fovea_host_open(const char* path, const fovea_host_open_options* options, fovea_host_model** model) {
    return run([&] {
        need(model, "model");
        const auto given = read_struct(options);
        Progress progress;
        if (given.progress)
            progress = [&](std::uint64_t done, std::uint64_t total) {
                if (given.progress(given.context, done, total)) throw Cancelled{};
            };
        auto made = std::make_unique<fovea_host_model>();
        made->opened = convert::open(need(path, "path"), {.verify_checksums = given.verify != 0}, progress);
        finish_opening(*made);
        *model = made.release();
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
            if (model->head) return FOVEA_HOST_CLASSES;
            return model->opened.has_task() ? FOVEA_HOST_OTHER : FOVEA_HOST_VECTORS;
        case host::Kind::layers: break;
    }
    return FOVEA_HOST_OTHER;
}

const struct fovea_model* fovea_host_engine_model(const fovea_host_model* model) {
    return model ? model->engine_model : nullptr;
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
        *tokens = copy_of(ids.data(), ids.size());
        *n_tokens = ids.size();
    });
}

int fovea_host_detokenize(const fovea_host_model* model, const uint32_t* tokens, size_t n_tokens, int with_special,
                          char** text) {
    return run([&] {
        need(text, "text");
        const host::Opened& opened = need(model, "model")->opened;
        const std::span<const Token> ids(n_tokens ? need(tokens, "tokens") : tokens, n_tokens);
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
