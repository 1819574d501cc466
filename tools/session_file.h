// What `run --session` keeps between runs: a saved session and the tokens whose cache it holds.
//
//     saved session           fovea/session.h
//     tokens        u32 [n]
//     n             u32
//     crc           u32       CRC-32C of tokens and n
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fovea/session.h"

namespace fovea {

/// The file's parts; `session` is a view and not yet checked.
struct SessionFile {
    std::span<const std::byte> session;
    std::vector<Token> tokens;
};

/// Takes a file's bytes apart. Throws Refusal, `path` first, where the tokens are damaged.
[[nodiscard]] SessionFile split_session_file(std::span<const std::byte> bytes, const std::string& path);

/// restore_session, and that the file has a token for every position. Throws Refusal.
void restore(const SessionFile& file, Session& session, const std::string& path);

/// What such a file holds.
[[nodiscard]] std::vector<std::byte> session_file_bytes(const std::string& name, const Session& session,
                                                        std::span<const Token> tokens);
/// Replaces the file at `path` by the session, whose cache holds `tokens`, or leaves it as it is and throws Refusal.
void write_session_file(const std::string& path, const Session& session, std::span<const Token> tokens);

}  // namespace fovea
