// A text worker shows attention: a text in a cache of its own, in a call of its own.
#include <algorithm>

#include "serve/jobs/text_worker.h"

namespace fovea::serve {

std::uint64_t TextWorker::attention_bytes() const {
    const Stack& stack = served_.model.config().decoder;
    std::uint32_t n_heads = 1;
    for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer)
        n_heads = std::max(n_heads, std::uint32_t{stack.block(layer).attention.n_heads});
    const std::uint64_t n = std::min(options_.n_viewed, context_);
    return n_heads * n * n * sizeof(float);
}

void TextWorker::show_attention(const JobPtr& job) {
    queue.pop(job);
    const std::span<const Token> text = job->prompts[0];
    const auto n = static_cast<std::uint32_t>(text.size());
    const std::uint32_t n_heads = served_.model.config().decoder.block(job->view->layer).attention.n_heads;
    while (pool_->n_free_pages() < pages_of(n) && kept_.drop_oldest()) {
    }
    const bool mean = job->view->head < 0;
    const std::size_t n_weights = std::size_t{n} * n;
    const std::span<float> out(reinterpret_cast<float*>(attention_arena_.bytes().data()),
                               (mean ? 1 : n_heads) * n_weights);
    Cache cache;
    Status status = make_cache(*pool_, cache);
    if (status.ok())
        status = capture_attention(
            *workspace_, {.layer = job->view->layer, .per_head = !mean, .n_queries = n, .n_keys = n, .out = out});
    const Step step{cache, text, {}};
    if (status.ok()) status = forward(*workspace_, {&step, 1});
    (void)capture_attention(*workspace_, {});
    if (cache.valid()) (void)end_cache(cache);
    metrics_.n_rows += n;
    ++metrics_.n_passes;
    queue.charge(job->user, n);
    Event event{.ended = true};
    if (status.ok()) {
        const std::span<const float> chosen = out.subspan((mean ? 0 : job->view->head) * n_weights, n_weights);
        event.vector.assign(chosen.begin(), chosen.end());
    } else {
        event.failure = {500, StatusLine(status).c_str()};
    }
    job->n_started = job->n_ended = job->n_choices();
    job->events.push_back(std::move(event));
    job->hand_over();
    job->deliver = nullptr;
}

}  // namespace fovea::serve
