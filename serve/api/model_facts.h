// What a served model is, as the APIs tell it.
#pragma once
#include <optional>
#include <string>

#include "fovea/host/texts.h"
#include "serve/api/service.h"

namespace fovea::serve {

[[nodiscard]] ModelTask task_of(const PlannedModel& planned);
/// Its head, where it says which class a text is of.
[[nodiscard]] std::optional<Head> class_head_of(const PlannedModel& planned);
/// What it can be asked for, in Ollama's words.
[[nodiscard]] Json capabilities_of(const PlannedModel& planned);
/// Ollama's details: family, parameters as "135M", the type that most of its bytes have.
[[nodiscard]] Json details_of(const PlannedModel& planned);
/// Widths and sizes by the names of llama.cpp's server.
[[nodiscard]] Json meta_of(const PlannedModel& planned);
/// A number of the file's contents, 64 hexadecimal digits.
[[nodiscard]] std::string digest_of(const PlannedModel& planned);
/// All of these as lists have them. `started`: when the server did, in seconds since 1970.
[[nodiscard]] ModelFacts facts_of(const PlannedModel& planned, std::int64_t started);

}  // namespace fovea::serve
