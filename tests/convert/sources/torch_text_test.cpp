// PyTorch's stacks between embeddings and an output map: ids go in, and what comes out is PyTorch's.
#include <doctest/doctest.h>

#include <cmath>

#include "fovea/encode.h"
#include "fovea/host/opened.h"
#include "fovea/workspace.h"
#include "tests/support/convert_fixtures.h"
#include "tests/support/small_models.h"
#include "tests/support/small_pool.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// A case of tests/golden/torch_text, converted and opened.
struct TorchText {
    TemporaryFolder folder;
    host::Opened opened;
    std::vector<Token> ids, source;
    std::vector<float> memory, expected;

    explicit TorchText(const char* name) {
        const fs::path golden = fs::path(FOVEA_GOLDEN_DIR) / "torch_text" / name;
        ConvertOptions options;
        options.source = golden;
        options.output = folder / "model.fovea";
        convert_source(options);
        opened = host::open(options.output.string());
        ids = tokens(golden / "ids.npy");
        if (fs::exists(golden / "source.npy")) source = tokens(golden / "source.npy");
        if (fs::exists(golden / "memory.npy")) memory = numbers<float>(golden / "memory.npy");
        expected = numbers<float>(golden / "expected.npy");
    }
    [[nodiscard]] const Config& config() const { return opened.model.config(); }

    void check(std::span<const float> got) const {
        REQUIRE(got.size() == expected.size());
        float largest = 0, error = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
            largest = std::max(largest, std::abs(expected[i]));
            error = std::max(error, std::abs(expected[i] - got[i]));
        }
        CHECK(error <= 1e-5f * largest);
    }
    /// Everything at once.
    [[nodiscard]] std::vector<float> encoded() const {
        const auto n_ids = static_cast<std::uint32_t>(ids.size()), n_source = static_cast<std::uint32_t>(source.size());
        const Stack& last = config().decoder.n_layers ? config().decoder : config().encoder;
        const auto n_memory = static_cast<std::uint32_t>(memory.size() / last.d_model);
        EncodeInput in;
        (config().decoder.n_layers ? in.target : in.source) = {.ids = ids, .lengths = {&n_ids, 1}};
        if (n_source) in.source = {.ids = source, .lengths = {&n_source, 1}};
        if (n_memory) in.memory = memory, in.memory_lengths = {&n_memory, 1};
        std::vector<float> out(expected.size());
        SmallSession s(opened.model, {.max_batch = 40});
        const Status status = encode(s.session, in, out);
        CAPTURE(status.what);
        REQUIRE(status.ok());
        return out;
    }

private:
    template<class T>
    static std::vector<T> numbers(const fs::path& path) {
        return numbers_of<T>(read_npy(path.string()));
    }
    static std::vector<Token> tokens(const fs::path& path) {
        const auto wide = numbers<std::int64_t>(path);
        return {wide.begin(), wide.end()};
    }
};

}  // namespace

TEST_CASE("torch text: layers that see no later row give logits, as any decoder does") {
    const TorchText text("language_model");
    SmallSession s(text.opened.model, {});
    std::vector<float> logits(text.expected.size());
    REQUIRE(forward(s.session, text.ids, logits).ok());
    text.check(logits);
}

TEST_CASE("torch text: an encoder gives classes") {
    const TorchText text("classifier");
    CHECK(text.config().encoder.result_width() == 5);
    text.check(text.encoded());
}

TEST_CASE("torch text: a decoder beside a memory gives logits, all at once and token by token") {
    for (const char* name : {"captions", "translation"}) {
        CAPTURE(name);
        const TorchText text(name);
        const std::vector<float> all = text.encoded();
        text.check(all);

        const Config& config = text.config();
        SmallSteps own(text.opened.model, {.max_kv_len = 40, .max_batch = 40}, {});
        SmallPool memories(text.opened.model, {.max_kv_len = 40, .memory = true});
        const Cache cache = own.make(), memory = memories.make();
        const auto n_source = static_cast<std::uint32_t>(text.source.size());
        const auto n_memory = static_cast<std::uint32_t>(text.memory.size() / config.decoder.d_model);
        EncodeInput in;
        if (n_source) in.source = {.ids = text.source, .lengths = {&n_source, 1}};
        if (n_memory) in.memory = text.memory, in.memory_lengths = {&n_memory, 1};
        REQUIRE(cache_memory(own.workspace, in, {&memory, 1}).ok());
        const std::size_t vocab_size = config.decoder.vocab_size;
        std::vector<float> logits(vocab_size);
        for (std::size_t i = 0; i < text.ids.size(); ++i) {
            const Step step{cache, std::span(text.ids).subspan(i, 1), logits, memory};
            REQUIRE(forward(own.workspace, {&step, 1}).ok());
            CHECK(std::memcmp(logits.data(), all.data() + i * vocab_size, vocab_size * sizeof(float)) == 0);
        }
    }
}

TEST_CASE("torch text: what a config.json may not say is refused by name") {
    const fs::path golden = fs::path(FOVEA_GOLDEN_DIR) / "torch_text" / "language_model";
    const auto refusal = [&](const char* field, const nlohmann::json& value) {
        TemporaryFolder folder;
        fs::copy(golden / "model.safetensors", folder / "model.safetensors");
        nlohmann::json config = nlohmann::json::parse(read_text(golden / "config.json"));
        config[field] = value;
        write_text(folder / "config.json", config.dump());
        ConvertOptions options;
        options.source = folder.path();
        options.output = folder / "model.fovea";
        try {
            convert_source(options);
        } catch (const host::Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    const auto names = [&](const char* field, const nlohmann::json& value, const char* words) {
        const std::string said = refusal(field, value);
        CAPTURE(said);
        CHECK(said.find(words) != std::string::npos);
    };
    names("embedding_scale", "root", "embedding_scale: expected a number or \"sqrt\"");
    names("positions", "rotary", "positions: expected none, learned or sinusoidal");
    names("max_positions", 0, "max_positions: expected");
    names("vocab_size", 30, "embed.weight: expected shape [30, 20], got [31, 20]");
    names("output", "nothing.weight", "nothing.weight: expected shape [31, 20], got none");
    names("output_bias", "", "out.bias: expected only tensors that the configuration calls for");
    names("num_labels", 3, "out.weight: expected shape [3, 20], got [31, 20]");
    names("prefix", "other.", "tensor other.norm.weight: expected shape [20], got none");
}
