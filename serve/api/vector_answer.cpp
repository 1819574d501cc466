#include "serve/api/vector_answer.h"

#include <cmath>

namespace fovea::serve {
namespace {

/// Divided by its Euclidean length; of zeros itself.
std::vector<float> with_length_1(std::vector<float> vector) {
    double squares = 0;
    for (const float value : vector) squares += static_cast<double>(value) * static_cast<double>(value);
    const double length = std::sqrt(squares);
    if (length > 0)
        for (float& value : vector) value = static_cast<float>(static_cast<double>(value) / length);
    return vector;
}

}  // namespace

std::string VectorAnswer::take(const Event& event) {
    std::vector<float>& vector = vectors_.all[event.choice];
    vector = event.vector;
    const bool is_cut = n_dimensions_ && n_dimensions_ < vector.size();
    if (is_cut) vector.resize(n_dimensions_);
    if (is_cut || unit_length_) vector = with_length_1(std::move(vector));
    vectors_.n_tokens += event.n_prompt;
    return {};
}

Reply vector_reply(const Call& call, ModelEntry& entry, const VectorRequest& request, bool unit_length,
                   VectorAnswer::Word word) {
    const JobPtr job = job_of(call);
    PromptReader::Prompted read = entry.prompts.read(request);
    job->prompts = std::move(read.prompts);
    job->n_unpooled = std::move(read.n_unpooled);
    const std::uint32_t width = entry.served.vector_width();
    if (request.n_dimensions > width)
        refuse("dimensions", "at most " + std::to_string(width), std::to_string(request.n_dimensions));
    return reply_of(
        call, entry, job,
        std::make_unique<VectorAnswer>(job->n_choices(), std::move(word), request.n_dimensions, unit_length), false);
}

}  // namespace fovea::serve
