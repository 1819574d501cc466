#include "tools/options/opened.h"

#include <algorithm>

#include "convert/open/open.h"
#include "host/base/error.h"
#include "host/base/words.h"
#include "tools/terminal/progress.h"

extern "C" {
// tools/demo/demo.S
extern const std::byte fovea_demo_model_begin[];
extern const std::byte fovea_demo_model_end[];
}

namespace fovea {

std::span<const std::byte> demo_model_bytes() noexcept { return {fovea_demo_model_begin, fovea_demo_model_end}; }

host::Opened open_path(const std::string& path, const OpenOptions& options) {
    return convert::open(path, options, progress_line("converting " + path));
}

host::Opened open_path_or_demo(const std::string& path, const OpenOptions& options) {
    return path.empty() ? host::open_bytes(demo_model_bytes(), "demo", options) : open_path(path, options);
}

void need_logits(const host::Opened& opened) {
    const Stack &encoder = opened.model.config().encoder, &decoder = opened.model.config().decoder;
    if (encoder.sound.is_speech())
        throw host::Error(opened.name +
                          ": model: expected one that reads text, got one that hears (see fovea transcribe)");
    const auto attends_to_memory = [](const Block& block) { return block.cross_attention; };
    if (decoder.n_layers &&
        std::any_of(decoder.blocks.begin(), decoder.blocks.begin() + decoder.n_blocks, attends_to_memory))
        throw host::Error(opened.name +
                          ": model: expected one that reads a text alone, got one that also reads an encoder's " +
                          "vectors (the library's cache_memory and steps)");
    if (encoder.n_layers || !decoder.n_layers || !decoder.vocab_size || !decoder.has_output_head)
        throw host::Error(opened.name + ": model: expected one for logits, got one for vectors");
}

void check_same_tokens(const host::Opened& opened, const host::Opened& other) {
    const std::uint32_t want = opened.model.config().decoder.vocab_size, had = other.model.config().decoder.vocab_size;
    if (want != had)
        throw host::Error(other.name + ": vocabulary: expected " + opened.name + "'s " + with_separators(want) +
                          " tokens, got " + with_separators(had));
    if (!opened.tokenizer.valid() || !other.tokenizer.valid()) return;
    for (Token id = 0; id < want; ++id)
        if (token_bytes(opened.tokenizer, id) != token_bytes(other.tokenizer, id))
            throw host::Error(other.name + ": vocabulary: expected " + opened.name + "'s, got another token " +
                              std::to_string(id));
}

}  // namespace fovea
