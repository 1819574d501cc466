#include "convert/open/shards.h"

#include <algorithm>
#include <cstring>

#include "fovea/checksum.h"
#include "fovea/ranks.h"
#include "host/base/error.h"
#include "host/base/output_file.h"
#include "host/model/compared_ranks.h"
#include "host/model/listing.h"
#include "host/model/shard.h"

namespace fovea {
namespace {

using host::kShardBlock;

/// Blocks with anything that the rank reads. A block is left out where all of it is a tensor's panels of other ranks.
std::vector<host::BlockRun> runs_of(const Model& model, const Limits& limits) {
    const std::uint64_t n_blocks = (model.bytes().size() + kShardBlock - 1) / kShardBlock;
    std::vector<bool> left_out(static_cast<std::size_t>(n_blocks));
    const auto leave_out = [&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t i = (begin + kShardBlock - 1) / kShardBlock; (i + 1) * kShardBlock <= end; ++i)
            left_out[static_cast<std::size_t>(i)] = true;
    };
    std::uint32_t i = 0;
    for (const TensorInfo& tensor : tensors(model)) {
        const FileRange range = rank_range(model, i++, limits);
        leave_out(tensor.offset, range.begin);
        leave_out(range.end, tensor.offset + tensor.bytes);
    }
    std::vector<host::BlockRun> runs;
    for (std::uint32_t block = 0; block < n_blocks; ++block) {
        if (left_out[block]) continue;
        if (runs.empty() || runs.back().first + runs.back().n != block) runs.push_back({block, 0});
        ++runs.back().n;
    }
    return runs;
}

class ShardWriter {
public:
    ShardWriter(const host::Opened& whole, const RankSplit& split, std::uint32_t n_ranks, const Progress& progress)
        : bytes_(whole.model.bytes()), split_(split), n_ranks_(n_ranks), progress_(progress) {
        for (std::uint32_t rank = 0; rank < n_ranks; ++rank) {
            const Limits limits{.rank = static_cast<std::uint8_t>(rank),
                                .n_ranks = static_cast<std::uint8_t>(n_ranks),
                                .split = &split};
            (void)host::plan_alone(whole, limits);  // which refuses what ranks do not share so
            runs_.push_back(runs_of(whole.model, limits));
            for (const host::BlockRun& run : runs_.back()) all_bytes_ += bytes_of(run).size();
        }
    }

    void write(std::uint32_t rank, const std::string& path) {
        const std::vector<host::BlockRun>& runs = runs_[rank];
        host::ShardHead head{.rank = static_cast<std::uint8_t>(rank),
                             .n_ranks = static_cast<std::uint8_t>(n_ranks_),
                             .n_stages = split_.n_stages,
                             .whole_bytes = bytes_.size(),
                             .n_runs = static_cast<std::uint32_t>(runs.size())};
        std::memcpy(head.magic, host::kShardMagic, sizeof head.magic);
        if (split_.shares) std::copy_n(split_.shares, n_ranks_, head.shares);
        for (const host::BlockRun& run : runs) head.blocks_crc = crc32c(bytes_of(run), head.blocks_crc);
        head.head_crc = host::head_crc(head, runs);
        OutputFile file(path);
        const auto put = [&](std::span<const std::byte> bytes) {
            file.stream().write(reinterpret_cast<const char*>(bytes.data()),
                                static_cast<std::streamsize>(bytes.size()));
        };
        put(std::as_bytes(std::span(&head, 1)));
        put(std::as_bytes(std::span(runs)));
        const std::uint64_t written = sizeof head + runs.size() * sizeof(host::BlockRun);
        put(std::vector<std::byte>(static_cast<std::size_t>(host::blocks_offset(runs.size()) - written)));
        for (const host::BlockRun& run : runs) {
            put(bytes_of(run));
            done_bytes_ += bytes_of(run).size();
            if (progress_) progress_(done_bytes_, all_bytes_);
        }
        file.close();
    }

private:
    [[nodiscard]] std::span<const std::byte> bytes_of(const host::BlockRun& run) const {
        const std::uint64_t begin = run.first * kShardBlock, left = bytes_.size() - begin;
        return bytes_.subspan(static_cast<std::size_t>(begin),
                              static_cast<std::size_t>(std::min(run.n * kShardBlock, left)));
    }

    std::span<const std::byte> bytes_;
    const RankSplit& split_;
    std::uint32_t n_ranks_;
    const Progress& progress_;
    std::vector<std::vector<host::BlockRun>> runs_;
    std::uint64_t all_bytes_ = 0, done_bytes_ = 0;
};

}  // namespace

std::vector<std::string> write_shards(const host::Opened& whole, const RankSplit& split, std::uint32_t n_ranks,
                                      const std::string& output, const Progress& progress) {
    require(verify_checksums(whole.model), whole.name);
    std::vector<std::string> paths;
    for (std::uint32_t rank = 0; rank < n_ranks; ++rank)
        paths.push_back(output + "." + std::to_string(rank) + "of" + std::to_string(n_ranks));
    check_outputs(paths);
    ShardWriter writer(whole, split, n_ranks, progress);
    for (std::uint32_t rank = 0; rank < n_ranks; ++rank) writer.write(rank, paths[rank]);
    return paths;
}

}  // namespace fovea
