// What fields of a config.json are where it does not have them. Files that transformers wrote have them all; those that people
// cut by hand lack some, and a family's own value would be taken for another's.
#pragma once
#include <string>

#include "convert/source_file.h"

namespace fovea {

/// The fields, and those of the type's defaults that are not among them.
[[nodiscard]] Fields with_defaults(const Fields& fields, const std::string& model_type);

}  // namespace fovea
