#include "convert/tokenizers/tokenizer_file.h"

#include <cstring>

#include "convert/tokenizers/config_beside.h"
#include "convert/tokenizers/gguf_tokenizer.h"
#include "convert/tokenizers/numbered_pieces.h"
#include "convert/tokenizers/sentence_piece.h"
#include "convert/tokenizers/tokenizer_bin.h"
#include "convert/tokenizers/vocab_json.h"
#include "convert/tokenizers/vocab_txt.h"
#include "host/base/error.h"
#include "host/base/source_file.h"
#include "host/base/words.h"

namespace fovea {
namespace {

constexpr std::size_t kMostTextBytes = 256u << 20;  // of a tokenizer; the largest there are have a tenth of that

bool starts_with(std::span<const std::byte> bytes, std::string_view prefix) {
    return bytes.size() >= prefix.size() && std::memcmp(bytes.data(), prefix.data(), prefix.size()) == 0;
}

}  // namespace

std::vector<std::byte> tokenizer_section_from_file(const std::filesystem::path& path, const TokenizerFacts& facts,
                                                   std::vector<std::string>& notes) {
    Mapping mapping = map_source(path);
    if (starts_with(mapping.bytes(), "GGUF")) {
        const Gguf file(path, std::move(mapping));
        std::vector<std::byte> section = tokenizer_section_from_gguf(file, facts.vocab_size, notes);
        if (section.empty()) throw host::Error(path.string() + ": expected a tokenizer in the file, got none");
        return section;
    }
    const auto bytes = mapping.bytes();
    if (bytes.size() > kMostTextBytes)
        throw host::Error(path.string() + ": expected at most " + with_separators(kMostTextBytes) + " bytes, got " +
                          with_separators(bytes.size()));
    const std::span text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (path.filename() == "vocab.json" && !numbered_pieces(path.parent_path()).empty())
        return tokenizer_section_from_numbered_pieces(path, facts, notes);
    if (path.filename() == "vocab.json") return tokenizer_section_from_vocab_json(path, facts, notes);
    if (path.extension() == ".json") {
        TokenizerFacts with_config = facts;
        with_config.config = config_beside(path.parent_path());
        return tokenizer_section_from_json(text, path.string(), with_config, notes);
    }
    if (path.extension() == ".txt")
        return tokenizer_section_from_vocab_txt(text, path.string(), path.parent_path() / "tokenizer_config.json",
                                                facts);
    const std::filesystem::path added = path.parent_path() / "added_tokens.json";
    std::error_code error;
    if (path.extension() == ".model" && std::filesystem::exists(added, error))
        notes.push_back(added.string() +
                        ": tokens beside a SentencePiece model are not read; transformers' save_pretrained " +
                        "writes a tokenizer.json that has them");
    if (path.extension() == ".model" || looks_like_sentence_piece(bytes))
        return tokenizer_section_from_sentence_piece(bytes, path.string(), facts);
    if (path.extension() == ".bin") return tokenizer_section_from_llama2c(bytes, path.string(), facts);
    throw host::Error(
        path.string() +
        ": expected a tokenizer.json, a vocab.txt, a vocab.json with a merges.txt or a SentencePiece model, "
        "such a model, a "
        "GGUF file or a llama2.c tokenizer.bin");
}

}  // namespace fovea
