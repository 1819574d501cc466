// What ranks read of a model's file: without the rest they give the bits of one.
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "fovea/ranks.h"
#include "host/base/aligned_bytes.h"
#include "host/model/listing.h"
#include "tests/support/rank_group.h"
#include "tests/support/rank_session.h"
#include "tests/support/same_bits.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// The file with other bytes, which make NaN of every product, where the limits' rank reads none.
[[nodiscard]] AlignedBytes part_of(const Model& model, const Limits& limits) {
    const auto whole = model.bytes();
    AlignedBytes part(whole.begin(), whole.end());
    const auto spoil = [&](std::uint64_t begin, std::uint64_t end) {
        std::fill(part.begin() + static_cast<std::ptrdiff_t>(begin), part.begin() + static_cast<std::ptrdiff_t>(end),
                  std::byte{0xff});
    };
    std::uint32_t i = 0;
    for (const TensorInfo& tensor : tensors(model)) {
        const FileRange range = rank_range(model, i++, limits);
        REQUIRE((tensor.offset <= range.begin && range.begin <= range.end));
        REQUIRE(range.end <= tensor.offset + tensor.bytes);
        spoil(tensor.offset, range.begin);
        spoil(range.end, tensor.offset + tensor.bytes);
    }
    return part;
}

}  // namespace

TEST_CASE("a rank's range: what lies outside of it is not read, with panels, shares and stages") {
    std::vector<NamedConfig> all_configs = decoder_configs();
    std::ranges::copy(recurrent_configs(), std::back_inserter(all_configs));
    const struct {
        std::vector<std::uint8_t> shares;
        std::uint8_t n_stages;
    } splits[] = {{{1, 1}, 1}, {{1, 1, 1, 1, 1, 1, 1, 1}, 1}, {{1, 5, 2}, 1}, {{1, 1}, 2}, {{3, 1, 1, 2}, 2}};
    std::size_t n_left_out = 0;
    for (const NamedConfig& named : all_configs) {
        CAPTURE(named.name);
        const SmallModel small(named.config, Type::q8);
        const std::vector<float> want = logits_of(small.model, {.max_batch = 32}, nullptr);
        REQUIRE(!want.empty());
        for (const auto& [shares, n_stages] : splits) {
            const RankSplit split{shares.data(), n_stages};
            const auto n_ranks = static_cast<std::uint8_t>(shares.size());
            CAPTURE(n_ranks);
            Plan plan;
            if (!make_plan(named.config, {.n_ranks = n_ranks, .split = &split}, plan).ok())
                continue;  // keys of another stage
            std::vector<AlignedBytes> parts;
            std::vector<Model> models(n_ranks);
            for (std::uint8_t rank = 0; rank < n_ranks; ++rank) {
                parts.push_back(part_of(small.model, {.rank = rank, .n_ranks = n_ranks, .split = &split}));
                n_left_out += !std::ranges::equal(parts.back(), small.model.bytes());
                REQUIRE(open_model(parts.back(), models[rank]).ok());
            }
            Group group(n_ranks);
            std::vector<std::vector<float>> got(n_ranks);
            for_all_ranks(group, [&](const Ranks& ranks) {
                got[ranks.rank] = logits_of(models[ranks.rank], {.max_batch = 32, .split = &split}, &ranks);
            });
            for (const std::vector<float>& of_rank : got) CHECK(same_bits(want, of_rank));
        }
    }
    CHECK(n_left_out > 100);
}
