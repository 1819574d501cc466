#include "opened.h"

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
    require(map_file(path.c_str(), opened.mapping), path);
    finish_opening(opened, opened.mapping.bytes(), options);
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
        throw Refusal(opened.name + ": model, want one for logits, had one for vectors");
}

const Tokenizer& need_tokenizer(const OpenedModel& opened) {
    if (!opened.tokenizer.valid()) throw Refusal(opened.name + ": text, want a file with a tokenizer, had one without");
    return opened.tokenizer;
}

std::string read_text_file(const std::string& path) {
    constexpr std::size_t kMostBytes = 64u << 20;
    std::ifstream file(path, std::ios::binary);
    std::string text;
    char part[1 << 16];
    while (text.size() <= kMostBytes && (file.read(part, sizeof part) || file.gcount()))
        text.append(part, static_cast<std::size_t>(file.gcount()));
    if (!file.is_open() || file.bad()) throw Refusal(path + ": want a file of text that can be read, had none");
    if (text.size() > kMostBytes)
        throw Refusal(path + ": text, want at most " + with_separators(kMostBytes) + " bytes, had more");
    return text;
}

std::vector<Token> encode_text(const OpenedModel& opened, const std::string& text, bool parse_special) {
    const Tokenizer& tokenizer = need_tokenizer(opened);
    const std::uint64_t scratch_bytes = encode_scratch_bytes(tokenizer, text.size());
    std::vector<Token> tokens(max_tokens(tokenizer, text.size()));
    // operator new aligns to 16 bytes, as encode wants it.
    std::vector<std::byte> scratch(scratch_bytes);
    std::size_t n_tokens = 0;
    const EncodeOptions options{.add_special = true, .parse_special = parse_special};
    require(encode(tokenizer, text, options, scratch, tokens, n_tokens), opened.name);
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

Running start_session(const OpenedModel& opened, const Limits& limits, const char* isa) {
    Running running;
    require(make_plan(opened.model.config(), limits, running.plan), opened.name);
    const std::uint64_t bytes = running.plan.arena_bytes;
    running.arena = take_arena(bytes);
    if (!running.arena)
        throw Refusal(opened.name + ": memory, want " + with_separators(bytes) +
                      " bytes for the arena, had fewer (--context makes it smaller)");
    const std::span<std::byte> span{running.arena.get(), static_cast<std::size_t>(bytes)};
    require(make_session(opened.model, limits, span, running.session, isa), opened.name);
    return running;
}

}  // namespace fovea
