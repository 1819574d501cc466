// The loop over a recording, with a model that writes what a test has in mind: windows, rules, second attempts, silence.
#include "host/speech/transcriber.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "host/base/error.h"
#include "host/speech/chances.h"

namespace {

using namespace fovea;

// 0–9 "a"–"j", 10 end, 11 start, 12 en, 13 de, 14 transcribe, 15 translate, 16 previous, 17 no speech, 18 no timestamps, then 51
// timestamps of 20 ms each: a window of 100 frames is a second.
constexpr Token kEnd = 10, kStart = 11, kEn = 12, kDe = 13, kTranscribe = 14, kPrevious = 16, kNoSpeech = 17,
                kNone = 18, kT = 19;
constexpr std::uint32_t kVocab = kT + 51;

const char* kSpeech = R"({"decoder_start_token_id": 11, "eos_token_id": 10, "no_timestamps_token_id": 18,
    "is_multilingual": true, "lang_to_id": {"<|en|>": 12, "<|de|>": 13}, "task_to_id": {"transcribe": 14, "translate": 15},
    "suppress_tokens": [9], "begin_suppress_tokens": [8], "max_initial_timestamp_index": 10, "prev_sot_token_id": 16})";

SpeechTokens tokens_of(const char* json = kSpeech) { return SpeechTokens::read(json, kVocab, "m"); }

/// Writes scripts[window], by logits that favour its next token; the window's number is its first frame's.
struct Scripted final : SpeechModel {
    std::map<int, std::vector<Token>> scripts;  // by the window's first frame
    float silence = -20, margin = 20;
    Token language = kDe;
    int at = -1;
    std::vector<Token> text;
    std::vector<std::vector<Token>> prompts;
    std::vector<int> heard;
    std::vector<float> logits = std::vector<float>(kVocab);

    Scripted() { n_frames = 100, n_mels = 1, max_tokens = 40; }
    void hear(std::span<const float> frames) override {
        REQUIRE(frames.size() == 100);
        at = static_cast<int>(frames[0]);
        heard.push_back(at);
        text.clear();
    }
    void rewind(std::size_t n) override {
        REQUIRE(n <= text.size());
        text.resize(n);
    }
    std::span<const float> read(std::span<const Token> tokens) override {
        text.insert(text.end(), tokens.begin(), tokens.end());
        REQUIRE(text.size() <= max_tokens);
        std::fill(logits.begin(), logits.end(), 0.0f);
        if (text.back() == kStart) {
            logits[language] = 5, logits[kNoSpeech] = silence;
            return logits;
        }
        std::size_t begin = text.size();
        while (text[begin - 1] != kTranscribe && text[begin - 1] != kNone) --begin;
        if (begin == text.size()) prompts.push_back(text);
        const auto& script = scripts[at];
        logits[text.size() - begin < script.size() ? script[text.size() - begin] : kEnd] = margin;
        return logits;
    }
    std::string text_of(std::span<const Token> tokens) override {
        std::string letters;
        for (const Token t : tokens) letters += std::string(" ") + static_cast<char>('a' + t);
        return letters;
    }
};

std::vector<float> numbered(std::size_t n) {
    std::vector<float> frames(n);
    for (std::size_t i = 0; i < n; ++i) frames[i] = static_cast<float>(i);
    return frames;
}

TEST_CASE("transcribe: segments lie between pairs; the next window begins where the last whole one ends") {
    Scripted model;
    model.scripts[0] = {kT, 0, 1, kT + 20, kT + 20, 2, kT + 40, kT + 40, 3};  // the last stretch breaks off
    model.scripts[80] = {kT + 2, 3, 4, kT + 30};  // one timestamp ends it: nothing comes after
    const std::vector<float> frames = numbered(150);
    std::vector<double> done;
    const Transcript result =
        transcribe(model, tokens_of(), {frames, 150}, {},
                   {.detected = {}, .segment = {}, .progress = [&](double d, double) { done.push_back(d); }});
    CHECK(result.language == "de");
    CHECK(*result.language_probability == doctest::Approx(1 / (1 + std::exp(-5))));
    CHECK(result.text == "a b c d e");
    REQUIRE(result.segments.size() == 3);
    CHECK(result.segments[0].start == 0.0);
    CHECK(result.segments[0].end == doctest::Approx(0.4));
    CHECK(result.segments[0].tokens == std::vector<Token>{kT, 0, 1, kT + 20});
    CHECK(result.segments[1].start == doctest::Approx(0.4));
    CHECK(result.segments[1].text == " c");
    CHECK(result.segments[2].start == doctest::Approx(0.8));
    CHECK(result.segments[2].end == doctest::Approx(1.4));
    CHECK(model.heard == std::vector<int>{0, 80});  // that of the language once
    REQUIRE(model.prompts.size() == 2);
    CHECK(model.prompts[0] == std::vector<Token>{kStart, kDe, kTranscribe});
    CHECK(model.prompts[1] ==
          std::vector<Token>{kPrevious, kT, 0, 1, kT + 20, kT + 20, 2, kT + 40, kStart, kDe, kTranscribe});
    CHECK(done == std::vector<double>{0.8, 1.5});
}

TEST_CASE("transcribe: without timestamps each window is whole; without previous text each stands alone") {
    Scripted model;
    model.scripts[0] = {0, 1}, model.scripts[100] = {2};
    const std::vector<float> frames = numbered(120);
    SpeechOptions options;
    options.timestamps = false, options.language = "en", options.previous_text = false;
    const Transcript result = transcribe(model, tokens_of(), {frames, 120}, options);
    CHECK(result.text == "a b c");
    REQUIRE(result.segments.size() == 2);
    CHECK(result.segments[1].start == 1.0);
    CHECK(result.segments[1].end == doctest::Approx(1.2));
    CHECK_FALSE(result.language_probability);
    CHECK(model.prompts[1] == std::vector<Token>{kStart, kEn, kTranscribe, kNone});
}

TEST_CASE("transcribe: a text that repeats itself, or is unlikely, is tried again by chance; silence is passed over") {
    Scripted model;
    model.max_tokens = 400;
    std::vector<Token> again{kT};
    for (int i = 0; i < 60; ++i) again.push_back(1);
    model.scripts[0] = again;
    const std::vector<float> frames = numbered(100);
    SpeechOptions options;
    options.language = "en";
    Transcript result = transcribe(model, tokens_of(), {frames, 100}, options);
    REQUIRE(result.segments.size() == 1);
    CHECK(result.segments[0].compression_ratio > 2.4);
    CHECK(result.segments[0].temperature == 0.0f);  // all were tried, and none was likelier
    options.max_compression = {};
    CHECK(transcribe(model, tokens_of(), {frames, 100}, options).segments[0].temperature == 0.0f);

    model.margin = 3;  // a sample is another text
    options.max_compression = 2.4, options.min_logprob = {}, options.seed = 3;
    result = transcribe(model, tokens_of(), {frames, 100}, options);
    const Transcript same = transcribe(model, tokens_of(), {frames, 100}, options);
    REQUIRE(!result.segments.empty());
    CHECK(result.segments[0].temperature > 0);
    CHECK(result.text == same.text);
    CHECK(result.segments.size() == same.segments.size());

    model.scripts[0] = {kT, 1, 2, kT + 10};
    model.silence = 30;
    options.temperatures = {0}, options.min_logprob = -0.2;
    CHECK(transcribe(model, tokens_of(), {frames, 100}, options).segments.empty());
    options.no_speech = {};
    CHECK(!transcribe(model, tokens_of(), {frames, 100}, options).segments.empty());
    const Transcript nothing = transcribe(model, tokens_of(), {{}, 0}, {});
    CHECK(nothing.text.empty());
    CHECK(nothing.language.empty());  // and none is made up
    const SpeechTokens one =
        tokens_of(R"({"decoder_start_token_id": 11, "eos_token_id": 10, "no_timestamps_token_id": 18})");
    CHECK(transcribe(model, one, {{}, 0}, {}).language == "en");  // a model of one language
}

TEST_CASE("transcribe: if no attempt is good, the likeliest is kept, and the next window does not go on from it") {
    Scripted model;
    model.max_tokens = 400;
    std::vector<Token> again{kT};
    for (int i = 0; i < 60; ++i) again.push_back(1);
    again.push_back(kT + 50);
    model.scripts[0] = again, model.scripts[100] = {kT, 2, kT + 10};
    model.margin = 6, model.silence = 30;  // samples are unlikely, and alone would be taken for silence
    const std::vector<float> frames = numbered(200);
    SpeechOptions options;
    options.language = "en";
    for (options.seed = 0; options.seed < 20; ++options.seed) {
        CAPTURE(options.seed);
        model.prompts.clear();
        const Transcript result = transcribe(model, tokens_of(), {frames, 200}, options);
        REQUIRE(!result.segments.empty());
        CHECK(result.segments[0].tokens == again);
        CHECK(result.segments[0].temperature == 0.0f);
        CHECK(model.prompts.back() == std::vector<Token>{kStart, kEn, kTranscribe});
    }
}

TEST_CASE("transcribe: of attempts that are not good, one that ends is kept before a likelier one that does not") {
    struct Looping final : SpeechModel {
        std::vector<float> logits = std::vector<float>(kVocab);
        std::size_t n_attempts = 0, n_written = 0;
        Looping() { n_frames = 100, n_mels = 1, max_tokens = 40; }
        void hear(std::span<const float>) override {}
        void rewind(std::size_t n) override { n_attempts += n > 0, n_written = 0; }
        std::span<const float> read(std::span<const Token>) override {
            std::fill(logits.begin(), logits.end(), 0.0f);
            // The first attempt ends, and is less likely than the second, which goes on and on.
            const bool ends = n_attempts < 2 && ++n_written == 5;
            logits[ends ? kEnd : n_written ? 1 : kT] = n_attempts < 2 ? 5.0f : 50.0f;
            n_written += n_attempts >= 2 || n_written == 0;
            return logits;
        }
        std::string text_of(std::span<const Token> tokens) override { return std::string(tokens.size(), 'x'); }
    } model;
    const std::vector<float> frames = numbered(100);
    SpeechOptions options;
    options.language = "en", options.temperatures = {0, 0.01f}, options.max_compression = 0.001, options.no_speech = {};
    const Transcript result = transcribe(model, tokens_of(), {frames, 100}, options);
    REQUIRE(result.segments.size() == 1);
    CHECK(result.segments[0].temperature == 0.0f);
    CHECK(result.segments[0].tokens.size() < 10);
}

/// Attends to each token of the text for `each` frames of 20 ms, the last for the rest.
struct Spoken final : SpeechModel {
    Scripted& script;
    std::vector<std::size_t> each;
    explicit Spoken(Scripted& s) : script(s) { n_frames = s.n_frames, n_mels = s.n_mels, max_tokens = s.max_tokens; }
    void hear(std::span<const float> frames) override { script.hear(frames); }
    void rewind(std::size_t n) override { script.rewind(n); }
    std::span<const float> read(std::span<const Token> tokens) override { return script.read(tokens); }
    std::string text_of(std::span<const Token> tokens) override { return script.text_of(tokens); }
    void attend(std::span<const Token> tokens, const EachHead& head) override {
        constexpr std::size_t kPrompt = 3, kFrames = 50;  // rows before that of the first text's token
        std::vector<float> weights(tokens.size() * kFrames, 0.001f);
        for (std::size_t i = kPrompt, frame = 0; i < tokens.size(); ++i)
            for (std::size_t n = i - kPrompt < each.size() ? each[i - kPrompt] : kFrames; n-- > 0 && frame < kFrames;
                 ++frame)
                weights[i * kFrames + frame] = 1;
        head(weights, kFrames);
    }
};

TEST_CASE(
    "transcribe: with words the next window begins where the last word ends, unless one time alone ends the text") {
    Scripted script;
    script.scripts[0] = {kT, 0, 1, kT + 20, kT + 20, 2, kT + 40, kT + 40, 3};  // the last stretch breaks off
    script.scripts[66] = {kT + 2, 3, 4, kT + 30};
    Spoken model(script);
    model.each = {10, 10, 13};
    const std::vector<float> frames = numbered(166);
    SpeechOptions options;
    options.language = "de", options.words = true;
    const Transcript result = transcribe(model, tokens_of(), {frames, 166}, options);
    CHECK(script.heard == std::vector<int>{0, 66});
    REQUIRE(result.segments.size() == 3);
    CHECK(result.segments[1].words[0].end == doctest::Approx(0.66));
    for (const SpeechSegment& segment : result.segments) {
        CHECK(segment.start == segment.words.front().start);
        CHECK(segment.end == segment.words.back().end);
    }
}

TEST_CASE("transcribe: clips alone are heard, each window cut where its clip ends") {
    Scripted model;
    model.scripts[0] = model.scripts[130] = model.scripts[20] = model.scripts[230] = {kT, 1, kT + 10};
    const std::vector<float> frames = numbered(300);
    const auto heard = [&](std::vector<SpeechClip> clips) {
        model.heard.clear();
        SpeechOptions options;
        options.language = "en", options.clips = std::move(clips);
        const Transcript result = transcribe(model, tokens_of(), {frames, 300}, options);
        CHECK(result.segments.size() == model.heard.size());
        return model.heard;
    };
    CHECK(heard({{1.3, 2.3}}) == std::vector<int>{130});
    CHECK(heard({{0.2, 0.5}, {1.3, 1.35}, {2.3}}) == std::vector<int>{20, 130, 230});
    CHECK(heard({{1.3}}) == std::vector<int>{130, 230});
    CHECK(heard({{5, 6}}).empty());
    SpeechOptions options;
    for (const std::vector<SpeechClip>& bad :
         {std::vector<SpeechClip>{{2, 1}}, {{1, 1}}, {{1, 2}, {1.5, 3}}, {{-1, 2}}}) {
        options.clips = bad;
        CHECK_THROWS_AS((void)transcribe(model, tokens_of(), {frames, 300}, options), host::ArgumentError);
    }
}

TEST_CASE("transcribe: a carried prompt comes before every window; a language may be that of each window") {
    Scripted model;
    model.scripts[0] = {kT, 1, kT + 10}, model.scripts[100] = {kT, 2, kT + 10};
    const std::vector<float> frames = numbered(200);
    SpeechOptions options;
    options.language = "German", options.before = {5, 6}, options.carry_before = true;
    (void)transcribe(model, tokens_of(), {frames, 200}, options);
    CHECK(model.prompts[0] == std::vector<Token>{kPrevious, 5, 6, kStart, kDe, kTranscribe});
    CHECK(model.prompts[1] == std::vector<Token>{kPrevious, 5, 6, kT, 1, kT + 10, kStart, kDe, kTranscribe});
    model.prompts.clear();
    options.previous_text = false;
    (void)transcribe(model, tokens_of(), {frames, 200}, options);
    CHECK(model.prompts[1] == std::vector<Token>{kPrevious, 5, 6, kStart, kDe, kTranscribe});
    options.before.assign(100, 5);  // as much as leaves room for as much again
    model.prompts.clear();
    (void)transcribe(model, tokens_of(), {frames, 200}, options);
    CHECK(model.prompts[1].size() == 1 + 19 + 3);

    struct Bilingual final : SpeechModel {
        Scripted& script;
        explicit Bilingual(Scripted& s) : script(s) { n_frames = 100, n_mels = 1, max_tokens = 40; }
        void hear(std::span<const float> x) override {
            script.hear(x);
            script.language = script.at < 100 ? kDe : kEn;
        }
        void rewind(std::size_t n) override { script.rewind(n); }
        std::span<const float> read(std::span<const Token> tokens) override { return script.read(tokens); }
        std::string text_of(std::span<const Token> tokens) override { return script.text_of(tokens); }
    } bilingual(model);
    options = {};
    std::vector<std::string> told;
    const SpeechCalls calls{.detected = [&](const std::string& language, double) { told.push_back(language); },
                            .segment = {},
                            .progress = {}};
    Transcript result = transcribe(bilingual, tokens_of(), {frames, 200}, options, calls);
    CHECK(result.segments[1].language.empty());
    CHECK(told == std::vector<std::string>{"de"});
    options.multilingual = true;
    result = transcribe(bilingual, tokens_of(), {frames, 200}, options, calls);
    CHECK(result.language == "de");
    CHECK(result.segments[0].language == "de");
    CHECK(result.segments[1].language == "en");
    CHECK(told == std::vector<std::string>{"de", "de", "en"});
}

std::vector<Token> allowed_after(const std::vector<Token>& written, bool timestamps = true) {
    const SpeechTokens tokens = tokens_of();
    std::vector<float> logits(kVocab, -9.0f);
    for (Token t = 0; t <= kEnd; ++t) logits[t] = 1;
    apply_rules(tokens, written, timestamps, logits);
    std::vector<Token> allowed;
    for (Token t = 0; t < kVocab; ++t)
        if (logits[t] > -INFINITY) allowed.push_back(t);
    return allowed;
}
bool has(const std::vector<Token>& tokens, Token token) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

TEST_CASE("transcribe: the rules of timestamps") {
    const auto first = allowed_after({});
    CHECK(first.front() == kT);
    CHECK(first.back() == kT + 10);
    SpeechTokens at_once = tokens_of(), whenever = tokens_of();
    at_once.max_first_timestamp = 0, whenever.max_first_timestamp.reset();
    for (const auto& [tokens, last] : {std::pair(at_once, kT), std::pair(whenever, kVocab - 1)}) {
        std::vector<float> logits(kVocab, 0.0f);
        apply_rules(tokens, {}, true, logits);
        CHECK(logits[kT] == 0);
        for (Token t = kT + 1; t < kVocab; ++t) CHECK((logits[t] == 0) == (t <= last));
    }
    const auto begun = allowed_after({kT + 4});
    CHECK(has(begun, 0));
    CHECK(has(begun, 8));
    CHECK_FALSE(has(begun, 9));
    CHECK_FALSE(has(begun, kT + 5));
    CHECK_FALSE(has(begun, kNone));
    const auto text = allowed_after({kT + 4, 1});
    CHECK(has(text, 1));
    CHECK_FALSE(has(text, kT + 4));  // no empty stretch
    CHECK(has(text, kT + 5));
    const auto ended = allowed_after({kT + 4, 1, kT + 7});
    CHECK_FALSE(has(ended, 1));
    CHECK(has(ended, kEnd));
    CHECK_FALSE(has(ended, kT + 6));
    CHECK(has(ended, kT + 7));
    const auto none = allowed_after({}, false);
    CHECK(has(none, 0));
    CHECK_FALSE(has(none, 8));
    // 51 timestamps of one logit are together likelier than a text that is ln 40 above each.
    std::vector<float> logits(kVocab, 0.0f);
    logits[1] = std::log(40.0f);
    const Token written[] = {kT, 1};
    apply_rules(tokens_of(), written, true, logits);
    CHECK(logits[1] == -INFINITY);
    CHECK(logits[kEnd] == -INFINITY);
    logits.assign(kVocab, 0.0f);
    logits[1] = std::log(60.0f);
    apply_rules(tokens_of(), written, true, logits);
    CHECK(logits[1] > 4);
}

std::string refusal_of(const std::string& json) {
    try {
        (void)SpeechTokens::read(json, kVocab, "m");
    } catch (const host::Error& refusal) {
        return refusal.what();
    }
    return "read";
}

TEST_CASE("transcribe: what a file says of its tokens is checked, and what a caller asks of it") {
    CHECK(refusal_of("") == "m: speech: expected a model that writes what it hears, got one without its rules");
    CHECK(refusal_of("[]") == "m: speech: expected a JSON object, got something else");
    CHECK(refusal_of("{}") == "m: speech: decoder_start_token_id: expected a token's id, got none");
    CHECK(refusal_of(R"({"decoder_start_token_id": 70})") ==
          "m: speech: decoder_start_token_id: expected ids below 70, got 70");
    const std::string least = R"({"decoder_start_token_id": 11, "eos_token_id": 10, "no_timestamps_token_id": )";
    CHECK(refusal_of(least + "69}") ==
          "m: speech: no_timestamps_token_id: expected timestamps behind it, got 69 of 70 ids");
    CHECK(refusal_of(least + R"(18, "suppress_tokens": [1, -1]})") ==
          "m: speech: suppress_tokens: expected ids below 70, got -1");
    CHECK(refusal_of(least + R"(18, "is_multilingual": 1})") ==
          "m: speech: is_multilingual: expected true or false, got 1");
    CHECK(refusal_of(least + R"(18, "max_initial_timestamp_index": -1})") ==
          "m: speech: max_initial_timestamp_index: expected a whole number up to 70, got -1");
    CHECK(refusal_of(least + "18}") == "read");
    CHECK_THROWS_WITH((void)speech_prompt(tokens_of(), "xx", "transcribe", true),
                      "language: expected one of de, en, got xx");
    CHECK_THROWS_WITH((void)speech_prompt(tokens_of(), "de", "sing", true),
                      "task: expected one of transcribe, translate, got sing");
    CHECK_THROWS_WITH(check_speech(tokens_of(), "", "sing"), "task: expected one of transcribe, translate, got sing");
    CHECK_NOTHROW(check_speech(tokens_of(), "", "translate"));
    for (const char* written : {"de", "German", "DE", "de-AT", "ger"})
        CHECK(tokens_of().language_named(written) == "de");
    CHECK(tokens_of().language_named("French") == "French");  // known, but not to the model
    CHECK_NOTHROW(check_speech(tokens_of(), "English", "transcribe"));
    const SpeechTokens one = SpeechTokens::read(least + "18}", kVocab, "m");
    CHECK(speech_prompt(one, "", "transcribe", false) == std::vector<Token>{kStart, kNone});
    for (const char* written : {"en", "english", "EN", "en-US"})
        CHECK_NOTHROW(check_speech(one, written, "transcribe"));
    CHECK_THROWS_WITH((void)speech_prompt(one, "de", "transcribe", true),
                      "language: expected none, or en, of a model of one language, got de");
}

TEST_CASE("transcribe: sums of exponentials, and how well a text compresses") {
    std::vector<float> logits;
    long double sum = 0;
    for (int i = 0; i < 1000; ++i) {
        logits.push_back(static_cast<float>((i * 7919 % 1000) * 0.05 - 30));
        sum += std::exp(static_cast<long double>(logits.back()));
    }
    CHECK(std::abs(exp_sum(logits).log() - static_cast<double>(std::log(sum))) < 1e-13);
    const std::vector<float> none(5, -INFINITY), bad{0.0f, NAN};
    CHECK(exp_sum(none).sum == 0);
    CHECK(std::isnan(exp_sum(bad).sum));
    CHECK(compression_ratio("") == 0);
    CHECK(compression_ratio("The quick brown fox jumps over the lazy dog.") < 1);
    std::string again;
    for (int i = 0; i < 20; ++i) again += " thank you";
    CHECK(compression_ratio(again) == doctest::Approx(200.0 / 20).epsilon(0.2));  // zlib: 20 bytes
    std::string hostile;  // a file's pieces may have megabytes; in full this would take hours
    for (std::uint32_t i = 0; hostile.size() < (4u << 20); ++i) hostile += static_cast<char>(i * 2654435761u >> 24);
    CHECK(compression_ratio(hostile) == compression_ratio(hostile.substr(0, 16384)));
}

}  // namespace
