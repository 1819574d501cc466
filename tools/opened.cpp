#include "opened.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "convert/refusal.h"
#include "report.h"

extern "C" {
// tools/demo/demo.S
extern const std::byte fovea_demo_model_begin[];
extern const std::byte fovea_demo_model_end[];
}

namespace fovea {
namespace {

/// A model that somebody has in another form can be converted: that much is said where one is given instead.
[[noreturn]] void refuse_source(const std::string& path, const char* kind) {
    throw Refusal(path + ": expected a Fovea file, got a " + kind + "; fovea convert makes one of it");
}

void finish_opening(OpenedModel& opened, std::span<const std::byte> bytes, const OpenOptions& options) {
    require(open_model(bytes, opened.model, options), opened.name);
    const std::span<const std::byte> section = opened.model.tokenizer_bytes();
    if (!section.empty()) require(open_tokenizer(section, opened.tokenizer), opened.name);
}

}  // namespace

std::span<const std::byte> demo_model_bytes() noexcept { return {fovea_demo_model_begin, fovea_demo_model_end}; }

OpenedModel open_path(const std::string& path, const OpenOptions& options) {
    OpenedModel opened;
    opened.name = path;
    const Status status = map_file(path.c_str(), opened.mapping);
    if (status.code == Code::io_error && status.had == EISDIR) refuse_source(path, "folder");
    require(status, path);
    const std::span<const std::byte> bytes = opened.mapping.bytes();
    if (bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0) refuse_source(path, "GGUF file");
    finish_opening(opened, bytes, options);
    return opened;
}

OpenedModel open_path_or_demo(const std::string& path) {
    if (!path.empty()) return open_path(path);
    OpenedModel opened;
    opened.name = "demo";
    finish_opening(opened, demo_model_bytes(), {});
    return opened;
}

void need_logits(const OpenedModel& opened) {
    const auto& [encoder, decoder] = opened.model.config();
    if (encoder.n_layers || !decoder.n_layers || !decoder.vocab_size || !decoder.has_output_head)
        throw Refusal(opened.name + ": model: expected one for logits, got one for vectors");
}

const Tokenizer& need_tokenizer(const OpenedModel& opened) {
    if (!opened.tokenizer.valid())
        throw Refusal(opened.name + ": text: expected a model with a tokenizer, got one without");
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
        throw Refusal(path + ": text: expected at most " + with_separators(kMostBytes) + " bytes, got more");
    return text;
}

std::vector<Token> tokenize_text(const OpenedModel& opened, const std::string& text, bool parse_special) {
    const Tokenizer& tokenizer = need_tokenizer(opened);
    const std::uint64_t scratch_bytes = tokenize_scratch_bytes(tokenizer, text.size());
    std::vector<Token> tokens(max_tokens(tokenizer, text.size()));
    // operator new aligns to 16 bytes, as encode wants it.
    std::vector<std::byte> scratch(scratch_bytes);
    std::size_t n_tokens = 0;
    const TokenizeOptions options{.add_special = true, .parse_special = parse_special};
    require(tokenize(tokenizer, text, options, scratch, tokens, n_tokens), opened.name);
    tokens.resize(n_tokens);
    return tokens;
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
std::unique_ptr<std::byte[], ArenaDelete> need_arena(const OpenedModel& opened, std::uint64_t bytes) {
    std::unique_ptr<std::byte[], ArenaDelete> arena = take_arena(bytes);
    if (!arena)
        throw Refusal(opened.name + ": memory: expected " + with_separators(bytes) +
                      " bytes for the arena, got less (a smaller --context needs less)");
    return arena;
}

}  // namespace

Company::Company(const OpenedModel& opened, const Limits& limits, std::uint32_t n_sequences, const char* isa)
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

Running start_session(const OpenedModel& opened, const Limits& limits, const char* isa) {
    Running running;
    require(make_plan(opened.model.config(), limits, running.plan), opened.name);
    const std::uint64_t bytes = running.plan.arena_bytes;
    running.arena = need_arena(opened, bytes);
    const std::span<std::byte> span{running.arena.get(), static_cast<std::size_t>(bytes)};
    require(make_session(opened.model, limits, span, running.session, isa), opened.name);
    return running;
}

}  // namespace fovea
