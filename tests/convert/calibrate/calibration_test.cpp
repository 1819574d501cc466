// Quantizing by a text: the sums it rests on, what rounding by them saves, and what it refuses.
#include "convert/calibrate/calibration.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "convert/quantize/error_feedback.h"
#include "convert/quantize/moments.h"
#include "host/base/words.h"
#include "tests/support/command_line.h"
#include "tests/support/convert_fixtures.h"
#include "tests/support/panel_element.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// Numbers whose sum of three uniform parts is nearly normal, as weights are.
struct Numbers {
    std::uint32_t state = 7;
    double next() {
        double sum = 0;
        for (int i = 0; i < 3; ++i) {
            state = state * 1664525u + 1013904223u;
            sum += static_cast<double>(static_cast<std::int32_t>(state)) * 0x1p-31;
        }
        return sum;
    }
};

std::size_t at(std::uint32_t i, std::uint32_t j) { return std::size_t{i} * (i + 1) / 2 + j; }

/// Rows whose columns go together, as activations do: three directions, and some noise.
std::vector<float> correlated_rows(std::uint32_t n_rows, std::uint32_t n) {
    Numbers numbers;
    std::vector<float> directions(3 * n), rows(std::size_t{n_rows} * n);
    for (float& x : directions) x = static_cast<float>(numbers.next());
    for (std::uint32_t r = 0; r < n_rows; ++r) {
        const float a = static_cast<float>(numbers.next()), b = static_cast<float>(numbers.next()),
                    c = static_cast<float>(numbers.next());
        for (std::uint32_t i = 0; i < n; ++i)
            rows[std::size_t{r} * n + i] = a * directions[i] + b * directions[n + i] + c * directions[2 * n + i] +
                                           0.25f * static_cast<float>(numbers.next());
    }
    return rows;
}

InputMoments moments_of(const std::vector<float>& rows, std::uint32_t n_rows, std::uint32_t n) {
    InputMoments m{n, std::vector<float>(std::size_t{n} * (n + 1) / 2)};
    moment_functions().front().add_moments(rows.data(), n_rows, n, m.lower.data());
    return m;
}

/// Σ over rows of ((w − stored)·x)² and (w·x)² for a panel's sixteen rows of weights.
QuantLoss output_loss(Type type, const std::vector<float>& w, const std::vector<std::byte>& panel,
                      const std::vector<float>& rows, std::uint32_t n_rows, std::uint32_t n) {
    QuantLoss loss;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane)
        for (std::uint32_t r = 0; r < n_rows; ++r) {
            double missed = 0, whole = 0;
            for (std::uint32_t i = 0; i < n; ++i) {
                const double x = rows[std::size_t{r} * n + i], weight = w[std::size_t{lane} * n + i];
                missed += (weight - panel_element(type, panel.data(), lane, i)) * x;
                whole += weight * x;
            }
            loss.error += missed * missed;
            loss.total += whole * whole;
        }
    return loss;
}

/// Σ‖Lᵀ·(w − stored)‖² over a panel's rows.
double damped_loss(Type type, const std::vector<float>& w, const std::vector<std::byte>& panel,
                   const InputMoments& factor, std::uint32_t n) {
    double loss = 0;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        std::vector<double> missed(n);
        for (std::uint32_t k = 0; k < n; ++k) {
            const double error = w[std::size_t{lane} * n + k] - panel_element(type, panel.data(), lane, k);
            for (std::uint32_t j = 0; j <= k; ++j) missed[j] += factor.row(k)[j] * error;
        }
        for (const double m : missed) loss += m * m;
    }
    return loss;
}

}  // namespace

TEST_CASE("moments: sums of outer products and their factor, as by their definitions and in every width of vectors") {
    for (const std::uint32_t n : {1u, 3u, 16u, 17u, 64u, 85u, 131u}) {
        CAPTURE(n);
        constexpr std::uint32_t kRows = 37;
        const std::vector<float> rows = correlated_rows(kRows, n);
        const InputMoments sums = moments_of(rows, kRows, n);
        double mean = 0;
        for (std::uint32_t i = 0; i < n; ++i) mean += sums.lower[at(i, i)] / static_cast<double>(n);
        InputMoments factor = sums;
        moment_functions().front().factor(n, factor.lower.data());
        for (std::uint32_t i = 0; i < n; ++i)
            for (std::uint32_t j = 0; j <= i; ++j) {
                double sum = 0, product = 0;
                for (std::uint32_t r = 0; r < kRows; ++r)
                    sum += double{rows[std::size_t{r} * n + i]} * rows[std::size_t{r} * n + j];
                for (std::uint32_t k = 0; k <= j; ++k) product += double{factor.row(i)[k]} * factor.row(j)[k];
                // Rounding of 37 products in float32, and of the factor's elements, beside the diagonal's size.
                CHECK(std::fabs(sums.lower[at(i, j)] - sum) < 1e-5 * mean);
                CHECK(std::fabs(product - (sum + (i == j ? 0.01 * mean : 0))) < 1e-5 * mean);
            }
        std::vector<float> error(std::size_t{n} * kLanes), wanted(error.size());
        for (std::size_t i = 0; i < error.size(); ++i) error[i] = rows[i % rows.size()];
        const std::uint32_t begin = n / 2;
        moment_functions().front().add_errors(factor.lower.data(), begin, n, error.data(), wanted.data());
        for (const MomentFunctions& f : moment_functions()) {
            CAPTURE(f.isa);
            InputMoments own{n, std::vector<float>(sums.lower.size())};
            std::vector<float> had(wanted.size());
            f.add_moments(rows.data(), kRows, n, own.lower.data());
            CHECK(std::memcmp(own.lower.data(), sums.lower.data(), own.lower.size() * 4) == 0);
            f.factor(n, own.lower.data());
            CHECK(std::memcmp(own.lower.data(), factor.lower.data(), own.lower.size() * 4) == 0);
            float dots[kLanes];
            f.dot_row(own.lower.data(), n - 1, error.data(), dots);
            for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                double sum = 0, size = 0;
                for (std::uint32_t j = 0; j < n; ++j) {
                    const double product = double{factor.row(n - 1)[j]} * error[j * kLanes + lane];
                    sum += product, size += std::fabs(product);
                }
                CHECK(std::fabs(dots[lane] - sum) <= size * (n / 4 + 4) * 0x1p-24);
            }
            float first[kLanes];
            moment_functions().front().dot_row(factor.lower.data(), n - 1, error.data(), first);
            CHECK(std::memcmp(dots, first, sizeof dots) == 0);
            double column[kLanes], first_column[kLanes];
            for (std::uint32_t lane = 0; lane < kLanes; ++lane) column[lane] = first_column[lane] = lane;
            f.add_column(rows.data(), n, error.data(), column);
            moment_functions().front().add_column(rows.data(), n, error.data(), first_column);
            CHECK(std::memcmp(column, first_column, sizeof column) == 0);
            for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                double sum = lane;
                for (std::uint32_t k = 0; k < n; ++k) sum += double{rows[k]} * error[k * kLanes + lane];
                CHECK(column[lane] == sum);
            }
            f.add_errors(own.lower.data(), begin, n, error.data(), had.data());
            CHECK(std::memcmp(had.data(), wanted.data(), had.size() * 4) == 0);
        }
    }
}

TEST_CASE("moments: inputs of zeros, and of one direction, have a factor") {
    for (const float size : {0.0f, 1.0f}) {
        constexpr std::uint32_t n = 40;
        const std::vector<float> rows(n, size);
        InputMoments m = moments_of(rows, 1, n);
        moment_functions().front().factor(n, m.lower.data());
        for (const float x : m.lower) CHECK(std::isfinite(x));
        for (std::uint32_t i = 0; i < n; ++i) CHECK(m.row(i)[i] > 0);
    }
}

TEST_CASE("error feedback: outputs change less than by rounding each weight alone, and the loss says how much") {
    constexpr std::uint32_t kRows = 96;
    for (const Type type : kTypes) {
        if (!is_quantized(type)) continue;
#if defined(FOVEA_SANITIZED)
        for (const std::uint32_t n : {64u}) {
#else
        for (const std::uint32_t n : {64u, 288u, 300u}) {
#endif
            CAPTURE(type_name(type));
            CAPTURE(n);
            const std::vector<float> rows = correlated_rows(kRows, n);
            Numbers numbers;
            std::vector<float> w(std::size_t{kLanes} * n);
            for (float& x : w) x = static_cast<float>(numbers.next());
            InputMoments factor = moments_of(rows, kRows, n);
            moment_functions().front().factor(n, factor.lower.data());
            std::vector<std::byte> plain(panel_bytes(type, n)), fed(plain.size());
            (void)quantize_panel(type, w.data(), n, plain.data());
            const QuantLoss said = quantize_panel(type, w.data(), n, factor, fed.data());
            const double alone = output_loss(type, w, plain, rows, kRows, n).error;
            const QuantLoss loss = output_loss(type, w, fed, rows, kRows, n);
            CHECK(loss.error < 0.6 * alone);
            // What is said has the damping's part too.
            CHECK(said.error > loss.error * 0.999);
            CHECK(said.total == doctest::Approx(loss.total).epsilon(0.2));
            CHECK(!said.overflow);
            // Each round of single steps lowers the loss, and what is said follows it.
            double last = HUGE_VAL;
            for (const std::uint32_t n_rounds : {0u, 1u, 2u, 5u}) {
                CAPTURE(n_rounds);
                std::vector<std::byte> panel(plain.size());
                const QuantLoss now = quantize_panel(type, w.data(), n, factor, panel.data(), n_rounds);
                CHECK(now.error == doctest::Approx(damped_loss(type, w, panel, factor, n)).epsilon(1e-3));
                CHECK((n_rounds == 1 ? now.error < 0.999 * last : now.error <= 1.000001 * last));
                last = now.error;
            }
        }
    }
}

TEST_CASE("error feedback: inputs that tell nothing leave the rounding as it was") {
    constexpr std::uint32_t n = 320;
    Numbers numbers;
    std::vector<float> w(std::size_t{kLanes} * n);
    for (float& x : w) x = static_cast<float>(numbers.next());
    InputMoments factor{n, std::vector<float>(std::size_t{n} * (n + 1) / 2)};
    moment_functions().front().factor(n, factor.lower.data());
    for (const Type type : {Type::q8, Type::q6_k, Type::q5_k, Type::q4_k, Type::q3_k}) {
        CAPTURE(type_name(type));
        std::vector<std::byte> plain(panel_bytes(type, n)), fed(plain.size());
        (void)quantize_panel(type, w.data(), n, plain.data());
        (void)quantize_panel(type, w.data(), n, factor, fed.data());
        CHECK(std::memcmp(plain.data(), fed.data(), plain.size()) == 0);
    }
}

TEST_CASE(
    "calibrate: the demo model in few bits stays nearer to itself, with the same bytes on any number of threads") {
    const TemporaryFolder folder;
    const std::string demo = FOVEA_SOURCE_DIR "/tools/demo/demo.fovea";
    write_commands(folder / "");
    const auto run = [&](const std::string& arguments) {
        const auto result = run_words(arguments);
        CAPTURE(arguments);
        CAPTURE(result.err);
        REQUIRE(result.status == 0);
        return result.out;
    };
    const auto path = [&](const char* name) { return (folder / name).string(); };
    run("convert " + demo + " --type f32 -o " + path("f32.fovea"));
    const auto divergence = [&](const std::string& file) {
        const auto json = nlohmann::json::parse(
            run("eval " + file + " --text " + path("held.txt") + " --against " + path("f32.fovea") + " --json"));
        return json.at("against").at("kl_divergence").get<double>();
    };
    for (const std::string type : {"q4", "q3_k"}) {
        CAPTURE(type);
        run("convert " + demo + " --type " + type + " -o " + path("plain.fovea"));
        const std::string calibrated =
            "convert " + demo + " --type " + type + " --calibrate " + path("seen.txt") + " -o ";
        run(calibrated + path("one.fovea") + " --threads 1");
        run(calibrated + path("two.fovea") + " --threads 2");
        CHECK(read_text(path("one.fovea")) == read_text(path("two.fovea")));
        run(calibrated + path("unscaled.fovea") + " --no-column-scales");
        CHECK(read_text(path("unscaled.fovea")).size() == read_text(path("plain.fovea")).size());
        CHECK(divergence(path("unscaled.fovea")) < 0.75 * divergence(path("plain.fovea")));
        CHECK(divergence(path("one.fovea")) < 0.75 * divergence(path("plain.fovea")));
    }
}

TEST_CASE("calibrate: refusals of one line") {
    const TemporaryFolder folder;
    const std::string demo = FOVEA_SOURCE_DIR "/tools/demo/demo.fovea", out = (folder / "out.fovea").string();
    write_text(folder / "text.txt", "turn on the light\n");
    write_text(folder / "empty.txt", "");
    const std::string text = " --calibrate " + (folder / "text.txt").string();
    const auto refused = [&](const std::string& arguments, int status, const char* line) {
        const auto result = run_words("convert " + arguments + " -o " + out);
        CAPTURE(arguments);
        CHECK(result.status == status);
        CHECK(result.err.find(line) != std::string::npos);
        CHECK(!std::filesystem::exists(out));
    };
    refused(demo + text, 2, "--calibrate: expected a quantized --type, --bits or --bytes beside it");
    refused(demo + text + " --type f16", 2, "--calibrate: expected a quantized --type, --bits or --bytes beside it");
    refused(demo + " --type q4 --calibrate " + (folder / "empty.txt").string(), 1,
            "expected a text of 2 tokens or more, got 1");
    refused((golden_models() / "gpt2_tied").string() + " --type q4" + text, 1, "expected a model with a tokenizer");
    refused(std::string(FOVEA_GOLDEN_DIR) + "/torch_text/translation --type q4" + text, 1, "got another kind of model");
}
