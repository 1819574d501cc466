// Vectors and classes of texts, for fovea_host.h.
#include "host/model/texts.h"
#include "bindings/c/handles.h"
#include "host/model/text_prompts.h"

using namespace fovea;
using namespace fovea::host_c;

namespace {

/// Runs an encoder over texts, the longest first, and gives each one's results to `take`.
void encode_texts(const host::Opened& opened, const std::vector<Text>& texts, const fovea_host_text_options& options,
                  const TakeResults& take) {
    std::vector<TextTokens> tokens;
    for (const Text& text : texts) {
        tokens.push_back(tokens_of(opened, text));
        if (options.n_whole_tokens) options.n_whole_tokens[tokens.size() - 1] = tokens.back().n_whole;
    }
    TextBatches batches(opened, tokens,
                        {.n_threads = options.n_threads ? options.n_threads : default_threads(), .isa = options.isa});
    batches.run(take);
}

}  // namespace

extern "C" {

int fovea_host_embed(const fovea_host_model* model, const char* const* texts, size_t n_texts,
                     const fovea_host_text_options* options, float* vectors) {
    return run([&] {
        const host::Opened& opened = need(model, "model")->opened;
        const auto given = read_struct(options);
        if (fovea_host_kind(model) != FOVEA_HOST_VECTORS || opened.config().encoder.pooling == Pooling::none)
            throw host::Error(opened.name + ": model: expected an encoder that makes a vector of a text, got another");
        if (!n_texts) return;
        need(texts, "texts"), need(vectors, "vectors");
        const std::string before =
            prompt_before(prompts_of(opened.model, opened.name),
                          given.prompt ? std::optional<std::string>(given.prompt) : std::nullopt);
        std::vector<Text> read;
        for (std::size_t i = 0; i < n_texts; ++i) read.push_back({before + need(texts[i], "text"), {}});
        encode_texts(opened, read, given, [&](std::size_t i, std::span<const float> vector) {
            std::copy(vector.begin(), vector.end(), vectors + i * vector.size());
        });
    });
}

int fovea_host_classify(const fovea_host_model* model, const char* const* texts, const char* const* pairs,
                        size_t n_texts, const fovea_host_text_options* options, float* scores) {
    return run([&] {
        const host::Opened& opened = need(model, "model")->opened;
        const auto given = read_struct(options);
        if (!model->head) static_cast<void>(head_of(opened));  // throws for a model without a head
        if (!model->head)
            throw host::Error(opened.name + ": model: expected one with labels of texts, got another head");
        if (!n_texts) return;
        need(texts, "texts"), need(scores, "scores");
        std::vector<Text> read;
        for (std::size_t i = 0; i < n_texts; ++i) {
            read.push_back({need(texts[i], "text"), {}});
            if (pairs && pairs[i]) read.back().pair = pairs[i];
        }
        encode_texts(opened, read, given, [&](std::size_t i, std::span<const float> logits) {
            const std::vector<double> of_text = scores_of(*model->head, logits);
            std::copy(of_text.begin(), of_text.end(), scores + i * of_text.size());
        });
    });
}
}
