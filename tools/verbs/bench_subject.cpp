#include <algorithm>
#include <string_view>

#include "fovea/host/runtime.h"
#include "host/base/error.h"
#include "host/model/listing.h"
#include "host/model/parameters.h"
#include "host/model/two_stacks.h"
#include "tools/measure/source.h"
#include "tools/verbs/bench.h"

namespace fovea {
namespace {

/// Positions that token `pos` sees in a block.
double visible(const Block& b, double pos) {
    return b.attention.window ? std::min<double>(pos + 1, b.attention.window) : pos + 1;
}

/// The share of a tensor that a token uses: of all experts' tensor, that of the experts it is routed to.
double share_used(const TensorInfo& tensor, const Stack& s) {
    const Block& b = s.block(tensor.layer);
    return std::string_view(tensor.role).starts_with("expert_") ? static_cast<double>(b.experts.n_used) / b.experts.n
                                                                : 1.0;
}

/// Bytes of an element of a cache, its share of scales and references included. Heads of 64 take no padding in any
/// type.
double value_bytes(Type type) {
    return type == Type::q4 ? 18.0 / 32 : type == Type::q8 ? 34.0 / 32 : type == Type::f16 ? 2 : 4;
}
double key_bytes(Type type) { return type == Type::q4 ? 20.0 / 32 : value_bytes(type); }
/// Bytes of a position's keys and values.
double cached_bytes(const Block& b, Type type) {
    return b.attention.n_kv_heads *
           (b.attention.head_dim * key_bytes(type) + b.attention.value_head_dim * value_bytes(type));
}

/// Multiplications and additions of a stack's matrices for one row.
double row_operations(const Stack& stack, Stack Config::*place) {
    Config config;
    config.*place = stack;
    const ParameterCount count = count_parameters(config);
    return 2.0 * static_cast<double>(count.attention + count.recurrent + count.feed_forward - count.idle_experts);
}

/// Matrices that each token reads: all of the decoder, but those of what is computed once for a memory.
double matrix_bytes(const host::Opened& opened) {
    const Stack& s = opened.model.config().decoder;
    double bytes = 0;
    for (const TensorInfo& tensor : tensors(opened.model)) {
        const std::string_view role = tensor.role;
        const bool looked_up = role == "token_embedding" && !s.tied_output;
        const bool once = tensor.in_encoder || role == "cross_key" || role == "cross_value";
        if (std::string_view(tensor.layout) != "rows" && !looked_up && !once)
            bytes += static_cast<double>(tensor.bytes) * share_used(tensor, s);
    }
    return bytes;
}

BenchWork session_work(const host::Opened& opened, const BenchOptions& options) {
    const Stack& s = opened.model.config().decoder;
    BenchWork work{
        .prefill_operations = row_operations(s, &Config::decoder) * options.n_prompt + 2.0 * s.vocab_size * s.d_model,
        .decode_bytes = matrix_bytes(opened)};
    const double cached = options.n_prompt + options.n_new / 2.0;
    for (std::uint32_t layer = 0; layer < s.n_layers; ++layer) {
        const Block& b = s.block(layer);
        double n_pairs = 0;
        for (std::uint32_t pos = 0; pos < options.n_prompt; ++pos) n_pairs += visible(b, pos);
        work.prefill_operations +=
            2.0 * n_pairs * b.attention.n_heads * (b.attention.head_dim + b.attention.value_head_dim);
        work.decode_bytes += visible(b, cached) * cached_bytes(b, options.common.kv_type);
    }
    return work;
}

/// The encoder's pass with the memory's keys and values; a token that reads those.
BenchWork two_stack_work(const host::Opened& opened, const BenchOptions& options, std::uint32_t n_rows) {
    const Config& config = opened.model.config();
    BenchWork work{.prefill_operations = row_operations(config.encoder, &Config::encoder) * n_rows,
                   .decode_bytes = matrix_bytes(opened)};
    for (const TensorInfo& tensor : tensors(opened.model)) {
        const double size = static_cast<double>(tensor.n_rows) * tensor.n_cols;
        if (std::string_view(tensor.role) == "first_convolution")
            work.prefill_operations += 2.0 * size * config.encoder.sound.n_frames;
        if (std::string_view(tensor.role) == "second_convolution") work.prefill_operations += 2.0 * size * n_rows;
    }
    for (std::uint32_t layer = 0; layer < config.encoder.n_layers; ++layer) {
        const AttentionShape& b = config.encoder.block(layer).attention;
        const double seen = b.window ? std::min<double>(n_rows, 2.0 * b.window - 1) : n_rows;
        work.prefill_operations += 2.0 * n_rows * seen * b.n_heads * (b.head_dim + b.value_head_dim);
    }
    const Stack& s = config.decoder;
    for (std::uint32_t layer = 0; layer < s.n_layers; ++layer) {
        const Block& b = s.block(layer);
        const double of_row = static_cast<double>(b.attention.n_kv_heads) *
                              (b.attention.head_dim + b.attention.value_head_dim) * s.d_model;
        if (b.attention.cross_attention) work.prefill_operations += 2.0 * n_rows * of_row;
        const double cached = visible(b, options.n_new / 2.0) + (b.attention.cross_attention ? n_rows : 0);
        work.decode_bytes += cached * cached_bytes(b, options.common.kv_type);
    }
    return work;
}

/// The tokens that go in, and where the logits come out.
class TokenSubject : public BenchSubject {
protected:
    TokenSubject(const host::Opened& opened, std::size_t n_tokens)
        : name_(opened.name),
          tokens_(spread_tokens(n_tokens, opened.model.config().decoder.vocab_size)),
          logits_(opened.model.config().decoder.vocab_size) {}

    const std::string& name_;
    std::vector<Token> tokens_;
    std::vector<float> logits_;
};

class SessionSubject final : public TokenSubject {
public:
    SessionSubject(const host::Opened& opened, const BenchOptions& options, const Limits& limits)
        : TokenSubject(opened, std::size_t{options.n_prompt} + options.n_new),
          running_(start_session(opened, limits, options.common.session())) {
        work = session_work(opened, options);
        n_prompt = options.n_prompt;
        arena_bytes = running_.plan.arena_bytes;
        isa = running_->isa();
    }
    void read_prompt() override {
        require(rewind(*running_, 0), name_);
        require(forward(*running_, std::span(tokens_).first(n_prompt), logits_), name_);
    }
    void write_token() override {
        require(forward(*running_, std::span(tokens_).subspan(running_->kv_len(), 1), logits_), name_);
    }

private:
    host::Runtime<Session> running_;
};

class TwoStackSubject final : public TokenSubject {
public:
    TwoStackSubject(const host::Opened& opened, const BenchOptions& options)
        : TokenSubject(opened, options.n_new),
          source_(opened.model, spread_tokens(options.n_prompt, std::max(opened.model.config().encoder.vocab_size, 1u)),
                  opened.name),
          plan_(plan_two_stacks(opened, {.n_threads = options.common.n_threads,
                                         .kv_type = options.common.kv_type,
                                         .max_source = source_.n_rows(),
                                         .max_target = std::max(options.n_new, 1u)})),
          stacks_(opened, plan_, options.common.isa_or_best()),
          memory_(stacks_.make_memory()),
          text_(stacks_.make_text()) {
        n_prompt = source_.n_rows();
        work = two_stack_work(opened, options, n_prompt);
        arena_bytes = plan_.n_bytes();
        isa = options.common.isa.empty() ? isa_names().front() : options.common.isa.c_str();
    }
    void read_prompt() override {
        require(rewind(text_, 0), name_);
        require(rewind(memory_, 0), name_);
        require(cache_memory(stacks_.workspace(), source_.input(), {&memory_, 1}), name_);
    }
    void write_token() override {
        const Step step{text_, std::span(tokens_).subspan(text_.kv_len(), 1), logits_, memory_};
        require(forward(stacks_.workspace(), {&step, 1}), name_);
    }

private:
    Source source_;
    TwoStackPlan plan_;
    TwoStacks stacks_;
    Cache memory_, text_;
};

}  // namespace

std::unique_ptr<BenchSubject> bench_session(const host::Opened& opened, const BenchOptions& options,
                                            const Limits& limits) {
    return std::make_unique<SessionSubject>(opened, options, limits);
}

std::unique_ptr<BenchSubject> bench_two_stacks(const host::Opened& opened, const BenchOptions& options) {
    return std::make_unique<TwoStackSubject>(opened, options);
}

}  // namespace fovea
