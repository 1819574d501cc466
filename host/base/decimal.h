#pragma once

#include <string_view>

namespace fovea {

/// Whether all of the text is a decimal number, such as -1.5e3, that the type has room for; whatever the locale. (libc++ has
/// std::from_chars for these types from version 20 on.)
[[nodiscard]] bool read_decimal(std::string_view text, float& number);
[[nodiscard]] bool read_decimal(std::string_view text, double& number);

}  // namespace fovea
