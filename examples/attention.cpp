// Attention alone, without a model file: 8 heads of 64 over 128 positions of two sequences of different lengths.
//   fovea_example_attention
#include <cmath>
#include <cstdio>
#include <vector>

#include "fovea/encode.h"
#include "fovea/host/arena.h"

int main() {
    const auto fail = [](const fovea::Status& status) {
        std::fprintf(stderr, "attention: %s\n", fovea::StatusLine(status).c_str());
        return 1;
    };
    constexpr std::uint32_t kSequences = 2, kPositions = 128, kHeads = 8, kDim = 64, kWidth = kHeads * kDim;

    // Heads and widths are all there is to say; the scale is 1/sqrt(64) unless softmax_scale says otherwise.
    fovea::Model heads;
    if (auto s =
            attention_model({.n_heads = kHeads, .n_kv_heads = kHeads, .head_dim = kDim, .value_head_dim = kDim}, heads);
        !s.ok())
        return fail(s);

    // The size before the memory: keys and values of every position, no scores.
    const fovea::Limits limits{.max_batch = kSequences * kPositions,
                               .n_threads = fovea::default_threads(),
                               .max_sequences = kSequences,
                               .max_key_rows = kSequences * kPositions};
    fovea::Plan plan;
    if (auto s = make_plan(heads.config(), limits, plan); !s.ok()) return fail(s);
    fovea::Arena arena(plan.arena_bytes);
    fovea::Session session;
    if (auto s = make_session(heads, limits, arena, session); !s.ok()) return fail(s);

    // Rows of all heads side by side, [sequence, position, head, i]; other layouts are other strides.
    std::vector<float> x(std::size_t{kSequences} * kPositions * kWidth), out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.37f * static_cast<float>(i % 9973));
    const fovea::Strides strides{.sequence = kPositions * kWidth, .row = kWidth, .head = kDim};
    const std::uint32_t lengths[] = {128, 100};  // what lies behind the second's 100 keys is never read

    fovea::AttendInput input;
    input.query = input.key = input.value = {x, strides};
    input.n_sequences = kSequences;
    input.n_queries = input.n_keys = kPositions;
    input.kv_lengths = lengths;
    input.out_strides = strides;

    // How much each query looks at each key, if asked: the mean over heads, [sequence, query, key].
    std::vector<float> weights(std::size_t{kSequences} * kPositions * kPositions);
    if (auto s = capture_attention(session, {.n_queries = kPositions, .n_keys = kPositions, .out = weights}); !s.ok())
        return fail(s);
    if (auto s = attend(session, input, out); !s.ok()) return fail(s);

    double sum = 0;
    for (std::uint32_t key = 0; key < kPositions; ++key)
        sum += static_cast<double>(weights[weights.size() - kPositions + key]);
    std::printf("%zu numbers, %llu arena bytes; the last query's weights sum to %.5f, the last key's is %g\n",
                out.size(), static_cast<unsigned long long>(plan.arena_bytes), sum,
                static_cast<double>(weights.back()));
}
