// A rank's part of a model's file: a host::Error, or runs of blocks that lie in it and in the whole, each behind the one before. Inputs
// are a head and its runs; its checksum is made right, and as many bytes follow as it wants, if they are few.
#include "host/model/shard.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "host/base/error.h"
#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(shard) {
    using namespace fovea;
    constexpr std::uint64_t kMost = 1 << 20;
    std::vector<std::byte> file(size);
    if (size) std::memcpy(file.data(), data, size);
    host::ShardHead head;
    if (size >= sizeof head) {
        std::memcpy(&head, data, sizeof head);
        const std::uint64_t offset = host::blocks_offset(head.n_runs);
        std::vector<host::BlockRun> runs(
            std::min<std::size_t>(head.n_runs, (size - sizeof head) / sizeof(host::BlockRun)));
        if (!runs.empty()) std::memcpy(runs.data(), data + sizeof head, runs.size() * sizeof(host::BlockRun));
        if (runs.size() == head.n_runs) {
            head.head_crc = host::head_crc(head, runs);
            std::memcpy(file.data(), &head, sizeof head);
            std::uint64_t blocks = 0;
            for (const host::BlockRun& run : runs) {
                const std::uint64_t begin = run.first * host::kShardBlock;
                if (begin < head.whole_bytes) blocks += std::min(run.n * host::kShardBlock, head.whole_bytes - begin);
            }
            if (offset <= kMost && blocks <= kMost) file.resize(static_cast<std::size_t>(offset + blocks));
        }
    }
    try {
        const host::ShardPlaces read = host::read_shard("fuzz", file);
        std::uint64_t in_file = 0, in_whole = 0;
        for (const MappedPart& part : read.parts) {
            fuzz::promise(part.in_file % kPartAlignment == 0 && part.in_mapping % kPartAlignment == 0, "whole blocks");
            fuzz::promise(part.bytes && part.in_file >= in_file && part.in_mapping >= in_whole, "in order");
            in_file = part.in_file + part.bytes, in_whole = part.in_mapping + part.bytes;
            fuzz::promise(in_file <= file.size() && in_whole <= read.head.whole_bytes, "in the file and in the whole");
        }
        fuzz::promise(read.head.rank < read.head.n_ranks, "one of the ranks");
    } catch (const host::Error&) {
    }
    return 0;
}
