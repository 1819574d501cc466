#include "host/model/compared_ranks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "fovea/encode.h"
#include "fovea/version.h"
#include "host/base/clock.h"
#include "host/base/error.h"
#include "host/base/hash.h"
#include "host/base/status_error.h"
#include "host/base/words.h"

namespace fovea::host {
namespace {

/// A rank's part of what is compared.
struct RankModel {
    std::array<char, 24> version{};
    std::uint32_t numerics = kNumericsVersion, fingerprint = 0;
    std::uint64_t file_bytes = 0, layer_hash = 0, nanoseconds = 1;  // that the layer takes
    std::array<std::uint8_t, kMaxRanks> shares{};
    bool by_speed = false;
    std::uint8_t n_stages = 1;
    std::uint32_t adapters = 0;  // a checksum
};

/// One token through the first layer, by this rank alone. The other layers are not read: they may be more than it has room for.
class FirstLayer {
public:
    FirstLayer(const Opened& opened, const char* isa, std::uint32_t n_threads)
        : opened_(opened), steps_(opened.kind() == Kind::text) {
        const Limits limits{.max_kv_len = steps_ ? 1u : 0u, .max_batch = 1, .n_threads = n_threads};
        running_ = start_alone(opened, limits, {.isa = isa});
        const Stack& last = opened.config().decoder.n_layers ? opened.config().decoder : opened.config().encoder;
        if (!steps_) out_.resize(last.result_width());
        set_cancel(*running_, &ends_);
        set_trace(*running_, {&FirstLayer::see, this});
    }

    [[nodiscard]] std::uint64_t hash() {
        hash_ = kHashSeed;
        ends_ = false;
        const Token token = 0;
        const std::uint32_t length = 1;
        const Sequences one{.ids = {&token, 1}, .lengths = {&length, 1}};
        const bool two = opened_.kind() == Kind::translation;
        const Status status = steps_ ? forward(*running_, one.ids, {})
                                     : encode(*running_, {.source = one, .target = two ? one : Sequences{}}, out_);
        if (status.code != Code::cancelled) require(status, opened_.name);
        return hash_;
    }
    /// The fastest of several passes takes so long.
    [[nodiscard]] std::uint64_t nanoseconds() {
        double fastest = 1e9;
        for (const double started = seconds_now(); seconds_now() < started + 0.2;) {
            const double before = seconds_now();
            (void)hash();
            fastest = std::min(fastest, seconds_now() - before);
        }
        return std::max<std::uint64_t>(static_cast<std::uint64_t>(fastest * 1e9), 1);
    }

private:
    static void see(void* self, std::uint32_t, std::uint32_t layer, const char*, std::span<const float> row) {
        auto& own = *static_cast<FirstLayer*>(self);
        if (layer) own.ends_ = true;
        if (!layer) own.hash_ = hash_bits(row, own.hash_);
    }

    const Opened& opened_;
    const bool steps_;
    Runtime<Session> running_;
    std::vector<float> out_;
    std::atomic<bool> ends_ = false;
    std::uint64_t hash_ = 0;
};

[[nodiscard]] RankModel describe(const Opened& opened, const RankShares& asked, const char* isa,
                                 std::uint32_t n_threads) {
    RankModel own{.fingerprint = opened.model.fingerprint(),
                  .file_bytes = opened.model.bytes().size(),
                  .by_speed = asked.by_speed,
                  .n_stages = asked.n_stages,
                  .adapters = opened.adapters_checksum()};
    std::snprintf(own.version.data(), own.version.size(), "%s", FOVEA_VERSION);
    std::copy(asked.each.begin(), asked.each.end(), own.shares.begin());
    const Kind kind = opened.kind();
    if (kind != Kind::text && kind != Kind::vectors && kind != Kind::translation) return own;  // they read no tokens
    FirstLayer layer(opened, isa, n_threads);
    own.layer_hash = layer.hash();
    if (asked.by_speed) own.nanoseconds = layer.nanoseconds();
    return own;
}

[[nodiscard]] std::string words_of(const RankModel& of, std::size_t n_ranks) {
    if (of.by_speed) return "by speed";
    std::string words;
    for (std::size_t r = 0; r < n_ranks && of.shares[0]; ++r) words += (r ? "," : "") + std::to_string(of.shares[r]);
    return words.empty() ? "even ones" : words;
}

void refuse_differences(const std::vector<RankModel>& all, const std::string& name) {
    const RankModel& first = all[0];
    for (std::size_t r = 1; r < all.size(); ++r) {
        const RankModel& its = all[r];
        const auto same = [&](const char* what, const std::string& wanted, const std::string& had) {
            if (wanted != had)
                throw Error(name + ": rank " + std::to_string(r) + ": " + what + ": expected " + wanted +
                            ", which rank 0 has, got " + had);
        };
        same("version", first.version.data(), its.version.data());
        same("numerics version", std::to_string(first.numerics), std::to_string(its.numerics));
        same("bytes of the model", with_separators(first.file_bytes), with_separators(its.file_bytes));
        same("the model's fingerprint", hex(first.fingerprint), hex(its.fingerprint));
        same("checksum of adapters", hex(first.adapters), hex(its.adapters));
        same("stages", std::to_string(first.n_stages), std::to_string(its.n_stages));
        same("shares", words_of(first, all.size()), words_of(its, all.size()));
        same("hash of the first layer", hex(first.layer_hash), hex(its.layer_hash));
    }
}

/// 64 of the fastest, and of others in proportion.
[[nodiscard]] std::vector<std::uint8_t> shares_by_speed(const std::vector<RankModel>& all) {
    std::uint64_t fastest = all[0].nanoseconds;
    for (const RankModel& its : all) fastest = std::min(fastest, its.nanoseconds);
    std::vector<std::uint8_t> shares;
    for (const RankModel& its : all)
        shares.push_back(static_cast<std::uint8_t>(
            std::max<std::uint64_t>((fastest * 64 + its.nanoseconds / 2) / its.nanoseconds, 1)));
    return shares;
}

}  // namespace

const RankSplit* compare_ranks(const Ranks& ranks, const Opened& opened, const RankShares& asked, const char* isa,
                               std::uint32_t n_threads) {
    struct Compared {
        std::vector<std::uint8_t> shares;
        RankSplit split;
    };
    static std::map<std::uint32_t, Compared> compared;  // by fingerprint
    const auto [made, is_new] = compared.try_emplace(opened.model.fingerprint());
    auto& [shares, split] = made->second;
    if (is_new) {
        std::vector<RankModel> all(ranks.n_ranks);
        std::vector<std::uint64_t> ends;
        for (std::uint32_t r = 1; r <= ranks.n_ranks; ++r) ends.push_back(r * sizeof(RankModel));
        all[ranks.rank] = describe(opened, asked, isa, n_threads);
        if (!ranks.gather(ranks.context, {}, reinterpret_cast<std::byte*>(all.data()), ends))
            throw Error("ranks: the others cannot be reached");
        refuse_differences(all, opened.name);
        shares = asked.by_speed ? shares_by_speed(all) : asked.each;
        split = {shares.empty() ? nullptr : shares.data(), asked.n_stages};
    }
    return &split;
}

}  // namespace fovea::host
