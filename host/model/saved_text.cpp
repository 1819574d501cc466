#include "host/model/saved_text.h"

#include <cstring>

#include "fovea/checksum.h"

namespace fovea {

std::vector<std::byte> bytes_behind(std::span<const Token> tokens, std::uint32_t adapters) {
    const auto n = static_cast<std::uint32_t>(tokens.size());
    const std::span<const std::byte> ids = std::as_bytes(tokens);
    const std::uint32_t end[] = {n, crc32c(std::as_bytes(std::span(&n, 1)), crc32c(ids, adapters))};
    std::vector<std::byte> bytes(ids.begin(), ids.end());
    const auto last = std::as_bytes(std::span(end));
    bytes.insert(bytes.end(), last.begin(), last.end());
    return bytes;
}

std::optional<SavedText> split_saved(std::span<const std::byte> bytes, std::uint32_t adapters) {
    std::uint32_t end[2] = {};  // n and the checksum
    if (bytes.size() < sizeof end) return std::nullopt;
    std::memcpy(end, bytes.last(sizeof end).data(), sizeof end);
    const std::uint64_t n_bytes = std::uint64_t{end[0]} * sizeof(Token) + sizeof end;
    if (bytes.size() < n_bytes) return std::nullopt;
    const auto tail = bytes.last(static_cast<std::size_t>(n_bytes));
    if (crc32c(tail.first(tail.size() - sizeof end[1]), adapters) != end[1]) return std::nullopt;
    SavedText saved{bytes.first(bytes.size() - tail.size()), std::vector<Token>(end[0])};
    if (end[0]) std::memcpy(saved.tokens.data(), tail.data(), end[0] * sizeof(Token));
    return saved;
}

}  // namespace fovea
