// Models that write one text from another: what the engine computes of a converted one is what transformers computes, the texts
// are those of its generate, greedy and with beams; and what is refused.
#include <doctest/doctest.h>

#include <cstdlib>

#include "fovea/encode.h"
#include "host/base/json.h"
#include "host/model/listing.h"
#include "host/translate/beam_translation.h"
#include "host/translate/translation.h"
#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

fs::path golden_pairs() { return fs::path(FOVEA_GOLDEN_DIR) / "pairs"; }

/// The golden ones, and those that make_pairs.py made in FOVEA_PAIR_FOLDERS.
std::vector<fs::path> pair_folders() {
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(golden_pairs())) folders.push_back(entry.path());
    if (const char* more = std::getenv("FOVEA_PAIR_FOLDERS"))
        for (const auto& entry : fs::directory_iterator(more)) folders.push_back(entry.path());
    return folders;
}

/// A folder's model in memory, with what transformers made of it.
struct Pair {
    AlignedBytes file;
    host::Opened opened;
    std::vector<Token> source, target, written;

    explicit Pair(const fs::path& folder, Type type = Type::f32) {
        ConvertOptions options;
        options.source = folder;
        options.type = type;
        const ModelSource made = read_source(options);
        file = write_bytes(made, write_options(options, made));
        opened = host::open_bytes(file, folder.filename().string(), {.verify_checksums = true});
        const SortedJson expected = SortedJson::parse(read_text(folder / "expected.json"));
        source = expected["source"].get<std::vector<Token>>();
        target = expected["target"].get<std::vector<Token>>();
        written = expected["written"].get<std::vector<Token>>();
    }

    /// The logits of the target's tokens beside the source, computed all at once.
    [[nodiscard]] std::vector<float> logits() const {
        Plan plan;
        REQUIRE(make_plan(opened.config(), {}, plan).ok());
        AlignedBytes arena(plan.arena_bytes);
        Session session;
        REQUIRE(make_session(opened.model, {}, arena, session).ok());
        const auto n_source = static_cast<std::uint32_t>(source.size()),
                   n_target = static_cast<std::uint32_t>(target.size());
        std::vector<float> out(target.size() * opened.config().decoder.vocab_size);
        const Status status = encode(session,
                                     {.source = {.ids = source, .lengths = {&n_source, 1}},
                                      .target = {.ids = target, .lengths = {&n_target, 1}, .masks = {.causal = true}}},
                                     out);
        CAPTURE(status.what);
        REQUIRE(status.ok());
        return out;
    }

    [[nodiscard]] TargetRules rules() const {
        return TargetRules::read(find_info(opened.model, "target"), opened.config().decoder.vocab_size, "target");
    }

    /// What a Translation writes of the source, by those rules.
    [[nodiscard]] std::vector<Token> write(const TargetRules& by, Translation& writer) const {
        std::vector<Token> tokens;
        writer.start(source, by, {.sampler = {.temperature = 0}});
        for (Piece piece; piece.finish == FinishReason::none;) {
            REQUIRE(writer.next(piece).ok());
            tokens.insert(tokens.end(), piece.tokens.begin(), piece.tokens.end());
        }
        return tokens;
    }
};

float error_of(const fs::path& expected_file, std::span<const float> got) {
    const NpyArray expected = read_npy(expected_file.string());
    REQUIRE(expected.data.size() == got.size_bytes());
    float largest = 0, error = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        float want = 0;
        std::memcpy(&want, expected.data.data() + i * sizeof want, sizeof want);
        largest = std::max(largest, std::abs(want));
        error = std::max(error, std::abs(want - got[i]));
    }
    return error / largest;
}

/// What converting a family's model says after a change of one of its files; "" where it does not refuse.
std::string line_of(const char* family, const char* file, const std::function<void(SortedJson&)>& edit) {
    TemporaryFolder folder;
    fs::copy(golden_pairs() / family, folder / "model");
    edit_json(folder / "model" / file, edit);
    ConvertOptions options;
    options.source = folder / "model";
    options.output = folder / "out.fovea";
    return refusal_of([&] { convert_source(options); });
}

}  // namespace

TEST_CASE("pairs: every family has transformers' logits, and greedy generate's tokens") {
    std::size_t n_models = 0;
    for (const fs::path& folder : pair_folders()) {
        const std::string name = folder.filename().string();
        CAPTURE(name);
        const Pair pair(folder);
        // transformers computed these in float64.
        CHECK(error_of(folder / "expected_logits.npy", pair.logits()) < 1e-4f);
        Translation writer(pair.opened, {});
        const TargetRules rules = pair.rules();
        CHECK(pair.write(rules, writer) == pair.written);
        CHECK(pair.write(rules, writer) == pair.written);  // nothing of the first text stays
        ++n_models;
    }
    CHECK(n_models >= 7);
}

TEST_CASE("pairs: beam search writes transformers' texts, with their scores") {
    std::size_t n_cases = 0;
    for (const fs::path& folder : pair_folders()) {
        if (!fs::exists(folder / "expected_beams.json")) continue;
        const std::string name = folder.filename().string();
        CAPTURE(name);
        const Pair pair(folder);
        for (const SortedJson& expected : SortedJson::parse(read_text(folder / "expected_beams.json"))) {
            const std::string settings = expected["settings"].dump();
            CAPTURE(settings);
            const auto rules = TargetRules::read(settings, pair.opened.model.config().decoder.vocab_size, "settings");
            BeamTranslation writer(pair.opened, {.n_threads = 1 + static_cast<std::uint32_t>(n_cases % 2)}, rules);
            for (int i = 0; i < 2; ++i) {  // nothing of the first text stays
                writer.start(pair.source, rules, 1000);
                while (writer.next()) continue;
                const BeamTranslation::Text text = writer.best();
                CHECK(text.tokens == expected["written"].get<std::vector<Token>>());
                const auto score = expected["score"].get<double>();
                CHECK(std::abs(text.score - score) < 1e-4 * std::max(1.0, std::abs(score)));
            }
            ++n_cases;
        }
    }
    CHECK(n_cases >= 60);
}

TEST_CASE("pairs: types that halve or quantize weights stay near") {
    for (const auto& entry : fs::directory_iterator(golden_pairs())) {
        const std::string name = entry.path().filename().string();
        CAPTURE(name);
        CHECK(error_of(entry.path() / "expected_logits.npy", Pair(entry.path(), Type::bf16).logits()) < 1e-3f);
        CHECK(error_of(entry.path() / "expected_logits.npy", Pair(entry.path(), Type::q8).logits()) < 0.15f);
    }
}

TEST_CASE("pairs: a checkpoint may have a table for each stack, no prefix, computed positions and the tied head too") {
    for (const char* family : {"bart", "marian"}) {
        CAPTURE(family);
        TemporaryFolder folder;
        fs::copy(golden_pairs() / family, folder / "model");
        ConvertOptions options;
        options.source = folder / "model";
        const auto made = [&](const char* file) {
            options.output = folder / file;
            convert_source(options);
            return read_text(options.output);
        };
        const std::string plain = made("plain.fovea");
        SafetensorsText text = SafetensorsText::read(folder / "model/model.safetensors");
        const SortedJson table = text.header["model.shared.weight"];
        const std::size_t begin = table["data_offsets"][0], end = table["data_offsets"][1];
        std::vector<std::string> copies = {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight",
                                           "lm_head.weight"};
        if (std::string(family) == "marian") copies.emplace_back("model.encoder.embed_positions.weight");
        for (const std::string& name : copies) {
            const std::size_t at = text.data.size();
            text.data += text.data.substr(begin, end - begin);
            text.header[name] = table;
            text.header[name]["data_offsets"] = {at, at + end - begin};
        }
        write_text(folder / "model/model.safetensors", text.text());
        CHECK(made("copies.fovea") == plain);
        SortedJson bare;
        for (const auto& [name, value] : text.header.items())
            bare[name.starts_with("model.") ? name.substr(6) : name] = value;
        text.header = bare;
        write_text(folder / "model/model.safetensors", text.text());
        CHECK(made("bare.fovea") == plain);
    }
}

TEST_CASE("pairs: what they cannot have is refused by name") {
    const auto config_line = [](const char* family, const char* field, const SortedJson& value) {
        return line_of(family, "config.json", [&](SortedJson& json) { json[field] = value; });
    };
    CHECK(contains(config_line("marian", "share_encoder_decoder_embeddings", false),
                   "share_encoder_decoder_embeddings: expected true"));
    CHECK(contains(config_line("bart", "is_encoder_decoder", false), "is_encoder_decoder: expected true"));
    CHECK(contains(config_line("bart", "architectures", {"BartForSequenceClassification"}),
                   "architectures: expected a class that writes a text"));
    CHECK(contains(config_line("bart", "architectures", {"BartForQuestionAnswering"}),
                   "architectures: expected a class that writes a text"));
    CHECK(contains(config_line("bart", "encoder_attention_heads", 5), "d_model: expected a multiple of"));
    CHECK(contains(config_line("bart", "max_position_embeddings", 33),
                   "embed_positions.weight: expected shape [35, 12]"));
    CHECK(contains(config_line("bart", "decoder_layers", 3), "decoder.layers.2."));
    CHECK(contains(config_line("bart", "decoder_layers", 1), "expected only tensors that the configuration calls for"));
    const auto rule_line = [](const char* field, const SortedJson& value) {
        return line_of("bart", "generation_config.json", [&](SortedJson& json) { json[field] = value; });
    };
    CHECK(contains(rule_line("repetition_penalty", 1.2), "generation_config.json: repetition_penalty: expected 1"));
    CHECK(contains(rule_line("guidance_scale", 1.5), "guidance_scale: expected 1"));
    CHECK(contains(rule_line("forced_bos_token_id", 2), "forced_bos_token_id: expected another token than those"));
    CHECK(contains(rule_line("sequence_bias", {{{3}, 1.5}}), "sequence_bias: expected none"));
    CHECK(contains(rule_line("decoder_start_token_id", 29), "decoder_start_token_id: expected ids below 29, got 29"));
    CHECK(contains(rule_line("bad_words_ids", {{3}, SortedJson::array()}),
                   "bad_words_ids: expected lists of one id or more"));
    CHECK(contains(rule_line("min_length", -1), "min_length: expected a whole number"));
    CHECK(rule_line("num_beams", 5).empty());
    CHECK(contains(rule_line("num_beams", 65), "num_beams: expected 1 to 64, got 65"));
    CHECK(contains(rule_line("num_beams", 0), "num_beams: expected 1 to 64, got 0"));
    CHECK(contains(rule_line("length_penalty", -21), "length_penalty: expected a number from -20 to 20, got -21"));
    CHECK(contains(rule_line("early_stopping", "soon"), "early_stopping: expected true, false or \"never\""));
    CHECK(contains(rule_line("num_beam_groups", 2), "num_beam_groups: expected 1, got 2"));
    CHECK(contains(rule_line("diversity_penalty", 0.5), "diversity_penalty: expected 0, got 0.5"));
    CHECK(contains(rule_line("do_sample", true), "do_sample: expected false beside num_beams 4, got true"));
    CHECK(contains(rule_line("force_words_ids", {{3}}), "force_words_ids: expected none"));
    CHECK(rule_line("renormalize_logits", true).empty());
    CHECK(rule_line("num_return_sequences", 3).empty());
}

TEST_CASE("pairs: without generation_config.json the rules are config.json's, as they were there before") {
    for (const auto& entry : fs::directory_iterator(golden_pairs())) {
        const std::string name = entry.path().filename().string();
        CAPTURE(name);
        TemporaryFolder folder;
        fs::copy(entry.path(), folder / "model");
        const SortedJson rules = SortedJson::parse(read_text(folder / "model/generation_config.json"));
        edit_json(folder / "model/config.json", [&](SortedJson& json) {
            json.erase("forced_eos_token_id");
            json.update(rules);
        });
        fs::remove(folder / "model/generation_config.json");
        const Pair now(entry.path()), then(folder / "model");
        CHECK(find_info(now.opened.model, "target") == find_info(then.opened.model, "target"));
    }
}
