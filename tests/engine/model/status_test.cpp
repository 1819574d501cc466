// Errors in words, and the file's checksum.
#include "fovea/status.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fovea/checksum.h"
#include "fovea/fovea.h"

namespace {

using namespace fovea;

std::string line(const Status& status) { return StatusLine(status).c_str(); }

TEST_CASE("status: what was wanted and what was had") {
    CHECK(line({Code::arena_too_small, "arena bytes", 1843200, 1048576}) ==
          "arena too small: arena bytes: expected 1843200, got 1048576");
    CHECK(line({Code::section_missing, "tokenizer", 0, 0}) == "section missing: tokenizer");
    CHECK(line({Code::io_error, "open", 0, 2}) == "input or output failed: open, system error 2");
    CHECK(line({Code::bad_magic, "", 0, 0}) == "not a Fovea file");
    CHECK(line({Code::truncated, "", 64, 0}) == "truncated: expected 64, got 0");
    CHECK(line({Code::truncated, nullptr, 64, 0}) == "truncated: expected 64, got 0");
    CHECK(line({}) == "ok");
    constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
    CHECK(line({Code::bad_shape, "logits", kMax, kMax - 1}) ==
          "bad shape: logits: expected 18446744073709551615, got 18446744073709551614");
    CHECK(line({Code::tensor_invalid, "out of order: tensor", 5, 5}) == "tensor invalid: out of order: tensor 5");
    CHECK(line({Code::tensor_missing, "query", 0, 0}) == "tensor missing: query");
}

TEST_CASE("status: every code has a name of its own, and numbers that are no code have one too") {
    std::set<std::string> names;
    constexpr int kCodes = FOVEA_N_CODES;
    for (int code = 0; code < kCodes; ++code) names.insert(name(static_cast<Code>(code)));
    CHECK(names.size() == kCodes);
    CHECK(names.count(name(static_cast<Code>(kCodes))) == 0);
    CHECK(names.count(name(static_cast<Code>(255))) == 0);
}

TEST_CASE("status: both interfaces have the same codes, whose numbers stay") {
    constexpr std::pair<Code, int> kCodes[] = {
#define FOVEA_CODE(name, NAME, words) {Code::name, FOVEA_##NAME},
#include "fovea/codes.inc"
#undef FOVEA_CODE
    };
    int number = 0;
    for (const auto& [code, c] : kCodes) {
        CHECK(c == number);
        CHECK(static_cast<int>(code) == number++);
    }
    CHECK(number == FOVEA_N_CODES);
    // What programs were compiled with: one in the middle that moved would have moved the last.
    CHECK(FOVEA_TRUNCATED == 1);
    CHECK(FOVEA_UNSUPPORTED == 11);
    CHECK(FOVEA_IO_ERROR == 20);
    CHECK(FOVEA_POOL_FULL == 24);
}

TEST_CASE("status: a line is cut off where it does not fit, and nothing is written past it") {
    const Status status{Code::arena_too_small, "arena bytes", 1843200, 1048576};
    const std::string whole = line(status);
    for (std::size_t room = 0; room <= whole.size() + 1; ++room) {
        std::vector<char> text(room + 1, '#');
        const std::string_view written = describe(status, std::span(text).first(room));
        CHECK(written == whole.substr(0, room));
        CHECK(text[room] == '#');
    }
}

TEST_CASE("status: a line of its own is ended by a zero, however long the text") {
    const std::string what(300, 'x');
    const StatusLine cut({Code::bad_shape, what.c_str(), 1, 2});
    CHECK(cut.view() == "bad shape: " + what.substr(0, 149));
    CHECK(cut.c_str() == std::string(cut.view()));
    CHECK(StatusLine({}).view() == "ok");
}

TEST_CASE("crc32c: the values of RFC 3720, appendix B.4, and the usual check") {
    std::vector<std::byte> bytes(32);
    CHECK(crc32c(bytes) == 0x8a9136aau);
    for (auto& b : bytes) b = std::byte{0xff};
    CHECK(crc32c(bytes) == 0x62a8ab43u);
    for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(i);
    CHECK(crc32c(bytes) == 0x46dd794eu);
    for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(31 - i);
    CHECK(crc32c(bytes) == 0x113fdb5cu);
    CHECK(crc32c(std::as_bytes(std::span("123456789", 9))) == 0xe3069283u);
    CHECK(crc32c({}) == 0);
}

TEST_CASE("crc32c: pieces give what the whole gives, at every length and alignment") {
    std::vector<std::byte> bytes(100);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 151 + 7);
    const std::span<const std::byte> all = bytes;
    for (std::size_t cut = 0; cut <= all.size(); ++cut)
        CHECK(crc32c(all.subspan(cut), crc32c(all.first(cut))) == crc32c(all));
    // One bit anywhere changes it.
    const std::uint32_t before = crc32c(all);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] ^= std::byte{0x10};
        CHECK(crc32c(all) != before);
        bytes[i] ^= std::byte{0x10};
    }
}

}  // namespace
