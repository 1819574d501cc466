// Column scales that a text gives: what they are, and what they save of models whose inputs have columns of outliers. Those
// models compute what the ones that they are made of do: what one matrix or norm is multiplied by, the next is divided by.
#include "convert/calibrate/column_scales.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "fovea/encode.h"
#include "fovea/tokenizer.h"
#include "host/base/words.h"
#include "tests/support/command_line.h"
#include "tests/support/convert_fixtures.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr float kOutlier = 64.0f;

/// Columns of what `reader` reads get larger by so much, one of `every`: rows of `maker`, or elements where it is a vector.
struct Outliers {
    Role maker, bias, reader;
    std::uint32_t every = 23;

    [[nodiscard]] float factor_of(std::uint32_t col) const { return col % every == 5 ? kOutlier : 1.0f; }
};

[[nodiscard]] ModelSource with_outliers(ModelSource source, std::vector<Outliers> all) {
    const RowReader read = source.read_rows;
    source.read_rows = [=](const TensorSpec& spec, std::uint32_t row_begin, std::uint32_t n_rows, float* out) {
        read(spec, row_begin, n_rows, out);
        for (const Outliers& o : all)
            for (std::uint32_t r = 0; r < n_rows; ++r)
                for (std::uint32_t c = 0; c < spec.n_cols; ++c) {
                    float& x = out[std::size_t{r} * spec.n_cols + c];
                    if (spec.role == o.maker || spec.role == o.bias)
                        x *= o.factor_of(spec.layout == Layout::vector ? c : row_begin + r);
                    else if (spec.role == o.reader ||
                             (o.reader == Role::query && (spec.role == Role::key || spec.role == Role::value)))
                        x /= o.factor_of(c);
                }
    };
    return source;
}

/// Another model, with norms within its parts, whose weights are 1.
[[nodiscard]] ModelSource with_norms_within(ModelSource source) {
    source.config.decoder.blocks[0].norm_place = NormPlace::within;
    source.read_rows = [read = source.read_rows](const TensorSpec& spec, std::uint32_t row_begin, std::uint32_t n_rows,
                                                 float* out) {
        if (spec.role != Role::attention_post_norm && spec.role != Role::feed_forward_post_norm)
            return read(spec, row_begin, n_rows, out);
        std::fill_n(out, spec.n_cols, 1.0f);
    };
    return source;
}

/// Logits of every token, or an encoder's vectors of one text.
std::vector<float> outputs_of(const Model& model, const std::vector<Token>& tokens) {
    const bool decodes = model.config().decoder.n_layers != 0;
    const auto n = static_cast<std::uint32_t>(tokens.size());
    SmallSession s(model, {.max_batch = n});
    if (decodes) {
        std::vector<float> logits(tokens.size() * model.config().decoder.vocab_size);
        REQUIRE(forward(s.session, tokens, logits).ok());
        return logits;
    }
    const Stack& stack = model.config().encoder;
    std::vector<float> out(std::size_t{stack.pooling == Pooling::none ? n : 1u} * stack.d_model);
    const std::uint32_t lengths[] = {n};
    REQUIRE(encode(s.session, {.source = {.ids = tokens, .lengths = lengths}, .before_head = true}, out).ok());
    return out;
}

double squared_difference(const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    return sum;
}

std::string some_text() {
    const std::string all = read_text(FOVEA_GOLDEN_DIR "/demo_commands.txt");
    return all.substr(0, all.find('\n', all.size() / 2) + 1);
}

}  // namespace

TEST_CASE("column scales: the square root of weights over inputs, less its mean, as powers of two") {
    CHECK(column_scales(std::vector<float>{1, 1, 1}, std::vector<float>{1, 1, 1}) == std::vector<float>{1, 1, 1});
    // 4·log2 of the exponents: inputs of 2^8, 1 and 1 are −4, 0, 0, whose mean is −4/3.
    CHECK(column_scales(std::vector<float>{256, 1, 1}, std::vector<float>{1, 1, 1}) ==
          std::vector<float>{0.125f, 2, 2});
    CHECK(column_scales(std::vector<float>{1, 1}, std::vector<float>{16, 1}) == std::vector<float>{2, 0.5f});
    // Columns without inputs or weights have scales that are powers of two, and bounded.
    const std::vector<float> bounded =
        column_scales(std::vector<float>{0, 1e30f, 1, 1, 1}, std::vector<float>{1, 0, 1, 1, 1});
    for (const float scale : bounded) {
        int exponent;
        CHECK(std::frexp(scale, &exponent) == 0.5f);
        CHECK((scale >= 1.0f / 256 && scale <= 256));
    }
    CHECK(bounded[0] > bounded[1]);
    for (const float scale : column_scales(std::vector<float>(3, 0.0f), std::vector<float>(3, 0.0f)))
        CHECK(scale == 1.0f);
}

TEST_CASE("column scales: a model with outlier columns loses less with them, and the same model nothing beside") {
    struct Case {
        const char* name;
        ConvertOptions options;
        std::vector<Outliers> outliers;
        bool norms_within = false;
    };
    const Case cases[] = {
        {"decoder",
         {.source = FOVEA_SOURCE_DIR "/tools/demo/demo.fovea"},
         {{Role::attention_norm, Role::attention_norm, Role::query},
          {Role::feed_forward_norm, Role::feed_forward_norm, Role::up}}},
        {"encoder",
         {.source = FOVEA_GOLDEN_DIR "/encoders/bert_sentence"},
         {{Role::value, Role::value_bias, Role::attention_output}}},
        {"decoder with norms within",
         {.source = FOVEA_SOURCE_DIR "/tools/demo/demo.fovea"},
         {{Role::attention_post_norm, Role::attention_post_norm, Role::attention_output},
          {Role::feed_forward_post_norm, Role::feed_forward_post_norm, Role::down}},
         true},
    };
    for (const Case& c : cases)
        for (const Type type : {Type::q8, Type::q4}) {
            CAPTURE(c.name);
            CAPTURE(type_name(type));
            ModelSource read = read_source(c.options);
            if (c.norms_within) read = with_norms_within(std::move(read));
            const ModelSource source = with_outliers(std::move(read), c.outliers);
            const Calibration with =
                calibrate(source, texts_of(source, some_text(), kCalibrationTokens), {.columns_for = type});
            const Calibration without = calibrate(source, texts_of(source, some_text(), kCalibrationTokens), {});
            REQUIRE(!with.columns.empty());
            CHECK(without.columns.empty());
            const Stack& stack = source.config.decoder.n_layers ? source.config.decoder : source.config.encoder;
            const auto tokens = some_tokens(std::min(48u, stack.max_positions), stack.vocab_size);
            const std::vector<float> exact = outputs_of(SmallModel(source, {.type = Type::f32}).model, tokens);
            const SmallModel scaled(source, {.type = type, .calibration = &with}),
                plain(source, {.type = type, .calibration = &without});
            const double less = squared_difference(exact, outputs_of(scaled.model, tokens));
            const double more = squared_difference(exact, outputs_of(plain.model, tokens));
            CAPTURE(less);
            CAPTURE(more);
            CHECK(less < 0.5 * more);
        }
}

TEST_CASE("outlier columns: those that stand out are found two by two, up to four, and none where none stands out") {
    constexpr std::uint32_t kCols = 512, kRows = 40, kSampled = 16;
    ModelSource source;
    source.read_rows = [](const TensorSpec& spec, std::uint32_t row, std::uint32_t n_rows, float* out) {
        for (std::uint32_t i = 0; i < n_rows * spec.n_cols; ++i)
            out[i] = static_cast<float>((row * spec.n_cols + i) * 2654435761u % 2001) - 1000.0f;
    };
    const TensorSpec matrix{Role::up, StackIndex::decoder, 0, Layout::panels, kRows, kCols};
    const auto chosen = [&](std::vector<std::uint32_t> outliers) {
        SeenInput seen{std::vector<float>(kCols), std::vector<float>(std::size_t{kSampled} * kCols)};
        for (std::size_t i = 0; i < seen.sample.size(); ++i) {
            seen.sample[i] = static_cast<float>(i * 2246822519u % 1999) * 0x1p-10f - 1.0f;
            for (const std::uint32_t col : outliers)
                if (i % kCols == col) seen.sample[i] = i / kCols % 2 ? 50.0f : -60.0f;
        }
        std::vector<std::uint32_t> zeros;
        const std::vector<float> scales = choose_outliers(source, {&matrix, 1}, seen, Type::q4_1);
        for (std::uint32_t col = 0; col < kCols; ++col) {
            CHECK((scales[col] == 0.0f || scales[col] == 1.0f));
            if (scales[col] == 0.0f) zeros.push_back(col);
        }
        return zeros;
    };
    using Columns = std::vector<std::uint32_t>;
    CHECK(chosen({}) == Columns{});
    CHECK(chosen({37, 400}) == Columns{37, 400});
    CHECK(chosen({33, 64, 100, 511}) == Columns{33, 64, 100, 511});
    CHECK(chosen({0, 33, 100, 200, 300, 511}).size() == kMaxOutliers);
}

TEST_CASE("outlier columns: quants of a source lose less with them, the same on any number of threads") {
    ModelSource source = with_outliers(read_source({.source = FOVEA_SOURCE_DIR "/tools/demo/demo.fovea"}),
                                       {{Role::attention_norm, Role::attention_norm, Role::query, 69},
                                        {Role::feed_forward_norm, Role::feed_forward_norm, Role::up, 69}});
    const SmallModel exact(source, {.type = Type::f32});
    source.type = Type::q8;
    source.type_of = [](const TensorSpec&) { return Type::q8; };
    const auto calibrated = [&](std::uint32_t n_threads) {
        return calibrate(source, texts_of(source, some_text(), kCalibrationTokens),
                         {.n_threads = n_threads, .outliers = true});
    };
    const Calibration calibration = calibrated(1);
    REQUIRE(!calibration.columns.empty());
    CHECK(calibration.columns == calibrated(2).columns);
    Model with, without;
    const AlignedBytes chosen = write_bytes(source, {.as_source = true, .calibration = &calibration});
    const AlignedBytes plain = write_bytes(source, {.as_source = true});
    REQUIRE(open_model(chosen, with).ok());
    REQUIRE(open_model(plain, without).ok());
    const auto tokens = some_tokens(48, source.config.decoder.vocab_size);
    const std::vector<float> expected = outputs_of(exact.model, tokens);
    const double less = squared_difference(expected, outputs_of(with, tokens));
    const double more = squared_difference(expected, outputs_of(without, tokens));
    CAPTURE(less);
    CAPTURE(more);
    CHECK(less < 0.5 * more);
}

TEST_CASE("calibrate: layers of attention alone, or of a feed-forward part alone, have the inputs that they read") {
    const ModelSource source = read_source({.source = FOVEA_GOLDEN_DIR "/encoders/modernbert_sequenceclassification"});
    const Stack& stack = source.config.encoder;
    const Calibration calibration = calibrate(source, texts_of(source, some_text(), kCalibrationTokens), {});
    REQUIRE(calibration.moments.size() == std::size_t{stack.n_layers} * kInputCount);
    for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer) {
        const Block& b = stack.block(layer);
        CHECK((b.attention.n_heads != 0) != (layer == 1));
        CHECK((b.feed.d_ff != 0) != (layer == 0));
        const std::uint32_t widths[kInputCount] = {b.attention.n_heads ? stack.d_model : 0,
                                                   b.attention.n_heads * b.attention.value_head_dim,
                                                   b.feed.d_ff ? stack.d_model : 0, b.feed.d_ff};
        for (std::uint32_t of = 0; of < kInputCount; ++of) {
            const InputMoments& m = calibration.moments[layer * kInputCount + of];
            CHECK(m.n == widths[of]);
            bool differ = m.n == 0;  // moments of nothing would have a factor of ones
            for (std::uint32_t i = 0; i < m.n; ++i) differ = differ || m.row(i)[i] != 1.0f;
            CHECK(differ);
        }
    }
}

TEST_CASE("column scales: what has quants in the source keeps them") {
    ModelSource source = with_outliers(read_source({.source = FOVEA_SOURCE_DIR "/tools/demo/demo.fovea"}),
                                       {{Role::attention_norm, Role::attention_norm, Role::query},
                                        {Role::feed_forward_norm, Role::feed_forward_norm, Role::up}});
    source.read_groups = [](const TensorSpec& spec, Type type, std::uint32_t, std::uint32_t, QuantizedGroup*) {
        return type == Type::q4 && (spec.role == Role::key || spec.role == Role::down);
    };
    const Calibration some =
        calibrate(source, texts_of(source, some_text(), kCalibrationTokens), {.columns_for = Type::q8});
    source.read_groups = {};
    const Calibration all =
        calibrate(source, texts_of(source, some_text(), kCalibrationTokens), {.columns_for = Type::q8});
    REQUIRE(some.columns.size() == std::size_t{source.config.decoder.n_layers} * kInputCount);
    for (std::size_t i = 0; i < some.columns.size(); ++i) {
        const auto of = static_cast<InputOf>(i % kInputCount);
        if (of == InputOf::projections || of == InputOf::down)
            CHECK(some.columns[i] == std::vector<float>(all.columns[i].size(), 1.0f));
        else
            CHECK(some.columns[i] == all.columns[i]);
    }
    CHECK(some.columns != all.columns);
    source.read_groups = [](const TensorSpec&, Type, std::uint32_t, std::uint32_t, QuantizedGroup*) { return true; };
    CHECK(calibrate(source, texts_of(source, some_text(), kCalibrationTokens), {.columns_for = Type::q8})
              .columns.empty());
}

TEST_CASE(
    "convert --calibrate says that columns were scaled, gives the same bytes on any threads, or leaves them out") {
    const TemporaryFolder folder;
    const std::string text = (folder / "text.txt").string();
    write_text(text, some_text());
    const std::string sources[] = {FOVEA_SOURCE_DIR "/tools/demo/demo.fovea",
                                   FOVEA_GOLDEN_DIR "/encoders/bert_sentence"};
    for (const std::string& source : sources) {
        CAPTURE(source);
        const auto converted = [&](const char* name, std::vector<std::string> more) {
            std::vector<std::string> arguments{"convert",     source, "--type", "q8",
                                               "--calibrate", text,   "-o",     (folder / name).string()};
            arguments.insert(arguments.end(), more.begin(), more.end());
            const Ran result = run_fovea(arguments);
            CAPTURE(result.err);
            REQUIRE(result.status == 0);
            return result.err;
        };
        CHECK(converted("one", {"--threads", "1"}).find(" inputs scaled by powers of two, 1/") != std::string::npos);
        converted("two", {"--threads", "2"});
        CHECK(read_text(folder / "one") == read_text(folder / "two"));
        CHECK(converted("plain", {"--no-column-scales"}).find("scaled") == std::string::npos);
        CHECK(read_text(folder / "plain").size() < read_text(folder / "one").size());
        CHECK(run_fovea({"inspect", (folder / "one").string()}).out.find("columns scaled") != std::string::npos);
    }
    const Ran alone =
        run_fovea({"convert", sources[0], "--type", "q8", "--no-column-scales", "-o", (folder / "x").string()});
    CHECK(alone.status == 2);
    CHECK(alone.err.find("--no-column-scales: expected --calibrate beside it") != std::string::npos);
}
