// A model's file as a program has it: bytes, model, tokenizer, and adapters for all that it computes.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/adapter.h"
#include "fovea/config.h"
#include "fovea/host/error.h"
#include "fovea/host/tokens.h"
#include "fovea/mapping.h"
#include "fovea/model.h"
#include "fovea/plan.h"
#include "fovea/tokenizer.h"
#include "fovea/workspace.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {
namespace host {

/// What a model is for.
enum class Kind {
    text,         ///< a decoder alone: logits, texts that go on
    translation,  ///< an encoder of ids with a decoder that reads its memory: a text from another
    speech,       ///< an encoder of recordings
    vectors,      ///< an encoder of ids alone
    layers,  ///< any other: layers from vectors to vectors, a decoder without a vocabulary or with a caller's memory
};
[[nodiscard]] Kind kind_of(const Config& config) noexcept;

/// A file's bytes with the model in them. Movable.
struct OpenedFile {
    std::string name;  ///< begins what is refused: the path, or what the caller calls it
    Mapping mapping;   ///< empty where the bytes are the caller's
    Model model;
};
struct OpenedAdapter : OpenedFile {
    float scale = 1.0f;
};

/// The part of a model's file that a rank has, see fovea convert --shard. One rank: all of it.
struct Shard {
    std::uint8_t rank = 0, n_ranks = 1, n_stages = 1;
    std::vector<std::uint8_t> shares{};  ///< empty: even ones
};

/// An opened model, with its tokenizer where it has one. Movable.
struct Opened : OpenedFile {
    Tokenizer tokenizer;                  ///< not valid() where the file has none
    std::vector<OpenedAdapter> adapters;  ///< in use in every session and workspace of host/model/runtime.h
    Shard shard;

    /// Opens an adapter's file. Throws host::Error for a file that is none; whether it is of this model, its use says.
    void add_adapter(const std::string& path, float scale, const OpenOptions& options = {});
    /// Makes room for the adapters among a workspace's or a session's limits.
    void plan_adapters(Limits& limits) const;
    /// Puts them to use. Throws host::Error, by its name, where one is another model's.
    void use_adapters(Workspace workspace) const;
    /// One number per list of adapters and scales; `seed` without any.
    [[nodiscard]] std::uint32_t adapters_checksum(std::uint32_t seed = 0) const noexcept;

    [[nodiscard]] const Config& config() const noexcept { return model.config(); }
    [[nodiscard]] Kind kind() const noexcept { return host::kind_of(config()); }
    /// Whether it has a head for a task: vectors are then those before it.
    [[nodiscard]] bool has_task() const { return !find_info(model, "task").empty(); }
    /// Whether it scores pairs of texts: a head for classes with one label, as CrossEncoders have for rerankers.
    [[nodiscard]] bool scores_pairs() const;
    /// Whether it makes sparse vectors: a weight for each token that a text calls for.
    [[nodiscard]] bool makes_sparse() const { return find_info(model, "task") == "sparse"; }
    /// Whether it compares texts token by token: a vector for each, and scores of documents for a query by their products.
    [[nodiscard]] bool has_late_interaction() const { return find_info(model, "task") == "late-interaction"; }
    /// Values of each vector that is made of a text: all, or the first as truncate_dim says.
    [[nodiscard]] std::uint32_t vector_width() const;

    /// A text's ids, and those of two texts. Throws host::Error, without a tokenizer too.
    [[nodiscard]] std::vector<Token> tokens(std::string_view text, const TokenizeOptions& options = {}) const;
    [[nodiscard]] TokenizedPair tokens(std::string_view first, std::string_view second,
                                       const TokenizeOptions& options) const;
    /// The text of ids below the tokenizer's vocab_size(). Throws host::Error without a tokenizer.
    [[nodiscard]] std::string text(std::span<const Token> ids, const DetokenizeOptions& options = {}) const;

    /// The tokenizer, or host::Error where there is none.
    [[nodiscard]] const Tokenizer& need_tokenizer() const;
    /// host::Error unless it is a Kind::text.
    void need_logits() const;
    /// host::Error where an id means something else to `other`, or that is a next-token head of another width. Both have logits.
    void check_same_tokens(const Opened& other) const;
};

/// Opens a Fovea file, or a source (a Hugging Face folder, a GGUF or .safetensors file): that is converted once into the user's cache
/// folder, which `progress` is told of, with a line on standard error. Throws host::Error.
[[nodiscard]] Opened open(const std::string& path, const OpenOptions& options = {},
                          const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {});
/// Maps and opens the Fovea file at `path`, or this rank's part of one, called `name` (empty: by its path). Throws host::Error.
[[nodiscard]] Opened open_file(const std::string& path, const OpenOptions& options = {}, const std::string& name = {});
/// Opens a file's bytes, which must be 64-byte aligned and outlive what is opened. Throws host::Error.
[[nodiscard]] Opened open_bytes(std::span<const std::byte> bytes, const std::string& name,
                                const OpenOptions& options = {});

}  // namespace host
}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
