// Experts: which are chosen, that no other's weights are read, and what of a configuration is refused. Their bits on every
// instruction set, for every number of threads, split and company are held by the tests that walk decoder_configs(), their
// numbers by the golden models of families.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "host/model/listing.h"
#include "tests/support/not_finite.h"
#include "tests/support/same_bits.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr std::uint32_t kExperts = 8, kUsed = 2;

/// One layer, wide enough that an expert's weights are several pages.
Config routed_config() {
    Config config = llama_config(1, 128, 4, 2, 32, 96, 64);
    Block& b = config.decoder.blocks[0];
    b.experts.n = kExperts;
    b.experts.n_used = kUsed;
    b.experts.normalize = true;
    return config;
}

/// A file in pages of its own, of which some can be made unreadable.
class PagedFile {
public:
    explicit PagedFile(const AlignedBytes& file) : n_(file.size()) {
        void* place = mmap(nullptr, n_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(place != MAP_FAILED);
        base_ = static_cast<std::byte*>(place);
        std::memcpy(base_, file.data(), n_);
        REQUIRE(open_model({base_, n_}, model).ok());
    }
    ~PagedFile() { munmap(base_, n_); }
    PagedFile(const PagedFile&) = delete;
    PagedFile& operator=(const PagedFile&) = delete;

    /// The bytes of one expert's rows of a tensor.
    [[nodiscard]] std::span<std::byte> expert(const char* role, std::uint32_t number) const {
        for (const TensorInfo& t : tensors(model)) {
            if (std::string_view(t.role) != role) continue;
            const auto n_bytes = static_cast<std::size_t>(t.bytes / kExperts);
            return {base_ + t.offset + n_bytes * number, n_bytes};
        }
        return {};
    }
    /// Makes the whole pages within some bytes unreadable; how many there are.
    std::size_t hide(std::span<std::byte> bytes) const {
        constexpr std::size_t kPage = 4096;
        const std::size_t first = (static_cast<std::size_t>(bytes.data() - base_) + kPage - 1) / kPage * kPage;
        const std::size_t end = static_cast<std::size_t>(bytes.data() + bytes.size() - base_) / kPage * kPage;
        if (first >= end) return 0;
        REQUIRE(mprotect(base_ + first, end - first, PROT_NONE) == 0);
        return (end - first) / kPage;
    }

    Model model;

private:
    std::byte* base_ = nullptr;
    std::size_t n_ = 0;
};

std::vector<float> logits_of(const Model& model, std::span<const Token> tokens, const Limits& limits = {},
                             const char* isa = nullptr) {
    SmallSession s(model, limits, isa);
    std::vector<float> logits(tokens.size() * model.config().decoder.vocab_size);
    REQUIRE(forward(s.session, tokens, logits).ok());
    return logits;
}

/// Experts on whose weights the logits depend: NaN in them shows in the logits.
std::set<std::uint32_t> used_experts(const AlignedBytes& file, std::span<const Token> tokens) {
    std::set<std::uint32_t> used;
    for (std::uint32_t i = 0; i < kExperts; ++i) {
        const PagedFile poisoned(file);
        for (const char* role : {"expert_up", "expert_down"}) {
            const auto bytes = poisoned.expert(role, i);
            std::memset(bytes.data(), 0xff, bytes.size());
        }
        const std::vector<float> logits = logits_of(poisoned.model, tokens);
        if (std::isnan(logits.back())) used.insert(i);
    }
    return used;
}

/// A model whose router sees nothing in a row, or NaN.
ModelSource with_router(const Config& config, float weight) {
    ModelSource source = random_model(config, 3);
    source.read_rows = [inner = source.read_rows, weight](const TensorSpec& spec, std::uint32_t row_begin,
                                                          std::uint32_t n_rows, float* out) {
        inner(spec, row_begin, n_rows, out);
        if (spec.role == Role::router) std::fill_n(out, std::size_t{n_rows} * spec.n_cols, weight);
    };
    return source;
}

}  // namespace

TEST_CASE("experts: a row's logits depend on the experts it uses, and no other's weights are read") {
    for (const Type type : {Type::f32, Type::q8}) {
        CAPTURE(static_cast<int>(type));
        const AlignedBytes file = write_bytes(random_model(routed_config(), 3), {.type = type});
        const std::vector<Token> token = {5};
        const std::set<std::uint32_t> used = used_experts(file, token);
        CHECK(used.size() == kUsed);
        const PagedFile paged(file);
        const std::vector<float> expected = logits_of(paged.model, token);
        std::size_t n_hidden = 0;
        for (std::uint32_t i = 0; i < kExperts; ++i)
            for (const char* role : {"expert_up", "expert_down"})
                if (used.count(i) == 0) n_hidden += paged.hide(paged.expert(role, i));
        CHECK(n_hidden >= (kExperts - kUsed) * 2);  // reading one of these ends the test
        CHECK(same_bits(logits_of(paged.model, token), expected));
        CHECK(same_bits(logits_of(paged.model, token, {.max_batch = 1, .n_threads = 3}), expected));
    }
}

TEST_CASE("experts: of many rows, too, only those that a row chose are read") {
    Config config = routed_config();
    const AlignedBytes file = write_bytes(random_model(config, 4), {.type = Type::f32});
    const std::vector<Token> tokens(20, 7);  // attention to equal values: rows alike, and so are their experts
    const PagedFile paged(file);
    const std::vector<float> expected = logits_of(paged.model, tokens);
    const std::set<std::uint32_t> used = used_experts(file, tokens);
    CHECK(used.size() >= kUsed);
    REQUIRE(used.size() < kExperts);
    for (std::uint32_t i = 0; i < kExperts; ++i)
        for (const char* role : {"expert_up", "expert_down"})
            if (used.count(i) == 0) paged.hide(paged.expert(role, i));
    CHECK(same_bits(logits_of(paged.model, tokens), expected));
    CHECK(same_bits(logits_of(paged.model, tokens, {.max_batch = 6, .n_threads = 2}), expected));
}

TEST_CASE("experts: of equal logits the lower number is chosen") {
    const AlignedBytes file = write_bytes(with_router(routed_config(), 0.0f), {.type = Type::f32});
    const std::vector<Token> tokens = {3, 9, 30};
    CHECK(used_experts(file, tokens) == std::set<std::uint32_t>{0, 1});
}

TEST_CASE("experts: logits of NaN choose the first, with the same bits everywhere") {
    for (const float weight : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        const AlignedBytes file = with_number(weight, with_router(routed_config(), kMarked), {.type = Type::f32});
        Model model;
        REQUIRE(open_model(file, model).ok());
        const std::vector<Token> tokens = {3, 9, 30, 1};
        const std::vector<float> expected = logits_of(model, tokens, {}, "scalar");
        for (const float logit : expected)
            CHECK((!std::isnan(logit) || std::bit_cast<std::uint32_t>(logit) == 0x7fc00000u));
        for (const char* isa : model_isas())
            CHECK(same_bits(logits_of(model, tokens, {.n_threads = 2}, isa), expected));
    }
}

TEST_CASE("experts: matrices of two types of operand, in a model of few columns, have the same bits row by row") {
    Config config = llama_config(1, 16, 1, 1, 16, 32, 40);
    Block& b = config.decoder.blocks[0];
    b.experts.n = 4;
    b.experts.n_used = 2;
    b.experts.shared_d_ff = 32;
    for (const auto& [expert, other] : {std::pair{Type::q8, Type::q8_128}, std::pair{Type::q8_128, Type::q4}}) {
        const MatrixTypes types{{{StackIndex::decoder, 0, Role::expert_up}, expert},
                                {{StackIndex::decoder, 0, Role::shared_up}, other}};
        for (std::uint32_t seed = 1; seed <= 8; ++seed) {
            CAPTURE(seed);
            const AlignedBytes file = write_bytes(random_model(config, seed), {.type = Type::f32, .types = &types});
            Model model;
            REQUIRE(open_model(file, model).ok());
            std::vector<Token> tokens(40);
            for (std::uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = (i * 7 + seed) % 40;
            const std::vector<float> at_once = logits_of(model, tokens);
            CHECK(std::none_of(at_once.begin(), at_once.end(), [](float logit) { return std::isnan(logit); }));
            CHECK(same_bits(logits_of(model, tokens, {.max_batch = 1}), at_once));
        }
    }
}

TEST_CASE("experts: of groups only those are used that have the largest scores") {
    Config config = routed_config();
    Block& b = config.decoder.blocks[0];
    b.experts.n_groups = 4, b.experts.n_groups_used = 1;
    const std::vector<Token> token = {5};
    for (const bool biased : {false, true}) {
        b.experts.choice_bias = biased;
        b.experts.router_score = biased ? RouterScore::sigmoid : RouterScore::softmax;
        ModelSource source = random_model(config, 3);
        source.read_rows = [inner = source.read_rows](const TensorSpec& spec, std::uint32_t row_begin,
                                                      std::uint32_t n_rows, float* out) {
            inner(spec, row_begin, n_rows, out);
            if (spec.role != Role::choice_bias) return;
            for (std::uint32_t i = 0; i < kExperts; ++i) out[i] = i / 2 == 2 ? 5.0f : i == 7 ? 9.0f : 0.0f;
        };
        const AlignedBytes file = write_bytes(source, {.type = Type::f32});
        const std::set<std::uint32_t> used = used_experts(file, token);
        REQUIRE(used.size() == 2);
        CHECK(*used.begin() % 2 == 0);
        CHECK(*used.begin() + 1 == *used.rbegin());
        if (biased) CHECK(*used.begin() == 4);  // 5 + 5 is more than 9 + 0
    }
}

TEST_CASE("experts: a bias for the choice of NaN or infinity chooses the first that are left") {
    Config config = routed_config();
    config.decoder.blocks[0].experts.choice_bias = true;
    for (const float bias : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
        ModelSource source = random_model(config, 3);
        source.read_rows = [inner = source.read_rows](const TensorSpec& spec, std::uint32_t row_begin,
                                                      std::uint32_t n_rows, float* out) {
            inner(spec, row_begin, n_rows, out);
            if (spec.role == Role::choice_bias) std::fill_n(out, kExperts, kMarked);
        };
        const AlignedBytes file = with_number(bias, source, {.type = Type::f32});
        const std::vector<Token> tokens = {3, 9, 30};
        CHECK(used_experts(file, tokens) == std::set<std::uint32_t>{0, 1});
    }
}

TEST_CASE("experts: the planned size works, a byte less is refused, and room for one row has room for its experts") {
    Config config = routed_config();
    config.decoder.blocks[0].experts.n_used = 5;
    config.decoder.blocks[0].experts.shared_d_ff = 40;
    config.decoder.blocks[0].experts.shared_gate = true;
    const SmallModel small(config, Type::f32);
    for (const std::uint32_t batch : {1u, 2u, 17u}) {
        Plan plan;
        REQUIRE(make_plan(config, {.max_batch = batch, .n_threads = 2}, plan).ok());
        AlignedBytes arena(plan.arena_bytes + 64, std::byte{0x5a});
        Session session;
        const std::span<std::byte> planned = std::span(arena).first(plan.arena_bytes);
        CHECK(make_session(small.model, plan.limits, planned.first(planned.size() - 1), session).code ==
              Code::arena_too_small);
        REQUIRE(make_session(small.model, plan.limits, planned, session).ok());
        const auto tokens = some_tokens(40, config.decoder.vocab_size);
        std::vector<float> logits(config.decoder.vocab_size);
        REQUIRE(forward(session, tokens, logits).ok());
        for (std::size_t i = plan.arena_bytes; i < arena.size(); ++i) CHECK(arena[i] == std::byte{0x5a});
    }
}

TEST_CASE("experts: a configuration that cannot be is refused by the field's name") {
    struct Case {
        const char* what;
        void (*change)(Block&);
    };
    static constexpr Case kCases[] = {
        {"n_experts", [](Block& b) { b.experts.n = (1u << 10) + 1; }},
        {"n_experts_used", [](Block& b) { b.experts.n_used = 0; }},
        {"n_experts_used", [](Block& b) { b.experts.n_used = kExperts + 1; }},
        {"n_experts_used", [](Block& b) { b.experts.n = 200, b.experts.n_used = 65; }},
        {"n_experts_used", [](Block& b) { b.experts.n = 0; }},
        {"n_experts times d_ff", [](Block& b) { b.feed.d_ff = 0; }},
        {"n_experts times d_ff", [](Block& b) { b.experts.n = 1u << 10, b.feed.d_ff = 1u << 13; }},
        {"shared_d_ff", [](Block& b) { b.experts.shared_d_ff = (1u << 20) + 1; }},
        {"shared_d_ff",
         [](Block& b) { b.experts.n = b.experts.n_used = 0, b.experts.shared_d_ff = 4, b.experts.normalize = false; }},
        {"normalize_experts", [](Block& b) { b.experts.n = b.experts.n_used = 0; }},
        {"shared_gate", [](Block& b) { b.experts.shared_gate = true; }},
        {"weigh_inputs",
         [](Block& b) { b.experts.weigh_inputs = b.experts.shared_gate = true, b.experts.shared_d_ff = 4; }},
        {"router_margin", [](Block& b) { b.experts.margin = 0.5f; }},
        {"scores one by one, or what orders all", [](Block& b) { b.experts.router_score = RouterScore::sparse_mixer; }},
        {"biases of a shared expert", [](Block& b) { b.experts.shared_d_ff = 4, b.feed.up_bias = true; }},
        {"biases of a shared expert", [](Block& b) { b.experts.shared_d_ff = 4, b.feed.down_bias = true; }},
        {"n_groups_used", [](Block& b) { b.experts.n_groups = 4; }},
        {"n_groups_used", [](Block& b) { b.experts.n_groups = 4, b.experts.n_groups_used = 5; }},
        {"n_expert_groups that divides n_experts",
         [](Block& b) { b.experts.n_groups = 3, b.experts.n_groups_used = 2; }},
        {"n_experts_used of the groups used", [](Block& b) { b.experts.n_groups = 8, b.experts.n_groups_used = 1; }},
        {"router_score", [](Block& b) { b.experts.router_score = static_cast<RouterScore>(3); }},
        {"router_score",
         [](Block& b) {
             b.experts.n = b.experts.n_used = 0, b.experts.normalize = false;
             b.experts.router_score = RouterScore::sigmoid;
         }},
        {"router_bias",
         [](Block& b) {
             b.experts.n = b.experts.n_used = 0, b.experts.normalize = false, b.experts.router_bias = true;
         }},
    };
    CHECK(check(routed_config()).ok());
    for (const Case& c : kCases) {
        CAPTURE(c.what);
        Config config = routed_config();
        c.change(config.decoder.blocks[0]);
        const Status status = check(config);
        CHECK(status.code == Code::config_invalid);
        CHECK(std::string_view(status.what) == c.what);
    }
    Config most = routed_config();
    most.decoder.blocks[0].experts.n = 1u << 10;
    most.decoder.blocks[0].experts.n_used = 64;
    most.decoder.blocks[0].feed.d_ff = 1u << 12;
    CHECK(check(most).ok());
    Plan plan;
    CHECK(make_plan(most, {.max_batch = 1}, plan).ok());
}
