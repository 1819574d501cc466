// Files that tests read whole, and where those of tests/golden are.
#pragma once
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace fovea::testing {

namespace fs = std::filesystem;

inline fs::path golden_path(const std::string& name) { return fs::path(FOVEA_GOLDEN_DIR) / name; }

inline std::string read_text(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    REQUIRE_MESSAGE(file.good(), "no file ", path.string());
    return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string golden_text(const std::string& name) { return read_text(golden_path(name)); }

}  // namespace fovea::testing
