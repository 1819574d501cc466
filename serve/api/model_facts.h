// What a served model is, as the APIs tell it.
#pragma once
#include <optional>
#include <string>

#include "fovea/host/texts.h"
#include "serve/api/service.h"

namespace fovea::serve {

/// What models of vectors are for, where a request names none.
[[nodiscard]] inline bool embeds(const ModelEntry& entry) { return !entry.served.has_task(); }
[[nodiscard]] inline bool ranks(const ModelEntry& entry) { return entry.served.scores_pairs(); }
[[nodiscard]] inline bool classifies(const ModelEntry& entry) { return !embeds(entry) && !ranks(entry); }
/// Its head, where it says which class a text is of.
[[nodiscard]] std::optional<Head> class_head_of(const ModelEntry& entry);
/// What it can be asked for, in Ollama's words.
[[nodiscard]] Json capabilities_of(const ModelEntry& entry);
/// Ollama's details: family, parameters as "135M", the type that most of its bytes have.
[[nodiscard]] Json details_of(const ModelEntry& entry);
/// Widths and sizes by the names of llama.cpp's server.
[[nodiscard]] Json meta_of(const ModelEntry& entry);
/// A number of the file's contents, 64 hexadecimal digits.
[[nodiscard]] std::string digest_of(const ModelEntry& entry);

}  // namespace fovea::serve
