// Standard input and output are descriptors: whatever they lead to, and from where they stand.
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <thread>

#include "tests/support/command_line.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

/// Two descriptors, closed at the end.
struct Ends {
    std::array<int, 2> fd{-1, -1};

    Ends() = default;
    Ends(const Ends&) = delete;
    Ends& operator=(const Ends&) = delete;
    ~Ends() {
        for (const int end : fd)
            if (end >= 0) close(end);
    }
    void close_second() { close(std::exchange(fd[1], -1)); }
};

/// A pair of sockets, as Node makes them for the processes it starts.
struct Sockets : Ends {
    Sockets() { REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fd.data()) == 0); }
};

/// What a command prints that reads this from a socket.
Ran from_socket(const std::vector<std::string>& arguments, const std::string& text) {
    Sockets ends;
    REQUIRE(write(ends.fd[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ends.close_second();
    return run_fovea(arguments, {.out_path = {}, .input = ends.fd[0], .environment = {}});
}

TEST_CASE("descriptors: standard input may be a socket, by each of its names") {
    const DemoFile demo;
    const std::vector<std::string> run{"run", demo.path, "-n", "8", "--quiet"};
    const auto with = [](std::vector<std::string> all, const std::vector<std::string>& more) {
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    const std::string expected = output_of(with(run, {"-p", "lights off"}));
    for (const std::vector<std::string>& given :
         {std::vector<std::string>{"-p", "-"}, {"-"}, {}, {"-f", "-"}, {"-f", "/dev/stdin"}, {"-f", "/dev/fd/0"}}) {
        const Ran ran = from_socket(with(run, given), "lights off\n");
        CAPTURE(ran.err);
        CHECK(ran.out == expected);
    }
    const std::string ids = output_of({"tokenize", demo.path, "-p", "lights off"});
    CHECK(from_socket({"tokenize", demo.path, "-f", "-"}, "lights off").out == ids);
    CHECK(from_socket({"tokenize", demo.path, "--jsonl", "-"}, "\"lights off\"\n").out == ids);
    CHECK(from_socket({"tokenize", demo.path, "--decode", "-"}, ids).out == "lights off\n");
    CHECK(from_socket({"run", demo.path, "--batch", "-", "-n", "8", "--quiet"}, "{\"prompt\": \"lights off\"}\n")
              .status == 0);
}

TEST_CASE("descriptors: standard output may be a socket, by each of its names") {
    const DemoFile demo;
    const std::string file = (demo.folder / "logits.npy").string(), batch = (demo.folder / "batch").string();
    REQUIRE(run_fovea({"logits", demo.path, "-p", "hi", "-o", file}).status == 0);
    write_text(batch, "{\"prompt\": \"lights off\"}\n");
    const std::string answers = output_of({"run", demo.path, "--batch", batch, "-n", "4", "--quiet"});
    const auto through_socket = [](const std::vector<std::string>& arguments) {
        Sockets ends;
        std::string got;
        std::thread reader([&] {
            char bytes[4096];
            for (ssize_t n = 0; (n = read(ends.fd[1], bytes, sizeof bytes)) > 0;)
                got.append(bytes, static_cast<std::size_t>(n));
        });
        CHECK(run_fovea(arguments, {.out_path = {}, .output = ends.fd[0], .environment = {}}).status == 0);
        close(std::exchange(ends.fd[0], -1));
        reader.join();
        return got;
    };
    for (const char* name : {"-", "/dev/stdout"}) {
        CHECK(through_socket({"logits", demo.path, "-p", "hi", "-o", name}) == read_text(file));
        CHECK(through_socket({"run", demo.path, "--batch", batch, "-n", "4", "--quiet", "-o", name}) == answers);
    }
}

TEST_CASE("descriptors: a file on standard input is read from where its descriptor stands") {
    const DemoFile demo;
    const std::string file = (demo.folder / "two").string(), front = "the first line\n";
    write_text(file, front + "lights off\n");
    const std::string expected = output_of({"run", demo.path, "-p", "lights off", "-n", "8", "--quiet"});
    for (const char* name : {"-", "/dev/stdin"}) {
        const int input = open(file.c_str(), O_RDONLY);
        REQUIRE(lseek(input, static_cast<off_t>(front.size()), SEEK_SET) > 0);
        const Ran ran = run_fovea({"run", demo.path, "-f", name, "-n", "8", "--quiet"},
                                  {.out_path = {}, .input = input, .environment = {}});
        CHECK(ran.out == expected);
        close(input);
    }
}

TEST_CASE(
    "descriptors: a file on standard output is written from where its descriptor stands, and what is printed follows") {
    const DemoFile demo;
    const std::string file = (demo.folder / "logits.npy").string(), both = (demo.folder / "both").string();
    REQUIRE(run_fovea({"logits", demo.path, "-p", "hi", "-o", file}).status == 0);
    const std::string top = output_of({"logits", demo.path, "-p", "hi", "--top", "2"});
    for (const std::string& name : {std::string("-"), std::string("/dev/stdout"), both}) {
        const int output = open(both.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        REQUIRE(write(output, "before\n", 7) == 7);
        const Ran ran = run_fovea({"logits", demo.path, "-p", "hi", "-o", name, "--top", "2"},
                                  {.out_path = {}, .output = output, .environment = {}});
        CAPTURE(ran.err);
        CHECK(ran.status == 0);
        CHECK(read_text(both) == "before\n" + read_text(file) + top);
        close(output);
    }
}

TEST_CASE("descriptors: who asks for standard input and closed it is told so") {
    const DemoFile demo;
    const RunSettings closed{.out_path = {}, .closed = 0, .environment = {}};
    const std::string words = "standard input: cannot be read: bad file descriptor\n";
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"run", demo.path, "-p", "-"},
          {"run", demo.path, "-f", "-"},
          {"run", demo.path, "--batch", "-"},
          {"tokenize", demo.path, "-f", "-"},
          {"tokenize", demo.path, "--jsonl", "-"},
          {"tokenize", demo.path, "--decode", "-"},
          {"convert", demo.path, "-o", (demo.folder / "x.fovea").string(), "--type", "q4", "--calibrate", "-"}})
        check_refused(arguments, 1, words, closed);
    check_refused({"chat", demo.path}, 1, "standard input: expected messages, a line each, got a descriptor", closed);
    CHECK(run_fovea({"run", demo.path, "-p", "hi", "-n", "2"}, closed).status == 0);  // who doesn't may
}

TEST_CASE("descriptors: a schema, a grammar and a template may come through a pipe") {
    const DemoFile demo;
    const std::string batch = (demo.folder / "batch").string();
    write_text(batch, "{\"prompt\": \"lights off\"}\n");
    const auto through_pipe = [](std::vector<std::string> arguments, const std::string& text) {
        Ends ends;
        REQUIRE(pipe(ends.fd.data()) == 0);
        REQUIRE(write(ends.fd[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
        ends.close_second();
        arguments.push_back("/dev/fd/" + std::to_string(ends.fd[0]));  // as <(…) gives it
        return output_of(arguments);
    };
    const std::string answer =
        through_pipe({"run", demo.path, "-p", "lights off", "-n", "60", "--quiet", "--json-schema"},
                     R"({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]})");
    CHECK(json::parse(answer)["a"].is_boolean());
    CHECK(through_pipe({"run", demo.path, "-p", "lights off", "-n", "60", "--quiet", "--grammar"},
                       "root ::= \"yes\"") == "yes\n");
    const std::string line = through_pipe({"run", demo.path, "--batch", batch, "-n", "60", "--quiet", "--json-schema"},
                                          R"({"enum": ["on"]})");
    CHECK(json::parse(line)["text"] == "\"on\"");
}

}  // namespace
}  // namespace fovea::testing
