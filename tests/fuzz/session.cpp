// Any bytes as the file of `run --session`, of a tiny model: refused, the session as it was, or a session that
// goes on safely.
#include <cstring>
#include <vector>

#include "fovea/checksum.h"
#include "fovea/host/opened.h"
#include "fovea/host/runtime.h"
#include "host/text/session_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tiny_models.h"

namespace {

using namespace fovea;

constexpr Token kFirst[] = {1, 2, 3}, kNext[] = {4};

/// A session of one type of cache that holds kFirst, and what follows from there.
struct Ready {
    host::Runtime<Session> running;
    std::vector<float> logits, want;
    std::vector<std::byte> before, now;

    Ready(const host::Opened& opened, Type type, const char* isa)
        : running(start_session(opened, {.max_kv_len = 12, .max_batch = 4, .kv_type = type}, {.isa = isa})),
          logits(opened.model.config().decoder.vocab_size),
          want(logits.size()) {
        fuzz::promise(forward(*running, kFirst, {}).ok(), "a session takes its tokens");
        fuzz::promise(forward(*running, kNext, want).ok() && rewind(*running, 3).ok(), "it goes on");
        before.resize(session_bytes(*running));
        now = before;
        std::size_t written = 0;
        fuzz::promise(save_session(*running, before, written).ok(), "a session is saved");
        const fuzz::Scratch scratch("kept");
        const std::string path = scratch.holding(nullptr, 0).string();
        host::write_session_file(path, *running, kFirst);
        std::ifstream kept(path, std::ios::binary);
        const std::string bytes((std::istreambuf_iterator<char>(kept)), std::istreambuf_iterator<char>());
        const SavedText file = host::split_session_file(std::as_bytes(std::span(bytes)), path);
        fuzz::promise(std::equal(before.begin(), before.end(), file.session.begin(), file.session.end()) &&
                          file.tokens == std::vector<Token>(std::begin(kFirst), std::end(kFirst)),
                      "a file holds what was saved");
    }

    void feed(const SavedText& file) {
        Session& session = *running;
        if (!restore_session(session, file.session).ok()) {
            std::size_t written = 0;
            fuzz::promise(save_session(session, now, written).ok() && now == before, "a refusal changes nothing");
            return;
        }
        try {
            host::restore(file, session, "file");
            fuzz::promise(file.tokens.size() == session.kv_len(), "a session has as many tokens as positions");
        } catch (const host::Error&) {  // it has not
        }
        if (session.kv_len() < session.max_kv_len())
            fuzz::promise(forward(session, kNext, logits).ok(), "a restored session takes tokens");
        fuzz::promise(restore_session(session, before).ok(), "what was saved is restored");
        fuzz::promise(forward(session, kNext, logits).ok() && session.kv_len() == 4 &&
                          std::memcmp(logits.data(), want.data(), want.size() * sizeof(float)) == 0,
                      "another's cache does not change what a session computes");
        fuzz::promise(rewind(session, 3).ok(), "a session is rewound");
    }
};

}  // namespace

FOVEA_FUZZ_TARGET(session) {
    static const fuzz::TinyOpened tiny;
    static std::vector<Ready> all = [] {
        std::vector<Ready> ready;
        for (const char* isa : isa_names())
            for (const Type type : {Type::f32, Type::f16, Type::q8, Type::q4})
                ready.emplace_back(tiny.opened, type, isa);
        return ready;
    }();
    const std::span<const std::byte> bytes{reinterpret_cast<const std::byte*>(data), size};
    try {
        const SavedText file = host::split_session_file(bytes, "file");
        for (Ready& ready : all) ready.feed(file);
    } catch (const host::Error&) {  // what a hostile file should get
    }
    return 0;
}

#ifdef FOVEA_FUZZ

/// Keeps the end and, but for one input in sixteen, both checksums right.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
    constexpr std::size_t kHeader = 32, kEnd = 8;
    size = fovea::fuzz::LLVMFuzzerMutate(data, size, max_size);
    if (size < kHeader + kEnd || !(seed & 15)) return size;
    const auto crc_of = [&](std::size_t at, std::size_t n, std::uint32_t before) {
        return fovea::crc32c({reinterpret_cast<const std::byte*>(data) + at, n}, before);
    };
    std::uint32_t n = 0;
    std::memcpy(&n, data + size - kEnd, sizeof n);
    const std::size_t most = (size - kHeader - kEnd) / sizeof n;
    if (n > most) n = static_cast<std::uint32_t>(n % (most + 1));
    std::memcpy(data + size - kEnd, &n, sizeof n);
    const std::size_t saved = size - kEnd - n * sizeof n;
    std::uint32_t crc = crc_of(saved, size - 4 - saved, 0);
    std::memcpy(data + size - 4, &crc, sizeof crc);
    crc = crc_of(kHeader, saved - kHeader, crc_of(0, 28, 0));
    std::memcpy(data + 28, &crc, sizeof crc);
    return size;
}

#endif
