// Faults that no input makes: each call of the system and of the allocator failing in turn, signals, a full disk. The
// command line then says one line, and what it was writing is there whole or as it was before.
#include <doctest/doctest.h>
#include <sys/mount.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "host/model/listing.h"
#include "tests/support/command_line.h"
#include "tests/support/small_models.h"

#if defined(FOVEA_FAULTS)

namespace fovea::testing {
namespace {

using Arguments = std::vector<std::string>;

struct Faulted {
    bool reached = false;  ///< there was such a call
    Ran ran;
};

/// Runs a command whose calls fail as `fault` says, see tests/programs/fail_nth.c.
Faulted run_faulted(const Arguments& arguments, const std::string& fault) {
    int reports[2] = {-1, -1};
    REQUIRE(pipe(reports) == 0);
    RunSettings settings;
    settings.environment = {"LD_PRELOAD=" FOVEA_FAULTS, "FOVEA_FAULT=" + fault,
                            "FOVEA_FAULT_FD=" + std::to_string(reports[1])};
    Faulted faulted;
    faulted.ran = run_fovea(arguments, settings);
    close(reports[1]);
    char byte = 0;
    faulted.reached = read(reports[0], &byte, 1) == 1;
    close(reports[0]);
    return faulted;
}

/// One command, and the file it writes.
struct Command {
    const char* name;
    Arguments arguments;
    fs::path output;
};

struct Counts {
    std::size_t n_faults = 0, n_refused = 0;
};

void check_fault(const TemporaryFolder& folder, const Command& command, const std::string& old,
                 const std::string& whole, const std::string& fault, Counts& counts, bool& reached) {
    write_text(command.output, old);
    const std::size_t n_files = folder.n_files();
    const Faulted f = run_faulted(command.arguments, fault);
    const std::string name = command.name;
    CAPTURE(name);
    CAPTURE(fault);
    CAPTURE(f.ran.err);
    reached = f.reached;
    if (!reached) return;
    ++counts.n_faults;
    const std::string now = read_text(command.output);
    CHECK(folder.n_files() == n_files);
    CHECK((f.ran.status == 0 || f.ran.status == 1));
    if (f.ran.status == 0) {  // the call was one that it can do without
        CHECK(now == whole);
        return;
    }
    ++counts.n_refused;
    CHECK((now == old || now == whole));  // whole where it was in place already, and what was to be said of it failed
    REQUIRE(f.ran.err.ends_with('\n'));
    const std::size_t line = f.ran.err.rfind('\n', f.ran.err.size() - 2) + 1;  // the last one
    CHECK(f.ran.err.compare(line, 7, "fovea: ") == 0);
    CHECK((line == 0 || now == whole));
}

/// Every call failing takes minutes (`./dev faults`); otherwise the first few, some of the rest, and the last.
bool all_faults() { return std::getenv("FOVEA_ALL_FAULTS") != nullptr; }

}  // namespace

TEST_CASE("faults: whichever call of the system or the allocator fails, one line, and no file that is not whole") {
    const TemporaryFolder folder;
    const std::string model = (golden_models() / "llama_tied").string();
    const std::string query = (folder / "query.npy").string();
    {
        const std::uint64_t shape[] = {1, 4, 8};
        NpyWriter writer(query, shape);
        writer.append(std::vector<float>(32, 0.5f));
        writer.close();
    }
    const auto in = [&](const char* name) { return (folder / name).string(); };
    const Command commands[] = {
        {"convert", {"convert", model, "--type", "q8", "--threads", "1", "-o", in("out")}, folder / "out"},
        {"convert on threads", {"convert", model, "--type", "q4", "--threads", "3", "-o", in("out")}, folder / "out"},
        {"run",  // OpenMP's library ends the process where a thread is refused
         {"run", "-p", "lights off", "-n", "2", "--threads", "3", "--executor", "own", "--session", in("kept")},
         folder / "kept"},
        {"attend", {"attend", "--query", query, "--threads", "1", "-o", in("y.npy")}, folder / "y.npy"},
        {"embed", {"embed", in("small.fovea"), "-o", in("small.S")}, folder / "small.S"},
    };
    (void)output_of({"convert", model, "--type", "q4", "-o", in("small.fovea")});
    for (const Command& command : commands) {
        fs::remove(command.output);
        (void)output_of(command.arguments);
        const std::string whole = read_text(command.output);
        // A session is read before it is written, so the old one must be good.
        const std::string old = std::string(command.name) == "run" ? whole : kOlderFile;
        for (const std::string name :
             {"open", "read", "write", "fsync", "rename", "mmap", "pthread_create", "malloc"}) {
            Counts counts;
            const auto reaches = [&](std::size_t n, const char* and_more = "") {
                bool reached = false;
                check_fault(folder, command, old, whole, name + ":" + std::to_string(n) + and_more, counts, reached);
                return reached;
            };
            std::size_t n = 1, last = 0;
            for (; reaches(n); n += all_faults() ? 1 : n) last = n;
            while (n - last > 1) {
                const std::size_t middle = last + (n - last) / 2;
                (reaches(middle) ? last : n) = middle;
            }
            if (!all_faults())  // the last ones too, where a file is made and finished
                for (n = last > 40 ? last - 40 : 1; n < last; ++n) static_cast<void>(reaches(n));
            for (n = 1; n < 100 && reaches(n, "+"); n *= 3) {  // and all that follow it
            }
            // Every command makes a file of what it maps; only some read, flush or share the work.
            if (name != "read" && name != "fsync" && name != "pthread_create") CHECK(counts.n_faults > 0);
            if (all_faults())
                std::printf("%s: %zu faults of %s, %zu refused\n", command.name, counts.n_faults, name.c_str(),
                            counts.n_refused);
        }
    }
}

TEST_CASE("faults: where no more threads can be made, a session says so") {
    for (const std::string fault : {"pthread_create:1+", "pthread_create:2+", "pthread_create:2"}) {
        const Faulted f = run_faulted({"run", "-p", "lights off", "--threads", "3", "--executor", "own"}, fault);
        CAPTURE(fault);
        CHECK(f.reached);
        CHECK(f.ran.status == 1);
        CHECK(f.ran.err == "fovea: demo: threads unavailable: threads: expected 3, got 1\n");
    }
}

TEST_CASE("faults: signals during convert leave the old file whole, and those that can be caught no other") {
    const TemporaryFolder folder;
    const fs::path out = folder / "out";
    const Arguments convert{"convert", (golden_models() / "llama_tied").string(), "-o", out.string()};
    const auto at = [&](const std::string& call, char signal) {
        write_text(out, kOlderFile);
        const Faulted f = run_faulted(convert, call + signal);
        CAPTURE(call);
        CAPTURE(signal);
        REQUIRE(f.reached);
        CHECK(f.ran.status == -1);
        CHECK(read_text(out) == kOlderFile);
        CHECK(folder.n_files() == (signal == 'k' ? 2 : 1));
        for (const auto& entry : fs::directory_iterator(folder.path()))
            if (entry.path() != out) fs::remove(entry.path());
    };
    for (const char signal : {'k', 'i', 't'})
        for (const std::string call : {"write:1", "write:2", "fsync:1", "rename:1"}) at(call, signal);
    (void)output_of(convert);
    CHECK_FALSE(tensors(Converted(out).model).empty());

    const std::string kept = (folder / "kept").string();
    const Arguments run{"run", "-p", "lights off", "-n", "2", "--session", kept};
    (void)output_of(run);
    const std::string whole = read_text(kept);
    for (const char signal : {'i', 't'})
        for (const std::string call : {"write:1", "rename:1"}) {
            CHECK(run_faulted(run, call + signal).ran.status == -1);
            CHECK(read_text(kept) == whole);
            CHECK(folder.n_files() == 2);
        }
}

TEST_CASE("faults: a disk that is full in the middle of a file") {
    const TemporaryFolder folder;
    const auto model = (golden_models() / "llama_tied").string();
    const auto refused = [&](const fs::path& place, const RunSettings& settings, const std::string& converting,
                             const std::string& embedding) {
        const fs::path out = place / "out";
        write_text(out, kOlderFile);
        check_refused({"convert", model, "-o", out.string()}, 1, converting, settings);
        check_refused({"embed", (folder / "m.fovea").string(), "-o", out.string()}, 1, embedding, settings);
        CHECK(read_text(out) == kOlderFile);
        CHECK(std::distance(fs::directory_iterator(place), fs::directory_iterator()) == 1);
    };
    (void)output_of({"convert", model, "-o", (folder / "m.fovea").string()});
    fs::create_directory(folder / "full");
    RunSettings settings;
    settings.file_bytes = 70000;
    refused(folder / "full", settings, "file too large", "file too large");
    if (mount("tmpfs", (folder / "full").c_str(), "tmpfs", 0, "size=64k") != 0) {
        MESSAGE("skipped: a small file system of our own wants rights that this user has not");
        return;
    }
    refused(folder / "full", {}, "out: expected room for ", "no space left on device");
    CHECK(umount((folder / "full").c_str()) == 0);
}

TEST_CASE("faults: what is written to need not be a file, and a link stays one") {
    const DemoFile demo;
    const std::string link = (demo.folder / "link.npy").string();
    write_text(demo.folder / "target.npy", "");
    fs::create_symlink("target.npy", link);
    const auto logits = [&](const std::string& output) {
        return output_of({"logits", demo.path, "--tokens", "1,2", "-o", output});
    };
    CHECK(logits(link) == "");
    CHECK(fs::is_symlink(link));
    CHECK(logits("/dev/stdout") == read_text(demo.folder / "target.npy"));
    CHECK(demo.folder.n_files() == 3);
    (void)logits("/dev/null");
    CHECK_FALSE(fs::is_regular_file("/dev/null"));
    CHECK(logits("/dev/stdout").size() > 4096);
}

}  // namespace fovea::testing

#endif
