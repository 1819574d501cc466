// Products shared with other machines (fovea/remote.h): the same bits, whatever is computed where, comes late or not at all; and
// any numbers from elsewhere give a status.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <random>

#include "fovea/encode.h"
#include "fovea/remote.h"
#include "tests/support/encoded.h"
#include "tests/support/encoder_models.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// A session in memory of its own, made with options.
struct OwnSession {
    Plan plan;
    AlignedBytes arena;
    Session session;

    OwnSession(const Model& model, const Limits& limits, const SessionOptions& options = {}) {
        REQUIRE(make_plan(model.config(), limits, plan).ok());
        arena.resize(plan.arena_bytes, std::byte{0xee});
        REQUIRE(make_session(model, limits, arena, session, options).ok());
    }
};

/// Two other machines, played by one workspace of another instruction set. What is where, and what is lost, changes from product to
/// product.
class Elsewhere {
public:
    Elsewhere(const Model& model, std::uint32_t seed, bool loses, const char* isa = nullptr)
        : seed_(seed), loses_(loses) {
        Plan plan;
        REQUIRE(make_workspace_plan(model.config(), {.max_batch = 1, .n_threads = 2}, plan).ok());
        arena_.resize(plan.arena_bytes);
        REQUIRE(make_workspace(model, plan.limits, arena_, workspace_, isa).ok());
        remote.context = this;
        remote.settle = [](void* self) { ++static_cast<Elsewhere*>(self)->n_passes; };
        remote.n_here = [](const void* self, const RemoteJob& job) {
            return static_cast<const Elsewhere*>(self)->draw(job, 1) % (job.n_units + 1);
        };
        remote.begin = [](void* self, const RemoteJob& job) { static_cast<Elsewhere*>(self)->begin(job); };
        remote.finish = [](void* self, const RemoteJob& job) { static_cast<Elsewhere*>(self)->finish(job); };
    }

    Remote remote;
    std::uint32_t n_passes = 0, n_jobs = 0, n_lost = 0;

private:
    struct Part {
        std::uint32_t begin = 0, end = 0;
        bool lost = false;
        std::vector<float> results;
    };

    /// The same for every member.
    [[nodiscard]] std::uint32_t draw(const RemoteJob& job, std::uint32_t salt) const {
        std::uint64_t x = (std::uint64_t{seed_} << 32) ^ (job.n_units * 2654435761u) ^ (job.n_rows * 40503u) ^ salt;
        x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
        return static_cast<std::uint32_t>(x >> 33);
    }

    void begin(const RemoteJob& job) {
        ++n_jobs;
        const std::uint32_t first = draw(job, 1) % (job.n_units + 1), n = job.n_units - first;
        const std::uint32_t middle = first + draw(job, 2) % (n + 1);
        parts_[0].begin = first, parts_[0].end = parts_[1].begin = middle, parts_[1].end = job.n_units;
        for (Part& part : parts_) {
            part.lost = loses_ && draw(job, 3 + part.begin) % 3 == 0;
            if (part.begin < part.end && !part.lost) compute(job, part);
        }
    }

    void compute(const RemoteJob& job, Part& part) {
        std::array<MatrixPart, kMostParts> cuts;
        const std::size_t n = cut(job, part.begin, part.end, cuts);
        REQUIRE(n >= 1);
        std::size_t n_all = 0, n_added = 0;
        for (std::size_t i = 0; i < n; ++i) {
            n_all += n_results(cuts[i], job.n_rows);
            if (cuts[i].epilogue == 1) n_added += n_results(cuts[i], job.n_rows);
        }
        std::vector<float> addends(n_added);
        give_addends(job, part.begin, part.end, addends.data());
        part.results.assign(n_all, -1.0f);
        std::size_t at = 0, from = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t n_of_it = n_results(cuts[i], job.n_rows);
            if (cuts[i].epilogue == 1) {
                std::copy_n(addends.begin() + static_cast<std::ptrdiff_t>(from), n_of_it,
                            part.results.begin() + static_cast<std::ptrdiff_t>(at));
                from += n_of_it;
            }
            at += n_of_it;
        }
        AlignedBytes operand(job.operand.begin(), job.operand.end());
        REQUIRE(multiply_parts(workspace_, std::span(cuts).first(n), operand, job.n_rows, part.results).ok());
    }

    void finish(const RemoteJob& job) {
        for (const Part& part : parts_) {
            if (part.begin == part.end) continue;
            if (part.lost) {
                ++n_lost;
                multiply_here(job, part.begin, part.end);
            } else {
                take_results(job, part.begin, part.end, part.results.data());
            }
        }
    }

    AlignedBytes arena_;
    Workspace workspace_;
    std::uint32_t seed_;
    bool loses_;
    std::array<Part, 2> parts_;
};

/// Logits of a prompt of up to 40 tokens, then of five more one by one.
std::vector<float> logits_of(const Model& model, const Limits& limits, const SessionOptions& options,
                             const Trace& trace = {}) {
    OwnSession own(model, limits, options);
    set_trace(own.session, trace);
    const std::uint32_t vocab_size = model.config().decoder.vocab_size;
    const std::uint32_t n = std::min(45u, model.config().decoder.max_positions), n_prompt = n - 5;
    const auto tokens = some_tokens(n, vocab_size);
    std::vector<float> all(n * std::size_t{vocab_size});
    const std::span<const Token> text(tokens);
    const std::span<float> out(all);
    REQUIRE(forward(own.session, text.first(n_prompt), out.first(n_prompt * vocab_size)).ok());
    for (std::size_t i = n_prompt; i < n; ++i)
        REQUIRE(forward(own.session, text.subspan(i, 1), out.subspan(i * vocab_size, vocab_size)).ok());
    return all;
}

}  // namespace

TEST_CASE("remote products: logits have the bits that they have alone, whatever is computed elsewhere or lost") {
    std::uint32_t seed = 0;
    for (const NamedConfig& named : decoder_configs())
        for (const Type type : kTypes) {
            const bool is_own_way = type == Type::q8 || type == Type::q8_128 || type == Type::q4_k;
            if (kSanitized && type != Type::f32 && !(is_own_way && named.name == "llama")) continue;
            CAPTURE(named.name);
            CAPTURE(static_cast<int>(type));
            const SmallModel small(named.config, type);
            const std::vector<float> want = logits_of(small.model, {}, {.isa = "scalar"});
            for (const std::uint32_t n_threads : {1u, 3u}) {
                CAPTURE(n_threads);
                Elsewhere elsewhere(small.model, ++seed, n_threads == 3, n_threads == 1 ? "scalar" : nullptr);
                const Limits limits{.max_batch = 32, .n_threads = n_threads};
                CHECK(same(want, logits_of(small.model, limits, {.remote = &elsewhere.remote})));
                CHECK(elsewhere.n_jobs > 0);
                CHECK(elsewhere.n_passes == 7);  // the prompt's two, and five tokens
                if (n_threads == 1) CHECK(elsewhere.n_lost == 0);
            }
        }
}

TEST_CASE("remote products: the tap is shown the same rows") {
    const SmallModel small(gpt2_config(), Type::q8);
    using Seen = std::vector<std::pair<std::string, std::vector<float>>>;
    const auto seen_with = [&](const SessionOptions& options) {
        Seen seen;
        const Trace trace{
            .call =
                [](void* context, std::uint32_t, std::uint32_t, const char* name, std::span<const float> row) {
                    static_cast<Seen*>(context)->emplace_back(name, std::vector<float>(row.begin(), row.end()));
                },
            .context = &seen};
        (void)logits_of(small.model, {.n_threads = 2}, options, trace);
        return seen;
    };
    Elsewhere elsewhere(small.model, 5, true);
    const Seen want = seen_with({}), got = seen_with({.remote = &elsewhere.remote});
    REQUIRE(want.size() == got.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
        CHECK(want[i].first == got[i].first);
        CHECK(same(want[i].second, got[i].second));
    }
}

TEST_CASE("remote products: encoders, with heads and relative positions") {
    std::uint32_t seed = 100;
    for (const Config& config : {bert_config(), disentangled_config(8, 12)}) {
        const SmallModel small(config, Type::f16);
        const Stack& stack = small.model.config().encoder;
        const auto tokens = some_tokens(30, stack.vocab_size);
        const std::vector<std::uint32_t> lengths{17, 13};
        const EncodeInput in{.source = {.ids = tokens, .lengths = lengths}};
        const std::size_t n_out = 30 * std::size_t{stack.d_model};
        const std::vector<float> want = encoded(small.model, in, n_out);
        Elsewhere elsewhere(small.model, ++seed, true);
        OwnSession own(small.model, {.max_batch = 60, .n_threads = 2, .max_sequences = 3},
                       {.remote = &elsewhere.remote});
        std::vector<float> got(n_out);
        REQUIRE(encode(own.session, in, got).ok());
        CHECK(same(want, got));
        CHECK(elsewhere.n_jobs > 0);
    }
}

TEST_CASE("remote products: a part that the file cannot have is refused") {
    const SmallModel small(llama_config(), Type::q8);
    OwnSession own(small.model, {.n_threads = 2});
    Workspace workspace = own.session.workspace();
    // A real one, of the first product that is shared out.
    struct Taken {
        MatrixPart part;
        AlignedBytes operand;
        std::uint32_t n_rows = 0;
    } taken;
    Remote takes;
    takes.context = &taken;
    takes.settle = [](void*) {};
    takes.n_here = [](const void*, const RemoteJob&) { return 0u; };
    takes.begin = [](void* context, const RemoteJob& job) {
        Taken& t = *static_cast<Taken*>(context);
        if (t.n_rows) return;
        std::array<MatrixPart, kMostParts> parts;
        REQUIRE(cut(job, 0, 1, parts) == 1);
        t = {parts[0], AlignedBytes(job.operand.begin(), job.operand.end()), job.n_rows};
    };
    takes.finish = [](void*, const RemoteJob& job) { multiply_here(job, 0, job.n_units); };
    (void)logits_of(small.model, {}, {.remote = &takes});
    const MatrixPart real = taken.part;
    const auto compute = [&](const MatrixPart& part) {
        const std::size_t n = std::size_t{taken.n_rows} * part.n_outputs;
        std::vector<float> results(std::min<std::size_t>(n, 1 << 20));
        return multiply_parts(workspace, {&part, 1}, taken.operand, taken.n_rows, results);
    };
    REQUIRE(compute(real).ok());

    const auto refused = [&](auto MatrixPart::*field, std::uint64_t value) {
        MatrixPart part = real;
        part.*field = static_cast<std::remove_reference_t<decltype(part.*field)>>(value);
        return !compute(part).ok();
    };
    const std::uint64_t file_bytes = small.model.bytes().size(), many = ~std::uint64_t{0};
    for (const std::uint64_t value : {file_bytes, file_bytes - 64, many, many - 63, real.panels + 1})
        CHECK(refused(&MatrixPart::panels, value));
    for (const std::uint64_t value : {std::uint64_t{0}, real.panel_stride - 64, real.panel_stride + 1, many - 63})
        CHECK(refused(&MatrixPart::panel_stride, value));
    for (const std::uint64_t value : {std::uint64_t{1}, file_bytes, file_bytes - 4, many - 3})
        CHECK(refused(&MatrixPart::bias, value));
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{real.n_panels} + 1, many})
        CHECK(refused(&MatrixPart::n_panels, value));
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{real.n_cols} + 64, many})
        CHECK(refused(&MatrixPart::n_cols, value));
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{real.n_outputs} + 1, many})
        CHECK(refused(&MatrixPart::n_outputs, value));
    CHECK(refused(&MatrixPart::type, kTypeCount));
    CHECK(refused(&MatrixPart::epilogue, 3));
    CHECK(refused(&MatrixPart::activation, 200));
    CHECK(refused(&MatrixPart::canonical, 2));

    std::vector<float> results(1);
    CHECK(!multiply_parts(workspace, {}, taken.operand, taken.n_rows, results).ok());
    CHECK(!multiply_parts(workspace, {&real, 1}, taken.operand, 0, results).ok());
    CHECK(!multiply_parts(workspace, {&real, 1}, {}, taken.n_rows, results).ok());
    Workspace none;
    CHECK(!multiply_parts(none, {&real, 1}, taken.operand, taken.n_rows, results).ok());

    // Whatever is drawn: results or a status, and no byte beside them (with a sanitizer: none read or written).
    std::mt19937_64 random(7);
    std::uint32_t n_computed = 0;
    for (int i = 0; i < 20000; ++i) {
        MatrixPart part = real;
        auto* bytes = reinterpret_cast<unsigned char*>(&part);
        for (int changes = static_cast<int>(random() % 3); changes >= 0; --changes)
            bytes[random() % sizeof part] = static_cast<unsigned char>(random() % 4 ? random() % 3 : random());
        const std::size_t n = std::min<std::size_t>(std::size_t{taken.n_rows} * part.n_outputs, 1 << 16);
        std::vector<float> out(n + 16, 3.0f);
        n_computed += multiply_parts(workspace, {&part, 1}, taken.operand, taken.n_rows, std::span(out).first(n)).ok();
        for (std::size_t k = n; k < out.size(); ++k) REQUIRE(out[k] == 3.0f);
    }
    CHECK(n_computed > 100);
}
