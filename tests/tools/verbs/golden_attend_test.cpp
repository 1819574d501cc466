// Modules of PyTorch that tests/golden/make_attend.py kept, through the command line, on every instruction set.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fovea/session.h"
#include "host/base/arrays.h"
#include "tests/support/command_line.h"
#include "tests/support/emulated_tiles.h"

namespace fovea::testing {
namespace {

void check_case(const fs::path& from) {
    const std::string name = from.filename().string();
    CAPTURE(name);
    const auto made = nlohmann::json::parse(read_text(from / "case.json"));
    const TemporaryFolder folder;
    const std::string model = (folder / "m.fovea").string();
    output_of({"convert", from.string(), "-o", model});
    for (const char* isa : isas_of_cpu()) {
        CAPTURE(isa);
        std::vector<std::string> arguments = {made["verb"], model, "--isa", isa};
        for (const std::string argument : made["args"])
            arguments.push_back(argument.ends_with(".npy") ? (from / argument).string() : argument);
        for (const auto& [option, file] : made["outputs"].items())
            arguments.insert(arguments.end(), {option, (folder / file.get<std::string>().c_str()).string()});
        CHECK(output_of(arguments) == "");
        for (const std::string file : made["outputs"]) {
            CAPTURE(file);
            const FloatArray had = read_floats((folder / file.c_str()).string()),
                             wanted = read_floats((from / file).string());
            CHECK(had.shape == wanted.shape);
            REQUIRE(had.data.size() == wanted.data.size());
            float off = 0;
            for (std::size_t i = 0; i < had.data.size(); ++i) {
                const float difference = std::abs(had.data[i] - wanted.data[i]);
                if (!(difference <= off)) off = difference;  // NaN too
            }
            CHECK(off <= made["atol"].get<float>());
        }
    }
}

TEST_CASE("golden: what PyTorch's modules computed, attention and stacks") {
    int n = 0;
    for (const auto& entry : fs::directory_iterator(FOVEA_GOLDEN_DIR "/attend")) {
        check_case(entry.path());
        ++n;
    }
    CHECK(n == 18);
}

}  // namespace
}  // namespace fovea::testing
