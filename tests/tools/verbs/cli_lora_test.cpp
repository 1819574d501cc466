// --lora: an adapter's file beside a model, from the command line.
#include <doctest/doctest.h>

#include "tests/support/command_line.h"

namespace fovea::testing {
namespace {

/// A model and an adapter of it, as files.
struct LoraFiles {
    TemporaryFolder folder;
    std::string model = (folder / "m.fovea").string(), adapter = (folder / "a.fovea").string();

    LoraFiles() {
        const fs::path golden = FOVEA_GOLDEN_DIR, base = golden / "models/llama_tied";
        convert_source({.source = base, .output = model, .type = Type::f32});
        convert_source({.source = golden / "lora/llama", .output = adapter, .base = base});
    }
    [[nodiscard]] std::string text(const std::vector<std::string>& more) const {
        std::vector<std::string> all{"run", model, "--tokens", "3,10,17,24", "-n", "12", "--quiet"};
        all.insert(all.end(), more.begin(), more.end());
        const Ran ran = run_fovea(all);
        CHECK(ran.status == 0);
        return ran.out;
    }
};

TEST_CASE("--lora: run adds adapters, by their scales, and refuses what is none") {
    const LoraFiles files;
    const std::string plain = files.text({}), adapted = files.text({"--lora", files.adapter});
    CHECK(plain != adapted);
    CHECK(files.text({"--lora", files.adapter + ":0"}) == plain);
    CHECK(files.text({"--lora", files.adapter + ":0.5", "--lora", files.adapter + ":0.5"}) == adapted);
    const Ran model = run_fovea({"run", files.model, "--tokens", "3", "--lora", files.model});
    CHECK(model.status == 1);
    CHECK(contains(model.err, "m.fovea: expected an adapter's file, got a model"));
    const Ran other = run_fovea({"run", "-p", "x", "--lora", files.adapter});
    CHECK(other.status == 1);
    CHECK(contains(other.err, "a.fovea"));
}

TEST_CASE("--lora: serve takes one for every model, or for the model of a name") {
    const LoraFiles files;
    const Ran unknown = run_fovea({"serve", "demo=", "--lora", "nobody=" + files.adapter, "--port", "0"});
    CHECK(unknown.status == 2);
    CHECK((contains(unknown.err, "--lora: expected NAME=FILE with the name of a model that is served, got nobody=") ||
           contains(unknown.err, "expected a build with Boost")));
    const Ran other = run_fovea({"serve", "demo=", "--lora", files.adapter, "--port", "0"});
    CHECK(other.status != 0);
    CHECK((contains(other.err, "a.fovea") || contains(other.err, "expected a build with Boost")));
}

}  // namespace
}  // namespace fovea::testing
