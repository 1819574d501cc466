// What a model that opens has to stand: planned, given exactly its plan, run, its text encoded and decoded.
#pragma once
#include <cmath>
#include <cstring>
#include <vector>

#include "fovea/adapter.h"
#include "fovea/encode.h"
#include "fovea/session.h"
#include "fovea/tokenizer.h"
#include "host/model/parameters.h"
#include "tests/fuzz/fuzz.h"

namespace fovea::fuzz {

/// What is run, and how; anything larger would run too, but for long.
struct Most {
    std::uint64_t arena_bytes = 16 << 20, parameters = 1 << 20;
    Type kv_type = Type::f32;
    bool weights = false;                     ///< again for the attention weights of each layer
    std::span<const std::byte> adapter = {};  ///< the file of one of the model, which is then in use
};

enum class Outcome { refused, too_large, no_session, ran };
inline constexpr int kOutcomes = 4;
inline constexpr const char* kOutcomeNames[] = {"refused", "too large to run here", "no session", "ran"};

inline void speak(const Model& model) {
    Tokenizer tokenizer;
    if (!open_tokenizer(model.tokenizer_bytes(), tokenizer).ok()) return;
    constexpr std::string_view kText = "Turn \xc3\xa9 on,\n 12 <|a|> \xff";
    const std::uint64_t most_ids = max_tokens(tokenizer, kText.size());
    const std::uint64_t scratch_bytes = tokenize_scratch_bytes(tokenizer, kText.size());
    constexpr std::uint64_t kMost = 16 << 20;
    promise(most_ids < kMost && scratch_bytes < kMost, "a text's memory is bounded by the text");
    std::vector<std::byte> scratch(scratch_bytes);
    std::vector<Token> ids(most_ids);
    std::vector<char> piece(max_piece_bytes(tokenizer));
    std::size_t n_ids = 0;
    if (!tokenize(tokenizer, kText, {true, true}, scratch, ids, n_ids).ok()) return;
    Decoder decoder;
    for (std::size_t i = 0; i < n_ids; ++i) (void)decode(tokenizer, decoder, ids[i], false, piece);
    (void)finish(decoder, piece);
}

/// Rows for one stack: two sequences of ids or of vectors.
struct Rows {
    std::vector<Token> ids;
    std::vector<float> vectors;
    static constexpr std::uint32_t kLengths[] = {3, 1}, kRows = 4;
    static constexpr std::uint32_t kFrames[] = {5, 2};  // which become as many rows
    bool hears;

    explicit Rows(const Stack& stack) : hears(stack.sound.is_speech()) {
        if (stack.vocab_size)
            for (std::uint32_t i = 0; i < kRows; ++i) ids.push_back(i * 7 % stack.vocab_size);
        else
            vectors.assign(
                hears ? std::size_t{kFrames[0] + kFrames[1]} * stack.sound.n_mels : std::size_t{kRows} * stack.d_model,
                0.25f);
    }
    [[nodiscard]] Sequences sequences() const {
        return {.ids = ids, .vectors = vectors, .lengths = hears ? kFrames : kLengths};
    }
};

/// Whatever kind of model it is, its result; empty where it takes none of these inputs.
inline std::vector<float> result_of(Session& session) {
    const Config& config = session.model().config();
    const Stack& last = config.decoder.n_layers ? config.decoder : config.encoder;
    std::vector<float> out(config.decoder.vocab_size);
    if (config.decoder.vocab_size) {
        std::vector<Token> tokens(session.max_kv_len() < 5 ? 1 : 5);
        for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(i * 7 % out.size());
        const Status status = forward(session, tokens, out);
        if (config.decoder.joins_rows) {
            promise(status.code == Code::bad_shape, "a next-token head takes no tokens without rows");
            return {};
        }
        promise(status.ok() || status.code == Code::unsupported, "a session takes its tokens");
        if (status.ok()) return out;
    }
    const Rows source(config.encoder), target(config.decoder);
    const std::vector<float> memory(std::size_t{Rows::kRows} * config.decoder.d_model, 0.5f);
    EncodeInput input;
    if (config.encoder.n_layers) input.source = source.sequences();
    if (config.decoder.n_layers) input.target = target.sequences();
    if (config.decoder.n_layers && !config.encoder.n_layers && last.blocks[0].attention.cross_attention)
        input.memory = memory, input.memory_lengths = Rows::kLengths;
    const std::size_t n_out = last.pooling == Pooling::none ? std::size_t{Rows::kRows} : std::size(Rows::kLengths);
    out.resize(n_out * last.result_width());
    if (encode(session, input, out).ok()) return out;

    const AttentionShape& block = last.blocks[0].attention;
    const auto rows = [&](std::uint32_t width) {
        return std::vector<float>(Rows::kRows * or_else(width, last.d_model), 0.5f);
    };
    const auto query = rows(block.query_width), key = rows(block.key_width), value = rows(block.value_width);
    const std::uint64_t width = block.has_output_map ? or_else(block.output_width, last.d_model)
                                                     : std::uint64_t{block.n_heads} * block.value_head_dim;
    out.resize(Rows::kRows * width);
    if (attend(session,
               {.query = {query}, .key = {key}, .value = {value}, .n_queries = Rows::kRows, .n_keys = Rows::kRows}, out)
            .ok())
        return out;
    return {};
}

/// Asked for the attention weights of any layer, with room for those, a session gives the same result.
inline void look(Session& session, const std::vector<float>& result) {
    const Config& config = session.model().config();
    constexpr std::uint32_t kSide = 8;  // more than there are rows, appended keys among them
    for (const bool in_encoder : {false, true})
        for (const bool cross : {false, true})
            for (const bool per_head : {false, true}) {
                const Stack& stack = in_encoder || !config.decoder.n_layers ? config.encoder : config.decoder;
                for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer) {
                    std::vector<float> out(std::size_t{2 * kSide * kSide} *
                                           (per_head ? stack.block(layer).attention.n_heads : 1));
                    if (!capture_attention(session, {layer, in_encoder, cross, per_head, kSide, kSide, out}).ok())
                        continue;
                    (void)rewind(session, 0);
                    const std::vector<float> again = result_of(session);
                    promise(again.size() == result.size() &&
                                std::memcmp(again.data(), result.data(), result.size() * sizeof(float)) == 0,
                            "weights change no result");
                    (void)capture_attention(session, {});
                }
            }
}

/// Opens and runs a file, on every instruction set there is, and says how far that went.
inline Outcome run_model(std::span<const std::byte> file, const Most& most = {}) {
    Model model;
    if (!open_model(file, model).ok()) return Outcome::refused;
    speak(model);
    if (count_parameters(model.config()).total > most.parameters) return Outcome::too_large;
    // A model is for logits or for rows, and limits of the other kind are refused.
    Limits limits{.max_batch = Rows::kRows, .kv_type = most.kv_type, .max_sequences = 2};
    Model adapter;
    const bool adapts = !most.adapter.empty();
    if (adapts) promise(open_model(most.adapter, adapter).ok(), "an adapter's file opens");
    const auto with_adapters = [&](Limits of) {
        if (adapts) of.max_adapters = 2, of.max_adapter_rank = adapter_rank(adapter);
        return of;
    };
    limits = with_adapters(limits);
    Plan plan;
    if (!make_plan(model.config(), limits, plan).ok()) {
        limits = with_adapters({.max_kv_len = model.config().decoder.max_positions < 9 ? 0u : 9u,
                                .max_batch = 4,
                                .kv_type = most.kv_type});
        if (!make_plan(model.config(), limits, plan).ok()) return Outcome::no_session;
    }
    if (plan.arena_bytes > most.arena_bytes) return Outcome::too_large;
    AlignedBytes arena(plan.arena_bytes);
    std::vector<float> first;
    for (const char* isa : isa_names()) {
        Session session;
        promise(!make_session(model, limits, std::span(arena).first(arena.size() - 1), session, isa).ok(),
                "a byte less than the plan is refused");
        if (!make_session(model, limits, arena, session, isa).ok()) return Outcome::no_session;  // types no kernel has
        const Adapter both[] = {{&adapter, 0.5f}, {&adapter, -2.0f}};
        if (adapts) promise(set_adapters(session, both).ok(), "an adapter of the model's own shape is taken");
        const std::vector<float> out = result_of(session);
        for (const float x : out)
            promise(!std::isnan(x) || std::bit_cast<std::uint32_t>(x) == 0x7fc00000u, "there is one NaN");
        if (first.empty()) first = out;
        if (out.empty()) return Outcome::no_session;  // it takes other inputs than ours
        promise(out.size() == first.size() && std::memcmp(out.data(), first.data(), out.size() * sizeof(float)) == 0,
                "every instruction set computes the same bits");
        if (most.weights) look(session, out);
    }
    return Outcome::ran;
}

}  // namespace fovea::fuzz
