// What the converter's tests share: folders of their own, files changed for the worse, what a refusal says.
#pragma once
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "convert/convert.h"
#include "refusal.h"

namespace fovea::testing {

namespace fs = std::filesystem;

inline fs::path golden_models() { return fs::path(FOVEA_GOLDEN_DIR) / "models"; }

inline std::string read_text(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const fs::path& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    REQUIRE(file.good());
}

/// An empty folder that goes with its owner.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (fs::temp_directory_path() / "fovea-test-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path_ = name;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code error;
        fs::remove_all(path_, error);
    }
    fs::path operator/(const char* name) const { return path_ / name; }
    const fs::path& path() const { return path_; }
    std::size_t n_files() const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
    }

private:
    fs::path path_;
};

/// The line a call refuses with, and that it is one line; "" where it does not refuse.
inline std::string refusal_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Refusal& refusal) {
        const std::string line = refusal.what();
        CHECK(line.find('\n') == std::string::npos);
        CHECK(!line.empty());
        return line;
    }
    return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline void edit_json(const fs::path& path, const std::function<void(nlohmann::json&)>& edit) {
    auto json = nlohmann::json::parse(read_text(path));
    edit(json);
    write_text(path, json.dump());
}

/// A safetensors file in memory: header and data apart.
struct SafetensorsText {
    nlohmann::json header;
    std::string data;

    static SafetensorsText read(const fs::path& path) {
        const std::string text = read_text(path);
        std::uint64_t n;
        std::memcpy(&n, text.data(), sizeof n);
        return {nlohmann::json::parse(text.substr(8, n)), text.substr(8 + n)};
    }
    std::string text() const {
        const std::string dumped = header.dump();
        const std::uint64_t n = dumped.size();
        std::string size(sizeof n, '\0');
        std::memcpy(size.data(), &n, sizeof n);
        return size + dumped + data;
    }
};

}  // namespace fovea::testing
