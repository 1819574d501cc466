// Models as the command line opens them: with how far a conversion is on the terminal, and with one of its own.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "fovea/host/opened.h"

namespace fovea {

/// As host::open does.
[[nodiscard]] host::Opened open_path(const std::string& path, const OpenOptions& options = {});
/// The model built into the command line where `path` is empty.
[[nodiscard]] host::Opened open_path_or_demo(const std::string& path, const OpenOptions& options = {});
/// The built-in model's file, 64-byte aligned, part of the program.
[[nodiscard]] std::span<const std::byte> demo_model_bytes() noexcept;

}  // namespace fovea
