// What a DeBERTa folder's configuration and tensors of distances may be: terms said twice, a table of eight bits, a norm of them.
#include <doctest/doctest.h>

#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr const char* kTable = "deberta.encoder.rel_embeddings.weight";
constexpr const char* kNorm = "deberta.encoder.LayerNorm.weight";

/// The golden model's folder with changes, and what it is converted to.
struct Deberta {
    TemporaryFolder folder;

    Deberta() { fs::copy(fs::path(FOVEA_GOLDEN_DIR) / "encoders/deberta_v2_sequenceclassification", folder / "model"); }
    void edit_config(const char* name, const nlohmann::json& value) const {
        edit_json(folder / "model/config.json", [&](nlohmann::json& config) { config[name] = value; });
    }
    /// A tensor of ones in that type, beside its scale where it has eight bits.
    void make_ones(const std::string& name, bool eight_bits) const {
        SafetensorsText file = SafetensorsText::read(folder / "model/model.safetensors");
        auto shape = file.header[name]["shape"].get<std::vector<std::size_t>>();
        std::size_t n = 1;
        for (const std::size_t extent : shape) n *= extent;
        if (shape.size() == 1) shape.insert(shape.begin(), 1);
        const float one = 1.0f;
        const std::string scale(reinterpret_cast<const char*>(&one), sizeof one);
        const auto add = [&](const std::string& of, const char* type, const auto& extents, const std::string& bytes) {
            file.header[of] = {{"dtype", type},
                               {"shape", extents},
                               {"data_offsets", {file.data.size(), file.data.size() + bytes.size()}}};
            file.data += bytes;
        };
        std::string ones;
        for (std::size_t i = 0; i < n; ++i) ones += scale;
        eight_bits ? add(name, "F8_E4M3", shape, std::string(n, '\x38')) : add(name, "F32", shape, ones);
        if (eight_bits) add(name + "_scale", "F32", std::vector<std::size_t>{1}, scale);
        write_text(folder / "model/model.safetensors", file.text());
        if (eight_bits) edit_config("quantization_config", {{"quant_method", "fp8"}});
    }
    [[nodiscard]] std::string converted() const {
        ConvertOptions options;
        options.source = folder / "model";
        options.output = folder / "m.fovea";
        options.type = Type::f32;
        convert_source(options);
        return read_text(folder / "m.fovea");
    }
};

}  // namespace

TEST_CASE("DeBERTa: a term of distances counts once, however often it is said") {
    const Deberta once, twice, other;
    once.edit_config("pos_att_type", {"p2c"});
    twice.edit_config("pos_att_type", "p2c|p2c");
    other.edit_config("pos_att_type", {"p2c", "c2p"});
    CHECK(once.converted() == twice.converted());
    CHECK(once.converted() != other.converted());
}

TEST_CASE("DeBERTa: a table of eight bits is read, and a norm of them is refused by name") {
    const Deberta plain, eight;
    plain.make_ones(kTable, false);
    eight.make_ones(kTable, true);
    const auto weights = [](const std::string& file) { return file.substr(file.size() / 2); };
    CHECK(weights(plain.converted()) == weights(eight.converted()));
    const Deberta norm;
    norm.make_ones(kNorm, true);
    std::string words;
    try {
        (void)norm.converted();
    } catch (const host::Error& refusal) {
        words = refusal.what();
    }
    CHECK(contains(words, std::string(kNorm) + ": expected plain floats, got others"));
}
