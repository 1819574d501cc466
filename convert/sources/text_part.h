// Models of texts and images, or of texts and sounds, as far as they are models of texts: the configuration within theirs, the
// tensors that are its own.
#pragma once
#include <optional>
#include <string>

#include "convert/formats/safetensors.h"
#include "convert/sources/lora.h"
#include "host/base/source_file.h"

namespace fovea {

/// The text model's configuration of a model that has others beside it, with what the whole says of texts: its end tokens,
/// whether its head is tied, how it is packed. Nothing for every other type of model.
[[nodiscard]] std::optional<Fields> text_part(const Fields& fields);

/// Gives the text model's tensors the names that they have in a model of it alone, and leaves out all others.
void keep_text_part(Safetensors& weights);
/// The same of an adapter, which PEFT names by the classes of the whole, whatever the model's files have. A note says what is
/// left out. Throws host::Error where that is all.
void keep_text_part(LoraFolder& folder, std::vector<std::string>& notes);

}  // namespace fovea
