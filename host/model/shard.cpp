#include "host/model/shard.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "fovea/checksum.h"
#include "host/base/error.h"
#include "host/base/words.h"
#include "host/model/compared_ranks.h"

namespace fovea::host {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what, std::uint64_t expected, std::uint64_t got) {
    throw Error(path + ": " + what + ": expected " + with_separators(expected) + ", got " + with_separators(got));
}

void check_crc(const std::string& path, const char* what, std::uint32_t expected, std::uint32_t got) {
    if (expected != got)
        throw Error(path + ": checksum of " + what + ": expected " + hex(expected) + ", got " + hex(got));
}

/// The runs one behind the other, up to the file's end.
std::vector<MappedPart> places_of(const std::string& path, const ShardHead& head, std::span<const BlockRun> runs,
                                  std::uint64_t file_bytes) {
    const std::uint64_t whole = head.whole_bytes, n_blocks = whole / kShardBlock + (whole % kShardBlock != 0);
    std::vector<MappedPart> parts;
    std::uint64_t end = 0, at = blocks_offset(head.n_runs);
    for (const BlockRun& run : runs) {
        const std::uint64_t first = run.first, n = run.n;
        if (!n || first < end || first + n > n_blocks) refuse(path, "blocks of a run at most", n_blocks - end, n);
        end = first + n;
        const std::uint64_t bytes = std::min(n * kShardBlock, whole - first * kShardBlock);
        parts.push_back({at, first * kShardBlock, bytes});
        at += bytes;
    }
    if (at != file_bytes) refuse(path, "bytes of a part of a model", at, file_bytes);
    return parts;
}

std::string part_of(std::uint32_t rank, std::uint32_t n_ranks) {
    return "rank " + std::to_string(rank) + " of " + std::to_string(n_ranks);
}

void check_rank(const std::string& path, const Shard& shard) {
    const Ranks* ranks = used_ranks();
    const std::string its = part_of(shard.rank, shard.n_ranks);
    if (!ranks)
        throw Error(path + ": expected a whole model or mpirun -n " + std::to_string(shard.n_ranks) +
                    ", got the part of " + its + " in one process");
    if (shard.rank != ranks->rank || shard.n_ranks != ranks->n_ranks)
        throw Error(path + ": expected the part of " + part_of(ranks->rank, ranks->n_ranks) + ", got that of " + its);
}

}  // namespace

std::uint32_t head_crc(const ShardHead& head, std::span<const BlockRun> runs) noexcept {
    const auto bytes = std::as_bytes(std::span(&head, 1)).first(offsetof(ShardHead, head_crc));
    return crc32c(std::as_bytes(runs), crc32c(bytes));
}

std::uint64_t blocks_offset(std::uint64_t n_runs) noexcept {
    const std::uint64_t head = sizeof(ShardHead) + n_runs * sizeof(BlockRun);
    return (head + kShardBlock - 1) / kShardBlock * kShardBlock;
}

bool is_shard(std::span<const std::byte> file) noexcept {
    return file.size() >= sizeof kShardMagic && std::memcmp(file.data(), kShardMagic, sizeof kShardMagic) == 0;
}

ShardPlaces read_shard(const std::string& path, std::span<const std::byte> file) {
    ShardHead head;
    if (file.size() < sizeof head) refuse(path, "bytes of a part of a model at least", sizeof head, file.size());
    std::memcpy(&head, file.data(), sizeof head);
    if (head.major != 1) refuse(path, "version of a part's format", 1, head.major);
    if (file.size() < blocks_offset(head.n_runs))
        refuse(path, "bytes of a part of a model at least", blocks_offset(head.n_runs), file.size());
    std::vector<BlockRun> runs(head.n_runs);
    if (head.n_runs) std::memcpy(runs.data(), file.data() + sizeof head, runs.size() * sizeof(BlockRun));
    check_crc(path, "a part's head", head.head_crc, head_crc(head, runs));
    if (head.n_ranks < 2 || head.n_ranks > kMaxRanks) refuse(path, "ranks from 2 to", kMaxRanks, head.n_ranks);
    if (head.rank >= head.n_ranks) refuse(path, "rank at most", head.n_ranks - 1u, head.rank);
    if (!head.n_stages || head.n_ranks % head.n_stages) refuse(path, "stages that divide the ranks", 1, head.n_stages);
    return {head, places_of(path, head, runs, file.size())};
}

Opened open_shard(const std::string& path, std::span<const std::byte> file, const OpenOptions& options,
                  const std::string& name) {
    const auto [head, parts] = read_shard(path, file);
    Shard shard{.rank = head.rank, .n_ranks = head.n_ranks, .n_stages = head.n_stages};
    if (head.shares[0]) shard.shares.assign(head.shares, head.shares + head.n_ranks);
    if (options.verify_checksums)  // the whole's are of blocks that are not here
        check_crc(path, "a part's blocks", head.blocks_crc,
                  crc32c(file.subspan(static_cast<std::size_t>(blocks_offset(head.n_runs)))));
    check_rank(path, shard);
    Mapping mapping;
    require(map_parts(path.c_str(), parts, static_cast<std::size_t>(head.whole_bytes), mapping), path);
    Opened opened = open_bytes(mapping.bytes(), name);
    opened.mapping = std::move(mapping);
    opened.shard = std::move(shard);
    return opened;
}

}  // namespace fovea::host
