// An encoder that hears: frames in place of vectors, two of which become a row. That its numbers are right, the golden models
// say (tests/convert/sources/whisper_test.cpp); here are its bits, its memory and what it refuses.
#include <doctest/doctest.h>

#include "fovea/encode.h"
#include "fovea/workspace.h"
#include "tests/support/encoder_models.h"
#include "tests/support/same_bits.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"
#include "tests/support/small_pool.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// With convolutions of that type too, which a converter would leave in float16.
struct SoundModel {
    AlignedBytes file;
    Model model;

    explicit SoundModel(const Config& config, Type type = Type::f32) {
        MatrixTypes types;
        for (const Role role : {Role::first_convolution, Role::second_convolution})
            types[{StackIndex::encoder, 0, role}] = type;
        file = write_bytes(random_model(config, 7), {.type = type, .types = &types});
        REQUIRE(open_model(file, model).ok());
    }
};

constexpr std::uint32_t kMels = 11, kDModel = 40, kVocabSize = 71;

/// Rows that n frames become.
constexpr std::uint32_t rows_of(std::uint32_t n) { return (n + 1) / 2; }

/// The encoder's rows of some sequences, which lie one behind the other in `frames`.
std::vector<float> rows_of(const Model& model, std::span<const float> frames, std::span<const std::uint32_t> lengths,
                           const Limits& limits, const char* isa) {
    std::size_t n = 0;
    for (const std::uint32_t length : lengths) n += rows_of(length);
    std::vector<float> rows(n * kDModel);
    SmallSession s(model, limits, isa);
    const Status status = encode(s.session, {.source = {.vectors = frames, .lengths = lengths}}, rows);
    CAPTURE(status.what);
    REQUIRE(status.ok());
    return rows;
}

}  // namespace

TEST_CASE("sound: the same bits on every instruction set and number of threads, alone and among others") {
    constexpr std::uint32_t kLengths[] = {80, 1, 27, 2, 3, 64};
    const auto frames = some_floats(177 * kMels, 5);
    for (const Type type : {Type::f32, Type::f16, Type::bf16, Type::q8, Type::q4, Type::q4_k, Type::q8_128}) {
        CAPTURE(static_cast<int>(type));
        Config config = sound_config();
        config.decoder = {};
        const SoundModel sound(config, type);
        const Limits limits{.max_batch = 90, .max_sequences = 6};
        const auto want = rows_of(sound.model, frames, kLengths, limits, "scalar");
        for (const char* isa : model_isas())
            for (const std::uint32_t n_threads : {1u, 3u}) {
                CAPTURE(isa);
                CAPTURE(n_threads);
                Limits threaded = limits;
                threaded.n_threads = n_threads;
                CHECK(same_bits(want, rows_of(sound.model, frames, kLengths, threaded, isa)));
            }
        std::size_t frame = 0, row = 0;
        for (const std::uint32_t& length : kLengths) {
            CAPTURE(length);
            const auto alone = rows_of(sound.model, std::span(frames).subspan(frame * kMels, length * kMels),
                                       {&length, 1}, {.max_batch = rows_of(length)}, nullptr);
            CHECK(same_bits(alone, std::span(want).subspan(row * kDModel, rows_of(length) * kDModel)));
            frame += length;
            row += rows_of(length);
        }
    }
}

TEST_CASE("sound: a team that shares every phase gives the bits of one thread") {
    Config config = sound_config(80, 600);  // wide enough that threads are woken
    config.decoder = {};
    for (const Type type : {Type::f32, Type::q8}) {
        const SoundModel sound(config, type);
        const std::uint32_t length = 599;
        const auto frames = some_floats(599 * 80, 2);
        const auto want = rows_of(sound.model, frames, {&length, 1}, {.max_batch = 300}, nullptr);
        for (const std::uint32_t n_threads : {2u, 3u, 5u})
            CHECK(same_bits(
                want, rows_of(sound.model, frames, {&length, 1}, {.max_batch = 300, .n_threads = n_threads}, nullptr)));
    }
}

TEST_CASE("sound: steps beside a cached memory give what encode gives of all rows, in exactly the planned memory") {
    const SoundModel sound(sound_config());
    const Model& model = sound.model;
    constexpr std::uint32_t kLengths[] = {80, 33}, kTargets[] = {9, 6};
    const auto frames = some_floats(113 * kMels, 3);
    const auto tokens = some_tokens(15, kVocabSize);
    std::vector<float> want(15 * kVocabSize), got(15 * kVocabSize);
    SmallSession whole(model, {.max_batch = 57, .max_sequences = 2}, "scalar");
    const Sequences source{.vectors = frames, .lengths = kLengths};
    REQUIRE(encode(whole.session,
                   {.source = source, .target = {.ids = tokens, .lengths = kTargets, .masks = {.causal = true}}}, want)
                .ok());

    const Limits limits{.max_kv_len = 20, .max_batch = 57, .n_threads = 2, .max_sequences = 2};
    SmallWorkspace own(model, limits);
    Workspace& workspace = own.workspace;
    SmallPool texts(model, {.max_sequences = 2}), memories(model, {.max_sequences = 2, .memory = true});
    CHECK(memories.plan.limits.max_kv_len == 40);  // rows, not frames
    const Cache text[] = {texts.make(), texts.make()}, memory[] = {memories.make(), memories.make()};
    REQUIRE(cache_memory(workspace, {.source = source}, memory).ok());
    CHECK(memory[0].kv_len() == 40);
    CHECK(memory[1].kv_len() == 17);
    const auto part = [&](std::size_t first, std::size_t n) { return std::span(tokens).subspan(first, n); };
    const auto logits = [&](std::size_t first, std::size_t n) {
        return std::span(got).subspan(first * kVocabSize, n * kVocabSize);
    };
    const Step together[] = {{text[0], part(0, 4), logits(0, 4), memory[0]},
                             {text[1], part(9, 6), logits(9, 6), memory[1]}};
    REQUIRE(forward(workspace, together).ok());
    for (std::size_t i = 4; i < 9; ++i) {
        const Step one{text[0], part(i, 1), logits(i, 1), memory[0]};
        REQUIRE(forward(workspace, {&one, 1}).ok());
    }
    CHECK(same_bits(want, got));
}

TEST_CASE("sound: limits that are not given are those of a whole stretch") {
    Plan plan;
    REQUIRE(make_plan(sound_config(11, 600), {}, plan).ok());
    CHECK(plan.limits.max_batch == 300);
    REQUIRE(make_plan(sound_config(), {}, plan).ok());
    CHECK(plan.limits.max_batch == 90);  // the decoder's positions are more
}

TEST_CASE("sound: frames that are too many, too few or of another width are refused, and nothing is written") {
    Config config = sound_config();
    config.decoder = {};
    const SoundModel sound(config);
    SmallSession s(sound.model, {.max_batch = 41, .max_sequences = 2});
    const auto frames = some_floats(100 * kMels, 3);
    std::vector<float> rows(41 * kDModel, 7.0f);
    const auto refused = [&](std::size_t n_floats, std::initializer_list<std::uint32_t> lengths, std::size_t n_rows) {
        const Status status = encode(
            s.session,
            {.source = {.vectors = std::span(frames).first(n_floats), .lengths = {lengths.begin(), lengths.size()}}},
            std::span(rows).first(n_rows * kDModel));
        for (const float x : rows) CHECK(x == 7.0f);
        return std::string(status.what);
    };
    CHECK(refused(80 * kMels, {81}, 41) == "vectors' elements");
    CHECK(refused(81 * kMels, {81}, 41) == "positions at most");
    CHECK(refused(80 * kMels - 1, {80}, 40) == "vectors' elements");
    CHECK(refused(80 * kMels, {80}, 41) == "output elements");
    CHECK(refused(80 * kMels, {80, 0}, 40) == "rows of every sequence at least");
    CHECK(refused(84 * kMels, {80, 4}, 42) == "rows at most");
    CHECK(refused(0, {0xffffffffu}, 1) == "rows at most");
    const std::uint32_t most[] = {79, 1};
    CHECK(encode(s.session, {.source = {.vectors = std::span(frames).first(80 * kMels), .lengths = most}}, rows).ok());
}

TEST_CASE("sound: filters are the file's, as floats; a model that hears nothing has none") {
    const SoundModel sound(sound_config(), Type::q8);
    CHECK(mel_filters(sound.model).size() == std::size_t{kMels} * 16);
    CHECK(mel_filters(SmallModel(text_config(true), Type::f32).model).empty());
    CHECK(sound.model.config().encoder.sound == sound_config().encoder.sound);
}
