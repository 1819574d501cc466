// A model and a session for it, opened the way every verb does: in this order, with the same refusals.
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "fovea/mapping.h"
#include "fovea/model.h"
#include "fovea/session.h"
#include "fovea/tokenizer.h"

namespace fovea {

namespace host {

/// A mapped file with its model, and its tokenizer where it has one. Movable.
struct Opened {
    std::string name;  ///< the path, or "demo" for the built-in model
    Mapping mapping;   ///< empty for the built-in model
    Model model;
    Tokenizer tokenizer;  ///< not valid() where the file has none
};

}  // namespace host

namespace host {
/// Maps and opens the file at `path`, called `name` (empty: by its path). Throws host::Error.
[[nodiscard]] host::Opened open_file(const std::string& path, const OpenOptions& options = {},
                                     const std::string& name = {});
/// Opens a file's bytes, which must be 64-byte aligned and outlive what is opened. Throws host::Error.
[[nodiscard]] host::Opened open_bytes(std::span<const std::byte> bytes, const std::string& name,
                                      const OpenOptions& options = {});
}  // namespace host

/// host::Error where it is no model for logits: no decoder, or one of vectors.
void need_logits(const host::Opened& opened);
/// The model's tokenizer, or host::Error where it has none.
[[nodiscard]] const Tokenizer& need_tokenizer(const host::Opened& opened);
/// host::Error where an id of one model, which has logits, means something else to the other.
void check_same_tokens(const host::Opened& opened, const host::Opened& other);
/// A file's text, a pipe's too, of at most 64 MB, which is a dozen times that of memory once it is encoded. Throws host::Error.
[[nodiscard]] std::string read_text_file(const std::string& path);
/// A text's ids, with the model's template around them where `add_special`.
[[nodiscard]] std::vector<Token> tokenize_text(const host::Opened& opened, const std::string& text, bool parse_special,
                                               bool add_special = true);

struct TokenizedPair {
    std::vector<Token> tokens;
    std::vector<std::uint32_t> types;  ///< each token's
};
/// Two texts by the model's template of two.
[[nodiscard]] TokenizedPair tokenize_pair_of(const host::Opened& opened, const std::string& first,
                                             const std::string& second, bool parse_special);

struct ArenaDelete {
    std::align_val_t alignment{kArenaAlignment};
    void operator()(std::byte* arena) const noexcept { ::operator delete(arena, alignment); }
};

/// So many bytes, kArenaAlignment-aligned; null: there is no such memory.
[[nodiscard]] std::unique_ptr<std::byte[], ArenaDelete> take_arena(std::uint64_t bytes);

/// A session with the memory it lives in, which is taken once, here. Movable; `opened` must outlive it.
struct Running {
    Plan plan;
    std::unique_ptr<std::byte[], ArenaDelete> arena;
    Session session;
};
/// A workspace and a pool of caches with the memory they live in. `opened` must outlive it.
class Company {
public:
    /// Room for n_sequences of limits.max_kv_len positions each.
    Company(const host::Opened& opened, const Limits& limits, std::uint32_t n_sequences, const char* isa);
    [[nodiscard]] Cache make();

    Plan plan;
    PoolPlan pool_plan;
    Workspace workspace;
    CachePool pool;

private:
    const host::Opened& opened_;
    std::unique_ptr<std::byte[], ArenaDelete> arena_, pages_;
};

/// `remote`, where there is one, outlives it: see SharedWork.
[[nodiscard]] Running start_session(const host::Opened& opened, const Limits& limits, const char* isa,
                                    const Remote* remote = nullptr);

}  // namespace fovea
