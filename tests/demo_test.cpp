// The built-in model answers what it was made for, through the same generator as `fovea run`.
#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "generate.h"
#include "opened.h"

namespace fovea::testing {
namespace {

TEST_CASE("demo: 1,000 held-out commands are answered as its training measured") {
    // Lines of `commands.py 1000 --test --seed 99`: command, tab, answer.
    std::ifstream file(FOVEA_GOLDEN_DIR "/demo_commands.txt");
    REQUIRE(file.good());
    const OpenedModel opened = open_path_or_demo("");
    Running running = start_session(opened, {.n_threads = 1}, nullptr);
    Generator generator(opened, running.session);
    int n_commands = 0, n_exact = 0;
    std::string answer;
    for (std::string line; std::getline(file, line); ++n_commands) {
        const std::size_t tab = line.find('\t');
        REQUIRE(tab != line.npos);
        const std::string command = line.substr(0, tab) + std::string(opened.model.info().prompt_suffix);
        answer.clear();
        (void)generator.generate(encode_text(opened, command, false), {.n_new = 100},
                                 [&](std::string_view piece) { answer += piece; });
        n_exact += answer == line.substr(tab + 1);
    }
    CHECK(n_commands == 1000);
    CHECK(n_exact >= 997);  // all of 1,000, to within 3
}

}  // namespace
}  // namespace fovea::testing
