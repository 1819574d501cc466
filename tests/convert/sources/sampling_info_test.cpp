// What generation_config.json and GGUF's general.sampling.* say of sampling, as the file's metadata has it.
#include "convert/sources/sampling_info.h"

#include <doctest/doctest.h>

#include <string>

#include "convert/formats/gguf.h"
#include "convert/open/convert.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "tests/support/convert_fixtures.h"

namespace fovea {
namespace {

using testing::refusal_of;
using testing::TemporaryFolder;
using testing::write_text;

std::string sampling_of(const ModelSource& source) {
    for (const auto& [key, value] : source.info)
        if (key == "sampling") return value;
    return {};
}

/// The metadata of a folder's files, and the notes.
struct Said {
    SortedJson sampling;
    std::vector<std::string> notes;
};

Said said_by(const std::string& generation, const std::string& config = "{}") {
    const TemporaryFolder folder;
    if (!generation.empty()) write_text(folder / "generation_config.json", generation);
    write_text(folder / "config.json", config);
    ModelSource source;
    add_sampling_info(Fields::read(folder / "config.json"), folder / "generation_config.json", source);
    const std::string text = sampling_of(source);
    return {text.empty() ? SortedJson() : SortedJson::parse(text), source.notes};
}

/// A GGUF file of keys general.sampling.* alone.
class Keys {
public:
    template<class T>
    Keys& add(const std::string& key, GgufKind kind, T value) {
        const std::string name = "general.sampling." + key;
        bytes_ += raw(std::uint64_t{name.size()}) + name + raw(static_cast<std::uint32_t>(kind)) + raw(value);
        ++n_;
        return *this;
    }
    [[nodiscard]] Said said() const {
        const TemporaryFolder folder;
        write_text(folder / "m.gguf",
                   "GGUF" + raw(std::uint32_t{3}) + raw(std::uint64_t{0}) + raw(n_) + bytes_ + std::string(64, '\0'));
        const Gguf file(folder / "m.gguf", map_source(folder / "m.gguf"));
        ModelSource source;
        add_sampling_info(file, source);
        const std::string text = sampling_of(source);
        return {text.empty() ? SortedJson() : SortedJson::parse(text), source.notes};
    }

private:
    template<class T>
    static std::string raw(T value) {
        return {reinterpret_cast<const char*>(&value), sizeof value};
    }
    std::string bytes_;
    std::uint64_t n_ = 0;
};

}  // namespace

TEST_CASE("sampling of a folder: as transformers' generate reads it") {
    CHECK(said_by("").sampling.is_null());
    CHECK(said_by(R"({"do_sample": false, "temperature": 0.6, "top_p": 0.9})").sampling.is_null());
    CHECK(said_by(R"({"temperature": 0.6})").sampling.is_null());
    CHECK(said_by(R"({"do_sample": true})").sampling == SortedJson({{"temperature", 1.0}, {"top_k", 50}}));
    CHECK(said_by(R"({"do_sample": true, "temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.05,
                      "min_p": null, "typical_p": 0.95})")
              .sampling == SortedJson({{"temperature", 0.7},
                                       {"top_k", 20},
                                       {"top_p", 0.8},
                                       {"typical_p", 0.95},
                                       {"repeat_penalty", 1.05},
                                       {"repeat_last_n", -1}}));
    CHECK(said_by(R"({"repetition_penalty": 1.2})").sampling ==
          SortedJson({{"repeat_penalty", 1.2}, {"repeat_last_n", -1}}));
    CHECK(said_by("", R"({"do_sample": true, "top_k": 5})").sampling ==
          SortedJson({{"temperature", 1.0}, {"top_k", 5}}));
    CHECK(said_by("{}", R"({"do_sample": true})").sampling.is_null());  // the newer file counts alone
    const Said noted = said_by(R"({"no_repeat_ngram_size": 3, "bad_words_ids": [[1]], "num_beams": 1, "top_h": null})");
    REQUIRE(noted.notes.size() == 2);
    CHECK(noted.notes[0].ends_with("generation_config.json: no_repeat_ngram_size: chats don't heed it"));
    CHECK(refusal_of([] { said_by(R"({"do_sample": true, "top_p": 1.5})"); }).find("top_p: expected") !=
          std::string::npos);
    CHECK(refusal_of([] { said_by(R"({"do_sample": "yes"})"); }).find("do_sample: expected true or false") !=
          std::string::npos);
}

TEST_CASE("sampling of a GGUF file: its keys general.sampling") {
    CHECK(Keys().said().sampling.is_null());
    CHECK(Keys()
              .add("temp", GgufKind::f32, 0.7f)
              .add("top_k", GgufKind::i32, std::int32_t{-1})
              .add("penalty_repeat", GgufKind::f32, 1.1f)
              .add("penalty_last_n", GgufKind::i32, std::int32_t{-1})
              .add("xtc_probability", GgufKind::f32, 0.5f)
              .add("mirostat", GgufKind::i32, std::int32_t{2})
              .said()
              .sampling == SortedJson({{"temperature", 0.7},
                                       {"top_k", 0},
                                       {"repeat_penalty", 1.1},
                                       {"repeat_last_n", -1},
                                       {"xtc_probability", 0.5},
                                       {"mirostat", 2}}));
    const Said first = Keys().add("mirostat", GgufKind::i32, std::int32_t{1}).said();
    CHECK(first.sampling.is_null());
    CHECK(first.notes.size() == 1);
    CHECK(refusal_of([] {
              (void)Keys().add("min_p", GgufKind::f32, 2.0f).said();
          }).find("general.sampling.min_p: expected a number from 0 to 1") != std::string::npos);
}

}  // namespace fovea
