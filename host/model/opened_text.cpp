// What is done with an opened model, wherever it came from: ids of texts, arenas, sessions. Python's extension has this part
// and not the other.
#include "host/base/words.h"
#include "host/model/opened.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "host/base/error.h"
#include "host/base/lfs_pointer.h"

namespace fovea {

host::Opened host::open_bytes(std::span<const std::byte> bytes, const std::string& name, const OpenOptions& options) {
    host::Opened opened;
    opened.name = name;
    require(open_model(bytes, opened.model, options), name);
    const std::span<const std::byte> section = opened.model.tokenizer_bytes();
    if (!section.empty()) require(open_tokenizer(section, opened.tokenizer), name);
    return opened;
}

host::Opened host::open_file(const std::string& path, const OpenOptions& options, const std::string& name) {
    Mapping mapping;
    require(map_file(path.c_str(), mapping), path);
    refuse_lfs_pointer(mapping.bytes(), path);
    host::Opened opened = open_bytes(mapping.bytes(), name.empty() ? path : name, options);
    opened.mapping = std::move(mapping);
    return opened;
}

const Tokenizer& need_tokenizer(const host::Opened& opened) {
    if (!opened.tokenizer.valid())
        throw host::Error(opened.name + ": text: expected a model with a tokenizer, got one without");
    return opened.tokenizer;
}

std::string read_text_file(const std::string& path) {
    constexpr std::size_t kMostBytes = 64u << 20;
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string text;
    char part[1 << 16];
    while (text.size() <= kMostBytes && (file.read(part, sizeof part) || file.gcount()))
        text.append(part, static_cast<std::size_t>(file.gcount()));
    const int error = errno;
    if (!file.is_open() || file.bad())
        require({Code::io_error, "an unknown error", 0, static_cast<std::uint64_t>(error)}, path);
    if (text.size() > kMostBytes)
        throw host::Error(path + ": text: expected at most " + with_separators(kMostBytes) + " bytes, got more");
    return text;
}

namespace {

/// Room for ids as most texts need it and, where that was too little, as this one does: the bound is for texts that grow.
/// `call` fills it, says how many there are, and returns its status.
template<class Call>
std::vector<Token> tokens_of(const host::Opened& opened, std::size_t n_bytes, std::uint64_t n_most, Call call) {
    constexpr std::size_t kMore = 64;
    const std::uint64_t scratch_bytes = tokenize_scratch_bytes(opened.tokenizer, n_bytes);
    // Not cleared, as most of it is never touched; operator new aligns to 16 bytes, as tokenize wants it.
    const auto memory = std::make_unique_for_overwrite<std::byte[]>(scratch_bytes);
    const std::span<std::byte> scratch(memory.get(), scratch_bytes);
    std::vector<Token> tokens(std::min<std::uint64_t>(n_most, n_bytes + kMore));
    std::size_t n_tokens = 0;
    Status status = call(scratch, tokens, n_tokens);
    if (status.code == Code::buffer_too_small && status.wanted > tokens.size() && status.wanted <= n_most) {
        tokens.resize(status.wanted);
        status = call(scratch, tokens, n_tokens);
    }
    require(status, opened.name);
    tokens.resize(n_tokens);
    return tokens;
}

}  // namespace

std::vector<Token> tokenize_text(const host::Opened& opened, const std::string& text, bool parse_special,
                                 bool add_special) {
    const Tokenizer& tokenizer = need_tokenizer(opened);
    const TokenizeOptions options{.add_special = add_special, .parse_special = parse_special};
    return tokens_of(opened, text.size(), max_tokens(tokenizer, text.size()),
                     [&](std::span<std::byte> scratch, std::vector<Token>& tokens, std::size_t& n_tokens) {
                         return tokenize(tokenizer, text, options, scratch, tokens, n_tokens);
                     });
}

TokenizedPair tokenize_pair_of(const host::Opened& opened, const std::string& first, const std::string& second,
                               bool parse_special) {
    const Tokenizer& tokenizer = need_tokenizer(opened);
    const TokenizeOptions options{.add_special = true, .parse_special = parse_special};
    TokenizedPair result;
    result.tokens =
        tokens_of(opened, std::max(first.size(), second.size()), max_tokens(tokenizer, first.size() + second.size()),
                  [&](std::span<std::byte> scratch, std::vector<Token>& tokens, std::size_t& n_tokens) {
                      result.types.resize(tokens.size());
                      return tokenize_pair(tokenizer, first, second, options, scratch, tokens, result.types, n_tokens);
                  });
    result.types.resize(result.tokens.size());
    return result;
}

// An arena of a tiny model has its pages before the first token: a page's first touch takes longer than a layer there.
constexpr std::uint64_t kTouchedBytes = 4 << 20;

// A larger one is asked for in large pages, where the system gives them for the asking: attention walks over more small
// ones than the CPU remembers.
constexpr std::size_t kLargePage = 2 << 20;

std::unique_ptr<std::byte[], ArenaDelete> take_arena(std::uint64_t bytes) {
    if (bytes > std::numeric_limits<std::size_t>::max() / 2) return nullptr;
    const auto size = static_cast<std::size_t>(bytes);
    const std::align_val_t alignment{bytes <= kTouchedBytes ? kArenaAlignment : kLargePage};
    auto* arena = static_cast<std::byte*>(::operator new(size, alignment, std::nothrow));
    if (arena && bytes <= kTouchedBytes) std::memset(arena, 0, size);
#if defined(MADV_HUGEPAGE)
    if (arena && bytes > kTouchedBytes) madvise(arena, size, MADV_HUGEPAGE);  // a wish: refused is as good as unasked
#endif
    return {arena, ArenaDelete{alignment}};
}

namespace {

/// Memory for a plan's arena.
std::unique_ptr<std::byte[], ArenaDelete> need_arena(const host::Opened& opened, std::uint64_t bytes) {
    std::unique_ptr<std::byte[], ArenaDelete> arena = take_arena(bytes);
    if (!arena)
        throw host::Error(opened.name + ": memory: expected " + with_separators(bytes) +
                          " bytes for the arena, got less (a smaller --context needs less)");
    return arena;
}

}  // namespace

Company::Company(const host::Opened& opened, const Limits& limits, std::uint32_t n_sequences, const char* isa)
    : opened_(opened) {
    require(make_workspace_plan(opened.model.config(), limits, plan), opened.name);
    const PoolLimits caches{
        .max_kv_len = plan.limits.max_kv_len, .max_sequences = n_sequences, .kv_type = limits.kv_type};
    require(make_pool_plan(opened.model.config(), caches, pool_plan), opened.name);
    arena_ = need_arena(opened, plan.arena_bytes);
    pages_ = need_arena(opened, pool_plan.arena_bytes);
    require(make_workspace(opened.model, limits, {arena_.get(), static_cast<std::size_t>(plan.arena_bytes)}, workspace,
                           isa),
            opened.name);
    require(make_pool(opened.model, caches, {pages_.get(), static_cast<std::size_t>(pool_plan.arena_bytes)}, pool),
            opened.name);
}

Cache Company::make() {
    Cache cache;
    require(make_cache(pool, cache), opened_.name);
    return cache;
}

Running start_session(const host::Opened& opened, const Limits& limits, const char* isa, const Remote* remote) {
    Running running;
    require(make_plan(opened.model.config(), limits, running.plan), opened.name);
    const std::uint64_t bytes = running.plan.arena_bytes;
    running.arena = need_arena(opened, bytes);
    const std::span<std::byte> span{running.arena.get(), static_cast<std::size_t>(bytes)};
    require(make_session(opened.model, limits, span, running.session, {.isa = isa, .remote = remote}), opened.name);
    return running;
}

}  // namespace fovea
