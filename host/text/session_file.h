// What `run --session` keeps between runs: a saved session and the tokens whose cache it holds (host/model/saved_text.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/session.h"
#include "host/model/saved_text.h"

namespace fovea::host {

/// Takes a file's bytes apart. Throws Error, `path` first, where the tokens are damaged, or were computed with other adapters.
///   adapters   Opened::adapters_checksum of the model in use, here and below
[[nodiscard]] SavedText split_session_file(std::span<const std::byte> bytes, const std::string& path,
                                           std::uint32_t adapters = 0);

/// restore_session, and that the file has a token for every position. Throws Error.
void restore(const SavedText& file, Session& session, const std::string& path);

/// What such a file holds.
[[nodiscard]] std::vector<std::byte> session_file_bytes(const std::string& name, const Session& session,
                                                        std::span<const Token> tokens, std::uint32_t adapters = 0);
/// Replaces the file at `path` by the session, whose cache holds `tokens`, or leaves it as it is and throws Error.
void write_session_file(const std::string& path, const Session& session, std::span<const Token> tokens);

}  // namespace fovea::host
