// The loop over a recording with the engine's models: what transformers' generate() writes of the same recordings
// (tests/golden/make_transcripts.py), on every instruction set and number of threads.
#include "host/speech/speech_engine.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include "fovea/host/opened.h"
#include "fovea/host/sound_file.h"
#include "host/base/error.h"
#include "host/model/listing.h"
#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// A folder's model in memory.
struct Speech {
    AlignedBytes file;
    host::Opened opened;

    explicit Speech(const char* name) {
        ConvertOptions options;
        options.source = golden_path("speech") / name;
        const ModelSource source = read_source(options);
        file = write_bytes(source, write_options(options, source));
        opened = host::open_bytes(file, "m");
    }
    [[nodiscard]] SpeechEngine engine(std::uint32_t n_threads = 1, const char* isa = nullptr) const {
        return {opened, {.n_threads = n_threads, .isa = isa}};
    }
    [[nodiscard]] RecordingFrames frames(const std::string& recording) const {
        return recording_frames(opened.model,
                                read_sound(golden_path("recordings/" + recording + ".wav").string(), 16000), recording);
    }
};

/// generate()'s options of the golden's cases: greedy, at most 16 tokens of a window, nothing tried again.
SpeechOptions options_of(const std::string& asked) {
    SpeechOptions options;
    options.temperatures = {0};
    options.max_compression = options.min_logprob = options.no_speech = {};
    options.max_tokens = 16;
    options.timestamps = asked != "plain";
    options.previous_text = asked == "previous" || asked == "prompted";
    if (asked == "detected") options.task = "translate";
    options.language = asked == "plain" ? "en" : asked == "timestamps" ? "de" : asked == "detected" ? "" : "haw";
    return options;
}

TEST_CASE(
    "speech: transcripts are transformers', of one window and several, with times and without, and with the text "
    "before") {
    const nlohmann::json cases = nlohmann::json::parse(std::ifstream(golden_path("recordings/transcripts.json")));
    REQUIRE(cases.size() >= 13);
    const Speech talking("whisper_talking"), narrow("whisper_narrow");
    for (const auto& item : cases.items()) {
        const std::string& name = item.key();
        const nlohmann::json& expected = item.value();
        CAPTURE(name);
        const std::string recording = name.substr(0, name.find(' ')), asked = name.substr(name.find(' ') + 1);
        const Speech& speech = asked == "plain" ? narrow : talking;
        SpeechEngine engine = speech.engine();
        const RecordingFrames frames = speech.frames(recording);
        SpeechOptions options = options_of(asked);
        if (asked == "prompted") options.before = tokens_before(speech.opened.tokenizer, "Fovea, a name.");
        const Transcript result = transcribe(engine, engine.tokens(), frames.view(), options);
        REQUIRE(result.segments.size() == expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
            std::vector<Token> tokens = expected[i]["tokens"];
            // generate() ends a window's last segment with the time at which the next begins.
            const std::size_t n = tokens.size();
            if (n > 2 && engine.tokens().is_timestamp(tokens[n - 2]) && engine.tokens().is_timestamp(tokens[n - 1]))
                tokens.pop_back();
            CHECK(result.segments[i].tokens == tokens);
            CHECK(std::abs(result.segments[i].start - expected[i]["start"].get<double>()) < 1e-3);
            if (asked != "plain") CHECK(std::abs(result.segments[i].end - expected[i]["end"].get<double>()) < 1e-3);
        }
    }
}

TEST_CASE("speech: recordings that are computed together have the logits that each has alone") {
    const Speech speech("whisper_talking");
    const std::vector<std::string> names{"one", "two", "three"};
    std::vector<std::vector<float>> windows, alone, together(3);
    const std::vector<std::vector<Token>> texts{{266, 267}, {266}, {266, 268, 5}};
    SpeechEngine engine = speech.engine();
    for (std::size_t i = 0; i < 3; ++i) {
        windows.push_back(speech.frames(names[i]).numbers);
        windows.back().resize(60 * 80);
        engine.hear(windows[i]);
        const auto logits = engine.read(texts[i]);
        alone.emplace_back(logits.begin(), logits.end());
        together[i].resize(logits.size());
    }
    SpeechWorkspace workspace(speech.opened, {.n_threads = 2, .n_recordings = 3});
    std::vector<SpeechWorkspace::Reading> readings;
    for (const std::size_t i : {std::size_t{2}, std::size_t{0}, std::size_t{1}}) {
        REQUIRE(workspace.hear(i, windows[i]).ok());
        readings.push_back({i, texts[i], together[i]});
    }
    REQUIRE(workspace.read(readings).ok());
    CHECK(together == alone);
    REQUIRE(workspace.rewind(1, 0).ok());
    std::vector<float> again(alone[1].size());
    REQUIRE(workspace.read({{{1, texts[1], again}}}).ok());
    CHECK(again == alone[1]);
}

TEST_CASE("speech: what is no text before a recording gives no tokens; a long one gives its end's") {
    const Speech speech("whisper_talking");
    CHECK(tokens_before(speech.opened.tokenizer, " \n").empty());
    CHECK(tokens_before(speech.opened.tokenizer, "\tab \n") == tokens_before(speech.opened.tokenizer, "ab"));
    const Token end = tokens_before(speech.opened.tokenizer, "ab").back();
    const std::vector<Token> long_one = tokens_before(speech.opened.tokenizer, std::string(100000, 'x') + "ab");
    CHECK(long_one.back() == end);
    CHECK(long_one.size() <= (16u << 10) + 1);
    // A special token's name is text.
    CHECK(tokens_before(speech.opened.tokenizer, "<|en|>").size() > 1);
}

TEST_CASE("speech: a transcript is the same on every instruction set and number of threads, chance included") {
    const Speech speech("whisper_talking");
    const RecordingFrames frames = speech.frames("three");
    SpeechOptions options;
    options.temperatures = {0.7f};
    options.no_speech = {};
    options.seed = 5;
    std::string first;
    for (const char* isa : isa_names())
        for (const std::uint32_t n_threads : {1u, 3u}) {
            SpeechEngine engine = speech.engine(n_threads, isa);
            const Transcript result = transcribe(engine, engine.tokens(), frames.view(), options);
            std::string all = result.language + std::to_string(*result.language_probability);
            for (const SpeechSegment& s : result.segments) {
                all +=
                    std::to_string(s.start) + s.text + std::to_string(s.avg_logprob) + std::to_string(s.no_speech_prob);
                CHECK(s.temperature == 0.7f);
            }
            if (first.empty()) first = all;
            CHECK(all == first);
        }
    CHECK(first.size() > 100);
}

TEST_CASE("speech: what neither hears nor writes is refused in a line; a set flag ends the work") {
    const Speech speech("whisper_talking");
    host::Opened none;
    none.name = "m", none.model = speech.opened.model;
    CHECK_THROWS_WITH(SpeechEngine(none, {}), "m: tokenizer: expected one in the file, got none");
    std::atomic<bool> cancel{true};
    SpeechEngine engine(speech.opened, {.cancel = &cancel});
    const RecordingFrames frames = speech.frames("one");
    CHECK_THROWS_AS((void)transcribe(engine, engine.tokens(), frames.view(), {}), SpeechCancelled);
    cancel = false;
    CHECK_FALSE(transcribe(engine, engine.tokens(), frames.view(), options_of("timestamps")).segments.empty());
    CHECK_THROWS_WITH((void)recording_frames(speech.opened.model, std::vector<float>{0, NAN}, "x.wav"),
                      "x.wav: bad argument: finite samples before the first other: expected 2, got 1");
    CHECK(speech.frames("one").numbers.size() == 60 * 80);
    CHECK(recording_frames(speech.opened.model, {}, "x").n_content == 0);
}

}  // namespace
