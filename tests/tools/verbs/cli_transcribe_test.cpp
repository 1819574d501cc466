// `transcribe`: its forms of output, recordings of every kind, and what it refuses.
#include <string_view>
#include <thread>

#include "tests/support/command_line.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

/// The golden's model as a file.
struct Talking {
    TemporaryFolder folder;
    std::string model = (folder / "talking.fovea").string();
    Talking() { output_of({"convert", golden("speech/whisper_talking"), "-o", model}); }

    [[nodiscard]] std::vector<std::string> command(std::vector<std::string> more) const {
        std::vector<std::string> all{"transcribe", model};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
};

TEST_CASE("cli: transcribe writes text, times, subtitles and JSON of the same segments") {
    const Talking talking;
    const std::string file = golden("recordings/three.wav");
    const std::vector<std::string> same{"--language", "de", "--temp", "0", file};
    const auto asked = [&](std::vector<std::string> more) {
        more.insert(more.end(), same.begin(), same.end());
        return output_of(talking.command(more));
    };
    const auto parsed = [&](const std::vector<std::string>& more) {
        json made = json::parse(asked(more));
        CHECK(made["arena_bytes"].get<std::uint64_t>() > 0);  // of threads and words, see cli_plan_test.cpp
        made.erase("arena_bytes");
        return made;
    };
    const json object = parsed({"--json"});
    CHECK(object["file"] == file);
    CHECK(object["language"] == "de");
    CHECK(object["seconds"] == 1.5);
    REQUIRE(object["segments"].size() >= 3);
    const json& segment = object["segments"][1];
    for (const char* field :
         {"start", "end", "text", "tokens", "avg_logprob", "no_speech_prob", "compression_ratio", "temperature"})
        CHECK(segment.contains(field));

    char times[80];
    const std::string lines = asked({"--timestamps"}), srt = asked({"--srt"}), vtt = asked({"--vtt"});
    const auto starts = static_cast<int>(std::lround(segment["start"].get<double>() * 1000));
    std::snprintf(times, sizeof times, "\n[00:%02d.%03d --> 00:", starts / 1000, starts % 1000);
    CHECK(lines.find(times) != std::string::npos);
    CHECK(std::count(lines.begin(), lines.end(), '\n') == static_cast<std::ptrdiff_t>(object["segments"].size()));
    std::snprintf(times, sizeof times, "\n2\n00:00:%02d,%03d --> 00:00:", starts / 1000, starts % 1000);
    CHECK(srt.find(times) != std::string::npos);
    std::snprintf(times, sizeof times, "\n00:00:%02d.%03d --> 00:00:", starts / 1000, starts % 1000);
    CHECK(vtt.starts_with("WEBVTT\n\n"));
    CHECK(vtt.find(times) != std::string::npos);
    const std::string text = asked({});
    CHECK(text.ends_with('\n'));
    CHECK(std::count(text.begin(), text.end(), '\n') == 1);

    // Words: each with a line, a subtitle or a place among its segment's, whose times are theirs. The first window is the same.
    const json worded = parsed({"--json", "--words"});
    std::size_t n_words = 0;
    double last = 0;
    for (const json& one : worded["segments"]) {
        REQUIRE(!one["words"].empty());
        CHECK(one["start"] == one["words"].front()["start"]);
        CHECK(one["end"] == one["words"].back()["end"]);
        for (const json& word : one["words"]) {
            CHECK(word["start"] < word["end"]);
            CHECK(word["start"] >= last);
            last = word["end"];
            ++n_words;
        }
    }
    CHECK(worded["segments"][0]["tokens"] == object["segments"][0]["tokens"]);
    const std::string word_lines = asked({"--timestamps", "--words"}), word_cues = asked({"--srt", "--words"});
    CHECK(std::count(word_lines.begin(), word_lines.end(), '\n') == static_cast<std::ptrdiff_t>(n_words));
    CHECK(word_cues.find("\n" + std::to_string(n_words) + "\n00:00:") != std::string::npos);
    CHECK(word_cues.find("\n" + std::to_string(n_words + 1) + "\n00:00:") == std::string::npos);

    const std::string tsv = asked({"--tsv"});
    CHECK(tsv.starts_with("start\tend\ttext\n"));
    CHECK(std::count(tsv.begin(), tsv.end(), '\n') == static_cast<std::ptrdiff_t>(object["segments"].size()) + 1);
    CHECK(tsv.find("\n" + std::to_string(starts) + "\t") != std::string::npos);
    const std::string narrow = asked({"--srt", "--max-line-width", "12"}),
                      short_ones = asked({"--vtt", "--max-line-width", "12", "--max-line-count", "1"});
    CHECK(narrow.size() >= srt.size());
    CHECK(std::count(short_ones.begin(), short_ones.end(), '>') >= std::count(vtt.begin(), vtt.end(), '>'));
    const std::string path = (talking.folder / "out.srt").string();
    CHECK(asked({"--srt", "-o", path}).empty());
    CHECK(read_text(path) == srt);

    CHECK(asked({"--json", "--prompt", "Fovea, a name."}) != asked({"--json"}));
    CHECK(asked({"--json", "--prompt", " "}) == asked({"--json"}));
    for (const char* isa : {"scalar", ""})
        for (const char* threads : {"1", "3"}) {
            std::vector<std::string> how{"--json", "--threads", threads};
            if (*isa) how.insert(how.end(), {"--isa", isa});
            CHECK(parsed(how) == object);
        }
}

TEST_CASE("cli: transcribe hears the language, takes several recordings, and a WAV file on standard input") {
    const Talking talking;
    const Ran ran =
        run_fovea(talking.command({golden("recordings/one.wav"), golden("recordings/two.wav"), "--no-previous-text"}));
    CHECK(ran.status == 0);
    CHECK(ran.err.starts_with("language: "));
    CHECK(ran.out.starts_with(golden("recordings/one.wav") + ":\n"));
    CHECK(ran.out.find("\n" + golden("recordings/two.wav") + ":\n") != std::string::npos);
    CHECK(json::parse(output_of(talking.command(
              {golden("recordings/one.wav"), "--no-timestamps", "--task", "translate", "--json"})))["segments"]
              .size() <= 1);
}

TEST_CASE("cli: transcribe reads pipes as they come, with headers and without") {
    const Talking talking;
    const std::string file = golden("recordings/three.wav"), raw = read_text(file).substr(44);
    const std::vector<std::string> how{"--language", "German", "--temp", "0", "--json"};
    const auto of = [&](std::vector<std::string> more, const std::string& input) {
        more.insert(more.end(), how.begin(), how.end());
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        std::thread writer([&] {
            for (std::string_view rest = input; !rest.empty();) {
                const ssize_t n = ::write(ends[1], rest.data(), std::min<std::size_t>(rest.size(), 1000));
                if (n <= 0) break;
                rest.remove_prefix(static_cast<std::size_t>(n));
            }
            ::close(ends[1]);
        });
        RunSettings settings;
        settings.input = ends[0];
        const Ran ran = run_fovea(talking.command(more), settings);
        writer.join();
        ::close(ends[0]);
        CHECK(ran.status == 0);
        json made = json::parse(ran.out);
        made.erase("file");
        return made;
    };
    const json whole = of({file}, "");
    CHECK(of({"-"}, read_text(file)) == whole);
    CHECK(of({"-", "--raw", "16000:s16"}, raw) == whole);
    write_text((talking.folder / "x.raw").string(), raw);
    CHECK(of({(talking.folder / "x.raw").string(), "--raw", "16000:s16:1"}, "") == whole);
    // Clips, and stretches with a voice alone.
    const json clip = of({file, "--clip-timestamps", "0.3,0.6"}, "");
    REQUIRE(!clip["segments"].empty());
    CHECK(clip["segments"][0]["start"].get<double>() >= 0.3);
    CHECK(of({file, "--clip-timestamps", "100"}, "")["segments"].empty());
    CHECK(of({file, "--vad", "energy"}, "")["seconds"] == 1.5);
    json each = of({file, "--prompt", "A name.", "--carry-prompt"}, "");
    CHECK(each["segments"] != whole["segments"]);
    const json spoken = json::parse(output_of(talking.command({file, "--multilingual", "--temp", "0", "--json"})));
    for (const json& segment : spoken["segments"]) CHECK(segment.contains("language"));
}

TEST_CASE("cli: inspect tells what a model hears") {
    const Talking talking;
    const json sound = json::parse(output_of({"inspect", talking.model, "--json"}))["encoder"]["sound"];
    CHECK(sound["sample_rate"] == 16000);
    CHECK(sound["n_fft"] == 400);
    CHECK(sound["hop_length"] == 160);
    CHECK(sound["n_mels"] == 80);
    const std::string text = output_of({"inspect", talking.model});
    CHECK(contains(text, "16,000 samples a second, windows of 400 every 160, 80 mel filters"));
    CHECK(contains(text, "input         a row of two frames"));
}

TEST_CASE("cli: transcribe refuses what is no recording, no model that hears, and options that contradict") {
    const Talking talking;
    const std::string file = golden("recordings/one.wav"), model = talking.model;
    check_refused({"transcribe", model}, 2, "FILE: expected a recording");
    check_refused({"transcribe", model, file, "--words"}, 2,
                  "--words: expected --timestamps, --srt, --vtt, --tsv or --json");
    check_refused({"transcribe", model, file, "--srt", "--json"}, 2, "expected one of them, got several");
    check_refused({"transcribe", model, file, "--tsv", "--vtt"}, 2, "expected one of them, got several");
    check_refused({"transcribe", model, file, "--vad", "loud"}, 2, "--vad: expected energy, got loud");
    check_refused({"transcribe", model, file, "--max-line-width", "9"}, 2, "--max-line-width: expected --srt or --vtt");
    check_refused({"transcribe", model, file, "--srt", "--max-line-count", "2"}, 2,
                  "--max-line-count: expected --max-line-width");
    check_refused({"transcribe", model, file, "--carry-prompt"}, 2, "--carry-prompt: expected --prompt beside it");
    check_refused({"transcribe", model, file, "--multilingual", "--language", "de"}, 2,
                  "--multilingual: expected no --language");
    for (const char* clips : {"1,", "2,1", "a", "1,1", "1,,2", "nan"})
        check_refused({"transcribe", model, file, "--clip-timestamps", clips}, 2,
                      "--clip-timestamps: expected seconds");
    check_refused({"transcribe", model, file, "--raw", "16000"}, 2, "--raw: expected RATE:FORMAT");
    check_refused({"transcribe", model, file, "-o", file}, 1, "expected another file than what is read");
    check_refused({"transcribe", model, file, "--srt", "--no-timestamps"}, 2, "--no-timestamps: expected none of");
    check_refused({"transcribe", model, file, file, "--vtt"}, 2, "--srt, --vtt, --tsv: expected one recording, got 2");
    check_refused({"transcribe", model, file, "--language", "xx"}, 2, "language: expected one of de, en, haw, got xx");
    check_refused({"transcribe", model, file, "--language", "de", "--task", "sing"}, 2,
                  "task: expected one of transcribe, translate, got sing");
    check_refused({"transcribe", model, "nothere.wav", "--task", "sing"}, 2, "task: expected one of transcribe");
    check_refused({"transcribe", model, "nothere.wav"}, 1, "nothere.wav: no such file");
    check_refused({"transcribe", model, model}, 1, "talking.fovea: expected a ");
    check_refused({"transcribe", model, "-"}, 1, "standard input: expected a ");
    check_refused({"transcribe", std::string(FOVEA_SOURCE_DIR) + "/tools/demo/demo.fovea", file}, 1,
                  "model: expected one that hears, got one that reads text");
    check_refused({"run", model, "-p", "x"}, 1,
                  "model: expected one that reads text, got one that hears (see fovea transcribe)");
    check_refused({"encode", model, "-p", "x", "--json"}, 1, "got one that hears (see fovea transcribe)");
}

}  // namespace
}  // namespace fovea::testing
