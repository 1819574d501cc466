// The C interface: one arena that holds, before the engine's own, what a C++ caller keeps beside it.
#include <bit>
#include <cstring>
#include <new>

#include "fovea/fovea.h"
#include "fovea/sampler.h"
#include "fovea/session.h"
#include "fovea/tokenizer.h"
#include "model/format.h"
#include "run/plan.h"

using namespace fovea;

static_assert(static_cast<int>(Code::pool_full) == FOVEA_POOL_FULL);
static_assert(static_cast<int>(Type::f16) == FOVEA_F16 && static_cast<int>(Type::q8) == FOVEA_Q8);

struct fovea_session {
    Session session;
    Tokenizer tokenizer;
    Sampler sampler;
    std::span<float> logits;
    std::span<std::byte> scratch;
};

namespace {

constexpr std::uint64_t kStateBytes = 128;  // as plans are the same on every machine
static_assert(sizeof(fovea_session) <= kStateBytes);
constexpr std::uint64_t kMaxScratch = std::uint64_t{1} << 48;  // so that no sum overflows

fovea_status to_c(const Status& s) noexcept { return {static_cast<std::uint32_t>(s.code), s.what, s.wanted, s.had}; }

constexpr std::uint32_t kMostStructBytes = 1024;  // more is no size that anybody filled in

Status check_size(std::uint32_t size) noexcept {
    if (size >= sizeof size && size <= kMostStructBytes) return {};
    return {Code::bad_argument, "struct_size at least 4 and at most", kMostStructBytes, size};
}

/// Reads a caller's struct of `bytes` into one of out_bytes. It may be of an older library, and then lacks the last fields,
/// or of a newer one, whose further fields ask for what is not known here unless they are zero.
Status read_struct(const void* given, void* out, std::uint32_t out_bytes) noexcept {
    std::uint32_t size;
    std::memcpy(&size, given, sizeof size);
    if (Status s = check_size(size); !s.ok()) return s;
    const auto* bytes = static_cast<const unsigned char*>(given);
    for (; size > out_bytes; --size)
        if (bytes[size - 1]) return {Code::bad_argument, "bytes of fields that this library does not know", 0, bytes[size - 1]};
    std::memset(out, 0, out_bytes);
    std::memcpy(out, given, size);
    return {};
}

/// Writes what the caller's struct has room for; what is beyond ours becomes zero.
void write_plan(const fovea_plan& made, fovea_plan* out) noexcept {
    const std::uint32_t size = out->struct_size;
    std::memset(static_cast<void*>(out), 0, size);
    std::memcpy(static_cast<void*>(out), &made, size < sizeof made ? size : sizeof made);
    out->struct_size = size;
}

/// A file and limits, and what follows from them. The arena: state, logits, scratch, the engine's.
struct Prepared {
    Model model;
    Tokenizer tokenizer;
    Plan plan;
    std::uint64_t logits_bytes, scratch_bytes, engine_at;

    fovea_limits limits;  // as this library knows them

    Status read(const void* file, std::size_t file_bytes, const fovea_limits& given) noexcept {
        if (Status s = read_struct(&given, &limits, sizeof limits); !s.ok()) return s;
        if (Status s = open_model({static_cast<const std::byte*>(file), file_bytes}, model); !s.ok()) return s;
        if (kind_of(model.config()) != Kind::decode) return {Code::unsupported, "logits of this model", 0, 0};
        if (!model.tokenizer_bytes().empty())
            if (Status s = open_tokenizer(model.tokenizer_bytes(), tokenizer); !s.ok()) return s;
        const Limits asked{.max_kv_len = limits.max_positions,
                           .max_batch = limits.max_batch,
                           .n_threads = limits.n_threads ? limits.n_threads : 1,
                           .kv_type = static_cast<Type>(limits.kv_type < kTypeCount ? limits.kv_type : kTypeCount)};
        if (Status s = make_plan(model.config(), asked, plan); !s.ok()) return s;
        const std::uint64_t vocab_size = model.config().decoder.vocab_size;
        const std::uint64_t text = encode_scratch_bytes(tokenizer, limits.max_text_bytes);
        if (text > kMaxScratch) return {Code::bad_limits, "bytes of scratch for a text", kMaxScratch, text};
        const std::uint64_t candidates = vocab_size * sizeof(Candidate);  // text and candidates never meet
        logits_bytes = round_up(vocab_size * sizeof(float), kArenaAlignment);
        scratch_bytes = round_up(text > candidates ? text : candidates, kArenaAlignment);
        engine_at = kStateBytes + logits_bytes + scratch_bytes;
        return {};
    }
};

}  // namespace

uint32_t fovea_api_version() { return FOVEA_API_VERSION; }

size_t fovea_describe(fovea_status status, char* line, size_t capacity) {
    const Status s{static_cast<Code>(status.code), status.what, status.wanted, status.had};
    const std::size_t n = describe(s, {line, capacity - 1}).size();
    line[n] = 0;
    return n;
}

fovea_status fovea_make_plan(const void* file, size_t file_bytes, const fovea_limits* limits, fovea_plan* plan) {
    if (Status s = check_size(plan->struct_size); !s.ok()) return to_c(s);
    Prepared p;
    if (Status s = p.read(file, file_bytes, *limits); !s.ok()) return to_c(s);
    const fovea_plan made{.struct_size = sizeof made,
                          .vocab_size = p.model.config().decoder.vocab_size,
                          .max_positions = p.plan.limits.max_kv_len,
                          .max_batch = p.plan.limits.max_batch,
                          .arena_bytes = p.engine_at + p.plan.arena_bytes,
                          .max_tokens = max_tokens(p.tokenizer, p.limits.max_text_bytes),
                          .max_piece_bytes = max_piece_bytes(p.tokenizer),
                          .prompt_suffix = p.model.info().prompt_suffix.data(),
                          .prompt_suffix_bytes = p.model.info().prompt_suffix.size()};
    write_plan(made, plan);
    return {};
}

fovea_status fovea_verify(const void* file, size_t file_bytes) {
    Model model;
    return to_c(open_model({static_cast<const std::byte*>(file), file_bytes}, model, {.verify_checksums = true}));
}

fovea_status fovea_make_session(const void* file, size_t file_bytes, const fovea_limits* limits, void* arena,
                                size_t arena_bytes, fovea_session** session) {
    Prepared p;
    if (Status s = p.read(file, file_bytes, *limits); !s.ok()) return to_c(s);
    const std::uint64_t wanted = p.engine_at + p.plan.arena_bytes;
    if (arena_bytes < wanted) return to_c({Code::arena_too_small, "arena bytes at least", wanted, arena_bytes});
    const std::span<std::byte> bytes{static_cast<std::byte*>(arena), arena_bytes};
    const auto part = [&](std::uint64_t at, std::uint64_t n) {
        return bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(n));
    };
    Session made;
    if (Status s = make_session(p.model, p.plan.limits, part(p.engine_at, p.plan.arena_bytes), made, p.limits.isa);
        !s.ok())
        return to_c(s);
    std::memset(arena, 0, static_cast<std::size_t>(kStateBytes + p.logits_bytes));
    const auto logits = part(kStateBytes, p.logits_bytes);
    *session = new (arena) fovea_session{made,
                                         p.tokenizer,
                                         {},
                                         {reinterpret_cast<float*>(logits.data()), p.model.config().decoder.vocab_size},
                                         part(kStateBytes + p.logits_bytes, p.scratch_bytes)};
    return {};
}

fovea_status fovea_encode(fovea_session* session, const char* text, size_t text_bytes, int how, uint32_t* tokens,
                          size_t capacity, size_t* n_tokens) {
    constexpr int kAll = FOVEA_READ_SPECIAL | FOVEA_NO_SPECIAL;
    *n_tokens = 0;
    if (how & ~kAll) return to_c({Code::bad_argument, "how at most", kAll, static_cast<unsigned>(how)});
    const EncodeOptions options{.add_special = (how & FOVEA_NO_SPECIAL) == 0,
                                .parse_special = (how & FOVEA_READ_SPECIAL) != 0};
    return to_c(
        encode(session->tokenizer, {text, text_bytes}, options, session->scratch, {tokens, capacity}, *n_tokens));
}

fovea_status fovea_forward(fovea_session* session, const uint32_t* tokens, size_t n_tokens) {
    return to_c(forward(session->session, {tokens, n_tokens}, session->logits));
}

const float* fovea_logits(const fovea_session* session) { return session->logits.data(); }

uint32_t fovea_kv_len(const fovea_session* session) { return session->session.kv_len(); }

fovea_status fovea_rewind(fovea_session* session, uint32_t kv_len) { return to_c(rewind(session->session, kv_len)); }

fovea_status fovea_set_sampler(fovea_session* session, const fovea_sampler* sampler) {
    fovea_sampler known;
    if (Status s = read_struct(sampler, &known, sizeof known); !s.ok()) return to_c(s);
    const auto or_one = [](float x) { return x == 0.0f ? 1.0f : x; };
    return to_c(make_sampler({.temperature = known.temperature,
                              .top_k = known.top_k,
                              .top_p = or_one(known.top_p),
                              .min_p = known.min_p,
                              .repeat_penalty = or_one(known.repeat_penalty),
                              .seed = known.seed},
                             session->sampler));
}

fovea_status fovea_sample(fovea_session* session, const uint32_t* recent, size_t n_recent, uint32_t* token) {
    auto* candidates = reinterpret_cast<Candidate*>(session->scratch.data());
    return to_c(sample(session->sampler, session->session.kv_len(), session->logits, {recent, n_recent},
                       {candidates, session->logits.size()}, *token));
}

int fovea_ends_text(const fovea_session* session, uint32_t token) { return session->tokenizer.ends_text(token); }

size_t fovea_decode(const fovea_session* session, fovea_decoder* decoder, uint32_t token, char* out, size_t capacity) {
    decoder->started = decoder->started != 0;
    auto own = std::bit_cast<Decoder>(*decoder);
    const std::size_t n = token == FOVEA_NO_TOKEN
                              ? finish(own, {out, capacity}).size()
                              : decode(session->tokenizer, own, token, false, {out, capacity}).size();
    *decoder = std::bit_cast<fovea_decoder>(own);
    return n;
}
