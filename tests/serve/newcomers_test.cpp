// Whose texts a pass has: many who come at once wait for no more passes than one who comes alone, whoever has been there before.
#include <doctest/doctest.h>

#include "serve/jobs/metrics.h"
#include "serve/jobs/worker.h"
#include "tests/support/convert_fixtures.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

constexpr std::uint32_t kPlaces = 4;  // in a pass

/// A worker and those who ask it for texts of one prompt.
struct Asked {
    const TemporaryFolder folder;
    const host::Opened model;
    serve::ModelMetrics metrics;
    std::unique_ptr<serve::Worker> worker;
    std::size_t n_ended = 0;  // texts

    Asked() : model(opened_in(folder)) {
        worker = serve::make_text_worker(model, {.context = 64, .n_sequences = kPlaces}, metrics);
        worker->take_memory();
        worker->begin();
    }
    Asked(const Asked&) = delete;
    Asked& operator=(const Asked&) = delete;
    ~Asked() { worker->fail_all({503, "the test is over"}); }

    static host::Opened opened_in(const TemporaryFolder& folder) {
        const ConvertOptions options{.source = fs::path(FOVEA_GOLDEN_DIR) / "next_heads" / "deepseek_v3",
                                     .output = folder / "model.fovea"};
        convert_source(options);
        return open_path(options.output.string());
    }
    /// A text of `n_new` tokens, which does not end before.
    void add(const std::string& user, std::uint32_t n_new) {
        auto job = std::make_shared<serve::Job>();
        job->prompts = {{3, 10, 17, 1}};
        job->user = user;
        job->n_new = n_new;
        job->sampler.min_tokens = n_new;
        job->arrived = serve::Clock::now();
        job->deadline = job->arrived + std::chrono::hours(1);
        job->deliver = [this](const std::vector<serve::Event>& events) {
            for (const serve::Event& event : events) n_ended += event.ended && !event.failure.status;
        };
        REQUIRE(worker->queue.push(job));
    }
};

TEST_CASE("newcomers have the next pass, all of them") {
    Asked asked;
    for (std::uint32_t i = 0; i < 3 * kPlaces; ++i) asked.add("greedy", 50);
    for (int i = 0; i < 5; ++i) REQUIRE(asked.worker->turn());
    REQUIRE(asked.n_ended == 0);
    for (std::uint32_t i = 0; i < kPlaces; ++i) asked.add("newcomer " + std::to_string(i), 1);
    REQUIRE(asked.worker->turn());  // the pass that is under way as they come
    REQUIRE(asked.worker->turn());
    CHECK(asked.n_ended == kPlaces);
}

TEST_CASE("who has nothing in a pass comes before who has, if they are level") {
    Asked asked;
    for (std::uint32_t i = 0; i < 3 * kPlaces; ++i) asked.add("a greedy one", 50);
    for (std::uint32_t i = 1; i < kPlaces; ++i) asked.add("newcomer " + std::to_string(i), 1);
    REQUIRE(asked.worker->turn());
    CHECK(asked.n_ended == kPlaces - 1);
}

}  // namespace
}  // namespace fovea::testing
