// A source where a Fovea file is expected: converted once into the user's cache folder, found there the next time.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>

#include "convert/open/cached.h"
#include "tests/support/command_line.h"

namespace fovea::testing {
namespace {

const std::string kGguf = FOVEA_GOLDEN_DIR "/gguf/gpt2.gguf";

/// A cache folder of its own, and runs that use it.
struct Cache {
    TemporaryFolder home;
    fs::path folder = home / "fovea";
    RunSettings settings{.out_path = {}, .environment = {"XDG_CACHE_HOME=" + home.path().string()}};

    [[nodiscard]] std::vector<std::string> files() const {
        std::vector<std::string> names;
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(folder, error))
            names.push_back(entry.path().filename().string());
        std::sort(names.begin(), names.end());
        return names;
    }
    /// The logits of a source, which it prints so many notes about.
    [[nodiscard]] std::string logits(const std::string& source, int n_notes) const {
        const Ran ran =
            run_fovea({"logits", source, "--tokens", "1,2,3", "-o", (home / "logits.npy").string()}, settings);
        CAPTURE(ran.err);
        CHECK(ran.status == 0);
        CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == n_notes);
        if (n_notes) CHECK(contains(ran.err, " was converted into " + folder.string() + "/"));
        return read_text(home / "logits.npy");
    }
};

TEST_CASE("cli: a source is converted once, and computes what its Fovea file does") {
    const Cache cache;
    for (const std::string& source : {kGguf, (golden_models() / "qwen3").string()}) {
        const std::string file = (cache.home / "own.fovea").string();
        CHECK(run_fovea({"convert", source, "-o", file}).status == 0);
        const std::string expected = cache.logits(file, 0);
        CHECK(cache.logits(source, 1) == expected);
        CHECK(cache.logits(source, 0) == expected);
    }
    const std::vector<std::string> files = cache.files();
    REQUIRE(files.size() == 2);
    CHECK(files[0].starts_with("gpt2.gguf-"));
    CHECK(files[1].starts_with("qwen3-"));
    struct stat there {};
    REQUIRE(stat(cache.folder.c_str(), &there) == 0);
    CHECK((there.st_mode & 0777) == 0700);
}

TEST_CASE("cli: a source that has changed is converted anew, and so is what was damaged") {
    const Cache cache;
    const fs::path source = cache.home / "m.gguf";
    fs::copy_file(kGguf, source);
    const std::string expected = cache.logits(source.string(), 1);
    const std::vector<std::string> before = cache.files();
    fs::last_write_time(source, fs::last_write_time(source) + std::chrono::seconds(1));
    CHECK(cache.logits(source.string(), 1) == expected);
    REQUIRE(cache.files().size() == 1);
    CHECK(cache.files() != before);
    write_text(cache.folder / cache.files()[0].c_str(), "damaged");
    CHECK(cache.logits(source.string(), 1) == expected);
    CHECK(cache.logits(source.string(), 0) == expected);
}

TEST_CASE("cli: a source that is replaced by one of its size and time is converted anew") {
    const Cache cache;
    const fs::path source = cache.home / "m.gguf";
    const std::string bytes = read_text(kGguf);
    write_text(source, bytes);
    const auto time = fs::last_write_time(source);
    const std::string before = cache.logits(source.string(), 1);
    std::string other = bytes;  // other weights, in place, as `cp -p` writes them
    for (std::size_t at = bytes.size() - 5000; at < bytes.size(); at += 16)
        other[at] = static_cast<char>(other[at] ^ 1);
    write_text(source, other);
    fs::last_write_time(source, time);
    CHECK(cache.logits(source.string(), 1) != before);
    write_text(cache.home / "n.gguf", bytes);  // another file in its place, as in an image that is made anew
    fs::last_write_time(cache.home / "n.gguf", time);
    fs::rename(cache.home / "n.gguf", source);
    CHECK(cache.logits(source.string(), 1) == before);
    CHECK(cache.files().size() == 1);
}

TEST_CASE("cli: another version's conversions stay as long as they are used, and what a killed one left goes") {
    const Cache cache;
    const fs::path source = cache.home / "m.gguf";
    fs::copy_file(kGguf, source);
    (void)cache.logits(source.string(), 1);
    const fs::path own = cache.folder / cache.files()[0].c_str();
    const std::string name = own.filename().string(), of_source = name.substr(0, name.find('-') + 18);
    const fs::path used = cache.folder / (of_source + "0123456789abcdef-of_another_version.fovea").c_str(),
                   unused = cache.folder / (of_source + "fedcba9876543210-of_a_third.fovea").c_str(),
                   left = cache.folder / (of_source + "of_any_version.fovea.part-77").c_str(),
                   others = cache.folder / "n.gguf-of_another_source.fovea.part-77";
    const auto now = fs::file_time_type::clock::now();
    for (const fs::path& file : {used, unused, left, others}) write_text(file, "kept");
    fs::last_write_time(used, now - std::chrono::hours(24 * 29));
    fs::last_write_time(unused, now - std::chrono::hours(24 * 31));
    fs::last_write_time(own, now - std::chrono::hours(24 * 31));
    (void)cache.logits(source.string(), 0);
    CHECK(fs::last_write_time(own) > now - std::chrono::hours(1));  // it is in use
    fs::last_write_time(source, now + std::chrono::seconds(1));
    (void)cache.logits(source.string(), 1);
    for (const fs::path& file : {used, others}) CHECK(fs::exists(file));
    for (const fs::path& file : {unused, left, own}) CHECK_FALSE(fs::exists(file));
}

TEST_CASE("cli: a source that cannot be converted is refused in one line and leaves nothing") {
    const Cache cache;
    const TemporaryFolder empty;
    check_refused({"inspect", empty.path().string()}, 1, "config.json: no such file", cache.settings);
    const std::string torn = (cache.home / "torn.gguf").string();
    write_text(torn, read_text(kGguf).substr(0, 1000));
    check_refused({"inspect", torn}, 1, "torn.gguf: ", cache.settings);
    CHECK(cache.files().empty());
    check_refused({"inspect", kGguf}, 1,
                  "cache folder: expected XDG_CACHE_HOME or HOME in the environment, got neither",
                  {.out_path = {}, .environment = {"XDG_CACHE_HOME=", "HOME="}});
    write_text(cache.home / "file", "no folder");
    check_refused({"inspect", kGguf}, 1, "cannot be made: ",
                  {.out_path = {}, .environment = {"XDG_CACHE_HOME=" + (cache.home / "file").string()}});
}

}  // namespace
}  // namespace fovea::testing
