#include "fovea/host/opened.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "fovea/checksum.h"
#include "host/base/error.h"
#include "host/base/lfs_pointer.h"
#include "host/base/words.h"
#include "host/model/shard.h"
#include "host/model/stacks.h"

namespace fovea::host {
namespace {

bool reads_memory(const Stack& decoder) noexcept {
    const auto attends_to_memory = [](const Block& block) { return block.attention.cross_attention; };
    return std::any_of(decoder.blocks.begin(), decoder.blocks.begin() + decoder.n_blocks, attends_to_memory);
}

}  // namespace

Kind kind_of(const Config& config) noexcept {
    const auto& [encoder, decoder] = config;
    if (encoder.sound.is_speech()) return Kind::speech;
    const bool writes = decoder.n_layers && decoder.vocab_size && decoder.has_output_head;
    if (!encoder.n_layers) return writes && !reads_memory(decoder) ? Kind::text : Kind::layers;
    if (!encoder.vocab_size) return Kind::layers;
    if (!decoder.n_layers) return Kind::vectors;
    return writes && reads_memory(decoder) ? Kind::translation : Kind::layers;
}

void Opened::add_adapter(const std::string& path, float scale, const OpenOptions& options) {
    OpenedAdapter adapter;
    adapter.name = path;
    adapter.scale = scale;
    std::error_code error;
    const bool is_folder = std::filesystem::is_directory(path, error);
    if (!is_folder) require(map_file(path.c_str(), adapter.mapping), path);
    const auto bytes = adapter.mapping.bytes();
    const bool is_gguf = bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
    const std::string advice = "; convert ADAPTER --base MODEL makes one";
    if (is_folder || is_gguf)
        throw Error(path + ": expected an adapter's Fovea file, got a " + (is_folder ? "folder" : "GGUF file") +
                    advice);
    require(open_model(bytes, adapter.model, options), path);
    if (!adapter_rank(adapter.model)) throw Error(path + ": expected an adapter's file, got a model" + advice);
    adapters.push_back(std::move(adapter));
}

void Opened::plan_adapters(Limits& limits) const {
    limits.max_adapters = static_cast<std::uint32_t>(adapters.size());
    for (const OpenedAdapter& one : adapters)
        limits.max_adapter_rank = std::max(limits.max_adapter_rank, adapter_rank(one.model));
}

void Opened::use_adapters(Workspace workspace) const {
    std::vector<Adapter> all;
    for (const OpenedAdapter& one : adapters) {
        all.push_back({&one.model, one.scale});
        require(set_adapters(workspace, {&all.back(), 1}), one.name);  // by itself, so that a refusal names it
    }
    if (!all.empty()) require(set_adapters(workspace, all));
}

std::uint32_t Opened::adapters_checksum(std::uint32_t seed) const noexcept {
    for (const OpenedAdapter& one : adapters) {
        const std::uint32_t its[] = {one.model.fingerprint(), std::bit_cast<std::uint32_t>(one.scale)};
        seed = crc32c(std::as_bytes(std::span(its)), seed);
    }
    return seed;
}

bool Opened::scores_pairs() const {
    return find_info(model, "task") == "text-classification" && config().encoder.result_width() == 1;
}

std::uint32_t Opened::vector_width() const {
    const Stack& last = output_stack(config());
    if (has_task()) return last.d_model;
    const std::string kept(find_info(model, "truncate_dim"));
    const unsigned long n = std::strtoul(kept.c_str(), nullptr, 10);
    return n && n < last.result_width() ? static_cast<std::uint32_t>(n) : last.result_width();
}

std::vector<Token> Opened::tokens(std::string_view text, const TokenizeOptions& options) const {
    return tokenize(need_tokenizer(), text, options, name);
}

TokenizedPair Opened::tokens(std::string_view first, std::string_view second, const TokenizeOptions& options) const {
    return tokenize_pair(need_tokenizer(), first, second, options, name);
}

std::string Opened::text(std::span<const Token> ids, const DetokenizeOptions& options) const {
    return detokenize(need_tokenizer(), ids, options);
}

const Tokenizer& Opened::need_tokenizer() const {
    if (!tokenizer.valid()) throw Error(name + ": text: expected a model with a tokenizer, got one without");
    return tokenizer;
}

void Opened::need_logits() const {
    if (kind() == Kind::text) return;
    const std::string before = name + ": model: expected one ";
    if (kind() == Kind::speech) throw Error(before + "that reads text, got one that hears (see fovea transcribe)");
    if (config().decoder.n_layers && reads_memory(config().decoder))
        throw Error(before + "that reads a text alone, got one that also reads an encoder's " +
                    "vectors (the library's cache_memory and steps)");
    throw Error(before + "for logits, got one for vectors");
}

void Opened::check_same_tokens(const Opened& other) const {
    const std::uint32_t want = config().decoder.vocab_size, had = other.config().decoder.vocab_size;
    if (want != had)
        throw Error(other.name + ": vocabulary: expected " + name + "'s " + with_separators(want) + " tokens, got " +
                    with_separators(had));
    if (const Stack& head = other.config().decoder; head.joins_rows && head.d_model != config().decoder.d_model)
        throw Error(other.name + ": next-token head: expected one of " + name + "'s width, " +
                    with_separators(config().decoder.d_model) + ", got " + with_separators(head.d_model));
    if (!tokenizer.valid() || !other.tokenizer.valid()) return;
    for (Token id = 0; id < want; ++id)
        if (token_bytes(tokenizer, id) != token_bytes(other.tokenizer, id))
            throw Error(other.name + ": vocabulary: expected " + name + "'s, got another token " + std::to_string(id));
}

Opened open_bytes(std::span<const std::byte> bytes, const std::string& name, const OpenOptions& options) {
    Opened opened;
    opened.name = name;
    require(open_model(bytes, opened.model, options), name);
    const std::span<const std::byte> section = opened.model.tokenizer_bytes();
    if (!section.empty()) require(open_tokenizer(section, opened.tokenizer), name);
    return opened;
}

Opened open_file(const std::string& path, const OpenOptions& options, const std::string& name) {
    Mapping mapping;
    require(map_file(path.c_str(), mapping), path);
    refuse_lfs_pointer(mapping.bytes(), path);
    if (is_shard(mapping.bytes())) return open_shard(path, mapping.bytes(), options, name.empty() ? path : name);
    Opened opened = open_bytes(mapping.bytes(), name.empty() ? path : name, options);
    opened.mapping = std::move(mapping);
    return opened;
}

}  // namespace fovea::host
