// How verbs print.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace fovea {

using Json = nlohmann::ordered_json;

/// The object of --json, on a line. What is no UTF-8 is replaced: a text may end within a character.
void print_line(const Json& object);

/// "1 thread", "2 threads".
[[nodiscard]] std::string counted(std::uint64_t n, const char* what);

}  // namespace fovea
