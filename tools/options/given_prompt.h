// A prompt, from wherever it is given: the command line, a file, standard input.
#pragma once
#include <string>

namespace fovea {

/// Whether standard input has begun, or ended, within two seconds: who leaves a pipe open and says nothing is not waited for.
[[nodiscard]] bool input_speaks();

/// All that standard input says.
[[nodiscard]] std::string read_input();

/// The text of `file`, or without one `text`: "-" is standard input, "@FILE" a file, "@@TEXT" @TEXT. The last line's break is not part of what
/// is read. Throws host::Error.
[[nodiscard]] std::string given_prompt(const std::string& text, const std::string& file);

/// Throws host::Error where what is given as the model looks like a text: to answer it by the built-in model would be too good a
/// guess, for it may be a name mistyped.
void refuse_text_as_model(const std::string& model);

}  // namespace fovea
