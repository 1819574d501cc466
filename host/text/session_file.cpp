#include "host/text/session_file.h"

#include <optional>
#include <utility>

#include "host/base/error.h"
#include "host/base/output_file.h"
#include "host/model/leading.h"

namespace fovea::host {
SavedText split_session_file(std::span<const std::byte> bytes, const std::string& path, std::uint32_t adapters) {
    std::optional<SavedText> saved = split_saved(bytes, adapters);
    if (!saved)
        throw Error(path + ": expected a saved session with its tokens, " +
                    (adapters ? "computed with the adapters in use, " : "") +
                    "got a damaged one, one of other adapters or another file");
    return std::move(*saved);
}

void restore(const SavedText& file, Session& session, const std::string& path) {
    require(restore(session, file.session), path);
    if (file.tokens.size() != session.kv_len())
        throw Error(path + ": tokens: expected " + std::to_string(session.kv_len()) + ", got " +
                    std::to_string(file.tokens.size()));
}

std::vector<std::byte> session_file_bytes(const std::string& name, const Session& session,
                                          std::span<const Token> tokens, std::uint32_t adapters) {
    std::vector<std::byte> bytes(session_bytes(session));
    std::size_t written = 0;
    require(save(session, bytes, written), name);
    const std::vector<std::byte> behind = bytes_behind(tokens, adapters);
    bytes.insert(bytes.end(), behind.begin(), behind.end());
    return bytes;
}

void write_session_file(const std::string& path, const Session& session, std::span<const Token> tokens) {
    const std::vector<std::byte> bytes = session_file_bytes(path, session, tokens);
    OutputFile file(path);
    file.stream().write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    file.close();
}

}  // namespace fovea::host
