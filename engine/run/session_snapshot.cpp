// What a session remembers, as bytes that outlive it: a header, then of each layer and key-value head the panels in
// use, keys, then values. docs/format.md says it in words. Capacity, threads and instruction set are not in it.
#include <cstring>

#include "fovea/checksum.h"
#include "session.h"

namespace fovea {
namespace {

struct SavedHeader {
    std::uint64_t magic = 0x1a564b6165766f46;  // "FoveaKV\x1a"
    std::uint32_t version = 1, numerics_version = kNumericsVersion;
    std::uint32_t fingerprint, kv_type, kv_len;
    std::uint32_t crc = 0;  // CRC-32C of the 28 bytes before it, then of all that follows

    SavedHeader(const SessionState& s, std::uint32_t n) noexcept
        : fingerprint(s.model.fingerprint()), kv_type(static_cast<std::uint32_t>(s.limits.kv_type)), kv_len(n) {}
};
static_assert(sizeof(SavedHeader) == 32);

/// The panels in use of one head's keys or values.
struct Run {
    std::uint32_t layer, head;
    bool values;
    std::uint64_t panel_bytes;
    std::size_t bytes;

    [[nodiscard]] std::byte* in(const SessionState& s) const noexcept {
        const std::uint64_t start = values ? s.layer(layer).values : s.layer(layer).keys;
        return s.arena + start + head * (s.map.capacity / kLanes) * panel_bytes;
    }
};

/// visit(Run) for each in order. `kv_len` is within the session's capacity, so that no size overflows.
void for_each_run(const SessionState& s, std::uint32_t kv_len, auto&& visit) noexcept {
    const Stack& stack = s.model.config().decoder;
    const Type type = s.limits.kv_type;
    for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer) {
        const Block& b = stack.block(layer);
        for (std::uint32_t i = 0; i < 2 * b.n_kv_heads; ++i) {
            const bool values = i % 2;
            const std::uint64_t panel =
                values ? value_panel_bytes(type, b.value_head_dim) : panel_bytes(type, b.head_dim);
            visit(Run{layer, i / 2, values, panel, static_cast<std::size_t>((kv_len + kLanes - 1) / kLanes * panel)});
        }
    }
}

[[nodiscard]] std::uint64_t saved_bytes(const SessionState& s, std::uint32_t kv_len) noexcept {
    std::uint64_t bytes = sizeof(SavedHeader);
    for_each_run(s, kv_len, [&](const Run& run) { bytes += run.bytes; });
    return bytes;
}

[[nodiscard]] std::uint32_t saved_crc(std::span<const std::byte> saved) noexcept {
    return crc32c(saved.subspan(sizeof(SavedHeader)), crc32c(saved.first(offsetof(SavedHeader, crc))));
}

/// A panel's values from position `n_used` on, which may never have been written, become zeros.
void clear_unused(Type type, std::byte* panel, std::uint64_t bytes, std::uint32_t n_used) noexcept {
    const auto clear = [&](std::byte* rows, std::uint64_t row_bytes) {
        std::memset(rows + n_used * row_bytes, 0, static_cast<std::size_t>((kLanes - n_used) * row_bytes));
    };
    if (type != Type::q8) return clear(panel, bytes / kLanes);
    for (const std::byte* end = panel + bytes; panel != end; panel += kValueGroupBytes) {
        clear(panel, 2);  // scales
        clear(panel + kLanes * 2, kGroup);
    }
}

/// Whether a cache with that header belongs into `s`, and has room there.
[[nodiscard]] Status check_header(const SessionState& s, const SavedHeader& had) noexcept {
    if (kind_of(s.model.config()) != Kind::decode) return {Code::unsupported, "a cache of this model", 0, 0};
    const SavedHeader want(s, 0);
    const Status differences[] = {
        {Code::session_mismatch, "as a saved session's first eight bytes", want.magic, had.magic},
        {Code::version_unsupported, "as a saved session's version", want.version, had.version},
        {Code::session_mismatch, "as its numerics version", want.numerics_version, had.numerics_version},
        {Code::session_mismatch, "as its model's fingerprint", want.fingerprint, had.fingerprint},
        {Code::session_mismatch, "as the number of its cache's type", want.kv_type, had.kv_type}};
    for (const Status& d : differences)
        if (d.had != d.wanted) return d;
    if (had.kv_len > s.limits.max_kv_len) return {Code::context_full, "positions", had.kv_len, s.limits.max_kv_len};
    return {};
}

}  // namespace

std::uint64_t session_bytes(const Session& session) noexcept {
    const SessionState& s = *SessionAccess::state(session);
    return kind_of(s.model.config()) == Kind::decode ? saved_bytes(s, s.kv_len) : 0;
}

Status save_session(const Session& session, std::span<std::byte> out, std::size_t& written) noexcept {
    const SessionState& s = *SessionAccess::state(session);
    SavedHeader header(s, s.kv_len);
    if (Status status = check_header(s, header); !status.ok()) return status;
    const std::uint64_t bytes = saved_bytes(s, s.kv_len);
    if (out.size() < bytes) return {Code::buffer_too_small, "bytes of a saved session", bytes, out.size()};
    std::byte* at = out.data() + sizeof header;
    for_each_run(s, s.kv_len, [&](const Run& run) {
        std::memcpy(at, run.in(s), run.bytes);
        at += run.bytes;
        if (run.values && s.kv_len % kLanes)
            clear_unused(s.limits.kv_type, at - run.panel_bytes, run.panel_bytes, s.kv_len % kLanes);
    });
    written = static_cast<std::size_t>(bytes);
    std::memcpy(out.data(), &header, sizeof header);
    header.crc = saved_crc(out.first(written));
    std::memcpy(out.data(), &header, sizeof header);
    return {};
}

Status restore_session(Session& session, std::span<const std::byte> saved) noexcept {
    SessionState& s = *SessionAccess::state(session);
    SavedHeader header(s, 0);
    if (saved.size() < sizeof header)
        return {Code::truncated, "bytes of a saved session's header", sizeof header, saved.size()};
    std::memcpy(&header, saved.data(), sizeof header);
    if (Status status = check_header(s, header); !status.ok()) return status;
    const std::uint64_t bytes = saved_bytes(s, header.kv_len);
    const Code code = saved.size() < bytes ? Code::truncated : Code::bad_shape;
    if (saved.size() != bytes) return {code, "bytes of a saved session", bytes, saved.size()};
    const std::uint32_t crc = saved_crc(saved);
    if (crc != header.crc) return {Code::checksum_mismatch, "saved session", header.crc, crc};
    const std::byte* at = saved.data() + sizeof header;
    for_each_run(s, header.kv_len, [&](const Run& run) {
        std::memcpy(run.in(s), at, run.bytes);
        at += run.bytes;
    });
    s.kv_len = header.kv_len;
    return {};
}

Status copy_session(const Session& from, Session& to) noexcept {
    const SessionState& f = *SessionAccess::state(from);
    SessionState& t = *SessionAccess::state(to);
    // The very same bytes, not a fingerprint: sizes must agree whatever a hostile model says it is.
    if (f.model.bytes().data() != t.model.bytes().data())
        return {Code::session_mismatch, "sessions that share one model", 0, 0};
    if (Status status = check_header(t, {f, f.kv_len}); !status.ok()) return status;
    if (&f != &t) for_each_run(f, f.kv_len, [&](const Run& run) { std::memcpy(run.in(t), run.in(f), run.bytes); });
    t.kv_len = f.kv_len;
    return {};
}

}  // namespace fovea
