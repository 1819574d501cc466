// A rank's part of a model's file: the blocks of 64 KiB that it reads, in order. Mapped, each lies where it does in the whole, so what
// opens and computes a model sees the whole file; other ranks' blocks are zero and take no memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/host/opened.h"
#include "fovea/mapping.h"
#include "fovea/ranks.h"

namespace fovea::host {

inline constexpr std::byte kShardMagic[8] = {std::byte{'F'}, std::byte{'o'},  std::byte{'v'},  std::byte{'P'},
                                             std::byte{'t'}, std::byte{0x0d}, std::byte{0x0a}, std::byte{0x1a}};
inline constexpr std::uint64_t kShardBlock = kPartAlignment;

/// What a shard begins with; then its runs, and from the next multiple of a block's bytes on the blocks.
struct ShardHead {
    std::byte magic[8] = {};
    std::uint16_t major = 1;
    std::uint8_t rank = 0, n_ranks = 0, n_stages = 1, reserved = 0;
    std::uint16_t reserved_too = 0;
    std::uint64_t whole_bytes = 0;  // of the model's file
    std::uint32_t n_runs = 0;
    std::uint32_t blocks_crc = 0;         // CRC-32C of the blocks
    std::uint8_t shares[kMaxRanks] = {};  // as RankSplit has them; zeros: even ones
    std::uint8_t reserved_last[28] = {};
    std::uint32_t head_crc = 0;  // CRC-32C of the bytes before, and of the runs
};
static_assert(sizeof(ShardHead) == 128);

/// Successive blocks of the whole file.
struct BlockRun {
    std::uint32_t first = 0, n = 0;
};

[[nodiscard]] std::uint32_t head_crc(const ShardHead& head, std::span<const BlockRun> runs) noexcept;
/// Where the blocks begin.
[[nodiscard]] std::uint64_t blocks_offset(std::uint64_t n_runs) noexcept;

[[nodiscard]] bool is_shard(std::span<const std::byte> file) noexcept;

/// A shard's head, and where its runs lie in it and in the whole: in order, each behind the one before.
struct ShardPlaces {
    ShardHead head;
    std::vector<MappedPart> parts;
};
/// Throws host::Error, which begins with `path`.
[[nodiscard]] ShardPlaces read_shard(const std::string& path, std::span<const std::byte> file);

/// Opens the shard at `path`, whose bytes are `file`, as open_file does. Throws host::Error where this process is not the rank whose
/// part it is.
[[nodiscard]] Opened open_shard(const std::string& path, std::span<const std::byte> file, const OpenOptions& options,
                                const std::string& name);

}  // namespace fovea::host
