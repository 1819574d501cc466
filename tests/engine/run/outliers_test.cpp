// Outlier columns: what the head adds for them, that no bit depends on the machine or the pass, and that files which say
// otherwise than they are get refused.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "convert/quantize/calibration.h"
#include "engine/format/half.h"
#include "engine/model/model.h"
#include "fovea/checksum.h"
#include "fovea/workspace.h"
#include "host/base/elements.h"
#include "tests/support/same_bits.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"
#include "tests/support/small_pool.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

Config text(bool tied) {
    Config config = llama_config(2, 80, 4, 2, 20, 88, 160);
    config.decoder.tied_output = tied;
    return config;
}

std::vector<float> scales(std::uint32_t n, std::initializer_list<std::uint32_t> outliers) {
    std::vector<float> all(n, 1.0f);
    for (const std::uint32_t i : outliers) all[i] = 0.0f;
    return all;
}

/// The head's columns 3, 40 and 79, and if asked for some of every input of the layers.
Calibration outliers_of(const Config& config, bool in_layers) {
    const Stack& s = config.decoder;
    Calibration c;
    c.head = s.tied_output ? Role::token_embedding : Role::output;
    c.head_columns = scales(s.d_model, {3, 40, 79});
    for (std::uint32_t layer = 0; layer < s.n_layers && in_layers; ++layer) {
        c.columns.push_back(scales(s.d_model, {0}));
        c.columns.push_back(scales(s.d_model, {1, 31, 32, 64 + layer}));
        c.columns.push_back(scales(s.d_model, {}));
        c.columns.push_back(scales(s.blocks[0].feed.d_ff, {87, 80}));
        for (std::size_t i = c.moments.size(); i < c.columns.size(); ++i)
            c.moments.push_back({static_cast<std::uint32_t>(c.columns[i].size()), {}});
    }
    return c;
}

constexpr std::size_t kTokens = 40;

/// What open_model says of a file with another record of a tensor, whose checksums are right.
Status with_record(const SmallModel& opened, Role role, auto change) {
    AlignedBytes file = opened.file;
    const TensorRecord* record = ModelAccess::find(opened.model, StackIndex::decoder, 0, role);
    REQUIRE(record);
    TensorRecord changed = *record;
    change(changed);
    std::memcpy(file.data() + (reinterpret_cast<const std::byte*>(record) - opened.file.data()), &changed,
                sizeof changed);
    FileHeader header;
    std::memcpy(&header, file.data(), sizeof header);
    const std::span<std::byte> all(file),
        directory = all.subspan(sizeof header, header.n_sections * sizeof(SectionRecord));
    for (std::size_t at = 0; at < directory.size(); at += sizeof(SectionRecord)) {
        SectionRecord section;
        std::memcpy(&section, &directory[at], sizeof section);
        if (section.kind == static_cast<std::uint32_t>(SectionKind::tensors))
            section.crc = crc32c(all.subspan(section.offset, section.bytes));
        std::memcpy(&directory[at], &section, sizeof section);
    }
    header.directory_crc = crc32c(directory);
    std::memcpy(file.data(), &header, sizeof header);
    header.header_crc = crc32c(all.first(sizeof header - sizeof header.header_crc));
    std::memcpy(file.data(), &header, sizeof header);
    Model model;
    return open_model(file, model);
}

}  // namespace

TEST_CASE("outlier columns: every type, instruction set, number of threads and split gives the same bits") {
    for (const bool tied : {false, true})
        for (const Type type : {Type::q8, Type::q4, Type::q4_1, Type::q4_k, Type::q6_k, Type::q8_128}) {
            CAPTURE(tied);
            CAPTURE(static_cast<int>(type));
            const Config config = text(tied);
            ModelSource source = random_model(config, 3);
            const Calibration outliers = outliers_of(config, true);
            const SmallModel opened(source, {.type = type, .calibration = &outliers});
            const std::vector<float> want = logits_by(opened.model, kTokens, "scalar");
            for (const float x : want) REQUIRE(std::isfinite(x));
            for (const std::size_t split : {std::size_t{1}, std::size_t{7}, std::size_t{25}})
                CHECK(same_bits(want, logits_by(opened.model, split)));
            for (const char* isa : model_isas())
                for (const std::uint32_t n_threads : {1u, 3u}) {
                    CAPTURE(isa);
                    CHECK(same_bits(want, logits_by(opened.model, kTokens, isa, n_threads)));
                }
            CHECK(!same_bits(want, logits_by(SmallModel(source, {.type = type}).model, kTokens)));
        }
}

TEST_CASE(
    "outlier columns: the head adds their inputs times their weights, in order, to a product in which they are 0") {
    for (const bool tied : {false, true})
        for (const Type type : {Type::q8, Type::q4_1}) {
            CAPTURE(tied);
            const Config config = text(tied);
            const Stack& s = config.decoder;
            ModelSource source = random_model(config, 3), zeroed = random_model(config, 3);
            const Calibration outliers = outliers_of(config, false);
            zeroed.read_rows = [&](const TensorSpec& spec, std::uint32_t first, std::uint32_t n, float* out) {
                source.read_rows(spec, first, n, out);
                for (std::uint32_t i = 0; i < s.d_model && spec.role == Role::final_norm; ++i)
                    if (outliers.head_columns[i] == 0.0f) out[i] = 0.0f;
            };
            const SmallModel with(source, {.type = type, .calibration = &outliers}), without(zeroed, {.type = type});
            const auto tokens = some_tokens(kTokens, s.vocab_size);
            std::vector<float> got(kTokens * s.vocab_size), vectors(kTokens * s.d_model);
            SmallSteps steps(with.model, {}, {});
            const Step step{.cache = steps.make(), .tokens = tokens, .logits = got, .vectors = vectors};
            REQUIRE(forward(steps.workspace, {&step, 1}).ok());
            std::vector<float> want = logits_by(without.model, kTokens), rows(std::size_t{s.vocab_size} * s.d_model);
            source.read_rows({outliers.head, StackIndex::decoder, 0, Layout::panels, s.vocab_size, s.d_model}, 0,
                             s.vocab_size, rows.data());
            for (std::size_t t = 0; t < kTokens; ++t)
                for (std::uint32_t id = 0; id < s.vocab_size; ++id)
                    for (std::uint32_t i = 0; i < s.d_model; ++i) {
                        if (outliers.head_columns[i] != 0.0f) continue;
                        float& y = want[t * s.vocab_size + id];
                        y = std::fma(vectors[t * s.d_model + i], from_f16(to_f16(rows[id * s.d_model + i])), y);
                    }
            CHECK(same_bits(want, got));
        }
}

TEST_CASE(
    "outlier columns: a record that does not say what the scales say, or what a panel has no room for, is refused") {
    struct Case {
        Role role;
        std::uint32_t n;
        const char* what;
    };
    // Columns 3, 40 and 79 of the head; 1, 31, 32 and 64 of what the output map reads; 0 of what queries, keys and values read.
    constexpr Case kCases[] = {{Role::output, 2, "outlier columns"},
                               {Role::output, 0, "outlier columns"},
                               {Role::output, 4, "outlier columns"},
                               {Role::output, 5, "outlier columns at most"},
                               {Role::output, 0x80000003u, "outlier columns at most"},
                               {Role::attention_output, 3, "outlier columns"},
                               {Role::key, 0, "outlier columns"},
                               {Role::value, 2, "outlier columns"},
                               {Role::up, 1, "panel stride"},
                               {Role::up_columns, 1, "outlier columns of a tensor without panels"},
                               {Role::token_embedding, 1, "outlier columns of a tensor without panels"}};
    const Config config = text(false);
    const ModelSource source = random_model(config, 3);
    const Calibration outliers = outliers_of(config, true);
    SmallModel opened(source, {.type = Type::q8, .calibration = &outliers});
    CHECK(with_record(opened, Role::output, [](TensorRecord&) {}).ok());
    for (const Case& c : kCases) {
        CAPTURE(role_name(static_cast<std::uint16_t>(c.role)));
        CAPTURE(c.n);
        const Status status = with_record(opened, c.role, [&](TensorRecord& t) { t.n_outliers = c.n; });
        CHECK(status.code == Code::tensor_invalid);
        CHECK(std::string_view(status.what) == c.what);
    }
    const Status narrow =
        with_record(opened, Role::output, [](TensorRecord& t) { t.panel_stride -= kSectionAlignment; });
    CHECK(std::string_view(narrow.what) == "panel stride");
    // Matrices of blocks without column scales.
    const Calibration head = outliers_of(config, false);
    const SmallModel head_only(source, {.type = Type::q8, .calibration = &head});
    const Status unscaled = with_record(head_only, Role::down, [](TensorRecord& t) {
        t.n_outliers = 1, t.panel_stride += kSectionAlignment;
        t.bytes = tensor_bytes(Layout::panels, Type::q8, t.n_rows, t.n_cols, t.panel_stride);
    });
    CHECK(unscaled.code == Code::tensor_invalid);
    CHECK(std::string_view(unscaled.what) == "matrices whose outlier columns have scales");
    // A scale of 1 where the matrix says that there are three of 0.
    const TensorRecord* scale = ModelAccess::find(opened.model, StackIndex::decoder, 0, Role::output_columns);
    const float one = 1.0f;
    std::memcpy(opened.file.data() + ModelAccess::offset(opened.model, *scale) + 3 * sizeof one, &one, sizeof one);
    const Status status = with_record(opened, Role::output, [](TensorRecord&) {});
    CHECK(status.code == Code::tensor_invalid);
    CHECK(std::string_view(status.what) == "outlier columns");
}

TEST_CASE("outlier columns: other scales of a tied table's input are refused, for the table is looked up too") {
    const Config config = text(true);
    const ModelSource source = random_model(config, 3);
    Calibration outliers = outliers_of(config, false);
    outliers.head_columns[7] = 2.0f;
    const AlignedBytes file = write_bytes(source, {.type = Type::q8, .calibration = &outliers});
    Model model;
    const Status status = open_model(file, model);
    CHECK(status.code == Code::tensor_invalid);
    CHECK(std::string_view(status.what) == "column scales that are 0 or 1");
    CHECK(status.had == 7);
}
