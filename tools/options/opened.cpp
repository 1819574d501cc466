#include "host/model/opened.h"

#include <algorithm>
#include <cstdio>

#include "convert/open/cached.h"
#include "host/base/error.h"
#include "host/base/lfs_pointer.h"
#include "host/base/output_file.h"
#include "host/base/words.h"
#include "tools/terminal/progress.h"

extern "C" {
// tools/demo/demo.S
extern const std::byte fovea_demo_model_begin[];
extern const std::byte fovea_demo_model_end[];
}

namespace fovea {
namespace {

/// Where the Fovea file of `path` is, which may be a source: then it is converted once, into the user's cache folder.
std::string fovea_file(const std::string& path) {
    if (!is_source(path)) return path;
    ConvertOptions options;
    options.source = path;
    options.n_threads = default_threads();
    options.progress = progress_line("converting " + path);
    const auto say = [&](const std::filesystem::path& made) {
        std::fprintf(stderr, "note: %s\n",
                     one_line(path + " was converted into " + made.string() + ", which is used from now on").c_str());
    };
    return cached_file(std::move(options), say).string();
}

/// People who come from transformers or Ollama give the name that a model has on a hub.
void refuse_hub_name(const std::string& path) {
    std::error_code ignored;
    const std::size_t slash = path.find('/');
    const bool is_name =
        slash != path.npos && slash && slash + 1 < path.size() && path.find('/', slash + 1) == path.npos;
    if (is_name && path[0] != '.' && path[0] != '~' && !std::filesystem::exists(path.substr(0, slash), ignored))
        throw host::Error(path + ": no such file; a model of the Hugging Face hub is downloaded first: hf download " +
                          path);
}

void finish_opening(OpenedModel& opened, std::span<const std::byte> bytes, const OpenOptions& options) {
    require(open_model(bytes, opened.model, options), opened.name);
    const std::span<const std::byte> section = opened.model.tokenizer_bytes();
    if (!section.empty()) require(open_tokenizer(section, opened.tokenizer), opened.name);
}

}  // namespace

std::span<const std::byte> demo_model_bytes() noexcept { return {fovea_demo_model_begin, fovea_demo_model_end}; }

OpenedModel open_path(const std::string& path, const OpenOptions& options) {
    refuse_hub_name(path);
    const std::string file = fovea_file(path);
    const auto open_it = [&] {
        OpenedModel opened;
        opened.name = path;
        require(map_file(file.c_str(), opened.mapping), file);
        keep_from_writing(file);
        refuse_lfs_pointer(opened.mapping.bytes(), file);
        finish_opening(opened, opened.mapping.bytes(), options);
        return opened;
    };
    if (file == path) return open_it();
    try {
        return open_it();
    } catch (const host::Error&) {  // what was converted is made again where it is damaged
        Mapping mapping;
        Model model;
        if (map_file(file.c_str(), mapping).ok() && open_model(mapping.bytes(), model, {.verify_checksums = true}).ok())
            throw;
        std::error_code ignored;
        std::filesystem::remove(file, ignored);
        (void)fovea_file(path);
        return open_it();
    }
}

OpenedModel open_path_or_demo(const std::string& path, const OpenOptions& options) {
    if (!path.empty()) return open_path(path, options);
    OpenedModel opened;
    opened.name = "demo";
    finish_opening(opened, demo_model_bytes(), options);
    return opened;
}

void need_logits(const OpenedModel& opened) {
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

void check_same_tokens(const OpenedModel& opened, const OpenedModel& other) {
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
