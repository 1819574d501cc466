// The C interface: structs of callers that know fewer fields than the library, or more; status; versions.
#include <cstring>

#include "engine/c/handles.h"
#include "engine/format/format.h"
#include "engine/format/parts.h"
#include "engine/model/kind.h"
#include "fovea/version.h"

namespace fovea {

static_assert(int(Type::f32) == FOVEA_F32 && int(Type::f16) == FOVEA_F16 && int(Type::q8) == FOVEA_Q8 &&
              int(Type::q4) == FOVEA_Q4);
static_assert(int(Kind::decode) == FOVEA_LOGITS && int(Kind::encode) == FOVEA_VECTORS &&
              int(Kind::attend) == FOVEA_ATTENTION);

namespace {

constexpr std::uint32_t kMostStructBytes = 1024;  // more is no size that anybody filled in

[[nodiscard, gnu::noinline]] Status struct_size(const void* given, std::uint32_t& size) noexcept {
    if (!given) return is_null("struct: NULL");
    std::memcpy(&size, given, sizeof size);
    if (size >= sizeof size && size <= kMostStructBytes) return {};
    return {Code::bad_argument, "struct_size at least 4 and at most", kMostStructBytes, size};
}

}  // namespace

fovea_status to_c(const Status& s) noexcept { return {static_cast<std::uint32_t>(s.code), s.what, s.wanted, s.had}; }

fovea_status success() noexcept { return to_c(Status{}); }

fovea_status refuse_null(const char* what) noexcept { return {FOVEA_BAD_ARGUMENT, what, 0, 0}; }

Status read_struct(const void* given, void* out, std::uint32_t out_bytes) noexcept {
    std::uint32_t size;
    if (Status s = struct_size(given, size); !s.ok()) return s;
    const auto* bytes = static_cast<const unsigned char*>(given);
    for (; size > out_bytes; --size)
        if (bytes[size - 1]) return {Code::bad_argument, "bytes of later fields", 0, bytes[size - 1]};
    std::memset(out, 0, out_bytes);
    std::memcpy(out, given, size);
    return {};
}

Status check_struct(const void* out) noexcept {
    std::uint32_t size;
    return struct_size(out, size);
}

void write_struct(const void* made, std::uint32_t made_bytes, void* out) noexcept {
    std::uint32_t size;
    std::memcpy(&size, out, sizeof size);
    std::memset(out, 0, size);
    std::memcpy(out, made, size < made_bytes ? size : made_bytes);
    std::memcpy(out, &size, sizeof size);
}

Status RequestedLimits::read(const fovea_limits* given) noexcept {
    if (Status s = read_struct(given, c); !s.ok()) return s;
    limits = {.max_kv_len = c.max_positions,
              .max_batch = c.max_batch,
              .n_threads = c.n_threads ? c.n_threads : 1,
              .kv_type = static_cast<Type>(c.kv_type < kTypeCount ? c.kv_type : kTypeCount),
              .max_sequences = c.max_sequences,
              .max_key_rows = c.max_key_rows};
    if (has(Part::states)) {
        if (c.max_marks > 255) return {Code::bad_limits, "marks of a session at most", 255, c.max_marks};
        limits.max_marks = static_cast<std::uint8_t>(c.max_marks);
    }
    if (has(Part::adapters)) limits.max_adapters = c.max_adapters, limits.max_adapter_rank = c.max_adapter_rank;
    return {};
}

Status write_plan(const fovea_model& model, const RequestedLimits& requested, const Plan& plan,
                  std::uint64_t arena_bytes, fovea_plan* out) noexcept {
    if (Status s = check_struct(out); !s.ok()) return s;
    const Config& config = model.model->config();
    const std::string_view suffix = model.model->info().prompt_suffix;
    const fovea_plan made{.struct_size = sizeof made,
                          .vocab_size = stack_of(config, last_stack(config)).vocab_size,
                          .max_positions = plan.limits.max_kv_len,
                          .max_batch = plan.limits.max_batch,
                          .arena_bytes = arena_bytes,
                          .max_tokens = max_tokens(model.tokenizer, requested.c.max_text_bytes),
                          .max_piece_bytes = max_piece_bytes(model.tokenizer),
                          .prompt_suffix = suffix.data(),
                          .prompt_suffix_bytes = suffix.size(),
                          .max_sequences = plan.limits.max_sequences,
                          .max_key_rows = plan.limits.max_key_rows};
    write_struct(&made, sizeof made, out);
    return {};
}

namespace {

/// A known code, or one without a name.
[[nodiscard]] Code code_of(std::uint32_t code) noexcept { return static_cast<Code>(code < 256 ? code : 255); }

}  // namespace
}  // namespace fovea

using namespace fovea;

uint32_t fovea_api_version() { return FOVEA_API_VERSION; }

const char* fovea_version() { return FOVEA_VERSION; }

uint32_t fovea_numerics_version() { return kNumericsVersion; }

size_t fovea_describe(fovea_status status, char* line, size_t capacity) {
    const Status s{code_of(status.code), status.what, status.wanted, status.had};
    const std::size_t n = describe(s, {line, capacity - 1}).size();
    line[n] = 0;
    return n;
}

const char* fovea_code_name(uint32_t code) { return name(code_of(code)); }
