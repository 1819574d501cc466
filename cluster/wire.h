// Messages between a program and its workers over TCP: little-endian, as these structs lie in memory.
//
//     program                                       worker
//     Hello  ─────────────────────────────────────►
//            ◄───────────────────────────────────── Welcome, whether or not it is the same file
//     Request, parts, operand, addends ───────────►
//            ◄───────────────────────────────────── Reply, results
//     ... until the program closes the connection
//
// A request of no parts asks for nothing: its reply tells how long the way is.
#pragma once
#include <bit>
#include <cstdint>

#include "fovea/model.h"
#include "fovea/workspace.h"

namespace fovea::cluster {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::uint64_t kHelloMagic = 0x316b727761766f66;  // "fovawrk1"
inline constexpr std::uint32_t kRequestMagic = 0x71657266, kReplyMagic = 0x6c707266;

/// The file, and the order of operations, that both must share.
struct Identity {
    std::uint64_t file_bytes = 0;
    std::uint32_t fingerprint = 0;  // Model::fingerprint
    std::uint32_t numerics = 0;     // kNumericsVersion
    friend bool operator==(const Identity&, const Identity&) = default;
};
[[nodiscard]] inline Identity identity_of(const Model& model) noexcept {
    return {model.bytes().size(), model.fingerprint(), kNumericsVersion};
}

struct Hello {
    std::uint64_t magic = kHelloMagic;
    Identity identity;
};

struct Welcome {
    std::uint64_t magic = kHelloMagic;
    Identity identity;
    std::uint32_t n_threads = 0;
    std::uint32_t reserved = 0;
};

struct Request {
    std::uint32_t magic = kRequestMagic;
    std::uint32_t n_rows = 0;
    std::uint32_t n_parts = 0;  // MatrixPart each
    std::uint32_t reserved = 0;
    std::uint64_t operand_bytes = 0;
    std::uint64_t n_addends = 0;  // floats, of the parts that add
    std::uint64_t n_results = 0;  // floats
};

struct Reply {
    std::uint32_t magic = kReplyMagic;
    std::uint32_t code = 0;         // of the Status; not 0: no results follow, and the worker closes
    std::uint64_t nanoseconds = 0;  // that computing took
    std::uint64_t n_results = 0;
};

static_assert(sizeof(Hello) == 24 && sizeof(Welcome) == 32 && sizeof(Request) == 40 && sizeof(Reply) == 24);

/// MatrixPart::epilogue of the parts whose addends go along.
inline constexpr std::uint8_t kAdds = 1;

/// Most bytes of a request or its results: no machine can be made to take more memory.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

}  // namespace fovea::cluster
