// Models that write one text from another, many at a time: logits and lengths are those that a Translation has alone.
#include <doctest/doctest.h>

#include <algorithm>

#include "host/base/hash.h"
#include "host/translate/translation.h"
#include "serve/jobs/metrics.h"
#include "serve/jobs/worker.h"
#include "tests/support/convert_fixtures.h"

namespace fovea::testing {
namespace {

using Tokens = std::vector<Token>;

/// What is known of a written text.
struct Written {
    std::uint64_t hash = kHashSeed;
    std::uint32_t n_new = 0;
    FinishReason finish = FinishReason::none;
    [[nodiscard]] bool operator==(const Written&) const = default;
};

Written alone(Translation& writer, const TargetRules& rules, const Tokens& source) {
    Written text;
    writer.start(source, rules, {.sampler = {.temperature = 0}});
    for (Piece piece; text.finish == FinishReason::none;) {
        REQUIRE(writer.next(piece).ok());
        text.hash = hash_bits(piece.logits, text.hash);
        text.n_new += static_cast<std::uint32_t>(piece.tokens.size());
        text.finish = piece.finish;
    }
    return text;
}

std::vector<Written> together(const host::Opened& served, const std::shared_ptr<const TargetRules>& rules,
                              const std::vector<Tokens>& sources, std::uint32_t n_sequences) {
    serve::ModelMetrics metrics;
    const auto worker = serve::make_text_worker(served, {.n_sequences = n_sequences}, metrics);
    worker->take_memory();
    worker->begin();
    std::vector<Written> texts(sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
        auto job = std::make_shared<serve::Job>();
        job->write_from({sources[i]}, rules);
        job->n_new = rules->most_new(worker->context());
        job->sampler.temperature = 0;
        job->hash_logits = true;
        job->arrived = serve::Clock::now();
        job->deadline = job->arrived + std::chrono::hours(1);
        job->deliver = [&texts, i](const std::vector<serve::Event>& events) {
            for (const serve::Event& event : events) {
                CHECK(event.failure.message.empty());
                texts[i] = {event.logits_hash, event.n_new, event.finish};
            }
        };
        REQUIRE(worker->queue.push(job));
    }
    while (worker->turn()) {
    }
    CHECK(worker->n_lost_pages() == 0);
    return texts;
}

/// Beginnings of `source` of several lengths, some of them twice.
std::vector<Tokens> parts_of(const Tokens& source) {
    std::vector<Tokens> parts;
    for (const std::size_t n :
         {source.size(), std::size_t{2}, std::size_t{9}, source.size(), std::size_t{5}, std::size_t{9}}) {
        parts.emplace_back(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(n) - 1);
        parts.back().push_back(source.back());
    }
    return parts;
}

TEST_CASE("pairs: texts written together have the logits that each has alone") {
    for (const auto& entry : fs::directory_iterator(fs::path(FOVEA_GOLDEN_DIR) / "pairs")) {
        CAPTURE(entry.path());
        ConvertOptions options;
        options.source = entry.path();
        options.type = Type::f32;
        const ModelSource made = read_source(options);
        const AlignedBytes file = write_bytes(made, write_options(options, made));
        const host::Opened served = host::open_bytes(file, "pair");
        const auto expected = nlohmann::json::parse(read_text(entry.path() / "expected.json"));
        std::vector<Tokens> sources = parts_of(expected["source"].get<Tokens>());
        const auto rules = std::make_shared<const TargetRules>(
            TargetRules::read(find_info(served.model, "target"), served.model.config().decoder.vocab_size, "target"));
        std::vector<Written> texts;
        {
            Translation writer(served, {});
            for (const Tokens& source : sources) texts.push_back(alone(writer, *rules, source));
        }
        for (const std::uint32_t n_sequences : {1u, 2u, 4u, 8u}) {
            CAPTURE(n_sequences);
            std::rotate(sources.begin(), sources.begin() + 1, sources.end());
            std::rotate(texts.begin(), texts.begin() + 1, texts.end());
            CHECK((together(served, rules, sources, n_sequences) == texts));
        }
        CHECK_FALSE((texts[0] == texts[1]));
    }
}

}  // namespace
}  // namespace fovea::testing
