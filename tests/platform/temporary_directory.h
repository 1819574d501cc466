// A folder of a test's own, removed at its end.
#pragma once
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace {

struct TemporaryDirectory {
    std::filesystem::path path;
    TemporaryDirectory() {
        std::string name = (std::filesystem::temp_directory_path() / "fovea-test-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()));
        path = name;
    }
    ~TemporaryDirectory() { std::filesystem::remove_all(path); }

    std::string file(const char* name, const std::string& content) const {
        std::ofstream(path / name, std::ios::binary) << content;
        return (path / name).string();
    }
};

}  // namespace
