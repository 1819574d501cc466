// A prompt, from wherever it is given: the command line, a file, standard input.
#pragma once
#include <optional>
#include <string>

namespace fovea {

/// The text of `file`, or without one `text`: "-" is standard input, "@FILE" a file, "@@TEXT" @TEXT. Where none is given: what standard
/// input says, unless it is a terminal, or says nothing within two seconds: who leaves a pipe open is not waited for. The last
/// line's break is not part of what is read. Throws host::Error.
[[nodiscard]] std::optional<std::string> asked_prompt(bool given, const std::string& text, const std::string& file);

/// Throws host::Error where what is given as the model looks like a text: to answer it by the built-in model would be too good a
/// guess, for it may be a name mistyped.
void refuse_text_as_model(const std::string& model);

}  // namespace fovea
