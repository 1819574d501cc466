// What programs keep behind a saved session (fovea/session.h), to go on with its text: the tokens that its cache holds.
//
//     tokens        u32 [n]
//     n             u32
//     crc           u32       CRC-32C of tokens and n, begun with a checksum of the adapters in use (0: of none)
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fovea/session.h"

namespace fovea {

/// A saved session and its tokens; `session` is a view and not yet checked.
struct SavedText {
    std::span<const std::byte> session;
    std::vector<Token> tokens;
};

/// The bytes that stand behind the session's.
[[nodiscard]] std::vector<std::byte> bytes_behind(std::span<const Token> tokens, std::uint32_t adapters = 0);
/// Takes both apart. None: the tokens are damaged, or were computed with other adapters.
[[nodiscard]] std::optional<SavedText> split_saved(std::span<const std::byte> bytes, std::uint32_t adapters = 0);

}  // namespace fovea
