// `attend` and `encode`: what they refuse, and files of arrays in every layout.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "fovea/host/opened.h"
#include "host/base/arrays.h"
#include "tests/support/command_line.h"
#include "tests/support/small_models.h"

namespace fovea::testing {
namespace {

struct Files {
    TemporaryFolder folder;
    std::string path(const char* name) const { return (folder / name).string(); }
    std::string array(const char* name, std::vector<std::uint64_t> shape) const {
        std::uint64_t n = 1;
        for (const std::uint64_t size : shape) n *= size;
        std::vector<float> data(n);
        for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<float>(i * 7919 % 1013) / 500.0f - 1.0f;
        write_npy(path(name), shape, data);
        return path(name);
    }
};

std::vector<float> values(const std::string& path, const std::vector<std::uint64_t>& shape) {
    const FloatArray array = read_floats(path);
    CHECK(array.shape == shape);
    return array.data;
}

TEST_CASE("cli: attend on one array is softmax(X·Xᵀ·scale)·X") {
    const Files files;
    const std::string x = files.array("x.npy", {5, 3}), y = files.path("y.npy"), w = files.path("w.npy");
    CHECK(output_of({"attend", "--query", x, "--scale", "1", "-o", y, "--weights", w}) == "");
    const auto in = values(x, {5, 3}), out = values(y, {5, 3}), weights = values(w, {5, 5});
    for (std::size_t q = 0; q < 5; ++q) {
        double sum = 0, p[5], want[3] = {};
        for (std::size_t k = 0; k < 5; ++k) {
            double score = 0;
            for (std::size_t i = 0; i < 3; ++i) score += double{in[q * 3 + i]} * in[k * 3 + i];
            sum += p[k] = std::exp(score);
        }
        for (std::size_t k = 0; k < 5; ++k) {
            CHECK(std::abs(weights[q * 5 + k] - p[k] / sum) < 1e-6);
            for (std::size_t i = 0; i < 3; ++i) want[i] += p[k] / sum * in[k * 3 + i];
        }
        for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(out[q * 3 + i] - want[i]) < 1e-6);
    }
}

TEST_CASE("cli: attend --explain prints every step, and that the fused path agrees") {
    const Files files;
    const std::string x = files.array("x.npy", {2, 6, 12});
    const std::string words = output_of({"attend", "--query", x, "--n-heads", "3", "--causal", "--explain"});
    CHECK(words.starts_with("1. split queries into heads  [2, 3, 6, 4]  Q, its heads as they are given\n"));
    CHECK(contains(words, "\n4. scores  [2, 3, 6, 6]  S = Q\u2095 \u00b7 K\u2095\u1d40\n"));
    CHECK(contains(words, "\n5. scale  [2, 3, 6, 6]  S = S \u00b7 0.5, 1/\u221ahead_dim\n"));
    CHECK(contains(words, "\n6. mask "));
    CHECK(contains(words, "\n9. merge heads  [2, 6, 12]  H = H\u2080 to H\u2082 side by side\n"));
    CHECK(words.ends_with("The fused path, which keeps no scores, gives the same bits.\n"));
    check_refused({"attend", "--query", x, "--explain", "--json"}, 2, "--explain or --json: expected one of them");
    const std::string large = files.array("large.npy", {1, 4200, 1});
    check_refused({"attend", "--query", large, "--explain"}, 1, "--explain: expected at most 16777216 scores");
}

TEST_CASE("cli: attend reads rows of heads in both orders and gives the same bits") {
    const Files files;
    const FloatArray rows = read_floats(files.array("rows.npy", {2, 6, 12}));
    const FloatArray swapped = swap_first_two(rows);
    const std::string first = files.path("first.npy"), a = files.path("a.npy"), b = files.path("b.npy");
    write_npy(first, swapped.shape, swapped.data);
    for (const char* heads : {"1", "3"}) {
        CHECK(output_of({"attend", "--query", rows.path, "--n-heads", heads, "-o", a, "--causal"}) == "");
        CHECK(output_of({"attend", "--query", first, "--n-heads", heads, "-o", b, "--causal", "--seq-first"}) == "");
        CHECK(swap_first_two(read_floats(b)).data == values(a, {2, 6, 12}));
    }
    CHECK(contains(output_of({"attend", "--query", rows.path, "-o", a, "--json"}), "\"shape\":[2,6,12]"));
}

TEST_CASE("cli: attend refuses in one line") {
    const Files files;
    const std::string x = files.array("x.npy", {2, 6, 12}), y = files.path("y.npy");
    const std::string four = files.array("four.npy", {2, 3, 6, 4}), wide = files.array("wide.npy", {2, 6, 13});
    const std::string mask = files.array("mask.npy", {3, 6}), empty = files.array("empty.npy", {0, 6});
    const auto refuses = [&](std::vector<std::string> arguments, int status, const std::string& words) {
        arguments.insert(arguments.begin(), "attend");
        check_refused(arguments, status, words);
        CHECK_FALSE(fs::exists(y));
    };
    refuses({"-o", y}, 2, "--query: expected an .npy file, got none");
    refuses({"--query", x}, 2, "-o: expected a file");
    refuses({"--query", x, "-o", y, "--per-head"}, 2, "--per-head: expected --weights");
    refuses({"--query", x, "-o", y, "--n-heads", "5"}, 1, "a last dimension that 5 heads divide, got [2, 6, 12]");
    refuses({"--query", x, "-o", y, "--key", four}, 1, "expected 3 dimensions, as the query has, got [2, 3, 6, 4]");
    refuses({"--query", x, "-o", y, "--key", wide}, 1, "width of a head: expected 12, got 13");
    refuses({"--query", x, "-o", y, "--attn-mask", mask}, 1,
            "expected at most [2, 1, 6, 6] or dimensions of 1, got [3, 6]");
    refuses({"--query", x, "-o", y, "--attn-mask", mask, "--keep-mask", mask}, 2, "expected one of them, got both");
    refuses({"--query", x, "-o", y, "--key-padding-mask", mask}, 1, "padding mask: expected [2, 6], got [3, 6]");
    std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 6), }";
    header.resize(117, ' ');
    const std::string ints = files.path("ints.npy");
    write_text(ints, std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" + std::string(96, '\0'));
    refuses({"--query", x, "-o", y, "--key-padding-mask", ints}, 1,
            "expected booleans that hide or floats that are added, got i8");
    refuses({"--query", x, "-o", y, "--keep-mask", files.array("keep.npy", {6, 6})}, 1,
            "expected booleans to keep by, got f4");
    refuses({"--query", x, "-o", y, "--past-key", four}, 2, "--past-key and --past-value: expected both");
    refuses({"--query", x, "-o", y, "--kv-lengths", files.array("one.npy", {1})}, 1, "expected whole numbers");
    refuses({"--query", empty, "-o", y}, 1, "elements: expected 1 or more, got shape [0, 6]");
    refuses({"--query", four, "-o", y, "--n-kv-heads", "2"}, 1, "expected 2 heads, got [2, 3, 6, 4]");
    refuses({"--query", x, "-o", y, "--scale", "0"}, 2, "--scale: expected a number other than 0");
    const DemoFile demo;
    refuses({demo.path, "--query", x, "-o", y, "--scale", "2"}, 2, "--scale or --softcap: expected no MODEL");
    check_refused({"encode", demo.path, "-p", "x", "-o", y}, 1,
                  "expected an encoder or a decoder of vectors, got one for logits");
    check_refused({"encode"}, 2, "MODEL: expected a Fovea file");
}

TEST_CASE("cli: a mask for each head is taken where every layer has as many") {
    const Files files;
    Config config;
    Stack& s = config.encoder;
    s.n_layers = s.n_blocks = 2;
    s.d_model = 16;
    static constexpr std::uint8_t kLayers[] = {0, 1};
    s.layer_blocks = kLayers;
    for (Block& b : std::span(s.blocks).first(2)) {
        b.attention.n_heads = b.attention.n_kv_heads = 2;
        b.attention.head_dim = b.attention.value_head_dim = 8;
    }
    const std::string m = files.path("m.fovea"), x = files.array("x.npy", {4, 16}), y = files.path("y.npy"),
                      mask = files.array("mask.npy", {1, 2, 4, 4}), one = files.array("one.npy", {4, 4});
    const auto write = [&] {
        const SmallModel small(config, Type::f32);
        write_text(m, {reinterpret_cast<const char*>(small.file.data()), small.file.size()});
    };
    write();
    output_of({"encode", m, "--source", x, "--source-mask", mask, "-o", y});
    s.blocks[1].attention.n_heads = s.blocks[1].attention.n_kv_heads = 16;
    write();
    check_refused({"encode", m, "--source", x, "--source-mask", mask, "-o", y}, 1, "expected at most [1, 1, 4, 4]");
    output_of({"encode", m, "--source", x, "--source-mask", one, "-o", y});
}

TEST_CASE("cli: inspect shows the same matrices for every number of heads of a width") {
    const Files files;
    for (const std::uint32_t n_heads : {1u, 2u, 8u, 64u}) {
        Config config;
        Stack& s = config.encoder;
        s.n_layers = s.n_blocks = 1;
        s.d_model = 512;
        AttentionShape& b = s.blocks[0].attention;
        b.n_heads = b.n_kv_heads = n_heads;
        b.head_dim = b.value_head_dim = 512 / n_heads;
        b.query_bias = b.key_bias = b.value_bias = b.output_bias = true;
        const SmallModel small(config, Type::f16);
        write_text(files.path("m.fovea"), {reinterpret_cast<const char*>(small.file.data()), small.file.size()});
        const std::string words = output_of({"inspect", files.path("m.fovea")});
        CHECK(contains(words, "queries, keys and values                1,536 x 512, and 1,536 biases\n"));
        CHECK(contains(words, "output map                                512 x 512, and 512 biases\n"));
        CHECK(contains(words, "total                                     1,050,624\n"));
        const std::string json = output_of({"inspect", files.path("m.fovea"), "--json"});
        CHECK(contains(json, "\"n_heads\":" + std::to_string(n_heads) + ","));
        CHECK(contains(
            json, "\"attention\":1048576,\"feed_forward\":0,\"embedding\":0,\"output\":0,\"biases_and_norms\":2048"));
    }
}

TEST_CASE("cli: run writes the weights of prompt and answer, causal rows that sum to 1") {
    const Files files;
    const std::string w = files.path("w.npy");
    CHECK(output_of({"run", "-p", "lights off", "-n", "5", "--weights", w, "--layer", "1", "--per-head"}) != "");
    const FloatArray weights = read_floats(w);
    REQUIRE(weights.shape.size() == 3);
    const std::size_t n = weights.shape[1];
    CHECK(weights.shape[2] == n);
    for (std::size_t row = 0; row < weights.shape[0] * n; ++row) {
        double sum = 0;
        for (std::size_t k = 0; k < n; ++k) {
            const float p = weights.data[row * n + k];
            if (k > row % n) CHECK(p == 0.0f);
            sum += p;
        }
        CHECK(std::abs(sum - 1) < 1e-5);
    }
    check_refused({"run", "-p", "x", "--layer", "1"}, 2, "expected --weights");
    check_refused({"run", "-p", "x", "--weights", w, "--layer", "99"}, 1, "--layer: expected at most");
}

}  // namespace
}  // namespace fovea::testing
