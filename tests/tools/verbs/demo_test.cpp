// The built-in model answers what it was made for, through the same generator as `fovea run`.
#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "convert/open/convert.h"
#include "fovea/host/generation.h"
#include "fovea/host/opened.h"
#include "fovea/host/runtime.h"
#include "tests/support/convert_fixtures.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

#if defined(FOVEA_EMULATED)
constexpr int kCommands = 100;  // the file's first: a tenth of the time, and bits that are the same as elsewhere
#else
constexpr int kCommands = 1000;
#endif

/// How many of kCommands held-out commands are not answered to the letter.
int n_wrong(const host::Opened& opened) {
    // Lines of `commands.py 1000 --test --seed 99`: command, tab, answer.
    std::ifstream file(FOVEA_GOLDEN_DIR "/demo_commands.txt");
    REQUIRE(file.good());
    host::Generation generation(opened, {.n_threads = 1}, {});
    int n_commands = 0, n = 0;
    std::string answer;
    for (std::string line; n_commands < kCommands && std::getline(file, line); ++n_commands) {
        const std::size_t tab = line.find('\t');
        REQUIRE(tab != line.npos);
        const std::string command = line.substr(0, tab) + std::string(opened.model.info().prompt_suffix);
        answer.clear();
        (void)generation.generate(opened.tokens(command), {.n_new = 100},
                                  [&](std::string_view piece) { answer += piece; });
        n += answer != line.substr(tab + 1);
    }
    CHECK(n_commands == kCommands);
    return n;
}

TEST_CASE("demo: held-out commands are answered as its training measured, all of 1,000 to within 3") {
    CHECK(n_wrong(open_path_or_demo("")) <= 3);
}

TEST_CASE("demo: converted to q8 it answers as many, to within 3") {
    const TemporaryFolder folder;
    ConvertOptions options;
    options.source = FOVEA_SOURCE_DIR "/tools/demo/demo.fovea";
    options.output = folder / "q8.fovea";
    options.type = Type::q8;
    convert_source(options);
    CHECK(n_wrong(open_path((folder / "q8.fovea").string())) <= 3);
}

}  // namespace
}  // namespace fovea::testing
