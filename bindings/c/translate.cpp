// Texts written from others, for fovea_host.h.
#include <memory>

#include "bindings/c/handles.h"
#include "fovea/host/translator.h"

using namespace fovea;
using namespace fovea::host_c;

struct fovea_host_translator {
    GenerateOptions how;
    Translator translator;
};

extern "C" {

int fovea_host_make_translator(const fovea_host_model* model, const fovea_host_translate_options* options,
                               fovea_host_translator** translator) {
    return run([&] {
        need(translator, "translator");
        const host::Opened& opened = need(model, "model")->opened;
        static_cast<void>(opened.need_tokenizer());
        const auto given = read_struct(options);
        GenerateOptions how;
        if (given.n_new) how.n_new = given.n_new;
        const std::uint32_t n_threads = given.n_threads ? given.n_threads : default_threads();
        *translator = new fovea_host_translator{
            how, Translator(opened, {.limits = {.n_threads = n_threads, .isa = given.isa}, .n_beams = given.n_beams})};
    });
}

void fovea_host_free_translator(fovea_host_translator* translator) { delete translator; }

int fovea_host_translate(fovea_host_translator* translator, const char* text, const char* from, const char* to,
                         char** translation) {
    return run([&] {
        need(translator, "translator"), need(translation, "translation");
        const Languages languages{std::string(or_empty(from)), std::string(or_empty(to)), "from", "to"};
        *translation = copy_of(translator->translator.translate(need(text, "text"), languages, translator->how).text);
    });
}
}
