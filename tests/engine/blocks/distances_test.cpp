// Disentangled positions: what queries and keys say of distances, against plain loops in double that add it as the caller's mask
// does. Every instruction set, number of threads and split into sequences gives the same bits, whatever buckets a file has.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "tests/support/encoded.h"
#include "tests/support/encoder_models.h"
#include "tests/support/sanitized.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr std::uint32_t kSeqLen = 50, kHeads = 5, kWidth = 40;

/// A matrix's product with each row, plus its bias.
std::vector<double> projected(const Model& model, const std::string& role, const std::vector<double>& rows) {
    const ElementReader at(model);
    std::vector<double> result(rows.size());
    for (std::size_t i = 0; i < kWidth; ++i) {
        const double bias = at(role + "_bias", 0, 0, i);
        for (std::size_t row = 0; row < rows.size() / kWidth; ++row) result[row * kWidth + i] = bias;
        for (std::size_t k = 0; k < kWidth; ++k) {
            const double weight = at(role, 0, i, k);
            for (std::size_t row = 0; row < rows.size() / kWidth; ++row)
                result[row * kWidth + i] += weight * rows[row * kWidth + k];
        }
    }
    return result;
}

/// [head][query][key]: what a score gets beside the product of query and key.
std::vector<float> scores_of_distances(const Model& model, const std::vector<double>& rows) {
    const ElementReader element(model);
    const AttentionShape& b = model.config().encoder.blocks[0].attention;
    const std::vector<double> queries = projected(model, "query", rows), keys = projected(model, "key", rows);
    const std::uint32_t rows_each = (b.relative_buckets + 15u) / 16 * 16, most = b.relative_max_distance;
    std::vector<std::vector<double>> tables(2, std::vector<double>(std::size_t{kHeads} * rows_each * b.head_dim));
    for (std::size_t i = 0; i < tables[0].size(); ++i)
        for (const std::size_t which : {0, 1})
            tables[which][i] = element(which ? "distance_queries" : "distance_keys", 0, i / b.head_dim, i % b.head_dim);
    std::vector<float> scores;
    for (std::size_t head = 0; head < kHeads; ++head)
        for (std::int64_t q = 0; q < kSeqLen; ++q)
            for (std::int64_t k = 0; k < kSeqLen; ++k) {
                const std::int64_t far = most, d = std::min(std::max(k - q, -far), far);
                const double bucket = element("distance_buckets", 0, 0, static_cast<std::uint64_t>(far + d));
                const std::size_t row = head * rows_each + static_cast<std::size_t>(bucket);
                double sum = 0;
                for (std::size_t i = 0; i < b.head_dim; ++i) {
                    const std::size_t at = head * b.head_dim + i;
                    sum += queries[static_cast<std::size_t>(q) * kWidth + at] * tables[0][row * b.head_dim + i];
                    sum += keys[static_cast<std::size_t>(k) * kWidth + at] * tables[1][row * b.head_dim + i];
                }
                scores.push_back(static_cast<float>(sum));
            }
    return scores;
}

void keep_embedding(void* to, std::uint32_t, std::uint32_t, const char* name, std::span<const float> row) noexcept {
    if (std::strcmp(name, "embedding") == 0) {
        auto& rows = *static_cast<std::vector<double>*>(to);
        rows.insert(rows.end(), row.begin(), row.end());
    }
}

TEST_CASE("disentangled positions add each query's and each key's product with its head's vector for their distance") {
    struct Shape {
        std::uint16_t n_buckets;
        std::uint32_t most;
    };
    for (const Shape& shape : {Shape{1, 1}, Shape{14, 7}, Shape{40, 60}, Shape{90, 40}}) {
        const auto [n_buckets, most] = shape;
        CAPTURE(shape.n_buckets);
        const SmallModel small(disentangled_config(n_buckets, most, 1), Type::f32);
        const auto ids = some_tokens(kSeqLen, 60);
        const std::uint32_t lengths[] = {kSeqLen};
        EncodeInput in{.source = {.ids = ids, .lengths = lengths}};
        std::vector<double> embedded;
        const std::vector<float> got =
            encoded(small.model, in, kSeqLen * kWidth, nullptr, 1, {keep_embedding, &embedded});
        REQUIRE(embedded.size() == kSeqLen * kWidth);

        // The same weights without such positions: random tensors depend on their role and layer alone.
        Config plain_config = disentangled_config(n_buckets, most, 1);
        AttentionShape& b = plain_config.encoder.blocks[0].attention;
        b.position = Position::none;
        b.relative_buckets = 0;
        b.relative_max_distance = 0;
        const SmallModel plain(plain_config, Type::f32);
        const std::vector<float> without = encoded(plain.model, in, kSeqLen * kWidth);
        const std::vector<float> added = scores_of_distances(small.model, embedded);
        in.source.masks.attention = {
            .added = added.data(), .head_stride = kSeqLen * kSeqLen, .query_stride = kSeqLen, .n_keys = kSeqLen};
        const std::vector<float> wanted = encoded(plain.model, in, kSeqLen * kWidth);
        float error = 0, change = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
            error = std::max(error, std::abs(got[i] - wanted[i]));
            change = std::max(change, std::abs(got[i] - without[i]));
        }
        CHECK(error < 1e-5f);
        CHECK(change > 0.01f);
    }
}

TEST_CASE("disentangled positions give the same bits everywhere, and sequences those that each has alone") {
    for (const Type type : {Type::f32, Type::f16, Type::q8, Type::q4}) {
        const SmallModel small(disentangled_config(30, 20), type);
        const auto ids = some_tokens(58, 60);
        const std::uint32_t lengths[] = {17, 1, 40};
        const EncodeInput in{.source = {.ids = ids, .lengths = lengths}};
        const std::vector<float> all = encoded(small.model, in, 58 * kWidth, "scalar");
        for (const char* isa : model_isas())
            for (const std::uint32_t n_threads : {1u, 3u})
                CHECK(same_bits(all, encoded(small.model, in, 58 * kWidth, isa, n_threads)));
        for (std::size_t s = 0, first = 0; s < 3; first += lengths[s++]) {
            const EncodeInput one{.source = {.ids = std::span(ids).subspan(first, lengths[s]),
                                             .lengths = std::span(lengths).subspan(s, 1)}};
            CHECK(same_bits(std::span(all).subspan(first * kWidth, lengths[s] * std::size_t{kWidth}),
                            encoded(small.model, one, lengths[s] * std::size_t{kWidth})));
        }
    }
}

TEST_CASE("disentangled positions of more keys than a chunk give the same bits with several threads") {
    Config config = disentangled_config(64, 100);
    config.encoder.max_positions = 1300;
    const SmallModel small(config, Type::f32);
    const auto ids = some_tokens(1201, 60);
    const std::uint32_t lengths[] = {1201};
    const EncodeInput in{.source = {.ids = ids, .lengths = lengths}};
    std::vector<float> first;
    for (const std::uint32_t n_threads : {1u, 3u}) {
        SmallSession s(small.model, {.max_batch = 1300, .n_threads = n_threads});
        std::vector<float> out(1201 * kWidth, NAN);
        REQUIRE(encode(s.session, in, out).ok());
        if (first.empty()) first = out;
        CHECK(same_bits(first, out));
        CHECK(!std::isnan(out.back()));
    }
}

TEST_CASE("distance buckets that a file may hold and that are none are the first bucket") {
    const SmallModel small(disentangled_config(30, 20), Type::f32);
    const auto ids = some_tokens(40, 60);
    const std::uint32_t lengths[] = {40};
    const EncodeInput in{.source = {.ids = ids, .lengths = lengths}};
    const auto with_buckets = [&](float value) {
        AlignedBytes file = small.file;
        for (const TensorInfo& t : tensors(small.model))
            if (std::string(t.role) == "distance_buckets")
                for (std::uint64_t i = 0; i < t.n_cols; ++i)
                    std::memcpy(file.data() + t.offset + i * sizeof value, &value, sizeof value);
        Model model;
        REQUIRE(open_model(file, model).ok());
        return encoded(model, in, 40 * kWidth);
    };
    const std::vector<float> zeros = with_buckets(0.0f);
    CHECK(!same_bits(zeros, encoded(small.model, in, 40 * kWidth)));
    CHECK(!same_bits(zeros, with_buckets(29.0f)));
    for (const float bad : {-1.0f, 30.0f, 3e38f, -INFINITY, INFINITY, NAN}) CHECK(same_bits(zeros, with_buckets(bad)));
}

}  // namespace
