// Whisper's folders: what the engine computes of a converted one is what transformers computes; and what the file says of sound
// and of the tokens that steer.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "convert/weights/mel_filters.h"
#include "fovea/encode.h"
#include "fovea/host/opened.h"
#include "host/model/listing.h"
#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr const char* kNames[] = {"whisper_narrow", "whisper_bare"};

fs::path golden(const char* name) { return fs::path(FOVEA_GOLDEN_DIR) / "speech" / name; }

/// The golden ones, and those that make_speech.py made in FOVEA_SPEECH_FOLDERS.
std::vector<fs::path> speech_folders() {
    std::vector<fs::path> folders = {golden(kNames[0]), golden(kNames[1])};
    if (const char* more = std::getenv("FOVEA_SPEECH_FOLDERS"))
        for (const auto& entry : fs::directory_iterator(more)) folders.push_back(entry.path());
    return folders;
}

std::vector<float> floats_of(const fs::path& path) { return numbers_of<float>(read_npy(path.string())); }

/// As a share of the largest value; 1 where they differ in number.
float error_of(std::span<const float> want, std::span<const float> got) {
    float largest = 0, error = want.size() == got.size() ? 0.0f : 1.0f;
    for (std::size_t i = 0; i < std::min(want.size(), got.size()); ++i) {
        largest = std::max(largest, std::abs(want[i]));
        error = std::max(error, std::abs(want[i] - got[i]));
    }
    return error / largest;
}

/// A folder's model, or its encoder alone, in memory.
struct Speech {
    AlignedBytes file;
    Model model;

    explicit Speech(const fs::path& folder, std::optional<Type> type = {}, bool encoder_alone = false) {
        ConvertOptions options;
        options.source = folder;
        options.type = type;
        ModelSource source = read_source(options);
        if (encoder_alone) source.config.decoder = {};
        file = write_bytes(source, write_options(options, source));
        const Status status = open_model(file, model, {.verify_checksums = true});
        CAPTURE(status.what);
        REQUIRE(status.ok());
    }

    /// The rows of the first n frames or, where there is a decoder, the logits of the golden's tokens beside them.
    [[nodiscard]] std::vector<float> hear(std::span<const float> frames, std::uint32_t n_frames,
                                          std::uint32_t most_tokens = 12) const {
        const Config& config = model.config();
        std::vector<Token> tokens(config.decoder.n_layers ? most_tokens : 0);
        for (std::uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = (7 * i + 3) % config.decoder.vocab_size;
        const auto n_tokens = static_cast<std::uint32_t>(tokens.size());
        Plan plan;
        REQUIRE(make_plan(config, {}, plan).ok());
        AlignedBytes arena(plan.arena_bytes);
        Session session;
        REQUIRE(make_session(model, {}, arena, session).ok());
        const std::size_t n_rows = (n_frames + 1) / 2;
        std::vector<float> out(n_tokens ? std::size_t{n_tokens} * config.decoder.vocab_size
                                        : n_rows * config.encoder.d_model);
        EncodeInput in{.source = {.vectors = frames.first(std::size_t{n_frames} * config.encoder.sound.n_mels),
                                  .lengths = {&n_frames, 1}}};
        if (n_tokens) in.target = {.ids = tokens, .lengths = {&n_tokens, 1}, .masks = {.causal = true}};
        const Status status = encode(session, in, out);
        CAPTURE(status.what);
        REQUIRE(status.ok());
        return out;
    }
};

/// A source's file, as a program opens it.
host::Opened opened_of(const ConvertOptions& given, const TemporaryFolder& folder) {
    ConvertOptions options = given;
    options.output = folder / "opened.fovea";
    convert_source(options);
    return host::open(options.output.string());
}

nlohmann::json steering_of(const fs::path& folder) {
    return nlohmann::json::parse(find_info(Speech(folder).model, "speech"));
}

}  // namespace

TEST_CASE("speech: rows and logits are transformers', of a whole stretch and of an odd number of frames") {
    for (const fs::path& folder : speech_folders()) {
        const std::string name = folder.string();
        CAPTURE(name);
        const Speech whole(folder), encoder(folder, {}, true);
        const std::vector<float> frames = floats_of(folder / "frames.npy");
        const std::uint32_t n_frames = whole.model.config().encoder.sound.n_frames;
        REQUIRE(frames.size() == std::size_t{n_frames} * whole.model.config().encoder.sound.n_mels);
        for (const bool is_short : {false, true}) {
            CAPTURE(is_short);
            const std::string kind = is_short ? "expected_short_" : "expected_";
            const std::uint32_t n = is_short ? 27 : n_frames;
            CHECK(error_of(floats_of(folder / (kind + "rows.npy")), encoder.hear(frames, n)) < 1e-4f);
            CHECK(error_of(floats_of(folder / (kind + "logits.npy")), whole.hear(frames, n)) < 1e-4f);
        }
    }
}

TEST_CASE("speech: types that halve or quantize weights stay near") {
    const std::pair<Type, float> bounds[] = {
        {Type::f16, 0.01f}, {Type::bf16, 0.1f}, {Type::q8, 0.15f}, {Type::q4, 0.9f}};
    for (const char* name : kNames)
        for (const auto& [type, bound] : bounds) {
            const int number = static_cast<int>(type);
            CAPTURE(name);
            CAPTURE(number);
            const Speech speech(golden(name), type);
            const std::vector<float> frames = floats_of(golden(name) / "frames.npy");
            const auto got = speech.hear(frames, speech.model.config().encoder.sound.n_frames);
            const float error = error_of(floats_of(golden(name) / "expected_logits.npy"), got);
            CAPTURE(error);
            CHECK(error < bound);
            if (is_quantized(type))
                for (const TensorInfo& t : tensors(speech.model))
                    if (std::string(t.role).find("convolution") != std::string::npos)
                        CHECK(t.type == (std::string(t.role).ends_with("bias") ? Type::f32 : Type::f16));
        }
}

TEST_CASE("speech: filters are the feature extractor's, or the file's own") {
    for (const char* name : kNames) {
        CAPTURE(name);
        const Speech speech(golden(name));
        const Sound& sound = speech.model.config().encoder.sound;
        CHECK(sound.sample_rate == 16000);
        CHECK(sound.n_fft == 400);
        CHECK(sound.hop_length == 160);
        CHECK(sound.n_frames == 2 * speech.model.config().encoder.max_positions);
        const std::vector<float> want = floats_of(golden(name) / "expected_filters.npy");
        CHECK(error_of(want, mel_filters(speech.model)) < 1e-6f);
    }
    TemporaryFolder copy;
    fs::copy(golden("whisper_narrow"), copy.path(), fs::copy_options::recursive);
    std::vector<float> own[2];
    for (const bool turned : {false, true}) {
        edit_json(copy / "preprocessor_config.json", [&](nlohmann::json& json) {
            json["n_fft"] = 6;
            json["mel_filters"] = nlohmann::json::array();
            for (int row = 0; row < (turned ? 4 : 80); ++row) {
                nlohmann::json& of = json["mel_filters"].emplace_back(nlohmann::json::array());
                for (int col = 0; col < (turned ? 80 : 4); ++col) of.push_back(turned ? 4 * col + row : 4 * row + col);
            }
        });
        const Speech speech(copy.path());
        const auto filters = mel_filters(speech.model);
        own[turned].assign(filters.begin(), filters.end());
    }
    REQUIRE(own[0].size() == 320);
    for (std::size_t i = 0; i < 320; ++i) CHECK(own[0][i] == static_cast<float>(i));
    CHECK(own[0] == own[1]);
    edit_json(copy / "preprocessor_config.json", [](nlohmann::json& json) { json["mel_filters"][0][0] = "no"; });
    CHECK(contains(refusal_of([&] { (void)read_source({.source = copy.path()}); }),
                   "mel_filters: expected a list of 80"));
}

TEST_CASE("speech: what steers is generation_config.json's or, without it, the names of tokens") {
    const nlohmann::json narrow = steering_of(golden("whisper_narrow")), bare = steering_of(golden("whisper_bare"));
    CHECK(narrow["suppress_tokens"] == nlohmann::json({0, 2}));
    CHECK(narrow["begin_suppress_tokens"] == nlohmann::json({220, 265}));
    CHECK(narrow["max_initial_timestamp_index"] == 20);
    CHECK(!bare.contains("suppress_tokens"));
    CHECK(bare["begin_suppress_tokens"] == nlohmann::json({220, 265}));  // of config.json
    for (const nlohmann::json& json : {narrow, bare}) {
        CHECK(json["eos_token_id"] == 265);
        CHECK(json["decoder_start_token_id"] == 266);
        CHECK(json["lang_to_id"] == nlohmann::json({{"<|en|>", 267}, {"<|de|>", 268}, {"<|haw|>", 269}}));
        CHECK(json["task_to_id"] == nlohmann::json({{"translate", 270}, {"transcribe", 271}}));
        CHECK(json["prev_sot_token_id"] == 273);
        CHECK(json["no_speech_token_id"] == 274);
        CHECK(json["no_timestamps_token_id"] == 275);
        CHECK(json["timestamp_begin"] == 276);
        CHECK(json["is_multilingual"] == true);
    }
}

TEST_CASE("speech: OpenAI's own file and whisper.cpp's have openai-whisper's logits, tokens and rules") {
    const fs::path folder = fs::path(FOVEA_GOLDEN_DIR) / "whisper_files";
    const auto expected = nlohmann::json::parse(read_text(folder / "expected.json"));
    const std::vector<float> frames = floats_of(folder / "frames.npy"), logits = floats_of(folder / "logits.npy");
    std::vector<std::vector<std::byte>> tokenizers;
    for (const char* file : {"tiny.pt", "tiny.bin"}) {
        CAPTURE(file);
        CHECK(error_of(logits, Speech(folder / file, Type::f32).hear(frames, 20, 4)) < 1e-4f);
        const ModelSource source = read_source({.source = folder / file});
        CHECK(source.notes.empty());
        const nlohmann::json steering = steering_of(folder / file);
        for (const char* name : {"suppress_tokens", "lang_to_id", "timestamp_begin", "no_timestamps_token_id"})
            CHECK(steering[name] == expected[name]);
        auto begin = steering["begin_suppress_tokens"].get<std::vector<Token>>();
        std::sort(begin.begin(), begin.end());
        CHECK(begin == expected["begin_suppress_tokens"]);
        const TemporaryFolder made;
        const host::Opened opened = opened_of({.source = folder / file}, made);
        for (const auto& [text, ids] : expected["texts"].items()) {
            CHECK(opened.tokens(text) == ids.get<std::vector<Token>>());
            CHECK(opened.text(ids.get<std::vector<Token>>()) == text);
        }
        tokenizers.push_back(source.tokenizer);
    }
    CHECK(tokenizers[0] == tokenizers[1]);
    TemporaryFolder alone;
    fs::copy(folder / "tiny.pt", alone / "tiny.pt");
    const ModelSource without =
        read_source({.source = alone / "tiny.pt", .tokenizer = folder / "multilingual.tiktoken"});
    CHECK(without.tokenizer == tokenizers[0]);
    CHECK(contains(refusal_of([&] { (void)read_source({.source = alone / "tiny.pt"}); }),
                   "n_vocab: expected 50257 tokens"));
}

TEST_CASE(
    "speech: whisper.cpp's file that is cut off anywhere is refused, and one with a byte changed is refused or read") {
    const std::string whole = read_text(fs::path(FOVEA_GOLDEN_DIR) / "whisper_files" / "tiny.bin");
    TemporaryFolder folder;
    const auto refused = [&](const std::string& bytes) {
        write_text(folder / "odd.bin", bytes);
        return refusal_of([&] { (void)read_source({.source = folder / "odd.bin"}); });
    };
    for (std::size_t n = 8; n < whole.size(); n += n < 200 ? 3 : 4999) CHECK(!refused(whole.substr(0, n)).empty());
    for (std::size_t n = 4; n < whole.size(); n += n < 200 ? 1 : 4999) {
        std::string changed = whole;
        changed[n] = static_cast<char>(changed[n] ^ 0x41);
        (void)refused(changed);
    }
}

TEST_CASE("speech: a folder with vocab.json, merges.txt and added_tokens.json has the tokenizer.json's tokens") {
    TemporaryFolder copy;
    fs::copy(golden("whisper_narrow"), copy.path(), fs::copy_options::recursive);
    const auto whole = nlohmann::json::parse(read_text(copy / "tokenizer.json"));
    fs::remove(copy / "tokenizer.json");
    nlohmann::json added = nlohmann::json::object(), special = nlohmann::json::array();
    for (const auto& token : whole["added_tokens"]) {
        added[token["content"].get<std::string>()] = token["id"];
        if (token["special"] == true) special.push_back(token["content"]);
    }
    std::string merges = "#version: 0.2\n";
    for (const auto& merge : whole["model"]["merges"])
        merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
    write_text(copy / "vocab.json", whole["model"]["vocab"].dump());
    write_text(copy / "merges.txt", merges);
    write_text(copy / "added_tokens.json", added.dump());
    write_text(copy / "special_tokens_map.json", nlohmann::json({{"additional_special_tokens", special}}).dump());
    const TemporaryFolder made[2];
    const host::Opened parted = opened_of({.source = copy.path()}, made[0]),
                       joined = opened_of({.source = golden("whisper_narrow")}, made[1]);
    for (const char* text : {"the lamp on 'the' <|en|><|0.02|>", " \xc3\xa9t\xc3\xa9"})
        CHECK(parted.tokens(text, {.parse_special = true}) == joined.tokens(text, {.parse_special = true}));
    const std::vector<Token> ids = {266, 267, 0, 277};
    CHECK(parted.text(ids) == joined.text(ids));
    fs::remove(copy / "generation_config.json");
    CHECK(steering_of(copy.path())["lang_to_id"] == steering_of(golden("whisper_bare"))["lang_to_id"]);
}

TEST_CASE("speech: of several ids that end a text the first is taken") {
    TemporaryFolder copy;
    fs::copy(golden("whisper_narrow"), copy.path(), fs::copy_options::recursive);
    edit_json(copy / "generation_config.json", [](nlohmann::json& json) { json["eos_token_id"] = {265, 3}; });
    CHECK(steering_of(copy.path())["eos_token_id"] == 265);
}

TEST_CASE("speech: what a folder says of its transcripts is kept, or a note names it") {
    const auto notes_of = [](const char* file, const nlohmann::json& changes) {
        TemporaryFolder copy;
        fs::copy(golden("whisper_narrow"), copy.path(), fs::copy_options::recursive);
        edit_json(copy / file, [&](nlohmann::json& json) { json.update(changes); });
        return read_source({.source = copy.path()}).notes;
    };
    const nlohmann::json plain = {{"max_length", 448}};
    const auto changes_nothing = nlohmann::json::parse(R"({"max_length": 448, "num_beams": 1, "do_sample": true,
        "temperature": 0.3, "top_k": 5, "length_penalty": 2.0, "task": "transcribe", "repetition_penalty": 1.0,
        "bad_words_ids": null, "forced_decoder_ids": [[1, null], [2, 271]], "condition_on_prev_tokens": true})");
    CHECK(notes_of("generation_config.json", plain).empty());
    CHECK(notes_of("generation_config.json", changes_nothing).empty());
    const auto named = nlohmann::json::parse(R"({"num_beams": 5, "repetition_penalty": 1.2, "bad_words_ids": [[9]],
        "no_repeat_ngram_size": 3, "forced_bos_token_id": 5, "language": "de", "task": "translate", "max_length": 3,
        "max_new_tokens": 4, "no_speech_threshold": 0.1, "condition_on_prev_tokens": false, "min_length": 2,
        "forced_decoder_ids": [[1, 268], [2, 271]]})");
    for (const auto& [member, value] : named.items()) {
        const std::string name = member;
        CAPTURE(name);
        nlohmann::json changes = plain;
        changes[name] = value;
        const std::vector<std::string> notes = notes_of("generation_config.json", changes);
        REQUIRE(notes.size() == 1);
        CHECK(contains(notes[0], "generation_config.json: " + name + ": transcripts don't heed it"));
    }
    const std::vector<std::string> english =
        notes_of("generation_config.json", {{"max_length", 448}, {"is_multilingual", false}});
    REQUIRE(english.size() == 1);
    CHECK(contains(english[0], "is_multilingual: false: transcripts don't heed lang_to_id"));
    const std::vector<std::string> ends =
        notes_of("generation_config.json", {{"max_length", 448}, {"eos_token_id", {265, 3}}});
    REQUIRE(ends.size() == 1);
    CHECK(contains(ends[0], "eos_token_id: the first alone ends a transcript"));
}

TEST_CASE("speech: a file is converted again to itself, and the tokenizer is the folder's") {
    TemporaryFolder folder;
    ConvertOptions options;
    options.source = golden("whisper_narrow");
    options.output = folder / "first.fovea";
    convert_source(options);
    options.source = options.output;
    options.output = folder / "again.fovea";
    convert_source(options);
    CHECK(read_text(folder / "first.fovea") == read_text(folder / "again.fovea"));
    const host::Opened opened = host::open((folder / "first.fovea").string());
    CHECK(opened.tokenizer.valid());
    CHECK(opened.model.info().architecture == "whisper");
}

TEST_CASE("speech: what no Whisper can be is refused by its name") {
    struct Wrong {
        const char* file;
        const char* field;
        nlohmann::json value;
        const char* words;
    };
    const Wrong wrongs[] = {
        {"config.json", "decoder_attention_heads", 7, "decoder_attention_heads: expected a divisor of d_model, 48"},
        {"config.json", "num_mel_bins", 1 << 20, "num_mel_bins: expected a whole number from 1 to 65536"},
        {"config.json", "num_mel_bins", 79, "feature_size: expected config.json's num_mel_bins, 79"},
        {"config.json", "max_source_positions", 31, "embed_positions.weight: expected shape [31, 48], got [30, 48]"},
        {"config.json", "encoder_layers", 1, "expected only tensors that the configuration calls for"},
        {"config.json", "encoder_layers", 3, "model.encoder.layers.2.self_attn_layer_norm.weight: expected shape"},
        {"config.json", "activation_function", "sine", "activation_function: expected"},
        {"config.json", "quantization_config", {{"quant_method", "gptq"}}, "quantization_config: expected none"},
        {"config.json", "tie_word_embeddings", false, "proj_out.weight: expected shape"},
        {"config.json", "vocab_size", 100, "expected shape [100, 48]"},
        {"generation_config.json", "eos_token_id", 3, "eos_token_id: expected <|endoftext|>, 265, or an id behind it"},
        {"preprocessor_config.json", "n_fft", 1, "n_fft: expected a whole number from 2"},
        {"preprocessor_config.json", "hop_length", 0, "hop_length: expected"},
        {"preprocessor_config.json", "dither", 0.5, "dither: expected 0, got 0.5"},
    };
    for (const Wrong& wrong : wrongs) {
        CAPTURE(wrong.field);
        TemporaryFolder copy;
        fs::copy(golden("whisper_narrow"), copy.path(), fs::copy_options::recursive);
        edit_json(copy / wrong.file, [&](nlohmann::json& json) { json[wrong.field] = wrong.value; });
        const std::string line = refusal_of([&] { (void)read_source({.source = copy.path()}); });
        CAPTURE(line);
        CHECK(contains(line, wrong.words));
    }
    ConvertOptions options;
    options.source = golden("whisper_narrow");
    options.loras = {{golden("whisper_bare"), 1.0f}};
    CHECK(contains(refusal_of([&] { (void)read_source(options); }),
                   "model_type: expected a model of one stack for --lora"));
}
