// GGUF models in several files: the same bytes as of the whole, and what parts that do not fit together say.
#include "convert/formats/gguf_split.h"

#include <doctest/doctest.h>

#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

fs::path golden() { return FOVEA_GOLDEN_DIR; }

std::string converted(const fs::path& source) {
    TemporaryFolder folder;
    convert_source({.source = source, .output = folder / "m.fovea"});
    return read_text(folder / "m.fovea");
}

/// What converting says after a change of a folder with the parts of "model", in which `first` is given.
std::string line_of(const std::function<void(const fs::path&)>& change,
                    const char* first = "model-00001-of-00003.gguf") {
    TemporaryFolder folder;
    fs::copy(golden() / "gguf_split", folder / "parts");
    change(folder / "parts");
    return refusal_of([&] { convert_source({.source = folder / "parts" / first, .output = folder / "m.fovea"}); });
}

/// A number of a part's metadata, of two bytes.
void put_u16(const fs::path& file, const std::string& key, std::uint16_t number) {
    std::string bytes = read_text(file);
    const std::size_t at = bytes.find(key);
    REQUIRE(at != bytes.npos);
    std::memcpy(bytes.data() + at + key.size() + 4, &number, sizeof number);
    write_text(file, bytes);
}

}  // namespace

TEST_CASE("split GGUF: parts make the file that the whole makes") {
    CHECK(converted(golden() / "gguf_split/model-00001-of-00003.gguf") ==
          converted(golden() / "gguf/llama_linear.gguf"));
    CHECK(converted(golden() / "gguf_split/bare-00001-of-00007.gguf") == converted(golden() / "gguf/qwen2_q4_0.gguf"));
}

TEST_CASE("split GGUF: names of parts") {
    CHECK(gguf_parts("m.gguf") == std::vector<fs::path>{"m.gguf"});
    CHECK(gguf_parts("a/m-00002-of-00003.gguf") ==
          std::vector<fs::path>{"a/m-00001-of-00003.gguf", "a/m-00002-of-00003.gguf", "a/m-00003-of-00003.gguf"});
    for (const char* whole :
         {"", "-00001-of-0000.gguf", "m-00000-of-00003.gguf", "m-00004-of-00003.gguf", "m-0001-of-0003.gguf",
          "m-0000x-of-00003.gguf", "m-00001-of-99999.gguf", "m-00001_of-00003.gguf", "m-00001-of-00003.ggu"})
        CHECK(gguf_parts(whole).size() == 1);
    CHECK(gguf_parts("-00001-of-00002.gguf").size() == 2);
}

TEST_CASE("split GGUF: parts that lack, are others or come twice are refused by name") {
    CHECK(line_of([](const fs::path&) {}) == "");
    CHECK(contains(line_of([](const fs::path& at) { fs::remove(at / "model-00003-of-00003.gguf"); }),
                   "model-00003-of-00003.gguf: "));
    CHECK(contains(line_of([](const fs::path&) {}, "model-00002-of-00003.gguf"),
                   "split.no: expected 0, a model's first part, got 1; give "));
    const auto rename_first = [](const fs::path& at) { fs::rename(at / "model-00001-of-00003.gguf", at / "m.gguf"); };
    CHECK(contains(line_of(rename_first, "m.gguf"), "m.gguf: expected a name that ends in -00001-of-00003.gguf"));
    const auto swap = [](const fs::path& at) {
        fs::rename(at / "model-00002-of-00003.gguf", at / "x");
        fs::rename(at / "model-00003-of-00003.gguf", at / "model-00002-of-00003.gguf");
        fs::rename(at / "x", at / "model-00003-of-00003.gguf");
    };
    CHECK(contains(line_of(swap), "model-00002-of-00003.gguf: split.no: expected 1, got 2"));
    CHECK(contains(line_of([](const fs::path& at) { put_u16(at / "model-00002-of-00003.gguf", "split.count", 4); }),
                   "model-00002-of-00003.gguf: split.count: expected 3, got 4"));
    CHECK(contains(line_of([](const fs::path& at) {
                       fs::copy_file(at / "model-00002-of-00003.gguf", at / "model-00003-of-00003.gguf",
                                     fs::copy_options::overwrite_existing);
                       put_u16(at / "model-00003-of-00003.gguf", "split.no", 2);
                   }),
                   ": expected in one part, got it in two"));
    CHECK(contains(
        line_of([](const fs::path& at) { put_u16(at / "model-00001-of-00003.gguf", "split.tensors.count", 4); }),
        "split.tensors.count: expected 11, as many as the parts have, got 4"));
    CHECK(contains(line_of([](const fs::path& at) { write_text(at / "model-00002-of-00003.gguf", "GGUF"); }),
                   "model-00002-of-00003.gguf: header: expected 4 more bytes, got 0"));
}
