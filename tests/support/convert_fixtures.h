// Shared by the converter's tests: temporary folders, damaged files, and errors' lines.
#pragma once
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "convert/open/convert.h"
#include "fovea/session.h"
#include "host/base/aligned_bytes.h"
#include "host/base/error.h"
#include "host/base/npy.h"
#include "tests/support/files.h"

namespace fovea::testing {

inline const std::string kDemo = FOVEA_SOURCE_DIR "/tools/demo/demo.fovea";

inline fs::path golden_models() { return golden_path("models"); }

inline void write_text(const fs::path& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    REQUIRE(file.good());
}

/// Contents of a file to be replaced: the first bytes of a Fovea file, since convert replaces no other kind.
inline const std::string kOlderFile = "Fovea\r\n\x1a, an older one\n";

/// The demo's commands: a tenth to calibrate by, seen.txt, and a fifth to judge by, held.txt.
inline void write_commands(const fs::path& folder) {
    const std::string all = golden_text("demo_commands.txt");
    write_text(folder / "seen.txt", all.substr(0, all.find('\n', all.size() / 10) + 1));
    write_text(folder / "held.txt", all.substr(all.find('\n', all.size() / 5 * 4) + 1));
}

/// An empty folder that is removed with its owner.
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

/// The line a call refuses with, and that it is one line; "" if it does not refuse.
inline std::string refusal_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const host::Error& refusal) {
        const std::string line = refusal.what();
        CHECK(line.find('\n') == std::string::npos);
        CHECK(!line.empty());
        return line;
    }
    return "";
}

/// A Fovea file that was just written, opened with its checksums verified.
struct Converted {
    Mapping mapping;
    Model model;

    explicit Converted(const fs::path& path) {
        REQUIRE(map_file(path.c_str(), mapping).ok());
        REQUIRE(open_model(mapping.bytes(), model, {.verify_checksums = true}).ok());
    }
};

inline std::vector<float> all_logits(const Model& model, const std::vector<Token>& tokens) {
    Plan plan;
    REQUIRE(make_plan(model.config(), {}, plan).ok());
    AlignedBytes arena(plan.arena_bytes);
    Session session;
    REQUIRE(make_session(model, {}, arena, session).ok());
    std::vector<float> logits(tokens.size() * model.config().decoder.vocab_size);
    REQUIRE(forward(session, tokens, logits).ok());
    return logits;
}

/// The largest difference from the logits in that .npy, for the tokens make_models.py has; NaN if one is.
inline float logits_error(const Model& model, const fs::path& expected_file) {
    const NpyArray expected = read_npy(expected_file.string());
    const std::uint32_t vocab_size = model.config().decoder.vocab_size;
    REQUIRE(expected.shape.size() == 2);
    REQUIRE(expected.shape[1] == vocab_size);
    std::vector<Token> tokens(expected.shape[0]);
    for (std::uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = (7 * i + 3) % vocab_size;
    const std::vector<float> logits = all_logits(model, tokens);
    float error = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        float want;
        std::memcpy(&want, expected.data.data() + i * sizeof want, sizeof want);
        error = std::max(error, std::abs(logits[i] - want));
        if (std::isnan(logits[i])) return NAN;
    }
    return error;
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
