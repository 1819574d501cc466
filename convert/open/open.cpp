#include "convert/open/open.h"

#include <unistd.h>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "convert/open/cached.h"
#include "convert/open/hub_cache.h"
#include "convert/sources/hf_config.h"
#include "convert/tokenizers/tokenizer_file.h"
#include "convert/tokenizers/vocab_json.h"
#include "convert/weights/random_model.h"
#include "host/base/error.h"
#include "host/base/output_file.h"
#include "host/base/words.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

/// Where the Fovea file of `path` is, which may be a source: then it is converted once, into the user's cache folder.
std::string fovea_file(const std::string& path, const Progress& progress) {
    ConvertOptions options;
    options.source = find_source(path);
    if (!is_source(options.source)) return path;
    options.n_threads = default_threads();
    options.progress = progress;
    const auto say = [&](const fs::path& made) {
        std::fprintf(stderr, "note: %s\n",
                     one_line(path + " was converted into " + made.string() + ", which is used from now on").c_str());
    };
    return cached_file(std::move(options), say).string();
}

/// People who come from transformers or Ollama give the name that a model has on a hub.
void refuse_hub_name(const std::string& path) {
    if (is_hub_name(path) && find_source(path) == path)
        throw host::Error(path + ": no such file; a model of the Hugging Face hub is downloaded first: hf download " +
                          path);
}

/// The tokenizer's file in a folder; any other path as it is.
std::string tokenizer_file(const std::string& path) {
    std::error_code error;
    fs::path folder = path;
    if (!fs::is_directory(folder, error)) return path;
    if (fs::exists(folder / "modules.json", error)) folder /= read_sentence_modules(folder / "modules.json").encoder;
    for (const char* name : {"tokenizer.json", "tokenizer.model", "vocab.txt", "tokenizer.bin"})
        if (fs::exists(folder / name, error)) return (folder / name).string();
    if (reads_vocab_json(folder)) return (folder / "vocab.json").string();
    throw host::Error(path +
                      ": expected a tokenizer.json, tokenizer.model, vocab.txt, tokenizer.bin or a vocab.json with its "
                      "merges.txt in it, got none");
}

}  // namespace

host::Opened host::open(const std::string& path, const OpenOptions& options, const Progress& progress) {
    refuse_hub_name(path);
    const std::string file = fovea_file(path, progress);
    const auto open_it = [&] {
        Opened opened = open_file(file, options, path);
        keep_from_writing(file);
        return opened;
    };
    if (file == path) return open_it();
    try {
        return open_it();
    } catch (const Error&) {  // what was converted is made again where it is damaged
        Mapping mapping;
        Model model;
        if (map_file(file.c_str(), mapping).ok() && open_model(mapping.bytes(), model, {.verify_checksums = true}).ok())
            throw;
        std::error_code ignored;
        fs::remove(file, ignored);
        (void)fovea_file(path, progress);
        return open_it();
    }
}

convert::OpenedTokenizer convert::open_tokenizer(const std::string& given) {
    const std::string path = tokenizer_file(find_source(given).string());
    constexpr std::uint32_t kMostTokens = 1u << 24;  // as many as a model may have
    OpenedTokenizer result;
    host::Opened& opened = result.opened;
    opened.name = path;
    require(map_file(path.c_str(), opened.mapping), path);
    const auto bytes = opened.mapping.bytes();
    if (bytes.size() >= 5 && std::memcmp(bytes.data(), "Fovea", 5) == 0) {
        opened = host::open(path);
        return result;
    }
    std::vector<std::string> notes;
    const std::uint32_t n_tokens = fs::path(path).extension() == ".bin" ? 0 : kMostTokens;
    const std::vector<std::byte> section =
        tokenizer_section_from_file(path, {.vocab_size = n_tokens, .bos = {}, .eos = {}}, notes);
    for (const std::string& note : notes) std::fprintf(stderr, "fovea: %s\n", note.c_str());
    result.section.resize((section.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
    std::memcpy(result.section.data(), section.data(), section.size());
    require(fovea::open_tokenizer({reinterpret_cast<const std::byte*>(result.section.data()), section.size()},
                                  opened.tokenizer),
            path);
    return result;
}

host::Opened convert::open_random(const Config& config, const WriteOptions& options,
                                  const std::function<void(std::uint64_t n_bytes)>& check) {
    const fs::path path = fs::temp_directory_path() / ("fovea-bench-" + std::to_string(getpid()) + ".fovea");
    struct Remover {
        const fs::path& path;
        ~Remover() {
            std::error_code ignored;
            fs::remove(path, ignored);
        }
    } remover{path};
    const ModelSource source = random_model(config, 1);
    check(file_bytes(source, options));
    write_file(source, path, options);
    return host::open(path.string());
}

}  // namespace fovea
