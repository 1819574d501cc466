// Types mixed under a budget: the choice beside every other there is, and what files it makes of the demo model.
#include "convert/calibrate/budget.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "tests/support/command_line.h"
#include "tests/support/convert_fixtures.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// Matrices whose choices cost less the larger they are, by ever less for a byte.
std::vector<MatrixChoices> made_up_matrices(std::uint32_t seed) {
    std::uint32_t state = seed;
    const auto next = [&](std::uint32_t below) {
        state = state * 1664525u + 1013904223u;
        return (state >> 8) % below;
    };
    std::vector<MatrixChoices> matrices(5);
    for (MatrixChoices& matrix : matrices) {
        MatrixChoices::Choice choice{Type::q4, 10 + next(20), 64.0 * (1 + next(100))};
        double gain = choice.cost / 8;
        for (std::uint32_t i = 0, n = 1 + next(4); i < n; ++i) {
            matrix.choices.push_back(choice);
            const std::uint32_t more = 1 + next(8);
            gain /= 1 + next(4) + more;
            choice.bytes += more;
            choice.cost -= gain * more;
        }
    }
    return matrices;
}

struct Sum {
    std::uint64_t bytes = 0;
    double cost = 0;
};
Sum sum_of(const std::vector<MatrixChoices>& matrices, const std::vector<std::size_t>& chosen) {
    Sum sum;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        sum.bytes += matrices[i].choices[chosen[i]].bytes;
        sum.cost += matrices[i].choices[chosen[i]].cost;
    }
    return sum;
}

/// Every combination, one after the other; false behind the last.
bool next_combination(const std::vector<MatrixChoices>& matrices, std::vector<std::size_t>& chosen) {
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (++chosen[i] < matrices[i].choices.size()) return true;
        chosen[i] = 0;
    }
    return false;
}

}  // namespace

TEST_CASE("budget: no combination of fewer bytes, by one step, costs less") {
    for (std::uint32_t seed = 1; seed <= 40; ++seed) {
        CAPTURE(seed);
        const std::vector<MatrixChoices> matrices = made_up_matrices(seed);
        std::vector<Sum> all;
        std::vector<std::size_t> combination(matrices.size());
        do all.push_back(sum_of(matrices, combination));
        while (next_combination(matrices, combination));
        std::uint64_t least = all[0].bytes, most = 0, step = 0;
        for (const Sum& sum : all) most = std::max(most, sum.bytes);
        for (const MatrixChoices& matrix : matrices)
            for (std::size_t i = 1; i < matrix.choices.size(); ++i)
                step = std::max(step, matrix.choices[i].bytes - matrix.choices[i - 1].bytes);
        CHECK(least_cost(matrices, least - 1).empty());
        for (std::uint64_t bytes = least; bytes <= most + 1; ++bytes) {
            const auto chosen = least_cost(matrices, bytes);
            REQUIRE(chosen.size() == matrices.size());
            const Sum sum = sum_of(matrices, chosen);
            CHECK(sum.bytes <= bytes);
            for (const Sum& other : all)
                if (other.bytes + step <= bytes) CHECK(sum.cost <= other.cost * (1 + 1e-12));
        }
        CHECK(sum_of(matrices, least_cost(matrices, most)).bytes == most);
    }
}

namespace {

std::string run_well(const std::string& arguments) {
    const auto result = run_words(arguments);
    CAPTURE(arguments);
    CAPTURE(result.err);
    REQUIRE(result.status == 0);
    return result.out;
}

}  // namespace

TEST_CASE("budget: a file within its bytes that is nearer to the model than one type of as many, on any threads" *
          doctest::skip(kSanitized)) {
    const TemporaryFolder folder;
    const auto path = [&](const char* name) { return (folder / name).string(); };
    write_commands(folder / "");
    run_well("convert " + kDemo + " --type f32 -o " + path("f32.fovea"));
    const auto divergence = [&](const char* file) {
        const auto json = nlohmann::json::parse(run_well("eval " + path(file) + " --text " + path("held.txt") +
                                                         " --against " + path("f32.fovea") + " --json"));
        return json.at("against").at("kl_divergence").get<double>();
    };
    run_well("convert " + kDemo + " --type q4_k -o " + path("uniform.fovea"));
    run_well("convert " + kDemo + " --type q4_k --calibrate " + path("seen.txt") + " -o " + path("fed.fovea"));
    const auto bytes = std::filesystem::file_size(path("uniform.fovea"));
    const std::string mixed = "convert " + path("f32.fovea") + " --bytes " + std::to_string(bytes);
    const auto report = nlohmann::json::parse(run_well(mixed + " --json -o " + path("mixed.fovea")));
    CHECK(std::filesystem::file_size(path("mixed.fovea")) <= bytes);
    CHECK(divergence("mixed.fovea") < divergence("uniform.fovea"));
    CHECK(report.at("chosen").size() == report.at("quantized").size());
    for (std::size_t i = 0; i < report.at("chosen").size(); ++i)
        for (const char* key : {"role", "layer", "type"})
            CHECK(report.at("chosen")[i].at(key) == report.at("quantized")[i].at(key));
    const std::string calibrated = mixed + " --calibrate " + path("seen.txt") + " -o ";
    const std::string one = run_well(calibrated + path("one.fovea") + " --threads 1");
    CHECK(one == run_well(calibrated + path("two.fovea") + " --threads 2"));
    CHECK(read_text(path("one.fovea")) == read_text(path("two.fovea")));
    CHECK(std::filesystem::file_size(path("one.fovea")) <= bytes);
    CHECK(divergence("one.fovea") < divergence("fed.fovea"));
}

TEST_CASE("budget: where rows are short, a file nearer to the model than one type of five bits of as many bytes") {
    const auto stories = reference_model("stories260k");
    if (!stories) return;
    const TemporaryFolder folder;
    const auto path = [&](const char* name) { return (folder / name).string(); };
    run_well("convert " + (*stories / "checkpoint_v1.bin").string() + " --type f32 -o " + path("f32.fovea"));
    std::string text;
    for (const char* seed : {"1", "2", "3", "4", "5", "6"})
        text += run_fovea({"run", path("f32.fovea"), "-p", "", "-n", "255", "--temp", "1", "--seed", seed}).out + "\n";
    write_text(path("text.txt"), text);
    const auto divergence = [&](const std::string& how) {
        run_well("convert " + path("f32.fovea") + " " + how + " -o " + path("few.fovea"));
        const auto json = nlohmann::json::parse(run_well("eval " + path("few.fovea") + " --text " + path("text.txt") +
                                                         " --against " + path("f32.fovea") + " --json"));
        return json.at("against").at("kl_divergence").get<double>();
    };
    for (const char* type : {"q5", "q5_1", "q5_k"}) {
        CAPTURE(type);
        const double uniform = divergence(std::string("--type ") + type);
        const auto bytes = std::filesystem::file_size(path("few.fovea"));
        CHECK(divergence("--bytes " + std::to_string(bytes)) < uniform);
    }
}

TEST_CASE("budget: bits of a weight, from the least there are, refused below with that number") {
    const TemporaryFolder folder;
    const std::string out = (folder / "m.fovea").string();
    const auto refused = [&](const std::string& arguments, int status, const std::string& line) {
        const auto result = run_words("convert " + kDemo + " " + arguments + " -o " + out);
        CAPTURE(arguments);
        CAPTURE(result.err);
        CHECK(result.status == status);
        CHECK(result.err.find(line) != std::string::npos);
        CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
        CHECK(!std::filesystem::exists(out));
        return result.err;
    };
    const std::string bits = refused("--bits 1.5", 1, "--bits: expected ");
    const std::string bytes = refused("--bytes 2K", 1, "--bytes: expected ");
    refused("--bits 4 --type q8", 2, "expected one of them, got several");
    refused("--bits 4 --bytes 90K", 2, "expected one of them, got several");
    refused("--bits 0.5", 2, "--bits");
    // What a refusal names is enough, and a byte less is not.
    const std::string least_bits = bits.substr(bits.find("expected ") + 9, 5);
    run_well("convert " + kDemo + " --bits " + least_bits + " -o " + out);
    const auto smallest = std::filesystem::file_size(out);
    std::filesystem::remove(out);
    std::string least = bytes.substr(bytes.find("expected ") + 9);
    least = least.substr(0, least.find(' '));
    least.erase(std::remove(least.begin(), least.end(), ','), least.end());
    refused("--bytes " + std::to_string(std::stoull(least) - 1), 1, "--bytes: expected ");
    run_well("convert " + kDemo + " --bytes " + least + " -o " + out);
    CHECK(std::filesystem::file_size(out) == smallest);
}

TEST_CASE("budget: a table of embeddings is one of the matrices, and what a source has in a type costs nothing in it") {
    const TemporaryFolder folder;
    const std::string out = (folder / "m.fovea").string(), again = (folder / "n.fovea").string();
    const std::string source = (golden_models() / "gpt2_untied").string();
    const auto report = nlohmann::json::parse(run_well("convert " + source + " --bits 32 --json -o " + out));
    CHECK(report.at("chosen")[0].at("role") == "token_embedding");
    // A table in rows of a Fovea file is the same table.
    const std::string logits = run_well("logits " + out + " --tokens 1,2,3");
    run_well("convert " + source + " --type f32 -o " + again);
    run_well("convert " + again + " --bits 32 -o " + out);
    CHECK(logits == run_well("logits " + out + " --tokens 1,2,3"));
    const auto kept = nlohmann::json::parse(
        run_well("convert " FOVEA_GOLDEN_DIR "/gguf/llama_q8_0.gguf --bits 16 --json -o " + again));
    REQUIRE(!kept.at("chosen").empty());
    for (const auto& chosen : kept.at("chosen")) {
        CHECK(chosen.at("type") == "q8");
        CHECK(chosen.at("cost") == 0);
    }
}

TEST_CASE("budget: an encoder that a text was read by, on any threads; its vectors are nearer than without") {
    const TemporaryFolder folder;
    const auto path = [&](const char* name) { return (folder / name).string(); };
    const std::string texts = FOVEA_GOLDEN_DIR "/encoders/bert_sentence/texts.txt";
    const std::string mixed = "convert " FOVEA_GOLDEN_DIR "/encoders/bert_sentence --bits 10 -o ";
    const std::string calibrated = mixed + path("one.fovea") + " --calibrate " + texts;
    CHECK(run_well(calibrated + " --threads 1").find("cost, 1 - cosine\n") != std::string::npos);
    const std::string one = read_text(path("one.fovea"));
    run_well(calibrated + " --threads 2");
    CHECK(one == read_text(path("one.fovea")));
    run_well(mixed + path("plain.fovea"));
    run_well("convert " FOVEA_GOLDEN_DIR "/encoders/bert_sentence --type f32 -o " + path("f32.fovea"));
    const auto distance = [&](const char* name) {
        double sum = 0;
        for (const char* file : {name, "f32.fovea"})
            run_well("encode " + path(file) + " --texts " + texts + " -o " + path(file) + ".npy");
        const NpyArray own = read_npy(path(name) + ".npy"), exact = read_npy(path("f32.fovea") + ".npy");
        for (std::size_t at = 0; at < exact.data.size(); at += sizeof(float)) {
            float a, b;
            std::memcpy(&a, own.data.data() + at, sizeof a);
            std::memcpy(&b, exact.data.data() + at, sizeof b);
            sum += (double{a} - b) * (double{a} - b);
        }
        return sum;
    };
    CHECK(distance("one.fovea") < distance("plain.fovea"));
}

TEST_CASE(
    "budget: an encoder's heads, which its vectors say nothing of, have their share of what a calibration gives") {
    const TemporaryFolder folder;
    const std::string texts = (folder / "texts.txt").string(), out = (folder / "m.fovea").string();
    write_text(texts, "a light in the kitchen\nopen the door\nwhat is on the list\n");
    std::size_t n_heads = 0;
    for (const char* name : {"modernbert_sequenceclassification", "gemma_embedding_model"}) {
        CAPTURE(name);
        const auto report =
            nlohmann::json::parse(run_well(std::string("convert " FOVEA_GOLDEN_DIR "/encoders/") + name +
                                           " --bytes 10M --json --calibrate " + texts + " -o " + out));
        for (const auto& chosen : report.at("chosen")) {
            if (chosen.at("role") != "head_map") continue;
            ++n_heads;
            CHECK(chosen.at("type") == "q8");
            CHECK(chosen.at("cost") > 0);
        }
    }
    CHECK(n_heads > 1);
}

TEST_CASE("budget: what a refusal names is enough with a calibration too" * doctest::skip(kSanitized)) {
    const TemporaryFolder folder;
    write_commands(folder / "");
    const std::string out = (folder / "m.fovea").string(), text = (folder / "seen.txt").string();
    const auto refused = run_words("convert " + kDemo + " --bits 2 --calibrate " + text + " -o " + out);
    REQUIRE(refused.status == 1);
    const std::string least = refused.err.substr(refused.err.find("expected ") + 9, 5);
    run_well("convert " + kDemo + " --bits " + least + " --calibrate " + text + " -o " + out);
}
