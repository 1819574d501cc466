// What a calibration reads: a text's tokens as texts of a window, and texts that a model writes itself.
#include "convert/calibrate/calibration_text.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "convert/calibrate/calibration.h"
#include "convert/open/convert.h"
#include "convert/tokenizers/tokenizer_file.h"
#include "tests/support/command_line.h"
#include "tests/support/convert_fixtures.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

ModelSource demo() { return read_source({.source = kDemo}); }

/// Mean over the tokens but the first: −log of the probability that the model had for it.
double mean_surprise(const Model& model, const std::vector<Token>& text) {
    const std::vector<float> logits = all_logits(model, text);
    const std::size_t vocab_size = model.config().decoder.vocab_size;
    double sum = 0;
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
        const float* row = logits.data() + i * vocab_size;
        double total = 0;
        for (std::size_t id = 0; id < vocab_size; ++id) total += std::exp(double{row[id]} - row[text[i + 1]]);
        sum += std::log(total);
    }
    return sum / static_cast<double>(text.size() - 1);
}

}  // namespace

TEST_CASE("texts: a decoder's are windows, an encoder's lines, and the first of them are cut") {
    const std::string commands = read_text(FOVEA_GOLDEN_DIR "/demo_commands.txt");
    const Texts windows = texts_of(demo(), commands, 600);
    REQUIRE(windows.ids.size() == 3);
    CHECK(windows.ids[0].size() == 256);
    CHECK(windows.ids[2].size() == 88);
    CHECK(windows.n_tokens() == 600);
    const Texts first = windows.first(257);
    REQUIRE(first.ids.size() == 2);
    CHECK(first.ids[0] == windows.ids[0]);
    CHECK(first.ids[1] == std::vector<Token>{windows.ids[1][0]});
    CHECK(windows.first(1000).ids == windows.ids);
    const ModelSource encoder = read_source({.source = FOVEA_GOLDEN_DIR "/encoders/bert_sentence"});
    const std::string lines = read_text(FOVEA_GOLDEN_DIR "/encoders/bert_sentence/texts.txt");
    const Texts all = texts_of(encoder, lines, 0);
    CHECK(all.ids.size() == 6);
    CHECK(texts_of(encoder, "\n\n" + lines + "\n", 0).ids == all.ids);
    CHECK(texts_of(encoder, lines, static_cast<std::uint32_t>(all.ids[0].size()) + 1).ids.size() == 2);
}

TEST_CASE("own texts: what the model finds likely, each of its own, and the same on any number of threads") {
    const ModelSource source = demo();
    std::uint64_t told = 0;
    const Texts texts = own_texts(source, 600, 1, [&](std::uint64_t done, std::uint64_t total) {
        CHECK(done > told);
        CHECK(total == 3 * 256);
        told = done;
    });
    CHECK(told == 3 * 256);
    REQUIRE(texts.ids.size() == 3);
    CHECK(texts.ids == own_texts(source, 600, 2, {}).ids);
    CHECK(texts.ids[0] != texts.ids[1]);
    CHECK(texts.ids[1] != texts.ids[2]);
    Tokenizer tokenizer;
    const AlignedBytes section(source.tokenizer.begin(), source.tokenizer.end());
    REQUIRE(open_tokenizer(section, tokenizer).ok());
    const AlignedBytes file = write_bytes(source, {});
    Model model;
    REQUIRE(open_model(file, model).ok());
    for (const std::vector<Token>& text : texts.ids) {
        REQUIRE(text.size() == 256);
        CHECK(text[0] == tokenizer.bos());
        CHECK(mean_surprise(model, text) < 1);  // of tokens drawn evenly 6.2 and more
        CHECK(std::set<Token>(text.begin(), text.end()).size() > 40);
    }
}

TEST_CASE("own texts: behind an end comes a start; without a tokenizer any token is one") {
    ModelSource source = read_source({.source = FOVEA_GOLDEN_DIR "/families/llama"});
    REQUIRE(source.tokenizer.empty());
    const std::uint32_t vocab_size = source.config.decoder.vocab_size;
    const std::uint32_t length = std::min(kWindowTokens, source.config.decoder.max_positions);
    const Texts free = own_texts(source, 64 * length, 1, {});
    REQUIRE(free.ids.size() == 64);  // in two rounds
    std::set<Token> starts;
    for (const std::vector<Token>& text : free.ids) {
        CHECK(text.size() == length);
        CHECK(*std::max_element(text.begin(), text.end()) < vocab_size);
        starts.insert(text[0]);
    }
    CHECK(starts.size() > vocab_size / 2);
    CHECK(std::set<std::vector<Token>>(free.ids.begin(), free.ids.end()).size() == 64);
    std::vector<std::string> notes;
    source.tokenizer = tokenizer_section_from_file(FOVEA_GOLDEN_DIR "/spm_bpe.model", {.vocab_size = 1000}, notes);
    Tokenizer tokenizer;
    const AlignedBytes section(source.tokenizer.begin(), source.tokenizer.end());
    REQUIRE(open_tokenizer(section, tokenizer).ok());
    REQUIRE(tokenizer.bos() < vocab_size);
    REQUIRE(!tokenizer.ends_text(tokenizer.bos()));
    std::size_t n_ends = 0;
    for (const std::vector<Token>& text : own_texts(source, 64 * length, 1, {}).ids) {
        CHECK(text[0] == tokenizer.bos());
        for (std::size_t i = 0; i + 1 < text.size(); ++i)
            if (tokenizer.ends_text(text[i])) {
                ++n_ends;
                CHECK(text[i + 1] == tokenizer.bos());
            }
    }
    CHECK(n_ends > 0);
}

TEST_CASE("convert --calibrate self: nearer to the model without a text, and an encoder is told to bring one") {
    const TemporaryFolder folder;
    const auto path = [&](const char* name) { return (folder / name).string(); };
    const auto run = [&](std::vector<std::string> arguments) {
        const auto result = run_fovea(arguments);
        CAPTURE(result.err);
        REQUIRE(result.status == 0);
        return result.out;
    };
    run({"convert", kDemo, "--type", "f32", "-o", path("f32.fovea")});
    const auto divergence = [&](const char* file) {
        const auto json =
            nlohmann::json::parse(run({"eval", path(file), "--text", FOVEA_GOLDEN_DIR "/demo_commands.txt", "--against",
                                       path("f32.fovea"), "--json"}));
        return json.at("against").at("kl_divergence").get<double>();
    };
    run({"convert", kDemo, "--type", "q3_k", "-o", path("plain.fovea")});
    run({"convert", kDemo, "--type", "q3_k", "--calibrate", "self", "-o", path("self.fovea")});
    CHECK(divergence("self.fovea") < 0.85 * divergence("plain.fovea"));
    const auto refused = run_fovea({"convert", FOVEA_GOLDEN_DIR "/encoders/bert_sentence", "--type", "q4",
                                    "--calibrate", "self", "-o", path("out.fovea")});
    CHECK(refused.status == 1);
    CHECK(refused.err.ends_with(
        "fovea: --calibrate self: expected a decoder, which can write a text, got an encoder; give it a text\n"));
    CHECK(!std::filesystem::exists(path("out.fovea")));
}
