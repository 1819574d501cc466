#include "session_file.h"

#include <cstring>

#include "convert/refusal.h"
#include "fovea/checksum.h"
#include "output_file.h"
#include "report.h"

namespace fovea {
namespace {

constexpr std::size_t kEndBytes = 8;  // n and crc

}  // namespace

SessionFile split_session_file(std::span<const std::byte> bytes, const std::string& path) {
    std::uint32_t n = 0, crc = 0;
    if (bytes.size() >= kEndBytes) {
        std::memcpy(&n, bytes.data() + bytes.size() - 8, sizeof n);
        std::memcpy(&crc, bytes.data() + bytes.size() - 4, sizeof crc);
    }
    const std::uint64_t tail = std::uint64_t{n} * sizeof(Token) + kEndBytes;
    if (bytes.size() < tail || crc32c(bytes.last(static_cast<std::size_t>(tail)).first(tail - sizeof crc)) != crc)
        throw Refusal(path + ": expected a saved session with its tokens, got a damaged one or another file");
    SessionFile file{bytes.first(bytes.size() - static_cast<std::size_t>(tail)), std::vector<Token>(n)};
    if (n) std::memcpy(file.tokens.data(), bytes.data() + file.session.size(), n * sizeof(Token));
    return file;
}

void restore(const SessionFile& file, Session& session, const std::string& path) {
    require(restore_session(session, file.session), path);
    if (file.tokens.size() != session.kv_len())
        throw Refusal(path + ": tokens: expected " + std::to_string(session.kv_len()) + ", got " +
                      std::to_string(file.tokens.size()));
}

std::vector<std::byte> session_file_bytes(const std::string& name, const Session& session,
                                          std::span<const Token> tokens) {
    std::vector<std::byte> bytes(session_bytes(session));
    std::size_t written = 0;
    require(save_session(session, bytes, written), name);
    const auto n = static_cast<std::uint32_t>(tokens.size());
    const std::uint32_t crc = crc32c(std::as_bytes(std::span(&n, 1)), crc32c(std::as_bytes(tokens)));
    const std::uint32_t end[] = {n, crc};
    const std::span<const std::byte> parts[] = {std::as_bytes(tokens), std::as_bytes(std::span(end))};
    for (const std::span<const std::byte> part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
    return bytes;
}

void write_session_file(const std::string& path, const Session& session, std::span<const Token> tokens) {
    const std::vector<std::byte> bytes = session_file_bytes(path, session, tokens);
    OutputFile file(path);
    file.stream().write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    file.close();
}

}  // namespace fovea
