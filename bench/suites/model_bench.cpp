// A whole model of SmolLM2-135M's shape with random weights, in a file that is mapped as any model's is: decode beside
// the read bandwidth over that mapping, prefill of 512 tokens beside the peak of FMA or, for q8
// and q4, of exact products of bytes, on 1 and 2 threads.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "bench/suites/suites.h"
#include "fovea/executors.h"
#include "fovea/host/runtime.h"
#include "host/base/error.h"
#include "host/base/words.h"
#include "host/model/listing.h"
#include "host/model/parameters.h"
#include "platform/team.h"
#include "tools/measure/ceilings.h"

namespace fovea {
namespace {

constexpr std::uint32_t kPrompt = 512;
constexpr std::uint32_t kDecoded = 32;  // positions before the cache starts again

/// Bytes that each token reads of tensors that are used whole: all but tables that are only looked up.
double weight_bytes(const Model& model) {
    double bytes = 0;
    for (const TensorInfo& tensor : tensors(model))
        if (std::string_view(tensor.layout) != "rows") bytes += static_cast<double>(tensor.bytes);
    return bytes;
}

/// Two a multiply-add: matrices for every token but the output head for one, and the attention of pairs that are seen.
double prefill_operations(const Config& config) {
    const ParameterCount count = count_parameters(config);
    const Stack& stack = config.decoder;
    const Block& block = stack.blocks[0];
    const double n_pairs = 0.5 * kPrompt * (kPrompt + 1.0);
    return 2.0 * static_cast<double>(count.attention + count.feed_forward) * kPrompt +
           2.0 * stack.d_model * stack.vocab_size +
           4.0 * block.attention.head_dim * block.attention.n_heads * n_pairs * stack.n_layers;
}

/// One CPU for each of this thread's n_threads, which all its teams run on.
void pin_team(std::uint32_t n_threads) {
    struct alignas(64) Place {
        std::byte bytes[kTeamBytes];
    } place;
    run_team(
        *start_team(&place, n_threads, openmp_executor().run),
        [](void* n, std::uint32_t member) { pin_thread(member, *static_cast<std::uint32_t*>(n)); }, &n_threads);
}

class Runner {
public:
    Runner(const host::Opened& opened, std::uint32_t n_threads) : logits_(opened.config().decoder.vocab_size) {
        unpin_thread();  // a team that has one CPU to run on does not spin
        running_ = start_session(opened, {.max_kv_len = kPrompt, .n_threads = n_threads});
        pin_team(n_threads);
        Numbers numbers;
        for (Token& token : tokens_) token = numbers.next() % opened.config().decoder.vocab_size;
    }

    [[nodiscard]] const char* isa() const { return running_->isa(); }

    void prefill() {
        require(rewind(*running_, 0));
        require(forward(*running_, tokens_, logits_));
    }
    void decode() {
        if (running_->kv_len() >= kDecoded) require(rewind(*running_, 0));
        require(forward(*running_, std::span(tokens_).subspan(running_->kv_len(), 1), logits_));
    }

private:
    host::Runtime<Session> running_;
    std::array<Token, kPrompt> tokens_{};
    std::vector<float> logits_;
};

void decode(benchmark::State& state, Type type, std::uint32_t n_threads) {
    const host::Opened& opened = smollm2(type);
    Runner runner(opened, n_threads);
    run_rounds(state, read_ceiling(runner.isa(), opened.model.bytes(), n_threads), weight_bytes(opened.model),
               [&] { runner.decode(); });
}

void prefill(benchmark::State& state, Type type, std::uint32_t n_threads) {
    const host::Opened& opened = smollm2(type);
    Runner runner(opened, n_threads);
    run_rounds(state, (is_quantized(type) ? int8_ceiling : fma_ceiling)(runner.isa(), n_threads),
               prefill_operations(opened.config()), [&] { runner.prefill(); });
}

}  // namespace

void add_model_suite() {
    for (const Type type : {Type::f32, Type::f16, Type::bf16, Type::q8, Type::q4})
        for (const std::uint32_t n_threads : {1u, 2u}) {
            const std::string what =
                std::string("smollm2-135m/") + type_name(type) + "/threads:" + std::to_string(n_threads);
            add("decode/" + what, [=](auto& state) { decode(state, type, n_threads); });
            add("prefill/" + what, [=](auto& state) { prefill(state, type, n_threads); });
        }
}

}  // namespace fovea
