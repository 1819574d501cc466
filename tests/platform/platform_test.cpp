// What the engine asks of the machine: features, floating-point environment, mapping.
#include "platform/features.h"
#include "platform/float_env.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "fovea/mapping.h"
#include "tests/platform/hostile_host.h"
#include "tests/platform/temporary_directory.h"
#include "tests/support/emulated_tiles.h"

namespace {

using namespace fovea;

/// The processor's flags in the kernel's words, with a space on both sides of each; empty where there is no such list.
std::string kernel_flags() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("flags") || line.starts_with("Features")) return line.substr(line.find(':') + 1) + ' ';
    return {};
}

TEST_CASE("features: what the CPU says is what the kernel says" * doctest::skip(kInValgrind)) {
    const std::string flags = kernel_flags();
    if (flags.empty()) return;
    [[maybe_unused]] const auto has = [&](const char* flag) {
        return flags.find(std::string(" ") + flag + ' ') != std::string::npos;
    };
    [[maybe_unused]] const CpuFeatures f = detect_features();
#if defined(__x86_64__)
    CHECK(f.avx2 == has("avx2"));
    CHECK(f.fma == has("fma"));
    CHECK(f.f16c == has("f16c"));
    CHECK(f.avx512 == (has("avx512f") && has("avx512cd") && has("avx512bw") && has("avx512dq") && has("avx512vl")));
    CHECK(f.avx512vnni == (has("avx512_vnni") && f.avx512));
    if (has("avx_vnni")) CHECK(f.avxvnni);  // older kernels do not list it
    if (!testing::emulates_tiles()) CHECK(f.amx == (has("amx_tile") && has("amx_int8")));
    CHECK_FALSE(f.neon);
#elif defined(__aarch64__)
    CHECK(f.neon);
    if (has("asimddp")) CHECK(f.dotprod);  // an emulator shows the host's list, with none of these words
    if (has("i8mm")) CHECK(f.i8mm);
    CHECK_FALSE(f.avx2);
#endif
}

TEST_CASE("features: covers asks for every flag that is needed and for no other") {
    const CpuFeatures none;
    CHECK(covers(none, none));
    CHECK(covers({.avx2 = true, .fma = true}, {.avx2 = true}));
    CHECK_FALSE(covers({.avx2 = true}, {.avx2 = true, .fma = true}));
    const auto each = {&CpuFeatures::avx2,   &CpuFeatures::fma,        &CpuFeatures::f16c,
                       &CpuFeatures::avx512, &CpuFeatures::avx512vnni, &CpuFeatures::avxvnni,
                       &CpuFeatures::amx,    &CpuFeatures::neon,       &CpuFeatures::dotprod,
                       &CpuFeatures::i8mm,   &CpuFeatures::mve,        &CpuFeatures::fetches_to_second_level};
    CHECK(each.size() == sizeof(CpuFeatures));  // one bool each: a new one belongs in this list
    for (const auto flag : each) {
        CpuFeatures one;
        one.*flag = true;
        CHECK(covers(one, one));
        CHECK_FALSE(covers(none, one));
    }
}

// ---- floating-point environment ------------------------------------------------------------------------------------

TEST_CASE("float_env: nearest and gradual inside, the caller's own after" * doctest::skip(kInValgrind)) {
    const HostileHost host;
    REQUIRE_FALSE(rounds_to_nearest());
    {
        const FloatEnv env;
        CHECK(rounds_to_nearest());
        CHECK(keeps_denormals());
    }
    CHECK_FALSE(rounds_to_nearest());
    CHECK(fegetround() == FE_DOWNWARD);
#if defined(__SSE__) || defined(__aarch64__) || defined(__arm__)
    CHECK_FALSE(keeps_denormals());
#endif
}

// ---- mapping -------------------------------------------------------------------------------------------------------

/// A directory of this test's own, removed with all it holds.
TEST_CASE("mapping: a file's bytes, for as long as the mapping lives") {
    const TemporaryDirectory directory;
    const std::string content("some bytes\0and more", 19);
    const std::string path = directory.file("a", content);
    Mapping mapping;
    REQUIRE(map_file(path.c_str(), mapping).ok());
    std::filesystem::remove(path);
    const auto holds = [&](const Mapping& m) {
        return m.bytes().size() == content.size() && !std::memcmp(m.bytes().data(), content.data(), content.size());
    };
    CHECK(holds(mapping));

    Mapping moved(std::move(mapping));
    CHECK(holds(moved));
    CHECK(mapping.bytes().empty());
    Mapping assigned;
    REQUIRE(map_file(directory.file("b", "other").c_str(), assigned).ok());
    assigned = std::move(moved);
    CHECK(holds(assigned));
    CHECK(moved.bytes().empty());
}

TEST_CASE("mapping: an empty file is empty bytes") {
    const TemporaryDirectory directory;
    Mapping mapping;
    REQUIRE(map_file(directory.file("full", "x").c_str(), mapping).ok());
    CHECK(map_file(directory.file("empty", "").c_str(), mapping).ok());
    CHECK(mapping.bytes().empty());
}

TEST_CASE("mapping: parts of a file lie where they are to, with zeros between them") {
    const TemporaryDirectory directory;
    std::string content(3 * kPartAlignment + 100, '\0');
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 / 1000 + 1);
    const std::string path = directory.file("a", content);
    const MappedPart parts[] = {{kPartAlignment, 0, kPartAlignment}, {3 * kPartAlignment, 4 * kPartAlignment, 100}};
    Mapping mapping;
    const std::size_t size = 4 * kPartAlignment + 100;
    REQUIRE(map_parts(path.c_str(), parts, size, mapping).ok());
    const auto bytes = mapping.bytes();
    REQUIRE(bytes.size() == size);
    CHECK(!std::memcmp(bytes.data(), content.data() + kPartAlignment, kPartAlignment));
    CHECK(!std::memcmp(bytes.data() + 4 * kPartAlignment, content.data() + 3 * kPartAlignment, 100));
    CHECK(std::all_of(bytes.begin() + kPartAlignment, bytes.begin() + 4 * kPartAlignment,
                      [](std::byte b) { return b == std::byte{0}; }));
    const std::byte* before = bytes.data();
    for (const MappedPart& bad : {MappedPart{1, 0, 1}, MappedPart{0, 100, 1}, MappedPart{3 * kPartAlignment, 0, 101},
                                  MappedPart{0, 4 * kPartAlignment, 101}, MappedPart{0, 0, 0},
                                  MappedPart{~std::uint64_t{65535}, 0, 65536}, MappedPart{0, 0, ~std::uint64_t{0}}})
        CHECK(map_parts(path.c_str(), {&bad, 1}, size, mapping).code == Code::bad_argument);
    CHECK(map_parts((directory.path / "none").string().c_str(), parts, size, mapping).code == Code::io_error);
    CHECK(map_parts(path.c_str(), {}, 0, mapping).code == Code::io_error);
    CHECK(mapping.bytes().data() == before);
}

TEST_CASE("mapping: what is no readable file is refused by step and number, and changes nothing") {
    const TemporaryDirectory directory;
    Mapping mapping;
    REQUIRE(map_file(directory.file("a", "kept").c_str(), mapping).ok());
    const std::string pipe = (directory.path / "pipe").string();
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);  // nobody writes to it: opening must not wait for one who does
    const struct {
        std::string path;
        const char* what;
        int error;
    } cases[] = {{(directory.path / "none").string(), "open", ENOENT},
                 {directory.path.string(), "not a regular file", EISDIR},
                 {pipe, "not a regular file", EINVAL},
                 {"/dev/null", "not a regular file", EINVAL}};
    for (const auto& c : cases) {
        CAPTURE(c.path);
        const Status status = map_file(c.path.c_str(), mapping);
        CHECK(status.code == Code::io_error);
        CHECK(std::string(status.what) == c.what);
        CHECK(status.had == static_cast<std::uint64_t>(c.error));
        CHECK(mapping.bytes().size() == 4);
    }
}

}  // namespace
