// What by_cpp.h declares.
#include "tests/c_api/by_cpp.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fovea/adapter.h"
#include "fovea/encode.h"
#include "fovea/generator.h"
#include "host/grammar/grammar.h"
#include "tests/support/encoder_models.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

const SmallModel& decoder() {
    static const SmallModel model(llama_config(), Type::q8);
    return model;
}
const SmallModel& encoder() {
    static const SmallModel model(bert_config(), Type::f32);
    return model;
}
const SmallModel& both() {
    static const SmallModel model(both_config(NormPlace::pre), Type::f32);
    return model;
}
const SmallModel& reader() {
    static const SmallModel model(text_config(true), Type::f32);
    return model;
}
/// An adapter of the decoder; it is for any model of that shape.
Config adapter_config(std::uint32_t rank, Adapted matrix, Adapted other) {
    Config config = llama_config();
    config.decoder.adapter_rank = rank;
    config.decoder.adapted = static_cast<std::uint32_t>(matrix) | static_cast<std::uint32_t>(other);
    return config;
}
const SmallModel& adapter() {
    static const SmallModel model(adapter_config(5, Adapted::query, Adapted::down), Type::f32);
    return model;
}
const SmallModel& second_adapter() {
    static const SmallModel model(adapter_config(3, Adapted::query, Adapted::up), Type::f16);
    return model;
}
test_file file_of(const SmallModel& model) { return {model.file.data(), model.file.size()}; }

void must(const Status& status) {
    if (status.ok()) return;
    std::printf("C++ interface: %s\n", StatusLine(status).c_str());
    std::exit(1);
}

}  // namespace

test_file decoder_file() { return file_of(decoder()); }
test_file encoder_file() { return file_of(encoder()); }
test_file both_file() { return file_of(both()); }
test_file reader_file() { return file_of(reader()); }
test_file adapter_file() { return file_of(adapter()); }
test_file second_adapter_file() { return file_of(second_adapter()); }

test_file schema_form(test_file file, const char* schema) {
    static std::vector<std::byte> form;
    Model model;
    Tokenizer tokenizer;
    must(open_model({static_cast<const std::byte*>(file.bytes), file.n_bytes}, model));
    must(open_tokenizer(model.tokenizer_bytes(), tokenizer));
    form = grammar::compile(grammar::read_json_schema(schema, {.compact = true}), tokenizer,
                            grammar::index_vocabulary(tokenizer), {.own_index = true});
    return {form.data(), form.size()};
}

void cpp_forward(const std::uint32_t* tokens, std::size_t n, float* logits) {
    SmallSession s(decoder().model, {});
    must(forward(s.session, {tokens, n}, {logits, n * decoder().model.config().decoder.vocab_size}));
}

void cpp_adapted(const std::uint32_t* tokens, std::size_t n, float scale, float second_scale, float* logits) {
    SmallSession s(decoder().model, {.max_adapters = 2, .max_adapter_rank = 5});
    const Adapter both[] = {{&adapter().model, scale}, {&second_adapter().model, second_scale}};
    must(set_adapters(s.session, both));
    must(forward(s.session, {tokens, n}, {logits, n * decoder().model.config().decoder.vocab_size}));
}

void cpp_generate(const std::uint32_t* prompt, std::size_t n, float temperature, std::uint32_t top_k, float top_p,
                  float repeat_penalty, float frequency_penalty, std::uint64_t seed, std::uint32_t n_recent,
                  std::uint32_t* tokens, std::uint32_t n_new) {
    SmallSession s(decoder().model, {});
    GeneratorPlan plan;
    Generator generator;
    must(make_generator_plan(decoder().model, {}, {}, plan));
    AlignedBytes arena(plan.arena_bytes);
    must(make_generator(decoder().model, {}, s.session.cache(), {}, arena, generator));
    const auto or_one = [](float x) { return x == 0 ? 1 : x; };
    const GenerateOptions options{.sampler = {.temperature = temperature,
                                              .top_k = top_k,
                                              .top_p = or_one(top_p),
                                              .repeat_penalty = or_one(repeat_penalty),
                                              .seed = seed,
                                              .frequency_penalty = frequency_penalty},
                                  .n_new = n_new,
                                  .n_recent = n_recent,
                                  .n_counted = n_recent,
                                  .counts_prompt = true};
    must(start(generator, {prompt, n}, options));
    Workspace workspace = s.session.workspace();
    for (Piece piece; piece.finish == FinishReason::none;) must(generate(generator, workspace, piece));
    std::memcpy(tokens, generator.tokens().data() + n, n_new * sizeof *tokens);
}

void cpp_attention(const std::uint32_t* tokens, std::size_t n, float* out) {
    SmallSession s(decoder().model, {});
    const auto side = static_cast<std::uint32_t>(n);
    must(capture_attention(s.session,
                           {.layer = 1, .per_head = true, .n_queries = side, .n_keys = side, .out = {out, 6 * n * n}}));
    must(forward(s.session, {tokens, n}, {}));
}

void cpp_encode(const std::uint32_t* ids, const std::uint32_t* types, const std::uint32_t* lengths,
                const std::uint8_t* hidden, std::uint32_t longest, float* out) {
    const std::size_t n = lengths[0] + lengths[1];
    SmallSession s(encoder().model, {.max_batch = 64, .max_sequences = 2});
    EncodeInput input;
    input.source.ids = {ids, n};
    input.source.types = {types, n};
    input.source.lengths = {lengths, 2};
    input.source.masks.padding = {.hidden = hidden, .sequence_stride = longest, .n_keys = longest};
    must(encode(s.session, input, {out, n * 40}));
}

void cpp_both(const float* source, std::uint32_t n_source, const float* target, std::uint32_t n_target,
              const float* added, float* out) {
    SmallSession s(both().model, {.max_batch = 64});
    EncodeInput input;
    input.source.vectors = {source, n_source * std::size_t{40}};
    input.source.lengths = {&n_source, 1};
    input.target.vectors = {target, n_target * std::size_t{40}};
    input.target.lengths = {&n_target, 1};
    input.target.masks.causal = true;
    input.memory_masks.attention = {.added = added, .query_stride = n_source, .n_keys = n_source};
    must(encode(s.session, input, {out, n_target * std::size_t{40}}));
}

void cpp_attend(const float* query, std::uint32_t n_queries, const float* key, const float* value, std::uint32_t n_keys,
                std::uint32_t n_past, float* out) {
    Model heads;
    must(attention_model({.n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .value_head_dim = 16, .no_projections = true},
                         heads));
    SmallSession s(heads, {.max_batch = 64, .max_key_rows = 64});
    const std::size_t past = n_past * std::size_t{32}, n_new = (n_keys - n_past) * std::size_t{32};
    const Strides few{0, 32, 16};
    AttendInput input{.query = {{query, n_queries * std::size_t{64}}, {0, 64, 16}},
                      .key = {{key + past, n_new}, few},
                      .value = {{value + past, n_new}, few},
                      .past_key = {{key, past}, few},
                      .past_value = {{value, past}, few},
                      .n_queries = n_queries,
                      .n_keys = n_keys - n_past,
                      .n_past = n_past,
                      .masks = {},
                      .kv_lengths = {},
                      .out_strides = {0, 64, 16}};
    input.masks.causal = true;
    must(attend(s.session, input, {out, n_queries * std::size_t{64}}));
}
