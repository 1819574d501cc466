// Arrays in files, and hashes of what is in them.
#include <doctest/doctest.h>

#include <bit>
#include <cstring>

#include "host/base/npy.h"
#include "tests/support/convert_fixtures.h"
#include "tools/measure/trace_hash.h"

namespace fovea::testing {
namespace {

using namespace std::string_literals;

std::string npy(const std::string& dictionary, const std::string& data, char version = 1) {
    std::string file = "\x93NUMPY";
    file += version;
    file += '\0';
    const std::size_t n = dictionary.size();
    file += static_cast<char>(n & 0xff);
    file += static_cast<char>(n >> 8);
    if (version > 1) file += std::string(2, '\0');
    return file + dictionary + data;
}

std::string refused(const TemporaryFolder& folder, const std::string& content) {
    const fs::path path = folder / "array.npy";
    write_text(path, content);
    return refusal_of([&] { (void)read_ids(read_npy(path.string())); });
}

TEST_CASE("npy: what is written is read, and nothing is left of what is not finished") {
    const TemporaryFolder folder;
    const std::string path = (folder / "array.npy").string();
    const std::vector<float> values{1, -2, 0.5f, 1e-40f, 3, 4};
    for (const std::vector<std::uint64_t>& shape :
         {std::vector<std::uint64_t>{6}, std::vector<std::uint64_t>{2, 3}, std::vector<std::uint64_t>{1, 3, 2}}) {
        NpyWriter writer(path, shape);
        writer.append(std::span(values).first(4));
        writer.append(std::span(values).last(2));
        writer.close();
        const NpyArray array = read_npy(path);
        CHECK(array.shape == shape);
        CHECK(array.type == "f4");
        CHECK(reinterpret_cast<std::uintptr_t>(array.data.data()) % 64 == 0);
        CHECK(std::memcmp(array.data.data(), values.data(), 24) == 0);
    }
    const std::uint64_t shape[] = {6};
    { NpyWriter abandoned((folder / "other.npy").string(), shape); }
    CHECK(folder.n_files() == 1);
    CHECK(refusal_of([&] { NpyWriter writer((folder / "no/folder.npy").string(), shape); }) != "");
}

TEST_CASE("npy: ids of every integer type") {
    const TemporaryFolder folder;
    const auto ids = [&](const char* type, const std::string& data, char version = 1) {
        const std::string header = std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': (2,), }\n";
        write_text(folder / "ids.npy", npy(header, data, version));
        return read_ids(read_npy((folder / "ids.npy").string()));
    };
    const std::vector<Token> want{5, 7};
    CHECK(ids("|u1", "\5\7") == want);
    CHECK(ids("<u2", "\5\0\7\0"s) == want);
    CHECK(ids("<i2", "\5\0\7\0"s) == want);
    CHECK(ids("<i4", "\5\0\0\0\7\0\0\0"s) == want);
    CHECK(ids("<u4", "\5\0\0\0\7\0\0\0"s, 2) == want);
    CHECK(ids("<i8", "\5\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0"s, 3) == want);
    CHECK(ids("<f4", "\0\0\xa0\x40\0\0\xe0\x40"s) == want);
    CHECK(ids("<u8", "\5\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0"s) == want);
}

TEST_CASE("npy: Fortran's order is read as the same array") {
    const TemporaryFolder folder;
    // np.save of np.asfortranarray(np.arange(24).reshape(2, 3, 4)): element [i, j, k] lies at i + 2 j + 6 k.
    std::string data(24, '\0');
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 4; ++k)
                data[static_cast<std::size_t>(i + 2 * j + 6 * k)] = static_cast<char>(12 * i + 4 * j + k);
    const auto read = [&](const char* shape, const std::string& bytes) {
        const std::string header = std::string("{'descr': '|u1', 'fortran_order': True, 'shape': ") + shape + ", }\n";
        write_text(folder / "turned.npy", npy(header, bytes));
        return read_ids(read_npy((folder / "turned.npy").string()));
    };
    const std::vector<Token> ids = read("(2, 3, 4)", data);
    REQUIRE(ids.size() == 24);
    for (Token i = 0; i < 24; ++i) CHECK(ids[i] == i);
    CHECK(read("(3,)", "\1\2\3") == std::vector<Token>{1, 2, 3});
    CHECK(read("(2, 0)", "").empty());
    CHECK(contains(refused(folder, npy("{'descr': '|u1', 'fortran_order': Maybe, 'shape': (2,), }\n", "ab")),
                   "'fortran_order' of True or False"));
}

TEST_CASE("npy: files that are not what they should be") {
    const TemporaryFolder folder;
    const auto header = [](const char* type, const char* order, const char* shape) {
        return std::string("{'descr': ") + type + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
    };
    const std::string good = npy(header("'|u1'", "False", "(2,)"), "ab");
    CHECK(refused(folder, good) == "");
    for (std::size_t n = 0; n < good.size(); ++n) CHECK(refused(folder, good.substr(0, n)) != "");
    CHECK(contains(refused(folder, "GIF89a......"), "expected an .npy file, got another kind"));
    CHECK(contains(refused(folder, npy(header("'|u1'", "False", "(3,)"), "ab")), "no more elements"));
    CHECK(contains(refused(folder, npy(header("'|u1'", "False", "(1,)"), "ab")), "data bytes: expected 1, got 2"));
    CHECK(contains(refused(folder, npy(header("'>i2'", "False", "(1,)"), "ab")), "little-endian"));
    CHECK(contains(refused(folder, npy(header("'<c8'", "False", "(1,)"), "abcdefgh")), "integers, floats or booleans"));
    CHECK(contains(refused(folder, npy(header("[('a', '<i4')]", "False", "(1,)"), "abcd")), "one type"));
    CHECK(contains(refused(folder, npy(header("'<f4'", "False", "(1,)"), "\0\0\0?"s)), "got 0.5"));
    CHECK(contains(refused(folder, npy(header("'<f4'", "False", "(1,)"), "\0\0\xc0\x7f"s)), "got nan"));
    CHECK(contains(refused(folder, npy(header("'<f2'", "False", "(1,)"), "ab")), "expected whole numbers, got f2"));
    CHECK(contains(refused(folder, npy(header("'|i1'", "False", "(-1,)"), "")), "whole numbers"));
    CHECK(contains(refused(folder, npy(header("'<i2'", "False", "(1,)"), "\xff\xff")), "got -1"));
    CHECK(contains(refused(folder, npy(header("'<u8'", "False", "(1,)"), "\1\1\1\1\1\1\1\1")),
                   "token ids: expected whole numbers from 0 to"));
    const std::string huge = "(18446744073709551615, 18446744073709551615)";
    CHECK(contains(refused(folder, npy(header("'|u1'", "False", huge.c_str()), "ab")), "smaller 'shape'"));
    CHECK(contains(refused(folder, npy(header("'<u8'", "False", "(1125899906842624, 1125899906842624)"), "ab")),
                   "no more"));
    CHECK(contains(refused(folder, npy("{}", "")), "'descr'"));
}

TEST_CASE("trace: the first operation that differs is found, however the rows came") {
    const auto traced = [](std::initializer_list<float> rows, bool with_last) {
        Tracer tracer;
        const Trace tap = tracer.tap();
        std::uint32_t pos = 0;
        for (const float row : rows) {
            tap.call(tap.context, pos, 0, "embedding", {&row, 1});
            const float fixed = 1;
            tap.call(tap.context, pos++, 1, "block", {&fixed, 1});
        }
        const float last = 2;
        if (with_last) tap.call(tap.context, 0, 2, "logits", {&last, 1});
        return tracer.operations();
    };
    const auto a = traced({1, 2}, true);
    REQUIRE(a.size() == 3);
    CHECK(first_difference(a, traced({1, 2}, true)) == nullptr);
    const auto b = traced({1, 3}, true);
    REQUIRE(first_difference(a, b) != nullptr);
    CHECK(first_difference(a, b)->operation == "embedding");
    const auto shorter = traced({1, 2}, false);
    CHECK(first_difference(a, shorter)->operation == "logits");
    CHECK(first_difference(shorter, a)->operation == "logits");
    const float values[] = {1, 2, 3}, negated[] = {1, 2, -3};
    CHECK(hash_bits(std::span(values).subspan(1), hash_bits(std::span(values).first(1))) == hash_bits(values));
    CHECK(hash_bits(values) != hash_bits(negated));
}

}  // namespace
}  // namespace fovea::testing
