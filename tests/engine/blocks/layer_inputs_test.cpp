// Keys and values of earlier layers take no room, and what tokens give each layer has its part of the arena. Each
// impossible configuration is refused. What is computed: the families' cases, and all suites of decoders.
#include <doctest/doctest.h>

#include <string>

#include "fovea/cache.h"
#include "fovea/encode.h"
#include "fovea/host/arena.h"
#include "tests/support/small_models.h"
#include "tests/support/small_pool.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// The layers that make keys and values, alone.
Config without_sharing_layers() {
    Config config = shared_keys_config();
    config.decoder.n_layers = 3, config.decoder.n_blocks = 2;
    config.decoder.layer_blocks = config.decoder.layer_blocks.first(3);
    return config;
}

/// What `check` refuses after a change of one block, or of the layers.
std::string refusal(const auto& change) {
    Config config = shared_keys_config();
    change(config.decoder);
    const Status status = check(config);
    CHECK(status.code == Code::config_invalid);
    return status.what ? status.what : "";
}

}  // namespace

TEST_CASE("layer inputs: layers that share keys take no room in a cache, and none when it is saved") {
    const Config all = shared_keys_config(), own = without_sharing_layers();
    PoolPlan shared_plan, own_plan;
    REQUIRE(make_pool_plan(all, {}, shared_plan).ok());
    REQUIRE(make_pool_plan(own, {}, own_plan).ok());
    CHECK(part_bytes(shared_plan, "pages") == part_bytes(own_plan, "pages"));
    Plan session_plan, own_session;
    REQUIRE(make_plan(all, {}, session_plan).ok());
    REQUIRE(make_plan(own, {}, own_session).ok());
    CHECK(part_bytes(session_plan, "keys") == part_bytes(own_session, "keys"));
    CHECK(part_bytes(session_plan, "values") == part_bytes(own_session, "values"));
    CHECK(part_bytes(session_plan, "layer inputs") == std::uint64_t{session_plan.limits.max_batch} * 48 * 4);
    CHECK(part_bytes(own_session, "layer inputs") == std::uint64_t{own_session.limits.max_batch} * 32 * 4);

    const auto saved_bytes = [](const Config& config) {
        const AlignedBytes file = write_bytes(random_model(config, 1), {});
        Model model;
        REQUIRE(open_model(file, model).ok());
        SmallSteps steps(model, {}, {});
        const Token tokens[] = {5, 9, 2};
        const Step step{steps.make(), tokens, {}};
        REQUIRE(forward(steps.workspace, {&step, 1}).ok());
        return cache_bytes(step.cache);
    };
    CHECK(saved_bytes(all) == saved_bytes(own));
}

TEST_CASE("layer inputs: configurations that cannot be are refused by name") {
    static constexpr std::uint8_t kSharesFirst[] = {2, 1, 0, 2, 3, 2};
    CHECK(refusal([](Stack& s) { s.layer_blocks = kSharesFirst; }) == "a layer whose keys are shared");
    CHECK(refusal([](Stack& s) { s.blocks[2].attention.window = 12; }) == "a layer whose keys are shared");
    CHECK(refusal([](Stack& s) { s.blocks[3].attention.n_kv_heads = 2; }) == "a layer whose keys are shared");
    CHECK(refusal([](Stack& s) { s.blocks[2].attention.value_norm = true; }) == "value_norm");
    CHECK(refusal([](Stack& s) { s.blocks[2].attention.key_bias = true; }) == "shared keys with what makes keys");
    CHECK(refusal([](Stack& s) { s.blocks[1].inputs.width = 7; }) == "layer_input_width of every block");
    CHECK(refusal([](Stack& s) {
              for (Block& b : s.blocks) b.inputs.width = 1025;
          }) == "layer_input_width");
    CHECK(refusal([](Stack& s) { s.blocks[0].attention.bias_kv = true; }) ==
          "shared keys or a norm of values of other attention");
}

TEST_CASE("layer inputs: a stack that gives vectors has none") {
    Config config = shared_keys_config();
    config.decoder.has_output_head = config.decoder.tied_output = false;
    Plan plan;
    const Status status = make_plan(config, {}, plan);
    CHECK(status.code == Code::unsupported);
    CHECK(std::string(status.what) == "shared keys or layer inputs of what gives no logits");
}
