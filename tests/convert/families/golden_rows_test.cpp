// Rows of vectors, positions of three dimensions and spans beside transformers: tests/golden/rows. And how a configuration says them.
#include <doctest/doctest.h>

#include "convert/sources/hf_config.h"
#include "tests/convert/families/family_cases.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

std::vector<float> floats(const fs::path& path) { return numbers_of<float>(read_npy(path.string())); }

/// The largest difference from the golden logits, in steps of `each` rows.
float error_of(const char* name, const std::vector<RowSpan>& spans, std::uint32_t each) {
    const fs::path folder = fs::path(FOVEA_GOLDEN_DIR) / "rows" / name;
    const std::vector<float> rows = floats(folder / "rows.npy"), want = floats(folder / "expected_logits.npy");
    std::vector<std::uint32_t> positions;
    if (fs::exists(folder / "positions.npy"))
        for (const float x : floats(folder / "positions.npy")) positions.push_back(static_cast<std::uint32_t>(x));
    TemporaryFolder out;
    ConvertOptions options;
    options.source = golden_families() / name;
    options.output = out / "m.fovea";
    convert_source(options);
    const Converted converted(out / "m.fovea");
    const Stack& stack = converted.model.config().decoder;
    Plan plan;
    REQUIRE(make_plan(converted.model.config(), {}, plan).ok());
    AlignedBytes arena(plan.arena_bytes);
    Session session;
    REQUIRE(make_session(converted.model, {}, arena, session).ok());
    Workspace workspace = session.workspace();
    const auto n = static_cast<std::uint32_t>(rows.size() / stack.d_model);
    std::vector<float> logits(n * stack.vocab_size);
    REQUIRE(logits.size() == want.size());
    for (std::uint32_t at = 0; at < n; at += each) {
        const std::uint32_t m = std::min(each, n - at);
        Step step{session.cache(), {}, std::span(logits).subspan(at * stack.vocab_size, m * stack.vocab_size)};
        step.rows = std::span(rows).subspan(at * stack.d_model, m * stack.d_model);
        if (!positions.empty()) step.positions = std::span(positions).subspan(3 * at, 3 * m);
        step.spans = spans;
        REQUIRE(forward(workspace, {&step, 1}).ok());
    }
    float error = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        REQUIRE(logits[i] == logits[i]);
        error = std::max(error, std::abs(logits[i] - want[i]));
    }
    return error;
}

}  // namespace

TEST_CASE("rows beside transformers: positions of three dimensions, and an image whose rows see each other") {
    for (const std::uint32_t each : {1u, 7u, 100u}) {
        CHECK(error_of("qwen2_vl_text", {}, each) < 1e-4f);
        CHECK(error_of("qwen3_vl_text", {}, each) < 1e-4f);
    }
    CHECK(error_of("gemma3_text", {{4, 15}}, 100) < 1e-4f);
    CHECK(error_of("gemma3_text", {}, 100) > 1e-2f);
}

TEST_CASE("mrope_section: how many frequencies turn by height and width, and in which order") {
    const auto attention_of = [](const char* family) {
        return read_hf_config(golden_families() / family / "config.json", {}).stack().blocks[0].attention;
    };
    CHECK(attention_of("qwen2_vl_text").rope_plane == 1);
    CHECK_FALSE(attention_of("qwen2_vl_text").rope_interleaved);
    CHECK(attention_of("qwen3_vl_text").rope_plane == 1);
    CHECK(attention_of("qwen3_vl_text").rope_interleaved);
    CHECK(attention_of("llama").rope_plane == 0);
    for (const char* family : {"qwen2_vl_text", "qwen3_vl_text"}) {
        TemporaryFolder out;
        ConvertOptions options;
        options.source = fs::path(FOVEA_GOLDEN_DIR) / "families_gguf" / family / "model.gguf";
        options.output = out / "m.fovea";
        convert_source(options);
        const Converted converted(out / "m.fovea");
        const AttentionShape& attention = converted.model.config().decoder.blocks[0].attention;
        CHECK(attention.rope_plane == attention_of(family).rope_plane);
        CHECK(attention.rope_interleaved == attention_of(family).rope_interleaved);
    }
    for (const SortedJson& sections :
         {SortedJson{1, 1}, SortedJson{1, 2, 1}, SortedJson{1, 1, 2}, SortedJson("1"), SortedJson{-1, 2, 2}})
        CHECK(contains(
            line_of("qwen2_vl_text",
                    [&](SortedJson& json) { json["text_config"]["rope_parameters"]["mrope_section"] = sections; }),
            "mrope_section: expected three numbers whose sum is 3, got "));
    CHECK(attention_of("glm4v_text").rope_plane == 0);  // [1, 1, 2]: height and width differ
}
