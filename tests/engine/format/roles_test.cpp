// The list of tensor roles: its numbers and names, and the tensors that a configuration calls for.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/format/format.h"

namespace {

using namespace fovea;

TEST_CASE("roles: numbers in files keep their names") {
    constexpr std::pair<std::uint16_t, const char*> kKnown[] = {{1, "token_embedding"},
                                                                {9, "output_bias"},
                                                                {10, "rope_frequencies"},
                                                                {11, "relative_bias"},
                                                                {12, "alibi_slopes"},
                                                                {50, "attention_sinks"},
                                                                {16, "embedding_map"},
                                                                {20, "head_map"},
                                                                {23, "head_norm_bias"},
                                                                {24, "first_convolution"},
                                                                {27, "second_convolution_bias"},
                                                                {28, "mel_filters"},
                                                                {32, "attention_norm"},
                                                                {36, "query"},
                                                                {42, "query_norm"},
                                                                {46, "attention_output"},
                                                                {49, "appended_value"},
                                                                {64, "cross_norm"},
                                                                {75, "cross_output_bias"},
                                                                {52, "query_down"},
                                                                {54, "latent_norm"},
                                                                {55, "latent_query"},
                                                                {56, "latent_value"},
                                                                {58, "distance_keys"},
                                                                {59, "distance_queries"},
                                                                {60, "distance_buckets"},
                                                                {96, "feed_forward_norm"},
                                                                {98, "feed_forward_post_norm"},
                                                                {100, "up"},
                                                                {103, "down_bias"},
                                                                {104, "router"},
                                                                {105, "router_bias"},
                                                                {106, "expert_up"},
                                                                {107, "expert_up_bias"},
                                                                {108, "expert_down"},
                                                                {109, "expert_down_bias"},
                                                                {110, "choice_bias"},
                                                                {111, "expert_scale"},
                                                                {112, "shared_gate"},
                                                                {115, "shared_down"},
                                                                {116, "router_norm"},
                                                                {119, "shared_post_norm"},
                                                                {145, "adapter_latent_value_out"},
                                                                {160, "projections_columns"},
                                                                {165, "up_columns"},
                                                                {167, "output_columns"},
                                                                {176, "layer_embedding"},
                                                                {183, "value_norm"},
                                                                {184, "xielu"},
                                                                {219, "recurrent_gate_down"}};
    for (const auto& [number, name] : kKnown) CHECK(std::string(role_name(number)) == name);
    for (const std::uint16_t none : {0, 13, 19, 29, 31, 51, 57, 63, 76, 95, 120, 127, 146, 159, 168, 175, 185, 65535})
        CHECK(std::string(role_name(none)) == "unknown");
}

/// What a stack calls for, as "layer role n_rows n_cols".
std::vector<std::string> called_for(const Stack& stack) {
    std::vector<std::string> list;
    std::uint64_t last = 0;
    for_each_tensor(stack, StackIndex::decoder, [&](const TensorSpec& spec) {
        const std::uint64_t order = std::uint64_t{spec.layer} << 16 | static_cast<std::uint64_t>(spec.role);
        CHECK(order > last);  // the directory's order
        last = order;
        list.push_back(std::to_string(spec.layer) + " " + role_name(static_cast<std::uint16_t>(spec.role)) + " " +
                       std::to_string(spec.n_rows) + " " + std::to_string(spec.n_cols));
    });
    return list;
}

TEST_CASE("roles: a configuration calls for its tensors, in the directory's order") {
    Stack stack;
    stack.n_layers = 2, stack.n_blocks = 1, stack.d_model = 8, stack.vocab_size = 20;
    stack.final_norm = Norm::rms;
    stack.has_output_head = stack.tied_output = true;
    Block& b = stack.blocks[0];
    b.attention.n_heads = 2, b.attention.n_kv_heads = 1, b.attention.head_dim = 4, b.attention.value_head_dim = 6,
    b.feed.d_ff = 24;
    b.attention.position = Position::rope, b.attention.rotary_dim = 4;
    b.norm = Norm::rms, b.attention.has_output_map = b.feed.gated = true;
    CHECK(called_for(stack) ==
          std::vector<std::string>{"0 token_embedding 20 8", "0 final_norm 1 8", "0 rope_frequencies 1 2",
                                   "0 attention_norm 1 8", "0 query 8 8", "0 key 4 8", "0 value 6 8",
                                   "0 attention_output 8 12", "0 feed_forward_norm 1 8", "0 up 64 8", "0 down 8 24",
                                   "1 attention_norm 1 8", "1 query 8 8", "1 key 4 8", "1 value 6 8",
                                   "1 attention_output 8 12", "1 feed_forward_norm 1 8", "1 up 64 8", "1 down 8 24"});
}

TEST_CASE("roles: experts in place of up and down, each in whole panels") {
    Stack stack;
    stack.n_layers = stack.n_blocks = 1, stack.d_model = 20, stack.max_positions = 5;
    Block& b = stack.blocks[0];
    b.feed.d_ff = 24, b.feed.gated = true, b.experts.n = 3, b.experts.n_used = 1;
    CHECK(called_for(stack) == std::vector<std::string>{"0 router 3 20", "0 expert_up 192 20", "0 expert_down 96 24"});
    b.experts.router_bias = b.feed.up_bias = b.feed.gate_bias = b.feed.down_bias = true;
    CHECK(called_for(stack) == std::vector<std::string>{"0 router 3 20", "0 router_bias 1 3", "0 expert_up 192 20",
                                                        "0 expert_up_bias 1 192", "0 expert_down 96 24",
                                                        "0 expert_down_bias 1 96"});
    b.experts.router_bias = b.feed.up_bias = b.feed.gate_bias = b.feed.down_bias = false;
    b.feed.gated = false, b.experts.shared_d_ff = 7, b.experts.shared_gate = true;
    CHECK(called_for(stack) == std::vector<std::string>{"0 router 3 20", "0 expert_up 96 20", "0 expert_down 96 24",
                                                        "0 shared_gate 1 20", "0 shared_up 7 20",
                                                        "0 shared_down 20 7"});
}

TEST_CASE("roles: latent attention has no values of its own, and maps of each head in whole panels") {
    Stack stack;
    stack.n_layers = stack.n_blocks = 1, stack.d_model = 20, stack.max_positions = 5;
    Block& b = stack.blocks[0];
    b.attention.n_heads = 3, b.attention.n_kv_heads = 1, b.attention.rotary_dim = 4, b.attention.value_head_dim = 18,
    b.attention.head_dim = 22, b.attention.position = Position::rope;
    b.latent.query_dim = 5, b.latent.value_dim = 7;
    CHECK(called_for(stack) == std::vector<std::string>{"0 rope_frequencies 1 2", "0 query 27 20", "0 key 22 20",
                                                        "0 attention_output 20 21", "0 latent_norm 1 18",
                                                        "0 latent_query 96 5", "0 latent_value 48 18"});
    b.latent.query_rank = 9;
    CHECK(called_for(stack) == std::vector<std::string>{"0 rope_frequencies 1 2", "0 query 27 9", "0 key 22 20",
                                                        "0 attention_output 20 21", "0 query_down 9 20",
                                                        "0 query_down_norm 1 9", "0 latent_norm 1 18",
                                                        "0 latent_query 96 5", "0 latent_value 48 18"});
}

TEST_CASE("roles: column scales are of the inputs that there are, and not those of experts") {
    Stack stack;
    stack.n_layers = 2, stack.n_blocks = 1, stack.d_model = 8, stack.vocab_size = 20, stack.max_positions = 5;
    stack.has_output_head = stack.output_columns = true;
    stack.head[0] = {.width = 6};
    Block& b = stack.blocks[0];
    b.attention.n_heads = 3, b.attention.n_kv_heads = 1, b.attention.head_dim = 4, b.attention.value_head_dim = 6,
    b.feed.d_ff = 24;
    b.attention.has_output_map = b.column_scales = true;
    const auto columns_of = [&] {
        std::vector<std::string> list;
        for (const std::string& name : called_for(stack))
            if (name.find("columns") != std::string::npos) list.push_back(name);
        return list;
    };
    CHECK(columns_of() == std::vector<std::string>{"0 projections_columns 1 8", "0 attention_output_columns 1 18",
                                                   "0 up_columns 1 8", "0 down_columns 1 24", "0 output_columns 1 6",
                                                   "1 projections_columns 1 8", "1 attention_output_columns 1 18",
                                                   "1 up_columns 1 8", "1 down_columns 1 24"});
    stack.n_layers = 1, stack.output_columns = false;
    b.attention.cross_attention = true;
    b.experts.n = 2, b.experts.n_used = 1, b.experts.shared_d_ff = 5;
    CHECK(columns_of() == std::vector<std::string>{"0 projections_columns 1 8", "0 attention_output_columns 1 18",
                                                   "0 cross_query_columns 1 8", "0 memory_columns 1 8",
                                                   "0 cross_output_columns 1 18"});
    b.column_scales = false;
    CHECK(columns_of().empty());
}

TEST_CASE("roles: an encoder that hears has two convolutions and its filters before its layers") {
    Stack stack;
    stack.n_layers = stack.n_blocks = 1, stack.d_model = 20, stack.max_positions = 5;
    stack.blocks[0].feed.d_ff = 24;
    stack.head[0] = {.width = 6};
    stack.sound = {.sample_rate = 8000, .n_fft = 30, .hop_length = 12, .n_mels = 7, .n_frames = 10};
    CHECK(called_for(stack) == std::vector<std::string>{"0 head_map 6 20", "0 first_convolution 20 21",
                                                        "0 first_convolution_bias 1 20", "0 second_convolution 20 60",
                                                        "0 second_convolution_bias 1 20", "0 mel_filters 1 112",
                                                        "0 up 24 20", "0 down 20 24"});
}

TEST_CASE("roles: every part that a block may have, in the directory's order") {
    Stack stack;
    stack.n_layers = stack.n_blocks = 1, stack.d_model = 8, stack.vocab_size = 20, stack.max_positions = 5;
    stack.n_token_types = 2, stack.position = Position::learned;
    stack.embedding_norm = stack.final_norm = Norm::layer;
    stack.embedding_norm_bias = stack.final_norm_bias = stack.has_output_head = stack.output_bias = true;
    Block& b = stack.blocks[0];
    b.attention.n_heads = b.attention.n_kv_heads = 2, b.attention.head_dim = b.attention.value_head_dim = 4,
    b.feed.d_ff = 24;
    b.attention.position = Position::relative, b.attention.relative_max_distance = 3;
    b.norm = b.attention.query_key_norm = Norm::layer, b.norm_place = NormPlace::both;
    b.norm_bias = b.attention.cross_attention = b.attention.has_output_map = b.attention.bias_kv =
        b.attention.attention_sinks = true;
    b.attention.query_bias = b.attention.key_bias = b.attention.value_bias = b.attention.output_bias = b.feed.up_bias =
        b.feed.down_bias = true;
    stack.embedding_width = 4, stack.embedding_bias = true;
    stack.head[0] = {.width = 6, .norm = Norm::layer, .bias = true, .norm_bias = true};
    constexpr std::size_t kBeside = 9 + 1 + 2 + 4;             // of the stack, the block, the embeddings and the head
    CHECK(called_for(stack).size() == kBeside + 19 + 12 + 8);  // all roles but rope_frequencies and alibi_slopes
    b.attention.n_heads = 0;
    CHECK(called_for(stack).size() == kBeside + 8);
    b.feed.d_ff = 0;
    CHECK(called_for(stack).size() == kBeside);
    stack.head[1] = {.width = 3};
    const std::vector<std::string> more = called_for(stack);  // more maps than layers
    CHECK(more.size() == kBeside + 1);
    CHECK(more.back() == "1 head_map 3 6");
}

}  // namespace
