// Drafts of the server's texts: answers are those without one, in every bit, and a text that is not alone waits for no draft.
#include <doctest/doctest.h>

#include <algorithm>

#include "host/base/hash.h"
#include "serve/jobs/metrics.h"
#include "serve/jobs/worker.h"
#include "tests/support/convert_fixtures.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

constexpr std::uint32_t kContext = 64;
constexpr const char* kNames[] = {"deepseek_v3", "glm4_moe", "qwen3_5_text"};  // the last has recurrent layers

/// A model of tests/golden/next_heads, or its next-token head.
host::Opened opened_of(const char* name, bool mtp, const TemporaryFolder& folder) {
    ConvertOptions options{.source = fs::path(FOVEA_GOLDEN_DIR) / "next_heads" / name,
                           .output = folder / (mtp ? "head.fovea" : "model.fovea"),
                           .mtp = mtp};
    convert_source(options);
    return open_path(options.output.string());
}

/// What is known of a written text.
struct Text {
    std::uint64_t hash = kHashSeed;
    std::uint32_t n_new = 0;
    FinishReason finish = FinishReason::none;
    [[nodiscard]] bool operator==(const Text&) const = default;
    [[nodiscard]] bool ended() const { return finish != FinishReason::none; }
};

/// A worker, with a draft if there is one.
struct Writing {
    serve::ModelMetrics metrics;
    std::unique_ptr<serve::Worker> worker;

    Writing(const host::Opened& model, const host::Opened* draft, serve::WorkerOptions options = {}) {
        options.context = kContext;
        if (draft) options.drafts = {{model.name, draft}};
        options.drafts_always = true;
        worker = serve::make_text_worker(model, options, metrics);
        worker->take_memory();
        worker->begin();
    }
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;
    /// `text` must outlive the worker.
    void add(Text& text, std::vector<Token> prompt, std::uint32_t n_new, float temperature = 0) {
        auto job = std::make_shared<serve::Job>();
        job->prompts = {std::move(prompt)};
        job->user = std::to_string(prompt_number_++);
        job->n_new = n_new;
        job->sampler.temperature = temperature;
        job->hash_logits = true;
        job->arrived = serve::Clock::now();
        job->deadline = job->arrived + std::chrono::hours(1);
        job->deliver = [&text](const std::vector<serve::Event>& events) {
            for (const serve::Event& event : events) {
                CHECK(event.failure.message.empty());
                if (event.ended) text = {event.logits_hash, event.n_new, event.finish};
            }
        };
        REQUIRE(worker->queue.push(job));
    }
    void finish() {
        while (worker->turn()) {
        }
    }
    ~Writing() {
        worker->fail_all({503, "the test is over"});  // prefixes are kept no longer
        CHECK(worker->n_lost_pages() == 0);
    }
    /// Tokens proposed by so many turns.
    std::uint64_t proposed_in(std::size_t n_turns) {
        const std::uint64_t before = metrics.n_proposed;
        while (n_turns--) REQUIRE(worker->turn());
        return metrics.n_proposed - before;
    }

private:
    int prompt_number_ = 0;
};

std::vector<Token> prompt_of(std::size_t n, Token step) {
    std::vector<Token> prompt;
    for (Token i = 0; i < n; ++i) prompt.push_back((3 + step * i) % 23);
    return prompt;
}

/// The text that a worker without a draft writes alone.
Text alone(const host::Opened& model, const std::vector<Token>& prompt, std::uint32_t n_new, float temperature = 0) {
    Text text;
    Writing writing(model, nullptr);
    writing.add(text, prompt, n_new, temperature);
    writing.finish();
    CHECK(writing.metrics.n_proposed == 0);
    CHECK(text.n_new == n_new);
    return text;
}

TEST_CASE("serve's drafts: an answer is the one without, in fewer passes where the draft is right") {
    for (const char* name : kNames) {
        CAPTURE(name);
        const TemporaryFolder folder;
        const host::Opened model = opened_of(name, false, folder), head = opened_of(name, true, folder);
        for (const float temperature : {0.0f, 0.8f}) {
            Text expected[2], drafted[2];
            for (std::uint32_t i : {0u, 1u}) expected[i] = alone(model, prompt_of(9 + i, 7), 40, temperature);
            for (const host::Opened* draft : {&head, &model}) {
                Writing writing(model, draft);
                for (std::uint32_t i : {0u, 1u}) {  // the second goes on from what is kept of the first
                    writing.add(drafted[i], prompt_of(9 + i, 7), 40, temperature);
                    writing.finish();
                    CHECK(drafted[i] == expected[i]);
                }
                CHECK(writing.metrics.n_proposed > 0);
                CHECK(writing.metrics.n_accepted <= writing.metrics.n_proposed);
                CHECK(writing.worker->memory_bytes() > Writing(model, nullptr).worker->memory_bytes());
                if (draft != &model || temperature > 0) continue;
                CHECK(writing.metrics.n_accepted == writing.metrics.n_proposed);
                CHECK(writing.metrics.n_passes < 20);
            }
        }
    }
}

TEST_CASE("serve's drafts: only a text that is alone has proposals") {
    for (const char* name : kNames) {
        CAPTURE(name);
        const TemporaryFolder folder;
        const host::Opened model = opened_of(name, false, folder), head = opened_of(name, true, folder);
        const std::vector<Token> long_one = prompt_of(8, 7), short_one = prompt_of(5, 3), next_one = prompt_of(6, 5);
        const Text expected[] = {alone(model, long_one, 50), alone(model, short_one, 4), alone(model, next_one, 55)};
        Writing writing(model, &head);
        Text texts[3];
        writing.add(texts[0], long_one, 50);
        CHECK(writing.proposed_in(4) > 0);
        writing.add(texts[1], short_one, 4);
        const std::uint64_t n_before = writing.metrics.n_proposed;
        while (!texts[1].ended()) REQUIRE(writing.worker->turn());
        CHECK(writing.metrics.n_proposed == n_before);
        CHECK_FALSE(texts[0].ended());
        CHECK(writing.proposed_in(2) > 0);  // alone again
        writing.add(texts[2], next_one, 55);
        const std::uint64_t n_then = writing.metrics.n_proposed;
        while (!texts[0].ended()) REQUIRE(writing.worker->turn());
        CHECK(writing.metrics.n_proposed == n_then);
        CHECK_FALSE(texts[2].ended());
        CHECK(writing.proposed_in(2) > 0);  // another text has the draft now
        writing.finish();
        CHECK(std::equal(texts, texts + 3, expected));
    }
}

TEST_CASE("serve's drafts: texts that give their pages and places to others are those without") {
    for (const char* name : kNames) {
        CAPTURE(name);
        const TemporaryFolder folder;
        const host::Opened model = opened_of(name, false, folder), head = opened_of(name, true, folder);
        std::vector<Text> expected, texts(6);
        for (std::uint32_t i = 0; i < texts.size(); ++i)
            expected.push_back(alone(model, prompt_of(4 + i, 7), 30 + 4 * i));
        for (const std::uint32_t n_sequences : {1u, 2u, 3u}) {
            CAPTURE(n_sequences);
            std::fill(texts.begin(), texts.end(), Text{});
            Writing writing(model, &head, {.n_sequences = n_sequences, .n_positions = kContext});
            for (std::uint32_t i = 0; i < texts.size(); ++i) {
                writing.add(texts[i], prompt_of(4 + i, 7), 30 + 4 * i);
                (void)writing.worker->turn();
            }
            writing.finish();
            CHECK(texts == expected);
            CHECK(writing.metrics.n_proposed > 0);
        }
    }
}

TEST_CASE("serve's drafts: what is none of the model's is refused") {
    const TemporaryFolder folder, other_folder;
    const host::Opened model = opened_of("deepseek_v3", false, folder),
                       head = opened_of("glm4_moe", true, other_folder), wide = opened_of("qwen3_5_text", true, folder);
    CHECK(contains(refusal_of([&] { Writing(model, &head); }), "vocabulary: expected"));
    CHECK(contains(refusal_of([&] { Writing(model, &wide); }), "next-token head: expected one of"));
}

}  // namespace
}  // namespace fovea::testing
