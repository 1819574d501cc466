// The times of words: the frames at which rows begin, as PyTorch's attention and NumPy have them (tests/golden/make_words.py),
// and how tokens become words.
#include "host/speech/word_times.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include "fovea/host/opened.h"
#include "fovea/host/sound_file.h"
#include "host/base/error.h"
#include "host/base/npy.h"
#include "host/base/words.h"
#include "host/model/listing.h"
#include "host/speech/speech_engine.h"
#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// The golden's model in memory, with the alignment heads that its generation_config.json then names; empty: none.
struct AlignedSpeech {
    TemporaryFolder scratch;
    AlignedBytes file;
    host::Opened opened;

    explicit AlignedSpeech(const nlohmann::json& heads, const char* name = "whisper_narrow") {
        const fs::path folder = scratch / "model";
        fs::copy(golden_path("speech") / name, folder);
        nlohmann::json generation = nlohmann::json::parse(std::ifstream(folder / "generation_config.json"));
        if (!heads.empty()) generation["alignment_heads"] = heads;
        std::ofstream(folder / "generation_config.json") << generation.dump();
        ConvertOptions options;
        options.source = folder;
        const ModelSource source = read_source(options);
        file = write_bytes(source, write_options(options, source));
        opened = host::open_bytes(file, "m");
    }
    [[nodiscard]] SpeechEngine engine(const char* isa = nullptr) const {
        return {opened, {.n_threads = 2, .isa = isa, .words = true}};
    }
};

std::vector<SpeechWord> words_of(std::initializer_list<const char*> texts) {
    std::vector<SpeechWord> words;
    double at = 0;
    for (const char* text : texts) {
        words.push_back({text, at, at + 0.2, 0.5, 1});
        at += 0.2;
    }
    return words;
}

std::vector<std::string> texts_of(const std::vector<SpeechWord>& words) {
    std::vector<std::string> texts;
    for (const SpeechWord& word : words) texts.push_back(word.text);
    return texts;
}

using Strings = std::vector<std::string>;

/// Words of tokens whose texts these are.
Strings split(const Strings& pieces, const std::string& language = "en") {
    std::vector<Token> tokens;
    for (std::size_t i = 0; i < pieces.size(); ++i) tokens.push_back(static_cast<Token>(i));
    const auto text_of = [&](std::span<const Token> some) {
        std::string text;
        for (const Token token : some) text += pieces[token];
        return text;
    };
    Strings words;
    std::size_t next = 0;
    for (const WordTokens& word : split_words(tokens, language, text_of)) {
        CHECK(word.first == next);
        next += word.n;
        words.push_back(word.text);
    }
    CHECK(next == pieces.size());
    return words;
}

}  // namespace

TEST_CASE("words: each row begins at the frame that PyTorch's attention says, on every instruction set") {
    const nlohmann::json cases = nlohmann::json::parse(std::ifstream(golden_path("words.json")));
    REQUIRE(cases.size() == 21);
    const NpyArray frames = read_npy(golden_path("speech/whisper_narrow/frames.npy").string());
    for (const nlohmann::json& item : cases) {
        CAPTURE(item.dump());
        const bool of_half = item["heads"].size() == 4;  // what is taken where a folder names none
        const AlignedSpeech speech(of_half ? nlohmann::json() : item["heads"]);
        for (const char* isa : isa_names()) {
            CAPTURE(isa);
            SpeechEngine engine = speech.engine(isa);
            engine.hear({reinterpret_cast<const float*>(frames.data.data()), frames.data.size() / sizeof(float)});
            const std::vector<Token> tokens = item["tokens"];
            Alignment alignment(tokens.size(), item["n_frames"]);
            std::size_t n_heads = 0;
            engine.attend(tokens, [&](std::span<const float> weights, std::size_t stride) {
                CHECK(weights.size() == tokens.size() * stride);
                alignment.add(weights, stride);
                ++n_heads;
            });
            CHECK(n_heads == item["heads"].size());
            const std::vector<std::uint32_t> want = item["begins"];
            CHECK(alignment.begins(item["first"], want.size()) == want);
        }
    }
}

TEST_CASE("words: heads that a model does not have are refused, and others than pairs") {
    const auto engine_with = [](const char* heads) { (void)AlignedSpeech(nlohmann::json::parse(heads)).engine(); };
    CHECK_THROWS_WITH_AS(engine_with("[[2, 0]]"),
                         "m: speech: alignment_heads: expected heads of its 2 layers, got [2, 0]", host::Error);
    CHECK_THROWS_WITH_AS(engine_with("[[1, 4]]"),
                         "m: speech: alignment_heads: expected heads of its 2 layers, got [1, 4]", host::Error);
    for (const char* heads : {R"("x")", "[1, 2]", "[[1, 2, 3]]", "[[1, -2]]", "[[1, 1e30]]"})
        CHECK_THROWS_AS(engine_with(heads), host::Error);
}

TEST_CASE("words: tokens become words at spaces and marks, or by characters where a language has no spaces") {
    CHECK(split({" Hel", "lo", " there", ",", " you", "."}) == Strings{" Hello", " there", ",", " you", "."});
    CHECK(split({"No", "space"}) == Strings{"Nospace"});
    CHECK(split({" caf\xc3", "\xa9", " x"}) == Strings{" caf\xc3\xa9", " x"});  // a character in two tokens
    CHECK(split({"\xe4\xbd", "\xa0", "好"}, "zh") == Strings{"你", "好"});
    CHECK(split({"你", "好"}) == Strings{"你好"});
    CHECK(split({" end\xe4"}) == Strings{" end\xe4"});  // never whole: what there is
    CHECK(split({}).empty());
}

TEST_CASE("words: marks go to the words they belong to") {
    const auto joined = [](std::initializer_list<const char*> texts) {
        std::vector<SpeechWord> words = words_of(texts);
        join_marks(words);
        return texts_of(words);
    };
    CHECK(joined({" Yes", ",", " he", " said", "."}) == Strings{" Yes,", " he", " said."});
    CHECK(joined({" he", " \"", "No", "!", "\""}) == Strings{" he", " \"No!\""});
    CHECK(joined({" -", "one", " (", "two", ")"}) == Strings{" -one", " (two)"});
    CHECK(joined({"."}) == Strings{"."});
    CHECK(joined({" x", " ."}) == Strings{" x", " ."});  // a mark that stands alone
    CHECK(joined({}).empty());
    std::vector<SpeechWord> words = words_of({" a", ".", " b"});
    join_marks(words);
    CHECK(words[0].n_tokens == 2);
    CHECK(words[0].end == doctest::Approx(0.2));  // a mark adds no time
}

TEST_CASE("words: a pause at a sentence's end belongs to no word") {
    std::vector<SpeechWord> words = words_of({" one", " two", ".", " three", " four"});
    words[2].end = 2.4, words[3].start = 2.4, words[3].end = 4.4;  // the usual word: 0.2 s
    cut_pauses(words, 2 * median_duration(words));
    CHECK(words[2].end == doctest::Approx(words[2].start + 0.4));
    CHECK(words[3].start == doctest::Approx(4.0));
    CHECK(words[0].end == doctest::Approx(0.2));
    std::vector<SpeechWord> none;
    CHECK(median_duration(none) == 0);
    cut_pauses(none, 0);
}

TEST_CASE(
    "words: at segments' borders they are where OpenAI's program leaves them (tests/golden/make_word_borders.py)") {
    const nlohmann::json cases = nlohmann::json::parse(std::ifstream(golden_path("word_borders.json")));
    REQUIRE(cases.size() == 30);
    for (const nlohmann::json& item : cases) {
        CAPTURE(item.dump());
        std::vector<SpeechWord> words;
        for (const nlohmann::json& segment : item["segments"])
            for (const nlohmann::json& word : segment["words"]) words.push_back({word[0], word[1], word[2], 1, 1});
        const double median = median_duration(words);
        cut_pauses(words, 2 * median);
        double speech_end = item["speech_end"];
        auto next = words.begin();
        for (std::size_t i = 0; i < item["segments"].size(); ++i) {
            const nlohmann::json &given = item["segments"][i], &settled = item["settled"][i];
            SpeechSegment segment;
            segment.start = given["start"], segment.end = given["end"];
            const auto n = static_cast<std::ptrdiff_t>(given["words"].size());
            segment.words.assign(next, next + n);
            next += n;
            join_marks(segment.words);
            speech_end = settle_borders(segment, median, speech_end);
            CHECK(std::abs(segment.start - settled["start"].get<double>()) < 1e-5);
            CHECK(std::abs(segment.end - settled["end"].get<double>()) < 1e-5);
            REQUIRE(segment.words.size() == settled["words"].size());
            for (std::size_t k = 0; k < segment.words.size(); ++k) {
                CHECK(segment.words[k].text == settled["words"][k][0]);
                CHECK(std::abs(segment.words[k].start - settled["words"][k][1].get<double>()) < 1e-5);
                CHECK(std::abs(segment.words[k].end - settled["words"][k][2].get<double>()) < 1e-5);
            }
        }
    }
}

TEST_CASE("words: they are put in order, each with a frame's time where there is room for it") {
    std::uint64_t random = 1;
    const auto below = [&](std::uint64_t n) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        return (random >> 33) % n;
    };
    for (int round = 0; round < 2000; ++round) {
        std::vector<SpeechWord> words(1 + below(30));
        std::vector<SpeechWord*> all;
        for (SpeechWord& word : words) {
            word.start = 0.02 * static_cast<double>(below(120)) - 0.2;
            word.end = word.start + 0.02 * static_cast<double>(below(20)) - 0.1;
            all.push_back(&word);
        }
        const double end = 0.02 * static_cast<double>(below(100)),
                     room = std::min(0.02, end / static_cast<double>(words.size()));
        put_in_order(all, 0, end);
        double last = 0;
        for (const SpeechWord& word : words) {
            CHECK(word.start >= last - 1e-9);
            CHECK(word.end - word.start >= room - 1e-9);
            last = word.end;
        }
        CHECK(last <= end + 1e-9);
    }
    std::vector<SpeechWord> words = words_of({" one", " two", " three"});
    const std::vector<SpeechWord> before = words;
    words[1].end = words[1].start;  // no frame is its own: it takes one of the next's, if that has no other
    std::vector<SpeechWord*> all{&words[0], &words[1], &words[2]};
    put_in_order(all, 0, 1);
    CHECK(words[0].end == before[0].end);
    CHECK(words[1].end == doctest::Approx(0.22));
    CHECK(words[2].start == before[2].start);
    CHECK_NOTHROW(put_in_order({}, 0, 1));
}

TEST_CASE("words: a transcript's words are its segments' texts, in order and within the recording") {
    const AlignedSpeech speech(nlohmann::json(), "whisper_talking");
    for (const char* recording : {"one", "two", "three"}) {
        CAPTURE(recording);
        const auto samples = read_sound(golden_path("recordings/" + std::string(recording) + ".wav").string(), 16000);
        const RecordingFrames frames = recording_frames(speech.opened.model, samples, recording);
        SpeechEngine engine = speech.engine();
        SpeechOptions options;
        options.temperatures = {0};
        options.language = "de";
        options.max_tokens = 16;
        const Transcript plain = transcribe(engine, engine.tokens(), frames.view(), options);
        options.words = true;
        const Transcript with = transcribe(engine, engine.tokens(), frames.view(), options);
        REQUIRE(!with.segments.empty());
        CHECK(plain.segments[0].words.empty());
        CHECK(with.segments[0].tokens == plain.segments[0].tokens);  // later windows begin where words end
        double last = 0;
        for (const SpeechSegment& segment : with.segments) {
            std::string text;
            for (const SpeechWord& word : segment.words) {
                text += word.text;
                CHECK(word.start < word.end);
                CHECK(word.start >= last);
                CHECK(word.end <= 0.01 * frames.n_content + 1e-9);
                CHECK(word.probability > 0);
                CHECK(word.probability <= 1);
                last = word.end;
            }
            CHECK(segment.start == segment.words.front().start);
            CHECK(segment.end == segment.words.back().end);
            CHECK(text.size() >= segment.text.size());  // bytes of broken characters are said one by one
        }
    }
}
